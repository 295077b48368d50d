//! Admission: places and memory, as the transfers take them.

use shuttle::future::{block_on, spawn};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;

use crate::admission::Admission;
use crate::{Check, Orders};

const PAGE: u64 = 4096;

pub(crate) const CHECKS: &[Check] = &[
    Check { name: "no more requests than places", orders: Orders::All, body: places },
    Check { name: "no more memory than the budget", orders: Orders::All, body: memory },
    Check { name: "memory before places never locks", orders: Orders::All, body: memory_before_places },
    Check { name: "places before memory would lock", orders: Orders::SomeFails, body: places_before_memory },
    Check { name: "a place given up for memory never locks", orders: Orders::Random, body: place_given_up },
    Check { name: "what a caller has not taken locks nothing else", orders: Orders::Random, body: three_shares },
    Check { name: "a wait that is cancelled leaks nothing", orders: Orders::Random, body: cancelled },
    Check { name: "what is given back early is given back once", orders: Orders::All, body: shrunk },
];

/// `requests` places, and shares of `passing`, half of it and half of it pages.
fn admission(requests: usize, passing: u64) -> Arc<Admission> {
    Arc::new(Admission::new(requests, 2 * passing * PAGE))
}

/// All of it is free again.
fn all_free(admission: &Admission, passing: u64) {
    assert!(admission.memory_at_once(passing * PAGE).is_some(), "passing memory is missing");
    block_on(async {
        admission.undelivered(passing / 2 * PAGE).await;
        admission.more_undelivered(passing / 2 * PAGE).await;
    });
}

fn in_threads(count: usize, work: impl Fn(usize) + Send + Sync + 'static) {
    let work = Arc::new(work);
    let threads: Vec<_> = (0..count)
        .map(|number| {
            let work = Arc::clone(&work);
            thread::spawn(move || work(number))
        })
        .collect();
    for thread in threads {
        thread.join().expect("a thread");
    }
}

/// Counts who is inside, and fails above `most`.
fn inside(count: &AtomicUsize, amount: usize, most: usize) {
    let now = count.fetch_add(amount, Ordering::SeqCst) + amount;
    assert!(now <= most, "{now} at once, {most} allowed");
    count.fetch_sub(amount, Ordering::SeqCst);
}

fn places() {
    let (admission, count) = (admission(1, 4), AtomicUsize::new(0));
    in_threads(2, move |_| {
        block_on(async {
            let _place = admission.request().await;
            inside(&count, 1, 1);
        });
    });
}

fn memory() {
    let (admission, count) = (admission(1, 2), AtomicUsize::new(0));
    let ends = Arc::clone(&admission);
    in_threads(2, move |number| {
        let pages = [2, 1][number];
        block_on(async {
            let _memory = admission.memory(pages * PAGE).await;
            inside(&count, pages as usize, 2);
        });
    });
    all_free(&ends, 2);
}

/// A part: room first, then a place.
fn memory_before_places() {
    let admission = admission(1, 2);
    let ends = Arc::clone(&admission);
    in_threads(2, move |_| {
        block_on(async {
            let _memory = admission.memory(2 * PAGE).await;
            let _place = admission.request().await;
        });
    });
    all_free(&ends, 2);
}

/// The other way round for one of the two.
fn places_before_memory() {
    let admission = admission(1, 2);
    in_threads(2, move |number| {
        block_on(async {
            if number == 0 {
                let _memory = admission.memory(2 * PAGE).await;
                let _place = admission.request().await;
            } else {
                let _place = admission.request().await;
                let _memory = admission.memory(2 * PAGE).await;
            }
        });
    });
}

/// Objects of unknown size: a first part, a place, an answer that says how much more is needed; the
/// place is given up while that is waited for, as `Exchange::wait_for_memory` does.
fn place_given_up() {
    let admission = admission(1, 4);
    let ends = Arc::clone(&admission);
    in_threads(3, move |_| {
        block_on(async {
            let mut first = admission.undelivered(2 * PAGE).await;
            let place = admission.request().await;
            drop(place);
            let more = admission.more_undelivered(2 * PAGE).await;
            let place = admission.request().await;
            drop(place);
            first.join(more);
        });
    });
    all_free(&ends, 4);
}

/// One object lies undelivered until the caller has uploaded something; two more want to come.
fn three_shares() {
    let admission = admission(1, 4);
    let ends = Arc::clone(&admission);
    let held = block_on(admission.undelivered(2 * PAGE));
    let objects: Vec<_> = (0..2)
        .map(|_| {
            let admission = Arc::clone(&admission);
            thread::spawn(move || {
                block_on(async {
                    let mut first = admission.undelivered(2 * PAGE).await;
                    drop(admission.request().await);
                    first.join(admission.more_undelivered(2 * PAGE).await);
                });
            })
        })
        .collect();
    // The caller's own upload comes before it takes what it holds.
    block_on(async {
        let memory = admission.memory(4 * PAGE).await;
        let place = admission.request().await;
        drop((memory, place));
    });
    drop(held);
    for object in objects {
        object.join().expect("an object");
    }
    all_free(&ends, 4);
}

fn cancelled() {
    let admission = admission(1, 2);
    let ends = Arc::clone(&admission);
    block_on(async {
        let held = admission.memory(2 * PAGE).await;
        let waiting = {
            let admission = Arc::clone(&admission);
            spawn(async move {
                let _memory = admission.memory(PAGE).await;
                let _place = admission.request().await;
            })
        };
        let next = {
            let admission = Arc::clone(&admission);
            spawn(async move { drop(admission.memory(2 * PAGE).await) })
        };
        shuttle::future::yield_now().await;
        waiting.abort();
        drop(held);
        next.await.expect("who stood behind the cancelled one");
        let _ = waiting.await;
    });
    all_free(&ends, 2);
}

fn shrunk() {
    let (admission, count) = (admission(1, 4), AtomicUsize::new(0));
    let ends = Arc::clone(&admission);
    in_threads(2, move |_| {
        block_on(async {
            let mut memory = admission.memory(3 * PAGE).await;
            memory.shrink(PAGE);
            inside(&count, 1, 4);
        });
    });
    all_free(&ends, 4);
}

//! Places, while a server refuses requests because there are too many.

use shuttle::future::block_on;
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;

use crate::places::{News, Places};
use crate::{Check, Orders};

pub(crate) const CHECKS: &[Check] = &[
    Check { name: "no more requests than the places that are left", orders: Orders::All, body: fewer },
    Check { name: "a round of refusals halves the places once", orders: Orders::All, body: one_round },
    Check { name: "places that are taken away lock nobody", orders: Orders::Random, body: never_locks },
    Check { name: "successes bring every place back, and no more", orders: Orders::Random, body: recovered },
];

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

/// No more than `most` of two requests are in flight at once.
fn at_most(places: &Arc<Places>, most: usize) {
    let (places, count) = (Arc::clone(places), AtomicUsize::new(0));
    in_threads(2, move |_| {
        let place = block_on(places.take());
        let now = count.fetch_add(1, Ordering::SeqCst) + 1;
        assert!(now <= most, "{now} at once, {most} allowed");
        count.fetch_sub(1, Ordering::SeqCst);
        drop(place);
    });
}

/// One place is free when it is taken away, the other is held.
fn fewer() {
    let places = Arc::new(Places::with_least(2, 1));
    let held = block_on(places.take());
    assert_eq!(places.refused(&held).news, News::Halved);
    drop(held);
    at_most(&places, 1);
    assert_eq!(places.at_present(), 1);
}

/// All are held, so that those which are taken away are owed.
fn one_round() {
    let places = Arc::new(Places::with_least(2, 1));
    let held = block_on(async { [places.take().await, places.take().await] });
    let (halved, shared) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&places));
    let counted = Arc::clone(&halved);
    let refusals = held.map(|place| {
        let (places, halved) = (Arc::clone(&shared), Arc::clone(&counted));
        thread::spawn(move || {
            let news = places.refused(&place).news;
            drop(place);
            halved.fetch_add(usize::from(news == News::Halved), Ordering::SeqCst);
            drop(block_on(places.take()));
        })
    });
    for refusal in refusals {
        refusal.join().expect("a request");
    }
    assert_eq!((halved.load(Ordering::SeqCst), places.at_present()), (1, 1));
    let _only = block_on(places.take());
}

fn never_locks() {
    let places = Arc::new(Places::with_least(4, 1));
    let shared = Arc::clone(&places);
    in_threads(4, move |number| {
        block_on(async {
            for _ in 0..3 {
                let place = shared.take().await;
                match number {
                    0 => _ = shared.refused(&place),
                    _ => shared.succeeded(),
                }
            }
        });
    });
    assert!((1..=4).contains(&places.at_present()));
}

fn recovered() {
    let places = Arc::new(Places::with_least(3, 1));
    let held = block_on(async { [places.take().await, places.take().await] });
    assert_eq!(places.refused(&held[0]).news, News::Halved);
    drop(held);
    let shared = Arc::clone(&places);
    // From one to three: a success, and two more.
    in_threads(3, move |_| {
        drop(block_on(shared.take()));
        shared.succeeded();
    });
    assert_eq!(places.at_present(), 3);
    let all = block_on(async { [places.take().await, places.take().await, places.take().await] });
    drop(all);
    at_most(&places, 2);
}

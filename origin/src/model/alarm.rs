//! Waking tasks at a time, to some hundredths of a millisecond, and never before it.
//!
//! The runtime's timers have a grain of a millisecond and wake up to two too late: too coarse for a store that answers
//! within four. A thread that sleeps until the next time is due is as exact as the kernel's own timers; but it and then
//! the task have still to be scheduled, which takes some tenths of a millisecond. So tasks are woken early by what that
//! took of late, and one that is up too soon lets others run until its time has come.

use std::cmp::{self, Reverse};
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;
use tokio::task::yield_now;

/// The most that a task is woken early: what more it is late by is for want of a core, which no earlier call mends.
const EARLIEST: Duration = Duration::from_micros(500);

/// How many waits the lateness is the (moving) mean of.
const MEAN_OF: u32 = 16;

/// Wakes whoever asked; its thread ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Alarm(Arc<Clock>);

#[derive(Debug, Default)]
struct Clock {
    calls: Mutex<Calls>,
    changed: Condvar,
    /// What waking took of late, in nanoseconds.
    lateness: AtomicU32,
}

#[derive(Debug, Default)]
struct Calls {
    waiting: BinaryHeap<Reverse<Call>>,
    ended: bool,
}

/// Ordered by when it is due.
#[derive(Debug)]
struct Call {
    due: Instant,
    wake: oneshot::Sender<()>,
}

impl Alarm {
    /// # Errors
    /// No thread to be had.
    pub(crate) fn start() -> io::Result<Self> {
        let clock = Arc::new(Clock::default());
        let own = clock.clone();
        thread::Builder::new().name("alarm".to_owned()).spawn(move || own.run())?;
        Ok(Self(clock))
    }

    /// Waits until then.
    pub(crate) async fn until(&self, due: Instant) {
        let lateness = Duration::from_nanos(self.0.lateness.load(Relaxed).into());
        let call = due.checked_sub(lateness).unwrap_or(due);
        if call > Instant::now() {
            // The thread outlives every wait but one that the server's end cuts short.
            let _ = self.0.call(call).await;
            self.0.took(call.elapsed());
        }
        while Instant::now() < due {
            yield_now().await;
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.0.calls.lock().ended = true;
        self.0.changed.notify_one();
    }
}

impl Clock {
    fn call(&self, due: Instant) -> oneshot::Receiver<()> {
        let (wake, woken) = oneshot::channel();
        let mut calls = self.calls.lock();
        let first = calls.waiting.peek().is_none_or(|Reverse(next)| due < next.due);
        calls.waiting.push(Reverse(Call { due, wake }));
        drop(calls);
        if first {
            self.changed.notify_one();
        }
        woken
    }

    /// So long after it was due to be woken a task ran.
    fn took(&self, time: Duration) {
        let time = time.min(EARLIEST).as_nanos() as u32;
        // Tasks that do this at once lose one another's part in a mean: none that matters.
        let mean = self.lateness.load(Relaxed);
        self.lateness.store((mean * (MEAN_OF - 1) + time) / MEAN_OF, Relaxed);
    }

    fn run(&self) {
        let mut calls = self.calls.lock();
        while !calls.ended {
            let now = Instant::now();
            match calls.waiting.peek().map(|Reverse(next)| next.due) {
                None => self.changed.wait(&mut calls),
                Some(due) if due > now => {
                    self.changed.wait_until(&mut calls, due);
                }
                Some(_) => {
                    if let Some(Reverse(call)) = calls.waiting.pop() {
                        // Whoever gave up waiting need not be told.
                        let _ = call.wake.send(());
                    }
                }
            }
        }
    }
}

impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Call {}

impl PartialOrd for Call {
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Call {
    fn cmp(&self, other: &Self) -> cmp::Ordering {
        self.due.cmp(&other.due)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn whoever_waits_is_woken_in_order_and_never_too_early() {
        let alarm = Alarm::start().unwrap();
        let order = Mutex::new(Vec::new());
        let wait = async |millis| {
            let due = Instant::now() + Duration::from_millis(millis);
            alarm.until(due).await;
            assert!(Instant::now() >= due, "woken before its time");
            order.lock().push(millis);
        };
        tokio::join!(wait(120), wait(60), wait(0), wait(180));
        assert_eq!(*order.lock(), [0, 60, 120, 180]);
    }

    #[tokio::test]
    async fn one_that_gives_up_disturbs_nobody() {
        let alarm = Alarm::start().unwrap();
        let now = Instant::now();
        let given_up = tokio::time::timeout(Duration::from_millis(5), alarm.until(now + Duration::from_secs(3600)));
        assert!(given_up.await.is_err());
        alarm.until(Instant::now() + Duration::from_millis(20)).await;
        assert!(now.elapsed() >= Duration::from_millis(25));
    }
}

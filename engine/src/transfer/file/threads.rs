//! Small pieces of blocking work on files, several of which a thread takes for one wake-up.
//!
//! To open, write and rename a file of some kilobytes takes some microseconds; to wake a thread for it, and to be
//! woken by that thread afterwards, takes as long again. So pieces are put into a queue, which a thread of the
//! runtime's is asked to empty when all tasks that were ready have put theirs there; and what came of them is told when
//! the queue is empty, or a millisecond has passed. Where pieces take long, as over a network, more threads are asked.
//!
//! A piece whose caller has given up before its turn is not done.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::error::{Error, ErrorKind, Result};

/// How long what was done may lie before it is told.
const TELL_WITHIN: Duration = Duration::from_millis(1);

/// How long a piece should wait for its turn at most; where it would be more, another thread is asked.
const TURN_WITHIN: Duration = Duration::from_millis(20);

/// The most threads at once.
const MOST_THREADS: usize = 32;

/// The pieces that wait, and the threads that are at them; cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct FileThreads(Arc<Mutex<Desk>>);

#[derive(Default)]
struct Desk {
    waiting: VecDeque<Box<dyn Piece>>,
    /// Threads that are at work, or were asked.
    threads: usize,
    /// What a piece takes, smoothed.
    typical: Duration,
}

impl FileThreads {
    /// Does a piece of work; a panic in it becomes an error.
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        let (told, outcome) = oneshot::channel();
        let piece = Box::new(Work { work: Some(work), outcome: None, told });
        if let Some(asking) = self.put(piece) {
            // Behind all tasks that are ready: what they put there goes with it.
            tokio::task::yield_now().await;
            drop(asking);
        }
        outcome.await.unwrap_or_else(|error| {
            let message = "the thread that was at it stopped";
            Err(Error::new(ErrorKind::Cancelled, message).with_source(error))
        })
    }

    /// Queues a piece; what asks for a thread where one more is needed.
    fn put(&self, piece: Box<dyn Piece>) -> Option<Asking> {
        let mut desk = self.lock();
        desk.waiting.push_back(piece);
        let enough = desk.threads > 0
            && desk.typical.saturating_mul(desk.waiting.len() as u32) / desk.threads as u32 <= TURN_WITHIN;
        if enough || desk.threads == MOST_THREADS {
            return None;
        }
        desk.threads += 1;
        Some(Asking { threads: self.clone(), runtime: Handle::current() })
    }

    fn lock(&self) -> MutexGuard<'_, Desk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread is asked when this is dropped: also where its task is dropped, since others rely on it.
struct Asking {
    threads: FileThreads,
    runtime: Handle,
}

impl Drop for Asking {
    fn drop(&mut self) {
        let at_work = AtWork { threads: self.threads.clone(), has_left: false };
        self.runtime.spawn_blocking(move || at_work.empty());
    }
}

/// One thread at the desk.
struct AtWork {
    threads: FileThreads,
    has_left: bool,
}

/// Where it panics, or was asked by a runtime that then ended.
impl Drop for AtWork {
    fn drop(&mut self) {
        if !self.has_left {
            self.threads.lock().threads -= 1;
        }
    }
}

impl AtWork {
    fn empty(mut self) {
        let mut done: Vec<Box<dyn Piece>> = Vec::new();
        let mut since = Instant::now();
        let (mut told, mut took) = (since, None);
        loop {
            match self.next(took.take()) {
                Some(mut piece) => {
                    piece.work();
                    done.push(piece);
                    let now = Instant::now();
                    took = Some(now - since);
                    since = now;
                    if now - told < TELL_WITHIN {
                        continue;
                    }
                }
                None if done.is_empty() => match self.leave() {
                    true => return,
                    false => continue,
                },
                None => {}
            }
            done.drain(..).for_each(|piece| piece.tell());
            told = since;
        }
    }

    fn next(&self, took: Option<Duration>) -> Option<Box<dyn Piece>> {
        let mut desk = self.threads.lock();
        if let Some(took) = took {
            desk.typical = (desk.typical * 7 + took) / 8;
        }
        desk.waiting.pop_front()
    }

    /// Whether there is nothing to do: then whoever brings something asks for a thread again.
    fn leave(&mut self) -> bool {
        let mut desk = self.threads.lock();
        self.has_left = desk.waiting.is_empty();
        desk.threads -= usize::from(self.has_left);
        self.has_left
    }
}

/// A piece of work, whatever comes of it.
trait Piece: Send {
    fn work(&mut self);
    fn tell(self: Box<Self>);
}

struct Work<F, T> {
    work: Option<F>,
    outcome: Option<Result<T>>,
    told: oneshot::Sender<Result<T>>,
}

impl<T: Send, F: FnOnce() -> Result<T> + Send> Piece for Work<F, T> {
    fn work(&mut self) {
        let Some(work) = self.work.take() else { return };
        if !self.told.is_closed() {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            self.outcome = done.ok();
        }
    }

    fn tell(self: Box<Self>) {
        if let Some(outcome) = self.outcome {
            // Who no longer wants to know is not told.
            let _ = self.told.send(outcome);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn idle(threads: &FileThreads) -> bool {
        let desk = threads.lock();
        desk.threads == 0 && desk.waiting.is_empty()
    }

    async fn wait_until_idle(threads: &FileThreads) {
        while !idle(threads) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn every_piece_is_done_once_and_told() {
        let threads = FileThreads::default();
        let count = Arc::new(AtomicUsize::new(0));
        let mut crew = tokio::task::JoinSet::new();
        for worker in 0..20 {
            let (threads, count) = (threads.clone(), Arc::clone(&count));
            crew.spawn(async move {
                for piece in 0..200 {
                    let count = Arc::clone(&count);
                    let work = move || Ok((worker, piece, count.fetch_add(1, Ordering::Relaxed)));
                    let (by, of, _) = threads.run(work).await.unwrap();
                    assert_eq!((by, of), (worker, piece));
                }
            });
        }
        crew.join_all().await;
        assert_eq!(count.load(Ordering::Relaxed), 20 * 200);
        wait_until_idle(&threads).await;
    }

    #[tokio::test]
    async fn pieces_that_are_put_there_together_are_one_threads_work() {
        let threads = FileThreads::default();
        let ran_on = || threads.run(|| Ok(std::thread::current().id()));
        let (a, b, c) = tokio::join!(ran_on(), ran_on(), ran_on());
        let here = std::thread::current().id();
        let [a, b, c] = [a, b, c].map(Result::unwrap);
        assert!(a == b && b == c && a != here);
    }

    #[tokio::test]
    async fn long_pieces_are_done_by_several() {
        let threads = FileThreads::default();
        // All of them must be at it at once, or none gets further.
        let meeting = Arc::new(std::sync::Barrier::new(4));
        threads.lock().typical = Duration::from_secs(1);
        let piece = || {
            let meeting = Arc::clone(&meeting);
            threads.run(move || Ok(meeting.wait().is_leader()))
        };
        let met = tokio::join!(piece(), piece(), piece(), piece());
        let leaders = [met.0, met.1, met.2, met.3].map(Result::unwrap).into_iter().filter(|leads| *leads);
        assert_eq!(leaders.count(), 1);
        wait_until_idle(&threads).await;
    }

    #[tokio::test]
    async fn a_piece_that_panics_takes_none_with_it() {
        let threads = FileThreads::default();
        let (good, bad) = tokio::join!(threads.run(|| Ok(1)), threads.run::<()>(|| panic!("a piece breaks")));
        assert_eq!(good.unwrap(), 1);
        assert_eq!(bad.unwrap_err().kind(), ErrorKind::Cancelled);
        assert_eq!(threads.run(|| Ok(2)).await.unwrap(), 2);
        wait_until_idle(&threads).await;
    }

    #[tokio::test]
    async fn what_nobody_waits_for_any_more_is_not_done_and_holds_up_nobody() {
        let threads = FileThreads::default();
        let (entered, here) = std::sync::mpsc::channel();
        let (go, gate) = std::sync::mpsc::channel::<()>();
        let first = threads.run(move || {
            entered.send(()).ok();
            Ok(gate.recv().is_ok())
        });
        let mut first = Box::pin(first);
        let done = Arc::new(AtomicUsize::new(0));
        // Dropped before it asked for a thread, after others came to rely on that.
        assert!(poll_once(first.as_mut()).is_pending());
        let second = {
            let done = Arc::clone(&done);
            let mut second = Box::pin(threads.run(move || Ok(done.fetch_add(1, Ordering::Relaxed))));
            assert!(poll_once(second.as_mut()).is_pending());
            second
        };
        drop(second);
        let third = threads.run(|| Ok(3));
        let release = async {
            tokio::task::spawn_blocking(move || here.recv()).await.unwrap().unwrap();
            go.send(()).unwrap();
        };
        let (first, third, ()) = tokio::join!(first, third, release);
        assert_eq!((first.unwrap(), third.unwrap()), (true, 3));
        assert_eq!(done.load(Ordering::Relaxed), 0);

        let mut asked = Box::pin(threads.run(|| Ok(())));
        assert!(poll_once(asked.as_mut()).is_pending());
        let mut relies = Box::pin(threads.run(|| Ok(4)));
        assert!(poll_once(relies.as_mut()).is_pending());
        drop(asked);
        assert_eq!(relies.await.unwrap(), 4);
        wait_until_idle(&threads).await;
    }

    fn poll_once<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> std::task::Poll<T> {
        future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
    }
}

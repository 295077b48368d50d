//! One call, many objects: a crew of workers over one source of items, and what comes of each as it
//! comes.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinSet};
use tracing::Instrument;

use super::workers::lost;
use crate::error::Result;
use crate::pace::MemoryPermit;

/// What comes of each item: its index in the order given, and its result. A [`Stream`], or call
/// [`Outcomes::next`]. Dropped, it stops what is in flight.
pub struct Outcomes<T> {
    source: Source<T>,
    /// The budget for what is gathered into a batch and not handed over yet.
    gathered: Vec<MemoryPermit>,
}

enum Source<T> {
    /// Each item has one outcome.
    Single(Crew<T>),
    /// Each item of the crew brings the outcomes of several of the caller's.
    Several { crew: Crew<Vec<Finished<T>>>, members: Members, ready: VecDeque<Finished<T>> },
}

/// The caller's items that an item of the crew stands for.
type Members = Box<dyn Fn(usize) -> Vec<usize> + Send + Sync>;

/// An item's index, and what came of it.
type Finished<T> = (usize, Result<T>);

/// The same with the budget for what it holds.
type Delivery<T> = (Finished<T>, Option<MemoryPermit>);

/// Workers over one source of items.
pub(crate) struct Crew<T> {
    receiver: mpsc::Receiver<Outcome<T>>,
    tasks: JoinSet<()>,
    /// What each worker has in hand: the index of its item.
    in_hand: Vec<(Id, Arc<AtomicUsize>)>,
}

/// The most outcomes of one batch: beyond some dozens, another costs no less to hand over.
const BATCH: usize = 64;

/// In the place of an index: between two items.
const NOTHING: usize = usize::MAX;

pub(crate) struct Outcome<T> {
    pub(crate) index: usize,
    pub(crate) result: Result<T>,
    /// The budget for what is delivered: until then it is the engine's.
    pub(crate) permit: Option<MemoryPermit>,
}

impl<T> Outcomes<T> {
    /// The next object that has finished; `None` after the last.
    pub async fn next(&mut self) -> Option<(usize, Result<T>)> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Adds what has finished to `into`, and returns how many that are: at least one, and 0 after the last.
    ///
    /// For a consumer on another thread, to which every hand-over costs a wake-up. A batch goes on growing
    /// for as long as the runtime's workers have something to do: whatever has arrived for them is handled before
    /// the batch is given out, so its first object waits no longer than the processor is busy, and for at most 63
    /// others. If the future is dropped, what it had gathered is in `into`.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client, keys: Vec<String>) -> wirespeed::Result<()> {
    /// let mut objects = client.get_many("bucket").buffers(keys)?;
    /// let mut batch = Vec::new();
    /// while objects.next_batch(&mut batch).await > 0 {
    ///     for (index, object) in batch.drain(..) {
    ///         println!("{index}: {} bytes", object?.body.len());
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn next_batch(&mut self, into: &mut Vec<(usize, Result<T>)>) -> usize {
        self.gathered.clear();
        let before = into.len();
        if let Some((outcome, permit)) = std::future::poll_fn(|cx| self.poll_outcome(cx)).await {
            into.push(outcome);
            self.gathered.extend(permit);
            let mut known = before;
            loop {
                while into.len() - before < BATCH
                    && let Some((outcome, permit)) = self.try_outcome()
                {
                    into.push(outcome);
                    self.gathered.extend(permit);
                }
                if into.len() == known || into.len() - before == BATCH {
                    break;
                }
                known = into.len();
                // Behind all tasks that are ready, and those that a look at the sockets finds ready.
                tokio::task::yield_now().await;
            }
        }
        self.gathered.clear();
        into.len() - before
    }

    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Option<Delivery<T>>> {
        let (crew, members, ready) = match &mut self.source {
            Source::Single(crew) => return crew.poll_next(cx),
            Source::Several { crew, members, ready } => (crew, members, ready),
        };
        loop {
            if let Some(finished) = ready.pop_front() {
                return Poll::Ready(Some((finished, None)));
            }
            match ready!(crew.poll_next(cx)) {
                Some((item, permit)) => {
                    unfold(item, members, ready);
                    if let Some(first) = ready.pop_front() {
                        return Poll::Ready(Some((first, permit)));
                    }
                }
                None => return Poll::Ready(None),
            }
        }
    }

    /// What is there without waiting.
    fn try_outcome(&mut self) -> Option<Delivery<T>> {
        let (crew, members, ready) = match &mut self.source {
            Source::Single(crew) => return crew.try_next(),
            Source::Several { crew, members, ready } => (crew, members, ready),
        };
        let mut permit = None;
        if ready.is_empty() {
            let (item, held) = crew.try_next()?;
            unfold(item, members, ready);
            permit = held;
        }
        ready.pop_front().map(|finished| (finished, permit))
    }
}

/// The outcomes that one item of a crew brings; where it was lost, those that it would have brought.
fn unfold<T>((index, outcomes): Finished<Vec<Finished<T>>>, members: &Members, ready: &mut VecDeque<Finished<T>>) {
    match outcomes {
        Ok(outcomes) => ready.extend(outcomes),
        Err(error) => ready.extend(members(index).into_iter().map(|index| (index, Err(error.clone())))),
    }
}

impl<T> Stream for Outcomes<T> {
    type Item = (usize, Result<T>);

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let outcome = ready!(self.get_mut().poll_outcome(cx));
        // With the hand-over its permit goes: the bytes are the caller's now.
        Poll::Ready(outcome.map(|(finished, _permit)| finished))
    }
}

// Nothing in it is pinned in place.
impl<T> Unpin for Outcomes<T> {}

impl<T> From<Crew<T>> for Outcomes<T> {
    fn from(crew: Crew<T>) -> Outcomes<T> {
        Outcomes { source: Source::Single(crew), gathered: Vec::new() }
    }
}

impl<T> Outcomes<T> {
    /// Of a crew whose items stand for several of the caller's each; `ready` has come already.
    pub(crate) fn several(
        crew: Crew<Vec<Finished<T>>>,
        members: impl Fn(usize) -> Vec<usize> + Send + Sync + 'static,
        ready: VecDeque<Finished<T>>,
    ) -> Outcomes<T> {
        Outcomes { source: Source::Several { crew, members: Box::new(members), ready }, gathered: Vec::new() }
    }
}

impl<T> Crew<T> {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Delivery<T>>> {
        if let Some(Outcome { index, result, permit }) = ready!(self.receiver.poll_recv(cx)) {
            return Poll::Ready(Some(((index, result), permit)));
        }
        // Nobody sends any more: all have ended, well or not.
        while let Some(ended) = ready!(self.tasks.poll_join_next(cx)) {
            let Err(error) = ended else { continue };
            let worker = self.in_hand.iter().find(|(id, _)| *id == error.id());
            match worker.map(|(_, index)| index.load(Ordering::Relaxed)) {
                Some(index) if index != NOTHING => return Poll::Ready(Some(((index, Err(lost(error))), None))),
                // It was looking for an item: it is the caller's own source that panicked.
                _ => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(_stopped) => continue,
                },
            }
        }
        Poll::Ready(None)
    }

    fn try_next(&mut self) -> Option<Delivery<T>> {
        let Outcome { index, result, permit } = self.receiver.try_recv().ok()?;
        Some(((index, result), permit))
    }
}

type Finding<I> = Pin<Box<dyn Stream<Item = I> + Send>>;

/// Where items come from: known at once, or still being found. A source that has ended is not asked
/// again.
pub(crate) enum Items<I> {
    Known(Mutex<(usize, Box<dyn Iterator<Item = I> + Send>)>),
    Found(tokio::sync::Mutex<(usize, Option<Finding<I>>)>),
}

impl<I> Items<I> {
    pub(crate) fn known<It>(items: It) -> Items<I>
    where
        It: IntoIterator<Item = I>,
        It::IntoIter: Send + 'static,
    {
        Items::Known(Mutex::new((0, Box::new(items.into_iter().fuse()))))
    }

    pub(crate) fn found(items: impl Stream<Item = I> + Send + 'static) -> Items<I> {
        Items::Found(tokio::sync::Mutex::new((0, Some(Box::pin(items)))))
    }

    async fn take(&self) -> Option<(usize, I)> {
        match self {
            Items::Known(items) => {
                let mut items = items.lock().unwrap_or_else(PoisonError::into_inner);
                let item = items.1.next()?;
                items.0 += 1;
                Some((items.0 - 1, item))
            }
            Items::Found(items) => {
                let mut items = items.lock().await;
                let finding = items.1.as_mut()?;
                let Some(item) = std::future::poll_fn(|cx| finding.as_mut().poll_next(cx)).await else {
                    items.1 = None;
                    return None;
                };
                items.0 += 1;
                Some((items.0 - 1, item))
            }
        }
    }
}

/// What one task of the crew does with its items.
pub(crate) trait Worker<I, T>: Send + 'static {
    /// Does one item. The permit covers what the result holds until it is delivered.
    fn work(&mut self, item: I) -> impl Future<Output = (Result<T>, Option<MemoryPermit>)> + Send;

    /// There are no more items.
    fn retire(self);
}

/// Starts `workers` tasks over the items.
pub(crate) fn start<I, T, W>(items: Items<I>, workers: usize, hire: impl Fn() -> W) -> Crew<T>
where
    I: Send + 'static,
    T: Send + 'static,
    W: Worker<I, T>,
{
    let items = Arc::new(items);
    let (sender, receiver) = mpsc::channel(workers.max(1));
    let mut tasks = JoinSet::new();
    let mut in_hand = Vec::with_capacity(workers);
    for _ in 0..workers {
        let (items, sender, mut worker) = (Arc::clone(&items), sender.clone(), hire());
        let held = Arc::new(AtomicUsize::new(NOTHING));
        let holding = Arc::clone(&held);
        let task = async move {
            while let Some((index, item)) = items.take().await {
                holding.store(index, Ordering::Relaxed);
                let (result, permit) = worker.work(item).await;
                if sender.send(Outcome { index, result, permit }).await.is_err() {
                    return;
                }
                holding.store(NOTHING, Ordering::Relaxed);
            }
            worker.retire();
        };
        in_hand.push((tasks.spawn(task.in_current_span()).id(), held));
    }
    Crew { receiver, tasks, in_hand }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fragile;

    impl Worker<u32, u32> for Fragile {
        async fn work(&mut self, item: u32) -> (Result<u32>, Option<MemoryPermit>) {
            assert_ne!(item, 3, "the worker breaks");
            (Ok(item), None)
        }

        fn retire(self) {}
    }

    #[tokio::test]
    async fn an_item_whose_worker_panics_is_an_error_and_not_missing() {
        let mut outcomes = Outcomes::from(start(Items::known(0..5), 2, || Fragile));
        let mut seen = Vec::new();
        while let Some((index, result)) = outcomes.next().await {
            seen.push((index, result.is_ok()));
        }
        seen.sort_unstable();
        assert_eq!(seen, [(0, true), (1, true), (2, true), (3, false), (4, true)]);
    }

    /// Brings the outcomes of 2n and 2n + 1.
    struct FragilePairs;

    impl Worker<usize, Vec<(usize, Result<u32>)>> for FragilePairs {
        async fn work(&mut self, item: usize) -> (Result<Vec<(usize, Result<u32>)>>, Option<MemoryPermit>) {
            assert_ne!(item, 3, "the worker breaks");
            (Ok(vec![(2 * item, Ok(0)), (2 * item + 1, Ok(1))]), None)
        }

        fn retire(self) {}
    }

    #[tokio::test]
    async fn all_that_a_worker_would_have_brought_is_lost_with_it_and_nothing_else() {
        for batches in [false, true] {
            let crew = start(Items::known(0..5), 2, || FragilePairs);
            let mut outcomes = Outcomes::several(crew, |item| vec![2 * item, 2 * item + 1], [(10, Ok(9))].into());
            let mut seen = Vec::new();
            if batches {
                while outcomes.next_batch(&mut seen).await > 0 {}
            } else {
                while let Some(outcome) = outcomes.next().await {
                    seen.push(outcome);
                }
            }
            let mut seen: Vec<_> = seen.into_iter().map(|(index, result)| (index, result.is_ok())).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq((0..11).map(|index| (index, index / 2 != 3))));
        }
    }
}

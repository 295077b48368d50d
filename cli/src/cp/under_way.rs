//! The hand-over of items to one call of the engine while more are still being found.
//!
//! The engine names each outcome by the item's place in the stream that it was given; what that item was is kept here
//! until its outcome comes. A bounded channel holds the finding back, so that a tree of millions is never in memory.
//! What has no outcome when the engine's call has ended is lost, and told of: see [`UnderWay::end`].

use std::collections::{HashMap, VecDeque};

use futures_util::Stream;
use futures_util::stream::poll_fn;
use tokio::sync::mpsc;

/// Items that may wait for the engine: enough that it never waits for a page of a listing.
const AHEAD: usize = 2_000;

/// Items on their way: found, handed over, not yet done. `I` is the engine's item, `P` what is remembered of it.
pub(super) struct UnderWay<I, P> {
    engine: Option<mpsc::Sender<I>>,
    found: VecDeque<(I, P)>,
    complete: bool,
    /// The engine's call has ended by itself, so that nothing can be handed over any more.
    engine_gone: bool,
    handed: usize,
    remembered: HashMap<usize, P>,
}

/// What never had an outcome, though the engine's call has ended.
pub(super) struct Lost<P> {
    /// What is remembered of the items, in the order in which they were found.
    pub(super) items: Vec<P>,
    /// Whether there may be more that was not even found.
    pub(super) cut_short: bool,
}

impl<I: Send + 'static, P> UnderWay<I, P> {
    /// Nothing yet, and the stream for the engine.
    pub(super) fn new() -> (UnderWay<I, P>, impl Stream<Item = I> + Send + 'static) {
        let (engine, mut items) = mpsc::channel(AHEAD);
        // Ends as often as it is asked after its end: more than one worker asks.
        let stream = poll_fn(move |cx| items.poll_recv(cx));
        let under_way = UnderWay {
            engine: Some(engine),
            found: VecDeque::new(),
            complete: false,
            engine_gone: false,
            handed: 0,
            remembered: HashMap::new(),
        };
        (under_way, stream)
    }

    /// One more item.
    pub(super) fn add(&mut self, item: I, remembered: P) {
        self.found.push_back((item, remembered));
    }

    /// No more will be found: the engine's call ends after what there is.
    pub(super) fn complete(&mut self) {
        self.complete = true;
        if self.found.is_empty() {
            self.engine = None;
        }
    }

    /// Whether it is time to find more.
    pub(super) fn wants_more(&self) -> bool {
        !self.complete && !self.engine_gone && self.found.is_empty()
    }

    /// Whether items wait to be handed over.
    pub(super) fn has_found(&self) -> bool {
        !self.engine_gone && !self.found.is_empty()
    }

    /// Waits until the engine has room, and fills it. Cancelling the wait loses nothing.
    pub(super) async fn hand_over(&mut self) {
        let Some(engine) = self.engine.clone() else { return };
        let mut room = engine.reserve().await.ok();
        // The engine takes no more: its workers are gone. What waits stays here, to be told of as lost.
        self.engine_gone = room.is_none();
        while let Some(permit) = room {
            let Some((item, remembered)) = self.found.pop_front() else { break };
            permit.send(item);
            self.remembered.insert(self.handed, remembered);
            self.handed += 1;
            room = engine.try_reserve().ok();
        }
        if self.complete && self.found.is_empty() {
            self.engine = None;
        }
    }

    /// What is remembered of the item whose outcome has come.
    pub(super) fn take(&mut self, index: usize) -> Option<P> {
        self.remembered.remove(&index)
    }

    /// After the engine's last outcome: what had none.
    pub(super) fn end(self) -> Lost<P> {
        let mut handed: Vec<(usize, P)> = self.remembered.into_iter().collect();
        handed.sort_unstable_by_key(|(index, _)| *index);
        let waiting = self.found.into_iter().map(|(_, remembered)| remembered);
        let items = handed.into_iter().map(|(_, remembered)| remembered).chain(waiting).collect();
        Lost { items, cut_short: !self.complete }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt as _;

    #[tokio::test]
    async fn every_item_arrives_once_under_its_index() {
        let (mut under_way, stream) = UnderWay::new();
        let engine = tokio::spawn(async move { stream.enumerate().collect::<Vec<_>>().await });
        for page in 0..5 {
            assert!(under_way.wants_more());
            (0..1_000).for_each(|item| under_way.add(page * 1_000 + item, format!("{page} {item}")));
            while under_way.has_found() {
                under_way.hand_over().await;
            }
        }
        under_way.complete();
        let seen = engine.await.unwrap();
        assert_eq!(seen.len(), 5_000);
        for (index, item) in seen {
            assert_eq!(index, item);
            assert_eq!(under_way.take(index), Some(format!("{} {}", item / 1_000, item % 1_000)));
            assert_eq!(under_way.take(index), None);
        }
        let lost = under_way.end();
        assert!(lost.items.is_empty() && !lost.cut_short);
    }

    #[tokio::test]
    async fn what_has_no_outcome_is_told() {
        let (mut under_way, stream) = UnderWay::new();
        (0..4).for_each(|item| under_way.add(item, item));
        under_way.hand_over().await;
        under_way.take(1);
        under_way.complete();
        drop(stream);
        let lost = under_way.end();
        assert_eq!(lost.items, [0, 2, 3]);
        assert!(!lost.cut_short, "all there is had been found");
    }

    #[tokio::test]
    async fn an_engine_that_is_gone_ends_the_finding() {
        let (mut under_way, stream) = UnderWay::new();
        under_way.add(0, "handed");
        under_way.hand_over().await;
        drop(stream);
        under_way.add(1, "waiting");
        assert!(under_way.has_found());
        under_way.hand_over().await;
        assert!(!under_way.has_found() && !under_way.wants_more(), "there is nobody to find anything for");
        let lost = under_way.end();
        assert_eq!(lost.items, ["handed", "waiting"]);
        assert!(lost.cut_short);
    }
}

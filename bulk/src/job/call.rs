//! One call of the engine that takes items as they come: what is handed to it, and what has come of that.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::mpsc;
use wirespeed::{CopyItem, CopyOutcome, FileItem, GetItem, ObjectInfo, Outcomes, PutOutcome, UploadItem};

use crate::failure::Failure;

/// What the engine tells of an item that is transferred.
#[derive(Debug, Default)]
pub(super) struct Transferred {
    /// In bytes, where the server told.
    pub(super) size: Option<u64>,
    pub(super) etag: Option<String>,
}

impl From<ObjectInfo> for Transferred {
    fn from(info: ObjectInfo) -> Transferred {
        Transferred { size: Some(info.size), etag: info.etag }
    }
}

impl From<PutOutcome> for Transferred {
    fn from(outcome: PutOutcome) -> Transferred {
        Transferred { size: None, etag: outcome.etag }
    }
}

impl From<CopyOutcome> for Transferred {
    fn from(outcome: CopyOutcome) -> Transferred {
        Transferred { size: None, etag: outcome.etag }
    }
}

/// An item's place among those handed over, and what came of it.
pub(super) type Finished = (usize, Result<Transferred, Failure>);

/// A call of the engine, by the way that it goes.
pub(super) enum Call {
    Down(Fed<FileItem, ObjectInfo>),
    Discard(Fed<GetItem, ObjectInfo>),
    Up(Fed<UploadItem, PutOutcome>),
    Across(Fed<CopyItem, CopyOutcome>),
}

/// One of the engine's items.
pub(super) enum Handed {
    Down(FileItem),
    Discard(GetItem),
    Up(UploadItem),
    Across(CopyItem),
}

/// A call and the channel that feeds it.
pub(super) struct Fed<I, T> {
    /// `None` once no more will come.
    feed: Option<mpsc::UnboundedSender<I>>,
    outcomes: Outcomes<T>,
    finished: Vec<(usize, wirespeed::Result<T>)>,
}

impl<I: Send + 'static, T> Fed<I, T> {
    /// Starts a call with the stream of what it will be fed. How much waits in it is for the feeder to bound.
    pub(super) fn start<F>(call: F) -> wirespeed::Result<Fed<I, T>>
    where
        F: FnOnce(Items<I>) -> wirespeed::Result<Outcomes<T>>,
    {
        let (feed, items) = mpsc::unbounded_channel();
        Ok(Fed { feed: Some(feed), outcomes: call(Items(items))?, finished: Vec::new() })
    }

    async fn wait(&mut self) -> bool {
        // What a wait that was cancelled had gathered is there already, and may be all that will come.
        !self.finished.is_empty() || self.outcomes.next_batch(&mut self.finished).await > 0
    }

    fn hand(&self, item: I) {
        if let Some(feed) = &self.feed {
            // A call that has ended takes nothing, and tells so by its end.
            let _ = feed.send(item);
        }
    }
}

/// What a call is fed with.
pub(super) struct Items<I>(mpsc::UnboundedReceiver<I>);

impl<I> Stream for Items<I> {
    type Item = I;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<I>> {
        self.0.poll_recv(cx)
    }
}

impl Call {
    pub(super) fn hand(&self, item: Handed) {
        match (self, item) {
            (Call::Down(fed), Handed::Down(item)) => fed.hand(item),
            (Call::Discard(fed), Handed::Discard(item)) => fed.hand(item),
            (Call::Up(fed), Handed::Up(item)) => fed.hand(item),
            (Call::Across(fed), Handed::Across(item)) => fed.hand(item),
            // A lane makes items of its own kind alone; another would have no outcome, and count as lost.
            _ => {}
        }
    }

    /// No more will come: the call ends after what it has.
    pub(super) fn close(&mut self) {
        match self {
            Call::Down(fed) => fed.feed = None,
            Call::Discard(fed) => fed.feed = None,
            Call::Up(fed) => fed.feed = None,
            Call::Across(fed) => fed.feed = None,
        }
    }

    /// Waits until something has finished; `false` where nothing will any more. Cancelled, it loses nothing.
    pub(super) async fn wait(&mut self) -> bool {
        match self {
            Call::Down(fed) => fed.wait().await,
            Call::Discard(fed) => fed.wait().await,
            Call::Up(fed) => fed.wait().await,
            Call::Across(fed) => fed.wait().await,
        }
    }

    /// Takes what has finished.
    pub(super) fn take(&mut self, each: impl FnMut(Finished)) {
        match self {
            Call::Down(fed) => told(&mut fed.finished, each),
            Call::Discard(fed) => told(&mut fed.finished, each),
            Call::Up(fed) => told(&mut fed.finished, each),
            Call::Across(fed) => told(&mut fed.finished, each),
        }
    }
}

fn told<T: Into<Transferred>>(finished: &mut Vec<(usize, wirespeed::Result<T>)>, each: impl FnMut(Finished)) {
    finished.drain(..).map(|(index, result)| (index, result.map(T::into).map_err(Failure::from))).for_each(each);
}

//! An upload that Python feeds piece by piece.
//!
//! Owns: the way of the bytes from the interpreter to the engine's task that uploads them, and how that
//! ends. Small pieces are gathered into chunks of [`CHUNK`] bytes without leaving the interpreter; what
//! is longer is lent to the engine, which copies it into the parts that it sends, and waited for until
//! it has. So what is unsent is bounded by the engine's memory budget and a few chunks.
//!
//! A piece of which nobody knows whether all of it went out (a write that was stopped by Ctrl-C, a
//! cancelled task) ends the upload: an object with a gap is never stored. An upload that is aborted or
//! dropped leaves no object and no parts.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as BlockingMutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use pyo3::prelude::*;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use wirespeed::{Error, Put, PutOutcome};

use crate::call::Call;
use crate::client::Live;
use crate::memory::Shared;
use crate::{errors, runtime};

/// Small pieces are gathered until they are this long; half of a small second-level cache.
const CHUNK: usize = 256 << 10;

/// Chunks that may wait for the engine.
const AHEAD: usize = 4;

/// Why an upload takes no more.
#[derive(Clone)]
pub(crate) enum Trouble {
    Engine(Arc<Error>),
    Aborted,
    Closed,
    Stopped,
}

impl Trouble {
    pub(crate) fn raise(&self, py: Python<'_>) -> PyErr {
        match self {
            Trouble::Engine(error) => errors::from_engine(py, error),
            Trouble::Aborted => errors::cancelled(
                "the upload was aborted, by abort() or because a write was stopped half-way; nothing is stored",
            ),
            Trouble::Closed => errors::config("the writer is closed; open another"),
            Trouble::Stopped => {
                errors::cancelled("the upload was stopped: the client was closed, or the interpreter ends")
            }
        }
    }
}

/// What the engine draws the body from.
struct Chunks {
    receiver: mpsc::Receiver<Bytes>,
    /// Whether the end of the chunks is the end of the object, and not of an upload that is given up: what
    /// ends that may come a moment later.
    whole: Arc<AtomicBool>,
}

impl Stream for Chunks {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.receiver.poll_recv(cx) {
            Poll::Ready(None) if !self.whole.load(Ordering::Acquire) => Poll::Pending,
            polled => polled.map(|chunk| chunk.map(Ok)),
        }
    }
}

/// A caller's memory that the engine may read until it drops this.
struct Loan {
    memory: Shared,
    /// Dropped after the memory: whoever waits for it has the memory back.
    _returned: oneshot::Sender<()>,
}

impl AsRef<[u8]> for Loan {
    fn as_ref(&self) -> &[u8] {
        self.memory.as_ref()
    }
}

enum Outcome {
    Running(oneshot::Receiver<wirespeed::Result<PutOutcome>>),
    Stored(PutOutcome),
    Failed(Trouble),
}

struct State {
    /// Small pieces, not handed over yet.
    gathered: Vec<u8>,
    /// `None` when there will be no more.
    sender: Option<mpsc::Sender<Bytes>>,
    outcome: Outcome,
}

impl State {
    /// Takes a piece that fits without waiting.
    fn take_at_once(&mut self, piece: &[u8]) -> bool {
        let Some(sender) = &self.sender else { return false };
        if sender.is_closed() {
            return false;
        }
        let room = CHUNK - self.gathered.len();
        if piece.len() < room {
            self.gathered.extend_from_slice(piece);
            return true;
        }
        let Ok(permit) = sender.try_reserve() else { return false };
        let (front, rest) = piece.split_at(room);
        self.gathered.extend_from_slice(front);
        let mut fresh = Vec::with_capacity(CHUNK);
        fresh.extend_from_slice(rest);
        permit.send(std::mem::replace(&mut self.gathered, fresh).into());
        true
    }

    async fn write(&mut self, piece: Shared) -> Result<(), Trouble> {
        self.send_gathered().await?;
        if piece.as_ref().len() < CHUNK {
            self.gathered.extend_from_slice(piece.as_ref());
            return Ok(());
        }
        let (returned, wait) = oneshot::channel();
        self.send(Bytes::from_owner(Loan { memory: piece, _returned: returned })).await?;
        // Nothing is ever sent there: the end of the loan ends the wait.
        let _ = wait.await;
        // Nothing is gathered: whether the upload goes on.
        self.send_gathered().await
    }

    async fn send_gathered(&mut self) -> Result<(), Trouble> {
        if self.sender.as_ref().is_none_or(mpsc::Sender::is_closed) {
            return Err(self.why_ended().await);
        }
        if self.gathered.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::take(&mut self.gathered).into();
        self.send(chunk).await
    }

    async fn send(&mut self, chunk: Bytes) -> Result<(), Trouble> {
        let Some(sender) = &self.sender else { return Err(self.why_ended().await) };
        let sent = sender.send(chunk).await.is_ok();
        if sent { Ok(()) } else { Err(self.why_ended().await) }
    }

    /// Why nobody takes what is written any more.
    async fn why_ended(&mut self) -> Trouble {
        match self.end().await {
            Ok(_) => Trouble::Closed,
            Err(trouble) => trouble,
        }
    }

    /// Waits until the upload has ended.
    async fn end(&mut self) -> Result<PutOutcome, Trouble> {
        if let Outcome::Running(outcome) = &mut self.outcome {
            self.outcome = match outcome.await {
                Ok(Ok(outcome)) => Outcome::Stored(outcome),
                Ok(Err(error)) => Outcome::Failed(Trouble::Engine(Arc::new(error))),
                Err(_) => Outcome::Failed(Trouble::Stopped),
            };
        }
        match &self.outcome {
            Outcome::Failed(trouble) => Err(trouble.clone()),
            Outcome::Stored(outcome) => Ok(outcome.clone()),
            Outcome::Running(_) => Err(Trouble::Stopped),
        }
    }
}

/// The calls that wait for the one before them, in the order in which they were made: tasks begin in any.
#[derive(Default)]
struct Queue {
    /// The end of the last call's turn.
    last: BlockingMutex<Option<oneshot::Receiver<()>>>,
    waiting: AtomicUsize,
}

/// A call's place in the queue, until it is dropped.
struct Ticket {
    queue: Arc<Queue>,
    before: Option<oneshot::Receiver<()>>,
    /// Nothing is ever sent there: its end is the end of the turn.
    _done: oneshot::Sender<()>,
}

impl Ticket {
    fn draw(queue: &Arc<Queue>) -> Ticket {
        let (done, ended) = oneshot::channel();
        queue.waiting.fetch_add(1, Ordering::Relaxed);
        let before = queue.last.lock().unwrap_or_else(PoisonError::into_inner).replace(ended);
        Ticket { queue: Arc::clone(queue), before, _done: done }
    }

    async fn turn(&mut self) {
        if let Some(before) = self.before.take() {
            let _ = before.await;
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.queue.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The near end of an upload: cheap to clone, and what calls that are under way hold.
#[derive(Clone)]
pub(crate) struct Feed {
    state: Arc<tokio::sync::Mutex<State>>,
    queue: Arc<Queue>,
    whole: Arc<AtomicBool>,
    aborting: CancellationToken,
    task: AbortHandle,
}

impl Feed {
    fn explain(&self, trouble: Trouble) -> Trouble {
        match trouble {
            Trouble::Engine(error) if error.upload_id().is_none() && self.aborting.is_cancelled() => Trouble::Aborted,
            Trouble::Stopped if self.aborting.is_cancelled() => Trouble::Aborted,
            other => other,
        }
    }

    async fn write(&self, piece: Shared) -> Result<(), Trouble> {
        let mut state = self.state.lock().await;
        if self.aborting.is_cancelled() {
            return Err(self.explain(state.why_ended().await));
        }
        let written = state.write(piece).await;
        if written.is_ok() && self.aborting.is_cancelled() {
            // The memory came back since nobody wants it any more.
            return Err(self.explain(state.why_ended().await));
        }
        written.map_err(|trouble| self.explain(trouble))
    }

    /// There will be no more: waits until the object is stored. It comes after all that was written before
    /// this is called, whenever it is awaited.
    pub(crate) fn finish(&self) -> impl Future<Output = Result<PutOutcome, Trouble>> + Send + 'static {
        let feed = self.clone();
        let mut ticket = Ticket::draw(&self.queue);
        let unless_done = Interrupted { feed: Some(self.clone()) };
        async move {
            ticket.turn().await;
            let mut state = feed.state.lock().await;
            let sent = state.send_gathered().await;
            if sent.is_ok() && !feed.aborting.is_cancelled() {
                feed.whole.store(true, Ordering::Release);
            }
            state.sender = None;
            let ended = state.end().await;
            unless_done.disarm();
            sent.and(ended).map_err(|trouble| feed.explain(trouble))
        }
    }

    /// Ends it without an object; waits until the server has no parts of it any more.
    pub(crate) async fn abort(&self) -> Result<(), Trouble> {
        self.aborting.cancel();
        let mut state = self.state.lock().await;
        state.gathered = Vec::new();
        state.sender = None;
        match state.end().await {
            // Parts are left that the server would not remove.
            Err(Trouble::Engine(error)) if error.upload_id().is_some() => Err(Trouble::Engine(error)),
            _ => Ok(()),
        }
    }

    /// Dropped, it ends the upload without an object, and without waiting.
    pub(crate) fn unless_done(&self) -> DropGuard {
        self.aborting.clone().drop_guard()
    }
}

/// Ends the upload when whoever waits for its end is stopped: the engine asks for no more bytes then, so
/// that it would go on.
struct Interrupted {
    feed: Option<Feed>,
}

impl Interrupted {
    fn disarm(mut self) {
        self.feed = None;
    }
}

impl Drop for Interrupted {
    fn drop(&mut self) {
        if let Some(feed) = &self.feed {
            feed.aborting.cancel();
            feed.task.abort();
        }
    }
}

/// An upload under way; dropped before it has ended, it is stopped and aborted.
pub(crate) struct Upload {
    pub(crate) feed: Feed,
    pub(crate) live: Arc<Live>,
}

impl Upload {
    /// Begins to wait for bytes: nothing is sent before there are some, or the end.
    pub(crate) fn begin(live: &Arc<Live>, put: Put) -> PyResult<Upload> {
        let threads = runtime::threads()?;
        let (sender, receiver) = mpsc::channel(AHEAD);
        let (tell, outcome) = oneshot::channel();
        let aborting = CancellationToken::new();
        let put = put.stop_when(aborting.clone().cancelled_owned());
        let whole = Arc::new(AtomicBool::new(false));
        let chunks = Chunks { receiver, whole: Arc::clone(&whole) };
        let task = threads.spawn(live.stopping(threads), async move {
            // Where nobody waits any more, nobody misses it.
            let _ = tell.send(put.stream(chunks).await);
        });
        let outcome = Outcome::Running(outcome);
        let state = State { gathered: Vec::with_capacity(CHUNK), sender: Some(sender), outcome };
        let state = Arc::new(tokio::sync::Mutex::new(state));
        let feed = Feed { state, queue: Arc::default(), whole, aborting, task };
        Ok(Upload { feed, live: Arc::clone(live) })
    }

    /// Takes a piece without waiting, if it is small, there is room, and none waits that was written before.
    pub(crate) fn take_at_once(&self, piece: &Shared) -> bool {
        piece.as_ref().len() < CHUNK
            && !self.feed.aborting.is_cancelled()
            && self.feed.queue.waiting.load(Ordering::Relaxed) == 0
            && self.feed.state.try_lock().is_ok_and(|mut state| state.take_at_once(piece.as_ref()))
    }

    /// Takes a piece, and waits while too much is unsent.
    pub(crate) fn take(&self, py: Python<'_>, piece: Shared, awaitable: bool) -> PyResult<Py<PyAny>> {
        let length = piece.as_ref().len();
        let feed = self.feed.clone();
        // Both from now on: stopped before its task has begun, the piece would be missing in the object.
        let mut ticket = Ticket::draw(&feed.queue);
        let stopped = feed.unless_done();
        let future = async move {
            ticket.turn().await;
            let written = feed.write(piece).await;
            stopped.disarm();
            Ok(written)
        };
        let finish = move |py: Python<'_>, written: Result<(), Trouble>| {
            written.map_err(|trouble| trouble.raise(py))?;
            Ok(length.into_pyobject(py)?.into_any().unbind())
        };
        Call { future, finish, watch: None }.run(py, &self.live, awaitable)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // Of one that has ended this does nothing.
        self.feed.task.abort();
    }
}

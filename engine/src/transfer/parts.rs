//! A download handed over piece by piece as it lands, in whatever order that is.
//!
//! What [`ObjectStream`](super::stream) is for a reader that needs the bytes in order, this is for one that does
//! not care, which then costs nothing: no byte waits for another. A worker a request receives into pooled
//! memory that is taken only once there is something to put there, and hands each piece on when it is full. So
//! with a consumer that drops them, the same few pieces of memory serve the whole object, from the cache.
//!
//! What was asked for and has not been taken counts against the window and, as undelivered memory, against the
//! budget. A part is asked for only where all of it has room, so a consumer that stands still stops the
//! requests and no request is left half received. Where nothing is outstanding one part needs nobody's leave.
//! Only an answer that brings more than was asked for, from a server that knows nothing of ranges, must wait
//! in the middle; it gives up its place in flight meanwhile.

use std::collections::VecDeque;
use std::iter::Peekable;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tracing::Instrument;

use super::Engine;
use super::get::{Opened, rest_of};
use super::head::ObjectInfo;
use super::options::Sending;
use super::part::{Begun, Sink, Source};
use super::request::Exchange;
use super::stream::conclude;
use super::workers::lost;
use crate::buffer::{Buffer, FreezeError, Slot};
use crate::error::Result;
use crate::pace::MemoryPermit;
use crate::plan::{DownloadParts, download_parts};

/// Some bytes of an object.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Part {
    /// Where in the object they begin.
    pub offset: u64,
    /// The bytes.
    pub body: Buffer,
}

/// The bytes of an object as they land, each once, in no order; made by [`Get::parts`](crate::Get::parts). After an
/// error it ends. Dropped, it stops what is in flight.
pub struct ObjectParts {
    source: Arc<Source>,
    info: ObjectInfo,
    length: u64,
    shore: Arc<Shore>,
    workers: JoinSet<Result<()>>,
    /// Asks for the object's checksum, where the first answer did not tell it.
    asking: JoinSet<()>,
    /// Compares it, when every byte has been taken.
    ending: Option<Sending<ObjectInfo>>,
    ended: bool,
}

impl ObjectParts {
    pub(super) fn new(opened: Opened, limit: u64, part: u64) -> ObjectParts {
        let length = opened.length();
        let Opened { source, info, wanted, first } = opened;
        let source = Arc::new(source);
        let rest = first.as_ref().map_or(0..0, |(range, _)| rest_of(&wanted, range));
        let rest = download_parts(rest, part).peekable();
        let state =
            State { rest, landed: VecDeque::new(), held: 0, lent: VecDeque::new(), waker: None, waiting: false };
        let shore =
            Shore { engine: Arc::clone(&source.engine), state: Mutex::new(state), room: Notify::new(), limit, part };
        let shore = Arc::new(shore);
        let mut workers = JoinSet::new();
        if let Some((range, begun)) = first {
            shore.state().ask(&shore, (range.end - range.start).min(part));
            workers.spawn(work(Arc::clone(&source), Arc::clone(&shore), range, Some(begun)).in_current_span());
        }
        let mut asking = JoinSet::new();
        if source.check.is_open() {
            let source = Arc::clone(&source);
            asking.spawn(async move { source.ask_for_checksum().await }.in_current_span());
        }
        let mut parts = ObjectParts { source, info, length, shore, workers, asking, ending: None, ended: false };
        parts.ask_ahead();
        parts
    }

    /// What the server says of the object. Its checksum, and whether the bytes agreed with it, stand there when
    /// the parts have ended.
    pub fn info(&self) -> &ObjectInfo {
        &self.info
    }

    /// How many bytes are to come in all.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The next bytes that have landed; `None` after the last.
    pub async fn next(&mut self) -> Option<Result<Part>> {
        std::future::poll_fn(|cx| self.poll_part(cx)).await
    }

    /// The same without waiting: `None` also where nothing has landed that was not taken.
    pub fn try_next(&mut self) -> Option<Part> {
        let part = self.shore.take().filter(|_| !self.ended)?;
        self.ask_ahead();
        Some(part)
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Part>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        loop {
            let taken = self.shore.take_or_wait(cx);
            if taken.is_some() {
                self.ask_ahead();
                return Poll::Ready(taken.map(Ok));
            }
            let failed = match ready!(self.workers.poll_join_next(cx)) {
                Some(Ok(Ok(()))) => {
                    self.ask_ahead();
                    continue;
                }
                Some(Ok(Err(error))) => error,
                Some(Err(error)) => lost(error),
                // What the last of them landed came after the look above.
                None if self.shore.has_landed() => continue,
                None => return self.poll_end(cx),
            };
            self.ended = true;
            (self.workers, self.asking) = (JoinSet::new(), JoinSet::new());
            self.shore.state().landed.clear();
            return Poll::Ready(Some(Err(failed)));
        }
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Part>>> {
        let ending = match &mut self.ending {
            Some(ending) => ending,
            None => {
                let asking = std::mem::take(&mut self.asking);
                self.ending.insert(conclude(Arc::clone(&self.source), self.info.clone(), asking))
            }
        };
        let ended = ready!(ending.as_mut().poll(cx));
        self.ended = true;
        Poll::Ready(match ended {
            Ok(info) => {
                self.info = info;
                None
            }
            Err(error) => Some(Err(error)),
        })
    }

    /// Asks for parts while there is room for them.
    fn ask_ahead(&mut self) {
        let most = self.source.engine.pace.workers(usize::MAX);
        while self.workers.len() < most
            && let Some(range) = self.shore.next_part()
        {
            let worker = work(Arc::clone(&self.source), Arc::clone(&self.shore), range, None);
            self.workers.spawn(worker.in_current_span());
        }
    }
}

impl std::fmt::Debug for ObjectParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectParts").field("info", &self.info).field("length", &self.length).finish_non_exhaustive()
    }
}

/// One worker: part after part, on one connection, while there is room for another.
async fn work(source: Arc<Source>, shore: Arc<Shore>, range: Range<u64>, mut begun: Option<Begun>) -> Result<()> {
    let mut kept = None;
    let mut next = Some(range);
    while let Some(range) = next {
        let asked = (range.end - range.start).min(shore.part);
        let landing = Landing { shore: Arc::clone(&shore), allowed: asked };
        source.fetch(range, Sink::Pieces(landing), begun.take(), &mut kept).await?;
        next = shore.next_part();
    }
    source.engine.put_back(&source.subject, kept);
    Ok(())
}

/// Where one part lands.
pub(crate) struct Landing {
    shore: Arc<Shore>,
    /// Bytes that still have room.
    allowed: u64,
}

impl Landing {
    /// How many of the `left` bytes have room; at least one, if that must be waited for.
    pub(super) async fn room(&mut self, exchange: &mut Exchange, left: u64) -> u64 {
        if self.allowed == 0 {
            let more = left.min(self.shore.part);
            while !self.shore.state().ask_or_wait(&self.shore, more) {
                exchange.pause();
                self.shore.room.notified().await;
            }
            exchange.resume(&self.shore.engine).await;
            self.allowed = more;
        }
        self.allowed.min(left)
    }

    /// Hands on what the slot has filled.
    pub(super) fn land(&mut self, offset: u64, piece: Slot) -> Result<(), FreezeError> {
        let body = piece.freeze()?;
        if body.is_empty() {
            return Ok(());
        }
        self.allowed = self.allowed.saturating_sub(body.len() as u64);
        let mut state = self.shore.state();
        state.landed.push_back(Part { offset, body });
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }
}

/// What the workers and the consumer share.
struct Shore {
    engine: Arc<Engine>,
    state: Mutex<State>,
    /// There may be room for an answer that waits in its middle.
    room: Notify,
    /// Bytes that the window may hold.
    limit: u64,
    part: u64,
}

struct State {
    rest: Peekable<DownloadParts>,
    landed: VecDeque<Part>,
    /// Bytes that were asked for and have not been taken.
    held: u64,
    /// The budget for them, the oldest first, as far as it was had: how many bytes each is for.
    lent: VecDeque<(u64, MemoryPermit)>,
    /// The consumer, where it waits.
    waker: Option<Waker>,
    /// An answer waits for room.
    waiting: bool,
}

impl Shore {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next part, if there is one and room for it.
    fn next_part(&self) -> Option<Range<u64>> {
        let mut state = self.state();
        let range = state.rest.peek()?;
        let length = range.end - range.start;
        if state.ask(self, length) { state.rest.next() } else { None }
    }

    fn has_landed(&self) -> bool {
        !self.state().landed.is_empty()
    }

    fn take(&self) -> Option<Part> {
        self.state().take(&self.room)
    }

    fn take_or_wait(&self, cx: &Context<'_>) -> Option<Part> {
        let mut state = self.state();
        let taken = state.take(&self.room);
        if taken.is_none() {
            match &mut state.waker {
                Some(waker) => waker.clone_from(cx.waker()),
                None => state.waker = Some(cx.waker().clone()),
            }
        }
        taken
    }
}

impl State {
    /// Counts `length` bytes as asked for, if the window and the budget have room for them.
    fn ask(&mut self, shore: &Shore, length: u64) -> bool {
        let is_all = self.held == 0;
        if !is_all && self.held.saturating_add(length) > shore.limit {
            return false;
        }
        let permit = shore.engine.pace.admission.undelivered_at_once(length);
        if !is_all && permit.is_none() {
            return false;
        }
        self.lent.extend(permit.map(|permit| (length, permit)));
        self.held += length;
        true
    }

    fn ask_or_wait(&mut self, shore: &Shore, length: u64) -> bool {
        let asked = self.ask(shore, length);
        self.waiting = !asked;
        asked
    }

    fn take(&mut self, room: &Notify) -> Option<Part> {
        let part = self.landed.pop_front()?;
        let mut length = part.body.len() as u64;
        self.held = self.held.saturating_sub(length);
        // Its room in the budget is free again: the bytes are the caller's now.
        while length > 0
            && let Some((left, permit)) = self.lent.front_mut()
        {
            if *left > length {
                *left -= length;
                permit.shrink(*left);
                break;
            }
            length -= *left;
            self.lent.pop_front();
        }
        if self.waiting {
            room.notify_one();
        }
        Some(part)
    }
}

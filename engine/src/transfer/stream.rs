//! A download as a stream of buffers, in order, through a bounded window.
//!
//! What is fetched ahead of the reader is the caller's to take, so it comes from the budget's share
//! of undelivered memory, and only where that is free: who reads two streams in turn is never locked
//! by one of them. The part whose turn it is needs nobody's leave, so every stream moves on with one
//! part, whatever else the client does.
//!
//! The whole object is compared with its checksum at the end: what has been handed on cannot be taken
//! back, so the end is where a difference is said.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::task::JoinSet;
use tracing::Instrument;

use super::Engine;
use super::checksum::PATIENCE;
use super::get::{Opened, rest_of};
use super::head::ObjectInfo;
use super::options::Sending;
use super::ordered::Window;
use super::part::Source;
use crate::buffer::Buffer;
use crate::error::Result;
use crate::plan::{DownloadParts, download_parts};

/// The least that a window may hold, and the least part of a download through one.
const LEAST_WINDOW: u64 = 128 << 10;

/// The bytes of an object in order; made by [`Get::stream`](crate::Get::stream). A [`Stream`], or
/// call [`ObjectStream::next`]. After an error it ends. Dropped, it stops what is in flight.
pub struct ObjectStream {
    source: Arc<Source>,
    info: ObjectInfo,
    length: u64,
    window: Window,
    /// The last byte of a suffix, which came first.
    tail: Window,
    rest: std::iter::Peekable<DownloadParts>,
    /// Bytes that may be in the window, and those that are.
    limit: u64,
    held: u64,
    /// Asks for the object's checksum, where the first answer did not tell it.
    asking: JoinSet<()>,
    /// Compares it, when every byte has been taken.
    ending: Option<Sending<ObjectInfo>>,
    ended: bool,
}

impl ObjectStream {
    /// How many bytes a window holds, and the length of the parts that go through it.
    pub(super) fn window(engine: &Engine, asked: Option<u64>) -> (u64, u64) {
        let part = engine.pace.part_size();
        match asked {
            Some(bytes) => {
                let bytes = bytes.max(LEAST_WINDOW);
                (bytes, part.min(bytes / 2))
            }
            None => {
                let most = part.saturating_mul(engine.pace.workers(usize::MAX) as u64);
                (most.min(engine.config.memory / 4).max(part), part)
            }
        }
    }

    pub(super) fn new(opened: Opened, limit: u64, part: u64) -> ObjectStream {
        let length = opened.length();
        let Opened { source, info, wanted, first } = opened;
        let source = Arc::new(source);
        let (mut window, mut tail) = (Window::default(), Window::default());
        let (mut rest, mut held) = (0..0, 0);
        if let Some((range, begun)) = first {
            rest = rest_of(&wanted, &range);
            let length = (range.end - range.start).min(part);
            let permit = source.engine.pace.admission.undelivered_at_once(length);
            let into = if range.start > wanted.start { &mut tail } else { &mut window };
            into.open(&source, range, begun, part, permit);
            held = length;
        }
        let mut asking = JoinSet::new();
        if source.check.is_open() {
            let source = Arc::clone(&source);
            asking.spawn(async move { source.ask_for_checksum().await }.in_current_span());
        }
        let rest = download_parts(rest, part).peekable();
        let (ending, ended) = (None, false);
        ObjectStream { source, info, length, window, tail, rest, limit, held, asking, ending, ended }
    }

    /// What the server says of the object. Its checksum, and whether the bytes agreed with it, stand
    /// there when the stream has ended.
    pub fn info(&self) -> &ObjectInfo {
        &self.info
    }

    /// How many bytes the whole stream has.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The next bytes; `None` after the last.
    pub async fn next(&mut self) -> Option<Result<Buffer>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Asks for parts while there is room for them.
    fn fetch_ahead(&mut self) {
        let pace = &self.source.engine.pace;
        let most = pace.workers(usize::MAX);
        while let Some(range) = self.rest.peek() {
            let length = range.end - range.start;
            let is_turn = self.window.is_empty();
            let has_room = self.window.in_flight() < most && self.held.saturating_add(length) <= self.limit;
            if !is_turn && !has_room {
                return;
            }
            let permit = pace.admission.undelivered_at_once(length);
            if !is_turn && permit.is_none() {
                return;
            }
            let Some(range) = self.rest.next() else { return };
            self.held += length;
            self.window.fetch(&self.source, range, None, permit);
        }
    }
}

/// Compares the whole with the object's checksum, which may be on its way.
pub(super) fn conclude(source: Arc<Source>, mut info: ObjectInfo, mut asking: JoinSet<()>) -> Sending<ObjectInfo> {
    Box::pin(async move {
        // Too late is as good as no answer.
        let _ = tokio::time::timeout(PATIENCE, asking.join_next()).await;
        source.conclude(&mut info)?;
        if let Some(progress) = &source.progress {
            progress.add_object();
        }
        Ok(info)
    })
}

impl Stream for ObjectStream {
    type Item = Result<Buffer>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.ended {
            return Poll::Ready(None);
        }
        this.fetch_ahead();
        let turn = if this.window.is_empty() { &mut this.tail } else { &mut this.window };
        if turn.is_empty() {
            let ending = match &mut this.ending {
                Some(ending) => ending,
                None => {
                    let asking = std::mem::take(&mut this.asking);
                    this.ending.insert(conclude(Arc::clone(&this.source), this.info.clone(), asking))
                }
            };
            let ended = ready!(ending.as_mut().poll(cx));
            this.ended = true;
            return Poll::Ready(match ended {
                Ok(info) => {
                    this.info = info;
                    None
                }
                Err(error) => Some(Err(error)),
            });
        }
        match ready!(turn.poll_next(cx)) {
            Ok(fetched) => {
                this.held = this.held.saturating_sub(fetched.body.len() as u64);
                let body = fetched.body.clone();
                // Its room in the budget is free again: the bytes are the caller's now.
                drop(fetched);
                this.fetch_ahead();
                Poll::Ready(Some(Ok(body)))
            }
            Err(error) => {
                this.ended = true;
                (this.window, this.tail) = (Window::default(), Window::default());
                this.asking = JoinSet::new();
                Poll::Ready(Some(Err(error)))
            }
        }
    }
}

impl std::fmt::Debug for ObjectStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectStream").field("info", &self.info).field("length", &self.length).finish_non_exhaustive()
    }
}

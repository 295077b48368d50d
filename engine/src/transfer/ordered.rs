//! A download in order: parts are fetched ahead of the reader, within the budget, and handed on one
//! after another.
//!
//! The writer may stand still, or wait for something else that this client does: so what is fetched ahead
//! of it is undelivered memory, only where that is free, and the part whose turn it is needs nobody's leave.
//!
//! A server that knows nothing of ranges sends all of the object in the first answer. That is taken a part
//! at a time, the next when the one before it is handed on; what is not taken yet waits in the network.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::task::JoinSet;
use tracing::Instrument;

use super::get::{Opened, incomplete, rest_of};
use super::head::ObjectInfo;
use super::part::{Begun, Sink, Source, reserve};
use super::workers::lost;
use crate::buffer::Buffer;
use crate::error::{Error, ErrorKind, Result};
use crate::pace::MemoryPermit;
use crate::plan::download_parts;

/// A part that has arrived.
pub(super) struct Fetched {
    index: usize,
    pub(super) body: Buffer,
    _permit: Option<MemoryPermit>,
    /// What follows it in the same answer.
    rest: Option<Answer>,
}

/// What one answer brings: more than a part, where the server sent all there is.
struct Answer {
    source: Arc<Source>,
    range: Range<u64>,
    /// The answer itself, before its first part; from then on the source keeps it.
    begun: Option<Begun>,
    part: u64,
}

/// Writes the whole download to `writer`, in order, and flushes it.
pub(crate) async fn write(opened: Opened, mut writer: impl AsyncWrite + Unpin + Send) -> Result<ObjectInfo> {
    let Opened { source, mut info, wanted, first } = opened;
    let source = Arc::new(source);
    let explain = |error| source.subject.explain(error);
    if let Some(first) = first {
        let delivering = deliver_all(&source, wanted, first, &mut writer);
        source.fetch_and_ask(delivering).await?;
        // What has been written cannot be taken back: the end is where it is said.
        source.conclude(&mut info)?;
    }
    writer.flush().await.map_err(|error| explain(cannot_write(error)))?;
    if let Some(progress) = &source.progress {
        progress.add_object();
    }
    Ok(info)
}

async fn deliver_all(
    source: &Arc<Source>,
    wanted: Range<u64>,
    (first_range, begun): (Range<u64>, Begun),
    writer: &mut (impl AsyncWrite + Unpin),
) -> Result<()> {
    let pace = &source.engine.pace;
    let part = pace.part_size();
    let mut rest = download_parts(rest_of(&wanted, &first_range), part).peekable();
    let ahead = pace.workers(rest.len().saturating_add(1));
    let (mut window, mut tail) = (Window::default(), Window::default());
    // Of a suffix, the answer to the first request brought the last byte.
    let into = if first_range.start > wanted.start { &mut tail } else { &mut window };
    into.open(source, first_range, begun, part, None);
    loop {
        while window.in_flight() < ahead
            && let Some(range) = rest.peek()
        {
            let permit = pace.admission.undelivered_at_once(range.end - range.start);
            if permit.is_none() && !window.is_empty() {
                break;
            }
            let Some(range) = rest.next() else { break };
            window.fetch(source, range, None, permit);
        }
        if window.is_empty() {
            break;
        }
        let arrived = window.next().await;
        deliver(source, writer, arrived).await?;
    }
    if tail.is_empty() {
        return Ok(());
    }
    let arrived = tail.next().await;
    deliver(source, writer, arrived).await
}

async fn deliver(source: &Source, writer: &mut (impl AsyncWrite + Unpin), arrived: Result<Fetched>) -> Result<()> {
    let arrived = arrived?;
    let written = writer.write_all(&arrived.body).await;
    written.map_err(|error| source.subject.explain(cannot_write(error)))
}

fn cannot_write(error: io::Error) -> Error {
    Error::io("the output cannot be written", error)
}

/// Parts in flight, and parts that arrived before their turn.
#[derive(Default)]
pub(super) struct Window {
    tasks: JoinSet<Result<Fetched>>,
    early: VecDeque<Option<Fetched>>,
    /// The index of the part whose turn it is.
    turn: usize,
}

impl Window {
    /// Parts asked for and not yet handed on.
    pub(super) fn in_flight(&self) -> usize {
        self.early.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.early.is_empty()
    }

    pub(super) fn fetch(
        &mut self,
        source: &Arc<Source>,
        range: Range<u64>,
        begun: Option<Begun>,
        permit: Option<MemoryPermit>,
    ) {
        let index = self.turn + self.early.len();
        self.early.push_back(None);
        let source = Arc::clone(source);
        let fetching = async move {
            let explain = |error| source.subject.explain(error);
            let mut target = reserve(&source.engine, range.end - range.start).map_err(explain)?;
            let slot = target.whole();
            let mut kept = None;
            source.fetch(range, Sink::Memory(slot), begun, &mut kept).await?;
            source.engine.put_back(&source.subject, kept);
            let body = target.freeze().map_err(|error| explain(incomplete(&error)))?;
            Ok(Fetched { index, body, _permit: permit, rest: None })
        };
        self.tasks.spawn(fetching.in_current_span());
    }

    /// Takes the first answer, of parts of at most `part` bytes.
    pub(super) fn open(
        &mut self,
        source: &Arc<Source>,
        range: Range<u64>,
        begun: Begun,
        part: u64,
        permit: Option<MemoryPermit>,
    ) {
        if range.end - range.start <= part {
            self.fetch(source, range, Some(begun), permit);
        } else {
            let answer = Answer { source: Arc::clone(source), range, begun: Some(begun), part };
            self.follow(answer, permit);
        }
    }

    /// Takes the next part of an answer.
    fn follow(&mut self, answer: Answer, permit: Option<MemoryPermit>) {
        let index = self.turn + self.early.len();
        self.early.push_back(None);
        let fetching = async move {
            let Answer { source, range, begun, part } = answer;
            let explain = |error| source.subject.explain(error);
            let end = range.end.min(range.start.saturating_add(part));
            let mut target = reserve(&source.engine, end - range.start).map_err(explain)?;
            let mut kept = None;
            source.fetch(range.start..end, Sink::Memory(target.whole()), begun, &mut kept).await?;
            source.engine.put_back(&source.subject, kept);
            let body = target.freeze().map_err(|error| explain(incomplete(&error)))?;
            let rest = (end < range.end).then_some(Answer { source, range: end..range.end, begun: None, part });
            Ok(Fetched { index, body, _permit: permit, rest })
        };
        self.tasks.spawn(fetching.in_current_span());
    }

    /// The part whose turn it is. Cancel-safe: what has arrived stays in the window.
    async fn next(&mut self) -> Result<Fetched> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Fetched>> {
        loop {
            if let Some(front) = self.early.front_mut()
                && let Some(mut fetched) = front.take()
            {
                self.early.pop_front();
                self.turn += 1;
                if let Some(rest) = fetched.rest.take() {
                    self.follow(rest, None);
                }
                return Poll::Ready(Ok(fetched));
            }
            match ready!(self.tasks.poll_join_next(cx)) {
                Some(Ok(Ok(fetched))) => {
                    let place = fetched.index - self.turn;
                    if let Some(slot) = self.early.get_mut(place) {
                        *slot = Some(fetched);
                    }
                }
                Some(Ok(Err(error))) => return Poll::Ready(Err(error)),
                Some(Err(error)) => return Poll::Ready(Err(lost(error))),
                None => {
                    return Poll::Ready(Err(Error::new(ErrorKind::Cancelled, "no part is being fetched")));
                }
            }
        }
    }
}

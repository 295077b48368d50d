//! One part of a download: a range of the object, and where its bytes go.
//!
//! A part is asked for until all of it is there. What has arrived stays: after a broken body the
//! next request begins at the first byte that is missing, into the same sink.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::Engine;
use super::checksum::{Check, PartSums};
use super::file::FileWriter;
use super::get::incomplete;
use super::parts::Landing;
use super::refusal::Failure;
use super::request::{Attempts, Call, Exchange, Subject, short_body};
use super::version::{Accepted, Version, accept_range, changed};
use crate::buffer::Slot;
use crate::error::{Error, ErrorKind, Result};
use crate::metrics::{Counters, Progress};
use crate::net::{BodyLeft, Connection};
use crate::pace::MemoryPermit;
use crate::wire::request::Method;

/// The memory that a part bound for a file, or for nowhere, passes through: small enough to stay in
/// the processor's cache between the socket and the file, large enough for few calls.
const STAGE: u64 = 1 << 20;

/// Where a part's bytes go.
pub(crate) enum Sink {
    /// Their final place in memory.
    Memory(Slot),
    /// A file, at this offset.
    File(FileWriter, u64),
    /// Nowhere.
    Discard,
    /// Whoever takes them, piece by piece, as they come.
    Pieces(Landing),
}

/// The answer to a part's first request, when it was made before the part was planned.
pub(crate) struct Begun {
    pub(crate) exchange: Exchange,
    /// The bytes of the object that it brings: those of the part, or more on both sides.
    pub(crate) body: Range<u64>,
    pub(crate) attempts: Attempts,
}

/// An answer whose body has not been received, and the bytes of the object that are still to come in it.
struct Answer {
    exchange: Exchange,
    body: Range<u64>,
}

/// What the parts of one download share.
pub(crate) struct Source {
    pub(crate) engine: Arc<Engine>,
    pub(crate) subject: Subject,
    pub(crate) version: Version,
    pub(crate) progress: Option<Progress>,
    pub(crate) check: Check,
    /// The rest of whole objects that came where a part was asked for: a later part goes on with it.
    left_over: Mutex<Vec<Answer>>,
}

impl Source {
    pub(crate) fn new(
        engine: &Arc<Engine>,
        subject: Subject,
        version: Version,
        progress: Option<Progress>,
        check: Check,
    ) -> Source {
        Source { engine: Arc::clone(engine), subject, version, progress, check, left_over: Mutex::default() }
    }

    /// Fills `sink` with `range` of the object.
    pub(crate) async fn fetch(
        &self,
        range: Range<u64>,
        mut sink: Sink,
        begun: Option<Begun>,
        kept: &mut Option<Connection>,
    ) -> Result<()> {
        let mut next = range.start;
        let mut sums = self.check.begin();
        let (mut attempts, mut answer) = match begun {
            Some(Begun { exchange, body, attempts }) => (attempts, Some(Answer { exchange, body })),
            None => (Attempts::new(), None),
        };
        let _stage_permit = match sink {
            Sink::Memory(_) | Sink::Pieces(_) => None,
            Sink::File(..) | Sink::Discard => {
                Some(self.stage_permit(answer.as_mut().map(|answer| &mut answer.exchange)).await)
            }
        };
        loop {
            let before = next;
            let attempt = async {
                let mut answer = match answer.take() {
                    Some(answer) => answer,
                    None => {
                        attempts.begin();
                        match self.take_left_over(next) {
                            Some(mut answer) => {
                                Box::pin(answer.exchange.resume(&self.engine)).await;
                                answer
                            }
                            None => self.ask(&(next..range.end), &attempts, kept).await?,
                        }
                    }
                };
                if answer.body.start < next {
                    Box::pin(self.skip(&mut answer, next)).await?;
                }
                self.receive(answer, &mut next, range.end, &mut sink, &mut sums, kept).await
            };
            match attempt.await {
                Ok(()) => {
                    attempts.succeeded(&self.engine);
                    self.check.add(range.start, sums);
                    return Ok(());
                }
                Err(failure) => {
                    if next > before {
                        attempts.moved_on();
                    }
                    attempts.after(&self.engine, failure).await.map_err(|failure| {
                        let last = range.end.saturating_sub(1);
                        self.subject.explain(failure.error.with_part(|| format!("bytes {}-{last}", range.start)))
                    })?;
                }
            }
        }
    }

    /// Asks for what is missing, pinned to the version.
    async fn ask(
        &self,
        missing: &Range<u64>,
        attempts: &Attempts,
        kept: &mut Option<Connection>,
    ) -> Result<Answer, Failure> {
        let mut range_text = RangeText::default();
        let range = ("range", range_text.write(missing));
        let pinned = self.version.if_match().map(|etag| [range, ("if-match", etag)]);
        let query = self.version.version_to_ask_for().map(|id| [("versionId", id)]);
        let call = Call {
            query: query.as_ref().map_or(&[], |query| &query[..]),
            headers: pinned.as_ref().map_or(std::slice::from_ref(&range), |pinned| &pinned[..]),
            into_slot: true,
            ..Call::new(Method::Get)
        };
        let asked = self
            .engine
            .exchange(&self.subject, &call, attempts, kept, |head| {
                let Accepted { range, .. } = accept_range(head, missing, Some(self.version.size), Some(&self.version))?;
                if range.start > missing.start || range.end < missing.end {
                    return Err(short_range(missing, &range));
                }
                Ok(range)
            })
            .await;
        match asked {
            Ok((exchange, body)) => {
                if body != *missing {
                    self.engine.oddities.ignores_ranges(&self.subject.bucket);
                }
                Ok(Answer { exchange, body })
            }
            Err(failure) if failure.error.status() == Some(412) => Err(changed("its ETag")),
            // It ended beyond there when its size was told.
            Err(failure) if failure.error.status() == Some(416) => Err(changed("its size")),
            Err(failure) => Err(failure),
        }
    }

    /// Takes an answer to an earlier part that brings this byte too, the one that is nearest to it.
    fn take_left_over(&self, next: u64) -> Option<Answer> {
        let mut answers = self.left_over.lock().unwrap_or_else(PoisonError::into_inner);
        let usable = answers.iter().enumerate().filter(|(_, answer)| answer.body.start <= next);
        let (index, _) = usable.max_by_key(|(_, answer)| answer.body.start)?;
        Some(answers.swap_remove(index))
    }

    /// Receives and drops what comes before `start`, from a server that ignores ranges or one that was asked for
    /// an earlier part.
    async fn skip(&self, answer: &mut Answer, start: u64) -> Result<(), Failure> {
        // Not waited for: the part may hold a permit already, and so may all others.
        let _stage_permit = self.engine.pace.admission.memory_at_once(STAGE);
        while answer.body.start < start {
            let stage = self.stage(&mut answer.exchange, start - answer.body.start).await?;
            let moved = stage.filled().len() as u64;
            if moved == 0 {
                return Err(short_body(answer.exchange.connection.body_left()));
            }
            answer.body.start += moved;
            Counters::add(&self.engine.counters.bytes_received, moved);
        }
        Ok(())
    }

    /// Receives the body into the sink; `next` keeps count of what is there.
    async fn receive(
        &self,
        Answer { mut exchange, body }: Answer,
        next: &mut u64,
        end: u64,
        sink: &mut Sink,
        sums: &mut PartSums,
        kept: &mut Option<Connection>,
    ) -> Result<(), Failure> {
        let begin = *next;
        let mut broken = None;
        while *next < end {
            let moved = match sink {
                Sink::Memory(slot) => {
                    let before = slot.filled().len();
                    let moved = exchange.connection.receive_body(slot, end - *next).await?;
                    sums.update(&slot.filled()[before..], &self.check);
                    moved
                }
                Sink::File(file, origin) => {
                    let offset = *next - *origin;
                    let stage = self.stage(&mut exchange, end - *next).await?;
                    let moved = stage.filled().len() as u64;
                    sums.update(stage.filled(), &self.check);
                    file.write_at(stage, offset).await.map_err(Failure::never)?;
                    moved
                }
                Sink::Discard => {
                    let stage = self.stage(&mut exchange, end - *next).await?;
                    sums.update(stage.filled(), &self.check);
                    stage.filled().len() as u64
                }
                Sink::Pieces(landing) => {
                    let length = landing.room(&mut exchange, end - *next).await.min(STAGE);
                    exchange.connection.body_ready().await?;
                    let mut piece = reserve(&self.engine, length).map_err(Failure::never)?.whole();
                    broken = self.receive_most(&mut exchange, &mut piece, sums).await.err();
                    let moved = piece.filled().len() as u64;
                    landing.land(*next, piece).await.map_err(|error| Failure::never(incomplete(&error)))?;
                    moved
                }
            };
            if let Some(broken) = broken.take_if(|_| moved == 0) {
                return Err(broken);
            }
            if moved == 0 {
                return Err(short_body(exchange.connection.body_left()));
            }
            *next += moved;
            Counters::add(&self.engine.counters.bytes_received, moved);
            if let Some(progress) = &self.progress {
                progress.add_bytes(moved);
            }
            if let Some(broken) = broken.take() {
                return Err(broken);
            }
        }
        if body.end > end {
            exchange.pause();
            let rest = Answer { exchange, body: end..body.end };
            self.left_over.lock().unwrap_or_else(PoisonError::into_inner).push(rest);
            return Ok(());
        }
        let has_open_end = match exchange.connection.body_left() {
            BodyLeft::Bytes(_) => false,
            BodyLeft::Chunks => true,
            // Of a range the head said how long it is.
            BodyLeft::UntilClose => exchange.status() == 200,
        };
        if has_open_end && exchange.connection.receive_document(0).await?.is_none() {
            return Err(Failure::never(Error::new(
                ErrorKind::Integrity,
                "the body is longer than the server said the object is",
            )));
        }
        exchange.end(&self.engine, end - begin, kept);
        Ok(())
    }

    /// Fills a piece at least by half, unless the body ends or breaks before: what came with the head alone
    /// is not worth handing on.
    async fn receive_most(
        &self,
        exchange: &mut Exchange,
        piece: &mut Slot,
        sums: &mut PartSums,
    ) -> Result<(), Failure> {
        while piece.filled().len() < piece.capacity().div_ceil(2) {
            // Woken for a whole piece, though this one may have room for a little less.
            exchange.connection.body_ready().await?;
            let before = piece.filled().len();
            let room = piece.remaining() as u64;
            if exchange.connection.receive_body(piece, room).await? == 0 {
                break;
            }
            sums.update(&piece.filled()[before..], &self.check);
        }
        Ok(())
    }

    /// Room in the budget for one stage.
    async fn stage_permit(&self, exchange: Option<&mut Exchange>) -> MemoryPermit {
        let admission = &self.engine.pace.admission;
        if let Some(permit) = admission.memory_at_once(STAGE) {
            return permit;
        }
        let memory = admission.memory(STAGE);
        match exchange {
            Some(exchange) => exchange.wait_for_memory(&self.engine, memory).await,
            None => memory.await,
        }
    }

    /// Receives up to a stage's worth, into memory that is taken only once there is something to
    /// put there: the same few stages then serve all connections, from the cache.
    async fn stage(&self, exchange: &mut Exchange, left: u64) -> Result<Slot, Failure> {
        exchange.connection.body_ready().await?;
        let length = left.min(STAGE);
        let mut slot = reserve(&self.engine, length).map_err(Failure::never)?.whole();
        exchange.connection.receive_body(&mut slot, length).await?;
        Ok(slot)
    }
}

/// Pooled memory, or the error that says how much could not be had.
pub(crate) fn reserve(engine: &Engine, length: u64) -> Result<crate::buffer::Target> {
    let refused = |error| {
        Error::io(format!("no memory for {length} bytes"), error)
            .with_hint("lower --memory or --concurrency, or read a smaller range")
    };
    let length_here = usize::try_from(length).map_err(|_| refused(std::io::ErrorKind::OutOfMemory.into()))?;
    engine.memory.reserve(length_here).map_err(refused)
}

fn short_range(asked: &Range<u64>, got: &Range<u64>) -> Failure {
    Failure::never(Error::new(
        ErrorKind::Integrity,
        format!(
            "asked for bytes {}-{}, the server sent {}-{}",
            asked.start,
            asked.end.saturating_sub(1),
            got.start,
            got.end.saturating_sub(1)
        ),
    ))
}

/// The text of a `Range` header, without an allocation: `bytes=` and two numbers of up to 20 digits.
pub(crate) struct RangeText {
    text: [u8; 48],
}

impl Default for RangeText {
    fn default() -> Self {
        RangeText { text: [0; 48] }
    }
}

impl RangeText {
    /// `range` must not be empty.
    pub(crate) fn write(&mut self, range: &Range<u64>) -> &str {
        self.format(format_args!("bytes={}-{}", range.start, range.end.saturating_sub(1)))
    }

    /// The last `length` bytes, which must be some.
    pub(crate) fn write_suffix(&mut self, length: u64) -> &str {
        self.format(format_args!("bytes=-{length}"))
    }

    fn format(&mut self, text: std::fmt::Arguments<'_>) -> &str {
        use std::io::Write;
        let mut rest = &mut self.text[..];
        // 48 bytes hold the longest text there can be, so this cannot fail.
        let _ = rest.write_fmt(text);
        let used = 48 - rest.len();
        std::str::from_utf8(&self.text[..used]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_range_fits() {
        let mut text = RangeText::default();
        assert_eq!(text.write(&(0..1)), "bytes=0-0");
        assert_eq!(RangeText::default().write_suffix(u64::MAX), "bytes=-18446744073709551615");
        assert_eq!(
            RangeText::default().write(&(u64::MAX - 1..u64::MAX)),
            "bytes=18446744073709551614-18446744073709551614"
        );
    }
}

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
    /// The same for the front of an answer that brings more than was asked for, which is left behind here.
    Front(Slot, Arc<Mutex<Option<Exchange>>>),
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
    pub(crate) attempts: Attempts,
}

/// What the parts of one download share.
pub(crate) struct Source {
    pub(crate) engine: Arc<Engine>,
    pub(crate) subject: Subject,
    pub(crate) version: Version,
    pub(crate) progress: Option<Progress>,
    pub(crate) check: Check,
}

impl Source {
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
        let (mut attempts, mut exchange) = match begun {
            Some(begun) => (begun.attempts, Some(begun.exchange)),
            None => (Attempts::new(), None),
        };
        let _stage_permit = match sink {
            Sink::Memory(_) | Sink::Front(..) | Sink::Pieces(_) => None,
            Sink::File(..) | Sink::Discard => Some(self.stage_permit(exchange.as_mut()).await),
        };
        loop {
            let before = next;
            let attempt = async {
                let exchange = match exchange.take() {
                    Some(exchange) => exchange,
                    None => {
                        attempts.begin();
                        self.ask(&(next..range.end), &attempts, kept).await?
                    }
                };
                self.receive(exchange, &mut next, range.end, &mut sink, &mut sums, kept).await
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
    ) -> Result<Exchange, Failure> {
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
                let Accepted { range, .. } = accept_range(head, missing, Some(&self.version))?;
                if range != *missing {
                    return Err(short_range(missing, &range));
                }
                Ok(())
            })
            .await;
        match asked {
            Ok((exchange, ())) => Ok(exchange),
            Err(failure) if failure.error.status() == Some(412) => Err(changed("its ETag")),
            // It ended beyond there when its size was told.
            Err(failure) if failure.error.status() == Some(416) => Err(changed("its size")),
            Err(failure) => Err(failure),
        }
    }

    /// Receives the body into the sink; `next` keeps count of what is there.
    async fn receive(
        &self,
        mut exchange: Exchange,
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
                Sink::Memory(slot) | Sink::Front(slot, _) => {
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
                    landing.land(*next, piece).map_err(|error| Failure::never(incomplete(&error)))?;
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
        if exchange.connection.body_left() == BodyLeft::Chunks
            && exchange.connection.receive_document(0).await?.is_none()
        {
            return Err(Failure::never(Error::new(ErrorKind::Integrity, "the body is longer than its range")));
        }
        if let Sink::Front(_, rest) = sink
            && exchange.connection.body_left() != BodyLeft::Bytes(0)
        {
            exchange.pause();
            *rest.lock().unwrap_or_else(PoisonError::into_inner) = Some(exchange);
        } else {
            exchange.end(&self.engine, end - begin, kept);
        }
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

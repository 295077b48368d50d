//! The beginning of a download, which learns what it reads: the first request, and the others that take its place when its answer says
//! too little.
//!
//! Usually there is one request, for the first part, whatever the object's size turns out to be. Three answers to it
//! prove nothing by themselves, and each costs a request more:
//!
//! * A refused range (416) that does not say the object's size, where the object may have such bytes all the same:
//!   the object is asked for without a range. What comes then says the size.
//! * That size shows that the server refused a range that the object has: the range is asked for once more, by the
//!   offsets of its first and last byte.
//! * A whole object of unknown length: a HEAD asks for it. Where that does not say it either, the body is
//!   received once to its end and counted.

use std::sync::Arc;

use super::Engine;
use super::checksum::{CHECKSUM_MODE, Check, Unverified};
use super::get::Opened;
use super::head::ObjectInfo;
use super::opening::{First, Opening, Wanted};
use super::options::Borrowed;
use super::part::{Begun, RangeText, Source, reserve};
use super::refusal::Failure;
use super::request::{Attempts, Call, Exchange, Subject, head_only};
use super::version::{Accepted, Pin, Version, accept_range, changed, changed_since_listed, is_unmeasured, unmeasured};
use crate::error::{Error, ErrorKind, Result};
use crate::metrics::Progress;
use crate::net::{BodyLeft, Connection};
use crate::wire::request::Method;
use crate::wire::response::{BodyLength, ResponseHead};

/// Bytes of a body of unknown length that are received at a time while it is counted.
const COUNTED_AT_ONCE: u64 = 256 << 10;

/// The facts that earlier answers left open.
#[derive(Clone, Copy, Default)]
struct Known {
    form: Form,
    /// The object's size, where the answer does not say it.
    size: Option<u64>,
}

/// The form of the first request.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Planned,
    /// Without a range, since the planned one was refused.
    WithoutRange,
    /// By offsets within the object's size, since the server refused the planned range.
    ByOffsets,
}

/// Sends the first request: for the first part of what is wanted, whatever the object's size turns out
/// to be; or, where all of an object is wanted that will be small, for all of it, since only that answer
/// brings its checksum. If it is not small after all, its first part is taken and the connection
/// dropped.
pub(crate) fn open<'a>(
    engine: &'a Arc<Engine>,
    subject: Subject,
    opening: Opening<'a>,
    progress: Option<Progress>,
    kept: &'a mut Option<Connection>,
) -> impl Future<Output = Result<Opened>> + use<'a> {
    engine.keep_house();
    open_knowing(engine, subject, opening, Known::default(), progress, kept)
}

async fn open_knowing(
    engine: &Arc<Engine>,
    subject: Subject,
    opening: Opening<'_>,
    known: Known,
    progress: Option<Progress>,
    kept: &mut Option<Connection>,
) -> Result<Opened> {
    let Opening { wanted, part, verify, pin, sizes, .. } = &opening;
    let first = match known.form {
        Form::WithoutRange => First::Whole,
        Form::Planned | Form::ByOffsets => opening.first(),
    };
    let whole = matches!(first, First::Whole);
    let mut range_text = RangeText::default();
    let mut headers = Borrowed::new();
    match first.write(&mut range_text) {
        Some(range) => headers.push(("range", range)),
        None => headers.extend(verify.then_some(CHECKSUM_MODE)),
    }
    let before_conditions = headers.len();
    headers.extend(opening.conditions.iter());
    headers.extend(opening.listed_etag.map(|etag| ("if-match", etag)));
    let pinned = pin.and_then(Pin::if_match).filter(|_| !headers.iter().any(|(name, _)| *name == "if-match"));
    headers.extend(pinned.map(|etag| ("if-match", etag)));
    let call = Call { headers: &headers, into_slot: true, ..Call::new(Method::Get) };
    let mut attempts = Attempts::new();
    loop {
        attempts.begin();
        let begun = engine.exchange(&subject, &call, &attempts, kept, |head| {
            if known.size.is_none() && is_unmeasured(head) {
                return Ok(Err(Version::of(head, 0)));
            }
            let Accepted { range: mut arriving, size } = accept_range(head, &first.asked(head), known.size, None)?;
            if opening.is_another(head) {
                return Err(changed_since_listed());
            }
            if let Some(pin) = pin {
                pin.accept(head, size)?;
            }
            if !whole && !head.is_part() && size > *part {
                engine.oddities.ignores_ranges(&subject.bucket);
            }
            if whole && arriving.end > *part && takes_ranges(head) {
                arriving.end = *part;
            }
            let check = match verify {
                false => Check::none(Unverified::TurnedOff),
                true if wanted.of(size) != Some(0..size) => Check::none(Unverified::Range),
                true => Check::of(head, arriving == (0..size), whole),
            };
            Ok(Ok((arriving, Version::of(head, size), ObjectInfo::of(head, size), check)))
        });
        match begun.await {
            Ok((exchange, Ok((arriving, version, info, check)))) => {
                if *wanted == Wanted::All {
                    sizes.saw(version.size <= *part);
                }
                let Some(there) = wanted.of(version.size) else {
                    return Err(subject.explain(beyond_the_end(version.size)));
                };
                if known.form == Form::WithoutRange && there.start > 0 {
                    drop(exchange);
                    let pin = pin.is_none().then(|| Pin::to(version));
                    let opening =
                        Opening { wanted: Wanted::Range(there), pin: pin.as_ref().or(opening.pin), ..opening.clone() };
                    let known = Known { form: Form::ByOffsets, ..known };
                    return Box::pin(open_knowing(engine, subject, opening, known, progress, kept)).await;
                }
                if let Some(progress) = &progress {
                    progress.expect(there.end - there.start);
                }
                let source = Source::new(engine, subject, version, progress, check);
                if there.is_empty() {
                    exchange.end(engine, 0, kept);
                    return Ok(Opened { source, info, wanted: there, first: None });
                }
                // A server that ignores ranges sends all of the object at once.
                let first = arriving.start.max(there.start)..arriving.end.min(there.end);
                let begun = Begun { exchange, body: arriving, attempts };
                return Ok(Opened { source, info, wanted: there, first: Some((first, begun)) });
            }
            Ok((exchange, Err(version))) => {
                let conditions = &headers[before_conditions..];
                match Box::pin(measure(engine, &subject, conditions, version, exchange)).await {
                    Ok(version) => {
                        let known = Known { size: Some(version.size), ..known };
                        let pin = pin.is_none().then(|| Pin::to(version));
                        let opening = Opening { pin: pin.as_ref().or(opening.pin), ..opening.clone() };
                        return Box::pin(open_knowing(engine, subject, opening, known, progress, kept)).await;
                    }
                    Err(failure) => {
                        attempts.after(engine, failure).await.map_err(|failure| subject.explain(failure.error))?
                    }
                }
            }
            Err(failure) if failure.error.status() == Some(416) && !whole => {
                if wanted.is_refused_for_good(&failure) {
                    let Some(there) = wanted.of(failure.object_size.unwrap_or(0)) else {
                        return Err(subject.explain(failure.error));
                    };
                    let version = Version { size: 0, etag: None, version_id: None, last_modified: None };
                    let check = Check::none(Unverified::NothingRead);
                    let source = Source::new(engine, subject, version, progress, check);
                    return Ok(Opened { source, info: ObjectInfo::default(), wanted: there, first: None });
                }
                if known.form != Form::Planned {
                    return Err(subject.explain(failure.error));
                }
                let known = Known { form: Form::WithoutRange, ..known };
                return Box::pin(open_knowing(engine, subject, opening.clone(), known, progress, kept)).await;
            }
            Err(failure) if pinned.is_some() && failure.error.status() == Some(412) => {
                return Err(subject.explain(changed("its ETag").error));
            }
            Err(failure) if opening.listed_etag.is_some() && failure.error.status() == Some(412) => {
                return Err(subject.explain(changed_since_listed().error));
            }
            Err(failure) => attempts.after(engine, failure).await.map_err(|failure| subject.explain(failure.error))?,
        }
    }
}

/// Returns whether a whole answer comes from a server that would have sent a range too.
fn takes_ranges(head: &ResponseHead<'_>) -> bool {
    matches!(head.body, BodyLength::Length(_))
        && head.header("accept-ranges").is_some_and(|units| units.eq_ignore_ascii_case(b"bytes"))
}

/// Finds out the size of an object whose answer, of this version, did not say it.
async fn measure(
    engine: &Arc<Engine>,
    subject: &Subject,
    conditions: &[(&str, &str)],
    version: Version,
    exchange: Exchange,
) -> Result<Version, Failure> {
    let call = Call { headers: conditions, beside: true, ..Call::new(Method::Head) };
    let read = |head: &ResponseHead<'_>| head.content_length.map(|size| Version::of(head, size));
    let told = match engine.ask(subject, &call, 0, read, head_only).await {
        Ok(told) => told,
        Err(error) => {
            tracing::debug!(%error, "the object's size could not be asked for");
            None
        }
    };
    match told {
        // Some servers announce no byte where they do not know how many there are.
        Some(told) if told.size > 0 => Ok(told),
        told => {
            let size = count(engine, exchange).await?;
            // The end of a connection is no proof that all has come.
            let is_proven = size.is_whole || told.is_some_and(|told| told.size == size.bytes);
            if is_proven { Ok(Version { size: size.bytes, ..version }) } else { Err(unmeasured()) }
        }
    }
}

/// The length of a body that has been received.
struct Counted {
    bytes: u64,
    /// The server marked its end.
    is_whole: bool,
}

/// Receives a body to its end and counts it.
async fn count(engine: &Arc<Engine>, mut exchange: Exchange) -> Result<Counted, Failure> {
    let is_whole = exchange.connection.body_left() == BodyLeft::Chunks;
    let mut bytes = 0;
    loop {
        exchange.connection.body_ready().await?;
        let mut stage = reserve(engine, COUNTED_AT_ONCE).map_err(Failure::never)?.whole();
        match exchange.connection.receive_body(&mut stage, COUNTED_AT_ONCE).await? {
            0 => break,
            moved => bytes += moved,
        }
    }
    exchange.end(engine, bytes, &mut None);
    Ok(Counted { bytes, is_whole })
}

/// Nothing is where the range begins. As the server says it where it is asked for such a range alone.
pub(crate) fn beyond_the_end(size: u64) -> Error {
    let message = format!("the range lies beyond the end of the object, which has {size} bytes");
    Error::new(ErrorKind::Config, message).with_response(416, Some("InvalidRange".to_owned()), None)
}

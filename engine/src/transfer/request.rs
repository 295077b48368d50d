//! One request: a place in flight, a connection, a signed head, an answer judged.
//!
//! [`Engine::exchange`] makes one attempt and stops at the head of the answer: whoever asked then
//! receives the body where it belongs and ends the [`Exchange`]. [`Attempts`] is the loop around it.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tracing::Instrument;

use super::Engine;
use super::options::Attached;
use super::place::{Place, Standing};
use super::refusal::{Failure, Refusal, failed_inside_success};
use super::remedy::Sent;
use crate::error::{Error, ErrorKind, Result};
use crate::metrics::{Counters, RequestEvent};
use crate::net::{Authority, BodyLeft, Connection, NetFailure, check_bucket, check_key, is_directory_bucket};
use crate::pace::{MemoryPermit, News, Refused, RequestPermit, Retry};
use crate::wire::checksum::{ChecksumAlgorithm, Sum};
use crate::wire::request::{Method, Payload, Request, write_request};
use crate::wire::response::ResponseHead;
use crate::wire::trailer::framed_length;
use crate::wire::xml::{XmlError, check_empty, parse_error};

/// S3's error documents are under 1 KiB; what is longer is not one.
const ERROR_DOCUMENT: usize = 64 * 1024;

/// A bucket can be elsewhere, the clock wrong and the credentials expired, each once; and each remedy
/// can come while another is under way.
const MOST_REMEDIES: u32 = 4;

/// What an operation is about: a bucket, or a key in it.
#[derive(Clone)]
pub(crate) struct Subject {
    pub(crate) operation: &'static str,
    pub(crate) bucket: Arc<str>,
    pub(crate) key: String,
    /// Where the bucket is, as far as is known when a request is sent.
    pub(crate) place: Arc<Place>,
    /// What every request made for it carries.
    attached: Option<Arc<Attached>>,
}

impl Subject {
    pub(crate) fn key(engine: &Engine, operation: &'static str, bucket: &str, key: &str) -> Result<Subject> {
        let subject =
            Subject::bucket(engine, operation, bucket).map_err(|error| error.with_context(operation, bucket, key))?;
        subject.with_key(key)
    }

    pub(crate) fn bucket(engine: &Engine, operation: &'static str, bucket: &str) -> Result<Subject> {
        check_bucket(bucket).map_err(|error| error.with_context(operation, "", ""))?;
        let place = engine.places.of(bucket);
        Ok(Subject::at(operation, &place))
    }

    pub(crate) fn service(engine: &Engine, operation: &'static str) -> Subject {
        Subject::at(operation, &engine.places.of(""))
    }

    /// Whatever is at a place.
    pub(crate) fn at(operation: &'static str, place: &Arc<Place>) -> Subject {
        Subject {
            operation,
            bucket: Arc::clone(place.bucket()),
            key: String::new(),
            place: Arc::clone(place),
            attached: None,
        }
    }

    /// The same bucket, another key.
    pub(crate) fn with_key(&self, key: &str) -> Result<Subject> {
        check_key(key).map_err(|error| error.with_context(self.operation, &self.bucket, ""))?;
        Ok(Subject { key: key.to_owned(), ..self.clone() })
    }

    /// The same, whose requests carry this.
    pub(crate) fn with(self, attached: Option<Arc<Attached>>) -> Subject {
        Subject { attached, ..self }
    }

    /// The same at this version.
    pub(crate) fn at_version(self, id: String) -> Subject {
        let attached = self.attached.as_deref().cloned().unwrap_or_default();
        let attached = Attached { version_id: Some(id), ..attached }.shared();
        self.with(attached)
    }

    /// The same for a request that must not be signed with the credentials of a session: S3 wants a
    /// copy's own, which may reach its source.
    pub(crate) fn outside_session(&self) -> Subject {
        match is_directory_bucket(&self.bucket) {
            true => Subject { place: Place::without_sessions(&self.bucket), ..self.clone() },
            false => self.clone(),
        }
    }

    /// What a log shows around everything that is done for this operation.
    pub(crate) fn span(&self) -> tracing::Span {
        self.span_of(&self.key)
    }

    /// The same for another key of the bucket.
    pub(crate) fn span_of(&self, key: &str) -> tracing::Span {
        tracing::debug_span!("s3", operation = self.operation, bucket = &*self.bucket, key)
    }

    /// Whether an entity tag of the subject that looks like an MD5 may be none, as far as is known before it
    /// is looked at: S3 makes others where a customer's key encrypts, and in directory buckets.
    pub(crate) fn has_opaque_tags(&self) -> bool {
        self.attached.as_ref().is_some_and(|attached| attached.customer_key.is_some())
            || is_directory_bucket(&self.bucket)
    }

    pub(crate) fn explain(&self, error: Error) -> Error {
        error.with_context(self.operation, &self.bucket, &self.key)
    }
}

/// What one request says beyond its subject.
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    pub(crate) query: &'a [(&'a str, &'a str)],
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a [u8],
    pub(crate) payload: Payload,
    /// The body is summed while it is sent, and the sum follows it.
    pub(crate) trailer: Option<ChecksumAlgorithm>,
    /// The body of the answer will be received into a slot.
    pub(crate) into_slot: bool,
    /// A question of a few bytes beside a transfer that has its places already: it takes none, and
    /// waits for none.
    pub(crate) beside: bool,
}

impl<'a> Call<'a> {
    pub(crate) fn new(method: Method) -> Call<'a> {
        Call {
            method,
            query: &[],
            headers: &[],
            body: &[],
            payload: Payload::Empty,
            trailer: None,
            into_slot: false,
            beside: false,
        }
    }
}

/// A request whose answer has begun: the body is still on the connection.
pub(crate) struct Exchange {
    pub(crate) connection: Connection,
    /// The sum that followed the body.
    pub(crate) sent_sum: Option<Sum>,
    /// `None` while the exchange waits for memory, and where it took no place.
    permit: Option<RequestPermit>,
    operation: &'static str,
    status: u16,
    timing: Option<Timing>,
}

struct Timing {
    started: Instant,
    first_byte: Duration,
}

impl Exchange {
    /// Waits for memory without holding a place that whoever has the memory may need.
    pub(crate) async fn wait_for_memory(
        &mut self,
        engine: &Engine,
        memory: impl Future<Output = MemoryPermit>,
    ) -> MemoryPermit {
        self.permit = None;
        let memory = memory.await;
        self.permit = Some(engine.pace.admission.request().await);
        memory
    }

    /// Gives up its place while whoever takes the body is waited for.
    pub(crate) fn pause(&mut self) {
        self.permit = None;
    }

    /// Takes a place again, where it gave one up.
    pub(crate) async fn resume(&mut self, engine: &Engine) {
        if self.permit.is_none() {
            self.permit = Some(engine.pace.admission.request().await);
        }
    }

    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// The answer has been received whole: the connection is free for the next request.
    pub(crate) fn end(self, engine: &Engine, bytes: u64, kept: &mut Option<Connection>) {
        if let (Some(timing), Some(observer)) = (&self.timing, &engine.observer) {
            observer.request(&RequestEvent {
                operation: self.operation,
                status: self.status,
                time_to_first_byte: timing.first_byte,
                total: timing.started.elapsed(),
                bytes,
            });
        }
        drop(self.permit);
        let mut connection = self.connection;
        if connection.is_reusable() {
            connection.rest();
            *kept = Some(connection);
        }
    }
}

impl Engine {
    /// Sends one request and hands the head of a successful answer to `accept`.
    ///
    /// The connection is the one in `kept`, else one from the pool, else a new one.
    pub(crate) async fn exchange<T>(
        self: &Arc<Engine>,
        subject: &Subject,
        call: &Call<'_>,
        attempts: &Attempts,
        kept: &mut Option<Connection>,
        accept: impl FnOnce(&ResponseHead<'_>) -> Result<T, Failure>,
    ) -> Result<(Exchange, T), Failure> {
        let place = async || match call.beside {
            true => None,
            false => Some(self.pace.admission.request().await),
        };
        let mut permit = place().await;
        let standing = match subject.place.settled(self.clock.now()) {
            Some(standing) => standing,
            None => {
                // What settles it may need a place in flight itself.
                drop(permit);
                let standing = Box::pin(self.standing(subject)).await.map_err(Failure::never)?;
                permit = place().await;
                standing
            }
        };
        let authority = &standing.location.authority;
        let still_open = kept.as_mut().is_some_and(|kept| kept.is_to(authority) && kept.is_fresh());
        let mut connection = match kept.take() {
            _ if attempts.wants_new_connection() => {
                Box::pin(self.connections.connect(authority)).await.map_err(Failure::unsent)?
            }
            Some(connection) if still_open => connection,
            _ => self.connections.take(authority).await.map_err(Failure::unsent)?,
        };
        let signed_at = self.clock.now();
        write_head(connection.head_scratch(), subject, call, &standing, signed_at)?;
        Counters::add(&self.counters.requests, 1);
        if attempts.made() > 1 {
            Counters::add(&self.counters.retries, 1);
        }
        let started = self.observer.as_ref().map(|_| Instant::now());
        let sent_sum = match call.trailer {
            Some(algorithm) => connection.send_summed(call.body, algorithm).await.map_err(Failure::unanswered)?,
            None => {
                connection.send(call.body).await.map_err(Failure::unanswered)?;
                None
            }
        };
        Counters::add(&self.counters.bytes_sent, call.body.len() as u64);
        let answered = connection
            .receive_head(call.method, call.into_slot, |head| {
                let read = match head.status {
                    200..300 => Ok(accept(head)),
                    _ => Err(Refusal::new(head)),
                };
                (head.status, read)
            })
            .await;
        let (status, read) = match answered {
            // It may be the end of the answer before, which was longer than it said.
            Err(failure @ NetFailure::Malformed(_)) if connection.is_reused() => {
                return Err(Failure { retry: Retry::Backoff, ..failure.into() });
            }
            answered => answered.map_err(Failure::unanswered)?,
        };
        self.pace.retries.answered();
        if connection.was_cut_short() && read.is_ok() {
            // A success that came before the whole body cannot be an answer to it.
            return Err(NetFailure::Broken { during: "sending the request", source: None }.into());
        }
        let timing = started.map(|started| Timing { started, first_byte: started.elapsed() });
        let operation = subject.operation;
        let exchange = Exchange { connection, sent_sum, permit, operation, status, timing };
        match read {
            Ok(accepted) => {
                self.pace.succeeded();
                Ok((exchange, accepted?))
            }
            Err(refusal) => {
                // Boxed: most requests succeed, and should not carry what else may come of them.
                let sent = Sent { subject, standing, signed_at, is_remedied: attempts.remedies > 0 };
                Err(Box::pin(self.refused(exchange, refusal, &sent, kept)).await)
            }
        }
    }

    /// Receives a whole small answer (XML, or nothing) of at most `most` bytes.
    pub(crate) async fn document(
        self: &Arc<Engine>,
        mut exchange: Exchange,
        most: usize,
        kept: &mut Option<Connection>,
    ) -> Result<Vec<u8>, Failure> {
        let document = exchange.connection.receive_document(most).await?;
        let Some(document) = document else {
            return Err(Failure::never(Error::new(
                ErrorKind::Protocol,
                format!("the server's answer is longer than {most} bytes"),
            )));
        };
        exchange.end(self, document.len() as u64, kept);
        Ok(document)
    }

    async fn refused(
        self: &Arc<Engine>,
        mut exchange: Exchange,
        refusal: Refusal,
        sent: &Sent<'_>,
        kept: &mut Option<Connection>,
    ) -> Failure {
        // It says when the request was sent.
        let place = exchange.permit.take();
        let document = match exchange.connection.receive_document(ERROR_DOCUMENT).await {
            Ok(Some(document)) => {
                exchange.end(self, document.len() as u64, kept);
                parse_error(&document)
            }
            // The status alone still says what happened.
            Ok(None) | Err(_) => None,
        };
        let remedy = refusal.remedy(document.as_ref(), sent.signed_at);
        // A request that was put right and is refused as before: was it the clock, then it was put wrong.
        if sent.is_remedied && remedy.is_none() && refusal.status == 403 && self.clock.is_corrected() {
            self.clock.forget_correction();
        }
        let mut failure = refusal.judge(document);
        if let Some(remedy) = remedy {
            // What puts it right may need a place itself.
            drop(place);
            return self.remedied(remedy, failure, sent).await;
        }
        if let Retry::Throttled(throttle) = &mut failure.retry {
            let refused = place.as_ref().map(|held| self.pace.throttled(held));
            let Refused { news, in_vain } = refused.unwrap_or(Refused { news: News::Old, in_vain: true });
            throttle.is_late = news == News::Old;
            throttle.is_crowded = !in_vain;
            if news == News::AtLeast {
                failure.place = place;
            }
        }
        failure
    }

    /// Returns a kept connection to the pool, for others.
    pub(crate) fn put_back(&self, _subject: &Subject, kept: Option<Connection>) {
        if let Some(connection) = kept {
            self.connections.put_back(connection);
        }
    }

    /// One request whose answer is a small document of at most `most` bytes, tried until it is
    /// answered or should not be. `read` takes what is wanted of the head, `parse` the document; an
    /// error that comes as the document of a success is judged like any other.
    pub(crate) async fn ask<H, T>(
        self: &Arc<Engine>,
        subject: &Subject,
        call: &Call<'_>,
        most: usize,
        read: impl Fn(&ResponseHead<'_>) -> H,
        parse: impl Fn(Vec<u8>, H) -> Result<T, XmlError>,
    ) -> Result<T> {
        self.ask_in_doubt(subject, call, most, read, parse, |_| None).await
    }

    /// The same for what must not be done twice unnoticed: `failed` is told of each failed attempt, and may
    /// say that it was done all the same.
    pub(crate) async fn ask_in_doubt<H, T>(
        self: &Arc<Engine>,
        subject: &Subject,
        call: &Call<'_>,
        most: usize,
        read: impl Fn(&ResponseHead<'_>) -> H,
        parse: impl Fn(Vec<u8>, H) -> Result<T, XmlError>,
        mut failed: impl FnMut(&Failure) -> Option<T>,
    ) -> Result<T> {
        let asking = async {
            let mut attempts = Attempts::new();
            let mut kept = None;
            loop {
                attempts.begin();
                let answered = async {
                    let (exchange, head) =
                        self.exchange(subject, call, &attempts, &mut kept, |head| Ok(read(head))).await?;
                    let document = self.document(exchange, most, &mut kept).await?;
                    parse(document, head).map_err(unreadable)
                };
                match answered.await {
                    Ok(answer) => {
                        attempts.succeeded(self);
                        self.put_back(subject, kept);
                        return Ok(answer);
                    }
                    Err(failure) => {
                        if let Some(answer) = failed(&failure) {
                            self.put_back(subject, kept);
                            return Ok(answer);
                        }
                        attempts.after(self, failure).await.map_err(|failure| subject.explain(failure.error))?;
                    }
                }
            }
        };
        asking.instrument(subject.span()).await
    }
}

/// Writes the head of the request, signed for the time `signed_at`.
fn write_head(
    head: &mut Vec<u8>,
    subject: &Subject,
    call: &Call<'_>,
    standing: &Standing,
    signed_at: SystemTime,
) -> Result<(), Failure> {
    let attached = subject.attached.as_ref().map(|attached| attached.beside(call));
    let (query, headers) = attached.as_ref().map_or((call.query, call.headers), |(query, headers)| (query, headers));
    if !standing.location.authority.secure && headers.iter().any(|(name, _)| name.ends_with("-customer-key")) {
        refuse_open_key(&standing.location.authority)?;
    }
    let request = Request {
        method: call.method,
        host: &standing.location.host_header,
        path_prefix: &standing.location.path_prefix,
        key: &subject.key,
        query,
        headers,
        content_length: match call.method {
            Method::Put | Method::Post => Some(match call.trailer {
                Some(algorithm) => framed_length(call.body.len() as u64, algorithm),
                None => call.body.len() as u64,
            }),
            _ => None,
        },
        payload: call.payload,
    };
    write_request(head, &request, standing.signer.as_deref(), signed_at)
        .map_err(|error| Failure::never(Error::new(ErrorKind::Config, format!("the request cannot be sent: {error}"))))
}

/// Refuses to send a customer's own key (SSE-C) where anybody on the way could read it. S3 takes it over TLS
/// only; a server on this machine is reached by nobody else.
fn refuse_open_key(server: &Authority) -> Result<(), Failure> {
    let is_here = server.host == "localhost"
        || server.host.ends_with(".localhost")
        || server.host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    if is_here {
        return Ok(());
    }
    let message = format!("a customer's own key (SSE-C) is not sent to {server} over plain HTTP");
    let error = Error::new(ErrorKind::Config, message).with_hint("use an https:// endpoint URL");
    Err(Failure::never(error.about_client()))
}

/// Takes the head of an answer whose document S3 leaves empty.
pub(crate) fn without_document<H>(document: Vec<u8>, head: H) -> Result<H, XmlError> {
    check_empty(&document).map(|()| head)
}

/// Takes the head of the answer to a HEAD.
pub(crate) fn head_only<H>(_document: Vec<u8>, head: H) -> Result<H, XmlError> {
    Ok(head)
}

/// A success whose document is an error, or is none.
pub(crate) fn unreadable(error: XmlError) -> Failure {
    match error {
        XmlError::Service(body) => failed_inside_success(*body),
        error => {
            let is_final = matches!(error, XmlError::TooLong(..));
            let error = Error::new(ErrorKind::Protocol, "the server's answer cannot be read").with_source(error);
            if is_final { Failure::never(error) } else { Failure::backoff(error.with_hint(CHECK_ENDPOINT)) }
        }
    }
}

/// A success that does not name the entity tag of what was written, as S3 always does.
pub(crate) fn silent() -> Failure {
    let message = "the server answered success without an ETag, which S3 always sends: it may have stored nothing";
    Failure::backoff(Error::new(ErrorKind::Protocol, message).with_hint(CHECK_ENDPOINT))
}

const CHECK_ENDPOINT: &str = "check that the endpoint is an S3 server, and that no proxy answers in its place";

/// The attempts made at one part, and the waits between them.
pub(crate) struct Attempts {
    made: u32,
    new_connection: bool,
    /// Requests sent again because something about all of them was put right.
    remedies: u32,
    started: Instant,
}

impl Attempts {
    pub(crate) fn new() -> Attempts {
        Attempts { made: 0, new_connection: false, remedies: 0, started: Instant::now() }
    }

    pub(crate) fn begin(&mut self) {
        self.made += 1;
    }

    pub(crate) fn made(&self) -> u32 {
        self.made
    }

    /// The last attempt found an idle connection closed; others may be closed as well.
    fn wants_new_connection(&self) -> bool {
        self.new_connection
    }

    pub(crate) fn succeeded(&self, engine: &Engine) {
        if self.made == 1 {
            engine.pace.retries.succeeded();
        }
    }

    /// Bytes arrived before the failure: what follows is a new part of the work, not the same
    /// attempt over again. The quota still bounds it.
    pub(crate) fn moved_on(&mut self) {
        self.made = self.made.min(1);
    }

    /// Waits until it is time for the next attempt, or gives the failure back when there is to be
    /// none.
    pub(crate) async fn after(&mut self, engine: &Engine, failure: Failure) -> Result<(), Failure> {
        if failure.retry == Retry::Remedied && self.remedies < MOST_REMEDIES {
            self.remedies += 1;
            self.made -= 1;
            tracing::debug!(error = %failure.error, "put right, trying again");
            return Ok(());
        }
        // A connection that was new cannot have been closed while idle.
        let retry = match failure.retry {
            Retry::AtOnce if self.new_connection => Retry::Backoff,
            retry => retry,
        };
        match engine.pace.retries.next(retry, self.made) {
            Some(wait) => {
                tracing::debug!(error = %failure.error, attempt = self.made, ?wait, "trying again");
                self.new_connection = retry == Retry::AtOnce;
                if self.new_connection {
                    // A stale connection says nothing about the request.
                    self.made -= 1;
                }
                // What the failure holds is held meanwhile: its place, where waiting is all that can be done.
                if !wait.is_zero() {
                    tokio::time::sleep(wait).await;
                }
                Ok(())
            }
            None => {
                let error = failure.error.with_effort(self.made, self.started.elapsed());
                Err(Failure { error, ..failure })
            }
        }
    }
}

/// The signature covers the body.
pub(crate) fn sha256(body: &[u8]) -> Payload {
    use sha2::Digest;
    Payload::Sha256(sha2::Sha256::digest(body).into())
}

/// What is wrong with a body that ended before its promised length.
pub(crate) fn short_body(left: BodyLeft) -> Failure {
    let missing = match left {
        BodyLeft::Bytes(missing) => format!("{missing} bytes are missing"),
        BodyLeft::Chunks | BodyLeft::UntilClose => "it ended early".to_owned(),
    };
    Failure::backoff(Error::new(ErrorKind::Integrity, format!("the body is short: {missing}")))
}

impl From<NetFailure> for Error {
    fn from(failure: NetFailure) -> Error {
        Failure::from(failure).error
    }
}

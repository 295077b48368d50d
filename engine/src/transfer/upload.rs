//! One object's way up: one request, or a multipart upload.
//!
//! Memory is borrowed and sent as it is; a file is read part by part into pooled memory, never
//! mapped, so that a file which shrinks is an error and not a crash. A multipart upload that does
//! not end well is aborted, also when its future is dropped: its parts would be stored, and paid
//! for, until somebody found them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use tracing::Instrument;

use super::Engine;
use super::cleanup::Cleanup;
use super::file::{SourceFile, on_blocking_thread};
use super::head::head_as;
use super::lost_answer::{LostAnswer, etag_of, etag_of_parts, find};
use super::options::{Borrowed, Fields};
use super::part::reserve;
use super::put::PutOutcome;
use super::put_options::Written;
use super::refusal::{Failure, failed_inside_success};
use super::request::{Attempts, Call, Subject, sha256, unreadable};
use super::uploads::abort;
use super::workers::{lost, run_together};
use crate::buffer::Slot;
use crate::config::PayloadSigning;
use crate::error::{Error, ErrorKind, Result};
use crate::metrics::Progress;
use crate::net::Connection;
use crate::pace::MemoryPermit;
use crate::plan::{UploadPlan, upload_plan};
use crate::wire::request::{Method, Payload};
use crate::wire::xml::{CompletedUpload, parse_complete_multipart, parse_initiate_multipart, write_complete_multipart};

/// The answers of an upload are under 1 KiB.
pub(crate) const ANSWER_BYTES: usize = 64 * 1024;

/// Hashing less than this costs less than handing it to another thread.
const HASH_HERE: usize = 256 * 1024;

/// What is uploaded.
#[derive(Clone)]
pub(crate) enum Content {
    Memory(Bytes),
    File(Arc<SourceFile>),
}

impl Content {
    fn size(&self) -> u64 {
        match self {
            Content::Memory(bytes) => bytes.len() as u64,
            Content::File(file) => file.size(),
        }
    }
}

/// One object on its way up.
#[derive(Clone)]
pub(crate) struct Upload {
    pub(crate) engine: Arc<Engine>,
    pub(crate) subject: Subject,
    pub(crate) content: Content,
    pub(crate) written: Arc<Written>,
    pub(crate) progress: Option<Progress>,
}

/// The bytes of one part, ready to be sent.
enum PartBody {
    Shared(Bytes),
    Pooled { slot: Slot, _permit: MemoryPermit },
}

impl PartBody {
    fn as_slice(&self) -> &[u8] {
        match self {
            PartBody::Shared(bytes) => bytes,
            PartBody::Pooled { slot, .. } => slot.filled(),
        }
    }
}

impl Upload {
    pub(crate) async fn run(self, kept: &mut Option<Connection>) -> Result<PutOutcome> {
        self.engine.keep_house();
        let config = &self.engine.config;
        let plan = upload_plan(self.content.size(), self.engine.pace.part_size(), config.multipart_threshold)
            .map_err(|error| self.subject.explain(Error::new(ErrorKind::Config, error.to_string())))?;
        let progress = self.progress.clone();
        if let Some(progress) = &progress {
            progress.expect(self.content.size());
        }
        let span = self.subject.span();
        let sent = async {
            match plan {
                UploadPlan::Single { size } => self.single(size, kept).await,
                UploadPlan::Multipart { .. } => self.multipart(plan).await,
            }
        };
        let outcome = sent.instrument(span).await?;
        if let Some(progress) = progress {
            progress.add_object();
        }
        Ok(outcome)
    }

    pub(super) async fn single(self, size: u64, kept: &mut Option<Connection>) -> Result<PutOutcome> {
        let (body, payload) = self.part_body(0..size).await?;
        self.check_unchanged().await?;
        let headers: Borrowed<'_> = self.written.object.iter().chain(self.written.conditions.iter()).collect();
        let (etag, version_id) = self.send(&[], &headers, body.as_slice(), payload, kept).await?;
        Ok(PutOutcome { etag, version_id, parts: 1 })
    }

    async fn multipart(self, plan: UploadPlan) -> Result<PutOutcome> {
        let started = StartedUpload::start(&self.engine, &self.subject, self.written.object.clone()).await?;
        let done = self.send_parts(plan, &started).await;
        match done {
            Ok(outcome) => {
                started.forget();
                Ok(outcome)
            }
            Err(error) => Err(started.abort(error).await),
        }
    }

    async fn send_parts(self, plan: UploadPlan, started: &StartedUpload) -> Result<PutOutcome> {
        let count = plan.count();
        let engine = Arc::clone(&self.engine);
        let upload_id: Arc<str> = started.upload_id.as_str().into();
        let next = Arc::new(AtomicU32::new(0));
        let workers = engine.pace.workers(count as usize);
        let this = &self;
        let crew = (0..workers).map(|_| {
            let (upload, next, id) = (this.clone(), Arc::clone(&next), Arc::clone(&upload_id));
            async move {
                let mut kept = None;
                let mut sent = Vec::new();
                while let Some((number, range)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed).min(count);
                    plan.part(index).map(|range| (index + 1, range))
                } {
                    sent.push((number, upload.send_part(number, range, &id, &mut kept).await?));
                }
                upload.engine.put_back(&upload.subject, kept);
                Ok(sent)
            }
        });
        let sent = run_together(async { Ok(Vec::new()) }, crew).await?;
        let mut parts: Vec<(u32, String)> = sent.into_iter().flatten().collect();
        parts.sort_unstable_by_key(|part| part.0);
        self.check_unchanged().await?;
        let size = self.content.size();
        complete(&self.engine, &self.subject, &upload_id, &parts, size, &self.written.conditions).await
    }

    pub(super) async fn send_part(
        &self,
        number: u32,
        range: Range<u64>,
        upload_id: &str,
        kept: &mut Option<Connection>,
    ) -> Result<String> {
        let explain = |error: Error| self.subject.explain(error.with_part(|| format!("part {number}")));
        let (body, payload) = self.part_body(range).await.map_err(explain)?;
        let number_text = number.to_string();
        let query = [("partNumber", number_text.as_str()), ("uploadId", upload_id)];
        let (etag, _) = self.send(&query, &[], body.as_slice(), payload, kept).await.map_err(explain)?;
        etag.ok_or_else(|| explain(Error::new(ErrorKind::Protocol, "the server sent no ETag for the part")))
    }

    /// Sends one body until it is accepted; the ETag and version that the server gave it.
    async fn send(
        &self,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        body: &[u8],
        payload: Payload,
        kept: &mut Option<Connection>,
    ) -> Result<(Option<String>, Option<String>)> {
        let call = Call { query, headers, body, payload, ..Call::new(Method::Put) };
        let mut attempts = Attempts::new();
        let mut lost = LostAnswer::default();
        loop {
            attempts.begin();
            let sent = async {
                let (exchange, tags) = self
                    .engine
                    .exchange(&self.subject, &call, &attempts, kept, |head| {
                        Ok((head.etag.map(str::to_owned), head.version_id.map(str::to_owned)))
                    })
                    .await?;
                self.engine.document(exchange, ANSWER_BYTES, kept).await?;
                Ok::<_, Failure>(tags)
            };
            match sent.await {
                Ok(tags) => {
                    attempts.succeeded(&self.engine);
                    if let Some(progress) = &self.progress {
                        progress.add_bytes(body.len() as u64);
                    }
                    return Ok(tags);
                }
                Err(failure) if lost.may_explain(&failure.error) => {
                    let size = Some(body.len() as u64);
                    let etag = async || Some(etag_of(body).await);
                    let found = find(&self.engine, &self.subject, failure.error, size, etag).await;
                    let found = found.map_err(|error| self.subject.explain(error))?;
                    return Ok((found.etag, found.version_id));
                }
                Err(failure) => {
                    lost.note(&failure);
                    attempts
                        .after(&self.engine, failure)
                        .await
                        .map_err(|failure| self.subject.explain(failure.error))?;
                }
            }
        }
    }

    async fn part_body(&self, range: Range<u64>) -> Result<(PartBody, Payload)> {
        let length = range.end - range.start;
        let body = match &self.content {
            // Both casts are exact: the range lies within the slice.
            Content::Memory(bytes) => PartBody::Shared(bytes.slice(range.start as usize..range.end as usize)),
            Content::File(file) => {
                let permit = self.engine.pace.admission.memory(length).await;
                let explain = |error| self.subject.explain(error);
                let slot = reserve(&self.engine, length).map_err(explain)?.whole();
                let slot = file.read_at(slot, range.start, length as usize).await.map_err(explain)?;
                PartBody::Pooled { slot, _permit: permit }
            }
        };
        if !self.signs_payload() {
            return Ok((body, Payload::Unsigned));
        }
        if length as usize <= HASH_HERE {
            let payload = sha256(body.as_slice());
            return Ok((body, payload));
        }
        on_blocking_thread(move || {
            let payload = sha256(body.as_slice());
            Ok((body, payload))
        })
        .await
    }

    /// Plain HTTP protects nothing on the way, so there the signature does; an unsigned request has
    /// no signature to do it.
    fn signs_payload(&self) -> bool {
        self.engine.signer.is_some()
            && match self.engine.config.payload_signing {
                PayloadSigning::Auto | PayloadSigning::Signed => true,
                PayloadSigning::Unsigned => false,
            }
    }

    async fn check_unchanged(&self) -> Result<()> {
        match &self.content {
            Content::Memory(_) => Ok(()),
            Content::File(file) => file.check_unchanged().await.map_err(|error| self.subject.explain(error)),
        }
    }
}

/// Makes an object of its parts, `size` bytes in all.
pub(super) async fn complete(
    engine: &Arc<Engine>,
    subject: &Subject,
    upload_id: &str,
    parts: &[(u32, String)],
    size: u64,
    conditions: &Fields,
) -> Result<PutOutcome> {
    let mut body = Vec::new();
    write_complete_multipart(&mut body, parts.iter().map(|(number, etag)| (*number, etag.as_str())));
    let size_text = size.to_string();
    let mut headers = Borrowed::new();
    headers.extend([("content-type", "application/xml"), ("x-amz-mp-object-size", size_text.as_str())]);
    headers.extend(conditions.iter());
    let call = Call {
        query: &[("uploadId", upload_id)],
        headers: &headers,
        body: &body,
        payload: sha256(&body),
        ..Call::new(Method::Post)
    };
    let count = parts.len() as u32;
    let mut kept = None;
    let mut attempts = Attempts::new();
    let mut lost = LostAnswer::default();
    loop {
        attempts.begin();
        let completed = async {
            let (exchange, version_id) = engine
                .exchange(subject, &call, &attempts, &mut kept, |head| Ok(head.version_id.map(str::to_owned)))
                .await?;
            let answer = engine.document(exchange, ANSWER_BYTES, &mut kept).await?;
            match parse_complete_multipart(&answer) {
                Ok(CompletedUpload::Done { etag, .. }) => Ok(PutOutcome { etag, version_id, parts: count }),
                Ok(CompletedUpload::Failed(error)) => Err(failed_inside_success(error)),
                Err(error) => Err(unreadable(error)),
            }
        };
        let failure = match completed.await {
            Ok(outcome) => {
                engine.put_back(subject, kept);
                return Ok(outcome);
            }
            Err(failure) => failure,
        };
        if lost.may_explain(&failure.error) {
            let etag = async || etag_of_parts(parts.iter().map(|part| part.1.as_str()));
            let found = find(engine, subject, failure.error, Some(size), etag).await;
            let found = found.map_err(|error| subject.explain(error))?;
            return Ok(PutOutcome { etag: found.etag, version_id: found.version_id, parts: count });
        }
        lost.note(&failure);
        // An earlier attempt may have completed the upload and only its answer been lost.
        if attempts.is_repeated()
            && failure.error.code() == Some("NoSuchUpload")
            && let Ok(found) = head_as(engine, subject).await
            && found.size == size
            && found.etag.as_ref().is_some_and(|etag| etag.ends_with(&format!("-{count}\"")))
        {
            return Ok(PutOutcome { etag: found.etag, version_id: found.version_id, parts: count });
        }
        attempts.after(engine, failure).await.map_err(|failure| subject.explain(failure.error))?;
    }
}

/// A multipart upload that exists on the server; dropped, it is aborted behind the caller's back.
pub(super) struct StartedUpload {
    engine: Arc<Engine>,
    subject: Subject,
    pub(super) upload_id: String,
    /// Until it is completed or aborted there is something to clean up.
    pending: Option<Cleanup>,
}

impl StartedUpload {
    /// The request runs to its end even when nobody waits for it any more: an upload whose id never
    /// arrived could not be aborted.
    pub(super) async fn start(engine: &Arc<Engine>, subject: &Subject, headers: Fields) -> Result<StartedUpload> {
        let (engine, subject) = (Arc::clone(engine), subject.clone());
        let pending = engine.cleanups.begin(&subject.bucket, &subject.key);
        let starting = async move {
            let headers = headers.borrowed();
            let call = Call { query: &[("uploads", "")], headers: &headers, ..Call::new(Method::Post) };
            let upload_id = engine
                .ask(&subject, &call, ANSWER_BYTES, |_| (), |answer, ()| parse_initiate_multipart(&answer))
                .await?;
            pending.named(&upload_id);
            Ok(StartedUpload { engine, subject, upload_id, pending: Some(pending) })
        };
        tokio::spawn(starting.in_current_span()).await.unwrap_or_else(|error| Err(lost(error)))
    }

    /// The upload is complete.
    pub(super) fn forget(mut self) {
        self.pending = None;
    }

    /// Aborts the upload after `error`; where that fails too, the error names the upload.
    pub(super) async fn abort(mut self, error: Error) -> Error {
        let aborted = abort(&self.engine, &self.subject, &self.upload_id).await;
        self.pending = None;
        match aborted {
            Ok(()) => error,
            Err(aborting) if aborting.kind() == ErrorKind::NotFound => error,
            Err(_) => error.with_upload_id(self.upload_id.clone()),
        }
    }
}

impl Drop for StartedUpload {
    fn drop(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        // Without a runtime the process is ending, and nothing can be sent any more.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let engine = Arc::clone(&self.engine);
        let subject = self.subject.clone();
        let upload_id = std::mem::take(&mut self.upload_id);
        runtime.spawn(async move {
            match abort(&engine, &subject, &upload_id).await {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::warn!(%error, upload_id, "the upload could not be aborted and may still be stored");
                    pending.survives();
                }
                _ => drop(pending),
            }
        });
    }
}

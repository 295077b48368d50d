//! A multipart upload on the server: started, completed, or aborted.
//!
//! Whoever sends its parts (bytes, or ranges of another object) does so in between. An upload that does
//! not end well is aborted, also when its future is dropped: its parts would be stored, and paid for,
//! until somebody found them.

use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument;

use super::Engine;
use super::cleanup::Cleanup;
use super::confirm::{confirm, is_same};
use super::lost_answer::{LostAnswer, etag_of_parts, find};
use super::options::{Borrowed, Fields};
use super::put::PutOutcome;
use super::put_options::Written;
use super::refusal::{Failure, failed_inside_success};
use super::request::{Attempts, Call, Subject, sha256, unreadable};
use super::upload::{ANSWER_BYTES, other_bytes, stored};
use super::uploads::abort;
use super::workers::lost;
use crate::error::{Error, ErrorKind, Result};
use crate::wire::checksum::{Checksum, ChecksumAlgorithm, Sum};
use crate::wire::request::Method;
use crate::wire::xml::{CompletedUpload, parse_complete_multipart, parse_initiate_multipart, write_complete_multipart};

/// How long parts whose sending was stopped may still be arriving when their upload is aborted.
const LATE_PARTS: Duration = Duration::from_millis(300);

/// A part that the server has.
#[derive(Clone)]
pub(crate) struct SentPart {
    pub(super) number: u32,
    pub(super) etag: String,
    pub(super) sum: Option<Sum>,
}

/// A multipart upload that exists on the server; dropped, it is aborted behind the caller's back, unless it is kept.
pub(crate) struct StartedUpload {
    engine: Arc<Engine>,
    subject: Subject,
    pub(super) upload_id: String,
    /// The checksum that the server was told of when it was started.
    pub(super) checksum: Option<ChecksumAlgorithm>,
    /// Another run will go on with it.
    is_kept: bool,
    /// Until it is completed or aborted there is something to clean up.
    pending: Option<Cleanup>,
}

impl StartedUpload {
    /// The request runs to its end even when nobody waits for it any more: an upload whose id never
    /// arrived could not be aborted.
    pub(super) async fn start(
        engine: &Arc<Engine>,
        subject: &Subject,
        object: &Fields,
        checksum: Option<ChecksumAlgorithm>,
    ) -> Result<StartedUpload> {
        let (engine, subject, object) = (Arc::clone(engine), subject.clone(), object.clone());
        let pending = engine.cleanups.begin(&subject.bucket, &subject.key);
        let starting = async move {
            let mut headers = object.borrowed();
            if let Some(algorithm) = checksum {
                headers.push(("x-amz-checksum-algorithm", algorithm.s3_name()));
                headers.push(("x-amz-checksum-type", algorithm.multipart_type()));
            }
            let call = Call { query: &[("uploads", "")], headers: &headers, ..Call::new(Method::Post) };
            let mut lost = LostAnswer::default();
            let parse = |answer: Vec<u8>, ()| parse_initiate_multipart(&answer);
            let note = |failure: &Failure| {
                lost.note(failure);
                None
            };
            let started = engine.ask_in_doubt(&subject, &call, ANSWER_BYTES, |_| (), parse, note).await;
            if lost.happened() {
                // Its id is not known, and an upload of the same key may be somebody else's.
                let (bucket, key) = (&*subject.bucket, subject.key.as_str());
                tracing::warn!(
                    bucket,
                    key,
                    "the answer to a request that starts a multipart upload was lost: an upload without parts may be \
                     left, which the list of the bucket's uploads shows"
                );
            }
            let upload_id = started?;
            pending.named(&upload_id);
            Ok(StartedUpload { engine, subject, upload_id, checksum, is_kept: false, pending: Some(pending) })
        };
        tokio::spawn(starting.in_current_span()).await.unwrap_or_else(|error| Err(lost(error)))
    }

    /// One that an earlier run started, and kept.
    pub(super) fn of_earlier(
        engine: &Arc<Engine>,
        subject: &Subject,
        upload_id: String,
        checksum: Option<ChecksumAlgorithm>,
    ) -> StartedUpload {
        let pending = engine.cleanups.begin(&subject.bucket, &subject.key);
        pending.named(&upload_id);
        let (engine, subject) = (Arc::clone(engine), subject.clone());
        StartedUpload { engine, subject, upload_id, checksum, is_kept: true, pending: Some(pending) }
    }

    /// Leaves it on the server when it does not end well: somebody knows of it, and will go on with it.
    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }

    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
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
        let Some(pending) = self.pending.take().filter(|_| !self.is_kept) else { return };
        // Without a runtime the process is ending, and nothing can be sent any more.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let engine = Arc::clone(&self.engine);
        let subject = self.subject.clone();
        let upload_id = std::mem::take(&mut self.upload_id);
        runtime.spawn(async move {
            let mut aborted = abort(&engine, &subject, &upload_id).await;
            if aborted.is_ok() {
                // S3 may still store a part that was on its way when the upload was aborted.
                tokio::time::sleep(LATE_PARTS).await;
                aborted = abort(&engine, &subject, &upload_id).await;
            }
            match aborted {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::warn!(%error, upload_id, "the upload could not be aborted and may still be stored");
                    pending.survives();
                }
                _ => drop(pending),
            }
        });
    }
}

/// What makes an object of its parts.
pub(super) struct Completing<'a> {
    pub(super) engine: &'a Arc<Engine>,
    pub(super) subject: &'a Subject,
    pub(super) upload_id: &'a str,
    /// Of the object, in bytes.
    pub(super) size: u64,
    pub(super) checksum: Option<ChecksumAlgorithm>,
    /// How the object is written.
    pub(super) written: &'a Written,
}

impl Completing<'_> {
    pub(super) async fn run(self, parts: &[SentPart]) -> Result<PutOutcome> {
        let Completing { engine, subject, upload_id, size, checksum: algorithm, written } = self;
        let mut body = Vec::new();
        // All of them or none: a server that was told of checksums wants every part's.
        let sums: Option<Vec<Sum>> = parts.iter().map(|part| part.sum).collect();
        let values: Option<Vec<String>> = sums.as_ref().map(|sums| sums.iter().map(Sum::value).collect());
        let part_sum = |index: usize| Some((algorithm?.element(), values.as_ref()?.get(index)?.as_str()));
        let listed = parts.iter().enumerate();
        let listed = listed.map(|(index, part)| (part.number, part.etag.as_str(), part_sum(index)));
        write_complete_multipart(&mut body, listed);
        let whole = sums.filter(|_| algorithm.is_some_and(ChecksumAlgorithm::combines)).and_then(Sum::of_parts);
        let whole_value = whole.map(|whole| whole.value());
        let size_text = size.to_string();
        let mut headers = Borrowed::new();
        headers.extend([("content-type", "application/xml"), ("x-amz-mp-object-size", size_text.as_str())]);
        if let (Some(algorithm), Some(value)) = (algorithm, &whole_value) {
            headers.extend([(algorithm.header(), value.as_str()), ("x-amz-checksum-type", algorithm.multipart_type())]);
        }
        headers.extend(written.conditions.iter());
        let call = Call {
            query: &[("uploadId", upload_id)],
            headers: &headers,
            body: &body,
            payload: sha256(&body),
            ..Call::new(Method::Post)
        };
        let count = parts.len() as u32;
        let outcome = |etag, version_id| PutOutcome { etag, version_id, parts: count, checksum: whole.map(stored) };
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
                    Ok(CompletedUpload::Done { etag, checksum }) => match (whole, checksum) {
                        (Some(whole), Some(told))
                            if disagree(&whole, &told) && engine.oddities.is_checksum(subject, &told) =>
                        {
                            Err(Failure::never(other_bytes(whole, &told.value).error))
                        }
                        (whole, told) => {
                            let is_checked = whole.zip(told).is_some_and(|(whole, told)| agree(&whole, &told));
                            Ok((etag, version_id, is_checked))
                        }
                    },
                    Ok(CompletedUpload::Failed(error)) => Err(failed_inside_success(error)),
                    Err(error) => Err(unreadable(error)),
                }
            };
            let failure = match completed.await {
                Ok((etag, version_id, is_checked)) => {
                    engine.put_back(subject, kept);
                    let is_proven = || is_checked || follows(&etag, parts);
                    if written.confirm && !is_proven() {
                        Box::pin(confirm(engine, subject, Some(size), &etag)).await?;
                    }
                    return Ok(outcome(Some(etag), version_id));
                }
                Err(failure) => failure,
            };
            // The upload is gone once it is complete. The code would be NoSuchUpload, had the document that
            // says so arrived.
            let is_gone = lost.happened() && failure.error.kind() == ErrorKind::NotFound;
            if is_gone || lost.may_explain(&failure.error) {
                let etag = async || etag_of_parts(parts.iter().map(|part| part.etag.as_str()));
                let found = find(engine, subject, failure.error, Some(size), etag).await;
                let found = found.map_err(|error| subject.explain(error))?;
                return Ok(outcome(found.etag, found.version_id));
            }
            lost.note(&failure);
            attempts.after(engine, failure).await.map_err(|failure| subject.explain(failure.error))?;
        }
    }
}

/// Returns whether an object's entity tag is the one that follows from those of its parts.
fn follows(etag: &str, parts: &[SentPart]) -> bool {
    etag_of_parts(parts.iter().map(|part| part.etag.as_str())).is_some_and(|made| is_same(&made, etag))
}

fn agree(sent: &Sum, told: &Checksum) -> bool {
    !told.composite && told.algorithm == sent.algorithm() && told.value == sent.value()
}

fn disagree(sent: &Sum, told: &Checksum) -> bool {
    !told.composite && told.algorithm == sent.algorithm() && told.value != sent.value()
}

//! COPY: an object within the server, in one request or by parts; no byte of it comes here.
//!
//! One request could copy up to 5 GB ([`MAX_PUT_SIZE`]), but many servers answer it when all is copied, which
//! would be taken for silence. Above [`THRESHOLD`] there is a multipart upload whose parts are ranges of
//! the source, copied in parallel and pinned to the one version that was found of it. What
//! CopyObject takes from the source by itself (content type and the like, metadata, tags) is then
//! asked for and given to the upload, so that both ways make the same object.
//!
//! The source is named in a header: bucket and key percent-encoded, and the version behind them. A
//! copy that fails after it was begun answers 200 with an error in its document.

mod source;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use jiff::Timestamp;
use tracing::Instrument;

use self::source::{Source, describe_as, tags_of};
use super::Engine;
use super::confirm::{confirm, is_same};
use super::copy_many::CopyItem;
use super::head::{ObjectInfo, head_as};
use super::lost_answer::{LostAnswer, find};
use super::multipart::{Completing, SentPart, StartedUpload};
use super::options::{Access, Attached, Borrowed, Fields, SseCustomerKey, http_date, sent_by_await};
use super::put_options::{PutOptions, Written, put_methods};
use super::refusal::Failure;
use super::request::{Attempts, Call, Subject, silent, unreadable};
use super::version::changed;
use super::workers::run_together;
use crate::error::{Error, ErrorKind, Result};
use crate::metrics::Progress;
use crate::net::Connection;
use crate::plan::{MAX_PUT_SIZE, UploadPlan, upload_plan};
use crate::wire::request::Method;
use crate::wire::xml::parse_copy_result;

/// The answers of a copy are under 1 KiB; white space may come before them for as long as it takes.
const ANSWER_BYTES: usize = 1 << 20;

/// The length of a part of a copy. No byte of it passes through here, so parts are larger than those
/// of an upload: large enough that 5 GB are under a hundred requests, small enough for many at once.
const PART: u64 = 64 << 20;

/// Larger sources are copied by parts unless it is said otherwise: so that a server that copies 10 MB a second
/// still answers within the 30 seconds that a first byte may take.
const THRESHOLD: u64 = 256 << 20;

/// Where a copy takes what describes it: content type and the like, metadata; or its tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyDirective {
    /// From the source.
    Copy,
    /// From the copy's own options, and only from there.
    Replace,
}

/// What the server says of a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyOutcome {
    /// The copy's entity tag, with its quotes, byte for byte as the server sent it.
    pub etag: Option<String>,
    /// The copy's version, where the bucket keeps versions.
    pub version_id: Option<String>,
    /// How many requests copied the bytes.
    pub parts: u32,
}

/// A copy that has not been sent; made by [`Client::copy`](crate::Client::copy), sent by `await`.
#[must_use = "nothing is copied until it is awaited"]
#[derive(Clone)]
pub struct Copy {
    engine: Arc<Engine>,
    source: Source,
    bucket: String,
    key: String,
    pub(super) options: PutOptions,
    metadata: Option<CopyDirective>,
    tagging: Option<CopyDirective>,
    threshold: u64,
    part_size: u64,
    progress: Option<Progress>,
}

put_methods!(Copy, this => this.options);
sent_by_await!(Copy, CopyOutcome);

impl Copy {
    pub(crate) fn new(engine: Arc<Engine>, source: (String, String), target: (String, String)) -> Copy {
        let source = Source {
            bucket: source.0,
            key: source.1,
            version_id: None,
            size: None,
            conditions: Fields::default(),
            customer_key: None,
            expected_owner: None,
        };
        Copy {
            engine,
            source,
            bucket: target.0,
            key: target.1,
            options: PutOptions::default(),
            metadata: None,
            tagging: None,
            threshold: THRESHOLD,
            part_size: PART,
            progress: None,
        }
    }

    /// All options of the copy at once, in the place of those that were set so far.
    pub fn options(mut self, options: PutOptions) -> Copy {
        self.options = options;
        self
    }

    /// This version of the source, not the newest.
    pub fn source_version(mut self, id: impl Into<String>) -> Copy {
        self.source.version_id = Some(id.into());
        self
    }

    /// The source's size in bytes, as a listing tells it: saves the HEAD that asks for it.
    pub fn source_size(mut self, bytes: u64) -> Copy {
        self.source.size = Some(bytes);
        self
    }

    /// Only while the source has this entity tag; otherwise an error of kind
    /// [`Precondition`](crate::ErrorKind::Precondition).
    pub fn source_if_match(mut self, etag: impl Into<String>) -> Copy {
        self.source.conditions.push("if-match", etag);
        self
    }

    /// Only where the source has another entity tag; otherwise an error of kind
    /// [`Precondition`](crate::ErrorKind::Precondition).
    pub fn source_if_none_match(mut self, etag: impl Into<String>) -> Copy {
        self.source.conditions.push("if-none-match", etag);
        self
    }

    /// Only where the source was written after this time; otherwise an error of kind
    /// [`Precondition`](crate::ErrorKind::Precondition).
    pub fn source_if_modified_since(mut self, time: Timestamp) -> Copy {
        self.source.conditions.push_some("if-modified-since", http_date(time).as_deref());
        self
    }

    /// Only where the source was not written after this time; otherwise an error of kind
    /// [`Precondition`](crate::ErrorKind::Precondition).
    pub fn source_if_unmodified_since(mut self, time: Timestamp) -> Copy {
        self.source.conditions.push_some("if-unmodified-since", http_date(time).as_deref());
        self
    }

    /// The customer's own key that the source was encrypted with (SSE-C). The copy's is
    /// [`Copy::sse_customer_key`].
    pub fn source_sse_customer_key(mut self, key: SseCustomerKey) -> Copy {
        self.source.customer_key = Some(key);
        self
    }

    /// Refuses a source bucket that does not belong to this account, an id of 12 digits.
    pub fn source_expected_owner(mut self, account: impl Into<String>) -> Copy {
        self.source.expected_owner = Some(account.into());
        self
    }

    /// Where content type and the like and the metadata come from. Where it is not said: from the
    /// source, unless the copy is given any of them.
    pub fn metadata_directive(mut self, directive: CopyDirective) -> Copy {
        self.metadata = Some(directive);
        self
    }

    /// Where the tags come from. Where it is not said: from the source, unless the copy is given some.
    pub fn tagging_directive(mut self, directive: CopyDirective) -> Copy {
        self.tagging = Some(directive);
        self
    }

    /// Sources above this many bytes are copied by parts: 256 MiB unless it is given, 5 GB at most. One request
    /// copies all that is below it, and the server must begin its answer within `first_byte_timeout`.
    pub fn multipart_threshold(mut self, bytes: u64) -> Copy {
        self.threshold = bytes.min(MAX_PUT_SIZE);
        self
    }

    /// The length of a part where the source is copied by parts, in bytes: 64 MiB unless it is given, at
    /// least 5 MiB, and more where there would be too many.
    pub fn part_size(mut self, bytes: u64) -> Copy {
        self.part_size = bytes;
        self
    }

    /// Counts bytes as the server says that they are copied.
    pub fn progress(mut self, progress: Progress) -> Copy {
        self.progress = Some(progress);
        self
    }

    pub(super) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The bucket of the copy.
    pub(super) fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The same of another object.
    pub(super) fn of(&self, item: CopyItem) -> Copy {
        let CopyItem { source_bucket, source_key, key, version, size, if_match } = item;
        let source = Source { bucket: source_bucket.to_string(), key: source_key, ..self.source.clone() };
        let copy = Copy { source: Source { version_id: version, size, ..source }, key, ..self.clone() };
        match if_match {
            Some(etag) => copy.source_if_match(etag),
            None => copy,
        }
    }

    async fn send(self) -> Result<CopyOutcome> {
        let engine = Arc::clone(&self.engine);
        engine.keep_house();
        let target = Subject::key(&engine, "copy", &self.bucket, &self.key)?.with(self.options.attached());
        let attached = Attached {
            access: Access {
                request_payer: self.options.access.request_payer,
                expected_owner: self.source.expected_owner.clone(),
            },
            customer_key: self.source.customer_key.clone(),
            version_id: self.source.version_id.clone(),
        };
        let source = Subject::key(&engine, "copy", &self.source.bucket, &self.source.key)?.with(attached.shared());
        let metadata = directive(self.metadata, self.options.describes(), "content type and metadata");
        let tagging = directive(self.tagging, !self.options.tags.is_empty(), "tags");
        let explain = |error| target.explain(error);
        let (metadata, tagging) = (metadata.map_err(explain)?, tagging.map_err(explain)?);
        if self.changes_nothing(metadata) {
            let message = "an object cannot be copied onto itself without a change";
            let hint = "replace its metadata, or give it another storage class or encryption";
            return Err(target.explain(Error::new(ErrorKind::Config, message).with_hint(hint)));
        }
        let copied = async {
            let info = match self.source.size {
                Some(size) if size <= self.threshold => None,
                Some(size) if metadata == CopyDirective::Replace && self.source.is_known() => {
                    Some(self.source.as_known(size))
                }
                // The conditions too: the parts are pinned to what it finds.
                _ => Some(head_as(&engine, &source, &self.source.conditions.borrowed()).await?),
            };
            let known_size = info.as_ref().map(|info| info.size).or(self.source.size);
            let size = known_size.unwrap_or(0);
            if let Some(progress) = &self.progress {
                progress.expect(size);
            }
            let outcome = match info {
                Some(info) if info.size > self.threshold => {
                    self.by_parts(&source, &target, info, metadata, tagging).await?
                }
                info => {
                    let outcome = self.at_once(&target, metadata, tagging).await?;
                    let etag = info.and_then(|info| info.etag).or_else(|| self.source.etag().map(str::to_owned));
                    let is_proven = || outcome.etag.as_deref().zip(etag.as_deref()).is_some_and(|(a, b)| is_same(a, b));
                    if self.options.confirm && !is_proven() {
                        let etag = outcome.etag.as_deref().unwrap_or_default();
                        Box::pin(confirm(&engine, &target, known_size, etag)).await?;
                    }
                    if let Some(progress) = &self.progress {
                        progress.add_bytes(size);
                    }
                    outcome
                }
            };
            if let Some(progress) = &self.progress {
                progress.add_object();
            }
            Ok(outcome)
        };
        copied.instrument(target.span()).await
    }

    /// S3 refuses to copy an object onto itself as it is.
    fn changes_nothing(&self, metadata: CopyDirective) -> bool {
        let options = &self.options;
        self.source.bucket == self.bucket
            && self.source.key == self.key
            && self.source.version_id.is_none()
            && metadata == CopyDirective::Copy
            && options.storage_class.is_none()
            && options.website_redirect.is_none()
            && !options.service_key
            && options.kms.is_none()
            && options.customer_key.is_none()
            && self.source.customer_key.is_none()
    }

    /// One CopyObject.
    async fn at_once(&self, target: &Subject, metadata: CopyDirective, tagging: CopyDirective) -> Result<CopyOutcome> {
        let mut headers = self.source.headers(&self.source.conditions);
        if metadata == CopyDirective::Replace {
            headers.push("x-amz-metadata-directive", "REPLACE");
        }
        if tagging == CopyDirective::Replace {
            headers.push("x-amz-tagging-directive", "REPLACE");
        }
        let written = Written::new(&self.options);
        let headers: Borrowed<'_> =
            headers.iter().chain(written.object.iter()).chain(written.conditions.iter()).collect();
        let call = Call { headers: &headers, ..Call::new(Method::Put) };
        let mut kept = None;
        let (etag, version_id) = copy(&self.engine, target, &call, &mut kept, &|error| error).await?;
        self.engine.put_back(target, kept);
        Ok(CopyOutcome { etag: Some(etag), version_id, parts: 1 })
    }

    /// A multipart upload whose parts are ranges of the source.
    async fn by_parts(
        &self,
        source: &Subject,
        target: &Subject,
        info: ObjectInfo,
        metadata: CopyDirective,
        tagging: CopyDirective,
    ) -> Result<CopyOutcome> {
        let engine = &self.engine;
        let plan = upload_plan(info.size, self.part_size, 0)
            .map_err(|error| target.explain(Error::new(ErrorKind::Config, error.to_string())))?;
        let mut options = self.options.clone();
        if metadata == CopyDirective::Copy {
            describe_as(&mut options, &info);
        }
        if tagging == CopyDirective::Copy {
            options.tags = tags_of(engine, source, &info).await?;
        }
        let written = Written::new(&options);
        let started = StartedUpload::start(engine, target, &written.object, None).await?;
        let copied = async {
            let parts = self.copy_parts(target, plan, &info, &started.upload_id).await?;
            let (upload_id, size, written) = (&started.upload_id, info.size, &written);
            Completing { engine, subject: target, upload_id, size, checksum: None, written }.run(&parts).await
        };
        match copied.await {
            Ok(outcome) => {
                started.forget();
                Ok(CopyOutcome { etag: outcome.etag, version_id: outcome.version_id, parts: outcome.parts })
            }
            Err(error) => Err(started.abort(error).await),
        }
    }

    async fn copy_parts(
        &self,
        target: &Subject,
        plan: UploadPlan,
        info: &ObjectInfo,
        upload_id: &str,
    ) -> Result<Vec<SentPart>> {
        let count = plan.count();
        let (headers, pinned) = self.source.pinned(info);
        let work = Arc::new(Parts {
            engine: Arc::clone(&self.engine),
            target: target.clone(),
            headers,
            pinned,
            upload_id: upload_id.to_owned(),
            plan,
            next: AtomicU32::new(0),
            progress: self.progress.clone(),
        });
        let workers = self.engine.pace.workers(count as usize);
        let crew = (0..workers).map(|_| Arc::clone(&work).copy());
        let mut parts: Vec<_> = run_together(async { Ok(Vec::new()) }, crew).await?.into_iter().flatten().collect();
        parts.sort_unstable_by_key(|part: &SentPart| part.number);
        Ok(parts)
    }
}

/// Where something comes from: as was said, else from the options where they have it.
fn directive(said: Option<CopyDirective>, given: bool, what: &str) -> Result<CopyDirective> {
    match said {
        Some(CopyDirective::Copy) if given => {
            let message = format!("the copy is given {what} of its own, and told to take the source's");
            Err(Error::new(ErrorKind::Config, message).with_hint("leave out one of the two"))
        }
        Some(said) => Ok(said),
        None if given => Ok(CopyDirective::Replace),
        None => Ok(CopyDirective::Copy),
    }
}

/// The parts of a copy that no worker has taken yet.
struct Parts {
    engine: Arc<Engine>,
    target: Subject,
    headers: Fields,
    pinned: bool,
    upload_id: String,
    plan: UploadPlan,
    next: AtomicU32,
    progress: Option<Progress>,
}

impl Parts {
    /// One worker: part after part.
    async fn copy(self: Arc<Self>) -> Result<Vec<SentPart>> {
        let mut kept = None;
        let mut copied = Vec::new();
        let count = self.plan.count();
        while let Some((number, range)) = {
            let index = self.next.fetch_add(1, Ordering::Relaxed).min(count);
            self.plan.part(index).map(|range| (index + 1, range))
        } {
            let length = range.end - range.start;
            let etag = self.copy_part(number, range, &mut kept).await?;
            copied.push(SentPart { number, etag, sum: None });
            if let Some(progress) = &self.progress {
                progress.add_bytes(length);
            }
        }
        self.engine.put_back(&self.target, kept);
        Ok(copied)
    }

    async fn copy_part(&self, number: u32, range: Range<u64>, kept: &mut Option<Connection>) -> Result<String> {
        let explain = |error: Error| self.target.explain(error.with_part(|| format!("part {number}")));
        let number_text = number.to_string();
        let range_text = format!("bytes={}-{}", range.start, range.end.saturating_sub(1));
        let mut headers = self.headers.borrowed();
        headers.push(("x-amz-copy-source-range", &range_text));
        let query = [("partNumber", number_text.as_str()), ("uploadId", self.upload_id.as_str())];
        let call = Call { query: &query, headers: &headers, ..Call::new(Method::Put) };
        let judge = |error: Error| match error.status() {
            Some(412) if self.pinned => changed("its version").error,
            _ => error,
        };
        let copied = copy(&self.engine, &self.target, &call, kept, &judge).await;
        copied.map(|(etag, _)| etag).map_err(explain)
    }
}

/// Sends one copy until it is made. Returns the entity tag and the version of what was made.
async fn copy(
    engine: &Arc<Engine>,
    target: &Subject,
    call: &Call<'_>,
    kept: &mut Option<Connection>,
    judge: &(dyn Fn(Error) -> Error + Sync),
) -> Result<(String, Option<String>)> {
    let mut attempts = Attempts::new();
    let mut lost = LostAnswer::default();
    let signed_by = target.outside_session();
    loop {
        attempts.begin();
        let copied = async {
            let read =
                engine.exchange(&signed_by, call, &attempts, kept, |head| Ok(head.version_id.map(str::to_owned)));
            let (exchange, version_id) = read.await?;
            let answer = engine.document(exchange, ANSWER_BYTES, kept).await?;
            Ok::<_, Failure>((parse_copy_result(&answer).map_err(unreadable)?.etag, version_id))
        };
        match copied.await {
            Ok(copied) => {
                attempts.succeeded(engine);
                return Ok(copied);
            }
            // Only a condition on the target can be broken by the copy itself.
            Err(failure) if lost.may_explain(&failure.error) && guards_target(call) => {
                let found = find(engine, target, failure.error, None, async || None).await;
                let found = found.map_err(|error| target.explain(error))?;
                let etag = found.etag.ok_or_else(|| target.explain(silent().error))?;
                return Ok((etag, found.version_id));
            }
            Err(failure) => {
                lost.note(&failure);
                attempts.after(engine, failure).await.map_err(|failure| target.explain(judge(failure.error)))?;
            }
        }
    }
}

fn guards_target(call: &Call<'_>) -> bool {
    call.headers.iter().any(|(name, _)| matches!(*name, "if-match" | "if-none-match"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_replaces_and_contradictions_are_refused() {
        assert_eq!(directive(None, false, "tags").unwrap(), CopyDirective::Copy);
        assert_eq!(directive(None, true, "tags").unwrap(), CopyDirective::Replace);
        assert_eq!(directive(Some(CopyDirective::Replace), false, "tags").unwrap(), CopyDirective::Replace);
        assert_eq!(directive(Some(CopyDirective::Copy), true, "tags").unwrap_err().kind(), ErrorKind::Config);
    }
}

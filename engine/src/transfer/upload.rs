//! One object's way up: one request, or a multipart upload.
//!
//! Memory is borrowed and sent as it is; a file is read part by part into pooled memory, never
//! mapped, so that a file which shrinks is an error and not a crash. A multipart upload that does
//! not end well is aborted, also when its future is dropped: its parts would be stored, and paid
//! for, until somebody found them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tracing::Instrument;

use super::Engine;
use super::body::{PartBody, Wants};
use super::checksum::Carriage;
use super::confirm::confirm;
use super::file::{FoundFile, SourceFile};
use super::lost_answer::{LostAnswer, etag_of, find};
use super::multipart::{Completing, SentPart, StartedUpload};
use super::options::Borrowed;
use super::put::PutOutcome;
use super::put_options::Written;
use super::refusal::Failure;
use super::request::{Attempts, Call, Subject, silent, unreadable};
use super::resume::{PartialUpload, TakenUp, UploadResume, UploadedPart, is_void};
use super::workers::run_together;
use crate::config::PayloadSigning;
use crate::error::{Error, ErrorKind, Result};
use crate::metrics::Progress;
use crate::net::Connection;
use crate::plan::{UploadPlan, upload_plan};
use crate::wire::checksum::{Checksum, ChecksumAlgorithm, Sum};
use crate::wire::request::{Method, Payload};
use crate::wire::xml::check_empty;

/// The answers of an upload are under 1 KiB.
pub(super) const ANSWER_BYTES: usize = 64 * 1024;

/// What is uploaded.
#[derive(Clone)]
pub(crate) enum Content {
    Memory(Bytes),
    File(Arc<SourceFile>),
    /// A file that is not open yet, for a single request: it is opened, read and looked at again in one go.
    Found(FoundFile),
}

impl Content {
    pub(super) fn size(&self) -> u64 {
        match self {
            Content::Memory(bytes) => bytes.len() as u64,
            Content::File(file) => file.size(),
            Content::Found(file) => file.size,
        }
    }
}

/// One object on its way up.
#[derive(Clone)]
pub(crate) struct Upload {
    pub(crate) engine: Arc<Engine>,
    pub(crate) subject: Subject,
    pub(crate) content: Content,
    pub(crate) checksum: Option<ChecksumAlgorithm>,
    pub(crate) written: Arc<Written>,
    pub(crate) progress: Option<Progress>,
    /// How it survives its process, where it comes from a file and goes in parts.
    pub(crate) resume: Option<UploadResume>,
}

/// What the server says of a body that it took.
struct Tags {
    etag: String,
    version_id: Option<String>,
    /// The sum of the body, where it took one with it.
    sum: Option<Sum>,
    /// The server told the sum too.
    confirmed: bool,
}

impl Upload {
    pub(crate) async fn run(self, kept: &mut Option<Connection>) -> Result<PutOutcome> {
        self.engine.keep_house();
        let progress = self.progress.clone();
        let span = self.subject.span();
        let sent = async {
            if self.resume.is_some()
                && let Some(outcome) = Box::pin(self.go_on()).await?
            {
                return Ok(outcome);
            }
            let config = &self.engine.config;
            let plan = upload_plan(self.content.size(), self.engine.pace.part_size(), config.multipart_threshold)
                .map_err(|error| self.subject.explain(Error::new(ErrorKind::Config, error.to_string())))?;
            if let Some(progress) = &self.progress {
                progress.expect(self.content.size());
            }
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

    /// Finishes what an earlier run left of this upload, where that can be done.
    async fn go_on(&self) -> Result<Option<PutOutcome>> {
        let (started, plan, there) = match self.take_up().await? {
            TakenUp::Nothing => return Ok(None),
            TakenUp::Object(outcome) => return Ok(Some(outcome)),
            TakenUp::Upload { started, plan, there } => (started, plan, there),
        };
        // What it was started with is what all its parts have.
        let upload = Upload { checksum: started.checksum, ..self.clone() };
        match upload.finish(plan, started, there).await {
            // The server would not make an object of it: of what it said it had, or of what has gone since.
            Err(error) if error.status().is_some() && error.kind() != ErrorKind::Precondition && is_void(&error) => {
                tracing::debug!(%error, "what was left of an upload is of no use, it begins anew");
                Ok(None)
            }
            finished => finished.map(Some),
        }
    }

    pub(super) async fn single(self, size: u64, kept: &mut Option<Connection>) -> Result<PutOutcome> {
        // What a trailer that nobody confirms leaves behind would break the condition of the next attempt.
        let carriage = match self.carriage() {
            Carriage::Trailer if !self.written.conditions.is_empty() => Carriage::Header,
            carriage => carriage,
        };
        let body = self.part_body(0..size, carriage).await?;
        self.check_unchanged().await?;
        let headers: Borrowed<'_> = self.written.object.iter().chain(self.written.conditions.iter()).collect();
        let tags = self.send(&[], &headers, body, kept).await?;
        if self.written.confirm && !tags.confirmed {
            // Boxed: the usual answer confirms itself.
            Box::pin(confirm(&self.engine, &self.subject, Some(size), &tags.etag)).await?;
        }
        Ok(PutOutcome { etag: Some(tags.etag), version_id: tags.version_id, parts: 1, checksum: tags.sum.map(stored) })
    }

    async fn multipart(self, plan: UploadPlan) -> Result<PutOutcome> {
        let mut started = self.start().await?;
        if let (Some(resume), Content::File(file), UploadPlan::Multipart { part_size, .. }) =
            (&self.resume, &self.content, plan)
        {
            started.keep();
            let (upload_id, checksum, source) = (started.upload_id.clone(), started.checksum, file.identity());
            resume.log.began(&PartialUpload { upload_id, part_size, checksum, source, parts: Vec::new() });
        }
        self.finish(plan, started, Vec::new()).await
    }

    /// Sends the parts that are not `there` yet and completes the upload.
    async fn finish(self, plan: UploadPlan, started: StartedUpload, there: Vec<SentPart>) -> Result<PutOutcome> {
        let done = self.send_parts(plan, &started, there).await;
        match done {
            Ok(outcome) => {
                started.forget();
                Ok(outcome)
            }
            Err(error) if started.is_kept() && !is_void(&error) => Err(error),
            Err(error) => Err(started.abort(error).await),
        }
    }

    async fn send_parts(&self, plan: UploadPlan, started: &StartedUpload, there: Vec<SentPart>) -> Result<PutOutcome> {
        let is_there = |index: &u32| there.binary_search_by_key(&(index + 1), |part| part.number).is_ok();
        let missing: Arc<[u32]> = (0..plan.count()).filter(|index| !is_there(index)).collect();
        if let Some(progress) = self.progress.as_ref().filter(|_| !there.is_empty()) {
            let lengths = missing.iter().filter_map(|&index| plan.part(index)).map(|range| range.end - range.start);
            progress.expect(lengths.sum());
        }
        let engine = Arc::clone(&self.engine);
        let upload_id: Arc<str> = started.upload_id.as_str().into();
        let next = Arc::new(AtomicUsize::new(0));
        let workers = engine.pace.workers(missing.len());
        let crew = (0..workers).map(|_| {
            let (upload, next, id) = (self.clone(), Arc::clone(&next), Arc::clone(&upload_id));
            let missing = Arc::clone(&missing);
            async move {
                let mut kept = None;
                let mut sent = Vec::new();
                while let Some((number, range)) = {
                    let index = missing.get(next.fetch_add(1, Ordering::Relaxed));
                    index.and_then(|&index| Some((index + 1, plan.part(index)?)))
                } {
                    let length = range.end - range.start;
                    let part = upload.send_part(number, range, &id, &mut kept).await?;
                    if let Some(resume) = &upload.resume {
                        resume.log.sent(&UploadedPart::of(&part, length));
                    }
                    sent.push(part);
                }
                upload.engine.put_back(&upload.subject, kept);
                Ok(sent)
            }
        });
        let sent = run_together(async { Ok(Vec::new()) }, crew).await?;
        let mut parts = there;
        parts.extend(sent.into_iter().flatten());
        parts.sort_unstable_by_key(|part| part.number);
        self.check_unchanged().await?;
        let size = self.content.size();
        self.complete(&upload_id, &parts, size).await
    }

    /// Makes an object of its parts, `size` bytes in all.
    pub(super) async fn complete(&self, upload_id: &str, parts: &[SentPart], size: u64) -> Result<PutOutcome> {
        let Upload { engine, subject, checksum, written, .. } = self;
        let checksum = *checksum;
        Completing { engine, subject, upload_id, size, checksum, written }.run(parts).await
    }

    pub(super) async fn send_part(
        &self,
        number: u32,
        range: Range<u64>,
        upload_id: &str,
        kept: &mut Option<Connection>,
    ) -> Result<SentPart> {
        let explain = |error: Error| self.subject.explain(error.with_part(|| format!("part {number}")));
        let body = self.part_body(range, self.carriage()).await.map_err(explain)?;
        let number_text = number.to_string();
        let query = [("partNumber", number_text.as_str()), ("uploadId", upload_id)];
        let Tags { etag, sum, .. } = self.send(&query, &[], body, kept).await.map_err(explain)?;
        Ok(SentPart { number, etag, sum })
    }

    /// Sends one body until it is accepted. Where the server refuses its checksum it is sent again at
    /// once, with less of it, and the server's taste is remembered.
    async fn send(
        &self,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        mut body: PartBody,
        kept: &mut Option<Connection>,
    ) -> Result<Tags> {
        let mut attempts = Attempts::new();
        let mut lost = LostAnswer::default();
        let mut lowered = false;
        loop {
            attempts.begin();
            let refused = match self.send_once(query, headers, &body, &attempts, kept).await {
                // A server that knows nothing of trailers may have stored the framing as if it were content.
                Ok(tags) if body.carriage == Carriage::Trailer && !tags.confirmed => None,
                Ok(tags) => {
                    attempts.succeeded(&self.engine);
                    if lowered {
                        self.engine.acceptance.lowered_to(body.carriage, &self.subject.bucket);
                    }
                    if let Some(progress) = &self.progress {
                        progress.add_bytes(body.as_slice().len() as u64);
                    }
                    return Ok(tags);
                }
                Err(failure) if body.carriage.is_refused_by(&failure.error) => Some(failure),
                Err(failure) if lost.may_explain(&failure.error) => {
                    let bytes = body.as_slice();
                    let etag = async || Some(etag_of(bytes).await);
                    let size = Some(bytes.len() as u64);
                    let found = find(&self.engine, &self.subject, failure.error, size, etag).await;
                    let found = found.map_err(|error| self.subject.explain(error))?;
                    let etag = found.etag.ok_or_else(|| self.subject.explain(silent().error))?;
                    return Ok(Tags { etag, version_id: found.version_id, sum: body.sum, confirmed: true });
                }
                Err(failure) => {
                    lost.note(&failure);
                    attempts
                        .after(&self.engine, failure)
                        .await
                        .map_err(|failure| self.subject.explain(failure.error))?;
                    continue;
                }
            };
            if let Some(failure) = refused {
                tracing::debug!(error = %failure.error, carriage = ?body.carriage, "the checksum was refused");
            }
            body.lower(self.checksum);
            lowered = true;
            attempts.moved_on();
        }
    }

    async fn send_once(
        &self,
        query: &[(&str, &str)],
        described: &[(&str, &str)],
        body: &PartBody,
        attempts: &Attempts,
        kept: &mut Option<Connection>,
    ) -> Result<Tags, Failure> {
        let bytes = body.as_slice();
        let value = body.sum.map(|sum| sum.value());
        let length = bytes.len().to_string();
        let encoding;
        let mut headers = Borrowed::from_slice(described);
        let mut call = Call { query, body: bytes, payload: body.payload, ..Call::new(Method::Put) };
        match (body.carriage, self.checksum, &value) {
            (Carriage::Header, Some(algorithm), Some(value)) => headers.push((algorithm.header(), value)),
            (Carriage::Trailer, Some(algorithm), _) => {
                // The content's own encoding stands behind the one that it travels in, and stays.
                match headers.iter_mut().find(|(name, _)| *name == "content-encoding") {
                    Some((_, own)) => {
                        encoding = format!("aws-chunked,{own}");
                        *own = &encoding;
                    }
                    None => headers.push(("content-encoding", "aws-chunked")),
                }
                headers.push(("x-amz-decoded-content-length", &length));
                headers.push(("x-amz-trailer", algorithm.header()));
                call.payload = Payload::UnsignedTrailer;
                call.trailer = Some(algorithm);
            }
            _ => {}
        }
        call.headers = &headers;
        let (exchange, (etag, version_id, told)) = self
            .engine
            .exchange(&self.subject, &call, attempts, kept, |head| {
                let told = self.checksum.and_then(|algorithm| head.header(algorithm.header()));
                let told = told.and_then(|told| std::str::from_utf8(told).ok()).map(str::to_owned);
                Ok((head.etag.map(str::to_owned), head.version_id.map(str::to_owned), told))
            })
            .await?;
        let sum = exchange.sent_sum.or(body.sum);
        let document = self.engine.document(exchange, ANSWER_BYTES, kept).await?;
        check_empty(&document).map_err(unreadable)?;
        let etag = etag.filter(|etag| !etag.is_empty()).ok_or_else(silent)?;
        let mut tags = Tags { etag, version_id, sum, confirmed: false };
        if let (Some(sum), Some(told)) = (tags.sum, told) {
            let told = Checksum::full(sum.algorithm(), told);
            if !self.engine.oddities.is_checksum(&self.subject, &told) {
                return Ok(tags);
            }
            let told = told.value;
            if told != sum.value() {
                return Err(other_bytes(sum, &told));
            }
            tags.confirmed = true;
        }
        Ok(tags)
    }

    async fn part_body(&self, range: Range<u64>, carriage: Carriage) -> Result<PartBody> {
        let wants = Wants { signed: self.signs_payload().await?, checksum: self.checksum, carriage };
        let body = match &self.content {
            // Both casts are exact: the range lies within the slice.
            Content::Memory(bytes) => {
                PartBody::of_memory(bytes.slice(range.start as usize..range.end as usize), wants).await
            }
            Content::File(file) => PartBody::of_file(&self.engine, file, range, wants).await,
            Content::Found(file) => PartBody::of_found(&self.engine, file, wants).await,
        };
        body.map_err(|error| self.subject.explain(error))
    }

    /// How checksums go at best, as far as the server is known. A trailer is announced in the place of the
    /// payload's hash, which a request that is not signed does not have.
    fn carriage(&self) -> Carriage {
        match self.engine.acceptance.best() {
            _ if self.checksum.is_none() => Carriage::None,
            Carriage::Trailer if !self.engine.signs() => Carriage::Header,
            best => best,
        }
    }

    /// Plain HTTP protects nothing on the way, so there the signature does; an unsigned request has
    /// no signature to do it.
    async fn signs_payload(&self) -> Result<bool> {
        let wanted = match self.engine.config.payload_signing {
            PayloadSigning::Auto => {
                let standing = self.engine.standing(&self.subject).await;
                !standing.map_err(|error| self.subject.explain(error))?.location.authority.secure
            }
            PayloadSigning::Signed => true,
            PayloadSigning::Unsigned => false,
        };
        Ok(wanted && self.engine.signs())
    }

    /// The sum of some of the file, read for nothing else.
    pub(super) async fn sum_of_range(&self, range: Range<u64>, algorithm: ChecksumAlgorithm) -> Result<Option<Sum>> {
        let wants = Wants { signed: false, checksum: Some(algorithm), carriage: Carriage::Header };
        match &self.content {
            Content::Memory(_) | Content::Found(_) => Ok(None),
            Content::File(file) => {
                let body = PartBody::of_file(&self.engine, file, range, wants).await;
                Ok(body.map_err(|error| self.subject.explain(error))?.sum)
            }
        }
    }

    /// Starts the multipart upload, with its checksum announced where the server lets it be.
    pub(super) async fn start(&self) -> Result<StartedUpload> {
        let algorithm = self.checksum.filter(|_| self.carriage() != Carriage::None);
        let started = StartedUpload::start(&self.engine, &self.subject, &self.written.object, algorithm).await;
        match started {
            Err(error) if algorithm.is_some() && Carriage::Header.is_refused_by(&error) => {
                let started = StartedUpload::start(&self.engine, &self.subject, &self.written.object, None).await?;
                self.engine.acceptance.lowered_to(Carriage::None, &self.subject.bucket);
                Ok(started)
            }
            started => started,
        }
    }

    async fn check_unchanged(&self) -> Result<()> {
        match &self.content {
            Content::Memory(_) | Content::Found(_) => Ok(()),
            Content::File(file) => file.check_unchanged().await.map_err(|error| self.subject.explain(error)),
        }
    }
}

/// The server says that it stored something else than was sent.
pub(super) fn other_bytes(sent: Sum, told: &str) -> Failure {
    let algorithm = sent.algorithm();
    Failure::backoff(
        Error::new(
            ErrorKind::Integrity,
            format!("the server stored other bytes than were sent: their {algorithm} is {told}, not {sent}"),
        )
        .with_hint("upload it again"),
    )
}

pub(super) fn stored(sum: Sum) -> Checksum {
    Checksum::full(sum.algorithm(), sum.value())
}

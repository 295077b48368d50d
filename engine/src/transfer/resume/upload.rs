//! A multipart upload of a file that goes on where an earlier run stopped.
//!
//! The server says which parts it has; what the log knows beyond that is their checksums. Parts that it has without
//! one are read again, since the checksum of the whole is made of theirs. Sent is only what is missing.

use std::collections::HashMap;
use std::sync::Arc;

use super::FileIdentity;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{UploadPlan, upload_plan};
use crate::transfer::list_parts::{self, ListedPart};
use crate::transfer::lost_answer::{etag_of_parts, find};
use crate::transfer::multipart::{SentPart, StartedUpload};
use crate::transfer::put::PutOutcome;
use crate::transfer::upload::{Content, Upload, stored};
use crate::transfer::uploads::abort;
use crate::wire::checksum::{ChecksumAlgorithm, Sum};

/// Is told how a multipart upload proceeds. Called between the requests of the transfer, so it should write down
/// what it is told and return.
pub trait UploadLog: Send + Sync {
    /// The upload has been started, and no part of it sent; `upload` has no parts yet. What was told of this
    /// upload before is void.
    fn began(&self, upload: &PartialUpload);

    /// The server has accepted this part.
    fn sent(&self, part: &UploadedPart);
}

/// What a multipart upload left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialUpload {
    /// Its id on the server.
    pub upload_id: String,
    /// The size of each part but the last, in bytes.
    pub part_size: u64,
    /// The checksum that it was started with.
    pub checksum: Option<ChecksumAlgorithm>,
    /// What the file looked like that is uploaded.
    pub source: FileIdentity,
    /// The parts that the server accepted, in any order.
    pub parts: Vec<UploadedPart>,
}

/// A part that the server accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadedPart {
    /// Its number, from 1.
    pub number: u32,
    /// Its length in bytes.
    pub size: u64,
    /// Its entity tag, with its quotes.
    pub etag: String,
    /// Its checksum of the upload's kind, in base64, where one was sent with it.
    pub checksum: Option<String>,
}

impl UploadedPart {
    pub(crate) fn of(part: &SentPart, size: u64) -> UploadedPart {
        let checksum = part.sum.as_ref().map(Sum::value);
        UploadedPart { number: part.number, size, etag: part.etag.clone(), checksum }
    }

    fn as_listed(&self) -> ListedPart {
        let (etag, last_modified, checksum) = (self.etag.clone(), None, None);
        ListedPart { number: self.number, size: self.size, etag, last_modified, checksum }
    }

    fn sum(&self, algorithm: Option<ChecksumAlgorithm>) -> Option<Sum> {
        Sum::told(algorithm?, self.checksum.as_deref()?, self.size)
    }
}

/// How an upload of a file is to survive its process; see [`Put::resume`](crate::Put::resume).
#[derive(Clone)]
pub struct UploadResume {
    pub(crate) log: Arc<dyn UploadLog>,
    left: Option<Arc<PartialUpload>>,
}

impl UploadResume {
    /// Tells `log` how the upload proceeds.
    pub fn new(log: Arc<dyn UploadLog>) -> UploadResume {
        UploadResume { log, left: None }
    }

    pub(crate) fn has_left(&self) -> bool {
        self.left.is_some()
    }

    /// Goes on with what an earlier run left, as far as that still holds: the log is then told of the parts that it
    /// does not know. Where it does not hold the upload is aborted, and another begun.
    #[must_use]
    pub fn from_partial(mut self, left: PartialUpload) -> UploadResume {
        self.left = Some(Arc::new(left));
        self
    }
}

impl std::fmt::Debug for UploadResume {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UploadResume").field("left", &self.left).finish_non_exhaustive()
    }
}

/// Whether after this an upload is of no use: its source is another, its condition does not hold, or the server cannot
/// make an object of its parts.
pub(crate) fn is_void(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Precondition | ErrorKind::Integrity | ErrorKind::NotFound)
        || matches!(error.code(), Some("InvalidPart" | "InvalidPartOrder" | "EntityTooSmall"))
}

/// What came of what an earlier run left.
pub(crate) enum TakenUp {
    /// Nothing: the upload begins anew.
    Nothing,
    /// The upload, with the parts that the server has, by their numbers.
    Upload { started: StartedUpload, plan: UploadPlan, there: Vec<SentPart> },
    /// The object: only that it was complete had not been seen.
    Object(PutOutcome),
}

impl Upload {
    /// Looks at what an earlier run left of this upload.
    pub(crate) async fn take_up(&self) -> Result<TakenUp> {
        let Some(resume) = &self.resume else { return Ok(TakenUp::Nothing) };
        let (Some(left), Content::File(file)) = (&resume.left, &self.content) else { return Ok(TakenUp::Nothing) };
        let plan = upload_plan(self.content.size(), left.part_size, 0).ok();
        let plan =
            plan.filter(|plan| matches!(plan, UploadPlan::Multipart { part_size, .. } if *part_size == left.part_size));
        let fits = left.source.may_be(&file.identity()) && (left.checksum.is_none() || left.checksum == self.checksum);
        let Some(plan) = plan.filter(|_| fits) else {
            // The upload is of no use to anybody; one that is gone already needs no aborting.
            if let Err(error) = abort(&self.engine, &self.subject, &left.upload_id).await
                && error.kind() != ErrorKind::NotFound
            {
                return Err(error.with_upload_id(left.upload_id.clone()));
            }
            return Ok(TakenUp::Nothing);
        };
        let listed = match list_parts::all(&self.engine, &self.subject, &left.upload_id).await {
            Ok(listed) => listed,
            Err(error) if error.kind() == ErrorKind::NotFound => return self.completed_unseen(left, plan, error).await,
            // It is a permission of its own, and not every server can do it: the log must do.
            Err(error) if error.kind() == ErrorKind::Denied || error.status() == Some(501) => {
                left.parts.iter().map(UploadedPart::as_listed).collect()
            }
            Err(error) => return Err(error),
        };
        let started = StartedUpload::of_earlier(&self.engine, &self.subject, left.upload_id.clone(), left.checksum);
        let there = self.parts_there(resume, left, plan, listed).await?;
        Ok(TakenUp::Upload { started, plan, there })
    }

    /// The upload is gone: it was aborted, has expired, or is an object by now. That can be told where every part
    /// was known.
    async fn completed_unseen(&self, left: &PartialUpload, plan: UploadPlan, gone: Error) -> Result<TakenUp> {
        let mut parts = left.parts.clone();
        parts.sort_unstable_by_key(|part| part.number);
        parts.dedup_by_key(|part| part.number);
        if parts.len() != plan.count() as usize {
            return Ok(TakenUp::Nothing);
        }
        let etag = async || etag_of_parts(parts.iter().map(|part| part.etag.as_str()));
        let Ok(found) = find(&self.engine, &self.subject, gone, Some(self.content.size()), etag).await else {
            return Ok(TakenUp::Nothing);
        };
        let sums = parts.iter().map(|part| part.sum(left.checksum)).collect::<Option<Vec<Sum>>>();
        let checksum = sums.and_then(Sum::of_parts).map(stored);
        let (etag, version_id) = (found.etag, found.version_id);
        Ok(TakenUp::Object(PutOutcome { etag, version_id, parts: plan.count(), checksum }))
    }

    /// The parts of the plan that the server has, with their sums.
    async fn parts_there(
        &self,
        resume: &UploadResume,
        left: &PartialUpload,
        plan: UploadPlan,
        listed: Vec<ListedPart>,
    ) -> Result<Vec<SentPart>> {
        let known: HashMap<(u32, &str), &UploadedPart> =
            left.parts.iter().map(|part| ((part.number, part.etag.as_str()), part)).collect();
        let mut there = Vec::new();
        for part in listed {
            let range = part.number.checked_sub(1).and_then(|index| plan.part(index));
            let Some(range) = range.filter(|range| range.end - range.start == part.size) else { continue };
            let known = known.get(&(part.number, part.etag.as_str()));
            let sum = match left.checksum {
                None => None,
                Some(algorithm) => {
                    let told = part.checksum.as_ref().filter(|told| told.algorithm == algorithm && !told.composite);
                    let told = told.and_then(|told| Sum::told(algorithm, &told.value, part.size));
                    match known.and_then(|known| known.sum(left.checksum)).or(told) {
                        Some(sum) => Some(sum),
                        None => self.sum_of_range(range, algorithm).await?,
                    }
                }
            };
            let is_known = known.is_some();
            let sent = SentPart { number: part.number, etag: part.etag, sum };
            if !is_known {
                resume.log.sent(&UploadedPart::of(&sent, part.size));
            }
            there.push(sent);
        }
        there.sort_unstable_by_key(|part| part.number);
        there.dedup_by_key(|part| part.number);
        Ok(there)
    }
}

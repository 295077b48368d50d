//! DELETE: one object or one version of it, or many in batches.

use std::collections::HashSet;
use std::sync::Arc;

use super::Engine;
use super::options::{Access, Attached, access_methods, sent_by_await};
use super::read_options::version_method;
use super::refusal::{Failure, failed_inside_success};
use super::request::{Attempts, Call, Subject, sha256, without_document};
use super::workers::run_together;
use crate::error::{Error, ErrorKind, Result};
use crate::pace::Retry;
use crate::wire::checksum::content_md5;
use crate::wire::request::Method;
use crate::wire::response::ResponseHead;
use crate::wire::xml::{DeleteResult, ErrorBody, is_representable, parse_delete_result, write_delete_objects};

pub use crate::wire::xml::DeleteFailure;

/// The most keys that one DeleteObjects may name.
const BATCH: usize = 1000;

/// An answer names every object of the batch, at worst with keys of 1,024 bytes that are written as references.
const ANSWER_BYTES: usize = 8 << 20;

/// What a delete did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeleteOutcome {
    /// Whether what was made or, where a version was named, removed is a delete marker: a bucket that
    /// keeps versions deletes an object by putting a marker before them.
    pub delete_marker: bool,
    /// The version that was removed, or that the new delete marker is.
    pub version_id: Option<String>,
}

/// A DELETE that has not been sent; made by [`Client::delete`](crate::Client::delete), sent by
/// `await`.
#[must_use = "nothing is deleted until it is awaited"]
pub struct Delete {
    engine: Arc<Engine>,
    bucket: String,
    key: String,
    access: Access,
    version_id: Option<String>,
    if_match: Option<String>,
}

access_methods!(Delete, this => this.access);
version_method!(Delete, this => this.version_id);
sent_by_await!(Delete, DeleteOutcome);

impl Delete {
    pub(crate) fn new(engine: Arc<Engine>, bucket: String, key: String) -> Delete {
        Delete { engine, bucket, key, access: Access::default(), version_id: None, if_match: None }
    }

    /// Only while the object has this entity tag; otherwise an error of kind
    /// [`Precondition`](crate::ErrorKind::Precondition).
    pub fn if_match(mut self, etag: impl Into<String>) -> Delete {
        self.if_match = Some(etag.into());
        self
    }

    async fn send(self) -> Result<DeleteOutcome> {
        let Delete { engine, bucket, key, access, version_id, if_match } = self;
        engine.keep_house();
        let attached = Attached { access, version_id, customer_key: None }.shared();
        let subject = Subject::key(&engine, "delete", &bucket, &key)?.with(attached);
        let condition = if_match.as_deref().map(|etag| [("if-match", etag)]);
        let headers = condition.as_ref().map_or(&[][..], |condition| &condition[..]);
        delete_one(&engine, &subject, headers).await
    }
}

async fn delete_one(engine: &Arc<Engine>, subject: &Subject, headers: &[(&str, &str)]) -> Result<DeleteOutcome> {
    let call = Call { headers, ..Call::new(Method::Delete) };
    let read = |head: &ResponseHead<'_>| DeleteOutcome {
        delete_marker: head.header("x-amz-delete-marker").is_some_and(|marker| marker.eq_ignore_ascii_case(b"true")),
        version_id: head.version_id.map(str::to_owned),
    };
    engine.ask(subject, &call, ANSWER_BYTES, read, without_document).await
}

/// What is to be deleted: a key, and the version where one is named.
type Target = (String, Option<String>);

/// Deletions that have not been sent; made by [`Client::delete_many`](crate::Client::delete_many),
/// sent by `await`.
#[must_use = "nothing is deleted until it is awaited"]
pub struct DeleteMany {
    engine: Arc<Engine>,
    bucket: String,
    targets: Vec<Target>,
    access: Access,
}

access_methods!(DeleteMany, this => this.access);
sent_by_await!(DeleteMany, Vec<DeleteFailure>);

impl DeleteMany {
    pub(crate) fn new(engine: Arc<Engine>, bucket: String, keys: Vec<String>) -> DeleteMany {
        let targets = keys.into_iter().map(|key| (key, None)).collect();
        DeleteMany { engine, bucket, targets, access: Access::default() }
    }

    /// These versions too: pairs of key and version id.
    pub fn versions(mut self, versions: impl IntoIterator<Item = (String, String)>) -> DeleteMany {
        self.targets.extend(versions.into_iter().map(|(key, version)| (key, Some(version))));
        self
    }

    async fn send(self) -> Result<Vec<DeleteFailure>> {
        let DeleteMany { engine, bucket, targets, access } = self;
        engine.keep_house();
        let subject = Subject::bucket(&engine, "delete", &bucket)?.with(access.clone().attached());
        // XML cannot carry some keys; those are deleted by a request of their own.
        let carried =
            |(key, version): &Target| is_representable(key) && version.as_deref().is_none_or(is_representable);
        let (batched, single): (Vec<_>, Vec<_>) = targets.into_iter().partition(carried);
        let batches = batched.chunks(BATCH).map(<[Target]>::to_vec).collect::<Vec<_>>().into_iter();
        let singles = single.into_iter();
        let workers = engine.pace.workers(batches.len() + singles.len());
        let work = Arc::new(std::sync::Mutex::new((batches, singles)));
        let crew = (0..workers).map(|_| {
            let (engine, subject, work, access) =
                (Arc::clone(&engine), subject.clone(), Arc::clone(&work), access.clone());
            async move {
                let mut failures = Vec::new();
                loop {
                    let (batch, single) = {
                        let mut work = work.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        let batch = work.0.next();
                        let single = if batch.is_none() { work.1.next() } else { None };
                        (batch, single)
                    };
                    match (batch, single) {
                        (Some(batch), _) => failures.extend(delete_batch(&engine, &subject, &batch, &access).await?),
                        (None, Some(target)) => {
                            failures.extend(delete_alone(&engine, &subject, target, access.clone()).await);
                        }
                        (None, None) => return Ok(failures),
                    }
                }
            }
        });
        let failures = run_together(async { Ok(Vec::new()) }, crew).await?;
        Ok(failures.into_iter().flatten().collect())
    }
}

/// Deletes what one request may name. Keys that only a passing fault kept are asked for again, alone. So are keys that the
/// answer does not name, each by a request of its own: some servers leave out those that did not exist.
async fn delete_batch(
    engine: &Arc<Engine>,
    subject: &Subject,
    batch: &[Target],
    access: &Access,
) -> Result<Vec<DeleteFailure>> {
    let mut attempts = Attempts::new();
    let mut pending = batch.to_vec();
    let mut failures = Vec::new();
    loop {
        attempts.begin();
        let DeleteResult { deleted, failures: refused } = delete_at_once(engine, subject, &pending).await?;
        if deleted.len() + refused.len() < pending.len() {
            for target in unnamed(&pending, &deleted, &refused) {
                failures.extend(delete_alone(engine, subject, target, access.clone()).await);
            }
        }
        let (passing, lasting): (Vec<_>, Vec<_>) = refused.into_iter().partition(may_pass);
        failures.extend(lasting);
        let Some(first) = passing.first() else { return Ok(failures) };
        let mut failure = judged(first);
        if let Retry::Throttled(throttle) = &mut failure.retry {
            // Its own is given back already; a place that is had now is none of before the pace was last lowered.
            let place = engine.pace.admission.request().await;
            throttle.is_crowded = !engine.pace.throttled(&place).in_vain;
        }
        if attempts.after(engine, failure).await.is_err() {
            failures.extend(passing);
            return Ok(failures);
        }
        pending = passing.into_iter().map(|failure| (failure.key, failure.version_id)).collect();
    }
}

/// Whether the server names the key, and a fault that passes.
fn may_pass(failure: &DeleteFailure) -> bool {
    !failure.key.is_empty() && matches!(judged(failure).error.kind(), ErrorKind::Server | ErrorKind::Throttled)
}

fn judged(failure: &DeleteFailure) -> Failure {
    let DeleteFailure { code, message, .. } = failure.clone();
    failed_inside_success(ErrorBody { code, message, ..ErrorBody::default() })
}

async fn delete_at_once(engine: &Arc<Engine>, subject: &Subject, batch: &[Target]) -> Result<DeleteResult> {
    let mut body = Vec::new();
    let targets = batch.iter().map(|(key, version)| (key.as_str(), version.as_deref()));
    write_delete_objects(&mut body, targets)
        .map_err(|error| subject.explain(Error::new(ErrorKind::Config, error.to_string())))?;
    let md5 = content_md5(&body);
    let call = Call {
        query: &[("delete", "")],
        headers: &[("content-md5", &md5), ("content-type", "application/xml")],
        body: &body,
        payload: sha256(&body),
        ..Call::new(Method::Post)
    };
    engine.ask(subject, &call, ANSWER_BYTES, |_| (), |answer, ()| parse_delete_result(&answer)).await
}

/// The objects that an answer does not name, though it should name all: nothing says that they are gone.
fn unnamed(batch: &[Target], deleted: &[Target], failures: &[DeleteFailure]) -> Vec<Target> {
    let failed = failures.iter().map(|failure| (failure.key.as_str(), failure.version_id.as_deref()));
    let deleted = deleted.iter().map(|(key, version)| (key.as_str(), version.as_deref()));
    let mut named: HashSet<_> = deleted.chain(failed).collect();
    batch.iter().filter(|(key, version)| named.insert((key, version.as_deref()))).cloned().collect()
}

/// Deletes one object by a request of its own. Returns why it was kept, if it was.
async fn delete_alone(
    engine: &Arc<Engine>,
    bucket: &Subject,
    (key, version_id): Target,
    access: Access,
) -> Option<DeleteFailure> {
    let attached = Attached { access, version_id: version_id.clone(), customer_key: None }.shared();
    let deleted = match bucket.with_key(&key) {
        Ok(subject) => delete_one(engine, &subject.with(attached), &[]).await,
        Err(error) => Err(error),
    };
    // Where there is none, nothing is left to delete; S3 itself says success.
    let error = deleted.err().filter(|error| error.code() != Some("NoSuchKey"))?;
    let code = error.code().unwrap_or(error.kind().as_str()).to_owned();
    Some(DeleteFailure { key, version_id, code, message: error.to_string() })
}

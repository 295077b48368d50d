//! DELETE: one object, or many in batches.

use std::sync::Arc;

use super::Engine;
use super::request::{Call, Subject, head_only, sha256};
use super::workers::run_together;
use crate::error::{Error, ErrorKind, Result};
use crate::wire::checksum::content_md5;
use crate::wire::request::Method;
use crate::wire::xml::{is_representable, parse_delete_result, write_delete_objects};

pub use crate::wire::xml::DeleteFailure;

/// The most keys that one DeleteObjects may name.
const BATCH: usize = 1000;

/// An answer in quiet mode names the failures alone; at worst, all of the batch.
const ANSWER_BYTES: usize = 8 << 20;

/// Deletes one object. Deleting what does not exist succeeds, as in S3.
pub(crate) async fn delete(engine: &Arc<Engine>, bucket: &str, key: &str) -> Result<()> {
    engine.keep_house();
    let subject = Subject::key(engine, "delete", bucket, key)?;
    engine.ask(&subject, &Call::new(Method::Delete), ANSWER_BYTES, |_| (), head_only).await
}

/// Deletes many objects and returns those that the server would not delete.
pub(crate) async fn delete_many(engine: &Arc<Engine>, bucket: &str, keys: Vec<String>) -> Result<Vec<DeleteFailure>> {
    engine.keep_house();
    let subject = Subject::bucket(engine, "delete", bucket)?;
    // XML cannot carry some keys; those are deleted by a request of their own.
    let (batched, single): (Vec<_>, Vec<_>) = keys.into_iter().partition(|key| is_representable(key));
    let batches = batched.chunks(BATCH).map(<[String]>::to_vec).collect::<Vec<_>>().into_iter();
    let singles = single.into_iter();
    let workers = engine.pace.workers(batches.len() + singles.len());
    let work = Arc::new(std::sync::Mutex::new((batches, singles)));
    let crew = (0..workers).map(|_| {
        let (engine, subject, work) = (Arc::clone(engine), subject.clone(), Arc::clone(&work));
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
                    (Some(batch), _) => failures.extend(delete_batch(&engine, &subject, &batch).await?),
                    (None, Some(key)) => {
                        let failed = delete(&engine, &subject.bucket, &key).await.err();
                        failures.extend(failed.map(|error| as_failure(key, &error)));
                    }
                    (None, None) => return Ok(failures),
                }
            }
        }
    });
    let failures = run_together(async { Ok(Vec::new()) }, crew).await?;
    Ok(failures.into_iter().flatten().collect())
}

async fn delete_batch(engine: &Arc<Engine>, subject: &Subject, keys: &[String]) -> Result<Vec<DeleteFailure>> {
    let mut body = Vec::new();
    write_delete_objects(&mut body, keys.iter().map(String::as_str), true)
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

fn as_failure(key: String, error: &Error) -> DeleteFailure {
    DeleteFailure { key, code: error.code().unwrap_or(error.kind().as_str()).to_owned(), message: error.to_string() }
}

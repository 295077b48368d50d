//! Proof that an object is stored, for a caller who deletes what it was made of.
//!
//! The usual answers are proof by themselves and cost no request: S3 repeats the checksum that an upload sent, and the
//! entity tag of a copy or of an object in parts follows from the tags that it was made of. Where an answer only says
//! that all went well (an upload without a checksum, a server that repeats none, an entity tag made with a key of KMS),
//! the object is asked for, and must have the size and the entity tag that the answer named.

use std::sync::Arc;

use super::Engine;
use super::head::head_as;
use super::request::Subject;
use crate::error::{Error, ErrorKind, Result};

/// Asks for an object that an answer says is stored.
///
/// # Errors
/// [`ErrorKind::Integrity`] where the server has no such object, or another; those of the HEAD where it fails.
pub(super) async fn confirm(engine: &Arc<Engine>, subject: &Subject, size: Option<u64>, etag: &str) -> Result<()> {
    let found = match head_as(engine, subject, &[]).await {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(refuted(subject, "it does not have the object".to_owned()));
        }
        Err(error) => {
            let message = format!("the object was written, but a HEAD to confirm that failed: {}", error.message());
            let mut unknown = Error::new(error.kind(), message).with_hint("check that the object may be read");
            if let Some(status) = error.status() {
                let (code, request_id) = (error.code().map(str::to_owned), error.request_id().map(str::to_owned));
                unknown = unknown.with_response(status, code, request_id);
            }
            return Err(subject.explain(unknown.with_effort(error.attempts(), error.elapsed())));
        }
    };
    if size.is_some_and(|size| size != found.size) {
        let (sent, size) = (size.unwrap_or_default(), found.size);
        return Err(refuted(subject, format!("its object has {size} bytes instead of {sent}")));
    }
    match found.etag {
        Some(there) if is_same(&there, etag) => Ok(()),
        Some(there) => Err(refuted(subject, format!("its object has the ETag {there} instead of {etag}"))),
        // Some servers name it for reads and writes, and not here.
        None if size.is_some() => Ok(()),
        None => Err(refuted(subject, "it names no ETag of the object".to_owned())),
    }
}

/// Returns whether two entity tags are the same: some servers write one with quotes in one place and without in another.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one.trim_matches('"') == other.trim_matches('"')
}

fn refuted(subject: &Subject, why: String) -> Error {
    let message = format!("the server answered success, but {why}");
    subject.explain(Error::new(ErrorKind::Integrity, message).with_hint("check what is there, and write it again"))
}

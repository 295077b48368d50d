//! A write whose answer was lost, and whose next attempt finds its condition broken, or its upload gone:
//! by somebody else, or by the first attempt itself, which worked.
//!
//! Told apart by what is there: an object of the size and with the entity tag that what was sent
//! must have is the one that was sent, or one that differs from it in no byte. Where the tag is no
//! MD5 (some servers; objects encrypted by KMS or with a customer's key, and those of directory buckets,
//! where it only looks like one), nobody can tell, and the error says that.

use std::sync::Arc;

use md5::{Digest as _, Md5};

use super::Engine;
use super::head::{ObjectInfo, head_as};
use super::refusal::Failure;
use super::request::Subject;
use crate::error::{Error, ErrorKind};

/// Whether an attempt may have worked although it failed.
#[derive(Default)]
pub(crate) struct LostAnswer(bool);

impl LostAnswer {
    /// Remembers a failure that does not say that nothing was done: neither one before the request could
    /// be sent, nor a refusal. An error inside a 200 came after the work had begun.
    pub(crate) fn note(&mut self, failure: &Failure) {
        let status = failure.error.status();
        self.0 |= !failure.unsent && status.is_none_or(|status| status == 200 || status >= 500 && status != 503);
    }

    /// Whether the answer to an attempt was lost.
    pub(crate) fn happened(&self) -> bool {
        self.0
    }

    /// Whether `error` may be the work of an earlier attempt.
    pub(crate) fn may_explain(&self, error: &Error) -> bool {
        self.0 && (error.status() == Some(412) || error.code() == Some("PreconditionFailed"))
    }
}

/// What is there, where it is what was sent: `etag` is the tag that it must have, where that is
/// known.
///
/// # Errors
/// `error` itself where something else is there, or one that says that it cannot be told.
pub(crate) async fn find(
    engine: &Arc<Engine>,
    subject: &Subject,
    error: Error,
    size: Option<u64>,
    etag: impl AsyncFnOnce() -> Option<String>,
) -> Result<ObjectInfo, Error> {
    let is_gone = error.kind() == ErrorKind::NotFound;
    let found = match head_as(engine, subject, &[]).await {
        Ok(found) => found,
        // Neither the upload nor an object that it became.
        Err(missing) if is_gone && missing.kind() == ErrorKind::NotFound => return Err(error),
        Err(_) => return Err(unknown(error)),
    };
    if size.is_some_and(|size| found.size != size) {
        return Err(error);
    }
    let there = found.etag.as_deref().map(|etag| etag.trim_matches('"').to_ascii_lowercase());
    match (there, etag().await) {
        (Some(there), Some(sent)) if there == sent => Ok(found),
        (Some(there), Some(_)) if is_md5(&there) && !has_opaque_tag(subject, &found) => Err(error),
        _ => Err(unknown(error)),
    }
}

/// Whether an MD5 for an entity tag would be chance.
fn has_opaque_tag(subject: &Subject, found: &ObjectInfo) -> bool {
    let by_kms = found.server_side_encryption.as_deref().is_some_and(|by| by.starts_with("aws:kms"));
    by_kms || subject.has_opaque_tags()
}

fn unknown(error: Error) -> Error {
    let (kind, message) = match error.kind() {
        ErrorKind::NotFound => (
            ErrorKind::NotFound,
            "the upload is gone, and it cannot be told why: the answer to an earlier attempt to complete it was lost, \
             so the object that is there may be the one that was sent",
        ),
        _ => (
            ErrorKind::Precondition,
            "the condition does not hold, and it cannot be told why: the answer to an earlier attempt was \
             lost, so the object that is there may be the one that was sent",
        ),
    };
    let (status, code) = (error.status().unwrap_or(412), error.code().map(str::to_owned));
    let request_id = error.request_id().map(str::to_owned);
    Error::new(kind, message).with_response(status, code, request_id).with_hint("read the object and compare")
}

/// Whether an entity tag, without its quotes, looks like an MD5, alone or of a number of parts.
fn is_md5(etag: &str) -> bool {
    let digits = etag.split_once('-').map_or(etag, |(digits, _)| digits);
    digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The entity tag of an object of these bytes that was sent in one request.
pub(crate) async fn etag_of(body: &[u8]) -> String {
    let mut md5 = Md5::new();
    for piece in body.chunks(1 << 20) {
        md5.update(piece);
        tokio::task::yield_now().await;
    }
    hexadecimal(&md5.finalize())
}

/// The entity tag of an object of these parts; none where one of theirs is no MD5.
pub(crate) fn etag_of_parts<'a>(etags: impl ExactSizeIterator<Item = &'a str>) -> Option<String> {
    let count = etags.len();
    let mut md5 = Md5::new();
    for etag in etags {
        let digits = etag.trim_matches('"');
        if !is_md5(digits) || digits.len() != 32 {
            return None;
        }
        for pair in digits.as_bytes().chunks_exact(2) {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            md5.update([(digit(pair[0])? << 4 | digit(pair[1])?) as u8]);
        }
    }
    Some(format!("{}-{count}", hexadecimal(&md5.finalize())))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::NetFailure;

    #[tokio::test]
    async fn entity_tags_are_those_that_s3_computes() {
        assert_eq!(etag_of(b"").await, "d41d8cd98f00b204e9800998ecf8427e");
        // The MD5 of the two binary digests, as `md5sum` gives it.
        let part = "\"d41d8cd98f00b204e9800998ecf8427e\"";
        let two = etag_of_parts([part, part].into_iter()).unwrap();
        let digest = Md5::digest(Md5::digest(b"").repeat(2));
        assert_eq!(two, format!("{}-2", hexadecimal(&digest)));
        assert_eq!(etag_of_parts(["\"abc\"", part].into_iter()), None);
    }

    #[test]
    fn only_what_may_have_worked_casts_doubt() {
        let refused = Error::new(ErrorKind::Precondition, "no").with_response(412, None, None);
        let mut lost = LostAnswer::default();
        lost.note(&Failure::unsent(NetFailure::Trust("no connection".to_owned())));
        assert!(!lost.may_explain(&refused), "nothing was sent");
        for (status, doubt) in
            [(Some(409), false), (Some(503), false), (Some(500), true), (Some(200), true), (None, true)]
        {
            let mut lost = LostAnswer::default();
            let error = Error::new(ErrorKind::Connection, "failed");
            let error = match status {
                Some(status) => error.with_response(status, None, None),
                None => error,
            };
            lost.note(&Failure::never(error));
            assert_eq!(lost.may_explain(&refused), doubt, "{status:?}");
        }
        assert!(!LostAnswer::default().may_explain(&refused));
    }
}

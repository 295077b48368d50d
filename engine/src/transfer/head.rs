//! HEAD: what the server says of an object, without its bytes.

use std::sync::Arc;

use jiff::Timestamp;

use super::Engine;
use super::checksum::Verified;
use super::request::{Call, Subject, head_only};
use crate::error::Result;
use crate::wire::checksum::Checksum;
use crate::wire::request::Method;
use crate::wire::response::ResponseHead;

/// The prefix of the headers that carry a user's own metadata.
const METADATA: &str = "x-amz-meta-";

/// What the server says of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectInfo {
    /// The size of the whole object, in bytes.
    pub size: u64,
    /// The entity tag, with its quotes, byte for byte as the server sent it.
    pub etag: Option<String>,
    /// The version, where the bucket keeps versions.
    pub version_id: Option<String>,
    /// When the object was last written.
    pub last_modified: Option<Timestamp>,
    /// The media type that was given on upload.
    pub content_type: Option<String>,
    /// The storage class, where it is not the standard one.
    pub storage_class: Option<String>,
    /// The checksum that the server keeps of it, where it was told: with whole downloads.
    pub checksum: Option<Checksum>,
    /// Whether what was downloaded was compared with it.
    pub verified: Verified,
    /// The user's own metadata: names in lower case without `x-amz-meta-`, and values.
    pub metadata: Vec<(String, String)>,
}

impl ObjectInfo {
    pub(crate) fn of(head: &ResponseHead<'_>, size: u64) -> ObjectInfo {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let metadata = head.headers().filter_map(|(name, value)| {
            let (prefix, rest) = name.split_at_checked(METADATA.len())?;
            prefix.eq_ignore_ascii_case(METADATA).then(|| (rest.to_ascii_lowercase(), text(value)))
        });
        ObjectInfo {
            size,
            etag: head.etag.map(str::to_owned),
            version_id: head.version_id.map(str::to_owned),
            last_modified: head.last_modified.and_then(parse_http_date),
            content_type: head.content_type.map(str::to_owned),
            storage_class: head.header("x-amz-storage-class").map(text),
            checksum: None,
            verified: Verified::default(),
            metadata: metadata.collect(),
        }
    }
}

/// `Wed, 21 Oct 2015 07:28:00 GMT`, RFC 9110 section 5.6.7; what is not one is no date.
pub(super) fn parse_http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}

/// HEADs one object.
pub(crate) async fn head(engine: &Arc<Engine>, bucket: &str, key: &str) -> Result<ObjectInfo> {
    engine.keep_house();
    let subject = Subject::key(engine, "head", bucket, key)?;
    head_as(engine, &subject).await
}

/// The same on behalf of another operation, whose name then stands in errors.
pub(crate) async fn head_as(engine: &Arc<Engine>, subject: &Subject) -> Result<ObjectInfo> {
    let call = Call::new(Method::Head);
    let read = |head: &ResponseHead<'_>| ObjectInfo::of(head, head.content_length.unwrap_or(0));
    engine.ask(subject, &call, 0, read, head_only).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_as_http_writes_them() {
        let parsed = parse_http_date("Wed, 21 Oct 2015 07:28:00 GMT").unwrap();
        assert_eq!(parsed.to_string(), "2015-10-21T07:28:00Z");
        assert_eq!(parse_http_date("yesterday"), None);
    }
}

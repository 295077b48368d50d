//! What is copied: how a request names it, what keeps it what it was, and what is taken from it.

use std::sync::Arc;

use super::ANSWER_BYTES;
use crate::error::Result;
use crate::transfer::Engine;
use crate::transfer::head::ObjectInfo;
use crate::transfer::options::{Fields, SseCustomerKey, http_date};
use crate::transfer::put_options::PutOptions;
use crate::transfer::request::{Call, Subject};
use crate::wire::etag::is_strong;
use crate::wire::request::Method;
use crate::wire::uri::{encode_path, encode_query};
use crate::wire::xml::parse_tagging;

/// What is copied.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) bucket: String,
    pub(super) key: String,
    pub(super) version_id: Option<String>,
    pub(super) size: Option<u64>,
    /// `if-match` and the like, without their prefix.
    pub(super) conditions: Fields,
    pub(super) customer_key: Option<SseCustomerKey>,
    pub(super) expected_owner: Option<String>,
}

impl Source {
    /// Whether it is one that was listed and nothing else: its entity tag is what its parts are pinned to.
    pub(super) fn is_known(&self) -> bool {
        let mut conditions = self.conditions.iter();
        matches!((conditions.next(), conditions.next()), (Some(("if-match", etag)), None) if is_strong(etag))
    }

    /// The entity tag that it must have, where the caller names one.
    pub(super) fn etag(&self) -> Option<&str> {
        self.conditions.iter().find(|(name, _)| *name == "if-match").map(|(_, etag)| etag)
    }

    /// What there is to know of it without asking.
    pub(super) fn as_known(&self, size: u64) -> ObjectInfo {
        ObjectInfo { size, etag: self.etag().map(str::to_owned), ..ObjectInfo::default() }
    }

    /// The headers that name the source, with `conditions` on it.
    pub(super) fn headers(&self, conditions: &Fields) -> Fields {
        self.headers_of(self.version_id.as_deref(), conditions)
    }

    /// The same for a part, and whether something keeps the source what it was: its conditions held when
    /// it was asked for, and from then on it must stay. Where it has no tag that could say so, its version
    /// is named; where it has none, its time of modification is the last that is known of it.
    pub(super) fn pinned(&self, info: &ObjectInfo) -> (Fields, bool) {
        let mut conditions = Fields::default();
        let mut version_id = self.version_id.as_deref();
        if let Some(etag) = info.etag.as_deref().filter(|etag| is_strong(etag)) {
            conditions.push("if-match", etag);
        } else if let Some(found) = info.version_id.as_deref() {
            version_id = Some(found);
        } else if let Some(modified) = info.last_modified.and_then(http_date) {
            conditions.push("if-unmodified-since", modified);
        } else {
            return (self.headers(&self.conditions), version_id.is_some());
        }
        (self.headers_of(version_id, &conditions), true)
    }

    fn headers_of(&self, version_id: Option<&str>, conditions: &Fields) -> Fields {
        let mut fields = Fields::default();
        fields.push("x-amz-copy-source", copy_source(&self.bucket, &self.key, version_id));
        for (name, value) in conditions.iter() {
            fields.push(format!("x-amz-copy-source-{name}"), value);
        }
        if let Some(key) = &self.customer_key {
            key.push_as_source(&mut fields);
        }
        fields.push_some("x-amz-source-expected-bucket-owner", self.expected_owner.as_deref());
        fields
    }
}

/// `bucket/key?versionId=…`, all of it percent-encoded but the slashes; for an access point
/// `ARN/object/key`.
fn copy_source(bucket: &str, key: &str, version_id: Option<&str>) -> String {
    let mut text = Vec::new();
    encode_path(&mut text, bucket);
    text.extend_from_slice(if bucket.starts_with("arn:") { b"/object/" } else { b"/" });
    encode_path(&mut text, key);
    if let Some(version_id) = version_id {
        text.extend_from_slice(b"?versionId=");
        encode_query(&mut text, version_id);
    }
    // Percent-encoded, so it is ASCII.
    String::from_utf8_lossy(&text).into_owned()
}

/// What CopyObject would take from the source.
pub(super) fn describe_as(options: &mut PutOptions, info: &ObjectInfo) {
    options.content_type.clone_from(&info.content_type);
    options.content_encoding.clone_from(&info.content_encoding);
    options.content_disposition.clone_from(&info.content_disposition);
    options.content_language.clone_from(&info.content_language);
    options.cache_control.clone_from(&info.cache_control);
    options.expires.clone_from(&info.expires);
    options.metadata.clone_from(&info.metadata);
}

/// The source's tags. Who may not read them, or a server that has none, copies none; but where the
/// source is known to have some, losing them is an error.
pub(super) async fn tags_of(
    engine: &Arc<Engine>,
    source: &Subject,
    info: &ObjectInfo,
) -> Result<Vec<(String, String)>> {
    if info.tag_count == Some(0) {
        return Ok(Vec::new());
    }
    let call = Call { query: &[("tagging", "")], ..Call::new(Method::Get) };
    match engine.ask(source, &call, ANSWER_BYTES, |_| (), |answer, ()| parse_tagging(&answer)).await {
        Ok(tags) => Ok(tags),
        Err(error) if info.tag_count.is_some() => {
            Err(error
                .with_hint("the source's tags cannot be read; give the copy tags of its own, or replace them by none"))
        }
        Err(error) if error.status().is_some() => {
            tracing::debug!(%error, "the source's tags cannot be read; the copy gets none");
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_named_so_that_any_key_survives() {
        for (key, named) in [
            ("a/b", "bucket/a/b"),
            ("a b+c%25?x=1&y#z", "bucket/a%20b%2Bc%2525%3Fx%3D1%26y%23z"),
            ("../é", "bucket/../%C3%A9"),
            ("/lead", "bucket//lead"),
        ] {
            assert_eq!(copy_source("bucket", key, None), named);
        }
        assert_eq!(copy_source("bucket", "k", Some("a&b=")), "bucket/k?versionId=a%26b%3D");
        let arn = "arn:aws:s3:eu-west-1:123456789012:accesspoint/p";
        assert_eq!(copy_source(arn, "k", None), "arn%3Aaws%3As3%3Aeu-west-1%3A123456789012%3Aaccesspoint/p/object/k");
    }
}

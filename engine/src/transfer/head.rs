//! HEAD: what the server says of an object, without its bytes.

use std::sync::Arc;

use jiff::Timestamp;

use super::Engine;
use super::checksum::{CHECKSUM_MODE, Verified};
use super::opening::Wanted;
use super::options::sent_by_await;
use super::read_options::{ReadOptions, read_methods, version_method};
use super::request::{Attempts, Call, Subject, head_only};
use super::version::accept_range;
use crate::error::Result;
use crate::wire::checksum::Checksum;
use crate::wire::etag::is_strong;
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
    /// How the bytes are encoded, as `gzip`. They come as they are stored.
    pub content_encoding: Option<String>,
    /// How a browser should present the object.
    pub content_disposition: Option<String>,
    /// The language that the content is in.
    pub content_language: Option<String>,
    /// How caches may keep the object.
    pub cache_control: Option<String>,
    /// When caches should ask again, as the server wrote it.
    pub expires: Option<String>,
    /// What encrypted it: `AES256`, `aws:kms`; a customer's own key is not told here.
    pub server_side_encryption: Option<String>,
    /// The key of KMS that encrypted it.
    pub kms_key_id: Option<String>,
    /// How many tags it has, where the server tells.
    pub tag_count: Option<u32>,
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
        let mut info = ObjectInfo {
            size,
            etag: head.etag.map(str::to_owned),
            version_id: head.version_id.map(str::to_owned),
            last_modified: head.last_modified.and_then(parse_http_date),
            content_type: head.content_type.map(str::to_owned),
            ..ObjectInfo::default()
        };
        for (name, value) in head.headers() {
            info.take(name, value);
        }
        info
    }

    /// Names of different headers mostly differ in length: one comparison decides.
    fn take(&mut self, name: &str, value: &[u8]) {
        let is = |expected: &str| name.eq_ignore_ascii_case(expected);
        let text = || String::from_utf8_lossy(value).into_owned();
        let field = match name.len() {
            7 if is("expires") => &mut self.expires,
            13 if is("cache-control") => &mut self.cache_control,
            16 if is("content-encoding") => &mut self.content_encoding,
            16 if is("content-language") => &mut self.content_language,
            19 if is("content-disposition") => &mut self.content_disposition,
            19 if is("x-amz-storage-class") => &mut self.storage_class,
            19 if is("x-amz-tagging-count") => {
                self.tag_count = text().parse().ok();
                return;
            }
            28 if is("x-amz-server-side-encryption") => &mut self.server_side_encryption,
            43 if is("x-amz-server-side-encryption-aws-kms-key-id") => &mut self.kms_key_id,
            _ => {
                if let Some((prefix, rest)) = name.split_at_checked(METADATA.len())
                    && prefix.eq_ignore_ascii_case(METADATA)
                {
                    self.metadata.push((rest.to_ascii_lowercase(), text()));
                }
                return;
            }
        };
        if field.is_none() {
            *field = Some(text());
        }
    }
}

/// `Wed, 21 Oct 2015 07:28:00 GMT`, RFC 9110 section 5.6.7; what is not one is no date.
pub(super) fn parse_http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}

/// A HEAD that has not been sent; made by [`Client::head`](crate::Client::head), sent by `await`.
#[must_use = "nothing is sent until it is awaited"]
pub struct Head {
    engine: Arc<Engine>,
    bucket: String,
    key: String,
    options: ReadOptions,
    checksum: bool,
}

read_methods!(Head);
version_method!(Head, this => this.options.version_id);
sent_by_await!(Head, ObjectInfo);

impl Head {
    pub(crate) fn new(engine: Arc<Engine>, bucket: String, key: String) -> Head {
        Head { engine, bucket, key, options: ReadOptions::default(), checksum: false }
    }

    /// Asks for [`ObjectInfo::checksum`] too. Of an object that a key of KMS encrypted, that takes the permission to
    /// decrypt it (`kms:Decrypt`).
    pub fn checksum(mut self) -> Head {
        self.checksum = true;
        self
    }

    async fn send(self) -> Result<ObjectInfo> {
        let Head { engine, bucket, key, options, checksum } = self;
        engine.keep_house();
        let (attached, mut conditions) = options.split();
        if checksum {
            conditions.push(CHECKSUM_MODE.0, CHECKSUM_MODE.1);
        }
        let subject = Subject::key(&engine, "head", &bucket, &key)?.with(attached);
        ask(&engine, &subject, &conditions.borrowed()).await
    }
}

/// HEADs an object on behalf of another operation, whose name then stands in errors.
pub(crate) async fn head_as(
    engine: &Arc<Engine>,
    subject: &Subject,
    conditions: &[(&str, &str)],
) -> Result<ObjectInfo> {
    ask(engine, subject, conditions).await
}

async fn ask(engine: &Arc<Engine>, subject: &Subject, headers: &[(&str, &str)]) -> Result<ObjectInfo> {
    let call = Call { headers, ..Call::new(Method::Head) };
    let read = |head: &ResponseHead<'_>| {
        let checksum = Checksum::in_head(head).filter(|checksum| engine.oddities.is_checksum(subject, checksum));
        let info = ObjectInfo { checksum, ..ObjectInfo::of(head, head.content_length.unwrap_or(0)) };
        (info, head.content_length.is_some())
    };
    let (mut info, is_measured) = engine.ask(subject, &call, 0, read, head_only).await?;
    if !is_measured {
        info.size = Box::pin(size_by_reading(engine, subject, headers, &info)).await?;
    }
    Ok(info)
}

/// Asks for one byte of an object whose HEAD did not say how long it is: the answer to that does.
async fn size_by_reading(
    engine: &Arc<Engine>,
    subject: &Subject,
    headers: &[(&str, &str)],
    info: &ObjectInfo,
) -> Result<u64> {
    let mut headers = headers.to_vec();
    headers.push(("range", "bytes=0-0"));
    if let Some(etag) = info.etag.as_deref().filter(|etag| is_strong(etag))
        && !headers.iter().any(|(name, _)| *name == "if-match")
    {
        headers.push(("if-match", etag));
    }
    let call = Call { headers: &headers, ..Call::new(Method::Get) };
    let mut attempts = Attempts::new();
    loop {
        attempts.begin();
        // The connection is dropped with what it brings beyond the head.
        let mut kept = None;
        let read = |head: &ResponseHead<'_>| Ok(accept_range(head, &(0..1), None, None)?.size);
        match engine.exchange(subject, &call, &attempts, &mut kept, read).await {
            Ok((_, size)) => return Ok(size),
            Err(failure) if Wanted::Range(0..1).is_refused_for_good(&failure) => return Ok(0),
            Err(failure) => attempts.after(engine, failure).await.map_err(|failure| subject.explain(failure.error))?,
        }
    }
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

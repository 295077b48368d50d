//! ListObjects, in both versions.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};

use super::Protocol;
use super::reply::{etag, owner};
use crate::store::listing::{Page, Query, Start};

/// The most keys and common prefixes of one page, as in S3.
const PAGE: i32 = 1000;

/// What `encoding-type=url` leaves as it is.
const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/').remove(b'*');

impl Protocol {
    pub(super) async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let input = request.input;
        let bucket = self.bucket(&input.bucket)?;
        let encoding = Encoding::of(input.encoding_type.as_ref())?;
        let limit = limit(input.max_keys)?;
        let prefix = input.prefix.unwrap_or_default();
        let mut query =
            Query { prefix: &prefix, delimiter: input.delimiter.as_deref(), start: None, limit: limit as usize };
        query.start = match (&input.continuation_token, &input.start_after) {
            (Some(token), _) => Some(decode_token(token)?),
            (None, Some(key)) if !key.is_empty() => Some(query.start_after(key)),
            (None, _) => None,
        };
        let page = bucket.page(&query);
        let owner = input.fetch_owner.unwrap_or(false);
        let output = ListObjectsV2Output {
            name: Some(input.bucket),
            prefix: Some(encoding.apply(&prefix)),
            max_keys: Some(limit),
            key_count: Some((page.entries.len() + page.prefixes.len()) as i32),
            continuation_token: input.continuation_token,
            is_truncated: Some(page.next.is_some()),
            next_continuation_token: page.next.as_ref().map(encode_token),
            delimiter: input.delimiter.map(|delimiter| encoding.apply(&delimiter)),
            encoding_type: input.encoding_type,
            start_after: input.start_after.map(|key| encoding.apply(&key)),
            common_prefixes: Some(encoding.prefixes(&page)),
            contents: Some(encoding.contents(page, owner)),
            ..Default::default()
        };
        Ok(S3Response::new(output))
    }

    pub(super) async fn list_objects(
        &self,
        request: S3Request<ListObjectsInput>,
    ) -> S3Result<S3Response<ListObjectsOutput>> {
        let input = request.input;
        let bucket = self.bucket(&input.bucket)?;
        let encoding = Encoding::of(input.encoding_type.as_ref())?;
        let limit = limit(input.max_keys)?;
        let prefix = input.prefix.unwrap_or_default();
        let marker = input.marker.unwrap_or_default();
        let mut query =
            Query { prefix: &prefix, delimiter: input.delimiter.as_deref(), start: None, limit: limit as usize };
        query.start = (!marker.is_empty()).then(|| query.start_after(&marker));
        let page = bucket.page(&query);
        let next_marker = page.next.as_ref().map(|(Start::After(key) | Start::Past(key))| encoding.apply(key));
        let output = ListObjectsOutput {
            name: Some(input.bucket),
            prefix: Some(encoding.apply(&prefix)),
            marker: Some(encoding.apply(&marker)),
            max_keys: Some(limit),
            is_truncated: Some(page.next.is_some()),
            // As S3: without a delimiter the last key is the marker.
            next_marker: next_marker.filter(|_| input.delimiter.is_some()),
            delimiter: input.delimiter.map(|delimiter| encoding.apply(&delimiter)),
            encoding_type: input.encoding_type,
            common_prefixes: Some(encoding.prefixes(&page)),
            contents: Some(encoding.contents(page, true)),
            ..Default::default()
        };
        Ok(S3Response::new(output))
    }
}

/// How keys are written into the XML.
#[derive(Clone, Copy)]
pub(super) enum Encoding {
    Plain,
    Url,
}

impl Encoding {
    pub(super) fn of(encoding: Option<&EncodingType>) -> S3Result<Self> {
        match encoding.map(EncodingType::as_str) {
            None => Ok(Self::Plain),
            Some(EncodingType::URL) => Ok(Self::Url),
            Some(_) => Err(s3_error!(InvalidArgument, "Invalid Encoding Method specified in Request")),
        }
    }

    pub(super) fn apply(self, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Url => utf8_percent_encode(text, PLAIN).to_string(),
        }
    }

    fn prefixes(self, page: &Page) -> Vec<CommonPrefix> {
        page.prefixes.iter().map(|prefix| CommonPrefix { prefix: Some(self.apply(prefix)) }).collect()
    }

    fn contents(self, page: Page, with_owner: bool) -> Vec<Object> {
        let entries = page.entries.into_iter().map(|entry| Object {
            key: Some(self.apply(&entry.key)),
            size: Some(entry.size as i64),
            e_tag: Some(etag(&entry.etag)),
            last_modified: Some(entry.modified.into()),
            owner: with_owner.then(owner),
            storage_class: Some(match entry.storage_class {
                Some(class) => class.into(),
                None => ObjectStorageClass::from_static(ObjectStorageClass::STANDARD),
            }),
            ..Default::default()
        });
        entries.collect()
    }
}

pub(super) fn limit(asked: Option<i32>) -> S3Result<i32> {
    match asked {
        Some(asked) if asked < 0 => Err(s3_error!(InvalidArgument, "max-keys must not be negative")),
        asked => Ok(asked.unwrap_or(PAGE).min(PAGE)),
    }
}

/// A token is opaque to clients: a letter for the kind of start, then its key, in base64.
fn encode_token(start: &Start) -> String {
    let text = match start {
        Start::After(key) => format!("k{key}"),
        Start::Past(prefix) => format!("p{prefix}"),
    };
    URL_SAFE_NO_PAD.encode(text)
}

fn decode_token(token: &str) -> S3Result<Start> {
    let text = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let start = text.as_deref().and_then(|text| match text.split_at_checked(1)? {
        ("k", key) => Some(Start::After(key.to_owned())),
        ("p", prefix) if !prefix.is_empty() => Some(Start::Past(prefix.to_owned())),
        _ => None,
    });
    start.ok_or_else(|| s3_error!(InvalidArgument, "The continuation token provided is incorrect"))
}

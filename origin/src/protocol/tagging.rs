//! Tags: given with an upload, and read, replaced and removed by themselves.

use std::collections::BTreeMap;

use http::StatusCode;
use percent_encoding::percent_decode_str;
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};

use super::reply::{error_called, refused};
use super::{Protocol, writable};

/// The most tags of one object, as in S3.
const MOST: usize = 10;

impl Protocol {
    pub(super) async fn get_object_tagging(
        &self,
        request: S3Request<GetObjectTaggingInput>,
    ) -> S3Result<S3Response<GetObjectTaggingOutput>> {
        let input = request.input;
        let object = self.find(&input.bucket, &input.key, input.version_id.as_deref())?;
        let tags =
            object.head.tags.iter().map(|(key, value)| Tag { key: Some(key.clone()), value: Some(value.clone()) });
        let output = GetObjectTaggingOutput { tag_set: tags.collect(), version_id: object.version.clone() };
        Ok(S3Response::new(output))
    }

    pub(super) async fn put_object_tagging(
        &self,
        request: S3Request<PutObjectTaggingInput>,
    ) -> S3Result<S3Response<PutObjectTaggingOutput>> {
        let input = request.input;
        let tags =
            input.tagging.tag_set.into_iter().map(|tag| (tag.key.unwrap_or_default(), tag.value.unwrap_or_default()));
        let tags = checked(tags.collect())?;
        let version_id = self.retag(&input.bucket, &input.key, input.version_id.as_deref(), tags)?;
        Ok(S3Response::new(PutObjectTaggingOutput { version_id }))
    }

    pub(super) async fn delete_object_tagging(
        &self,
        request: S3Request<DeleteObjectTaggingInput>,
    ) -> S3Result<S3Response<DeleteObjectTaggingOutput>> {
        let input = request.input;
        let version_id = self.retag(&input.bucket, &input.key, input.version_id.as_deref(), BTreeMap::new())?;
        let mut response = S3Response::new(DeleteObjectTaggingOutput { version_id });
        response.status = Some(StatusCode::NO_CONTENT);
        Ok(response)
    }

    fn retag(
        &self,
        bucket: &str,
        key: &str,
        version: Option<&str>,
        tags: BTreeMap<String, String>,
    ) -> S3Result<Option<String>> {
        let object = self.find(bucket, key, version)?;
        let bucket = self.bucket(bucket)?;
        let altered = writable(&bucket)?.alter(key, &object, |object| object.head.tags = tags).map_err(refused)?;
        Ok(altered.version.clone())
    }
}

/// The tags of a header: `key=value&key=value`, percent-encoded.
pub(super) fn parse(header: Option<String>) -> S3Result<BTreeMap<String, String>> {
    let header = header.unwrap_or_default();
    let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let pairs = header.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    checked(pairs.map(|(key, value)| (decoded(key), decoded(value))).collect())
}

fn checked(pairs: Vec<(String, String)>) -> S3Result<BTreeMap<String, String>> {
    let count = pairs.len();
    let tags: BTreeMap<_, _> = pairs.into_iter().collect();
    let long = tags.iter().any(|(key, value)| key.is_empty() || key.len() > 128 || value.len() > 256);
    if tags.len() != count || long {
        return Err(s3_error!(InvalidTag, "The tags are not valid: keys differ, and have 1 to 128 bytes"));
    }
    if count > MOST {
        return Err(error_called("BadRequest", StatusCode::BAD_REQUEST, "Object tags cannot be greater than 10"));
    }
    Ok(tags)
}

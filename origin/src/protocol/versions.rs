//! Keeping versions: turning that on and off, finding one, listing them.

use std::sync::Arc;

use http::StatusCode;
use http::header::HeaderName;
use s3s::dto::*;
use s3s::{S3ErrorCode, S3Request, S3Response, S3Result, s3_error};

use super::list::{Encoding, limit};
use super::reply::{error_with_headers, etag, no_such_key, owner};
use super::{Protocol, writable};
use crate::store::object;
use crate::store::versions::{Found, Listed, Versioning};

const MARKER: HeaderName = HeaderName::from_static("x-amz-delete-marker");
const VERSION: HeaderName = HeaderName::from_static("x-amz-version-id");

impl Protocol {
    /// The object under a key, or one version of it.
    pub(super) fn find(&self, bucket: &str, key: &str, version: Option<&str>) -> S3Result<Arc<object::Object>> {
        match (self.bucket(bucket)?.find_version(key, version), version) {
            (Found::Object(object), _) => Ok(object),
            (Found::Marker(id), None) => {
                let headers = [(MARKER, "true".to_owned()), (VERSION, id)];
                Err(error_with_headers(S3ErrorCode::NoSuchKey, "The specified key does not exist.", &headers))
            }
            (Found::Marker(id), Some(_)) => {
                let headers = [(MARKER, "true".to_owned()), (VERSION, id)];
                let message = "The specified method is not allowed against this resource.";
                let mut error = error_with_headers(S3ErrorCode::MethodNotAllowed, message, &headers);
                error.set_status_code(StatusCode::METHOD_NOT_ALLOWED);
                Err(error)
            }
            (Found::Nothing, None) => Err(no_such_key()),
            (Found::Nothing, Some(_)) => Err(s3_error!(NoSuchVersion, "The specified version does not exist.")),
        }
    }

    pub(super) async fn get_bucket_versioning(
        &self,
        request: S3Request<GetBucketVersioningInput>,
    ) -> S3Result<S3Response<GetBucketVersioningOutput>> {
        let status = match self.bucket(&request.input.bucket)?.versioning() {
            Versioning::Never => None,
            Versioning::Enabled => Some(BucketVersioningStatus::ENABLED),
            Versioning::Suspended => Some(BucketVersioningStatus::SUSPENDED),
        };
        let status = status.map(BucketVersioningStatus::from_static);
        Ok(S3Response::new(GetBucketVersioningOutput { status, ..Default::default() }))
    }

    pub(super) async fn put_bucket_versioning(
        &self,
        request: S3Request<PutBucketVersioningInput>,
    ) -> S3Result<S3Response<PutBucketVersioningOutput>> {
        let input = request.input;
        let bucket = self.bucket(&input.bucket)?;
        let enabled = match input.versioning_configuration.status.as_ref().map(BucketVersioningStatus::as_str) {
            Some(BucketVersioningStatus::ENABLED) => true,
            Some(BucketVersioningStatus::SUSPENDED) => false,
            _ => return Err(s3_error!(MalformedXML, "A versioning status is Enabled or Suspended")),
        };
        writable(&bucket)?.keep_versions(enabled);
        Ok(S3Response::new(PutBucketVersioningOutput::default()))
    }

    pub(super) async fn list_object_versions(
        &self,
        request: S3Request<ListObjectVersionsInput>,
    ) -> S3Result<S3Response<ListObjectVersionsOutput>> {
        let input = request.input;
        let bucket = self.bucket(&input.bucket)?;
        let encoding = Encoding::of(input.encoding_type.as_ref())?;
        let limit = limit(input.max_keys)?;
        let mut page = Page {
            prefix: input.prefix.unwrap_or_default(),
            delimiter: input.delimiter.clone().filter(|delimiter| !delimiter.is_empty()),
            key_marker: input.key_marker.clone().unwrap_or_default(),
            version_marker: input.version_id_marker.clone(),
            passed: false,
            limit: limit as usize,
            listed: Vec::new(),
            prefixes: Vec::new(),
            last: None,
            truncated: false,
        };
        let start = page.prefix.as_str().max(page.key_marker.as_str()).to_owned();
        bucket.each_version(&start, |versions| versions.into_iter().all(|version| page.take(version)));
        let (next_key_marker, next_version_id_marker) = page.last.clone().filter(|_| page.truncated).unzip();
        let mut output = ListObjectVersionsOutput {
            name: Some(input.bucket),
            prefix: Some(encoding.apply(&page.prefix)),
            delimiter: input.delimiter.map(|delimiter| encoding.apply(&delimiter)),
            key_marker: Some(encoding.apply(&page.key_marker)),
            version_id_marker: input.version_id_marker,
            max_keys: Some(limit),
            encoding_type: input.encoding_type,
            is_truncated: Some(page.truncated),
            next_key_marker: next_key_marker.as_deref().map(|key| encoding.apply(key)),
            next_version_id_marker: next_version_id_marker.filter(|id| !id.is_empty()),
            common_prefixes: Some(
                page.prefixes.iter().map(|prefix| CommonPrefix { prefix: Some(encoding.apply(prefix)) }).collect(),
            ),
            ..Default::default()
        };
        let (markers, versions): (Vec<_>, Vec<_>) = page.listed.into_iter().partition(|listed| listed.is_marker);
        let versions = versions.into_iter().map(|listed| ObjectVersion {
            key: Some(encoding.apply(&listed.entry.key)),
            version_id: Some(listed.id),
            is_latest: Some(listed.is_latest),
            last_modified: Some(listed.entry.modified.into()),
            e_tag: Some(etag(&listed.entry.etag)),
            size: Some(listed.entry.size as i64),
            owner: Some(owner()),
            storage_class: Some(match listed.entry.storage_class {
                Some(class) => class.into(),
                None => ObjectVersionStorageClass::from_static(ObjectVersionStorageClass::STANDARD),
            }),
            ..Default::default()
        });
        let markers = markers.into_iter().map(|listed| DeleteMarkerEntry {
            key: Some(encoding.apply(&listed.entry.key)),
            version_id: Some(listed.id),
            is_latest: Some(listed.is_latest),
            last_modified: Some(listed.entry.modified.into()),
            owner: Some(owner()),
        });
        output.versions = Some(versions.collect());
        output.delete_markers = Some(markers.collect());
        Ok(S3Response::new(output))
    }
}

/// One page of versions, as it fills.
struct Page {
    prefix: String,
    delimiter: Option<String>,
    key_marker: String,
    /// The page begins after this version of the key marker's; where there is none, after the whole key.
    version_marker: Option<String>,
    /// Whether that version came by.
    passed: bool,
    limit: usize,
    listed: Vec<Listed>,
    prefixes: Vec<String>,
    last: Option<(String, String)>,
    truncated: bool,
}

impl Page {
    /// Takes the next version; false once there is nothing more to take.
    fn take(&mut self, version: Listed) -> bool {
        let key = &version.entry.key;
        if !key.starts_with(&self.prefix) {
            return *key < self.prefix;
        }
        if *key == self.key_marker && !key.is_empty() {
            if self.passed {
                return self.add(version);
            }
            self.passed = self.version_marker.as_ref() == Some(&version.id);
            return true;
        }
        self.add(version)
    }

    fn add(&mut self, version: Listed) -> bool {
        let key = &version.entry.key;
        let rest = &key[self.prefix.len()..];
        let found = self.delimiter.as_deref().and_then(|delimiter| Some(rest.find(delimiter)? + delimiter.len()));
        let common = found.map(|end| key[..self.prefix.len() + end].to_owned());
        let known = |common: &String| self.prefixes.last() == Some(common) || *common == self.key_marker;
        if common.as_ref().is_some_and(known) {
            return true;
        }
        if self.listed.len() + self.prefixes.len() == self.limit {
            self.truncated = self.limit > 0;
            return false;
        }
        match common {
            Some(common) => {
                self.last = Some((common.clone(), String::new()));
                self.prefixes.push(common);
            }
            None => {
                self.last = Some((key.clone(), version.id.clone()));
                self.listed.push(version);
            }
        }
        true
    }
}

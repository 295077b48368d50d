//! CopyObject and UploadPartCopy, within this server.

use futures_util::StreamExt;
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};
use std::ops::Range;
use std::sync::Arc;

use super::conditions;
use super::encryption::{self, show_encryption};
use super::multipart::{no_such_upload, part_number, upload_of};
use super::reply::{etag, head_of, internal, refused};
use super::{Protocol, checksums, writable};
use crate::store::bucket::{Condition, Stored};
use crate::store::directory::drop_files;
use crate::store::intake::{Intake, Received};
use crate::store::object;
use crate::store::object::Algorithm;

/// The largest object that CopyObject takes: 5 GiB, as in S3.
const LARGEST: u64 = 5 << 30;

impl Protocol {
    pub(super) async fn copy_object(
        &self,
        mut request: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        let input = &mut request.input;
        let conditions = conditions::Read {
            if_match: input.copy_source_if_match.take(),
            if_none_match: input.copy_source_if_none_match.take(),
            if_modified_since: input.copy_source_if_modified_since.take(),
            if_unmodified_since: input.copy_source_if_unmodified_since.take(),
        };
        let source = self.source(&input.copy_source, conditions, encryption::source_customer!(input)?)?;
        if source.size > LARGEST {
            return Err(s3_error!(InvalidRequest, "An object above 5 GiB is copied in parts"));
        }
        let bucket = self.bucket(&input.bucket)?;
        let stored = writable(&bucket)?;
        let replace =
            input.metadata_directive.as_ref().is_some_and(|directive| directive.as_str() == MetadataDirective::REPLACE);
        let changes = replace || input.storage_class.is_some() || input.server_side_encryption.is_some();
        if !changes && is_itself(&input.copy_source, &input.bucket, &input.key) {
            return Err(s3_error!(
                InvalidRequest,
                "This copy request is illegal because it is trying to copy an object to itself without changing the \
                 object's metadata"
            ));
        }
        let asked = checksums::named(input.checksum_algorithm.as_ref())?;
        let algorithm = asked.or_else(|| source.checksum.as_ref().map(|checksum| checksum.algorithm));
        let retag =
            input.tagging_directive.as_ref().is_some_and(|directive| directive.as_str() == TaggingDirective::REPLACE);
        let mut head = head_of!(input);
        if !replace {
            // Its class and its encryption are never the source's.
            let object::Head { storage_class, encryption, tags, .. } = head;
            head = object::Head { storage_class, encryption, tags, ..source.head.clone() };
        }
        if !retag {
            head.tags = source.head.tags.clone();
        }
        let received = self.copy(stored, &source, 0..source.size, algorithm).await?;
        let object = object::Object {
            head,
            size: received.size,
            etag: received.etag,
            modified: object::now(),
            checksum: received.checksum,
            part_sizes: Vec::new(),
            version: None,
            content: received.content,
        };
        let content = object.content.clone();
        let object = stored.insert(&input.key, object, &Condition::None).map_err(|refusal| {
            drop_files(&content);
            refused(refusal)
        })?;
        let mut result = CopyObjectResult {
            e_tag: Some(etag(&object.etag)),
            last_modified: Some(object.modified.into()),
            ..Default::default()
        };
        checksums::show!(result, object.checksum.as_ref());
        let mut output = CopyObjectOutput {
            copy_object_result: Some(result),
            copy_source_version_id: source.version.clone(),
            version_id: object.version.clone(),
            ..Default::default()
        };
        show_encryption!(output, &object.head.encryption);
        Ok(S3Response::new(output))
    }

    pub(super) async fn upload_part_copy(
        &self,
        mut request: S3Request<UploadPartCopyInput>,
    ) -> S3Result<S3Response<UploadPartCopyOutput>> {
        let input = &mut request.input;
        let number = part_number(input.part_number)?;
        let conditions = conditions::Read {
            if_match: input.copy_source_if_match.take(),
            if_none_match: input.copy_source_if_none_match.take(),
            if_modified_since: input.copy_source_if_modified_since.take(),
            if_unmodified_since: input.copy_source_if_unmodified_since.take(),
        };
        let source = self.source(&input.copy_source, conditions, encryption::source_customer!(input)?)?;
        let range = match &input.copy_source_range {
            None => 0..source.size,
            Some(text) => copied_range(text, source.size)?,
        };
        let bucket = self.bucket(&input.bucket)?;
        let stored = writable(&bucket)?;
        let customer = encryption::customer!(input)?;
        let (algorithm, encryption) = upload_of(stored, &input.key, &input.upload_id)?;
        encryption::unlock(encryption.as_ref(), customer)?;
        let received = self.copy(stored, &source, range, algorithm).await?;
        let mut result = CopyPartResult {
            e_tag: Some(etag(&received.etag)),
            last_modified: Some(object::now().into()),
            ..Default::default()
        };
        checksums::show!(result, received.checksum.as_ref());
        if !stored.uploads.lock().add(&input.key, &input.upload_id, number, received) {
            return Err(no_such_upload());
        }
        let mut output = UploadPartCopyOutput {
            copy_part_result: Some(result),
            copy_source_version_id: source.version.clone(),
            ..Default::default()
        };
        show_encryption!(output, &encryption);
        Ok(S3Response::new(output))
    }

    fn source(
        &self,
        source: &CopySource,
        conditions: conditions::Read,
        customer: Option<String>,
    ) -> S3Result<Arc<object::Object>> {
        let CopySource::Bucket { bucket, key, version_id } = source else {
            return Err(s3_error!(NotImplemented, "A copy's source is BUCKET/KEY here: there are no access points"));
        };
        let object = self.find(bucket, key, version_id.as_deref())?;
        encryption::unlock(object.head.encryption.as_ref(), customer)?;
        // What a read answers with 304 a copy answers with 412.
        conditions.check(&object).map_err(|mut error| {
            if error.code().as_str() == "NotModified" {
                error = s3_error!(PreconditionFailed, "At least one of the pre-conditions you specified did not hold");
            }
            error
        })?;
        Ok(object)
    }

    async fn copy(
        &self,
        stored: &Stored,
        source: &object::Object,
        range: Range<u64>,
        algorithm: Option<Algorithm>,
    ) -> S3Result<Received> {
        let mut reader = source.content.read(range).map_err(internal)?;
        let mut intake = Intake::open(&stored.shelf, self.etag, false, algorithm).map_err(internal)?;
        while let Some(frame) = reader.next().await {
            intake.push(frame.map_err(internal)?).await.map_err(internal)?;
        }
        intake.finish().await.map_err(internal)
    }
}

fn is_itself(source: &CopySource, bucket: &str, key: &str) -> bool {
    matches!(source, CopySource::Bucket { bucket: from, key: source, version_id: None } if **from == *bucket && **source == *key)
}

/// A copied range names both its ends, inside the source.
fn copied_range(text: &str, size: u64) -> S3Result<Range<u64>> {
    let ends = text.strip_prefix("bytes=").and_then(|ends| ends.split_once('-'));
    let ends = ends.and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    match ends {
        Some((first, last)) if first <= last && last < size => Ok(first..last + 1),
        Some((_, last)) if last >= size => {
            Err(s3_error!(InvalidRange, "Range specified is not valid for source object of size: {size}"))
        }
        _ => Err(s3_error!(
            InvalidArgument,
            "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the \
             zero-based offsets of the first and last bytes to copy"
        )),
    }
}

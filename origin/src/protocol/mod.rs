//! The S3 operations, over the [`crate::store`].
//!
//! Owns what each operation means: conditions, ranges, errors, what is in the answer. Signatures, aws-chunked
//! bodies, XML and the mapping of requests to operations are the `s3s` crate's. One file a family of verbs; the
//! trait below only names which goes where.

mod buckets;
pub(crate) mod checksums;
mod conditions;
mod copy;
mod delete;
mod encryption;
mod get;
mod list;
mod multipart;
mod put;
mod reply;
mod session;
mod tagging;
mod versions;

pub(crate) use get::RangeIgnored;
pub(crate) use put::{broken_body, decode_md5};
pub(crate) use reply::error_called;

use std::sync::Arc;

use s3s::dto::*;
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};

use crate::access::Keys;
use crate::store::Store;
use crate::store::bucket::{Bucket, Kind, Stored};
use crate::store::intake::EtagKind;

/// The S3 operations of one server.
#[derive(Clone)]
pub(crate) struct Protocol {
    pub(crate) store: Arc<Store>,
    pub(crate) etag: EtagKind,
    /// The least size in bytes of any part but the last.
    pub(crate) least_part: u64,
    pub(crate) region: Arc<str>,
    pub(crate) keys: Keys,
    /// Computes CRC-64/NVME of uploads that bring no checksum, as S3 does.
    pub(crate) default_checksum: bool,
    /// Shows the checksum of a whole object with a range that covers it, as S3 does not.
    pub(crate) checksum_on_covering_range: bool,
}

impl Protocol {
    fn bucket(&self, name: &str) -> S3Result<Arc<Bucket>> {
        self.store.bucket(name).ok_or_else(|| s3_error!(NoSuchBucket, "The specified bucket does not exist"))
    }
}

/// The bucket as one that can be written to.
fn writable(bucket: &Bucket) -> S3Result<&Stored> {
    match &bucket.kind {
        Kind::Stored(stored) => Ok(stored),
        Kind::Synthetic(_) => {
            Err(s3_error!(AccessDenied, "{} is a synthetic bucket: it can only be read", bucket.name))
        }
    }
}

macro_rules! operations {
    ($($name:ident: $input:ident -> $output:ident;)*) => {
        #[async_trait::async_trait]
        impl S3 for Protocol {
            $(async fn $name(&self, request: S3Request<$input>) -> S3Result<S3Response<$output>> {
                self.$name(request).await
            })*
        }
    };
}

operations! {
    list_buckets: ListBucketsInput -> ListBucketsOutput;
    create_bucket: CreateBucketInput -> CreateBucketOutput;
    head_bucket: HeadBucketInput -> HeadBucketOutput;
    delete_bucket: DeleteBucketInput -> DeleteBucketOutput;
    get_bucket_location: GetBucketLocationInput -> GetBucketLocationOutput;
    get_bucket_versioning: GetBucketVersioningInput -> GetBucketVersioningOutput;
    put_bucket_versioning: PutBucketVersioningInput -> PutBucketVersioningOutput;
    create_session: CreateSessionInput -> CreateSessionOutput;
    list_object_versions: ListObjectVersionsInput -> ListObjectVersionsOutput;
    get_object_tagging: GetObjectTaggingInput -> GetObjectTaggingOutput;
    put_object_tagging: PutObjectTaggingInput -> PutObjectTaggingOutput;
    delete_object_tagging: DeleteObjectTaggingInput -> DeleteObjectTaggingOutput;
    list_objects: ListObjectsInput -> ListObjectsOutput;
    list_objects_v2: ListObjectsV2Input -> ListObjectsV2Output;
    get_object: GetObjectInput -> GetObjectOutput;
    head_object: HeadObjectInput -> HeadObjectOutput;
    put_object: PutObjectInput -> PutObjectOutput;
    copy_object: CopyObjectInput -> CopyObjectOutput;
    delete_object: DeleteObjectInput -> DeleteObjectOutput;
    delete_objects: DeleteObjectsInput -> DeleteObjectsOutput;
    create_multipart_upload: CreateMultipartUploadInput -> CreateMultipartUploadOutput;
    upload_part: UploadPartInput -> UploadPartOutput;
    upload_part_copy: UploadPartCopyInput -> UploadPartCopyOutput;
    complete_multipart_upload: CompleteMultipartUploadInput -> CompleteMultipartUploadOutput;
    abort_multipart_upload: AbortMultipartUploadInput -> AbortMultipartUploadOutput;
    list_parts: ListPartsInput -> ListPartsOutput;
    list_multipart_uploads: ListMultipartUploadsInput -> ListMultipartUploadsOutput;
}

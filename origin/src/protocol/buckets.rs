//! Operations on buckets.

use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};

use super::Protocol;
use super::reply::{internal, owner};
use crate::store::BucketRefusal;

impl Protocol {
    pub(super) async fn list_buckets(
        &self,
        request: S3Request<ListBucketsInput>,
    ) -> S3Result<S3Response<ListBucketsOutput>> {
        let input = request.input;
        let prefix = input.prefix.unwrap_or_default();
        // The token is the last bucket's name: names hold nothing that would have to be encoded.
        let after = input.continuation_token.unwrap_or_default();
        let buckets = self.store.buckets().into_iter();
        let mut buckets = buckets.filter(|bucket| bucket.name.starts_with(&prefix) && bucket.name > after);
        let limit = input.max_buckets.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let page: Vec<_> = buckets.by_ref().take(limit).collect();
        let last = page.last().map(|bucket| bucket.name.clone());
        let listed = page.into_iter().map(|bucket| Bucket {
            bucket_region: input.max_buckets.map(|_| self.region.to_string()),
            creation_date: Some(bucket.created.into()),
            name: Some(bucket.name.clone()),
        });
        let output = ListBucketsOutput {
            buckets: Some(listed.collect()),
            continuation_token: last.filter(|_| buckets.next().is_some()),
            owner: Some(owner()),
            ..Default::default()
        };
        Ok(S3Response::new(output))
    }

    pub(super) async fn create_bucket(
        &self,
        request: S3Request<CreateBucketInput>,
    ) -> S3Result<S3Response<CreateBucketOutput>> {
        let name = request.input.bucket;
        self.store.create(&name).map_err(refused)?;
        Ok(S3Response::new(CreateBucketOutput { location: Some(format!("/{name}")) }))
    }

    pub(super) async fn head_bucket(
        &self,
        request: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        self.bucket(&request.input.bucket)?;
        let output = HeadBucketOutput { bucket_region: Some(self.region.to_string()), ..Default::default() };
        Ok(S3Response::new(output))
    }

    pub(super) async fn delete_bucket(
        &self,
        request: S3Request<DeleteBucketInput>,
    ) -> S3Result<S3Response<DeleteBucketOutput>> {
        self.store.remove(&request.input.bucket).map_err(refused)?;
        Ok(S3Response::new(DeleteBucketOutput::default()))
    }

    pub(super) async fn get_bucket_location(
        &self,
        request: S3Request<GetBucketLocationInput>,
    ) -> S3Result<S3Response<GetBucketLocationOutput>> {
        self.bucket(&request.input.bucket)?;
        // S3's oldest region is named by saying nothing.
        let named = (&*self.region != "us-east-1").then(|| self.region.to_string().into());
        Ok(S3Response::new(GetBucketLocationOutput { location_constraint: named }))
    }
}

fn refused(refusal: BucketRefusal) -> s3s::S3Error {
    match refusal {
        BucketRefusal::Exists => s3_error!(
            BucketAlreadyOwnedByYou,
            "Your previous request to create the named bucket succeeded and you already own it."
        ),
        BucketRefusal::Missing => s3_error!(NoSuchBucket, "The specified bucket does not exist"),
        BucketRefusal::NotEmpty => s3_error!(BucketNotEmpty, "The bucket you tried to delete is not empty"),
        BucketRefusal::Io(error) => internal(error),
    }
}

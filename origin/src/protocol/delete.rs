//! DeleteObject and DeleteObjects.

use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};

use super::reply::refused;
use super::{Protocol, conditions, writable};
use crate::store::bucket::Condition;

/// The most keys of one DeleteObjects, as in S3.
const MOST: usize = 1000;

impl Protocol {
    pub(super) async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let input = request.input;
        let bucket = self.bucket(&input.bucket)?;
        let condition = conditions::of_write(input.if_match, None)?;
        let stored = writable(&bucket)?;
        let removed = stored.remove(&input.key, &condition, input.version_id.as_deref()).map_err(refused)?;
        let output = DeleteObjectOutput {
            delete_marker: removed.marker.then_some(true),
            version_id: removed.version,
            ..Default::default()
        };
        Ok(S3Response::new(output))
    }

    pub(super) async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let input = request.input;
        let bucket = self.bucket(&input.bucket)?;
        let stored = writable(&bucket)?;
        if input.delete.objects.is_empty() || input.delete.objects.len() > MOST {
            return Err(s3_error!(MalformedXML, "A DeleteObjects request names 1 to {MOST} keys"));
        }
        let quiet = input.delete.quiet.unwrap_or(false);
        let (mut deleted, mut errors) = (Vec::new(), Vec::new());
        for object in input.delete.objects {
            let condition = object.e_tag.map_or(Condition::None, |etag| Condition::Etag(etag.value().to_owned()));
            let (key, version_id) = (object.key, object.version_id);
            match stored.remove(&key, &condition, version_id.as_deref()).map_err(refused) {
                Ok(_) if quiet => {}
                Ok(removed) => deleted.push(DeletedObject {
                    key: Some(key),
                    delete_marker: removed.marker.then_some(true),
                    delete_marker_version_id: removed.version.filter(|_| removed.marker),
                    version_id,
                }),
                Err(error) => errors.push(Error {
                    code: Some(error.code().as_str().to_owned()),
                    message: error.message().map(str::to_owned),
                    key: Some(key),
                    version_id,
                }),
            }
        }
        let output = DeleteObjectsOutput { deleted: Some(deleted), errors: Some(errors), ..Default::default() };
        Ok(S3Response::new(output))
    }
}

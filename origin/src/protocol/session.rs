//! CreateSession: the short-lived keys of S3 Express.

use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};

use super::Protocol;
use crate::access::is_express;

impl Protocol {
    pub(super) async fn create_session(
        &self,
        request: S3Request<CreateSessionInput>,
    ) -> S3Result<S3Response<CreateSessionOutput>> {
        let bucket = request.input.bucket;
        self.bucket(&bucket)?;
        if !is_express(&bucket) {
            return Err(s3_error!(InvalidRequest, "{bucket} is no directory bucket: its name does not end in --x-s3"));
        }
        let session = self.keys.open_session();
        let credentials = SessionCredentials {
            access_key_id: session.access_key,
            secret_access_key: session.secret_key,
            session_token: session.token,
            expiration: session.expires.into(),
        };
        let output = CreateSessionOutput {
            credentials,
            bucket_key_enabled: None,
            server_side_encryption: None,
            ssekms_encryption_context: None,
            ssekms_key_id: None,
        };
        Ok(S3Response::new(output))
    }
}

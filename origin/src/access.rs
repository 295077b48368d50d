//! Who may ask: one pair of keys, and perhaps anybody.

use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::{S3Result, s3_error};

/// The one pair of keys that requests are signed with.
pub(crate) struct Keys {
    pub(crate) access_key: String,
    pub(crate) secret_key: SecretKey,
}

#[async_trait::async_trait]
impl S3Auth for Keys {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        if access_key == self.access_key {
            return Ok(self.secret_key.clone());
        }
        Err(s3_error!(InvalidAccessKeyId, "The AWS Access Key Id you provided does not exist in our records."))
    }
}

/// Whether requests without a signature are let in. One with a wrong signature never is.
pub(crate) struct Access {
    pub(crate) anonymous: bool,
}

#[async_trait::async_trait]
impl S3Access for Access {
    async fn check(&self, context: &mut S3AccessContext<'_>) -> S3Result<()> {
        if self.anonymous || context.credentials().is_some() {
            return Ok(());
        }
        Err(s3_error!(AccessDenied, "Access Denied"))
    }
}

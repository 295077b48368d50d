//! Who may ask: pairs of keys, some with a token that must come along, sessions of S3 Express, and perhaps anybody.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use http::StatusCode;
use parking_lot::RwLock;
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::{S3Result, s3_error};

use crate::document::Verified;
use crate::model::seeded::draw;
use crate::protocol::error_called;

/// How long a session of S3 Express is good for: 5 minutes, as in S3.
const SESSION: Duration = Duration::from_secs(300);

/// What the names of directory buckets end in.
const EXPRESS: &str = "--x-s3";

/// The operations on a directory bucket that are not asked for within a session.
const WITHOUT_SESSION: [&str; 7] =
    ["CreateSession", "CreateBucket", "DeleteBucket", "ListBuckets", "HeadBucket", "CopyObject", "UploadPartCopy"];

/// Whether a bucket is a directory bucket, of S3 Express.
pub(crate) fn is_express(bucket: &str) -> bool {
    bucket.ends_with(EXPRESS)
}

/// The keys that requests may be signed with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys(Arc<RwLock<HashMap<String, Key>>>);

struct Key {
    secret: SecretKey,
    /// What must come with every request.
    token: Option<String>,
    /// Where it must come.
    is_session: bool,
    expires: Option<SystemTime>,
}

/// Says nothing of the secret.
impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Key").field("expires", &self.expires).finish_non_exhaustive()
    }
}

/// A session that was opened.
pub(crate) struct Session {
    pub(crate) access_key: String,
    pub(crate) secret_key: String,
    pub(crate) token: String,
    pub(crate) expires: SystemTime,
}

impl Keys {
    pub(crate) fn add(&self, access_key: String, secret_key: String, token: Option<String>) {
        let key = Key { secret: secret_key.into(), token, is_session: false, expires: None };
        self.0.write().insert(access_key, key);
    }

    /// Lets a key expire: what is signed with it is answered `ExpiredToken`.
    pub(crate) fn expire(&self, access_key: &str) {
        if let Some(key) = self.0.write().get_mut(access_key) {
            key.expires = Some(SystemTime::UNIX_EPOCH);
        }
    }

    /// Lets every session expire.
    pub(crate) fn expire_sessions(&self) {
        for key in self.0.write().values_mut().filter(|key| key.is_session) {
            key.expires = Some(SystemTime::UNIX_EPOCH);
        }
    }

    pub(crate) fn open_session(&self) -> Session {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let seed = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos() as u64;
        let number = NEXT.fetch_add(1, Ordering::Relaxed).to_le_bytes();
        let text = |what: &str| format!("{:016X}", draw(seed, [what.as_bytes(), &number]));
        let session = Session {
            access_key: format!("ASIA{}", text("access")),
            secret_key: format!("{}{}", text("secret"), text("more")),
            token: format!("session-{}", text("token")),
            expires: SystemTime::now() + SESSION,
        };
        let key = Key {
            secret: session.secret_key.clone().into(),
            token: Some(session.token.clone()),
            is_session: true,
            expires: Some(session.expires),
        };
        self.0.write().insert(session.access_key.clone(), key);
        session
    }

    /// The secret of an access key.
    pub(crate) fn secret(&self, access_key: &str) -> Option<SecretKey> {
        self.0.read().get(access_key).map(|key| key.secret.clone())
    }
}

#[async_trait::async_trait]
impl S3Auth for Keys {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        self.secret(access_key).ok_or_else(|| {
            s3_error!(InvalidAccessKeyId, "The AWS Access Key Id you provided does not exist in our records.")
        })
    }
}

/// What is asked of a request whose signature is right, or that has none.
#[derive(Clone)]
pub(crate) struct Access {
    /// Whether requests without a signature are let in. One with a wrong signature never is.
    pub(crate) anonymous: bool,
    pub(crate) keys: Keys,
    /// The account that owns every bucket.
    pub(crate) account: String,
}

#[async_trait::async_trait]
impl S3Access for Access {
    async fn check(&self, context: &mut S3AccessContext<'_>) -> S3Result<()> {
        let denied = || s3_error!(AccessDenied, "Access Denied");
        for owner in ["x-amz-expected-bucket-owner", "x-amz-source-expected-bucket-owner"] {
            if context.headers().get(owner).is_some_and(|owner| *owner != *self.account) {
                return Err(denied());
            }
        }
        let verified = context.extensions_mut().remove::<Verified>();
        let access_key = verified.as_ref().map(|verified| &*verified.0);
        let Some(access_key) = access_key.or_else(|| Some(&*context.credentials()?.access_key)) else {
            return if self.anonymous { Ok(()) } else { Err(denied()) };
        };
        let keys = self.keys.0.read();
        let Some(key) = keys.get(access_key) else { return Err(denied()) };
        if key.expires.is_some_and(|expires| expires < SystemTime::now()) {
            return Err(s3_error!(ExpiredToken, "The provided token has expired."));
        }
        if let Some(token) = &key.token {
            let header = if key.is_session { "x-amz-s3session-token" } else { "x-amz-security-token" };
            let given = context.headers().get(header).is_some_and(|given| *given == **token);
            if !given && !is_in_query(context.uri().query(), token) {
                let message = "The provided token is malformed or otherwise invalid.";
                return Err(error_called("InvalidToken", StatusCode::BAD_REQUEST, message));
            }
        }
        let express = context.s3_path().get_bucket_name().is_some_and(is_express);
        if express != key.is_session && !(express && WITHOUT_SESSION.contains(&context.s3_op().name())) {
            return Err(denied());
        }
        Ok(())
    }
}

/// Whether a presigned request brings this token.
fn is_in_query(query: Option<&str>, token: &str) -> bool {
    let pairs = query.unwrap_or("").split('&').filter_map(|pair| pair.split_once('='));
    let mut tokens = pairs.filter(|(name, _)| ["X-Amz-Security-Token", "X-Amz-S3session-Token"].contains(name));
    tokens.any(|(_, value)| crate::verb::decode(value) == token)
}

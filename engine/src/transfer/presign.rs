//! PRESIGN: URLs that let whoever has them send one request, without credentials of their own.
//!
//! Nothing is sent. A URL holds the access key's id, the session token where there is one, and a
//! signature that is good for that one request until it expires; the secret stays here. It is worth
//! as much as what it allows: treat it like a password.

use std::sync::Arc;
use std::time::Duration;

use super::Engine;
use super::options::{Borrowed, Fields};
use super::request::Subject;
use crate::error::{Error, ErrorKind, Result};
use crate::wire::presign::presign;
use crate::wire::request::{Method, Payload, Request};

/// The longest that a presigned URL may be good for.
/// Source: Amazon S3 User Guide, "Download and upload objects with presigned URLs".
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// A URL to be signed; made by [`Client::presign`](crate::Client::presign). It ends with the method
/// that the URL is for.
#[must_use = "there is no URL until a method is chosen"]
pub struct Presign {
    engine: Arc<Engine>,
    bucket: String,
    key: String,
    expires: Duration,
    query: Fields,
    headers: Fields,
}

impl Presign {
    pub(crate) fn new(engine: Arc<Engine>, bucket: String, key: String) -> Presign {
        let expires = Duration::from_secs(3600);
        Presign { engine, bucket, key, expires, query: Fields::default(), headers: Fields::default() }
    }

    /// How long the URL is good for, 1 second to 7 days, in whole seconds; an hour where it is not
    /// said. A URL signed with temporary credentials ends with them if that is sooner.
    pub fn expires_in(mut self, time: Duration) -> Presign {
        self.expires = time;
        self
    }

    /// For this version of the object.
    pub fn version(mut self, id: impl Into<String>) -> Presign {
        self.query.push("versionId", id);
        self
    }

    /// What the server is to say of the content type instead of what is stored. For GET and HEAD.
    pub fn response_content_type(mut self, media_type: impl Into<String>) -> Presign {
        self.query.push("response-content-type", media_type);
        self
    }

    /// What the server is to say of the presentation, as `attachment; filename="a.csv"`. For GET and
    /// HEAD.
    pub fn response_content_disposition(mut self, disposition: impl Into<String>) -> Presign {
        self.query.push("response-content-disposition", disposition);
        self
    }

    /// What the server is to say of the encoding. For GET and HEAD.
    pub fn response_content_encoding(mut self, encoding: impl Into<String>) -> Presign {
        self.query.push("response-content-encoding", encoding);
        self
    }

    /// What the server is to say of the language. For GET and HEAD.
    pub fn response_content_language(mut self, language: impl Into<String>) -> Presign {
        self.query.push("response-content-language", language);
        self
    }

    /// What the server is to say to caches. For GET and HEAD.
    pub fn response_cache_control(mut self, directives: impl Into<String>) -> Presign {
        self.query.push("response-cache-control", directives);
        self
    }

    /// What the server is to say of when it expires, an HTTP date. For GET and HEAD.
    pub fn response_expires(mut self, date: impl Into<String>) -> Presign {
        self.query.push("response-expires", date);
        self
    }

    /// The content type that the upload must be sent with. For PUT.
    pub fn content_type(self, media_type: impl Into<String>) -> Presign {
        self.header("content-type", media_type)
    }

    /// A header, named in lower case, that whoever uses the URL must send with this value.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Presign {
        self.headers.push(name.into(), value);
        self
    }

    /// A URL that reads the object.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] where the time is out of bounds, something cannot stand in a URL, or the
    /// client is anonymous; and those of finding credentials.
    pub async fn get(self) -> Result<String> {
        self.sign(Method::Get).await
    }

    /// A URL that writes the object.
    ///
    /// # Errors
    /// Those of [`Presign::get`].
    pub async fn put(self) -> Result<String> {
        self.sign(Method::Put).await
    }

    /// A URL that asks for what the server says of the object.
    ///
    /// # Errors
    /// Those of [`Presign::get`].
    pub async fn head(self) -> Result<String> {
        self.sign(Method::Head).await
    }

    /// A URL that deletes the object.
    ///
    /// # Errors
    /// Those of [`Presign::get`].
    pub async fn delete(self) -> Result<String> {
        self.sign(Method::Delete).await
    }

    async fn sign(self, method: Method) -> Result<String> {
        let subject = Subject::key(&self.engine, "presign", &self.bucket, &self.key)?;
        let refuse = |message: String| subject.explain(Error::new(ErrorKind::Config, message));
        if self.expires < Duration::from_secs(1) || self.expires > LONGEST {
            let message = format!("a URL cannot be good for {} s", self.expires.as_secs_f64());
            return Err(refuse(message).with_hint("1 second to 7 days"));
        }
        let standing = self.engine.standing(&subject).await.map_err(|error| subject.explain(error))?;
        let location = &standing.location;
        if location.in_session {
            let message = "requests to a directory bucket are signed for a session of a few minutes".to_owned();
            return Err(refuse(message).with_hint("presign objects of general-purpose buckets"));
        }
        let Some(signer) = standing.signer.as_deref() else {
            let message = "the client has no credentials, and a URL is signed with some".to_owned();
            return Err(refuse(message).with_hint("an object that everybody may read needs no signature"));
        };
        let (query, headers): (Borrowed<'_>, Borrowed<'_>) = (self.query.borrowed(), self.headers.borrowed());
        let request = Request {
            method,
            host: &location.host_header,
            path_prefix: &location.path_prefix,
            key: &subject.key,
            query: &query,
            headers: &headers,
            content_length: None,
            payload: Payload::Unsigned,
        };
        let target = presign(&request, signer, self.engine.clock.now(), self.expires.as_secs());
        let target = target.map_err(|error| refuse(format!("the URL cannot be signed: {error}")))?;
        let scheme = if location.authority.secure { "https" } else { "http" };
        Ok(format!("{scheme}://{}{target}", location.host_header))
    }
}

//! RAW: one S3 request as the caller writes it, for the operations that have no verb here.
//!
//! It takes its place, is signed, judged and tried again like any other. Owns nothing of S3's
//! meaning: query, headers and body go out as given, and the answer comes back as it was. Bodies are
//! held whole in both directions, so this is no way for data.

use std::sync::Arc;

use bytes::Bytes;

use super::Engine;
use super::request::{Call, Subject, sha256};
use crate::error::Result;
use crate::wire::request::Payload;
use crate::wire::response::ResponseHead;

pub use crate::wire::request::Method;

/// The most bytes of an answer's body: far above any document of S3.
const ANSWER_BYTES: usize = 16 << 20;

/// What the server answered to a [`Raw`] request: a success, whatever its body says.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RawAnswer {
    /// The HTTP status, 200 to 299.
    pub status: u16,
    /// The headers in their order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl RawAnswer {
    /// The first value of the header `name`, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|header| header.0.eq_ignore_ascii_case(name)).map(|header| header.1.as_str())
    }

    fn of(head: &ResponseHead<'_>) -> RawAnswer {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let headers = head.headers().map(|(name, value)| (name.to_ascii_lowercase(), text(value))).collect();
        RawAnswer { status: head.status, headers, body: Bytes::new() }
    }
}

/// A request that has not been sent; made by [`Client::raw`](crate::Client::raw).
#[must_use = "nothing is sent until `send` is called"]
pub struct Raw {
    engine: Arc<Engine>,
    method: Method,
    bucket: String,
    key: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    body: Bytes,
}

impl Raw {
    pub(crate) fn new(engine: Arc<Engine>, method: Method, bucket: String, key: String) -> Raw {
        Raw { engine, method, bucket, key, query: Vec::new(), headers: Vec::new(), body: Bytes::new() }
    }

    /// Adds a parameter to the query, neither of the two encoded.
    pub fn query(mut self, name: impl Into<String>, value: impl Into<String>) -> Raw {
        self.query.push((name.into(), value.into()));
        self
    }

    /// Adds a header, its name in lower case. It is signed.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Raw {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// What the request carries. Only PUT and POST carry anything.
    pub fn body(mut self, body: impl Into<Bytes>) -> Raw {
        self.body = body.into();
        self
    }

    /// Sends it.
    ///
    /// # Errors
    /// Every answer outside 200 to 299, as its kind says; [`ErrorKind::Config`](crate::ErrorKind::Config)
    /// for a header that cannot be sent, and [`ErrorKind::Protocol`](crate::ErrorKind::Protocol) for
    /// an answer of more than 16 MiB.
    pub async fn send(self) -> Result<RawAnswer> {
        let engine = &self.engine;
        engine.keep_house();
        let subject = match (self.bucket.as_str(), self.key.as_str()) {
            ("", _) => Subject::service(engine, "raw"),
            (bucket, "") => Subject::bucket(engine, "raw", bucket)?,
            (bucket, key) => Subject::key(engine, "raw", bucket, key)?,
        };
        let query = borrowed(&self.query);
        let headers = borrowed(&self.headers);
        let payload = if self.body.is_empty() { Payload::Empty } else { sha256(&self.body) };
        let call = Call { query: &query, headers: &headers, body: &self.body, payload, ..Call::new(self.method) };
        engine
            .ask(&subject, &call, ANSWER_BYTES, RawAnswer::of, |body, answer| {
                Ok(RawAnswer { body: body.into(), ..answer })
            })
            .await
    }
}

fn borrowed(pairs: &[(String, String)]) -> Vec<(&str, &str)> {
    pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

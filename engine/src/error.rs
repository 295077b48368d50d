//! The one error of the engine: a kind that programs branch on, and a context that people read.
//!
//! Every failure of a verb ends here. It says what was being done (operation, bucket, key, part),
//! what happened (the server's code and message, or the network's), how hard the engine tried
//! (attempts, elapsed) and what to try next. It never carries a credential: nothing in this module
//! is given one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::text::printable;

/// The most characters of a message: room for the longest path of a file beside some words.
const MOST_MESSAGE: usize = 5_000;

/// The most characters of a cause, and of an id that the server gave.
const MOST_SHOWN: usize = 2_048;

/// What the engine's verbs return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, as a program would branch on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bucket, key, version or upload does not exist (HTTP 404).
    NotFound,
    /// A condition did not hold: the object changed while it was read, or `If-Match` failed (HTTP 412).
    Precondition,
    /// The request contradicts the state of the bucket, such as creating one that exists (HTTP 409).
    Conflict,
    /// The credentials are absent, wrong, expired or not allowed to do this (HTTP 401, 403).
    Denied,
    /// The server asked for fewer requests until the attempts or the retry quota ran out (503, 429).
    Throttled,
    /// A connect, first-byte or stall timeout passed on the last attempt.
    Timeout,
    /// The endpoint could not be reached, or the connection broke on the last attempt.
    Connection,
    /// The bytes are not those that were promised: wrong range, wrong length, wrong version.
    Integrity,
    /// The request or the configuration is unusable; nothing was sent, or the server refused its form.
    Config,
    /// The operation was cancelled before it finished.
    Cancelled,
    /// A local file or folder could not be read or written, or memory could not be had.
    Io,
    /// The server said something that is not HTTP/1.1 or not S3.
    Protocol,
    /// The server failed on its side (HTTP 5xx other than throttling).
    Server,
}

impl ErrorKind {
    /// The kind in one lower-case word, as it stands in JSON output.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "not_found",
            ErrorKind::Precondition => "precondition",
            ErrorKind::Conflict => "conflict",
            ErrorKind::Denied => "denied",
            ErrorKind::Throttled => "throttled",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Connection => "connection",
            ErrorKind::Integrity => "integrity",
            ErrorKind::Config => "config",
            ErrorKind::Cancelled => "cancelled",
            ErrorKind::Io => "io",
            ErrorKind::Protocol => "protocol",
            ErrorKind::Server => "server",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failed operation. `Display` is one line for a person; the accessors are for programs.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone, Default)]
struct Inner {
    kind: Option<ErrorKind>,
    message: String,
    hint: Option<&'static str>,
    operation: Option<&'static str>,
    bucket: Option<String>,
    key: Option<String>,
    part: Option<String>,
    status: Option<u16>,
    code: Option<String>,
    request_id: Option<String>,
    attempts: u32,
    elapsed: Duration,
    upload_id: Option<String>,
    about_client: bool,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        // It may quote a server, a file's name or the network: none of them is to command a terminal.
        let message = printable(message.into(), MOST_MESSAGE);
        Error(Box::new(Inner { kind: Some(kind), message, ..Inner::default() }))
    }

    /// A local file operation that failed; the path belongs in `message`.
    pub(crate) fn io(message: impl Into<String>, source: std::io::Error) -> Error {
        Error::new(ErrorKind::Io, message).with_source(source)
    }

    pub(crate) fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        self.0.source = Some(Arc::from(source.into()));
        self
    }

    pub(crate) fn with_hint(mut self, hint: &'static str) -> Error {
        self.0.hint = Some(hint);
        self
    }

    /// Says what was being done to what. An inner, more exact context stands.
    pub(crate) fn with_context(mut self, operation: &'static str, bucket: &str, key: &str) -> Error {
        self.0.operation.get_or_insert(operation);
        if self.0.bucket.is_none() && !bucket.is_empty() {
            self.0.bucket = Some(bucket.to_owned());
        }
        if self.0.key.is_none() && !key.is_empty() {
            self.0.key = Some(key.to_owned());
        }
        self
    }

    pub(crate) fn with_part(mut self, part: impl FnOnce() -> String) -> Error {
        self.0.part.get_or_insert_with(part);
        self
    }

    pub(crate) fn with_effort(mut self, attempts: u32, elapsed: Duration) -> Error {
        if self.0.attempts == 0 {
            self.0.attempts = attempts;
            self.0.elapsed = elapsed;
        }
        self
    }

    pub(crate) fn with_response(mut self, status: u16, code: Option<String>, request_id: Option<String>) -> Error {
        let shown = |text: Option<String>| text.map(|text| printable(text, MOST_SHOWN));
        self.0.status = Some(status);
        self.0.code = shown(code);
        self.0.request_id = shown(request_id);
        self
    }

    /// An upload that could not be aborted and may go on costing money.
    pub(crate) fn with_upload_id(mut self, upload_id: String) -> Error {
        self.0.upload_id = Some(upload_id);
        self
    }

    /// The client's settings or credentials are at fault, whatever was asked for.
    pub(crate) fn about_client(mut self) -> Error {
        self.0.about_client = true;
        self
    }

    /// Whether the client's own settings or credentials are at fault (none were found, the profile is
    /// missing or malformed): nothing was sent, and every other request would fail alike.
    pub fn is_about_client(&self) -> bool {
        self.0.about_client
    }

    /// What went wrong, as a program would branch on it.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind.unwrap_or(ErrorKind::Protocol)
    }

    /// The verb that failed: `get`, `put`, `list`, …
    pub fn operation(&self) -> Option<&str> {
        self.0.operation
    }

    /// The bucket, where one was named.
    pub fn bucket(&self) -> Option<&str> {
        self.0.bucket.as_deref()
    }

    /// The key, where one was named.
    pub fn key(&self) -> Option<&str> {
        self.0.key.as_deref()
    }

    /// The HTTP status, where the server answered.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// The server's error code, such as `NoSuchKey`.
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// The server's id of the request, for its operator.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// How many requests were made for the part that failed.
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// The time spent on the part that failed, waiting between attempts included.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed
    }

    /// The id of a multipart upload that may still exist because aborting it failed too.
    pub fn upload_id(&self) -> Option<&str> {
        self.0.upload_id.as_deref()
    }

    /// Which bytes or which part of the object it was about, as `bytes 0-8388607`, where that is known.
    pub fn part(&self) -> Option<&str> {
        self.0.part.as_deref()
    }

    /// What to try, where there is something to be tried.
    pub fn hint(&self) -> Option<&'static str> {
        self.0.hint
    }

    /// The bare message, without context or advice.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let e = &self.0;
        if let Some(operation) = e.operation {
            write!(f, "{operation} ")?;
        }
        match (&e.bucket, &e.key) {
            (Some(bucket), Some(key)) => write!(f, "s3://{bucket}/{}: ", key.escape_debug())?,
            (Some(bucket), None) => write!(f, "s3://{bucket}: ")?,
            _ if e.operation.is_some() => f.write_str("failed: ")?,
            _ => {}
        }
        if let Some(part) = &e.part {
            write!(f, "{part}: ")?;
        }
        f.write_str(&e.message)?;
        let mut notes = Vec::new();
        if let Some(code) = &e.code {
            notes.push(code.clone());
        }
        if let Some(status) = e.status {
            notes.push(format!("HTTP {status}"));
        }
        if let Some(id) = &e.request_id {
            notes.push(format!("request id {id}"));
        }
        if e.attempts > 1 {
            notes.push(format!("{} attempts in {:.1} s", e.attempts, e.elapsed.as_secs_f64()));
        }
        if !notes.is_empty() {
            write!(f, " ({})", notes.join(", "))?;
        }
        let mut source = e.source.as_deref().map(|s| s as &dyn std::error::Error);
        while let Some(cause) = source {
            let text = printable(cause.to_string(), MOST_SHOWN);
            if !text.is_empty() {
                write!(f, ": {text}")?;
            }
            source = cause.source();
        }
        if let Some(upload_id) = &e.upload_id {
            let upload_id = printable(upload_id.clone(), MOST_SHOWN);
            write!(f, "; multipart upload {upload_id} could not be aborted and may still be stored")?;
        }
        if let Some(hint) = e.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?}: {self})", self.kind())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|s| s as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_where_how_often_and_what_to_try() {
        let error = Error::new(ErrorKind::NotFound, "the key does not exist")
            .with_response(404, Some("NoSuchKey".into()), Some("R1".into()))
            .with_hint("check the spelling")
            .with_part(|| "bytes 0-9".into())
            .with_effort(3, Duration::from_millis(1500))
            .with_context("get", "b", "a\nb");
        assert_eq!(
            error.to_string(),
            "get s3://b/a\\nb: bytes 0-9: the key does not exist \
             (NoSuchKey, HTTP 404, request id R1, 3 attempts in 1.5 s); check the spelling"
        );
        assert_eq!((error.kind(), error.kind().to_string()), (ErrorKind::NotFound, "not_found".to_owned()));
        assert_eq!((error.part(), error.hint()), (Some("bytes 0-9"), Some("check the spelling")));
    }

    #[test]
    fn a_clone_says_the_same_with_its_causes() {
        let cause = std::io::Error::other("the disk is gone");
        let error = Error::io("cannot be read", cause).with_context("get", "b", "k").with_effort(2, Duration::ZERO);
        let clone = error.clone();
        assert_eq!(clone.to_string(), error.to_string());
        assert!(clone.to_string().contains("the disk is gone"));
        assert_eq!((clone.kind(), clone.attempts()), (error.kind(), 2));
    }

    #[test]
    fn the_inner_context_stands() {
        let error = Error::new(ErrorKind::Timeout, "no byte for 20 s")
            .with_context("list", "inner", "")
            .with_context("get", "outer", "k");
        assert_eq!(error.operation(), Some("list"));
        assert_eq!(error.bucket(), Some("inner"));
    }
}

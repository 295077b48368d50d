//! Faults: which requests they meet, and what they do to them.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;

use crate::verb::{Target, Verb, decode};

/// What happens to a request that a fault meets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Answers with this status and the S3 error code that goes with it (503: `SlowDown`), and does nothing else.
    Status(u16),
    /// Answers 200 with an error of this code in the body, white space before it: as S3 may do for
    /// CompleteMultipartUpload, CopyObject and DeleteObjects.
    ErrorInBody(String),
    /// Waits before doing what was asked.
    Delay(Duration),
    /// Closes the connection without an answer, and without having done what was asked.
    Close,
    /// Does what was asked, and closes the connection without an answer.
    CloseAnswer,
    /// Closes the connection after this many bytes of the answer's body.
    CloseAfter(u64),
    /// Sends nothing more after this many bytes of the answer's body, and leaves the connection open.
    StallAfter(u64),
    /// Cuts the answer to this many bytes with a Content-Length to match; Content-Range stays as it was.
    Short(u64),
    /// Sends this Content-Range in place of the true one.
    ContentRange(String),
    /// Sends the ETag as a weak one.
    WeakEtag,
    /// Sends no ETag.
    NoEtag,
    /// Replaces the object with these bytes first, as another writer might between two ranges of a download.
    Replace(Vec<u8>),
}

/// A fault: an action, and the requests that it meets.
///
/// Without conditions it meets every request. Each fault counts the requests that fit it; where several are due for one
/// request the one given first acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    action: Action,
    verb: Option<Verb>,
    bucket: Option<String>,
    key: Option<String>,
    nth: u64,
    times: u64,
}

impl Fault {
    /// A fault that meets every request.
    pub fn new(action: Action) -> Self {
        Self { action, verb: None, bucket: None, key: None, nth: 1, times: u64::MAX }
    }

    /// Meets only this operation.
    #[must_use]
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verb = Some(verb);
        self
    }

    /// Meets only requests for this bucket.
    #[must_use]
    pub fn bucket(mut self, bucket: impl Into<String>) -> Self {
        self.bucket = Some(bucket.into());
        self
    }

    /// Meets only requests for this key.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Meets the `nth` request that fits, counted from 1, and (unless [`Fault::times`] follows) no other.
    #[must_use]
    pub fn nth(mut self, nth: u64) -> Self {
        self.nth = nth.max(1);
        self.times = 1;
        self
    }

    /// Meets this many requests that fit, from the first or from [`Fault::nth`] on.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    fn fits(&self, verb: Verb, target: Target<'_>) -> bool {
        let Target { bucket, key } = target;
        self.verb.is_none_or(|wanted| wanted == verb)
            && self.bucket.as_ref().is_none_or(|wanted| wanted == bucket)
            && self.key.as_ref().is_none_or(|wanted| *wanted == decode(key))
    }
}

/// Comma-separated `FIELD=VALUE`: `action=ACTION[:ARGUMENT]`, and any of `verb`, `bucket`, `key`, `nth`, `times`.
impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut action = None;
        let (mut verb, mut bucket, mut key, mut nth, mut times) = (None, None, None, None, None);
        for field in text.split(',') {
            let (field, value) = field.split_once('=').ok_or_else(|| format!("{field:?} is not FIELD=VALUE"))?;
            let count = || value.parse::<u64>().map_err(|_| format!("{field}={value}: not a whole number"));
            match field {
                "action" => action = Some(value.parse()?),
                "verb" => verb = Some(value.parse()?),
                "bucket" => bucket = Some(value.to_owned()),
                "key" => key = Some(value.to_owned()),
                "nth" => nth = Some(count()?),
                "times" => times = Some(count()?),
                _ => return Err(format!("no such field: {field}; there are action, verb, bucket, key, nth, times")),
            }
        }
        let mut fault = Self::new(action.ok_or("it lacks action=ACTION")?);
        fault = nth.into_iter().fold(fault, Self::nth);
        fault = times.into_iter().fold(fault, Self::times);
        Ok(Self { verb, bucket, key, ..fault })
    }
}

impl FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, argument) = text.split_once(':').unwrap_or((text, ""));
        let number = || argument.parse::<u64>().map_err(|_| format!("{name} takes a whole number, as in {name}:1000"));
        match name {
            "status" => number()
                .ok()
                .and_then(|status| u16::try_from(status).ok())
                .filter(|status| (200..600).contains(status))
                .map(Self::Status)
                .ok_or_else(|| "status takes an HTTP status, as in status:503".to_owned()),
            "error-in-body" if !argument.is_empty() => Ok(Self::ErrorInBody(argument.to_owned())),
            "delay" => Ok(Self::Delay(Duration::from_millis(number()?))),
            "close" => Ok(Self::Close),
            "close-answer" => Ok(Self::CloseAnswer),
            "close-after" => Ok(Self::CloseAfter(number()?)),
            "stall-after" => Ok(Self::StallAfter(number()?)),
            "short" => Ok(Self::Short(number()?)),
            "content-range" if !argument.is_empty() => Ok(Self::ContentRange(argument.to_owned())),
            "weak-etag" => Ok(Self::WeakEtag),
            "no-etag" => Ok(Self::NoEtag),
            "replace" => Ok(Self::Replace(vec![b'r'; number()? as usize])),
            _ => Err(format!(
                "no such action: {text}; there are status:CODE, error-in-body:NAME, delay:MILLISECONDS, close, \
                 close-answer, close-after:BYTES, stall-after:BYTES, short:BYTES, content-range:VALUE, weak-etag, \
                 no-etag, replace:BYTES"
            )),
        }
    }
}

/// The faults of one server.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    armed: RwLock<Vec<Arc<Armed>>>,
}

#[derive(Debug)]
struct Armed {
    fault: Fault,
    seen: AtomicU64,
}

impl Faults {
    pub(crate) fn arm(&self, fault: Fault) {
        self.armed.write().push(Arc::new(Armed { fault, seen: AtomicU64::new(0) }));
    }

    pub(crate) fn clear(&self) {
        self.armed.write().clear();
    }

    /// Counts a request, and says what is to happen to it.
    pub(crate) fn due(&self, verb: Verb, target: Target<'_>) -> Option<Action> {
        let mut due = None;
        for armed in self.armed.read().iter().filter(|armed| armed.fault.fits(verb, target)) {
            let seen = armed.seen.fetch_add(1, Ordering::Relaxed) + 1;
            let acts = seen >= armed.fault.nth && seen - armed.fault.nth < armed.fault.times;
            if acts && due.is_none() {
                due = Some(armed.fault.action.clone());
            }
        }
        due
    }
}

//! The one version of an object that all of a download's ranges come from, and the check that each
//! answer is what was asked for.
//!
//! A strong ETag is echoed byte for byte in `If-Match`, so a changed object is refused by the server
//! (412) before a byte of it arrives. `versionId` is asked for only where there is no such ETag:
//! reading by version is a permission of its own (`s3:GetObjectVersion`) that a reader may lack.
//! Where there is neither, the size and `Last-Modified` of every answer are compared. Whatever an
//! answer does say about its version is compared as well, even behind `If-Match`: some servers
//! ignore it.

use std::ops::Range;
use std::sync::OnceLock;

use super::refusal::Failure;
use crate::error::{Error, ErrorKind};
use crate::wire::etag::is_strong;
use crate::wire::response::{BodyLength, ResponseHead};

/// What identifies one version of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) size: u64,
    pub(crate) etag: Option<String>,
    pub(crate) version_id: Option<String>,
    pub(crate) last_modified: Option<String>,
}

impl Version {
    pub(crate) fn of(head: &ResponseHead<'_>, size: u64) -> Version {
        Version {
            size,
            etag: head.etag.map(str::to_owned),
            version_id: head.version_id.map(str::to_owned),
            last_modified: head.last_modified.map(str::to_owned),
        }
    }

    /// The value for `If-Match`, where the ETag can stand there.
    pub(crate) fn if_match(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| is_strong(etag))
    }

    /// The value for `versionId`, where nothing else pins the version.
    pub(crate) fn version_to_ask_for(&self) -> Option<&str> {
        match self.if_match() {
            Some(_) => None,
            None => self.version_id.as_deref(),
        }
    }

    /// Refuses an answer that comes from another version.
    pub(crate) fn check(&self, head: &ResponseHead<'_>, size: u64) -> Result<(), Failure> {
        let differs = |ours: &Option<String>, theirs: Option<&str>| matches!((ours.as_deref(), theirs), (Some(ours), Some(theirs)) if ours != theirs);
        let what = if size != self.size {
            "its size"
        } else if differs(&self.etag, head.etag) {
            "its ETag"
        } else if differs(&self.version_id, head.version_id) {
            "its version"
        } else if self.if_match().is_none() && differs(&self.last_modified, head.last_modified) {
            "its time of modification"
        } else {
            return Ok(());
        };
        Err(changed(what))
    }
}

/// The one version that several reads of an object share: that of the first answer to any of them.
#[derive(Default)]
pub(crate) struct Pin(OnceLock<Version>);

impl Pin {
    /// That of an earlier read.
    pub(crate) fn to(version: Version) -> Pin {
        Pin(OnceLock::from(version))
    }

    /// The value for `If-Match`, as soon as it is known.
    pub(crate) fn if_match(&self) -> Option<&str> {
        self.0.get().and_then(Version::if_match)
    }

    /// Refuses an answer that comes from another version than the first.
    pub(crate) fn accept(&self, head: &ResponseHead<'_>, size: u64) -> Result<(), Failure> {
        self.0.get_or_init(|| Version::of(head, size)).check(head, size)
    }
}

/// The object was replaced while it was being read.
pub(crate) fn changed(what: &str) -> Failure {
    Failure::never(
        Error::new(ErrorKind::Precondition, format!("the object changed while it was being read: {what} is another"))
            .with_hint("read it again"),
    )
}

/// The object was replaced after it was listed.
pub(crate) fn changed_since_listed() -> Failure {
    let message = "the object changed since it was listed: its ETag differs, or is missing";
    Failure::never(Error::new(ErrorKind::Precondition, message).with_hint("list it again"))
}

/// An answer that is accepted as the body of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// The bytes of the object that the body holds.
    pub(crate) range: Range<u64>,
    /// The size of the whole object.
    pub(crate) size: u64,
}

/// Returns whether the answer is a whole object whose size its head does not say.
pub(crate) fn is_unmeasured(head: &ResponseHead<'_>) -> bool {
    head.status == 200 && !head.is_part() && !matches!(head.body, BodyLength::Length(_))
}

/// Checks that an answer holds what was asked for: `asked`, cut at the object's end.
///
/// A server that ignores ranges answers 200 with the whole object, which holds every range. `measured` is the
/// object's size, if it is known from elsewhere, for answers that do not say it. Where the version is known
/// already, the answer must come from it.
pub(crate) fn accept_range(
    head: &ResponseHead<'_>,
    asked: &Range<u64>,
    measured: Option<u64>,
    version: Option<&Version>,
) -> Result<Accepted, Failure> {
    let accepted = match (head.status, head.content_range) {
        (200 | 206, Some(range)) if head.is_part() => {
            let size = range
                .total
                .ok_or_else(|| wrong("the server does not say the object's size in Content-Range".to_owned()))?;
            let expected = asked.start..asked.end.min(size);
            let (first, last) = (range.first, range.last);
            if first != expected.start || last.checked_add(1) != Some(expected.end) {
                return Err(wrong(format!(
                    "asked for bytes {}-{} of {size}, the server says it sent {first}-{last}",
                    expected.start,
                    expected.end.saturating_sub(1),
                )));
            }
            Accepted { range: expected, size }
        }
        (206, _) if head.unsatisfied_range == Some(0) => Accepted { range: 0..0, size: 0 },
        (206, _) => {
            return Err(wrong("the server sent part of the object without Content-Range".to_owned()));
        }
        (200, _) => match (head.body, measured) {
            (BodyLength::Length(size), _) | (_, Some(size)) => Accepted { range: 0..size, size },
            (BodyLength::Chunked | BodyLength::UntilClose, None) => return Err(unmeasured()),
        },
        (status, _) => {
            return Err(wrong(format!("the server answered a read with HTTP {status}")));
        }
    };
    if let BodyLength::Length(length) = head.body {
        let promised = accepted.range.end - accepted.range.start;
        if length != promised {
            return Err(wrong(format!("the range has {promised} bytes, the server announces a body of {length}")));
        }
    }
    if let Some(version) = version {
        version.check(head, accepted.size)?;
    }
    Ok(accepted)
}

/// The object's size cannot be found out.
pub(crate) fn unmeasured() -> Failure {
    wrong("the server does not say how long the object is".to_owned())
}

fn wrong(message: String) -> Failure {
    Failure::never(Error::new(ErrorKind::Integrity, message).with_hint("the server is at fault"))
}

#[cfg(test)]
#[path = "version_tests.rs"]
mod tests;

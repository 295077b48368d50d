//! Why one item of a job, or the job, failed.

use std::fmt::{self, Write as _};
use std::io;
use std::path::PathBuf;

use wirespeed::{Error, ErrorKind};

/// Statuses that say that the bucket is elsewhere.
const ELSEWHERE: [u16; 4] = [301, 302, 307, 308];
/// Error codes that are of the bucket, or of who asks in whose name: never of one key.
const HOPELESS: [&str; 8] = [
    "NoSuchBucket",
    "AuthorizationHeaderMalformed",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "RequestTimeTooSkewed",
    "AccountProblem",
];
const HOPELESS_DISK: [io::ErrorKind; 2] = [io::ErrorKind::StorageFull, io::ErrorKind::ReadOnlyFilesystem];

/// Whether every further object would fail with this error too: the bucket is missing or elsewhere, the credentials are
/// wrong, the client's settings are unusable, the disk is full.
///
/// A request that the server or the engine will not have as it is (a key that is too long, a method that is not
/// offered) says nothing about the next one.
pub fn dooms_the_rest(error: &Error) -> bool {
    error.is_about_client()
        || error.status().is_some_and(|status| ELSEWHERE.contains(&status))
        || error.code().is_some_and(|code| HOPELESS.contains(&code))
        || (error.kind() == ErrorKind::Io && io_kind(error).is_some_and(|kind| HOPELESS_DISK.contains(&kind)))
}

/// What the file system said to the engine.
fn io_kind(error: &Error) -> Option<io::ErrorKind> {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error.kind());
        }
        cause = error.source();
    }
    None
}

/// Why an item failed. `Display` is one line for a person.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// What the engine reports.
    Engine(Error),
    /// A file or folder of this machine.
    Local {
        /// What was being done, as in `read the folder`.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// What the server said of one key of a batch that was to be deleted.
    Rejected {
        /// What could not be deleted, as it is shown.
        what: String,
        /// The bucket.
        bucket: String,
        /// The whole key.
        key: String,
        /// The server's error code.
        code: String,
        /// The server's words.
        message: String,
    },
    /// What cannot be done safely, or at all; in words, what to try included.
    Refused(String),
    /// Work that was taken on and never answered for: a task of it ended in a panic.
    Lost(String),
}

impl Failure {
    /// What had no outcome when all had ended.
    pub(crate) fn lost() -> Failure {
        let why = "the task that did it ended in a panic, a fault of wirespeed; run it again, and report the fault";
        Failure::Lost(why.to_owned())
    }

    /// Whether nobody answered at all: where nothing has been done yet, nothing will be.
    pub(crate) fn dooms_a_start(&self) -> bool {
        matches!(self, Failure::Engine(error) if error.kind() == ErrorKind::Connection)
    }

    /// Whether a condition did not hold.
    pub(crate) fn is_precondition(&self) -> bool {
        matches!(self, Failure::Engine(error) if error.kind() == ErrorKind::Precondition)
    }

    /// Whether every further item would fail in the same way, so that going on is pointless.
    pub fn dooms_the_rest(&self) -> bool {
        match self {
            Failure::Engine(error) => dooms_the_rest(error),
            Failure::Rejected { code, .. } => HOPELESS.contains(&code.as_str()),
            Failure::Local { source, .. } => HOPELESS_DISK.contains(&source.kind()),
            Failure::Refused(_) | Failure::Lost(_) => false,
        }
    }

    /// The kind in one lower-case word, as it stands in JSON output: the engine's own, or `refused`, `lost`.
    pub fn kind(&self) -> &'static str {
        match self {
            Failure::Engine(error) => error.kind().as_str(),
            Failure::Local { .. } => ErrorKind::Io.as_str(),
            Failure::Rejected { .. } => ErrorKind::Server.as_str(),
            Failure::Refused(_) => "refused",
            Failure::Lost(_) => "lost",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Engine(error) => error.fmt(f),
            Failure::Local { doing, path, source } => {
                write!(Printable(f), "cannot {doing} `{}`: {source}", path.display())
            }
            Failure::Rejected { what, code, message, .. } => {
                write!(Printable(f), "cannot delete {what}: {message} ({code})")
            }
            Failure::Refused(why) | Failure::Lost(why) => Printable(f).write_str(why),
        }
    }
}

/// Writes text with its control characters escaped: keys and names of files may have any, and none is to break a line or
/// command a terminal.
struct Printable<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl fmt::Write for Printable<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for piece in text.split_inclusive(char::is_control) {
            let plain = piece.trim_end_matches(char::is_control);
            self.0.write_str(plain)?;
            piece[plain.len()..].chars().try_for_each(|control| write!(self.0, "{}", control.escape_default()))?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Failure::Engine(error) => Some(error),
            Failure::Local { source, .. } => Some(source),
            Failure::Rejected { .. } | Failure::Refused(_) | Failure::Lost(_) => None,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Engine(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_message_commands_a_terminal() {
        let path = PathBuf::from("/a\nb\u{1b}[2J\u{9b}é");
        let local = Failure::Local { doing: "remove", path, source: io::ErrorKind::NotFound.into() };
        assert_eq!(local.to_string(), "cannot remove `/a\\nb\\u{1b}[2J\\u{9b}é`: entity not found");
        assert_eq!(Failure::Refused("a\r\n\u{7}b".to_owned()).to_string(), "a\\r\\n\\u{7}b");
    }
}

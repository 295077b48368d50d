//! How a command ends, and what is told when it does not end well.
//!
//! Owns the exit codes (documented in docs/cli.md and `wirespeed --help`) and the JSON form of an error. Every message
//! is one line that says what happened, where, and what to try; none holds a secret, because the engine's errors
//! hold none and nothing is added here.

use std::path::Path;
use std::{fmt, io};

use serde::Serialize;
use wirespeed::ErrorKind;

use crate::quoting::quoted;
use crate::uri::S3Uri;

/// How a command ended; the number is the process's exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// All done.
    Done = 0,
    /// Some items failed or were refused (or a listing found nothing), the rest was done.
    Partial = 1,
    /// The command line or the configuration makes no sense: nothing was tried.
    Usage = 2,
    /// The operation failed as a whole.
    Failed = 3,
    /// Another run holds the lock: nothing was done.
    Locked = 4,
    /// Ctrl-C (SIGINT).
    Interrupted = 130,
    /// SIGTERM.
    Terminated = 143,
}

/// Why a command, or one item of it, failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments contradict each other or what they name.
    Usage(String),
    /// What the engine reports.
    Engine(Box<wirespeed::Error>),
    /// A file or stream of this machine.
    Local { what: String, source: io::Error },
    /// What the server said about one key of many.
    Rejected { what: String, bucket: String, key: String, code: String },
    /// A key or file that is not transferred because it cannot be done safely or at all.
    Refused(String),
    /// Another run is at it already.
    Locked(String),
    /// A pattern that matches no key.
    NothingFound(String),
    /// Work that the engine took and never answered for: a task of it ended in a panic.
    Lost(String),
    /// A multipart upload that is left behind, and how to remove it.
    Unfinished { what: String, bucket: String, key: String, upload_id: Option<String> },
    /// The reader of standard output is gone (`| head`): nothing to say, nothing more to do.
    StdoutClosed,
}

impl Failure {
    /// A failure of the file system: `doing` is the attempt in the infinitive, as in `read the folder`.
    pub(crate) fn local(doing: &str, path: &Path, source: io::Error) -> Failure {
        Failure::Local { what: format!("cannot {doing} `{}`", visible(&path.to_string_lossy())), source }
    }

    /// What is to be told of an upload that could not be aborted in time.
    pub(crate) fn unfinished(upload: &wirespeed::UnfinishedUpload) -> Failure {
        let wirespeed::UnfinishedUpload { bucket, key, upload_id, .. } = upload;
        let uri = format!("s3://{bucket}/{key}");
        let what = match upload_id {
            Some(id) => format!(
                "multipart upload {id} of {uri} could not be aborted and may still be stored; {}",
                how_to_abort(bucket, key, id)
            ),
            None => format!(
                "a multipart upload of {uri} may have been started; look for it with: wirespeed uploads ls {}",
                quoted(&uri)
            ),
        };
        Failure::Unfinished { what, bucket: bucket.clone(), key: key.clone(), upload_id: upload_id.clone() }
    }

    /// The same failure, unless it is that there is no object `uri` whose key ends in `/`: that may have been meant as a
    /// folder, and `advice` says how to name all under it, with the address in place of `{}`.
    pub(crate) fn of_object(self, uri: &S3Uri, advice: &str) -> Failure {
        match &self {
            Failure::Engine(error)
                if uri.key.ends_with('/')
                    && error.kind() == ErrorKind::NotFound
                    && error.code() != Some("NoSuchBucket") =>
            {
                let advice = advice.replace("{}", &uri.to_string());
                Failure::NothingFound(format!("there is no object `{uri}`; {advice}"))
            }
            _ => self,
        }
    }

    /// The exit code of a command that ends with this failure.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Failure::Usage(_) => Exit::Usage,
            // With a status it is the server that would not have it, and so the operation that failed.
            Failure::Engine(error) if error.kind() == ErrorKind::Config && error.status().is_none() => Exit::Usage,
            Failure::Engine(_) | Failure::Local { .. } | Failure::Rejected { .. } => Exit::Failed,
            Failure::NothingFound(_) | Failure::Lost(_) | Failure::Unfinished { .. } => Exit::Failed,
            Failure::Refused(_) => Exit::Partial,
            Failure::Locked(_) => Exit::Locked,
            Failure::StdoutClosed => Exit::Done,
        }
    }

    /// Whether every further item would fail in the same way, so that going on is pointless.
    pub(crate) fn dooms_the_rest(&self) -> bool {
        match self {
            Failure::Engine(error) => wirespeed_bulk::dooms_the_rest(error),
            Failure::Local { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::ReadOnlyFilesystem)
            }
            _ => false,
        }
    }

    /// Whether nothing can be hoped for when this is how a job begins, though later it could be one item's mishap.
    pub(crate) fn dooms_a_start(&self) -> bool {
        matches!(self, Failure::Engine(error) if error.kind() == ErrorKind::Connection)
    }

    /// The JSON form.
    pub(crate) fn record(&self) -> ErrorRecord {
        let mut record = ErrorRecord { kind: "", message: self.to_string(), ..ErrorRecord::default() };
        match self {
            Failure::Usage(_) => record.kind = "usage",
            Failure::Local { .. } => record.kind = "io",
            Failure::Refused(_) => record.kind = "refused",
            Failure::Locked(_) => record.kind = "locked",
            Failure::NothingFound(_) => record.kind = "not_found",
            Failure::Lost(_) => record.kind = "lost",
            Failure::StdoutClosed => record.kind = "stdout_closed",
            Failure::Unfinished { bucket, key, upload_id, .. } => {
                record.kind = "unfinished_upload";
                record.bucket = Some(bucket.clone());
                record.key = Some(key.clone());
                record.upload_id.clone_from(upload_id);
            }
            Failure::Rejected { bucket, key, code, .. } => {
                record.kind = if code == "AccessDenied" { "denied" } else { "server" };
                record.bucket = Some(bucket.clone());
                record.key = Some(key.clone());
                record.code = Some(code.clone());
            }
            Failure::Engine(error) => {
                record.kind = error.kind().as_str();
                record.bucket = error.bucket().map(str::to_owned);
                record.key = error.key().map(str::to_owned);
                record.status = error.status();
                record.code = error.code().map(str::to_owned);
                record.request_id = error.request_id().map(str::to_owned);
                record.attempts = Some(error.attempts());
                record.upload_id = error.upload_id().map(str::to_owned);
            }
        }
        record
    }
}

impl From<wirespeed::Error> for Failure {
    fn from(error: wirespeed::Error) -> Failure {
        Failure::Engine(Box::new(error))
    }
}

impl From<&wirespeed_bulk::Failure> for Failure {
    fn from(failure: &wirespeed_bulk::Failure) -> Failure {
        use wirespeed_bulk::Failure as Bulk;
        match failure {
            Bulk::Engine(error) => error.clone().into(),
            Bulk::Local { doing, path, source } => {
                let source = match source.raw_os_error() {
                    Some(code) => io::Error::from_raw_os_error(code),
                    None => io::Error::new(source.kind(), source.to_string()),
                };
                Failure::local(doing, path, source)
            }
            Bulk::Rejected { bucket, key, code, .. } => {
                let (bucket, key, code) = (bucket.clone(), key.clone(), code.clone());
                Failure::Rejected { what: visible(&failure.to_string()).into_owned(), bucket, key, code }
            }
            Bulk::Refused(why) => Failure::Refused(why.clone()),
            Bulk::Lost(why) => Failure::Lost(why.clone()),
            other => Failure::Lost(other.to_string()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(message) | Failure::Refused(message) | Failure::Locked(message) => f.write_str(message),
            Failure::NothingFound(message) | Failure::Lost(message) => f.write_str(message),
            Failure::Rejected { what, .. } | Failure::Unfinished { what, .. } => f.write_str(what),
            Failure::Engine(error) => {
                f.write_str(&visible(&error.to_string()))?;
                match (error.bucket(), error.key(), error.upload_id()) {
                    (Some(bucket), Some(key), Some(id)) => write!(f, "; {}", how_to_abort(bucket, key, id)),
                    _ => Ok(()),
                }
            }
            Failure::Local { what, source } => match source.kind() {
                io::ErrorKind::StorageFull => {
                    write!(f, "{what}: {source}; make room or choose another folder")
                }
                io::ErrorKind::PermissionDenied => {
                    write!(f, "{what}: {source}; check its permissions")
                }
                io::ErrorKind::NotFound => write!(f, "{what}: {source}; check the path"),
                _ => write!(f, "{what}: {source}"),
            },
            Failure::StdoutClosed => f.write_str("standard output is closed"),
        }
    }
}

/// An error as `--json` prints it, inside `{"error": …}`. Fields that say nothing are left out.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ErrorRecord {
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bucket: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attempts: Option<u32>,
    /// A multipart upload that could not be aborted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upload_id: Option<String>,
    /// The line of `run` that it happened in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u64>,
}

/// The advice on an upload that is still stored: a command to be copied.
pub(crate) fn how_to_abort(bucket: &str, key: &str, upload_id: &str) -> String {
    let uri = format!("s3://{bucket}/{key}");
    format!("remove it with: wirespeed uploads abort {} --upload-id {}", quoted(&uri), quoted(upload_id))
}

/// The text with control characters spelled out, so that a key can neither break a line nor command the terminal.
pub(crate) fn visible(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if character.is_control() { safe.extend(character.escape_default()) } else { safe.push(character) }
    }
    safe.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_spelled_out() {
        assert_eq!(visible("plain é"), "plain é");
        assert_eq!(visible("a\nb\u{1b}[2J"), "a\\nb\\u{1b}[2J");
    }

    #[test]
    fn the_command_that_aborts_can_be_copied_into_a_shell() {
        let advice = how_to_abort("b", "a key's", "id-1");
        assert!(advice.ends_with("wirespeed uploads abort 's3://b/a key'\\''s' --upload-id id-1"), "{advice}");
    }

    #[test]
    fn a_local_failure_says_what_to_try() {
        let full = Failure::local("write", Path::new("x"), io::ErrorKind::StorageFull.into());
        assert!(full.to_string().contains("make room"), "{full}");
        assert!(full.dooms_the_rest());
        assert_eq!(full.exit(), Exit::Failed);
        assert_eq!(serde_json::to_value(full.record()).unwrap()["kind"], "io");
    }
}

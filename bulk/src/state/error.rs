//! Why a resume file cannot be used.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a resume file cannot be used. The text says what to try.
#[derive(Debug)]
#[non_exhaustive]
pub enum StateError {
    /// It belongs to another job.
    OtherJob {
        /// The file.
        path: PathBuf,
        /// In words, what is different: "its source is `a`, not `b`".
        difference: String,
    },
    /// Another process works with it.
    Locked {
        /// The file.
        path: PathBuf,
        /// The process, as far as the file tells.
        pid: Option<u32>,
    },
    /// It is no resume file, or one of another version of the format.
    Foreign {
        /// The file.
        path: PathBuf,
        /// The version that it names, if it is a resume file at all.
        version: Option<u32>,
    },
    /// It could not be read or written.
    Io {
        /// What was tried: "read", "lock".
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateError::OtherJob { path, difference } => write!(
                f,
                "the resume file {} is of another job: {difference}; name another file, or remove this one to give that \
                 job up",
                path.display()
            ),
            StateError::Locked { path, pid: Some(pid) } => write!(
                f,
                "the resume file {} is in use by process {pid}; wait until it has ended, or name another file",
                path.display()
            ),
            StateError::Locked { path, pid: None } => write!(
                f,
                "the resume file {} is in use by another process; wait until it has ended, or name another file",
                path.display()
            ),
            StateError::Foreign { path, version: None } => {
                write!(f, "{} is no resume file, and is left as it is; name another file", path.display())
            }
            StateError::Foreign { path, version: Some(version) } => write!(
                f,
                "the resume file {} is of version {version}, which another version of wirespeed wrote; go on with that \
                 one, or name another file",
                path.display()
            ),
            StateError::Io { doing, path, source } => {
                write!(f, "cannot {doing} the resume file {}: {source}", path.display())
            }
        }
    }
}

impl std::error::Error for StateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StateError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

//! How a file appears under its name.

use std::fs::{File, FileTimes, Permissions};
use std::io;
use std::time::SystemTime;

use jiff::Timestamp;

/// What becomes of the folders above a file, of one that has its name already, and what it gets itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Appearance {
    /// Missing folders are made.
    pub(crate) make_folders: bool,
    /// A file that is there stays.
    pub(crate) no_clobber: bool,
    pub(crate) attributes: FileAttributes,
    /// What the temporary's name carries instead of a random number; a file of that name was left by an earlier run of
    /// the same job, and is replaced.
    pub(crate) job: Option<u32>,
}

/// What a file gets before it takes its name; what is `None` is left as it comes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileAttributes {
    /// The time of modification.
    pub modified: Option<Timestamp>,
    /// Permission bits, the lowest twelve; where the system has none, they are passed over.
    pub mode: Option<u32>,
}

impl FileAttributes {
    /// These, and the others where these say nothing.
    pub(crate) fn or(self, others: FileAttributes) -> FileAttributes {
        FileAttributes { modified: self.modified.or(others.modified), mode: self.mode.or(others.mode) }
    }

    /// Gives them to a file that is open for writing.
    pub(super) fn give_to(self, file: &File) -> io::Result<()> {
        if let Some(mode) = self.mode {
            set_mode(file, mode & 0o7777)?;
        }
        if let Some(modified) = self.modified {
            file.set_times(FileTimes::new().set_modified(SystemTime::from(modified)))?;
        }
        Ok(())
    }
}

#[cfg(unix)]
fn set_mode(file: &File, bits: u32) -> io::Result<()> {
    file.set_permissions(<Permissions as std::os::unix::fs::PermissionsExt>::from_mode(bits))
}

#[cfg(not(unix))]
fn set_mode(_file: &File, _bits: u32) -> io::Result<()> {
    Ok(())
}

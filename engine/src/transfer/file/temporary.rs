//! The name under which a file is written before it has its own, and who may use it.
//!
//! `.name.NUMBER.wirespeed-partial` beside the target. The number is random, or that of a job: then what an earlier run
//! of the job left under that name, killed before it could tell anybody, is replaced. Within this process a name with a
//! job's number is its holder's alone, so that of two downloads to one target, which a list of names may ask for, neither
//! takes the other's half-written file for such a leftover.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, ErrorKind, Result};

/// The longest file name of the file systems in use.
const NAME_MAX: usize = 255;

/// What the names of temporaries end with.
const ENDING: &str = ".wirespeed-partial";

/// A temporary's name. The file is removed when this is dropped, unless it was renamed or is kept for another download to
/// go on with.
pub(super) struct Temporary {
    pub(super) path: Option<PathBuf>,
    pub(super) is_kept: bool,
    /// Given up last: a name that is free again has no file that is about to be removed.
    _claim: Option<Claim>,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = self.path.take_if(|_| !self.is_kept) {
            // Nobody is left to tell; the name says what it was.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Temporary {
    /// Opens a new file for `target`. What a killed process left is passed over, or replaced where it was of the same
    /// job. The inner result is the system's answer.
    pub(super) fn create(target: &Path, job: Option<u32>) -> Result<io::Result<(File, Temporary)>> {
        let mut tries = 0;
        loop {
            // What cannot be removed does not stand in the way for long.
            let (path, is_numbered) = name(target, job.filter(|_| tries < 2))?;
            let claim = match is_numbered {
                true => Claim::take(&path),
                false => None,
            };
            if is_numbered && claim.is_none() {
                tries = 2;
                continue;
            }
            tries += 1;
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Ok((file, Temporary { path: Some(path), is_kept: false, _claim: claim }))),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < 8 => {
                    if is_numbered {
                        drop(std::fs::remove_file(&path));
                    }
                }
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    /// The one that an earlier download to `target` kept; none where it is no file of ours, or somebody here is using it.
    /// Dropped, it is removed.
    pub(super) fn found(target: &Path, path: PathBuf) -> Option<(std::fs::Metadata, Temporary)> {
        let is_ours = path.parent() == target.parent()
            && path.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(ENDING.as_bytes()));
        // Not following links: what a link leads to is not ours to write to.
        let found = std::fs::symlink_metadata(&path).ok().filter(|found| is_ours && found.is_file())?;
        let claim = Claim::take(&path)?;
        Some((found, Temporary { path: Some(path), is_kept: false, _claim: Some(claim) }))
    }
}

/// Names in use here that another download could come upon.
static IN_USE: Mutex<BTreeSet<OsString>> = Mutex::new(BTreeSet::new());

/// The right to one of them, until it is dropped.
struct Claim(OsString);

impl Claim {
    fn take(path: &Path) -> Option<Claim> {
        let name = path.as_os_str().to_owned();
        let is_free = IN_USE.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
        // Made only then: to drop one is to give the name up.
        is_free.then(|| Claim(name))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        IN_USE.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// The name, cut where all would be too long, and whether its number is the job's: never where names that differ could
/// look alike here.
fn name(target: &Path, job: Option<u32>) -> Result<(PathBuf, bool)> {
    let name = target
        .file_name()
        .ok_or_else(|| Error::new(ErrorKind::Config, format!("{} does not name a file", target.display())))?;
    let name = name.to_string_lossy();
    let mut cut = name.len().min(NAME_MAX - ".".len() - ".00000000".len() - ENDING.len());
    while !name.is_char_boundary(cut) {
        cut -= 1;
    }
    let is_whole = cut == name.len() && matches!(name, Cow::Borrowed(_));
    let job = job.filter(|_| is_whole);
    let number = job.unwrap_or_else(|| fastrand::u32(..));
    Ok((target.with_file_name(format!(".{}.{number:08x}{ENDING}", &name[..cut])), job.is_some()))
}

//! One run at a time: a file that a run holds while it lasts, as a job of cron needs it.
//!
//! The lock is the kernel's (flock), so that it ends with its process, however that ends. The file stays where it is: to
//! remove it would let two runs hold two files of one name.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::Path;

use crate::failure::{Failure, visible};

/// A file that is held; dropping it lets it go.
pub(crate) struct Lock {
    _held: File,
}

impl Lock {
    /// Takes hold of the file, which is made where it is not there.
    ///
    /// # Errors
    /// [`Failure::Locked`] where another run holds it.
    pub(crate) fn take(path: &Path) -> Result<Lock, Failure> {
        let cannot = |source| Failure::local("lock", path, source);
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = opened.map_err(cannot)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Failure::Locked(held(path, &mut file))),
            Err(TryLockError::Error(source)) => return Err(cannot(source)),
        }
        // For whoever wonders. The lock holds without it.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Lock { _held: file })
    }
}

fn held(path: &Path, file: &mut File) -> String {
    let mut process = String::new();
    let _ = file.take(32).read_to_string(&mut process);
    let who = match process.trim().parse::<u32>() {
        Ok(process) => format!("another run, process {process},"),
        Err(_) => "another run".to_owned(),
    };
    format!("{who} holds `{}`; nothing was done", visible(&path.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_it_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = Lock::take(&path).unwrap();
        let Err(Failure::Locked(why)) = Lock::take(&path) else { panic!("held twice") };
        assert!(why.contains(&std::process::id().to_string()), "{why}");
        drop(first);
        assert!(Lock::take(&path).is_ok());
        assert!(matches!(Lock::take(&folder.path().join("none/lock")), Err(Failure::Local { .. })));
    }
}

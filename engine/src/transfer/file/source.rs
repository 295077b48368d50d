//! Files to upload: read by position into pooled memory, and seen to stay as they were.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::on_blocking_thread;
use crate::buffer::Slot;
use crate::error::{Error, ErrorKind, Result};
use crate::transfer::resume::FileIdentity;

/// A local file to upload, and what it looked like when it was opened.
pub(crate) struct SourceFile {
    file: File,
    path: PathBuf,
    size: u64,
    modified: Option<SystemTime>,
    identity: FileIdentity,
}

/// A local file that is to be uploaded and was not opened yet.
#[derive(Clone)]
pub(crate) struct FoundFile {
    pub(crate) path: PathBuf,
    /// In bytes, as whoever found it saw it.
    pub(crate) size: u64,
}

impl SourceFile {
    /// Opens a regular file; where its size was `found` before, one of that size.
    pub(crate) async fn open(path: PathBuf, found: Option<u64>) -> Result<Arc<SourceFile>> {
        on_blocking_thread(move || open(path, found).map(Arc::new)).await
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// What it looked like when it was opened.
    pub(crate) fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// Reads `length` bytes at `offset` into the slot, up to `piece` at a time, each of which is shown
    /// while it is in the cache. Blocks. A file that has become shorter is an error.
    pub(crate) fn read_pieces(
        &self,
        mut slot: Slot,
        offset: u64,
        length: usize,
        piece: usize,
        mut show: impl FnMut(&[u8]),
    ) -> Result<Slot> {
        while slot.filled().len() < length {
            let done = slot.filled().len();
            let read = slot
                .read_at(&self.file, offset + done as u64, piece.min(length - done))
                .map_err(|error| cannot_read(&self.path, error))?;
            if read == 0 {
                return Err(changed(&self.path, "it became shorter"));
            }
            show(&slot.filled()[done..]);
        }
        Ok(slot)
    }

    /// Refuses a file that was written to while it was being read.
    pub(crate) async fn check_unchanged(self: &Arc<Self>) -> Result<()> {
        let source = Arc::clone(self);
        on_blocking_thread(move || source.is_unchanged()).await
    }

    fn is_unchanged(&self) -> Result<()> {
        let found = self.file.metadata().map_err(|error| cannot_read(&self.path, error))?;
        if found.len() != self.size {
            return Err(changed(&self.path, "its length is another"));
        }
        if found.modified().ok() != self.modified {
            return Err(changed(&self.path, "it was written to"));
        }
        Ok(())
    }
}

impl FoundFile {
    /// Reads all of it, as [`SourceFile::read_pieces`] does, into a slot of its size. Blocks. A file that has another
    /// size than it was found with, or that is written to meanwhile, is an error.
    pub(crate) fn read(self, slot: Slot, piece: usize, show: impl FnMut(&[u8])) -> Result<Slot> {
        let length = slot.capacity();
        let source = open(self.path, Some(self.size))?;
        let slot = source.read_pieces(slot, 0, length, piece, show)?;
        source.is_unchanged()?;
        Ok(slot)
    }
}

fn open(path: PathBuf, found: Option<u64>) -> Result<SourceFile> {
    // Whoever knows the size saw a file; and what has become of it since will not keep us waiting.
    if found.is_none() {
        // Asked before opening: opening a pipe without a writer would wait for one, and a device might do something.
        require_file(&path, &std::fs::metadata(&path).map_err(|error| cannot_read(&path, error))?)?;
    }
    let file = open_at_once(&path).map_err(|error| cannot_read(&path, error))?;
    let metadata = file.metadata().map_err(|error| cannot_read(&path, error))?;
    require_file(&path, &metadata)?;
    let (size, modified, identity) = (metadata.len(), metadata.modified().ok(), FileIdentity::of(&metadata));
    match found {
        Some(found) if found != size => {
            let message = format!("{} had {found} bytes when it was found, and has {size} now", path.display());
            Err(Error::new(ErrorKind::Integrity, message).with_hint("upload it when nothing writes to it"))
        }
        _ => Ok(SourceFile { file, path, size, modified, identity }),
    }
}

/// Opens for reading, and waits for nobody on the other side of a pipe.
#[cfg(unix)]
fn open_at_once(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;

    std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

#[cfg(not(unix))]
fn open_at_once(path: &Path) -> io::Result<File> {
    File::open(path)
}

fn require_file(path: &Path, found: &Metadata) -> Result<()> {
    match found.is_file() {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::Io, format!("{} is not a regular file", path.display()))),
    }
}

fn cannot_read(path: &Path, error: io::Error) -> Error {
    Error::io(format!("{} cannot be read", path.display()), error)
}

fn changed(path: &Path, how: &str) -> Error {
    Error::new(ErrorKind::Integrity, format!("{} changed while it was being uploaded: {how}", path.display()))
        .with_hint("upload it when nothing writes to it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(length: usize) -> Slot {
        let config = crate::buffer::PoolConfig { retain_bytes: 0, idle: std::time::Duration::ZERO, huge_pages: false };
        crate::buffer::Pool::new(config).reserve(length).unwrap().whole()
    }

    fn read(path: &Path, size: u64) -> Result<Slot> {
        FoundFile { path: path.to_owned(), size }.read(slot(size as usize), 4, |_| {})
    }

    #[test]
    fn a_file_is_read_whole_and_only_as_it_was_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, "content").unwrap();
        assert_eq!(read(&path, 7).unwrap().filled(), b"content");
        for size in [6, 8, 0] {
            let refused = read(&path, size).err().unwrap();
            assert_eq!(refused.kind(), ErrorKind::Integrity);
            assert!(refused.to_string().contains("7 now"), "{refused}");
        }
        std::fs::write(&path, "").unwrap();
        assert!(read(&path, 0).unwrap().filled().is_empty());
    }

    #[test]
    fn what_is_no_file_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        for path in [folder.path(), &pipe, Path::new("/dev/null")] {
            for found in [Some(0), None] {
                let refused = open(path.to_owned(), found).err().unwrap();
                assert!(refused.to_string().contains("not a regular file"), "{refused}");
            }
        }
        assert_eq!(read(&folder.path().join("missing"), 1).err().unwrap().kind(), ErrorKind::Io);
    }
}

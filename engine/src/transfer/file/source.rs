//! Files to upload: read by position into pooled memory, and seen to stay as they were.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use super::on_blocking_thread;
use crate::buffer::Slot;
use crate::error::{Error, ErrorKind, Result};

/// A local file to upload, and what it looked like when it was opened.
pub(crate) struct SourceFile {
    file: File,
    path: PathBuf,
    size: u64,
    modified: Option<std::time::SystemTime>,
}

impl SourceFile {
    pub(crate) async fn open(path: PathBuf) -> Result<Arc<SourceFile>> {
        on_blocking_thread(move || {
            let cannot_read = |error| Error::io(format!("{} cannot be read", path.display()), error);
            // Asked before opening: opening a pipe without a writer would wait for one.
            let found = std::fs::metadata(&path).map_err(cannot_read)?;
            if !found.is_file() {
                return Err(Error::new(ErrorKind::Io, format!("{} is not a regular file", path.display())));
            }
            let file = File::open(&path).map_err(cannot_read)?;
            let found = file.metadata().map_err(cannot_read)?;
            let (size, modified) = (found.len(), found.modified().ok());
            Ok(Arc::new(SourceFile { file, path, size, modified }))
        })
        .await
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
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
                .map_err(|error| Error::io(format!("{} cannot be read", self.path.display()), error))?;
            if read == 0 {
                return Err(self.changed("it became shorter"));
            }
            show(&slot.filled()[done..]);
        }
        Ok(slot)
    }

    /// Refuses a file that was written to while it was being read.
    pub(crate) async fn check_unchanged(self: &Arc<Self>) -> Result<()> {
        let source = Arc::clone(self);
        on_blocking_thread(move || {
            let found = source
                .file
                .metadata()
                .map_err(|error| Error::io(format!("{} cannot be read", source.path.display()), error))?;
            if found.len() != source.size {
                return Err(source.changed("its length is another"));
            }
            if found.modified().ok() != source.modified {
                return Err(source.changed("it was written to"));
            }
            Ok(())
        })
        .await
    }

    fn changed(&self, how: &str) -> Error {
        Error::new(ErrorKind::Integrity, format!("{} changed while it was being uploaded: {how}", self.path.display()))
            .with_hint("upload it when nothing writes to it")
    }
}

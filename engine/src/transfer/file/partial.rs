//! Files that appear whole or not at all.
//!
//! A download is written, out of order, to a temporary name beside its target, and renamed onto it
//! when every byte is there. Dropped before that, the temporary goes: a target is never half a file.
//! Each stage is written by a blocking thread as soon as it is full, while it is in the cache; a
//! queue before one writer a file was tried and cost a tenth more CPU on tmpfs.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::on_blocking_thread;
use crate::buffer::Slot;
use crate::error::{Error, ErrorKind, Result};

/// The longest file name of the file systems in use.
const NAME_MAX: usize = 255;

/// A file that does not exist yet under its own name. Dropped, it is gone at once, whatever is still
/// being written to it.
pub(crate) struct PartialFile {
    open: FileWriter,
    temporary: Temporary,
}

/// Writes to the file; cheap to clone.
#[derive(Clone)]
pub(crate) struct FileWriter(Arc<OpenFile>);

struct OpenFile {
    file: File,
    target: PathBuf,
}

/// Removed when dropped, unless it was renamed.
struct Temporary(Option<PathBuf>);

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            // Nobody is left to tell; the name says what it was.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl PartialFile {
    /// Opens the temporary for `target`. With `make_folders`, missing folders above it are made.
    pub(crate) async fn create(target: PathBuf, make_folders: bool) -> Result<PartialFile> {
        on_blocking_thread(move || create(target, make_folders)).await
    }

    pub(crate) fn writer(&self) -> FileWriter {
        self.open.clone()
    }

    /// Every byte is there: the file takes its name.
    pub(crate) async fn finish(self) -> Result<()> {
        on_blocking_thread(move || rename(self.temporary, &self.open.0.target)).await
    }
}

impl FileWriter {
    /// Writes what is in the slot at `offset`.
    pub(crate) async fn write_at(&self, slot: Slot, offset: u64) -> Result<()> {
        let open = Arc::clone(&self.0);
        on_blocking_thread(move || {
            open.file.write_all_at(slot.filled(), offset).map_err(|error| cannot_write(&open.target, error))
        })
        .await
    }
}

/// Writes a file that is in memory whole: one trip to a blocking thread.
pub(crate) async fn write_file(target: PathBuf, content: crate::buffer::Buffer, make_folders: bool) -> Result<()> {
    on_blocking_thread(move || {
        let partial = create(target, make_folders)?;
        let OpenFile { file, target } = &*partial.open.0;
        file.write_all_at(&content, 0).map_err(|error| cannot_write(target, error))?;
        rename(partial.temporary, target)
    })
    .await
}

fn create(target: PathBuf, make_folders: bool) -> Result<PartialFile> {
    // Following links: a rename onto a link to a device would replace the link.
    match std::fs::metadata(&target) {
        Ok(found) if found.is_dir() => {
            return Err(Error::new(ErrorKind::Io, format!("{} is a folder, not a file", target.display())));
        }
        Ok(found) if !found.is_file() => {
            return Err(Error::new(
                ErrorKind::Io,
                format!("{} is not a regular file, and would be replaced by one", target.display()),
            )
            .with_hint("write to standard output instead"));
        }
        _ => {}
    }
    let (mut temporary, mut opened) = open_temporary(&target)?;
    if make_folders
        && matches!(&opened, Err(error) if error.kind() == io::ErrorKind::NotFound)
        && let Some(folder) = target.parent()
    {
        std::fs::create_dir_all(folder)
            .map_err(|error| Error::io(format!("the folder {} cannot be made", folder.display()), error))?;
        (temporary, opened) = open_temporary(&target)?;
    }
    let file = opened.map_err(|error| cannot_write(&target, error))?;
    let open = FileWriter(Arc::new(OpenFile { file, target }));
    Ok(PartialFile { open, temporary: Temporary(Some(temporary)) })
}

/// Opens a new file under a name that nobody has; one that a killed process left is passed over.
fn open_temporary(target: &Path) -> Result<(PathBuf, io::Result<File>)> {
    let mut tries = 0;
    loop {
        let path = temporary_name(target)?;
        let opened = OpenOptions::new().write(true).create_new(true).open(&path);
        tries += 1;
        match &opened {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < 8 => {}
            _ => return Ok((path, opened)),
        }
    }
}

fn rename(mut temporary: Temporary, target: &Path) -> Result<()> {
    let Some(path) = temporary.0.as_ref() else { return Ok(()) };
    std::fs::rename(path, target).map_err(|error| cannot_write(target, error))?;
    temporary.0 = None;
    Ok(())
}

/// `.name.RANDOM.wirespeed-partial` beside the target, the name cut where all would be too long.
fn temporary_name(target: &Path) -> Result<PathBuf> {
    let name = target
        .file_name()
        .ok_or_else(|| Error::new(ErrorKind::Config, format!("{} does not name a file", target.display())))?;
    let ending = format!(".{:08x}.wirespeed-partial", fastrand::u32(..));
    let name = name.to_string_lossy();
    let mut cut = name.len().min(NAME_MAX - 1 - ending.len());
    while !name.is_char_boundary(cut) {
        cut -= 1;
    }
    Ok(target.with_file_name(format!(".{}{ending}", &name[..cut])))
}

fn cannot_write(target: &Path, error: io::Error) -> Error {
    let hint = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some("free some space"),
        io::ErrorKind::NotFound => Some("make its folder first"),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Some("choose a folder that can be written to")
        }
        _ => None,
    };
    let error = Error::io(format!("{} cannot be written", target.display()), error);
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_in(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn a_dropped_file_leaves_the_target_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("f");
        std::fs::write(&target, "old").unwrap();
        drop(PartialFile::create(target.clone(), false).await.unwrap());
        assert_eq!(names_in(folder.path()), ["f"]);
        assert_eq!(std::fs::read(&target).unwrap(), b"old");
    }

    #[tokio::test]
    async fn a_dropped_file_is_gone_while_somebody_still_writes() {
        let folder = tempfile::tempdir().unwrap();
        let file = PartialFile::create(folder.path().join("f"), false).await.unwrap();
        let writing = file.writer();
        drop(file);
        assert_eq!(names_in(folder.path()), [""; 0]);
        drop(writing);
    }

    #[tokio::test]
    async fn a_finished_file_takes_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a/b/f");
        let file = PartialFile::create(target.clone(), true).await.unwrap();
        file.finish().await.unwrap();
        assert_eq!(names_in(target.parent().unwrap()), ["f"]);
    }

    #[tokio::test]
    async fn a_name_of_the_longest_length_still_has_a_temporary() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("ü".repeat(127));
        PartialFile::create(target.clone(), false).await.unwrap().finish().await.unwrap();
        assert!(target.exists());
    }

    #[tokio::test]
    async fn what_is_no_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for target in [folder.path().to_owned(), PathBuf::from("/dev/null"), PathBuf::from("/")] {
            assert!(PartialFile::create(target, false).await.is_err());
        }
        let missing = PartialFile::create(folder.path().join("no/f"), false).await.err().unwrap();
        assert!(missing.to_string().contains("make its folder first"), "{missing}");
    }
}

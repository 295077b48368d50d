//! Files that appear whole or not at all.
//!
//! A download is written, out of order, to a temporary name beside its target, and renamed onto it
//! when every byte is there. Dropped before that, the temporary goes: a target is never half a file.
//! Each stage is written by a blocking thread as soon as it is full, while it is in the cache; a
//! queue before one writer a file was tried and cost a tenth more CPU on tmpfs.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::{Range, RangeInclusive};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::appearance::{Appearance, FileAttributes};
use super::on_blocking_thread;
use super::temporary::Temporary;
use crate::buffer::{Buffer, Slot};
use crate::error::{Error, ErrorKind, Result};
use crate::transfer::resume::DownloadLog;

/// A file that does not exist yet under its own name. Dropped, it is gone at once, whatever is still
/// being written to it.
pub(crate) struct PartialFile {
    open: FileWriter,
    temporary: Temporary,
    appearance: Appearance,
}

/// Writes to the file; cheap to clone.
#[derive(Clone)]
pub(crate) struct FileWriter {
    open: Arc<OpenFile>,
    /// Who is told of what is written.
    log: Option<Arc<dyn DownloadLog>>,
}

struct OpenFile {
    file: File,
    target: PathBuf,
}

impl PartialFile {
    /// Opens the temporary for `target`.
    pub(crate) async fn create(target: PathBuf, appearance: Appearance) -> Result<PartialFile> {
        on_blocking_thread(move || create(target, appearance)).await
    }

    pub(crate) fn writer(&self) -> FileWriter {
        self.open.clone()
    }

    /// The temporary that an earlier download to `target` kept; none where it is no file of ours, or its length
    /// cannot be: then it is removed.
    pub(crate) async fn reopen(
        target: PathBuf,
        temporary: PathBuf,
        lengths: RangeInclusive<u64>,
        appearance: Appearance,
    ) -> Result<Option<PartialFile>> {
        on_blocking_thread(move || reopen(target, temporary, &lengths, appearance)).await
    }

    /// Its name for now.
    pub(crate) fn temporary(&self) -> &Path {
        self.temporary.path.as_deref().unwrap_or(&self.open.open.target)
    }

    /// Whether it outlives this download when that comes to nothing.
    pub(crate) fn keep(&mut self, is_kept: bool) {
        self.temporary.is_kept = is_kept;
    }

    /// What it gets, where that is known only now.
    pub(crate) fn give(&mut self, attributes: FileAttributes) {
        self.appearance.attributes = attributes;
    }

    /// Every byte is there: the file takes its name.
    pub(crate) async fn finish(self) -> Result<()> {
        on_blocking_thread(move || self.appear()).await
    }

    fn appear(self) -> Result<()> {
        let PartialFile { open, temporary, appearance } = self;
        let OpenFile { file, target } = &*open.open;
        appearance.attributes.give_to(file).map_err(|error| cannot_write(target, error))?;
        match appearance.no_clobber {
            true => take_free_name(temporary, target),
            false => rename(temporary, target),
        }
    }
}

impl FileWriter {
    /// The same, that tells `log` of every range once it is written.
    pub(crate) fn telling(self, log: Arc<dyn DownloadLog>) -> FileWriter {
        FileWriter { log: Some(log), ..self }
    }

    /// Writes what is in the slot at `offset`.
    pub(crate) async fn write_at(&self, slot: Slot, offset: u64) -> Result<()> {
        let open = Arc::clone(&self.open);
        let length = slot.filled().len() as u64;
        on_blocking_thread(move || {
            open.file.write_all_at(slot.filled(), offset).map_err(|error| cannot_write(&open.target, error))
        })
        .await?;
        // Told here and not on that thread, which may go on when the download has been dropped.
        if let Some(log) = &self.log {
            log.wrote(offset..offset + length);
        }
        Ok(())
    }

    /// Shows what was written to a reopened file before, up to `piece` bytes at a time. Blocks.
    pub(crate) fn read_pieces(&self, range: Range<u64>, piece: usize, mut show: impl FnMut(&[u8])) -> Result<()> {
        let OpenFile { file, target } = &*self.open;
        let mut scratch = vec![0; piece.min(usize::try_from(range.end - range.start).unwrap_or(piece))];
        let mut at = range.start;
        while at < range.end {
            let length = scratch.len().min(usize::try_from(range.end - at).unwrap_or(usize::MAX));
            file.read_exact_at(&mut scratch[..length], at).map_err(|error| {
                Error::io(format!("what was there of {} cannot be read back", target.display()), error)
            })?;
            show(&scratch[..length]);
            at += length as u64;
        }
        Ok(())
    }
}

/// Writes a file that is in memory whole. Blocks.
pub(crate) fn write_file(target: PathBuf, content: &Buffer, appearance: Appearance) -> Result<()> {
    let partial = create(target, appearance)?;
    let OpenFile { file, target } = &*partial.open.open;
    file.write_all_at(content, 0).map_err(|error| cannot_write(target, error))?;
    partial.appear()
}

fn create(target: PathBuf, appearance: Appearance) -> Result<PartialFile> {
    refuse(&target, appearance)?;
    let mut opened = Temporary::create(&target, appearance.job)?;
    if appearance.make_folders
        && matches!(&opened, Err(error) if error.kind() == io::ErrorKind::NotFound)
        && let Some(folder) = target.parent()
    {
        std::fs::create_dir_all(folder)
            .map_err(|error| Error::io(format!("the folder {} cannot be made", folder.display()), error))?;
        opened = Temporary::create(&target, appearance.job)?;
    }
    let (file, temporary) = opened.map_err(|error| cannot_write(&target, error))?;
    Ok(partial(file, target, temporary, appearance))
}

fn partial(file: File, target: PathBuf, temporary: Temporary, appearance: Appearance) -> PartialFile {
    let open = FileWriter { open: Arc::new(OpenFile { file, target }), log: None };
    PartialFile { open, temporary, appearance }
}

fn reopen(
    target: PathBuf,
    temporary: PathBuf,
    lengths: &RangeInclusive<u64>,
    appearance: Appearance,
) -> Result<Option<PartialFile>> {
    let found = Temporary::found(&target, temporary.clone());
    if let Err(error) = refuse(&target, appearance) {
        // Where the name is taken for good, nobody can go on with it.
        if let Some((_, mut left)) = found {
            left.is_kept = error.kind() != ErrorKind::Precondition;
        }
        return Err(error);
    }
    let Some((found, left)) = found else { return Ok(None) };
    Ok(match OpenOptions::new().read(true).write(true).open(&temporary) {
        Ok(file) if lengths.contains(&found.len()) => {
            let mut reopened = partial(file, target, left, appearance);
            // Whoever asked for it may be gone by now.
            reopened.keep(true);
            Some(reopened)
        }
        // Of no use: it goes.
        _ => None,
    })
}

/// Refuses a target that a file cannot or may not take the place of.
fn refuse(target: &Path, appearance: Appearance) -> Result<()> {
    // Following links: a rename onto a link to a device would replace the link.
    match std::fs::metadata(target) {
        Ok(found) if found.is_dir() => {
            Err(Error::new(ErrorKind::Io, format!("{} is a folder, not a file", target.display())))
        }
        Ok(found) if !found.is_file() => Err(Error::new(
            ErrorKind::Io,
            format!("{} is not a regular file, and would be replaced by one", target.display()),
        )
        .with_hint("write to standard output instead")),
        Ok(_) if appearance.no_clobber => Err(is_taken(target)),
        _ => Ok(()),
    }
}

fn rename(mut temporary: Temporary, target: &Path) -> Result<()> {
    let Some(path) = temporary.path.as_ref() else { return Ok(()) };
    std::fs::rename(path, target).map_err(|error| cannot_write(target, error))?;
    temporary.path = None;
    Ok(())
}

/// The same where nothing has that name, and not otherwise: a link, unlike a rename, replaces nothing.
fn take_free_name(mut temporary: Temporary, target: &Path) -> Result<()> {
    let Some(path) = temporary.path.clone() else { return Ok(()) };
    // Once the name is taken, by this file or by another, the temporary one is of no use.
    let is_kept = std::mem::take(&mut temporary.is_kept);
    match std::fs::hard_link(&path, target) {
        // The other of its two names goes.
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(is_taken(target)),
        // A file system without links; others will come to light below.
        Err(_) => {}
    }
    // The name is taken by an empty file, and that is replaced.
    let claimed = OpenOptions::new().write(true).create_new(true).open(target);
    claimed.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => is_taken(target),
        _ => {
            temporary.is_kept = is_kept;
            cannot_write(target, error)
        }
    })?;
    let renamed = std::fs::rename(path, target).map_err(|error| cannot_write(target, error));
    match &renamed {
        Ok(()) => temporary.path = None,
        // It holds nothing, and what went wrong is told.
        Err(_) => {
            temporary.is_kept = is_kept;
            drop(std::fs::remove_file(target));
        }
    }
    renamed
}

fn is_taken(target: &Path) -> Error {
    Error::new(ErrorKind::Precondition, format!("{} exists, and is not to be replaced", target.display()))
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
        drop(PartialFile::create(target.clone(), Appearance::default()).await.unwrap());
        assert_eq!(names_in(folder.path()), ["f"]);
        assert_eq!(std::fs::read(&target).unwrap(), b"old");
    }

    #[tokio::test]
    async fn a_dropped_file_is_gone_while_somebody_still_writes() {
        let folder = tempfile::tempdir().unwrap();
        let file = PartialFile::create(folder.path().join("f"), Appearance::default()).await.unwrap();
        let writing = file.writer();
        drop(file);
        assert_eq!(names_in(folder.path()), [""; 0]);
        drop(writing);
    }

    #[tokio::test]
    async fn a_finished_file_takes_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a/b/f");
        let appearance = Appearance { make_folders: true, ..Appearance::default() };
        let file = PartialFile::create(target.clone(), appearance).await.unwrap();
        file.finish().await.unwrap();
        assert_eq!(names_in(target.parent().unwrap()), ["f"]);
    }

    #[tokio::test]
    async fn a_file_that_is_there_or_comes_meanwhile_stays_where_that_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("f");
        let appearance = Appearance { no_clobber: true, ..Appearance::default() };
        let first = PartialFile::create(target.clone(), appearance).await.unwrap();
        let second = PartialFile::create(target.clone(), appearance).await.unwrap();
        first.finish().await.unwrap();
        std::fs::write(&target, "first").unwrap();
        let late = second.finish().await.unwrap_err();
        let later = PartialFile::create(target.clone(), appearance).await.err().unwrap();
        assert_eq!((late.kind(), later.kind()), (ErrorKind::Precondition, ErrorKind::Precondition), "{late} {later}");
        assert_eq!(std::fs::read(&target).unwrap(), b"first");
        assert_eq!(names_in(folder.path()), ["f"]);
    }

    #[tokio::test]
    async fn a_file_appears_with_its_time_and_mode() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("f");
        let modified = jiff::Timestamp::new(1_000_000_000, 123_456_789).unwrap();
        let attributes = FileAttributes { modified: Some(modified), mode: Some(0o100_640) };
        let file = PartialFile::create(target.clone(), Appearance { attributes, ..Appearance::default() });
        file.await.unwrap().finish().await.unwrap();
        let found = std::fs::metadata(&target).unwrap();
        assert_eq!(found.modified().unwrap(), std::time::SystemTime::from(modified));
        assert_eq!(found.permissions().mode() & 0o7777, 0o640);
    }

    #[tokio::test]
    async fn a_name_of_the_longest_length_still_has_a_temporary() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("ü".repeat(127));
        PartialFile::create(target.clone(), Appearance::default()).await.unwrap().finish().await.unwrap();
        assert!(target.exists());
    }

    #[tokio::test]
    async fn what_a_killed_run_of_the_same_job_left_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (same, other) = (".f.0000002a.wirespeed-partial", ".f.0000002b.wirespeed-partial");
        for left in [same, other] {
            std::fs::write(folder.path().join(left), "half").unwrap();
        }
        let appearance = Appearance { job: Some(42), ..Appearance::default() };
        let file = PartialFile::create(folder.path().join("f"), appearance).await.unwrap();
        assert_eq!(file.temporary(), folder.path().join(same));
        assert_eq!(std::fs::read(file.temporary()).unwrap(), b"");
        file.finish().await.unwrap();
        assert_eq!(names_in(folder.path()), [other, "f"]);
    }

    #[tokio::test]
    async fn of_two_at_once_neither_takes_the_others_temporary() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("f");
        let appearance = Appearance { job: Some(42), ..Appearance::default() };
        let first = PartialFile::create(target.clone(), appearance).await.unwrap();
        let second = PartialFile::create(target.clone(), appearance).await.unwrap();
        assert_ne!(first.temporary(), second.temporary());
        let kept = first.temporary().to_owned();
        let reopened = PartialFile::reopen(target.clone(), kept.clone(), 0..=0, appearance).await.unwrap();
        assert!(reopened.is_none() && kept.exists(), "it is in use");
        second.finish().await.unwrap();
        first.finish().await.unwrap();
        assert_eq!(names_in(folder.path()), ["f"]);
        let third = PartialFile::create(target, appearance).await.unwrap();
        assert_eq!(third.temporary(), kept, "the name is free again");
    }

    #[tokio::test]
    async fn names_that_look_alike_when_cut_have_temporaries_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let appearance = Appearance { job: Some(42), ..Appearance::default() };
        let [one, two] = ["1", "2"].map(|end| folder.path().join("x".repeat(250) + end));
        let first = PartialFile::create(one.clone(), appearance).await.unwrap();
        let second = PartialFile::create(two.clone(), appearance).await.unwrap();
        first.finish().await.unwrap();
        second.finish().await.unwrap();
        assert!(one.exists() && two.exists());
    }

    #[tokio::test]
    async fn what_is_no_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for target in [folder.path().to_owned(), PathBuf::from("/dev/null"), PathBuf::from("/")] {
            assert!(PartialFile::create(target, Appearance::default()).await.is_err());
        }
        let missing = PartialFile::create(folder.path().join("no/f"), Appearance::default()).await.err().unwrap();
        assert!(missing.to_string().contains("make its folder first"), "{missing}");
    }
}

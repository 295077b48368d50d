//! Files of a folder, in the byte order of the keys that they become.
//!
//! In that order a folder stands where its name with a `/` behind it stands among its neighbours: `a.b` is before `a/b`,
//! and `a` before both. So each folder is read whole and sorted, and memory holds the names of one folder a level. One
//! thread reads folders ahead; sizes and times are looked up by a few others, and put back in order.
//!
//! Links in a circle, unreadable folders, names that are not UTF-8 and what is no regular file are handed on as trouble.
//! Temporaries of downloads, which a stopped job may leave to go on with, are no files of the folder.

mod names;

use std::fs::{self, Metadata};
use std::io;
use std::mem;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::poll_fn;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};

use self::names::{Kind, Names};
use super::{Batch, Looking, Trouble};
use crate::entry::Entry;
use crate::failure::Failure;

type Send = mpsc::Sender<Result<Batch, Failure>>;

/// Files of one batch: as many as a listing has on a page.
const BATCH: usize = 1_000;

/// Batches whose sizes and times are looked up at a time: a file system that answers over a network likes a few questions
/// at once, and a local one gains nothing by more.
const LOOKS: usize = 4;

/// Starts the walk over a folder.
pub(super) fn start(root: PathBuf, looking: Looking, send: Send) -> JoinHandle<()> {
    tokio::spawn(async move {
        let root: Arc<Path> = root.into();
        let (found, mut chunks) = mpsc::channel(LOOKS);
        let finder = Finder { root: Arc::clone(&root), looking: looking.clone(), found, chunk: Chunk::default() };
        let finding = spawn_blocking(move || finder.run());
        let chunks = poll_fn(|cx| chunks.poll_recv(cx));
        let mut looked = chunks.map(|chunk| look_up(chunk, Arc::clone(&root), looking.follow_links)).buffered(LOOKS);
        while let Some(batch) = looked.next().await {
            if send.send(batch).await.is_err() {
                return;
            }
        }
        // A walk that panicked has not found everything.
        if let Err(error) = finding.await
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
    })
}

/// Keys whose files are still to be looked at, in order, and what was found beside them.
#[derive(Default)]
struct Chunk {
    keys: Vec<String>,
    troubles: Vec<(Entry, Trouble)>,
    /// The walk cannot go on, or not even begin.
    failed: Option<Failure>,
}

async fn look_up(chunk: Chunk, root: Arc<Path>, follow: bool) -> Result<Batch, Failure> {
    let lost = |_| Failure::Lost("a part of the walk ended in a panic, a fault of wirespeed; report it".to_owned());
    spawn_blocking(move || {
        let mut batch = Batch { entries: Vec::with_capacity(chunk.keys.len()), troubles: chunk.troubles };
        for key in chunk.keys {
            let path = root.join(&key);
            match if follow { fs::metadata(&path) } else { fs::symlink_metadata(&path) } {
                Ok(found) if found.is_file() => batch.entries.push(file_entry(key, &found)),
                Ok(_) => batch.troubles.push((Entry::named(key), Trouble::Skipped("not a regular file"))),
                Err(source) => {
                    let failure = Failure::Local { doing: "read", path, source };
                    batch.troubles.push((Entry::named(key), Trouble::Failed(failure)));
                }
            }
        }
        match chunk.failed {
            None => Ok(batch),
            Some(failure) => Err(failure),
        }
    })
    .await
    .unwrap_or_else(|error| Err(lost(error)))
}

/// What is known of a file.
pub(crate) fn file_entry(key: String, found: &Metadata) -> Entry {
    let nanosecond = i32::try_from(found.mtime_nsec()).unwrap_or(0);
    Entry {
        key,
        size: Some(found.len()),
        modified: Timestamp::new(found.mtime(), nanosecond).ok(),
        mode: Some(found.mode()),
        ..Entry::default()
    }
}

/// Goes through the folders, on a thread of its own.
struct Finder {
    root: Arc<Path>,
    looking: Looking,
    found: mpsc::Sender<Chunk>,
    chunk: Chunk,
}

/// A folder that is being gone through.
struct Folder {
    /// What the keys of its files begin with.
    prefix: String,
    /// Device and inode.
    identity: (u64, u64),
    names: Names,
}

/// Nobody listens any more.
struct Unheard;

impl Finder {
    fn run(mut self) {
        if self.all().is_ok() {
            let _ = self.hand_over();
        }
    }

    fn all(&mut self) -> Result<(), Unheard> {
        let mut stack = Vec::new();
        let opened = fs::metadata(&self.root).and_then(|found| self.read(&self.root, String::new(), &found));
        match opened {
            Ok(folder) => stack.push(folder),
            // Where the place is still to be made there is nothing yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.looking.may_be_missing => {}
            Err(source) => {
                let path = self.root.to_path_buf();
                self.chunk.failed = Some(Failure::Local { doing: "read the folder", path, source });
            }
        }
        while let Some(folder) = stack.last_mut() {
            let Some((name, kind)) = folder.names.next() else {
                stack.pop();
                continue;
            };
            let prefix = folder.prefix.as_str();
            let Ok(name) = std::str::from_utf8(name) else {
                let key = format!("{prefix}{}", String::from_utf8_lossy(name));
                let why = "its name is not UTF-8, and S3 keys are; rename it";
                let refused = format!("refused `{}`: {why}", self.root.join(&key).display());
                self.trouble(key, Trouble::Failed(Failure::Refused(refused)))?;
                continue;
            };
            let mut key = String::with_capacity(prefix.len() + name.len() + 1);
            key.push_str(prefix);
            key.push_str(name);
            match kind {
                Kind::File if self.looking.range.holds(&key) => self.file(key)?,
                Kind::File => {}
                Kind::Other if self.looking.range.holds(&key) => {
                    self.trouble(key, Trouble::Skipped("not a regular file"))?;
                }
                Kind::Other => {}
                Kind::Folder => {
                    key.push('/');
                    if self.looking.range.touches(&key) {
                        let opened = self.open(key, &stack)?;
                        stack.extend(opened);
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads the folder whose files' keys begin with `prefix`, unless that would never end.
    fn open(&mut self, prefix: String, above: &[Folder]) -> Result<Option<Folder>, Unheard> {
        let path = self.root.join(&prefix);
        let opened = fs::metadata(&path).and_then(|found| {
            let identity = (found.dev(), found.ino());
            if above.iter().any(|folder| folder.identity == identity) {
                return Err(io::Error::other("the symbolic link leads back to a folder above it"));
            }
            self.read(&path, prefix.clone(), &found)
        });
        match opened {
            Ok(folder) => Ok(Some(folder)),
            Err(source) => {
                self.trouble(prefix, Trouble::Failed(Failure::Local { doing: "read the folder", path, source }))?;
                Ok(None)
            }
        }
    }

    fn read(&self, path: &Path, prefix: String, found: &Metadata) -> io::Result<Folder> {
        let names = Names::read(path, self.looking.follow_links)?;
        Ok(Folder { prefix, identity: (found.dev(), found.ino()), names })
    }

    fn file(&mut self, key: String) -> Result<(), Unheard> {
        self.chunk.keys.push(key);
        self.hand_over_if_full()
    }

    fn trouble(&mut self, key: String, trouble: Trouble) -> Result<(), Unheard> {
        self.chunk.troubles.push((Entry::named(key), trouble));
        self.hand_over_if_full()
    }

    fn hand_over_if_full(&mut self) -> Result<(), Unheard> {
        if self.chunk.keys.len() + self.chunk.troubles.len() < BATCH { Ok(()) } else { self.hand_over() }
    }

    fn hand_over(&mut self) -> Result<(), Unheard> {
        self.found.blocking_send(mem::take(&mut self.chunk)).map_err(|_| Unheard)
    }
}

#[cfg(test)]
#[path = "walk/tests.rs"]
mod tests;

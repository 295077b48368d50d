//! Deletions: keys of a bucket in batches of 1,000, files of a folder on blocking threads.

use std::collections::hash_map::Entry as Slot;
use std::collections::{HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};
use wirespeed::DeleteFailure;

use crate::entry::Entry;
use crate::failure::Failure;
use crate::place::{Bucket, Place};
use crate::source::file_entry;

/// The most keys that one request may name.
const BATCH: usize = 1_000;

/// Batches that are deleted at a time.
const AT_A_TIME: usize = 4;

/// How long what was moved may wait for its batch to be full.
const PATIENCE: Duration = Duration::from_secs(1);

/// Something that was to be removed, and why it is still there, if it is.
type Removed = (Entry, Result<(), Failure>);

/// Things of one place that are to be removed.
pub(super) struct Removal {
    place: Place,
    /// Whether a file is only removed if it is what the entry says.
    only_unchanged: bool,
    waiting: Vec<Entry>,
    /// When what waits is removed, be its batch full or not.
    due: Option<Instant>,
    running: FuturesUnordered<BoxFuture<'static, Vec<Removed>>>,
    removed: VecDeque<Removed>,
}

impl Removal {
    pub(super) fn new(place: Place, only_unchanged: bool) -> Removal {
        Removal {
            place,
            only_unchanged,
            waiting: Vec::new(),
            due: None,
            running: FuturesUnordered::new(),
            removed: VecDeque::new(),
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.running.len() < AT_A_TIME
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty() && self.removed.is_empty()
    }

    pub(super) fn add(&mut self, entry: Entry) {
        if self.waiting.is_empty() {
            self.due = Some(Instant::now() + PATIENCE);
        }
        self.waiting.push(entry);
        if self.waiting.len() == BATCH {
            self.flush();
        }
    }

    /// Removes what waits for a batch to be full.
    pub(super) fn flush(&mut self) {
        self.due = None;
        let batch = std::mem::take(&mut self.waiting);
        if batch.is_empty() {
            return;
        }
        self.running.push(match &self.place {
            Place::Bucket(bucket) => Box::pin(delete(bucket.clone(), batch)),
            Place::Folder(folder) => Box::pin(unlink(folder.clone(), batch, self.only_unchanged)),
            Place::Nowhere => Box::pin(async { batch.into_iter().map(|entry| (entry, Ok(()))).collect() }),
        });
    }

    /// The next that was removed, or not. Cancelled, it loses nothing. Waits forever where nothing is to be removed.
    pub(super) async fn next(&mut self) -> Removed {
        loop {
            if let Some(removed) = self.removed.pop_front() {
                return removed;
            }
            tokio::select! {
                Some(removed) = self.running.next(), if !self.running.is_empty() => self.removed.extend(removed),
                () = wait_until(self.due) => self.flush(),
            }
        }
    }
}

async fn wait_until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

async fn delete(bucket: Bucket, batch: Vec<Entry>) -> Vec<Removed> {
    let (mut keys, mut versions) = (Vec::new(), Vec::new());
    for entry in &batch {
        let key = bucket.key_of(&entry.key);
        match &entry.version {
            None => keys.push(key),
            Some(version) => versions.push((key, version.clone())),
        }
    }
    let delete = bucket.asked(bucket.client.delete_many(&bucket.name, keys)).versions(versions);
    match delete.await {
        Ok(failures) => account(&bucket, batch, failures),
        Err(error) => batch.into_iter().map(|entry| (entry, Err(error.clone().into()))).collect(),
    }
}

/// Holds the failures that the server names against what was asked for. What it says of a key that was not asked for,
/// or of none, is a failure too: some object is still there.
fn account(bucket: &Bucket, batch: Vec<Entry>, failures: Vec<DeleteFailure>) -> Vec<Removed> {
    if failures.is_empty() {
        return batch.into_iter().map(|entry| (entry, Ok(()))).collect();
    }
    let whole = |entry: &Entry| (bucket.key_of(&entry.key), entry.version.clone());
    let mut kept: HashMap<_, Option<DeleteFailure>> = batch.iter().map(|entry| (whole(entry), None)).collect();
    let mut strange = Vec::new();
    for failure in failures {
        match kept.entry((failure.key.clone(), failure.version_id.clone())) {
            Slot::Occupied(mut slot) => drop(slot.insert(Some(failure))),
            Slot::Vacant(_) => strange.push(failure),
        }
    }
    let mut removed: Vec<Removed> = Vec::with_capacity(batch.len());
    for entry in batch {
        let result = match kept.remove(&whole(&entry)).flatten() {
            None => Ok(()),
            Some(failure) => {
                let what = format!("s3://{}/{}", bucket.name, failure.key.escape_debug());
                Err(rejected(bucket, what, failure))
            }
        };
        removed.push((entry, result));
    }
    for failure in strange {
        let (name, prefix) = (&bucket.name, &bucket.prefix);
        let what = match failure.key.as_str() {
            "" => format!("an object under s3://{name}/{prefix} whose key the server does not tell"),
            key => format!("s3://{name}/{}, a key that was not asked for", key.escape_debug()),
        };
        let relative = failure.key.strip_prefix(prefix).unwrap_or_default();
        let entry = Entry { version: failure.version_id.clone(), ..Entry::named(relative) };
        removed.push((entry, Err(rejected(bucket, what, failure))));
    }
    removed
}

fn rejected(bucket: &Bucket, what: String, failure: DeleteFailure) -> Failure {
    let DeleteFailure { key, code, message, .. } = failure;
    Failure::Rejected { what, bucket: bucket.name.clone(), key, code, message }
}

async fn unlink(folder: PathBuf, batch: Vec<Entry>, only_unchanged: bool) -> Vec<Removed> {
    let names: Vec<Entry> = batch.clone();
    let unlinking = spawn_blocking(move || {
        batch.into_iter().map(|entry| unlink_one(&folder, entry, only_unchanged)).collect::<Vec<Removed>>()
    });
    unlinking.await.unwrap_or_else(|_| names.into_iter().map(|entry| (entry, Err(Failure::lost()))).collect())
}

fn unlink_one(folder: &Path, entry: Entry, only_unchanged: bool) -> Removed {
    let path = folder.join(&entry.key);
    if only_unchanged {
        let found = fs::metadata(&path).map(|found| file_entry(String::new(), &found));
        let is_same = found.is_ok_and(|found| found.size == entry.size && found.modified == entry.modified);
        if !is_same {
            let why = format!("`{}` changed while it was copied, so it stays; move it again", path.display());
            return (entry, Err(Failure::Refused(why)));
        }
    }
    let removed = fs::remove_file(&path).map_err(|source| Failure::Local { doing: "remove", path, source });
    (entry, removed)
}

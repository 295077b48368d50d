//! What a place has, in batches, as it is found: a listing of a prefix, a walk over a folder, or somebody's list of names.
//!
//! A source runs in a task of its own and stays a few batches ahead of who reads it. What it comes upon and cannot
//! hand on as an entry (an unreadable folder, a device) goes along as trouble; an error that ends a listing comes last,
//! so that whoever deletes by what is missing knows that something is missing.

mod listing;
mod range;
mod walk;

pub(crate) use range::Range;

pub(crate) use walk::file_entry;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::entry::Entry;
use crate::failure::Failure;
use crate::place::Place;

/// Batches that may wait to be read.
const AHEAD: usize = 4;

/// What was found at once.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Objects or files.
    pub(crate) entries: Vec<Entry>,
    /// What there is besides, each with what is wrong with it.
    pub(crate) troubles: Vec<(Entry, Trouble)>,
}

/// Why something that was found is no entry.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// It is nothing that could be transferred.
    Skipped(&'static str),
    /// It ought to be transferred, and cannot be.
    Failed(Failure),
}

/// A source under way; dropping it ends it.
pub(crate) struct Source {
    batches: mpsc::Receiver<Result<Batch, Failure>>,
    task: Option<JoinHandle<()>>,
}

/// How a place is looked through.
#[derive(Debug, Clone, Default)]
pub(crate) struct Looking {
    /// In the byte order of keys; otherwise in any.
    pub(crate) in_order: bool,
    /// Whether symbolic links are followed.
    pub(crate) follow_links: bool,
    /// All versions and delete markers of a bucket's keys.
    pub(crate) all_versions: bool,
    /// A folder that does not exist is an empty one.
    pub(crate) may_be_missing: bool,
    /// All names that are wanted begin with this; what a listing finds need not be more.
    pub(crate) prefix: String,
    /// Only keys of this range.
    pub(crate) range: Range,
}

impl Source {
    /// Looks through a place. Must run inside the runtime.
    pub(crate) fn of(place: &Place, looking: Looking) -> Source {
        let (send, batches) = mpsc::channel(AHEAD);
        let task = match place {
            Place::Bucket(bucket) if looking.all_versions => {
                tokio::spawn(listing::versions(bucket.clone(), looking, send))
            }
            Place::Bucket(bucket) => tokio::spawn(listing::objects(bucket.clone(), looking, send)),
            Place::Folder(folder) => walk::start(folder.clone(), looking, send),
            Place::Nowhere => return Source { batches, task: None },
        };
        Source { batches, task: Some(task) }
    }

    /// One that has been found.
    #[cfg(test)]
    pub(crate) fn given(all: Vec<Result<Batch, Failure>>) -> Source {
        let (send, batches) = mpsc::channel(all.len().max(1));
        all.into_iter().for_each(|batch| send.try_send(batch).unwrap());
        Source { batches, task: None }
    }

    /// The next batch; `None` at the end, and after an error.
    pub(crate) async fn next(&mut self) -> Option<Result<Batch, Failure>> {
        if let Some(batch) = self.batches.recv().await {
            return Some(batch);
        }
        // A task that panicked has not found everything.
        match self.task.take()?.await {
            Err(error) if error.is_panic() => Some(Err(Failure::Lost(
                "the search ended in a panic, a fault of wirespeed; run it again, and report the fault".to_owned(),
            ))),
            _ => None,
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

//! What a job tells while it runs.

use crate::entry::Entry;
use crate::failure::Failure;
use crate::place::{Location, Place};

/// Is told of what a job finds and does, in the task that runs the job: be quick.
///
/// `()` hears nothing; the [`Summary`](crate::Summary) is there in any case.
pub trait Report: Send {
    /// More was found that is to be transferred: so many items and bytes, as far as sizes are known.
    fn found(&mut self, items: u64, bytes: u64) {
        let _ = (items, bytes);
    }

    /// Nothing more will be found.
    fn all_found(&mut self) {}

    /// One item has come to its end.
    fn item(&mut self, item: &Item<'_>) {
        let _ = item;
    }
}

impl Report for () {}

/// What is done to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// From S3 to a file.
    Download,
    /// From a file to S3.
    Upload,
    /// From S3 to S3, on the server or through this machine.
    Copy,
    /// From S3 to nowhere.
    Discard,
    /// Deleted: by a deletion, or because a sync's source has it no more.
    Delete,
}

impl Action {
    /// In one lower-case word, as it is shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Download => "download",
            Action::Upload => "upload",
            Action::Copy => "copy",
            Action::Discard => "discard",
            Action::Delete => "delete",
        }
    }
}

/// What came of an item.
#[derive(Debug)]
pub enum Outcome {
    /// It is done.
    Done,
    /// A dry run would do it.
    Planned,
    /// There is nothing to do: the other side has the same.
    Unchanged,
    /// It was done by the run that this one goes on from.
    DoneBefore,
    /// It is left out, and why.
    Skipped(&'static str),
    /// It failed, or is refused.
    Failed(Failure),
}

/// One item and what came of it.
#[derive(Debug)]
pub struct Item<'a> {
    /// What was or would be done.
    pub action: Action,
    /// Whether the source is removed once it is copied.
    pub moves: bool,
    /// What it is about; of a deletion, what is deleted.
    pub entry: &'a Entry,
    /// In bytes, where it is known.
    pub size: Option<u64>,
    /// The entity tag that the object has, once it is transferred.
    pub etag: Option<&'a str>,
    /// What came of it.
    pub outcome: Outcome,
    pub(crate) from: &'a Place,
    pub(crate) to: &'a Place,
}

impl Item<'_> {
    /// Where it is, or was: of a deletion, what is deleted.
    pub fn source(&self) -> Option<Location> {
        self.from.locate(&self.entry.key)
    }

    /// Where it goes; `None` for a deletion and into nowhere.
    pub fn destination(&self) -> Option<Location> {
        if self.action == Action::Delete { None } else { self.to.locate(self.entry.target()) }
    }
}

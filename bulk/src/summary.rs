//! What a job did, in numbers.

use std::time::Duration;

use crate::failure::Failure;
use crate::report::{Action, Item, Outcome};

/// What a job did.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Items transferred; in a dry run, those that would be.
    pub transferred: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Items deleted; in a dry run, those that would be. The sources of a move are not counted.
    pub deleted: u64,
    /// Items of which the other side has the same.
    pub unchanged: u64,
    /// Items that an earlier run had done.
    pub done_before: u64,
    /// Items left out: folder markers, what is no regular file, what exists and is to stay.
    pub skipped: u64,
    /// Items that failed.
    pub failed: u64,
    /// Items that cannot be done safely, or at all.
    pub refused: u64,
    /// Whether nothing was changed, because only the plan was asked for.
    pub dry_run: bool,
    /// Whether the source was listed to its end, without an error.
    pub source_complete: bool,
    /// Why what the source has no more was not deleted, and how many that were, where that is known.
    pub withheld: Option<Withheld>,
    /// What ended the job early.
    pub stopped: Option<Failure>,
    /// From start to end.
    pub elapsed: Duration,
}

/// Deletions that a sync did not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Withheld {
    /// The source, or the target, could not be listed to its end: what is not listed may well be there.
    IncompleteListing,
    /// More than the job may delete.
    TooMany {
        /// How many there are; of a deletion, which stops there, how many had been found.
        found: u64,
        /// How many may be deleted.
        most: u64,
    },
}

impl Summary {
    /// Whether all went well: nothing failed, was refused or withheld.
    pub fn is_success(&self) -> bool {
        self.failed == 0 && self.refused == 0 && self.stopped.is_none() && self.withheld.is_none()
    }

    /// Whether anything was changed, or would be by a run that is not dry.
    pub fn changed_anything(&self) -> bool {
        self.transferred > 0 || self.deleted > 0
    }

    /// Whether nothing has been done or found the same yet.
    pub(crate) fn is_start(&self) -> bool {
        self.transferred + self.deleted + self.unchanged + self.done_before == 0
    }

    pub(crate) fn count(&mut self, item: &Item<'_>) {
        match &item.outcome {
            Outcome::Done | Outcome::Planned if item.action == Action::Delete => self.deleted += 1,
            Outcome::Done | Outcome::Planned => {
                self.transferred += 1;
                self.bytes += item.size.unwrap_or(0);
            }
            Outcome::Unchanged => self.unchanged += 1,
            Outcome::DoneBefore => self.done_before += 1,
            Outcome::Skipped(_) => self.skipped += 1,
            Outcome::Failed(Failure::Refused(_)) => self.refused += 1,
            Outcome::Failed(_) => self.failed += 1,
        }
    }
}

//! What is left of a listing whose server's order is not to be trusted: everything is listed from one end to the
//! other, and what was handed out before is passed over.
//!
//! What a range handed out is one piece of the server's own listing, from its first entry to its last. So it is
//! recognised by its first, and all up to its last is passed over. A piece whose ends don't come again (they were
//! deleted meanwhile) leaves it open what was handed out: that is an error.

use std::collections::HashMap;

use super::Start;
use super::page::Listed;
use super::ranges::Scope;
use crate::error::{Error, ErrorKind};

/// One entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) version: String,
}

impl Entry {
    pub(super) fn of(page: &impl Listed, index: usize) -> Entry {
        Entry { key: page.key(index).to_owned(), version: page.version(index).to_owned() }
    }
}

/// A piece of the server's listing that was handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: Entry,
    pub(super) last: Entry,
}

/// What is to be listed serially.
#[derive(Debug)]
pub(super) struct Remainder {
    pub(super) start: Start,
    /// Entries of a page.
    pub(super) entries: u32,
    scope: Scope,
    /// Pieces that have not come again yet: the first entry, and the last.
    ahead: HashMap<Entry, Entry>,
    /// The last entry of the piece that is being passed over.
    inside: Option<Entry>,
}

impl Remainder {
    pub(super) fn new(scope: &Scope, start: Start, runs: Vec<Run>) -> Remainder {
        Remainder {
            start,
            entries: scope.page_size,
            scope: scope.clone(),
            ahead: runs.into_iter().map(|run| (run.first, run.last)).collect(),
            inside: None,
        }
    }

    /// Leaves in a page what is still to be handed out.
    pub(super) fn strip(&mut self, page: &mut impl Listed) {
        page.retain(|key, version| {
            let entry = Entry { key: key.to_owned(), version: version.to_owned() };
            self.is_new(entry)
        });
    }

    /// Whether all that was handed out before has come again, as it must have at the end of the listing.
    pub(super) fn end(&self) -> Result<(), Error> {
        if self.ahead.is_empty() && self.inside.is_none() {
            return Ok(());
        }
        let message = "the server does not list in byte order, and keys went while they were listed: some may have \
                       been listed twice, or not at all";
        Err(Error::new(ErrorKind::Protocol, message).with_hint("list again, not in parallel"))
    }

    fn is_new(&mut self, entry: Entry) -> bool {
        if let Some(last) = &self.inside {
            if *last == entry {
                self.inside = None;
            }
            return false;
        }
        if let Some(last) = self.ahead.remove(&entry) {
            self.inside = Some(last).filter(|last| *last != entry);
            return false;
        }
        self.scope.contains(&entry.key)
    }
}

//! A lane: items on their way through one call of the engine, and how many of them may be.
//!
//! The engine names each outcome by the item's place in the stream that it was given; what that item was is kept here
//! until its outcome comes. Small objects and large ones have a lane each: see [`Lanes`](super::lanes::Lanes).

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher};

use super::call::{Call, Finished, Transferred};
use super::way::Way;
use crate::entry::Entry;
use crate::failure::Failure;

/// An item that is to be transferred; of a download, into which file.
pub(super) type Transfer = (Entry, Option<std::path::PathBuf>);

/// What came of an item.
pub(super) type Ended = (Entry, Result<Transferred, Failure>);

/// How much may be under way in a lane.
#[derive(Debug, Clone, Copy)]
pub(super) struct Most {
    /// Items in the engine's hands.
    pub(super) items: usize,
    /// Their bytes; the first two items are let in whatever they have.
    pub(super) bytes: u64,
    /// Items that wait for the others.
    pub(super) waiting: usize,
}

pub(super) struct Lane {
    call: Call,
    most: Most,
    waiting: VecDeque<Transfer>,
    under_way: HashMap<usize, Entry, BuildHasherDefault<DefaultHasher>>,
    bytes: u64,
    handed: usize,
    closed: bool,
}

impl Lane {
    pub(super) fn new(call: Call, most: Most) -> Lane {
        let (waiting, under_way) = (VecDeque::new(), HashMap::default());
        Lane { call, most, waiting, under_way, bytes: 0, handed: 0, closed: false }
    }

    /// Whether more may be added.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < self.most.waiting
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }

    pub(super) fn add(&mut self, way: &Way, transfer: Transfer) {
        self.waiting.push_back(transfer);
        self.let_in(way);
    }

    /// Hands over what waits, as far as there is room in the engine.
    fn let_in(&mut self, way: &Way) {
        while self.under_way.len() < self.most.items
            && (self.bytes < self.most.bytes || self.under_way.len() < 2)
            && let Some((entry, path)) = self.waiting.pop_front()
        {
            self.call.hand(way.item(&entry, path));
            self.bytes += entry.size.unwrap_or(0);
            self.under_way.insert(self.handed, entry);
            self.handed += 1;
        }
        if self.closed && self.waiting.is_empty() {
            self.call.close();
        }
    }

    /// No more will be added.
    pub(super) fn close(&mut self) {
        self.closed = true;
        if self.waiting.is_empty() {
            self.call.close();
        }
    }

    /// Waits until something has finished; `false` where nothing will any more. Cancelled, it loses nothing.
    pub(super) async fn wait(&mut self) -> bool {
        self.call.wait().await
    }

    /// Takes what has finished, and lets in what may follow.
    pub(super) fn take(&mut self, way: &Way, ended: &mut Vec<Ended>) {
        let Lane { call, under_way, bytes, .. } = self;
        call.take(|(index, result): Finished| {
            if let Some(entry) = under_way.remove(&index) {
                *bytes -= entry.size.unwrap_or(0);
                ended.push((entry, result));
            }
        });
        self.let_in(way);
    }

    /// The call has ended: what it had in hand has no outcome.
    pub(super) fn give_up(&mut self, ended: &mut Vec<Ended>) {
        let mut lost: Vec<(usize, Entry)> = self.under_way.drain().collect();
        lost.sort_unstable_by_key(|(index, _)| *index);
        let lost = lost.into_iter().map(|(_, entry)| entry);
        let waiting = self.waiting.drain(..).map(|(entry, _)| entry);
        ended.extend(lost.chain(waiting).map(|entry| (entry, Err(Failure::lost()))));
        self.bytes = 0;
    }
}

//! All transfers of a job: small objects in one lane, large ones in another, so that neither waits for the other.
//!
//! Each lane is a call of the engine of its own, opened with its first item. Requests of both take their places in the
//! order in which they ask; so that a few large objects do not ask for all of them, only so much of these is under way at
//! once as keeps the client busy. Copies that the server will not do pass through this machine.

use super::lane::{Ended, Lane, Most, Transfer};
use super::relay::Relay;
use super::way::Way;
use crate::failure::Failure;

/// From here on an object is a large one: beyond what the engine moves in one request, and worth watching by itself.
const LARGE: u64 = 16 << 20;

/// Small objects in the engine's hands: enough that it never waits for a page of a listing.
const SMALL: Most = Most { items: 2_000, bytes: u64::MAX, waiting: 1_000 };

/// Large objects that wait, so that small ones behind them in the listing are found.
const WAITING: usize = 10_000;

/// What a request of a large object moves, about.
const PART: u64 = 8 << 20;

pub(super) struct Lanes {
    way: Way,
    small: Option<Lane>,
    large: Option<Lane>,
    relay: Option<Relay>,
    ended: Vec<Ended>,
}

impl Lanes {
    pub(super) fn new(way: Way) -> Lanes {
        Lanes { way, small: None, large: None, relay: None, ended: Vec::new() }
    }

    pub(super) fn has_room(&self) -> bool {
        let lanes = [&self.small, &self.large];
        lanes.into_iter().flatten().all(Lane::has_room) && self.relay.as_ref().is_none_or(Relay::has_room)
    }

    pub(super) fn is_empty(&self) -> bool {
        let lanes = [&self.small, &self.large];
        self.ended.is_empty()
            && lanes.into_iter().flatten().all(Lane::is_empty)
            && self.relay.as_ref().is_none_or(Relay::is_empty)
    }

    /// Takes on an item.
    ///
    /// # Errors
    /// Where none could ever be taken on: the bucket's name cannot exist.
    pub(super) fn add(&mut self, transfer: Transfer) -> Result<(), Failure> {
        if self.way.passes_here() {
            self.relay(transfer);
            return Ok(());
        }
        let is_large = transfer.0.size.is_some_and(|size| size > LARGE);
        let lane = if is_large { &mut self.large } else { &mut self.small };
        let lane = match lane {
            Some(lane) => lane,
            None => {
                let bytes = 2 * self.way.concurrency() as u64 * PART;
                let large = Most { items: SMALL.items, bytes, waiting: WAITING };
                lane.insert(Lane::new(self.way.call()?, if is_large { large } else { SMALL }))
            }
        };
        lane.add(&self.way, transfer);
        Ok(())
    }

    fn relay(&mut self, (entry, _): Transfer) {
        self.relay.get_or_insert_with(|| Relay::new(self.way.concurrency())).add(&self.way, entry);
    }

    /// No more will be added.
    pub(super) fn close(&mut self) {
        [&mut self.small, &mut self.large].into_iter().flatten().for_each(Lane::close);
    }

    /// Waits until something has ended. Cancelled, it loses nothing.
    pub(super) async fn wait(&mut self) {
        if !self.ended.is_empty() {
            return;
        }
        let Lanes { small, large, relay, .. } = self;
        let (mut small_ended, mut large_ended) = (false, false);
        tokio::select! {
            some = wait(small) => small_ended = !some,
            some = wait(large) => large_ended = !some,
            ended = wait_for_relay(relay) => self.ended.push(ended),
        }
        let mut ended = Vec::new();
        for (lane, has_ended) in [(&mut self.small, small_ended), (&mut self.large, large_ended)] {
            let Some(lane) = lane else { continue };
            if has_ended {
                lane.give_up(&mut ended);
            }
            lane.take(&self.way, &mut ended);
        }
        for (entry, result) in ended {
            match &result {
                Err(failure) if will_not_copy(failure) && self.way.relayed().is_some() => self.relay((entry, None)),
                _ => self.ended.push((entry, result)),
            }
        }
    }

    /// Takes what has ended.
    pub(super) fn take(&mut self) -> Vec<Ended> {
        std::mem::take(&mut self.ended)
    }
}

async fn wait(lane: &mut Option<Lane>) -> bool {
    match lane {
        Some(lane) if !lane.is_empty() => lane.wait().await,
        _ => std::future::pending().await,
    }
}

async fn wait_for_relay(relay: &mut Option<Relay>) -> Ended {
    match relay {
        Some(relay) if !relay.is_empty() => relay.next().await,
        _ => std::future::pending().await,
    }
}

/// Whether the server does not offer copies.
fn will_not_copy(failure: &Failure) -> bool {
    matches!(failure, Failure::Engine(error) if error.code() == Some("NotImplemented") || error.status() == Some(501))
}

//! The budget: requests in flight, and bytes in flight and undelivered.
//!
//! Both are granted in the order asked for, so that neither one large object nor many small ones can
//! starve the rest: a large object's workers queue again after every part.
//!
//! Memory is asked for before a place is: who has a place never waits for memory, so the two cannot
//! lock each other. A request that must wait for memory all the same gives its place up meanwhile.
//!
//! Memory is lent from three shares, by what gives it back. *Passing* memory (half the budget) holds
//! bytes on their way through: stages, parts read for an upload; the engine alone gives it back.
//! *Undelivered* memory (a quarter) holds objects that the caller has yet to take, and what is fetched
//! ahead of a reader; whatever else the caller does meanwhile with the client must not need it. What an object
//! needs beyond its first part comes from the *rest* (a quarter), all of it at once, so nobody waits
//! for memory while holding some of the share that it waits for.
//!
//! What waits for the caller himself is not lent: the part of an ordered download whose turn it is, and the
//! piece of an upload that is being gathered from a source that may stand still. Each such transfer holds one
//! piece beyond the budget, and so moves on when others hold all of it.

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::places::{Places, RequestPermit};
use crate::sync::Arc;

/// Memory is counted in pages, so that a semaphore's permits reach beyond any machine's memory.
const PAGE: u64 = 4096;

/// Gives its bytes back when dropped.
pub(crate) struct MemoryPermit {
    permit: OwnedSemaphorePermit,
    /// What came from another share.
    more: Option<OwnedSemaphorePermit>,
}

impl MemoryPermit {
    /// Gives back all but `bytes`, once the true need is known.
    pub(crate) fn shrink(&mut self, bytes: u64) {
        let keep = pages(bytes) as usize;
        let spare = self.permit.num_permits().saturating_sub(keep);
        // Dropping the split part is what gives it back.
        drop(self.permit.split(spare));
    }

    /// Keeps another permit for as long as this one.
    pub(crate) fn join(&mut self, more: MemoryPermit) {
        self.more = Some(more.permit);
    }
}

pub(crate) struct Admission {
    pub(crate) places: Places,
    passing: Share,
    undelivered: Share,
    rest: Share,
}

/// A part of the budget. A need above the share is granted when all of it is free: it must be met
/// some time.
struct Share {
    free: Arc<Semaphore>,
    pages: u32,
}

impl Share {
    fn new(bytes: u64) -> Share {
        let pages = pages(bytes).max(1);
        Share { free: Arc::new(Semaphore::new(pages as usize)), pages }
    }

    async fn lend(&self, bytes: u64) -> MemoryPermit {
        MemoryPermit { permit: acquire(&self.free, pages(bytes).min(self.pages)).await, more: None }
    }

    fn lend_at_once(&self, bytes: u64) -> Option<MemoryPermit> {
        let permit = Arc::clone(&self.free).try_acquire_many_owned(pages(bytes).min(self.pages)).ok()?;
        Some(MemoryPermit { permit, more: None })
    }
}

impl Admission {
    pub(crate) fn new(requests: usize, memory: u64) -> Admission {
        Admission {
            places: Places::new(requests),
            passing: Share::new(memory / 2),
            undelivered: Share::new(memory / 4),
            rest: Share::new(memory / 4),
        }
    }

    /// A place for one request.
    pub(crate) async fn request(&self) -> RequestPermit {
        self.places.take().await
    }

    /// Room for bytes that pass through.
    pub(crate) async fn memory(&self, bytes: u64) -> MemoryPermit {
        self.passing.lend(bytes).await
    }

    /// The same, if it can be had at once.
    pub(crate) fn memory_at_once(&self, bytes: u64) -> Option<MemoryPermit> {
        self.passing.lend_at_once(bytes)
    }

    /// Room for the first part of an object that is kept until the caller takes it.
    pub(crate) async fn undelivered(&self, bytes: u64) -> MemoryPermit {
        self.undelivered.lend(bytes).await
    }

    /// The same, if it can be had at once.
    pub(crate) fn undelivered_at_once(&self, bytes: u64) -> Option<MemoryPermit> {
        self.undelivered.lend_at_once(bytes)
    }

    /// Room for what such an object needs beyond its first part.
    pub(crate) async fn more_undelivered(&self, bytes: u64) -> MemoryPermit {
        self.rest.lend(bytes).await
    }

    /// Places and bytes that are free, for tests that look for leaks.
    #[cfg(test)]
    pub(crate) fn free(&self) -> (usize, u64) {
        let shares = [&self.passing, &self.undelivered, &self.rest];
        let pages: usize = shares.map(|share| share.free.available_permits()).iter().sum();
        (self.places.free(), pages as u64 * PAGE)
    }
}

pub(super) async fn acquire(semaphore: &Arc<Semaphore>, count: u32) -> OwnedSemaphorePermit {
    match Arc::clone(semaphore).acquire_many_owned(count).await {
        Ok(permit) => permit,
        // The semaphores of this room are never closed.
        Err(_closed) => std::future::pending().await,
    }
}

fn pages(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(PAGE)).unwrap_or(u32::MAX >> 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn memory_is_granted_up_to_the_budget_and_given_back() {
        let admission = Admission::new(2, 64 * PAGE);
        let mut first = admission.memory(32 * PAGE).await;
        let second = tokio::time::timeout(Duration::from_millis(20), admission.memory(1)).await;
        assert!(second.is_err(), "granted beyond the budget");
        first.shrink(31 * PAGE);
        let second = admission.memory(1).await;
        drop((first, second));
        assert_eq!(admission.free(), (2, 64 * PAGE));
    }

    #[tokio::test]
    async fn a_need_above_the_budget_is_met_alone() {
        let admission = Admission::new(1, 8 * PAGE);
        let large = admission.more_undelivered(1 << 40).await;
        let other = tokio::time::timeout(Duration::from_millis(20), admission.more_undelivered(1)).await;
        assert!(other.is_err());
        drop(large);
        admission.more_undelivered(1).await;
    }

    #[tokio::test]
    async fn a_cancelled_wait_leaks_nothing() {
        let admission = Admission::new(1, 8 * PAGE);
        let held = admission.request().await;
        let waiting = tokio::time::timeout(Duration::from_millis(10), admission.request()).await;
        assert!(waiting.is_err());
        drop(held);
        assert_eq!(admission.free().0, 1);
    }
}

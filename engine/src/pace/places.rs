//! Places for requests in flight: as many as are configured, and fewer while the server asks for that.
//!
//! A refusal for too many requests (503 SlowDown, 429) halves the places at once. What else is in flight then was sent
//! before anybody knew, so its refusals are old news: the places are halved again only when a request is refused that was
//! given its place after the last time. So they are halved at most once a round trip, without a clock. One place comes
//! back after as many successes as there are places: one a round trip, which makes the pace rise in a straight line and
//! settle around what the server takes.
//!
//! Places are never fewer than [`LEAST`]. There the pace can fall only by waiting: whoever is refused there with news
//! waits for its next attempt in its place (`Attempts::after`), so that a server with short round trips
//! is not asked over and over.
//!
//! A server that refuses some takes others: a request that it refuses has its turn yet to come. One that refuses
//! everything is about to be given up. [`Refused::in_vain`] tells them apart.
//!
//! A place is withheld by taking it out of the semaphore. One that somebody holds is owed: the next request that gets a
//! place hands it over and queues again, so nobody has to do anything when a place is given back.

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::admission::acquire;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The fewest places that are left: enough for one transfer's parts not to wait for one another's round trips, and
/// little enough for any server that serves at all.
const LEAST: usize = 4;

/// Gives its place back when dropped.
pub(crate) struct RequestPermit {
    _permit: OwnedSemaphorePermit,
    /// How often places had been halved when it was given.
    halved: usize,
}

/// What a refusal for too many requests is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// None: the request was sent before the places were last halved.
    Old,
    /// The places have been halved.
    Halved,
    /// There are no more places to be taken away.
    AtLeast,
}

/// What the refusal of one request tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) news: News,
    /// As many requests as there are places have been refused since one was served, or none ever was.
    pub(crate) in_vain: bool,
}

pub(crate) struct Places {
    free: Arc<Semaphore>,
    all: usize,
    least: usize,
    /// How often they have been halved.
    halved: AtomicUsize,
    /// Places that are still to be taken out of the semaphore.
    owed: AtomicUsize,
    /// Places that are missing, owed or taken out: none, mostly, and then a success costs one look at this.
    missing: AtomicUsize,
    /// Requests refused since one was served; `all` of them as long as none was. Written by a success only where it is
    /// another than 0, so that it too costs one look.
    in_vain: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    withheld: Vec<OwnedSemaphorePermit>,
    /// Since the last place came back.
    successes: usize,
}

impl Places {
    pub(crate) fn new(all: usize) -> Places {
        Places::with_least(all, LEAST)
    }

    /// Of which so many are always left.
    pub(crate) fn with_least(all: usize, least: usize) -> Places {
        Places {
            free: Arc::new(Semaphore::new(all)),
            all,
            least: all.min(least),
            halved: AtomicUsize::new(0),
            owed: AtomicUsize::new(0),
            missing: AtomicUsize::new(0),
            in_vain: AtomicUsize::new(all),
            state: Mutex::new(State::default()),
        }
    }

    /// A place for one request.
    pub(crate) async fn take(&self) -> RequestPermit {
        loop {
            let permit = acquire(&self.free, 1).await;
            if self.owed.load(Ordering::Relaxed) > 0 {
                let mut state = self.lock();
                if self.owed.load(Ordering::Relaxed) > 0 {
                    self.owed.fetch_sub(1, Ordering::Relaxed);
                    state.withheld.push(permit);
                    continue;
                }
            }
            return RequestPermit { _permit: permit, halved: self.halved.load(Ordering::Relaxed) };
        }
    }

    /// The server refused the request that has this place, for there were too many.
    pub(crate) fn refused(&self, permit: &RequestPermit) -> Refused {
        let in_vain = self.in_vain.fetch_add(1, Ordering::Relaxed) >= self.all;
        Refused { news: self.give_way(permit), in_vain }
    }

    fn give_way(&self, permit: &RequestPermit) -> News {
        let mut state = self.lock();
        if permit.halved != self.halved.load(Ordering::Relaxed) {
            return News::Old;
        }
        state.successes = 0;
        let missing = self.missing.load(Ordering::Relaxed);
        let left = self.all - missing;
        let wanted = (left / 2).max(self.least);
        if wanted == left {
            return News::AtLeast;
        }
        let mut more = left - wanted;
        self.missing.store(missing + more, Ordering::Relaxed);
        self.halved.fetch_add(1, Ordering::Relaxed);
        while more > 0
            && let Ok(permit) = Arc::clone(&self.free).try_acquire_owned()
        {
            state.withheld.push(permit);
            more -= 1;
        }
        self.owed.fetch_add(more, Ordering::Relaxed);
        News::Halved
    }

    /// A request succeeded.
    pub(crate) fn succeeded(&self) {
        if self.in_vain.load(Ordering::Relaxed) != 0 {
            self.in_vain.store(0, Ordering::Relaxed);
        }
        if self.missing.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut state = self.lock();
        let missing = self.missing.load(Ordering::Relaxed);
        state.successes += 1;
        if missing == 0 || state.successes < self.all - missing {
            return;
        }
        state.successes = 0;
        self.missing.store(missing - 1, Ordering::Relaxed);
        if self.owed.load(Ordering::Relaxed) > 0 {
            self.owed.fetch_sub(1, Ordering::Relaxed);
        } else {
            // Dropping it is what gives it back.
            drop(state.withheld.pop());
        }
    }

    /// How many requests may be in flight at present.
    pub(crate) fn at_present(&self) -> usize {
        self.all - self.missing.load(Ordering::Relaxed)
    }

    /// Places that nobody has, for tests that look for leaks.
    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.free.available_permits()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many requests get a place before one has to wait.
    async fn in_flight(places: &Places) -> usize {
        let mut held = Vec::new();
        while let Ok(permit) = tokio::time::timeout(std::time::Duration::from_millis(20), places.take()).await {
            held.push(permit);
        }
        held.len()
    }

    #[tokio::test]
    async fn one_round_of_refusals_halves_the_places_once() {
        let places = Places::new(32);
        let mut round = Vec::new();
        for _ in 0..32 {
            round.push(places.take().await);
        }
        let news: Vec<News> = round.iter().map(|permit| places.refused(permit).news).collect();
        assert_eq!(news.iter().filter(|&&news| news == News::Halved).count(), 1);
        assert_eq!(news[1..], [News::Old; 31]);
        drop(round);
        assert_eq!((in_flight(&places).await, places.at_present()), (16, 16));
        for (expected, left) in [(News::Halved, 8), (News::Halved, 4), (News::AtLeast, 4)] {
            let permit = places.take().await;
            assert_eq!(places.refused(&permit).news, expected);
            drop(permit);
            assert_eq!(in_flight(&places).await, left);
        }
    }

    #[tokio::test]
    async fn places_come_back_one_a_round() {
        let places = Places::new(16);
        let permit = places.take().await;
        places.refused(&permit);
        drop(permit);
        for present in 8..16 {
            for _ in 0..present {
                assert_eq!(places.at_present(), present);
                places.succeeded();
            }
        }
        assert_eq!(in_flight(&places).await, 16);
        places.succeeded();
        assert_eq!(places.at_present(), 16);
    }

    #[tokio::test]
    async fn what_is_owed_is_paid_by_the_next_or_forgiven() {
        let places = Places::new(8);
        let mut held = Vec::new();
        for _ in 0..8 {
            held.push(places.take().await);
        }
        assert_eq!(places.refused(&held[0]).news, News::Halved);
        for _ in 0..4 {
            places.succeeded();
        }
        assert_eq!(places.at_present(), 5);
        drop(held);
        assert_eq!(in_flight(&places).await, 5);
        assert_eq!(places.free(), 5);
    }

    #[tokio::test]
    async fn refusals_are_in_vain_until_one_is_served_and_again_after_a_round() {
        let places = Places::new(8);
        let permit = places.take().await;
        let in_vain = |count: usize| (0..count).filter(|_| places.refused(&permit).in_vain).count();
        assert_eq!(in_vain(3), 3);
        places.succeeded();
        assert_eq!(in_vain(12), 4);
        places.succeeded();
        assert_eq!(in_vain(8), 0);
    }

    #[tokio::test]
    async fn a_single_place_stays() {
        let places = Places::new(1);
        let permit = places.take().await;
        assert_eq!(places.refused(&permit).news, News::AtLeast);
        drop(permit);
        assert_eq!(in_flight(&places).await, 1);
    }
}

//! What may be in flight, and what may be tried again.
//!
//! Every request asks [`Pace`] for a place before it is sent, every byte of the engine's own memory
//! for room in the budget before it is taken, and every connection for its turn where a limit in bytes a second is
//! set ([`Bandwidth`]). A server that refuses requests because there are too many gets fewer at once: places are
//! taken away at [`Pace::throttled`] and come back with [`Pace::succeeded`].

mod admission;
mod bandwidth;
mod places;
mod retry;

pub(crate) use admission::{Admission, MemoryPermit};
pub(crate) use bandwidth::Bandwidth;
pub(crate) use places::{News, Refused, RequestPermit};
pub(crate) use retry::{Retry, RetryPolicy, Throttle};

use crate::config::Config;

pub(crate) struct Pace {
    pub(crate) admission: Admission,
    pub(crate) retries: RetryPolicy,
    concurrency: usize,
    part_size: u64,
}

impl Pace {
    pub(crate) fn new(config: &Config) -> Pace {
        let limit = config.bandwidth_limit;
        let concurrency = limit.map_or(config.concurrency, |rate| Bandwidth::places(rate, config.concurrency));
        Pace {
            admission: Admission::new(concurrency, config.memory),
            retries: RetryPolicy::new(config.max_attempts),
            concurrency,
            part_size: config.part_size,
        }
    }

    /// How many workers are worth starting for `tasks` requests.
    pub(crate) fn workers(&self, tasks: usize) -> usize {
        tasks.min(self.concurrency)
    }

    /// The length of one range or part, in bytes.
    pub(crate) fn part_size(&self) -> u64 {
        self.part_size
    }

    /// The server asked for fewer requests, by refusing the one that has this place.
    pub(crate) fn throttled(&self, permit: &RequestPermit) -> Refused {
        let places = &self.admission.places;
        let refused = places.refused(permit);
        tracing::debug!(?refused, places = places.at_present(), "throttled");
        refused
    }

    /// It took a request.
    pub(crate) fn succeeded(&self) {
        self.admission.places.succeeded();
    }
}

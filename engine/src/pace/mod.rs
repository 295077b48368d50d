//! What may be in flight, and what may be tried again.
//!
//! Every request asks [`Pace`] for a place before it is sent, every byte of the engine's own memory
//! for room in the budget before it is taken. The numbers are fixed here; an adaptive controller
//! takes the place of the constants behind [`Pace::workers`] and [`Pace::part_size`], and learns
//! from [`Pace::throttled`].

mod admission;
mod retry;

pub(crate) use admission::{Admission, MemoryPermit, RequestPermit};
pub(crate) use retry::{Retry, RetryPolicy};

use crate::config::Config;

pub(crate) struct Pace {
    pub(crate) admission: Admission,
    pub(crate) retries: RetryPolicy,
    concurrency: usize,
    part_size: u64,
}

impl Pace {
    pub(crate) fn new(config: &Config) -> Pace {
        Pace {
            admission: Admission::new(config.concurrency, config.memory),
            retries: RetryPolicy::new(config.max_attempts),
            concurrency: config.concurrency,
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

    /// The server asked for fewer requests.
    pub(crate) fn throttled(&self) {
        tracing::debug!("throttled");
    }
}

//! Refusing requests beyond so many a second for each prefix.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::claims::PrefixLimits;
use crate::verb::{Target, Verb};

/// The least that a prefix takes: one request in a quarter of an hour.
const LEAST: f64 = 0.001;

/// The requests of every prefix.
#[derive(Debug)]
pub(crate) struct Throttle {
    limits: PrefixLimits,
    prefixes: Mutex<HashMap<String, Prefix>>,
}

/// When a prefix will have done all that it took on, reads and writes apart.
#[derive(Debug)]
struct Prefix {
    reads: Instant,
    writes: Instant,
}

impl Throttle {
    pub(crate) fn new(limits: PrefixLimits) -> Self {
        Self { limits, prefixes: Mutex::default() }
    }

    /// Whether a request must be refused; one that is not counts.
    pub(crate) fn refuses(&self, verb: Verb, target: Target<'_>) -> bool {
        let now = Instant::now();
        let prefix = target.key.rsplit_once('/').map_or("", |(prefix, _)| prefix);
        let mut prefixes = self.prefixes.lock();
        let prefix =
            prefixes.entry(format!("{}/{prefix}", target.bucket)).or_insert_with(|| Prefix { reads: now, writes: now });
        let (busy, rate) = match verb.is_read() {
            true => (&mut prefix.reads, self.limits.reads),
            false => (&mut prefix.writes, self.limits.writes),
        };
        let room = Duration::from_secs_f64(self.limits.burst_seconds.clamp(0.0, 3600.0));
        if *busy > now + room {
            return true;
        }
        *busy = (*busy).max(now) + Duration::from_secs_f64(1.0 / rate.max(LEAST));
        false
    }
}

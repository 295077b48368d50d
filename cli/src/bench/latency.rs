//! Latencies of a round: every request of the engine, in a histogram for each thread, merged when the round is over.
//!
//! A request costs one lock that nobody else wants and two increments, so that watching does not show in what is
//! watched.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::{CreationError, Histogram};
use serde::Serialize;
use thread_local::ThreadLocal;
use wirespeed::{Observer, RequestEvent};

/// Listens to the engine.
#[derive(Default)]
pub(crate) struct Latency {
    shards: ThreadLocal<Mutex<Shard>>,
}

/// Percentiles of whole requests, from the first byte sent to the last received, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Percentiles {
    pub(crate) p50: f64,
    pub(crate) p95: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl Latency {
    /// The median time to first byte in milliseconds and the percentiles since the last call; zeros without requests.
    pub(crate) fn take(&self) -> (f64, Percentiles) {
        let Ok(mut merged) = Shard::new() else {
            return Default::default();
        };
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            // Same bounds everywhere, so that nothing can fail to fit.
            let _ = merged.first_byte.add(&shard.first_byte);
            let _ = merged.total.add(&shard.total);
            shard.first_byte.reset();
            shard.total.reset();
        }
        let percentile = |percentile| milliseconds(merged.total.value_at_percentile(percentile));
        let percentiles = Percentiles {
            p50: percentile(50.0),
            p95: percentile(95.0),
            p99: percentile(99.0),
            max: milliseconds(merged.total.max()),
        };
        (milliseconds(merged.first_byte.value_at_percentile(50.0)), percentiles)
    }
}

impl Observer for Latency {
    fn request(&self, event: &RequestEvent) {
        // Creating cannot fail: the bounds are constants that a test has tried.
        if let Ok(shard) = self.shards.get_or_try(|| Shard::new().map(Mutex::new)) {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.first_byte.saturating_record(ticks(event.time_to_first_byte));
            shard.total.saturating_record(ticks(event.total));
        }
    }
}

/// Counts in ticks of 100 ns: fine beside the 50 microseconds of the fastest request.
struct Shard {
    first_byte: Histogram<u32>,
    total: Histogram<u32>,
}

const TICK_NS: u128 = 100;
const TICKS_AN_HOUR: u64 = 36_000_000_000;

impl Shard {
    /// Up to an hour with three significant digits: about 100 KiB each.
    fn new() -> Result<Shard, CreationError> {
        let histogram = Histogram::new_with_bounds(1, TICKS_AN_HOUR, 3)?;
        Ok(Shard { first_byte: histogram.clone(), total: histogram })
    }
}

fn ticks(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos() / TICK_NS).unwrap_or(u64::MAX)
}

fn milliseconds(ticks: u64) -> f64 {
    ticks as f64 * TICK_NS as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_all_threads_and_then_nothing() {
        let latency = Latency::default();
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let latency = &latency;
                scope.spawn(move || {
                    let mut shard = latency.shards.get_or_try(|| Shard::new().map(Mutex::new)).unwrap().lock().unwrap();
                    for millisecond in (1 + thread..=100).step_by(2) {
                        shard.total.saturating_record(ticks(Duration::from_millis(millisecond)));
                        shard.first_byte.saturating_record(ticks(Duration::from_micros(millisecond * 10)));
                    }
                });
            }
        });
        let (first_byte, total) = latency.take();
        let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.002;
        assert!(near(first_byte, 0.5), "{first_byte}");
        assert!(near(total.p50, 50.0) && near(total.p95, 95.0) && near(total.p99, 99.0) && near(total.max, 100.0));
        assert_eq!(latency.take(), (0.0, Percentiles::default()));
    }
}

//! Drawing how long the first byte of an answer takes, and waiting for it.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::alarm::Alarm;
use super::claims::FirstByte;
use super::seeded::{fraction, mix};

/// The 95th percentile of the standard normal distribution.
const Z95: f64 = 1.644_853_626_951_472_7;

/// The longest time drawn: beyond it lies only what no client waits for.
const LONGEST: f64 = 600.0;

/// Draws from one distribution, one number after the other.
#[derive(Debug)]
pub(crate) struct Latency {
    distribution: FirstByte,
    seed: u64,
    drawn: AtomicU64,
    alarm: Alarm,
}

impl Latency {
    /// # Errors
    /// No thread to be had for the alarm.
    pub(crate) fn new(distribution: FirstByte, seed: u64) -> io::Result<Self> {
        Ok(Self { distribution, seed, drawn: AtomicU64::new(0), alarm: Alarm::start()? })
    }

    /// Waits until the first byte of an answer whose time began then.
    pub(crate) async fn pass(&self, began: Instant) {
        self.alarm.until(began + self.draw()).await;
    }

    fn draw(&self) -> Duration {
        let index = self.drawn.fetch_add(1, Ordering::Relaxed);
        let first = mix(mix(self.seed).wrapping_add(index));
        match &self.distribution {
            FirstByte::Constant(time) => *time,
            FirstByte::LogNormal { p50, p95 } => {
                // Box and Muller's, of two numbers from 0 to 1, the first not 0.
                let (one, two) = (1.0 - fraction(first), fraction(mix(first)));
                let normal = (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * two).cos();
                let sigma = (p95.as_secs_f64() / p50.as_secs_f64()).ln() / Z95;
                Duration::from_secs_f64((p50.as_secs_f64() * (sigma * normal).exp()).min(LONGEST))
            }
            FirstByte::Percentiles(table) => between(table, fraction(first) * 100.0),
        }
    }
}

/// The time at a percentile, on a straight line between the two that it lies between.
fn between(table: &[(f64, Duration)], at: f64) -> Duration {
    let after = table.partition_point(|(percentile, _)| *percentile <= at);
    match (after.checked_sub(1).and_then(|before| table.get(before)), table.get(after)) {
        (Some((low, from)), Some((high, to))) => {
            *from + to.saturating_sub(*from).mul_f64(((at - low) / (high - low)).clamp(0.0, 1.0))
        }
        (Some((_, only)), None) | (None, Some((_, only))) => *only,
        (None, None) => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn quantiles(distribution: FirstByte, at: &[f64]) -> Vec<f64> {
        let latency = Latency::new(distribution, 42).unwrap();
        let mut drawn: Vec<_> = (0..50_000).map(|_| latency.draw().as_secs_f64() * 1000.0).collect();
        drawn.sort_by(f64::total_cmp);
        at.iter().map(|at| drawn[(at * 500.0) as usize]).collect()
    }

    fn near(found: &[f64], wanted: &[f64]) {
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((found / wanted - 1.0).abs() < 0.05, "{found} is not {wanted}");
        }
    }

    #[test]
    fn what_is_drawn_has_the_claimed_quantiles() {
        let millis = Duration::from_millis;
        near(&quantiles(FirstByte::LogNormal { p50: millis(27), p95: millis(75) }, &[50.0, 95.0]), &[27.0, 75.0]);
        let table = vec![(0.0, millis(10)), (50.0, millis(27)), (95.0, millis(75)), (100.0, millis(1000))];
        near(&quantiles(FirstByte::Percentiles(table), &[25.0, 50.0, 95.0, 97.5]), &[18.5, 27.0, 75.0, 537.5]);
        near(&quantiles(FirstByte::Constant(millis(30)), &[1.0, 99.0]), &[30.0, 30.0]);
    }

    #[test]
    fn a_seed_draws_the_same_again() {
        let draw = |seed| {
            let p50 = Duration::from_millis(27);
            let latency = Latency::new(FirstByte::LogNormal { p50, p95: p50 * 3 }, seed).unwrap();
            [latency.draw(), latency.draw(), latency.draw()]
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}

//! A limit for the bytes of bodies, up and down together: so many a second over the whole client.
//!
//! Whoever is about to send or receive asks for a few bytes first and is told when it is their turn. A turn is a moment
//! on one line that moves on by what was granted: so turns come in the order asked for, nobody starves, and there is no
//! queue to keep. Time that nobody used is lost but for [`BURST`], so that no idle second is made up for by a fast one.
//!
//! Asked is by the connection, for every piece of every body: a large part is slowed down all along and never stands
//! still for longer than its turns are apart. What the kernel receives ahead is bounded by the sockets' buffers, which
//! are small while a limit is set ([`Bandwidth::socket_buffer`]).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How much unused time may be made up for: timers are a millisecond apart, and tasks wait for their turn to run.
const BURST: Duration = Duration::from_millis(50);

/// Turns a second at most, unless pieces would be too small.
const TURNS: u64 = 64;

/// Smaller pieces cost more to ask for than they are worth.
const LEAST_PIECE: u64 = 4 << 10;

/// Larger ones leave the cache.
const MOST_PIECE: u64 = 1 << 20;

/// What a transfer must get to be worth a connection, in bytes a second: with less, a body stands still for long enough
/// to be given up by a server, and the buffers of many sockets are more than a second's worth.
const WORTH_A_CONNECTION: u64 = 64 << 10;

pub(crate) struct Bandwidth {
    /// Bytes a second, at least one.
    rate: u64,
    /// When everything that was granted so far will have passed.
    line: Mutex<Instant>,
}

/// Some bytes whose turn has come, or will have; given back when dropped before.
struct Turn<'a> {
    bandwidth: &'a Bandwidth,
    bytes: u64,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.bandwidth.give_back(self.bytes);
    }
}

impl Bandwidth {
    pub(crate) fn new(rate: u64) -> Bandwidth {
        Bandwidth { rate: rate.max(1), line: Mutex::new(Instant::now()) }
    }

    /// Waits for the turn of some of `wanted` bytes: at least one, if any are wanted, and at most a piece.
    pub(crate) async fn take(&self, wanted: u64) -> u64 {
        let now = Instant::now();
        let (bytes, begins) = self.book(wanted, now);
        let mut turn = Turn { bandwidth: self, bytes };
        let wait = begins.saturating_duration_since(now);
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        std::mem::take(&mut turn.bytes)
    }

    /// How many of the bytes have the next turn, and when.
    fn book(&self, wanted: u64, now: Instant) -> (u64, Instant) {
        let bytes = wanted.min((self.rate / TURNS).clamp(LEAST_PIECE, MOST_PIECE));
        let mut line = self.line();
        let begins = (*line).max(now.checked_sub(BURST).unwrap_or(now));
        *line = begins + self.time_of(bytes);
        (bytes, begins)
    }

    /// Bytes that were taken and did not come.
    pub(crate) fn give_back(&self, bytes: u64) {
        if bytes > 0 {
            let mut line = self.line();
            *line = line.checked_sub(self.time_of(bytes)).unwrap_or(*line);
        }
    }

    /// How many requests at once are worth making, of `concurrency`.
    pub(crate) fn places(rate: u64, concurrency: usize) -> usize {
        let worth = usize::try_from(rate / WORTH_A_CONNECTION).unwrap_or(usize::MAX);
        concurrency.min(worth.max(1))
    }

    /// The size of a socket's buffer, so that those of `concurrency` connections hold half a second's worth together
    /// (the kernel doubles what it is asked for).
    pub(crate) fn socket_buffer(rate: u64, concurrency: usize) -> usize {
        let each = rate / 4 / Bandwidth::places(rate, concurrency).max(1) as u64;
        usize::try_from(each.clamp(LEAST_PIECE * 2, 4 << 20)).unwrap_or(4 << 20)
    }

    fn time_of(&self, bytes: u64) -> Duration {
        Duration::from_secs_f64(bytes as f64 / self.rate as f64)
    }

    fn line(&self) -> MutexGuard<'_, Instant> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What passes when each of `takers` takes the next turn as soon as it has had its last, for so long; each turn with
    /// when it begins.
    fn turns(bandwidth: &Bandwidth, takers: usize, from: Instant, lasting: Duration) -> Vec<Vec<(Instant, u64)>> {
        let mut had = vec![Vec::new(); takers];
        let mut free = vec![from; takers];
        loop {
            let taker = (0..takers).min_by_key(|&taker| free[taker]).unwrap();
            if free[taker] > from + lasting {
                return had;
            }
            let (bytes, begins) = bandwidth.book(u64::MAX, free[taker]);
            free[taker] = begins.max(free[taker]);
            had[taker].push((free[taker], bytes));
        }
    }

    #[test]
    fn no_second_sees_more_than_the_limit_and_a_burst_and_everybody_has_turns() {
        for (rate, takers) in [(64 << 10, 1), (1 << 20, 16), (10 << 20, 96), (1 << 30, 96)] {
            let bandwidth = Bandwidth::new(rate);
            let from = Instant::now() + Duration::from_secs(3600);
            let had = turns(&bandwidth, takers, from, Duration::from_secs(3));
            let mut all: Vec<_> = had.iter().flatten().copied().collect();
            all.sort_unstable();
            for (index, &(at, _)) in all.iter().enumerate().step_by(7) {
                let second = all[index..].iter().take_while(|turn| turn.0 < at + Duration::from_secs(1));
                let seen: u64 = second.map(|turn| turn.1).sum();
                assert!(seen <= rate + rate / 10, "{seen} bytes in a second at {rate}");
            }
            let total: u64 = all.iter().map(|turn| turn.1).sum();
            assert!(total >= 3 * rate, "{total} bytes in 3 s at {rate}: the limit is to be reached");
            for turns in had {
                let longest = turns.windows(2).map(|two| two[1].0 - two[0].0).max().unwrap();
                assert!(longest < Duration::from_secs(2), "a body stands still for {longest:?} at {rate}");
            }
        }
    }

    #[tokio::test]
    async fn a_turn_that_is_given_up_or_not_used_is_given_back() {
        let bandwidth = Bandwidth::new(LEAST_PIECE);
        let first = bandwidth.take(u64::MAX).await;
        let before = *bandwidth.line();
        // Its turn is a second away.
        let waiting = tokio::time::timeout(Duration::from_millis(1), bandwidth.take(u64::MAX)).await;
        assert!(waiting.is_err());
        assert_eq!((first, *bandwidth.line()), (LEAST_PIECE, before));
        bandwidth.give_back(first);
        assert_eq!(*bandwidth.line(), before - Duration::from_secs(1));
    }

    #[test]
    fn a_low_limit_is_for_few_connections_with_small_buffers() {
        assert_eq!(Bandwidth::places(1, 96), 1);
        assert_eq!(Bandwidth::places(1 << 20, 96), 16);
        assert_eq!(Bandwidth::places(u64::MAX, 96), 96);
        for rate in [1, 64 << 10, 10 << 20, 1 << 30] {
            let buffers = Bandwidth::socket_buffer(rate, 96) * Bandwidth::places(rate, 96) * 2;
            assert!(buffers as u64 <= (rate / 2).max(4 * LEAST_PIECE), "{buffers} bytes at {rate} a second");
        }
    }
}

//! When to try again, and for how long to wait first.
//!
//! Full jitter (a uniform wait between nothing and the cap) keeps a crowd of clients from returning
//! together; the cap doubles with every attempt. A quota over the whole client keeps a failing
//! service from being asked many times over: retries take tokens, successes bring some back. The
//! quota's figures are those of the AWS SDKs' standard retry mode: 500 tokens, 5 for a retry, 10
//! after a timeout, 1 back for a first-attempt success.

use std::time::Duration;

use crate::sync::atomic::{AtomicI64, AtomicU32, Ordering};

const QUOTA: i64 = 500;
const RETRY_COST: i64 = 5;
const TIMEOUT_COST: i64 = 10;
const SUCCESS_REFUND: i64 = 1;

const FIRST_CAP: Duration = Duration::from_millis(50);
/// A throttled request waits longer from the start: the server is over its limit, not broken.
const FIRST_THROTTLED_CAP: Duration = Duration::from_millis(500);
const LONGEST_CAP: Duration = Duration::from_secs(20);

/// How many retries there are for one where the server takes requests of others. At a prefix's limit one request in
/// three may be refused, and of ten million objects none should fail for having been unlucky five times: five attempts
/// are then seventeen, over two minutes.
const CROWDED_RETRIES: u32 = 4;

/// Whether a failure is worth another attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Asking again would bring the same answer.
    Never,
    /// A reused connection turned out to be closed: at once, on a new one, at no cost.
    AtOnce,
    /// What was wrong with the request has been put right; it has been tried too often already where the
    /// policy is asked.
    Remedied,
    /// A passing fault.
    Backoff,
    /// A passing fault that has already cost its whole timeout.
    AfterTimeout,
    /// The server asked for fewer requests.
    Throttled(Throttle),
}

/// What is known of a refusal for too many requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Throttle {
    /// How long the server asked to wait.
    pub(crate) asked: Option<Duration>,
    /// The request was sent before the pace was last lowered: another of its round has paid.
    pub(crate) is_late: bool,
    /// The server takes requests of others: the turn of this one is yet to come.
    pub(crate) is_crowded: bool,
}

pub(crate) struct RetryPolicy {
    max_attempts: AtomicU32,
    tokens: AtomicI64,
}

impl RetryPolicy {
    pub(crate) fn new(max_attempts: u32) -> RetryPolicy {
        RetryPolicy { max_attempts: AtomicU32::new(max_attempts), tokens: AtomicI64::new(QUOTA) }
    }

    /// What a profile says, once it has been read.
    pub(crate) fn set_max_attempts(&self, attempts: u32) {
        self.max_attempts.store(attempts, Ordering::Relaxed);
    }

    /// How long to wait before attempt `attempts + 1`, or `None` to give up after `attempts`.
    pub(crate) fn next(&self, retry: Retry, attempts: u32) -> Option<Duration> {
        let (cost, first_cap, at_least) = match retry {
            Retry::Never | Retry::Remedied => return None,
            Retry::AtOnce => return Some(Duration::ZERO),
            Retry::Backoff => (RETRY_COST, FIRST_CAP, Duration::ZERO),
            Retry::AfterTimeout => (TIMEOUT_COST, FIRST_CAP, Duration::ZERO),
            Retry::Throttled(throttle) => {
                let is_free = throttle.is_late || throttle.is_crowded;
                (if is_free { 0 } else { RETRY_COST }, FIRST_THROTTLED_CAP, throttle.asked.unwrap_or_default())
            }
        };
        let most = self.max_attempts.load(Ordering::Relaxed);
        let is_crowded = matches!(retry, Retry::Throttled(throttle) if throttle.is_crowded);
        let most = if is_crowded { 1 + most.saturating_sub(1).saturating_mul(CROWDED_RETRIES) } else { most };
        if attempts >= most || !self.take(cost) {
            return None;
        }
        let doublings = attempts.saturating_sub(1).min(16);
        let cap = (first_cap * (1 << doublings)).min(LONGEST_CAP);
        Some(at_least.min(LONGEST_CAP) + cap.mul_f64(fastrand::f64()))
    }

    /// A request that succeeded at the first attempt.
    pub(crate) fn succeeded(&self) {
        // Read first: the common case is a full quota, which costs no write to a shared line.
        if self.tokens.load(Ordering::Relaxed) < QUOTA {
            self.tokens.fetch_add(SUCCESS_REFUND, Ordering::Relaxed);
        }
    }

    fn take(&self, cost: i64) -> bool {
        let left = self.tokens.fetch_sub(cost, Ordering::Relaxed) - cost;
        if left < 0 {
            self.tokens.fetch_add(cost, Ordering::Relaxed);
        }
        left >= 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THROTTLED: Retry = Retry::Throttled(Throttle { asked: None, is_late: false, is_crowded: false });
    const LATE: Retry = Retry::Throttled(Throttle { asked: None, is_late: true, is_crowded: false });
    const CROWDED: Retry = Retry::Throttled(Throttle { asked: None, is_late: false, is_crowded: true });

    #[test]
    fn waits_stay_under_a_doubling_cap() {
        let policy = RetryPolicy::new(10);
        for attempts in 1..6 {
            let cap = FIRST_CAP * (1 << (attempts - 1));
            assert!(policy.next(Retry::Backoff, attempts).unwrap() <= cap);
        }
        let asked = Duration::from_secs(2);
        let asked_to_wait = |asked| Retry::Throttled(Throttle { asked: Some(asked), ..Throttle::default() });
        assert!(policy.next(asked_to_wait(asked), 1).unwrap() >= asked);
        assert!(policy.next(asked_to_wait(Duration::MAX), 1).unwrap() <= 2 * LONGEST_CAP);
    }

    #[test]
    fn the_quota_runs_out_and_successes_bring_it_back() {
        let policy = RetryPolicy::new(u32::MAX);
        let granted = (0..1000).take_while(|_| policy.next(Retry::Backoff, 1).is_some()).count();
        assert_eq!(granted as i64, QUOTA / RETRY_COST);
        for _ in 0..RETRY_COST {
            policy.succeeded();
        }
        assert!(policy.next(Retry::Backoff, 1).is_some());
        assert!(policy.next(Retry::Backoff, 1).is_none());
    }

    #[test]
    fn of_a_round_of_refusals_one_pays() {
        let policy = RetryPolicy::new(5);
        for _ in 0..10_000 {
            assert!(policy.next(LATE, 4).unwrap() <= 8 * FIRST_THROTTLED_CAP);
        }
        assert!(policy.next(LATE, 5).is_none(), "attempts are bounded all the same");
        let granted = (0..1000).take_while(|_| policy.next(THROTTLED, 1).is_some()).count();
        assert_eq!(granted as i64, QUOTA / RETRY_COST);
    }

    #[test]
    fn where_others_are_served_more_attempts_are_made_and_none_is_paid_for() {
        let policy = RetryPolicy::new(5);
        for _ in 0..10_000 {
            assert!(policy.next(CROWDED, 16).unwrap() <= LONGEST_CAP);
        }
        assert!(policy.next(CROWDED, 17).is_none());
        assert!(RetryPolicy::new(1).next(CROWDED, 1).is_none(), "none means none");
        assert!(policy.next(THROTTLED, 4).is_some());
    }

    #[test]
    fn attempts_are_bounded_and_the_hopeless_is_not_tried() {
        let policy = RetryPolicy::new(3);
        assert!(policy.next(Retry::Backoff, 2).is_some());
        assert!(policy.next(Retry::Backoff, 3).is_none());
        assert!(policy.next(Retry::Never, 1).is_none());
        assert_eq!(policy.next(Retry::AtOnce, 1), Some(Duration::ZERO));
    }
}

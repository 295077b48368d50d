//! When to try again, and for how long to wait first.
//!
//! Full jitter (a uniform wait between nothing and the cap) keeps a crowd of clients from returning
//! together; the cap doubles with every attempt. A quota over the whole client keeps a failing
//! service from being asked many times over: retries take tokens, successes bring some back. The
//! quota's figures are those of the AWS SDKs' standard retry mode: 500 tokens, 5 for a retry, 10
//! after a timeout, 1 back for a first-attempt success.
//!
//! A server that restarts refuses connections for some seconds. Where no request of the client succeeds meanwhile (an
//! outage), the waits grow faster, so that five attempts take 4 to 8 seconds, and they cost no tokens, since no server
//! has any work from them. An outage that lasts longer than [`PATIENCE`] is not waited for any more: what fails then
//! is tried again soon and costs tokens, so that a long job with a dead server ends soon.

use std::time::{Duration, Instant};

use crate::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

const QUOTA: i64 = 500;
const RETRY_COST: i64 = 5;
const TIMEOUT_COST: i64 = 10;
const SUCCESS_REFUND: i64 = 1;

const FIRST_CAP: Duration = Duration::from_millis(50);
/// A throttled request waits longer from the start: the server is over its limit, not broken.
const FIRST_THROTTLED_CAP: Duration = Duration::from_millis(500);
const LONGEST_CAP: Duration = Duration::from_secs(20);
/// During an outage the first wait stays short, in case that another address or one lost packet was the trouble, and the
/// following ones are four times as long each.
const FIRST_OUTAGE_CAP: Duration = Duration::from_millis(200);
const LONGEST_OUTAGE_CAP: Duration = Duration::from_secs(4);

/// The longest outage that is waited for: longer than the attempts of one request take by default.
const PATIENCE: Duration = Duration::from_secs(10);
/// Failures that are farther apart belong to different outages.
const FORGETTING: Duration = Duration::from_secs(30);

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
    /// No server answered: the connection was refused, or broke before the head of an answer.
    Unreachable,
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
    outage: Outage,
}

/// The time in which no request has been answered, though some were tried. In milliseconds after `epoch`, plus one.
struct Outage {
    epoch: Instant,
    /// The first failure; 0 while there is no outage.
    since: AtomicU64,
    last: AtomicU64,
}

impl Outage {
    /// Notes a failure at `now`. Returns how long the outage has lasted; `None` where it begins with this failure.
    fn note(&self, now: Instant) -> Option<Duration> {
        let now = u64::try_from(now.saturating_duration_since(self.epoch).as_millis()).unwrap_or(u64::MAX - 1) + 1;
        let last = self.last.swap(now, Ordering::Relaxed);
        let since = self.since.load(Ordering::Relaxed);
        if since == 0 || now.saturating_sub(last) > FORGETTING.as_millis() as u64 {
            self.since.store(now, Ordering::Relaxed);
            return None;
        }
        Some(Duration::from_millis(now.saturating_sub(since)))
    }

    fn end(&self) {
        // Read first: a request that succeeds mostly finds no outage, and writes to no shared line.
        if self.since.load(Ordering::Relaxed) != 0 {
            self.since.store(0, Ordering::Relaxed);
        }
    }
}

impl RetryPolicy {
    pub(crate) fn new(max_attempts: u32) -> RetryPolicy {
        let outage = Outage { epoch: Instant::now(), since: AtomicU64::new(0), last: AtomicU64::new(0) };
        RetryPolicy { max_attempts: AtomicU32::new(max_attempts), tokens: AtomicI64::new(QUOTA), outage }
    }

    /// What a profile says, once it has been read.
    pub(crate) fn set_max_attempts(&self, attempts: u32) {
        self.max_attempts.store(attempts, Ordering::Relaxed);
    }

    /// How long to wait before attempt `attempts + 1`, or `None` to give up after `attempts`.
    pub(crate) fn next(&self, retry: Retry, attempts: u32) -> Option<Duration> {
        match retry {
            Retry::Unreachable => self.next_in_outage(attempts, Instant::now()),
            retry => self.next_of(retry, attempts),
        }
    }

    fn next_in_outage(&self, attempts: u32, now: Instant) -> Option<Duration> {
        let cost = match self.outage.note(now) {
            Some(lasted) if lasted > PATIENCE => return self.next_of(Retry::Backoff, attempts),
            // Others are answered, or were until now: it is a retry like any other.
            None => RETRY_COST,
            Some(_) => 0,
        };
        if attempts >= self.max_attempts.load(Ordering::Relaxed) || !self.take(cost) {
            return None;
        }
        let cap = FIRST_OUTAGE_CAP.saturating_mul(4u32.saturating_pow(attempts.saturating_sub(1)));
        // At least half: the attempts must last until the server is back.
        Some(cap.min(LONGEST_OUTAGE_CAP).mul_f64(0.5 + fastrand::f64() / 2.0))
    }

    /// Notes that a server has answered.
    pub(crate) fn answered(&self) {
        self.outage.end();
    }

    fn next_of(&self, retry: Retry, attempts: u32) -> Option<Duration> {
        let (cost, first_cap, at_least) = match retry {
            Retry::Never | Retry::Remedied => return None,
            Retry::AtOnce => return Some(Duration::ZERO),
            Retry::Backoff | Retry::Unreachable => (RETRY_COST, FIRST_CAP, Duration::ZERO),
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
    fn five_attempts_outlast_a_restart_and_a_dead_server_is_given_up() {
        let policy = RetryPolicy::new(5);
        let start = Instant::now();
        for _ in 0..200 {
            // 64 workers, each with an item: the quota must not end them.
            let waits: Duration = (1..5).map(|attempts| policy.next_in_outage(attempts, start).unwrap()).sum();
            assert!((Duration::from_secs(4)..Duration::from_millis(8_300)).contains(&waits), "{waits:?}");
            assert!(policy.next_in_outage(1, start).unwrap() <= FIRST_OUTAGE_CAP, "the first retry is soon");
        }
        assert_eq!(policy.next_in_outage(5, start), None, "attempts bound it");
        assert_eq!(policy.tokens.load(Ordering::Relaxed), QUOTA - RETRY_COST, "the first failure of an outage pays");
        let mut later = start;
        for _ in 0..20 {
            later += Duration::from_secs(1);
            policy.next_in_outage(1, later);
        }
        assert!(policy.next_in_outage(4, later).unwrap() <= 8 * FIRST_CAP, "nobody waits for a dead server");
        let granted = (0..1_000).take_while(|_| policy.next_in_outage(1, later).is_some()).count();
        assert!(granted as i64 <= QUOTA / RETRY_COST, "and the quota bounds what is asked of it: {granted}");
    }

    #[test]
    fn an_outage_ends_with_an_answer_or_is_forgotten() {
        let policy = RetryPolicy::new(5);
        let start = Instant::now();
        let is_long = |policy: &RetryPolicy, now| policy.next_in_outage(4, now).unwrap() >= LONGEST_OUTAGE_CAP / 2;
        assert!(is_long(&policy, start));
        let mut late = start;
        while late - start <= PATIENCE {
            late += Duration::from_secs(4);
            policy.next_in_outage(1, late);
        }
        assert!(!is_long(&policy, late));
        policy.answered();
        assert!(is_long(&policy, late), "the server was there meanwhile");
        assert!(is_long(&policy, late + FORGETTING + PATIENCE), "a failure long after the last is a new outage");
        // A server that answers some requests and breaks others is asked no more than the quota allows.
        let granted = (0..1_000)
            .take_while(|_| {
                policy.answered();
                policy.next_in_outage(1, late).is_some()
            })
            .count();
        assert!(granted as i64 <= QUOTA / RETRY_COST);
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

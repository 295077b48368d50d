//! This machine's clock, corrected by what a server said of the time.
//!
//! A signature carries its time, and S3 takes one that is up to 15 minutes away from its own. A clock
//! that is farther off is corrected once from the `Date` of the refusal, for all requests of the client.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

/// How far a server's clock may be from ours before it refuses, and a refusal may be the clock's fault.
pub(crate) const TOLERATED: Duration = Duration::from_secs(15 * 60);

/// Below this a correction changes nothing that a server looks at.
const WORTH_CORRECTING: i64 = 60;

/// The time as the server has it.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// Seconds that the server's clock is ahead of this machine's.
    ahead: AtomicI64,
}

impl Clock {
    /// The server's time, as far as is known.
    pub(crate) fn now(&self) -> SystemTime {
        let now = SystemTime::now();
        match self.ahead.load(Ordering::Relaxed) {
            0 => now,
            ahead => shifted(now, ahead),
        }
    }

    /// The correction did not help: what a server says of its time may be wrong.
    pub(crate) fn forget_correction(&self) {
        self.ahead.store(0, Ordering::Relaxed);
    }

    /// Whether it is corrected.
    pub(crate) fn is_corrected(&self) -> bool {
        self.ahead.load(Ordering::Relaxed) != 0
    }

    /// A request signed for `signed_at` was refused at the server's time `server`: whether it is worth
    /// another try, because the clock is corrected now.
    pub(crate) fn correct(&self, server: SystemTime, signed_at: SystemTime) -> bool {
        if seconds_between(signed_at, server).abs() < WORTH_CORRECTING {
            return false;
        }
        if seconds_between(self.now(), server).abs() < WORTH_CORRECTING {
            // Another request's refusal has corrected it meanwhile.
            return true;
        }
        let ahead = seconds_between(SystemTime::now(), server);
        self.ahead.store(ahead, Ordering::Relaxed);
        tracing::warn!("{}: signing with the server's time from now on", describe(server));
        true
    }
}

/// `this machine's clock is 40 minutes behind the server's`.
pub(crate) fn describe(server: SystemTime) -> String {
    let ahead = seconds_between(SystemTime::now(), server);
    let (amount, unit) = match ahead.unsigned_abs() {
        seconds @ 0..120 => (seconds, "seconds"),
        seconds @ 120..7200 => (seconds / 60, "minutes"),
        seconds @ 7200..172_800 => (seconds / 3600, "hours"),
        seconds => (seconds / 86_400, "days"),
    };
    let side = if ahead >= 0 { "behind" } else { "ahead of" };
    format!("this machine's clock is {amount} {unit} {side} the server's")
}

/// How far `later` lies behind `earlier`, negative where it comes before.
pub(crate) fn seconds_between(earlier: SystemTime, later: SystemTime) -> i64 {
    let whole = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    match later.duration_since(earlier) {
        Ok(ahead) => whole(ahead),
        Err(behind) => -whole(behind.duration()),
    }
}

fn shifted(time: SystemTime, seconds: i64) -> SystemTime {
    let by = Duration::from_secs(seconds.unsigned_abs());
    let moved = if seconds >= 0 { time.checked_add(by) } else { time.checked_sub(by) };
    moved.unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_wrong_clock_is_corrected_once() {
        let clock = Clock::default();
        let signed_at = clock.now();
        let server = SystemTime::now() + HOUR;
        assert!(clock.correct(server, signed_at));
        assert!(seconds_between(clock.now(), server).abs() <= 1);
        // What was signed before the correction is tried again, what was signed after it is not.
        assert!(clock.correct(server, signed_at));
        assert!(!clock.correct(server, clock.now()));
        clock.forget_correction();
        assert!(seconds_between(clock.now(), SystemTime::now()).abs() <= 1);
    }

    #[test]
    fn a_clock_that_is_right_is_left_alone() {
        let clock = Clock::default();
        assert!(!clock.correct(SystemTime::now() + Duration::from_secs(30), clock.now()));
        assert!(seconds_between(clock.now(), SystemTime::now()).abs() <= 1);
    }

    #[test]
    fn the_difference_is_said_in_words() {
        let said = describe(SystemTime::now() + Duration::from_secs(40 * 60 + 5));
        assert_eq!(said, "this machine's clock is 40 minutes behind the server's");
        let said = describe(SystemTime::now() - 5 * HOUR);
        assert!(said.contains("hours ahead of"), "{said}");
    }
}

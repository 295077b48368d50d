//! One timer a connection, re-armed only when it rings.
//!
//! A timer that is reset on every read costs more than the read's bookkeeping. This one remembers
//! when something last moved and looks at the clock only when it rings: then it either rings for
//! good or sleeps for what is left.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

pub(super) struct Watchdog {
    sleep: Pin<Box<Sleep>>,
    /// Since when nothing has moved; the clock is first asked when somebody has to wait.
    still_since: Option<Instant>,
}

impl Watchdog {
    pub(super) fn new() -> Watchdog {
        Watchdog { sleep: Box::pin(tokio::time::sleep_until(Instant::now())), still_since: None }
    }

    /// Something moved: the time starts anew.
    pub(super) fn moved(&mut self) {
        self.still_since = None;
    }

    /// How long nothing has moved.
    pub(super) fn still_for(&self) -> Duration {
        self.still_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Ready once nothing has moved for `limit`. Polled when the socket has nothing to do.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, limit: Duration) -> Poll<()> {
        let due = *self.still_since.get_or_insert_with(Instant::now) + limit;
        // A timer left over from a longer limit would ring too late.
        if self.sleep.deadline() > due {
            self.sleep.as_mut().reset(due);
        }
        while self.sleep.as_mut().poll(cx).is_ready() {
            if Instant::now() >= due {
                return Poll::Ready(());
            }
            self.sleep.as_mut().reset(due);
        }
        Poll::Pending
    }
}

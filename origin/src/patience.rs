//! Limits on the time that a client may keep its connection waiting.
//!
//! S3 closes connections on which nothing happens, after some 20 to 60 seconds. Without that, clients that never
//! finish a request hold a connection each for ever.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// The longest time that a client may let pass before the next request's head is complete, between two reads of a
/// body, and between two writes of an answer.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

/// A wait for a client. Costs nothing while data moves: the timer is made when there is nothing to do for the first
/// time, and set anew only when it fires. It therefore expires after one to two times [`LONGEST`].
#[derive(Debug, Default)]
pub(crate) struct Patience {
    timer: Option<Pin<Box<Sleep>>>,
    moved: bool,
}

impl Patience {
    /// Notes that data moved.
    pub(crate) fn moved(&mut self) {
        self.moved = true;
    }

    /// Waits until nothing has moved for [`LONGEST`].
    pub(crate) fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(LONGEST)));
            ready!(timer.as_mut().poll(cx));
            if !std::mem::take(&mut self.moved) {
                return Poll::Ready(());
            }
            timer.as_mut().reset(Instant::now() + LONGEST);
        }
    }
}

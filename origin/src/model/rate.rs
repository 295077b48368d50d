//! Holding a connection, and all connections together, to so many bytes a second.
//!
//! Every byte takes its time on a line that is either the connection's own or shared: a piece may be sent once the
//! line would have carried it. Timers wake a millisecond or more too late; what is sent next is reckoned from when the
//! piece before it was due, not from when it was sent, so that the mean rate is the one claimed. What was not used while
//! nothing was to be sent is lost.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep_until};

use super::claims::{Model, Nic};

/// The least and the most sent at once: below, timers would be all that is done; above, the rate would come in gusts.
const LEAST: usize = 64 << 10;
const MOST: usize = 256 << 10;

/// A piece is what a connection carries in this time.
const PIECE: f64 = 0.002;

/// Debts that are too small for a timer, whose grain is a millisecond: they are paid with the next piece.
const GRAIN: Duration = Duration::from_micros(500);

/// A connection that goes on within this time of its last piece was not idle.
const PROMPT: Duration = Duration::from_millis(5);

/// The most lateness of one connection that is made up for.
const LATEST: Duration = Duration::from_millis(50);

/// The same for all together, who are hardly ever all late.
const SHARED_LATEST: Duration = Duration::from_millis(10);

/// A line that carries so many bytes a second, one after the other.
#[derive(Debug)]
struct Lane {
    nic: Nic,
    credit: f64,
    /// When it will have carried all that it was given.
    free: Option<Instant>,
}

impl Lane {
    /// Earns all credit that it can hold.
    fn refill(&mut self) {
        self.credit = self.nic.credit;
    }

    fn new(nic: Nic) -> Self {
        // A line that carries nothing would be a stall, and is asked for as one.
        let baseline = nic.baseline.max(1.0);
        let nic = Nic { baseline, burst: nic.burst.max(baseline), credit: nic.credit.max(0.0) };
        Self { nic, credit: nic.credit, free: None }
    }

    /// When it will have carried these bytes too. Of the time that it was free, `made_up` at most is made up for.
    fn carry(&mut self, bytes: usize, now: Instant, made_up: Duration) -> Instant {
        let free = self.free.unwrap_or(now);
        let begin = free.max(now.checked_sub(made_up).unwrap_or(now));
        let idle = begin.saturating_duration_since(free).as_secs_f64();
        self.credit = (self.credit + idle * self.nic.baseline).min(self.nic.credit);
        // Of each byte sent at the burst rate so much is beyond the baseline.
        let beyond = 1.0 - self.nic.baseline / self.nic.burst;
        let fast = if beyond > 0.0 { (self.credit / beyond).min(bytes as f64) } else { 0.0 };
        self.credit -= fast * beyond.max(0.0);
        let seconds = fast / self.nic.burst + (bytes as f64 - fast) / self.nic.baseline;
        let end = begin + Duration::from_secs_f64(seconds);
        self.free = Some(end);
        end
    }
}

/// The network interface that all connections share: a lane each way.
#[derive(Debug)]
pub(crate) struct SharedLanes {
    down: Mutex<Lane>,
    up: Mutex<Lane>,
}

/// One direction of one connection.
#[derive(Debug)]
pub(crate) struct Pace {
    own: Option<Lane>,
    shared: Option<(Arc<SharedLanes>, Direction)>,
    /// The most bytes at once.
    piece: usize,
    /// Bytes that the lanes carry, to be granted when that is due.
    carried: usize,
    due: Option<Instant>,
    /// Bytes that may pass at once.
    granted: usize,
    /// When bytes last passed.
    passed: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
    /// Whether the timer is set for what is due.
    set: bool,
}

/// Seen from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Down,
    Up,
}

/// Both directions of one connection.
#[derive(Debug)]
pub(crate) struct Paces {
    pub(crate) down: Pace,
    pub(crate) up: Pace,
}

/// Makes the paces of connections.
#[derive(Debug)]
pub(crate) struct Rates {
    down: Option<f64>,
    up: Option<f64>,
    shared: Option<Arc<SharedLanes>>,
}

impl Rates {
    /// Nothing, where the model has no say in it.
    pub(crate) fn new(model: &Model) -> Option<Self> {
        if model.down.is_none() && model.up.is_none() && model.nic.is_none() {
            return None;
        }
        let lane = |nic: Nic| Mutex::new(Lane::new(nic));
        let shared = model.nic.map(|nic| Arc::new(SharedLanes { down: lane(nic), up: lane(nic) }));
        Some(Self { down: model.down, up: model.up, shared })
    }

    /// The network has all its burst credit again.
    pub(crate) fn refill(&self) {
        if let Some(shared) = &self.shared {
            shared.down.lock().refill();
            shared.up.lock().refill();
        }
    }

    pub(crate) fn connection(&self) -> Paces {
        Paces { down: self.pace(self.down, Direction::Down), up: self.pace(self.up, Direction::Up) }
    }

    fn pace(&self, rate: Option<f64>, direction: Direction) -> Pace {
        let shared_rate = self.shared.as_ref().map(|shared| shared.down.lock().nic.baseline);
        let slowest = rate.unwrap_or(f64::INFINITY).min(shared_rate.unwrap_or(f64::INFINITY));
        let own = rate.map(|rate| Lane::new(Nic { baseline: rate, burst: rate, credit: 0.0 }));
        Pace {
            own,
            shared: self.shared.clone().map(|shared| (shared, direction)),
            piece: ((slowest * PIECE) as usize).clamp(LEAST, MOST),
            carried: 0,
            due: None,
            granted: 0,
            passed: None,
            timer: None,
            set: false,
        }
    }
}

impl Pace {
    /// How many of so many bytes may be sent now. They count as sent once [`Pace::sent`] says so.
    pub(crate) fn poll_grant(&mut self, cx: &mut Context<'_>, wanted: usize) -> Poll<usize> {
        if self.granted == 0 {
            if self.due.is_none() {
                self.carried = wanted.min(self.piece);
                self.due = Some(self.carry(self.carried));
            }
            ready!(self.poll_due(cx));
            self.granted = std::mem::take(&mut self.carried);
        }
        Poll::Ready(self.granted.min(wanted))
    }

    /// So many granted bytes were sent.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.granted = self.granted.saturating_sub(bytes);
        self.passed = Some(Instant::now());
    }

    /// Waits until what was received has taken its time, and says how many bytes may be received next.
    pub(crate) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        if self.due.is_some() {
            ready!(self.poll_due(cx));
            // It is from now on that a client that has more to send might let the line lie idle.
            self.passed = Some(Instant::now());
        }
        Poll::Ready(self.piece)
    }

    /// So many bytes were received.
    pub(crate) fn received(&mut self, bytes: usize) {
        if bytes > 0 {
            self.due = Some(self.carry(bytes));
            self.passed = Some(Instant::now());
        }
    }

    /// When both lanes have carried so many bytes.
    fn carry(&mut self, bytes: usize) -> Instant {
        let now = Instant::now();
        let prompt = self.passed.is_some_and(|passed| now.saturating_duration_since(passed) < PROMPT);
        let (made_up, shared_made_up) = if prompt { (LATEST, SHARED_LATEST) } else { (Duration::ZERO, Duration::ZERO) };
        let own = self.own.as_mut().map_or(now, |own| own.carry(bytes, now, made_up));
        let shared = self.shared.as_ref().map_or(now, |(lanes, direction)| {
            let lane = if *direction == Direction::Down { &lanes.down } else { &lanes.up };
            lane.lock().carry(bytes, now, shared_made_up)
        });
        own.max(shared)
    }

    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(due) = self.due else { return Poll::Ready(()) };
        if !self.set {
            if due <= Instant::now() + GRAIN {
                self.due = None;
                return Poll::Ready(());
            }
            self.set = true;
            match &mut self.timer {
                Some(timer) => timer.as_mut().reset(due),
                None => self.timer = Some(Box::pin(sleep_until(due))),
            }
        }
        if let Some(timer) = &mut self.timer {
            ready!(timer.as_mut().poll(cx));
        }
        self.set = false;
        self.due = None;
        Poll::Ready(())
    }
}

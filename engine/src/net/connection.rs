//! One HTTP/1.1 connection: requests out, answers in, one at a time.
//!
//! A request is its head, written into this connection's scratch, and a borrowed body: both leave in
//! one vectored write. Of the answer only the head, and what little of the body came with it, passes
//! through the connection's own input; the rest of the body is received straight into its slot.
//!
//! While a body is outstanding the socket's low-water mark is raised, so that the reader wakes for
//! much at once: never above what is still to come, and 1 for heads, for chunked bodies and between
//! exchanges. A mark can also lie above what the kernel lets the socket hold; if nothing has moved
//! for [`NUDGE`] it is lowered, which makes the kernel show whatever has arrived.

mod send;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::endpoint::Authority;
use super::failure::NetFailure;
use super::pool::SocketShare;
use super::socket::HAS_LOW_WATER_MARK;
use super::transport::{Room, Transport};
use super::watchdog::Watchdog;
use crate::buffer::Slot;
use crate::pace::Bandwidth;
use crate::wire::chunked::ChunkedDecoder;
use crate::wire::request::Method;
use crate::wire::response::{BodyLength, ResponseHead, parse_response};

/// How much is asked for while a head is awaited and a body will follow into its slot: room for the
/// heads that S3 sends (400 to 900 bytes), and little of the body to copy.
const HEAD_READ: usize = 1024;

/// How much is asked for at once of what is not received into a slot (XML, chunked bodies).
const INPUT_READ: usize = 16 * 1024;

/// More interim answers to one request than any honest server sends.
const INTERIM_ANSWERS: u32 = 16;

/// S3 closes connections that have been idle for some twenty seconds.
pub(super) const IDLE_FOR: Duration = Duration::from_secs(15);

/// Back to back, a connection is not asked whether it is still open: the question is a system call.
const SURELY_OPEN: Duration = Duration::from_millis(50);

/// How long a raised mark may stand without anything moving before it is lowered.
const NUDGE: Duration = Duration::from_millis(250);

/// Below this a raised mark saves less than setting it costs.
const MARK_WORTH_SETTING: u64 = 16 * 1024;

/// The longest that a connection may wait, by phase.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    pub(crate) connect: Duration,
    pub(crate) first_byte: Duration,
    pub(crate) stall: Duration,
}

/// What is still to come of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyLeft {
    /// Exactly this many bytes.
    Bytes(u64),
    /// As many as the chunks say.
    Chunks,
    /// All until the server closes the connection.
    UntilClose,
}

pub(crate) struct Connection {
    authority: Arc<Authority>,
    transport: Transport,
    timeouts: Timeouts,
    low_water: u64,
    mark: i32,
    watchdog: Watchdog,
    head: Vec<u8>,
    input: Vec<u8>,
    consumed: usize,
    chunks: ChunkedDecoder,
    body: BodyLeft,
    keep_alive: bool,
    exchanges: u64,
    /// Some of the answer to the request under way has arrived.
    answered: bool,
    /// The request was cut short: the answer came first, and the connection cannot be used again.
    cut_short: bool,
    /// Some of the request under way has been sent.
    begun: bool,
    /// Interim answers to the request under way.
    interim: u32,
    idle_since: Instant,
    socket_share: SocketShare,
    /// Whose turns bodies wait for, where they are limited.
    bandwidth: Option<Arc<Bandwidth>>,
}

impl Connection {
    pub(super) fn new(
        authority: Arc<Authority>,
        transport: Transport,
        timeouts: Timeouts,
        low_water: u64,
        socket_share: SocketShare,
        bandwidth: Option<Arc<Bandwidth>>,
    ) -> Connection {
        let mut connection = Connection {
            authority,
            transport,
            timeouts,
            low_water: if HAS_LOW_WATER_MARK { low_water } else { 0 },
            mark: 1,
            watchdog: Watchdog::new(),
            head: Vec::with_capacity(1024),
            input: Vec::with_capacity(INPUT_READ),
            consumed: 0,
            chunks: ChunkedDecoder::new(),
            body: BodyLeft::Bytes(0),
            keep_alive: true,
            exchanges: 0,
            answered: false,
            cut_short: false,
            begun: false,
            interim: 0,
            idle_since: Instant::now(),
            socket_share,
            bandwidth,
        };
        connection.count_socket_memory();
        connection
    }

    /// Who it was made to.
    pub(super) fn authority(&self) -> &Arc<Authority> {
        &self.authority
    }

    /// Whether requests for `authority` may go on it: a bucket may have moved since it was made.
    pub(crate) fn is_to(&self, authority: &Arc<Authority>) -> bool {
        Arc::ptr_eq(&self.authority, authority) || self.authority == *authority
    }

    /// Notes how much the kernel may hold for this connection by now.
    pub(super) fn count_socket_memory(&mut self) {
        self.socket_share.set(self.transport.buffer_sizes());
    }

    /// The scratch that the next request's head is written into, empty.
    pub(crate) fn head_scratch(&mut self) -> &mut Vec<u8> {
        self.head.clear();
        &mut self.head
    }

    /// Whether the connection has carried an exchange before: then its failing at once may only mean
    /// that the server had closed it.
    pub(crate) fn is_reused(&self) -> bool {
        self.exchanges > 0
    }

    /// Whether the last exchange ended cleanly and another may follow.
    pub(crate) fn is_reusable(&self) -> bool {
        self.keep_alive
            && !self.cut_short
            && self.body == BodyLeft::Bytes(0)
            && self.consumed == self.input.len()
            && !self.transport.is_worn()
    }

    /// Free from now on.
    pub(crate) fn rest(&mut self) {
        self.idle_since = Instant::now();
    }

    /// Whether the server still keeps it open, so that a request can be spent on it.
    pub(crate) fn is_open(&mut self) -> bool {
        self.idle_since.elapsed() < IDLE_FOR && self.transport.is_quiet()
    }

    /// The same for one that was kept for the next request and has probably just been used.
    pub(crate) fn is_fresh(&mut self) -> bool {
        self.idle_since.elapsed() < SURELY_OPEN || self.is_open()
    }

    pub(super) fn idle_for(&self) -> Duration {
        self.idle_since.elapsed()
    }

    /// Waits until some of so many bytes may be moved; how many.
    async fn turn_of(&mut self, wanted: usize) -> usize {
        let Some(bandwidth) = &self.bandwidth else { return wanted };
        // Boxed: without a limit nobody should carry it.
        let granted = Box::pin(bandwidth.take(wanted as u64)).await as usize;
        self.watchdog.moved();
        granted
    }

    fn give_back(&self, granted: usize, moved: usize) {
        if let Some(bandwidth) = &self.bandwidth {
            bandwidth.give_back(granted.saturating_sub(moved) as u64);
        }
    }

    /// Receives the head of the answer, past any interim ones, and hands it to `read`.
    pub(crate) async fn receive_head<T>(
        &mut self,
        method: Method,
        body_goes_to_a_slot: bool,
        read: impl FnOnce(&ResponseHead<'_>) -> T,
    ) -> Result<T, NetFailure> {
        let ask = if body_goes_to_a_slot { HEAD_READ } else { INPUT_READ };
        let mut read = Some(read);
        self.watchdog.moved();
        loop {
            let parsed = self.parse_head(method, |head| {
                let is_interim = (100..200).contains(&head.status);
                let read = if is_interim { None } else { read.take().map(|read| read(head)) };
                (read, head.keep_alive, head.body)
            })?;
            match parsed {
                Some(((Some(read), keep_alive, body), length)) => {
                    self.keep_alive = keep_alive;
                    self.expect_body(body);
                    self.consumed += length;
                    self.exchanges += 1;
                    return Ok(read);
                }
                Some(((None, ..), length)) => self.skip_interim(length)?,
                None => {
                    self.receive_input(ask, "awaiting the answer", self.timeouts.first_byte).await?;
                }
            }
        }
    }

    /// The head at the front of the input, if it is there whole, and its length.
    fn parse_head<T>(
        &self,
        method: Method,
        read: impl FnOnce(&ResponseHead<'_>) -> T,
    ) -> Result<Option<(T, usize)>, NetFailure> {
        let parsed = parse_response(&self.input[self.consumed..], method)
            .map_err(|error| NetFailure::Malformed(error.to_string()))?;
        Ok(parsed.map(|(head, length)| (read(&head), length)))
    }

    /// Drops an interim answer. A server that sends nothing else is not waited for.
    fn skip_interim(&mut self, length: usize) -> Result<(), NetFailure> {
        self.input.drain(..self.consumed + length);
        self.consumed = 0;
        self.interim += 1;
        if self.interim > INTERIM_ANSWERS {
            return Err(NetFailure::Malformed("it sends interim answers without end".to_owned()));
        }
        Ok(())
    }

    fn expect_body(&mut self, body: BodyLength) {
        self.body = match body {
            BodyLength::Length(bytes) => BodyLeft::Bytes(bytes),
            BodyLength::Chunked => {
                self.chunks = ChunkedDecoder::new();
                BodyLeft::Chunks
            }
            BodyLength::UntilClose => {
                self.keep_alive = false;
                BodyLeft::UntilClose
            }
        };
    }

    /// Receives more input; its end is an error.
    async fn receive_input(&mut self, ask: usize, during: &'static str, patience: Duration) -> Result<(), NetFailure> {
        let received = poll_fn(|cx| self.poll_input(cx, ask, during, patience)).await?;
        if received == 0 {
            return Err(self.ended(during, None));
        }
        self.answered = true;
        Ok(())
    }

    /// Whether the request was cut short because the server answered before it had all of it.
    pub(crate) fn was_cut_short(&self) -> bool {
        self.cut_short
    }

    /// What is still to come of the body.
    pub(crate) fn body_left(&self) -> BodyLeft {
        self.body
    }

    /// Waits until some of the body is there to be received, or all of it has been, so that memory for it need not be held
    /// before.
    pub(crate) async fn body_ready(&mut self) -> Result<(), NetFailure> {
        if self.consumed < self.input.len() || self.body == BodyLeft::Bytes(0) {
            return Ok(());
        }
        self.watchdog.moved();
        poll_fn(|cx| {
            if let Poll::Ready(ready) = self.transport.poll_readable(cx) {
                return Poll::Ready(ready.map_err(|error| NetFailure::broken("receiving the body", error)));
            }
            self.raise_mark(u64::MAX);
            self.poll_stalled(cx).map(Err)
        })
        .await
    }

    /// Receives what has arrived of the body, at least one byte and at most `most`, into the slot.
    /// Returns how many; 0 is the end of a body without a length.
    pub(crate) async fn receive_body(&mut self, slot: &mut Slot, most: u64) -> Result<u64, NetFailure> {
        let BodyLeft::Bytes(left) = self.body else { return self.receive_unmeasured(slot, most).await };
        let wanted = left.min(most).min(slot.remaining() as u64);
        if wanted == 0 {
            return Ok(0);
        }
        // The cast is exact: so much has room in memory.
        let wanted = self.turn_of(wanted as usize).await;
        let early = &self.input[self.consumed..];
        let received = if early.is_empty() {
            self.watchdog.moved();
            poll_fn(|cx| self.poll_body(cx, slot, wanted)).await?
        } else {
            let count = slot.put_slice(&early[..early.len().min(wanted)]);
            self.consumed += count;
            count
        };
        self.give_back(wanted, received);
        let received = received as u64;
        self.body = BodyLeft::Bytes(left - received);
        if left == received {
            self.lower_mark();
        }
        Ok(received)
    }

    /// Receives all of a small body (XML) beside the slots; `None` when it is longer than `most`.
    pub(crate) async fn receive_document(&mut self, most: usize) -> Result<Option<Vec<u8>>, NetFailure> {
        let mut document = Vec::new();
        loop {
            if document.len() > most {
                return Ok(None);
            }
            let room = (most - document.len()) as u64 + 1;
            if self.receive_some(&mut document, room).await? == 0 {
                return Ok(Some(document));
            }
        }
    }

    /// A body whose length nobody has said, through the connection's input.
    async fn receive_unmeasured(&mut self, slot: &mut Slot, most: u64) -> Result<u64, NetFailure> {
        let mut arrived = Vec::new();
        let most = most.min(slot.remaining() as u64);
        if most == 0 {
            return Ok(0);
        }
        self.receive_some(&mut arrived, most).await?;
        // All of it fits: `most` is at most the slot's room.
        Ok(slot.put_slice(&arrived) as u64)
    }

    /// Appends what arrives next of the body, at least one byte and at most `most`; 0 is its end.
    async fn receive_some(&mut self, into: &mut Vec<u8>, most: u64) -> Result<u64, NetFailure> {
        loop {
            let before = into.len();
            let ended = match self.body {
                BodyLeft::Bytes(0) => true,
                BodyLeft::Bytes(left) => {
                    let arrived = &self.input[self.consumed..];
                    let count = left.min(most).min(arrived.len() as u64) as usize;
                    into.extend_from_slice(&arrived[..count]);
                    self.consumed += count;
                    self.body = BodyLeft::Bytes(left - count as u64);
                    false
                }
                BodyLeft::Chunks => {
                    let room = usize::try_from(most).unwrap_or(usize::MAX);
                    let (used, done) = self
                        .chunks
                        .decode(&self.input[self.consumed..], into, room)
                        .map_err(|error| NetFailure::Malformed(error.to_string()))?;
                    self.consumed += used;
                    if done {
                        self.body = BodyLeft::Bytes(0);
                    }
                    done
                }
                BodyLeft::UntilClose => {
                    let arrived = &self.input[self.consumed..];
                    let count = most.min(arrived.len() as u64) as usize;
                    into.extend_from_slice(&arrived[..count]);
                    self.consumed += count;
                    false
                }
            };
            let count = (into.len() - before) as u64;
            if ended || count > 0 {
                return Ok(count);
            }
            self.input.clear();
            self.consumed = 0;
            self.watchdog.moved();
            let stall = self.timeouts.stall;
            let granted = self.turn_of(INPUT_READ).await;
            let received = poll_fn(|cx| self.poll_input(cx, granted, "receiving the body", stall)).await?;
            self.give_back(granted, received);
            if received == 0 {
                if self.body == BodyLeft::UntilClose {
                    self.body = BodyLeft::Bytes(0);
                    return Ok(0);
                }
                return Err(self.ended("receiving the body", None));
            }
        }
    }

    fn poll_body(&mut self, cx: &mut Context<'_>, slot: &mut Slot, wanted: usize) -> Poll<Result<usize, NetFailure>> {
        match self.transport.poll_receive(cx, Room::Slot(slot, wanted)) {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(NetFailure::Broken { during: "receiving the body", source: None })),
            Poll::Ready(Ok(count)) => Poll::Ready(Ok(count)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(NetFailure::broken("receiving the body", error))),
            Poll::Pending => {
                self.raise_mark(wanted as u64);
                self.poll_stalled(cx).map(Err)
            }
        }
    }

    /// Nothing is there: first the mark is lowered, in case the bytes lie under it; a stall is
    /// declared only when they do not.
    fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<NetFailure> {
        let stall = self.timeouts.stall;
        if self.mark > 1 {
            if self.watchdog.poll(cx, NUDGE.min(stall / 2)).is_pending() {
                return Poll::Pending;
            }
            self.lower_mark();
            // So much does not come at once on this connection: half of it may.
            self.low_water /= 2;
        }
        match self.watchdog.poll(cx, stall) {
            Poll::Ready(()) => Poll::Ready(NetFailure::TimedOut { during: "receiving the body", after: stall }),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Raises the mark to what is worth waking for, unless it has just been lowered.
    fn raise_mark(&mut self, wanted: u64) {
        let left = match self.body {
            BodyLeft::Bytes(left) => left.saturating_sub(self.transport.taken_in() as u64).min(wanted),
            BodyLeft::Chunks | BodyLeft::UntilClose => return,
        };
        let mark = self.low_water.min(left);
        if mark < MARK_WORTH_SETTING && self.mark == 1 || self.watchdog.still_for() >= NUDGE {
            return;
        }
        self.set_mark(mark.clamp(1, i32::MAX as u64) as i32);
    }

    fn lower_mark(&mut self) {
        self.set_mark(1);
    }

    fn set_mark(&mut self, mark: i32) {
        // A socket that will not take the mark still receives every byte, only in more wake-ups.
        if self.mark != mark && self.transport.set_low_water_mark(mark).is_ok() {
            self.mark = mark;
        }
    }

    fn poll_input(
        &mut self,
        cx: &mut Context<'_>,
        ask: usize,
        during: &'static str,
        patience: Duration,
    ) -> Poll<Result<usize, NetFailure>> {
        self.lower_mark();
        match self.transport.poll_receive(cx, Room::Input(&mut self.input, ask)) {
            Poll::Ready(Ok(count)) => Poll::Ready(Ok(count)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(self.ended(during, Some(error)))),
            Poll::Pending => match self.watchdog.poll(cx, patience) {
                Poll::Ready(()) => Poll::Ready(Err(NetFailure::TimedOut { during, after: patience })),
                Poll::Pending => Poll::Pending,
            },
        }
    }

    /// The connection ended: before a byte of the answer, on a connection used before, it had
    /// probably been closed while idle.
    fn ended(&self, during: &'static str, source: Option<std::io::Error>) -> NetFailure {
        if self.is_reused() && !self.answered { NetFailure::Stale } else { NetFailure::Broken { during, source } }
    }
}

//! What faults do to a connection itself: resets, and heads that hyper would never write.
//!
//! A [`Line`] is shared by a connection and the service that answers on it. Where a fault asks for it, the bytes that
//! hyper writes for one answer go through a [`Shaping`] on their way to the socket (above TLS): it gathers the head,
//! writes it changed or in small pieces, lets the body pass, and may add to its end. Without faults one relaxed load
//! a write is all that it costs.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::AsyncWrite;
use tokio::time::{Instant, Sleep, sleep_until};

use super::action::BadHead;

/// Pieces of a head that is sent slowly.
const PIECES: u32 = 16;

/// How long a connection to be reset waits, so that what was written is sent.
const FLUSH: Duration = Duration::from_millis(5);

/// Bytes of an oversized head.
const OVERSIZED: usize = 256 << 10;

/// What is to be done to the bytes of the next answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    /// The head is sent over this time.
    Slow(Duration),
    /// The head is made a bad one.
    Bad(BadHead),
    /// So many bytes follow the body.
    Longer(u64),
    /// The connection is reset after the body.
    ResetEnd,
}

/// One connection, as its service can reach it.
#[derive(Debug, Default)]
pub(crate) struct Line {
    reset: AtomicBool,
    planned: AtomicBool,
    plan: Mutex<Option<Plan>>,
    /// For [`Counters::used`](crate::stats::Counters::used).
    pub(crate) counted: AtomicU64,
}

impl Line {
    /// Closing it is to reset it.
    pub(crate) fn reset(&self) {
        self.reset.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_reset(&self) -> bool {
        self.reset.load(Ordering::Relaxed)
    }

    pub(crate) fn plan(&self, plan: Plan) {
        *self.plan.lock() = Some(plan);
        self.planned.store(true, Ordering::Relaxed);
    }

    /// The shaping of an answer that is about to be written, if one was planned.
    pub(crate) fn shaping(&self) -> Option<Box<Shaping>> {
        if !self.planned.swap(false, Ordering::Relaxed) {
            return None;
        }
        let plan = self.plan.lock().take()?;
        Some(Box::new(Shaping { plan, state: State::Head(Vec::new()), out: Vec::new(), written: 0, wait: None }))
    }

    /// Whether [`Line::shaping`] would give one.
    pub(crate) fn is_planned(&self) -> bool {
        self.planned.load(Ordering::Relaxed)
    }
}

/// One answer on its way out.
#[derive(Debug)]
pub(crate) struct Shaping {
    plan: Plan,
    state: State,
    out: Vec<u8>,
    written: usize,
    wait: Option<Pin<Box<Sleep>>>,
}

#[derive(Debug)]
enum State {
    /// What was written of the head so far.
    Head(Vec<u8>),
    /// The head, in pieces of so many bytes every so often; the rest of `out` at once.
    Slow { head: usize, piece: usize, every: Duration, next: Instant },
    /// Bytes of the body still to come.
    Body(u64),
    /// The answer is through.
    Done,
    /// Nothing more may be sent.
    Ended { reset: bool },
}

impl Shaping {
    /// Takes bytes that hyper writes: all of them.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        match &mut self.state {
            State::Head(head) => {
                head.extend_from_slice(bytes);
                if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
                    let head = std::mem::take(head);
                    let (head, body) = head.split_at(end + 4);
                    self.begin(head, body);
                }
            }
            State::Body(left) => {
                *left = left.saturating_sub(bytes.len() as u64);
                self.out.extend_from_slice(bytes);
                self.end();
            }
            State::Slow { .. } | State::Done => self.out.extend_from_slice(bytes),
            State::Ended { .. } => {}
        }
    }

    /// The head is complete; `body` came with it.
    fn begin(&mut self, head: &[u8], body: &[u8]) {
        match self.plan {
            Plan::Slow(time) => {
                let piece = head.len().div_ceil(PIECES as usize).max(1);
                let every = time / PIECES;
                self.state = State::Slow { head: head.len(), piece, every, next: Instant::now() };
                self.out.extend_from_slice(head);
                self.out.extend_from_slice(body);
            }
            Plan::Bad(kind) => {
                self.out = spoiled(head, kind);
                self.out.extend_from_slice(body);
                self.state = State::Done;
                if kind == BadHead::Cut {
                    self.out.truncate(head.len() / 2);
                    self.state = State::Ended { reset: false };
                }
            }
            Plan::Longer(_) | Plan::ResetEnd => {
                self.out.extend_from_slice(head);
                self.state = State::Body(content_length(head));
                self.take(body);
            }
        }
    }

    /// Does what is planned for the end of the body, if that is here.
    fn end(&mut self) {
        if matches!(self.state, State::Body(0)) {
            self.state = match self.plan {
                Plan::Longer(bytes) => {
                    self.out.resize(self.out.len() + bytes as usize, b'+');
                    State::Done
                }
                _ => State::Ended { reset: true },
            };
        }
    }

    /// Whether nothing is left to be done, so that bytes may pass by themselves again.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, State::Done) && self.out.is_empty()
    }

    /// Writes what there is to write.
    ///
    /// # Errors
    /// Those of the stream; and an abort, where the connection is to end here.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        mut stream: Pin<&mut impl AsyncWrite>,
        line: &Line,
    ) -> Poll<io::Result<()>> {
        while self.written < self.out.len() {
            let mut until = self.out.len();
            if let State::Slow { head, piece, every, next } = &mut self.state
                && self.written < *head
            {
                let (due, next) = (*next, next);
                let wait = self.wait.get_or_insert_with(|| Box::pin(sleep_until(due)));
                ready!(wait.as_mut().poll(cx));
                until = (self.written + *piece).min(*head);
                let written = ready!(stream.as_mut().poll_write(cx, &self.out[self.written..until]))?;
                self.written += written;
                *next = due + *every;
                self.wait = None;
                ready!(stream.as_mut().poll_flush(cx))?;
                continue;
            }
            self.written += ready!(stream.as_mut().poll_write(cx, &self.out[self.written..until]))?;
        }
        self.out.clear();
        self.written = 0;
        match self.state {
            State::Slow { .. } => self.state = State::Done,
            State::Ended { reset } => {
                ready!(stream.as_mut().poll_flush(cx))?;
                let wait = self.wait.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + FLUSH)));
                ready!(wait.as_mut().poll(cx));
                if reset {
                    line.reset();
                }
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            _ => {}
        }
        Poll::Ready(Ok(()))
    }
}

/// What Content-Length says; nothing where there is none.
fn content_length(head: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(head).to_ascii_lowercase();
    let value = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

/// A head with something wrong in it.
fn spoiled(head: &[u8], kind: BadHead) -> Vec<u8> {
    let text = String::from_utf8_lossy(head);
    let (first, fields) = text.split_once("\r\n").unwrap_or((&text, ""));
    let status = first.split(' ').nth(1).unwrap_or("200");
    let length = content_length(head);
    let without_length = || {
        let kept = fields.split_inclusive("\r\n").filter(|line| !line.to_ascii_lowercase().starts_with("content-le"));
        kept.collect::<String>()
    };
    let text = match kind {
        BadHead::Version => format!("HTPT/1.1 {status} OK\r\n{fields}"),
        BadHead::Status => format!("HTTP/1.1 2x0 OK\r\n{fields}"),
        BadHead::Field => format!("{first}\r\nthis line has no colon\r\n{fields}"),
        BadHead::Control => format!("{first}\r\nx-amz-meta-odd: a\0b\r\n{fields}"),
        BadHead::Length => format!("{first}\r\ncontent-length: {length}x\r\n{}", without_length()),
        BadHead::Lengths => {
            format!("{first}\r\ncontent-length: {length}\r\ncontent-length: {}\r\n{}", length + 1, without_length())
        }
        BadHead::Negative => format!("{first}\r\ncontent-length: -{}\r\n{}", length + 1, without_length()),
        BadHead::Oversized => {
            let field = format!("x-amz-meta-large: {}\r\n", "x".repeat(1000));
            format!("{first}\r\n{}{fields}", field.repeat(OVERSIZED / field.len()))
        }
        BadHead::Any | BadHead::Cut => text.into_owned(),
    };
    text.into_bytes()
}

//! The way out of a connection: a head and a borrowed body, or pieces of it, each in as few vectored writes as the
//! kernel takes it in. A server that answers before it has everything ends the sending: what it says is worth reading.

use std::future::poll_fn;
use std::io::IoSlice;
use std::task::{Context, Poll};

use super::{Connection, HEAD_READ};
use crate::net::failure::NetFailure;
use crate::wire::checksum::{ChecksumAlgorithm, Sum, Summer};
use crate::wire::request::Method;
use crate::wire::trailer::{PIECE, write_piece_head, write_trailer};

/// How much of a body is handed to the kernel in one call, before other connections have their turn:
/// a near server takes in whole parts at once, which then lie in its queue until they have left the
/// cache. One GiB up on loopback took 0.17 core-seconds so, and 0.19 with no bound.
const SEND_AT_ONCE: usize = 1 << 20;

impl Connection {
    /// Sends the head in the scratch and the body. Returns early, without an error, when the server
    /// answers before it has the whole body: the answer says why.
    pub(crate) async fn send(&mut self, body: &[u8]) -> Result<(), NetFailure> {
        self.begin_request();
        if self.send_piece(body).await? {
            self.cut_short = false;
        }
        Ok(())
    }

    /// The same in the `aws-chunked` framing: each piece is summed just before it is sent, so that the
    /// body is read from memory once, and the sum follows the last. `None` where the server answered
    /// before it had all of it.
    pub(crate) async fn send_summed(
        &mut self,
        body: &[u8],
        algorithm: ChecksumAlgorithm,
    ) -> Result<Option<Sum>, NetFailure> {
        self.begin_request();
        let mut summer = Summer::new(algorithm);
        for (index, piece) in body.chunks(PIECE).enumerate() {
            summer.update(piece);
            write_piece_head(&mut self.head, piece.len(), index == 0);
            if !self.send_piece(piece).await? {
                return Ok(None);
            }
            self.head.clear();
            tokio::task::yield_now().await;
        }
        let sum = summer.finish();
        write_trailer(&mut self.head, &sum, body.is_empty());
        if !self.send_piece(&[]).await? {
            return Ok(None);
        }
        self.cut_short = false;
        Ok(Some(sum))
    }

    fn begin_request(&mut self) {
        self.watchdog.moved();
        self.cut_short = true;
        self.begun = false;
        self.answered = false;
        self.interim = 0;
        self.input.clear();
        self.consumed = 0;
        self.transport.expect_nothing_yet();
    }

    /// Sends what is in the scratch, and then `body`. `false`: the server answered first.
    async fn send_piece(&mut self, body: &[u8]) -> Result<bool, NetFailure> {
        let total = self.head.len() + body.len();
        let mut sent = 0;
        // Of the body, as far as its turn has come; the head needs none.
        let mut allowed = if self.bandwidth.is_some() { 0 } else { body.len() };
        while sent < total || self.transport.has_unsent() {
            if allowed < body.len() && sent >= self.head.len() + allowed {
                allowed += self.turn_of(body.len() - allowed).await;
            }
            match poll_fn(|cx| self.poll_send(cx, &body[..allowed], sent)).await? {
                Some(count) => {
                    sent += count;
                    self.begun = true;
                }
                None if self.only_interim().await? => {}
                None => return Ok(false),
            }
            self.watchdog.moved();
            if sent < total {
                tokio::task::yield_now().await;
            }
        }
        Ok(true)
    }

    /// What the server said before it had the whole request: `true` when it was nothing final, such as
    /// 100 Continue, and sending goes on; `false` when it is the answer, which is left to be read.
    async fn only_interim(&mut self) -> Result<bool, NetFailure> {
        loop {
            self.receive_input(HEAD_READ, "sending the request", self.timeouts.stall).await?;
            // Several answers may have come at once.
            while let Some((status, length)) = self.parse_head(Method::Put, |head| head.status)? {
                if !(100..200).contains(&status) {
                    return Ok(false);
                }
                self.skip_interim(length)?;
                if self.input.is_empty() {
                    return Ok(true);
                }
            }
        }
    }

    /// `None`: the server spoke first.
    fn poll_send(&mut self, cx: &mut Context<'_>, body: &[u8], sent: usize) -> Poll<Result<Option<usize>, NetFailure>> {
        let head_left = self.head.get(sent..).unwrap_or_default();
        let body_left = &body[sent.saturating_sub(self.head.len())..];
        let body_left = &body_left[..body_left.len().min(SEND_AT_ONCE)];
        let pieces = [IoSlice::new(head_left), IoSlice::new(body_left)];
        let pieces = match (head_left, body_left) {
            ([], []) => &[],
            ([], _) => &pieces[1..],
            (_, []) => &pieces[..1],
            _ => &pieces[..],
        };
        match self.transport.poll_send(cx, pieces) {
            Poll::Ready(Ok(0)) if !pieces.is_empty() => Poll::Ready(Err(self.ended("sending the request", None))),
            Poll::Ready(Ok(count)) => Poll::Ready(Ok(Some(count))),
            Poll::Ready(Err(error)) => {
                // A server that refuses a body answers, then resets: the answer is worth reading.
                if self.begun && self.transport.poll_spoken(cx).is_ready() {
                    return Poll::Ready(Ok(None));
                }
                Poll::Ready(Err(self.ended("sending the request", Some(error))))
            }
            Poll::Pending => {
                if self.transport.poll_spoken(cx).is_ready() {
                    return Poll::Ready(Ok(None));
                }
                match self.watchdog.poll(cx, self.timeouts.stall) {
                    Poll::Ready(()) => Poll::Ready(Err(NetFailure::TimedOut {
                        during: "sending the request",
                        after: self.timeouts.stall,
                    })),
                    Poll::Pending => Poll::Pending,
                }
            }
        }
    }
}

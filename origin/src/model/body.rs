//! A body that is changed on its way out: cut off, lengthened, or with bits flipped.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use super::line::Line;
use super::seeded::mix;

/// How long a connection about to be closed waits, so that the bytes before the cut are sent.
const FLUSH: Duration = Duration::from_millis(5);

/// The largest piece of padding: in bytes.
const PAD: u64 = 64 << 10;

/// What comes after the last byte that is let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The connection is closed.
    Close,
    /// The connection is reset.
    Reset,
    /// Nothing, for ever.
    Stall,
    /// The end, as if it were the true one.
    End,
}

/// What is done to a body.
pub(crate) enum Change {
    /// So many bytes, and then the cut. An end may come after more bytes than the body has: zeros make up for them.
    Cut(u64, Cut),
    /// Bits flipped in so many bytes, at places that the number draws.
    Flip(u64, u64),
}

/// A body as a fault has it.
pub(crate) struct ChangedBody<B> {
    body: B,
    line: Arc<Line>,
    /// Bytes sent so far, and bytes to send at most.
    at: u64,
    until: u64,
    cut: Cut,
    /// Where bytes are to be changed, in order, and what is flipped there.
    flips: Vec<(u64, u8)>,
    /// What the whole body, or the cut one where the head tells of that, comes to.
    size: SizeHint,
    closing: Option<Pin<Box<Sleep>>>,
}

impl<B: Body> ChangedBody<B> {
    pub(crate) fn new(body: B, change: Change, line: Arc<Line>) -> Self {
        let (mut size, whole) = (body.size_hint(), body.size_hint().exact());
        let mut flips = Vec::new();
        let (until, how) = match change {
            Change::Cut(after, cut) => {
                if cut == Cut::End {
                    size = SizeHint::with_exact(after);
                }
                (after, cut)
            }
            Change::Flip(count, draw) => {
                let length = whole.unwrap_or(0);
                let draws = (0..count.min(length)).map(|index| mix(draw.wrapping_add(index)));
                flips = draws.map(|draw| (draw % length, (draw >> 56) as u8 | 1)).collect();
                flips.sort_unstable();
                // Two flips of one byte might undo each other.
                flips.dedup_by_key(|(at, _)| *at);
                (whole.unwrap_or(u64::MAX), Cut::End)
            }
        };
        Self { body, line, at: 0, until, cut: how, flips, size, closing: None }
    }

    /// The frame as it is to be sent: a copy where something in it is flipped.
    fn flipped(&self, data: Bytes) -> Bytes {
        let inside = self.at..self.at + data.len() as u64;
        let mut flips = self.flips.iter().filter(|(at, _)| inside.contains(at)).peekable();
        if flips.peek().is_none() {
            return data;
        }
        let mut changed = BytesMut::from(&data[..]);
        for (at, bits) in flips {
            changed[(at - inside.start) as usize] ^= bits;
        }
        changed.freeze()
    }
}

impl<B> Body for ChangedBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: From<io::Error>,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let left = self.until - self.at;
        if left > 0 {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(mut data))) => {
                    data.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                    let data = self.flipped(data);
                    self.at += data.len() as u64;
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None if self.cut == Cut::End && self.until < u64::MAX => {
                    let padding = left.min(PAD);
                    self.at += padding;
                    return Poll::Ready(Some(Ok(Frame::data(vec![0; padding as usize].into()))));
                }
                None if self.cut == Cut::End => return Poll::Ready(None),
                // The whole body came before the place of the cut.
                None => self.until = self.at,
            }
        }
        match self.cut {
            Cut::End => Poll::Ready(None),
            Cut::Stall => Poll::Pending,
            Cut::Close | Cut::Reset => {
                let closing = self.closing.get_or_insert_with(|| Box::pin(sleep(FLUSH)));
                ready!(closing.as_mut().poll(cx));
                if self.cut == Cut::Reset {
                    self.line.reset();
                }
                Poll::Ready(Some(Err(io::Error::from(io::ErrorKind::ConnectionAborted).into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        false
    }

    fn size_hint(&self) -> SizeHint {
        self.size
    }
}

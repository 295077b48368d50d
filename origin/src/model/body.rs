//! A body that is cut off on its way out.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

/// How long a connection about to be closed waits, so that the bytes before the cut are sent.
const FLUSH: Duration = Duration::from_millis(20);

/// What comes after the last byte that is let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The connection is closed.
    Close,
    /// Nothing, for ever.
    Stall,
    /// The end, as if it were the true one.
    End,
}

/// The first bytes of a body, and then the cut.
pub(crate) struct CutBody<B> {
    body: B,
    left: u64,
    cut: Cut,
    /// What the whole body, or the cut one where the head tells of that, comes to.
    size: SizeHint,
    closing: Option<Pin<Box<Sleep>>>,
}

impl<B: Body> CutBody<B> {
    pub(crate) fn new(body: B, after: u64, cut: Cut) -> Self {
        let size = match (cut, body.size_hint().exact()) {
            (Cut::End, Some(size)) => SizeHint::with_exact(size.min(after)),
            _ => body.size_hint(),
        };
        Self { body, left: after, cut, size, closing: None }
    }
}

impl<B> Body for CutBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: From<io::Error>,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if self.left > 0 {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            let data = frame.map(|frame| frame.map(Frame::into_data));
            return Poll::Ready(match data {
                Some(Ok(Ok(mut data))) => {
                    data.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
                    self.left -= data.len() as u64;
                    Some(Ok(Frame::data(data)))
                }
                Some(Ok(Err(trailers))) => Some(Ok(trailers)),
                Some(Err(error)) => Some(Err(error)),
                None => None,
            });
        }
        match self.cut {
            Cut::End => Poll::Ready(None),
            Cut::Stall => Poll::Pending,
            Cut::Close => {
                let closing = self.closing.get_or_insert_with(|| Box::pin(sleep(FLUSH)));
                ready!(closing.as_mut().poll(cx));
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

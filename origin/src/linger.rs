//! The body of a request on its way in: for how long its sender may pause, and reading one that was refused to its end.
//!
//! A server that answers before it has read what is being sent, and closes, makes the client's kernel throw the answer
//! away: the client sees a reset in place of the reason. So the rest of a refused body is read and dropped, within
//! bounds, before the answer is sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use parking_lot::Mutex;

use crate::answer::Failure;
use crate::patience::Patience;

/// The most bytes read for nothing: the largest part of a well-behaved client, and some.
const MOST: u64 = 64 << 20;
/// The longest time spent on it.
const LONGEST: Duration = Duration::from_secs(5);

/// A body that, dropped before its end, is handed back; unless its sender paused for too long.
pub(crate) struct Lingering {
    body: Option<Incoming>,
    rest: Rest,
    patience: Patience,
}

/// The end of a body whose sender paused for too long.
#[derive(Debug)]
pub(crate) struct Paused;

impl std::fmt::Display for Paused {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the sender paused for too long")
    }
}

impl std::error::Error for Paused {}

/// Where an unread rest is handed back to.
#[derive(Clone, Default)]
pub(crate) struct Rest(Arc<Mutex<Option<Incoming>>>);

impl Lingering {
    pub(crate) fn new(body: Incoming) -> (Self, Rest) {
        let rest = Rest::default();
        (Self { body: Some(body), rest: rest.clone(), patience: Patience::default() }, rest)
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        *self.rest.0.lock() = self.body.take().filter(|body| !body.is_end_stream());
    }
}

impl Rest {
    /// Reads what was left unread, if anything was.
    pub(crate) async fn drain(self) {
        let Some(body) = self.0.lock().take() else { return };
        drain(body).await;
    }
}

/// Reads a body and drops it.
pub(crate) async fn drain(mut body: Incoming) {
    let mut read = 0;
    let reading = async {
        while read < MOST {
            let next = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
            let Some(Ok(frame)) = next else { return };
            read += frame.data_ref().map_or(0, Bytes::len) as u64;
        }
    };
    // Too long is as good as done: the connection is closed with the answer.
    let _ = tokio::time::timeout(LONGEST, reading).await;
}

impl Body for Lingering {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(cx) {
            self.patience.moved();
            return Poll::Ready(frame.map(|frame| frame.map_err(Failure::from)));
        }
        ready!(self.patience.poll_expired(cx));
        self.body = None;
        Poll::Ready(Some(Err(Paused.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, Incoming::size_hint)
    }
}

//! Reading an upload that was refused to its end.
//!
//! A server that answers before it has read what is being sent, and closes, makes the client's kernel throw the answer
//! away: the client sees a reset in place of the reason. So the rest of a refused body is read and dropped, within
//! bounds, before the answer is sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use parking_lot::Mutex;

/// The most bytes read for nothing: the largest part of a well-behaved client, and some.
const MOST: u64 = 64 << 20;
/// The longest time spent on it.
const LONGEST: Duration = Duration::from_secs(5);

/// A body that, dropped before its end, is handed back.
pub(crate) struct Lingering {
    body: Option<Incoming>,
    rest: Rest,
}

/// Where an unread rest is handed back to.
#[derive(Clone, Default)]
pub(crate) struct Rest(Arc<Mutex<Option<Incoming>>>);

impl Lingering {
    pub(crate) fn new(body: Incoming) -> (Self, Rest) {
        let rest = Rest::default();
        (Self { body: Some(body), rest: rest.clone() }, rest)
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
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, Incoming::size_hint)
    }
}

//! A request in flight: counted from its head until the last of its answer is given to be sent, or nobody wants it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::answer::{Answer, Failure};
use crate::stats::Counters;

/// A request counted as in flight for as long as this is kept.
pub(crate) struct Flight(Arc<Counters>);

impl Flight {
    pub(crate) fn new(counters: Arc<Counters>) -> Self {
        counters.took_off();
        Self(counters)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.0.landed();
    }
}

/// An answer's body whose request is in flight until hyper drops it, which it does once the body has ended.
pub(crate) struct Flying {
    answer: Answer,
    /// None for the control endpoints.
    _flight: Option<Flight>,
}

impl Flying {
    pub(crate) fn new(answer: Answer, flight: Option<Flight>) -> Self {
        Self { answer, _flight: flight }
    }
}

impl Body for Flying {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        Pin::new(&mut self.answer).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.answer.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.answer.size_hint()
    }
}

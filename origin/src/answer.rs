//! What goes back to a client: an answer's body, whoever made it, and error answers of the server's own.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};

use crate::model::body::ChangedBody;

/// The body of an answer.
pub(crate) enum Answer {
    S3(s3s::Body),
    Whole(Bytes),
    Changed(Box<ChangedBody<s3s::Body>>),
}

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// An error as S3 writes it; `more` is XML that follows the message.
pub(crate) fn error_answer(status: StatusCode, code: &str, message: &str, more: &str) -> Response<Answer> {
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code><Message>{message}</Message>{more}\
         </Error>"
    );
    text_answer(status, "application/xml", text)
}

/// Any text.
pub(crate) fn text_answer(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Answer> {
    let mut response = Response::new(Answer::Whole(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        match &mut *self {
            Self::S3(body) => Pin::new(body).poll_frame(cx),
            Self::Changed(body) => Pin::new(body).poll_frame(cx),
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::S3(body) => body.is_end_stream(),
            Self::Changed(body) => body.is_end_stream(),
            Self::Whole(bytes) => bytes.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::S3(body) => body.size_hint(),
            Self::Changed(body) => body.size_hint(),
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
        }
    }
}

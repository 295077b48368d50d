//! What goes back to a client: an answer's body, whoever made it, and error answers of the server's own.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderValue};
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
    text_answer(status, "application/xml", error_text(code, message, more))
}

fn error_text(code: &str, message: &str, more: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code><Message>{message}</Message>{more}\
         </Error>"
    )
}

/// S3's error for a range that no byte is in, which tells what was asked for and how much there is: clients take an
/// empty object for one because of it. `s3s` has errors without these elements.
pub(crate) fn unsatisfied(mut response: Response<Answer>, range: Option<&HeaderValue>) -> Response<Answer> {
    let size = response.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok()?.strip_prefix("bytes */"));
    let (Some(size), Some(Ok(range))) = (size, range.map(HeaderValue::to_str)) else { return response };
    let more = format!("<RangeRequested>{range}</RangeRequested><ActualObjectSize>{size}</ActualObjectSize>");
    let text = error_text("InvalidRange", "The requested range is not satisfiable", &more);
    response.headers_mut().remove(CONTENT_LENGTH);
    response.map(|_| Answer::S3(s3s::Body::from(Bytes::from(text))))
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

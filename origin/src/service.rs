//! One request: counted, perhaps met by a fault, answered by the control endpoints or the S3 protocol.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, SERVER};
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use s3s::service::S3Service;

use crate::stats::Counters;
use crate::verb::classify;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");

/// What every connection shares.
pub(crate) struct Shared {
    pub(crate) s3: S3Service,
    pub(crate) counters: Arc<Counters>,
    pub(crate) request_ids: AtomicU64,
}

/// Answers the requests of one connection.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) shared: Arc<Shared>,
    /// Whether this client may read and reset the statistics.
    pub(crate) control: bool,
}

/// The body of an answer.
pub(crate) enum Answer {
    S3(s3s::Body),
    Whole(Bytes),
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Service {
    pub(crate) fn counters(&self) -> Arc<Counters> {
        self.shared.counters.clone()
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Response<Answer>, Failure> {
        if request.uri().path().starts_with("/-/") {
            return Ok(self.control(&request));
        }
        let counters = &self.shared.counters;
        counters.request(classify(request.method(), request.uri(), request.headers()));
        let response = hyper::service::Service::call(&self.shared.s3, request).await.map_err(Failure::from)?;
        let mut response = response.map(Answer::S3);
        counters.answered(response.status());
        self.sign(&mut response);
        Ok(response)
    }

    /// The headers that every answer has.
    fn sign(&self, response: &mut Response<Answer>) {
        let id = self.shared.request_ids.fetch_add(1, Ordering::Relaxed);
        if let Ok(id) = HeaderValue::from_str(&format!("{id:016X}")) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        response.headers_mut().insert(SERVER, HeaderValue::from_static("wirespeed-origin"));
    }

    /// `GET /-/stats`, `POST /-/reset`: outside the names that a bucket can have.
    fn control(&self, request: &Request<Incoming>) -> Response<Answer> {
        let (status, text) = match (self.control, request.method(), request.uri().path()) {
            (false, _, _) => (StatusCode::FORBIDDEN, r#"{"error":"only from loopback"}"#.to_owned()),
            (true, &Method::GET, "/-/stats") => (StatusCode::OK, self.stats()),
            (true, &Method::POST, "/-/reset") => {
                let before = self.stats();
                self.shared.counters.reset();
                (StatusCode::OK, before)
            }
            _ => {
                let text = r#"{"error":"there are GET /-/stats and POST /-/reset"}"#;
                (StatusCode::NOT_FOUND, text.to_owned())
            }
        };
        let mut response = Response::new(Answer::Whole(text.into()));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }

    fn stats(&self) -> String {
        serde_json::to_string(&self.shared.counters.read()).unwrap_or_default()
    }
}

impl hyper::service::Service<Request<Incoming>> for Service {
    type Response = Response<Answer>;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Answer>, Failure>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        match &mut *self {
            Self::S3(body) => Pin::new(body).poll_frame(cx),
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::S3(body) => body.is_end_stream(),
            Self::Whole(bytes) => bytes.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::S3(body) => body.size_hint(),
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
        }
    }
}

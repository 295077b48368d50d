//! One request: counted, perhaps met by a fault, answered by the control endpoints or the S3 protocol.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, EXPECT, HeaderName, HeaderValue, RANGE, SERVER};
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use s3s::dto::Range;
use s3s::service::S3Service;

use crate::host::Domain;
use crate::linger::{Lingering, drain};
use crate::model::body::{Cut, CutBody};
use crate::model::fault::{Action, Faults};
use crate::protocol::Protocol;
use crate::stats::Counters;
use crate::verb::{Target, Verb, classify, decode};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");

/// What every connection shares.
pub(crate) struct Shared {
    pub(crate) s3: S3Service,
    /// The same operations, for what faults do behind the clients' backs.
    pub(crate) protocol: Protocol,
    pub(crate) domain: Option<Domain>,
    pub(crate) faults: Arc<Faults>,
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
    Cut(CutBody<s3s::Body>),
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
        let target = self.target(&request);
        let verb = classify(request.method(), target, request.uri(), request.headers());
        self.shared.counters.request(verb);
        let mut response = match self.shared.faults.due(verb, target) {
            None => self.proper(verb, request).await?,
            Some(action) => self.faulty(action, verb, request).await?,
        };
        self.shared.counters.answered(response.status());
        self.sign(&mut response);
        Ok(response)
    }

    fn target<'a>(&self, request: &'a Request<Incoming>) -> Target<'a> {
        let host = self.shared.domain.as_ref().and_then(|domain| domain.bucket(request.headers()));
        Target::of(request.uri(), host)
    }

    /// What S3 would answer.
    async fn proper(&self, verb: Verb, mut request: Request<Incoming>) -> Result<Response<Answer>, Failure> {
        let s3 = &self.shared.s3;
        // A Range that is none is no error: HTTP, and S3, answer with the whole.
        let nonsense = |range: &HeaderValue| range.to_str().is_ok_and(|range| Range::parse(range).is_err());
        if request.headers().get(RANGE).is_some_and(nonsense) {
            request.headers_mut().remove(RANGE);
        }
        let uploads = matches!(verb, Verb::Put | Verb::UploadPart);
        // Whoever expects a 100 (Continue) does not send before it: there is nothing to read after a refusal.
        if !uploads || request.headers().contains_key(EXPECT) {
            return Ok(s3.call(request.map(s3s::Body::from)).await?.map(Answer::S3));
        }
        let (parts, body) = request.into_parts();
        let (body, rest) = Lingering::new(body);
        let response = s3.call(Request::from_parts(parts, s3s::Body::http_body_unsync(body))).await?;
        if !response.status().is_success() {
            rest.drain().await;
        }
        Ok(response.map(Answer::S3))
    }

    /// What a fault makes of a request.
    async fn faulty(
        &self,
        action: Action,
        verb: Verb,
        request: Request<Incoming>,
    ) -> Result<Response<Answer>, Failure> {
        tracing::debug!(?action, %verb, uri = %request.uri(), "fault");
        match action {
            Action::Status(status) => {
                drain(request.into_body()).await;
                let status = StatusCode::from_u16(status)?;
                return Ok(error_answer(status, code_of(status), ""));
            }
            Action::ErrorInBody(code) => {
                drain(request.into_body()).await;
                return Ok(error_answer(StatusCode::OK, &code, "   \n"));
            }
            Action::Close => return Err("a fault closes the connection".into()),
            Action::Delay(time) => tokio::time::sleep(time).await,
            Action::Replace(bytes) => {
                let Target { bucket, key } = self.target(&request);
                self.shared.protocol.overwrite(bucket, &decode(key), bytes.into()).await?;
                return self.proper(verb, request).await;
            }
            _ => {}
        }
        let mut response = self.proper(verb, request).await?;
        let headers = response.headers_mut();
        match action {
            Action::CloseAnswer => return Err("a fault closes the connection".into()),
            Action::CloseAfter(bytes) => return Ok(cut(response, bytes, Cut::Close)),
            Action::StallAfter(bytes) => return Ok(cut(response, bytes, Cut::Stall)),
            Action::Short(bytes) => {
                if let Some(length) = headers.get_mut(CONTENT_LENGTH)
                    && length.to_str().is_ok_and(|length| length.parse().is_ok_and(|length: u64| length > bytes))
                {
                    *length = bytes.into();
                }
                return Ok(cut(response, bytes, Cut::End));
            }
            Action::ContentRange(value) => {
                headers.insert(CONTENT_RANGE, HeaderValue::from_str(&value)?);
            }
            Action::WeakEtag => {
                if let Some(etag) = headers.get_mut(ETAG) {
                    *etag = HeaderValue::from_bytes(&[b"W/", etag.as_bytes()].concat())?;
                }
            }
            Action::NoEtag => {
                headers.remove(ETAG);
            }
            _ => {}
        }
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

/// Cuts an answer off after so many bytes. A short one, said to be whole, stays as it is.
fn cut(response: Response<Answer>, after: u64, cut: Cut) -> Response<Answer> {
    response.map(|answer| match answer {
        Answer::S3(body) => Answer::Cut(CutBody::new(body, after, cut)),
        other => other,
    })
}

fn error_answer(status: StatusCode, code: &str, before: &str) -> Response<Answer> {
    let text = format!(
        "{before}<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code><Message>A fault was asked \
         for</Message></Error>"
    );
    let mut response = Response::new(Answer::Whole(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    response
}

/// The S3 error that most often comes with a status.
fn code_of(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 => "RequestTimeout",
        403 => "AccessDenied",
        404 => "NoSuchKey",
        409 => "ConditionalRequestConflict",
        412 => "PreconditionFailed",
        416 => "InvalidRange",
        429 => "TooManyRequests",
        501 => "NotImplemented",
        503 => "SlowDown",
        _ => "InternalError",
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
            Self::Cut(body) => Pin::new(body).poll_frame(cx),
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::S3(body) => body.is_end_stream(),
            Self::Cut(body) => body.is_end_stream(),
            Self::Whole(bytes) => bytes.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::S3(body) => body.size_hint(),
            Self::Cut(body) => body.size_hint(),
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
        }
    }
}

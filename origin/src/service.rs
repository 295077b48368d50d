//! One request: counted, perhaps met by a fault, answered by the control endpoints or the S3 protocol.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use http::header::{CONTENT_RANGE, EXPECT, HeaderName, HeaderValue, RANGE, SERVER};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use s3s::dto::Range;
use s3s::service::S3Service;

use crate::answer::{Answer, Failure, error_answer, text_answer, unsatisfied};
use crate::document::{self, Carried};
use crate::express;
use crate::flight::{Flight, Flying};
use crate::host::Domain;
use crate::linger::{Lingering, drain};
use crate::model::clock;
use crate::model::fault::{Faults, Schedule};
use crate::model::latency::Latency;
use crate::model::line::Line;
use crate::model::rate::Rates;
use crate::model::throttle::Throttle;
use crate::protocol::Protocol;
use crate::refusal::refusal;
use crate::stats::Counters;
use crate::verb::{Named, Target, Verb, classify};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");

/// The longest schedule of faults that is taken, in bytes.
const SCHEDULE: usize = 16 << 20;

/// What every connection shares.
pub(crate) struct Shared {
    pub(crate) s3: S3Service,
    /// The same operations, for what faults do behind the clients' backs.
    pub(crate) protocol: Protocol,
    pub(crate) domain: Option<Domain>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) request_ids: AtomicU64,
    pub(crate) rates: Option<Rates>,
    pub(crate) latency: Option<Latency>,
    pub(crate) throttle: Option<Throttle>,
    /// By how many seconds the server's clock is wrong.
    pub(crate) clock_skew: i64,
}

/// Answers the requests of one connection.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) shared: Arc<Shared>,
    pub(crate) line: Arc<Line>,
    /// Whether this client may read and reset the statistics.
    pub(crate) control: bool,
}

impl Service {
    pub(crate) fn counters(&self) -> Arc<Counters> {
        self.shared.counters.clone()
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Response<Flying>, Failure> {
        if request.uri().path().starts_with("/-/") {
            return Ok(self.control(request).await.map(|answer| Flying::new(answer, None)));
        }
        self.shared.counters.used(&self.line.counted);
        let flight = Flight::new(self.counters());
        let response = self.counted(request).await?;
        Ok(response.map(|answer| Flying::new(answer, Some(flight))))
    }

    async fn counted(&self, request: Request<Incoming>) -> Result<Response<Answer>, Failure> {
        let named = Named::of(self.target(&request), &request);
        let verb = classify(request.method(), named.target, request.uri(), request.headers());
        self.shared.counters.request(verb);
        let pays = request.headers().contains_key("x-amz-request-payer");
        if self.shared.throttle.as_ref().is_some_and(|throttle| throttle.refuses(verb, named.target)) {
            return Ok(self.slow_down(request).await);
        }
        let mut started = self.shared.latency.as_ref().map(|_| Instant::now());
        let mut response = match self.shared.faults.due(verb, &named) {
            None => self.proper(verb, request).await?,
            Some(due) => self.faulty(due, verb, request).await?,
        };
        if let (Some(latency), Some(started)) = (&self.shared.latency, &mut started) {
            // An upload's answer comes after its body.
            if matches!(verb, Verb::Put | Verb::UploadPart) {
                *started = Instant::now();
            }
            latency.pass(*started).await;
        }
        self.shared.counters.answered(response.status());
        self.sign(&mut response);
        if pays && response.status().is_success() {
            response.headers_mut().insert("x-amz-request-charged", HeaderValue::from_static("requester"));
        }
        Ok(response)
    }

    /// What a prefix with too many requests gets.
    async fn slow_down(&self, request: Request<Incoming>) -> Response<Answer> {
        drain(request.into_body()).await;
        self.shared.counters.throttled();
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let mut response = error_answer(status, "SlowDown", "Please reduce your request rate.", "");
        self.shared.counters.answered(status);
        self.sign(&mut response);
        response
    }

    pub(crate) fn target<'a>(&self, request: &'a Request<Incoming>) -> Target<'a> {
        let host = self.shared.domain.as_ref().and_then(|domain| domain.bucket(request.headers()));
        Target::of(request.uri(), host)
    }

    /// What S3 would answer.
    pub(crate) async fn proper(&self, verb: Verb, request: Request<Incoming>) -> Result<Response<Answer>, Failure> {
        let skew = self.shared.clock_skew;
        if let Some(mut refused) = clock::refusal(&request, skew) {
            drain(request.into_body()).await;
            clock::date(&mut refused, skew);
            return Ok(refused);
        }
        self.timely(verb, request).await
    }

    /// The same to a request whose time is right.
    pub(crate) async fn timely(&self, verb: Verb, mut request: Request<Incoming>) -> Result<Response<Answer>, Failure> {
        let s3 = &self.shared.s3;
        // Whoever expects a 100 (Continue) does not send before it: there is nothing to read after a refusal.
        let expects = request.headers().contains_key(EXPECT);
        if let Some(refused) = refusal(verb, &request, &self.shared.protocol.region) {
            if !expects {
                tokio::spawn(drain(request.into_body()));
            }
            return Ok(refused);
        }
        if document::is_carried(request.method(), verb, request.headers()) {
            request.extensions_mut().insert(Carried);
        }
        express::translate(&mut request, &self.shared.protocol.keys);
        // A Range that is none is no error: HTTP, and S3, answer with the whole.
        let nonsense = |range: &HeaderValue| range.to_str().is_ok_and(|range| Range::parse(range).is_err());
        if request.headers().get(RANGE).is_some_and(nonsense) {
            request.headers_mut().remove(RANGE);
        }
        if !matches!(*request.method(), Method::PUT | Method::POST) {
            let range = request.headers().get(RANGE).cloned();
            let mut response = s3.call(request.map(s3s::Body::from)).await?;
            if response.status() == StatusCode::RANGE_NOT_SATISFIABLE {
                return Ok(unsatisfied(response.map(Answer::S3), range.as_ref()));
            }
            if verb == Verb::Head && response.headers().contains_key(CONTENT_RANGE) {
                *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            }
            return Ok(response.map(Answer::S3));
        }
        let (parts, body) = request.into_parts();
        let (body, rest) = Lingering::new(body);
        let response = s3.call(Request::from_parts(parts, s3s::Body::http_body_unsync(body))).await?;
        if !response.status().is_success() && !expects {
            rest.drain().await;
        }
        Ok(response.map(Answer::S3))
    }

    /// The headers that every answer has.
    fn sign(&self, response: &mut Response<Answer>) {
        let id = self.shared.request_ids.fetch_add(1, Ordering::Relaxed);
        if let Ok(id) = HeaderValue::from_str(&format!("{id:016X}")) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        response.headers_mut().insert(SERVER, HeaderValue::from_static("wirespeed-origin"));
    }

    /// `GET /-/stats`, `POST /-/reset`, `POST /-/refill`, `POST /-/faults`: outside the names that a bucket can have.
    async fn control(&self, request: Request<Incoming>) -> Response<Answer> {
        let path = request.uri().path().to_owned();
        let (status, text) = match (self.control, request.method(), &*path) {
            (false, _, _) => (StatusCode::FORBIDDEN, r#"{"error":"only from loopback"}"#.to_owned()),
            (true, &Method::GET, "/-/stats") => (StatusCode::OK, self.stats()),
            (true, &Method::POST, "/-/reset") => {
                let before = self.stats();
                self.shared.counters.reset();
                (StatusCode::OK, before)
            }
            (true, &Method::POST, "/-/refill") => {
                if let Some(rates) = &self.shared.rates {
                    rates.refill();
                }
                (StatusCode::OK, "{}".to_owned())
            }
            (true, &Method::POST, "/-/faults") => match self.set_faults(request.into_body()).await {
                Ok(()) => (StatusCode::OK, "{}".to_owned()),
                Err(error) => (StatusCode::BAD_REQUEST, serde_json::json!({ "error": error }).to_string()),
            },
            _ => {
                let text = r#"{"error":"there are GET /-/stats, and POST /-/reset, /-/refill and /-/faults"}"#;
                (StatusCode::NOT_FOUND, text.to_owned())
            }
        };
        text_answer(status, "application/json", text)
    }

    async fn set_faults(&self, body: Incoming) -> Result<(), String> {
        let text = s3s::Body::from(body).store_all_limited(SCHEDULE).await.map_err(|error| error.to_string())?;
        let text = std::str::from_utf8(&text).map_err(|error| error.to_string())?;
        self.shared.faults.set(text.parse::<Schedule>()?);
        Ok(())
    }

    fn stats(&self) -> String {
        serde_json::to_string(&self.shared.counters.read()).unwrap_or_default()
    }
}

impl hyper::service::Service<Request<Incoming>> for Service {
    type Response = Response<Flying>;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Flying>, Failure>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}

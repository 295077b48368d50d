//! What a fault makes of a request: instead of doing it, before it, or to its answer.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderValue};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body;
use hyper::body::Incoming;

use super::action::{ANYWHERE, Action, BadHead};
use super::body::{Change, ChangedBody, Cut};
use super::clock;
use super::fault::Due;
use super::line::Plan;
use super::seeded::mix;
use crate::answer::{Answer, Failure, error_answer, text_answer};
use crate::document;
use crate::linger::drain;
use crate::protocol::RangeIgnored;
use crate::service::Service;
use crate::verb::{Target, Verb, decode, signed_region};

/// The largest XML answer that is taken apart, in bytes.
const XML: usize = 16 << 20;

/// The message of every error that a fault makes.
const MESSAGE: &str = "A fault was asked for";

impl Service {
    /// Does to a request what is due.
    ///
    /// # Errors
    /// What ends the connection without an answer.
    pub(crate) async fn faulty(
        &self,
        due: Due,
        verb: Verb,
        mut request: Request<Incoming>,
    ) -> Result<Response<Answer>, Failure> {
        let Due { action, draw } = due;
        tracing::debug!(?action, %verb, uri = %request.uri(), "fault");
        self.shared.counters.fault(action.name());
        let closed = || Failure::from("a fault closes the connection");
        match &action {
            Action::Close => return Err(closed()),
            Action::Reset => {
                self.line.reset();
                return Err(closed());
            }
            Action::ResetUpload(bytes) => {
                read(request.into_body(), *bytes, draw).await;
                self.line.reset();
                return Err(closed());
            }
            Action::Stall => {
                // A client that hangs up while it sends is seen to by reading what it sends.
                let mut body = request.into_body();
                while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                    frame?;
                }
                return std::future::pending().await;
            }
            Action::Delay(time) => tokio::time::sleep(*time).await,
            Action::Replace(bytes) => {
                let Target { bucket, key } = self.target(&request);
                self.shared.protocol.overwrite(bucket, &decode(key), bytes.clone().into()).await?;
            }
            Action::IgnoreRange => {
                // Later: the header is under the signature.
                request.extensions_mut().insert(RangeIgnored);
            }
            Action::ErrorInBody(code) if verb == Verb::DeleteMany => {
                return Ok(undeleted(&whole(request.into_body()).await, code));
            }
            Action::Clock(skew) => {
                let mut response = match clock::refusal(&request, *skew) {
                    Some(refused) => {
                        drain(request.into_body()).await;
                        refused
                    }
                    None => self.timely(verb, request).await?,
                };
                clock::date(&mut response, *skew);
                return Ok(response);
            }
            _ => {
                if let Some(answer) = self.instead(&action, verb, &request) {
                    drain(request.into_body()).await;
                    return Ok(answer);
                }
            }
        }
        let response = self.proper(verb, request).await?;
        match action {
            Action::CloseAnswer => Err(closed()),
            Action::ResetAnswer => {
                self.line.reset();
                Err(closed())
            }
            Action::MalformedXml => torn(response, draw).await,
            action => {
                // Only now: the head of a 100 (Continue) is none of its business.
                if let Some(plan) = planned(&action, draw) {
                    self.line.plan(plan);
                }
                self.change(response, &action, draw)
            }
        }
    }

    /// The answer of an action that does nothing of what was asked.
    fn instead(&self, action: &Action, verb: Verb, request: &Request<Incoming>) -> Option<Response<Answer>> {
        let headers = request.headers();
        let answer = |status: u16, code: &str, message: &str, more: &str| {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            error_answer(status, code, message, more)
        };
        Some(match action {
            Action::Status(status) => answer(*status, code_of(*status), MESSAGE, ""),
            Action::BareStatus(status) => {
                let text = "<html><head><title>Service Unavailable</title></head><body>Please try again</body></html>";
                text_answer(StatusCode::from_u16(*status).unwrap_or_default(), "text/html", text)
            }
            Action::Error(status, code) => answer(*status, code, MESSAGE, ""),
            Action::ExpiredToken => answer(400, "ExpiredToken", "The provided token has expired.", ""),
            Action::ErrorInBody(code) => {
                let text = format!(
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>   \n<Error><Code>{code}</Code><Message>{MESSAGE}\
                     </Message></Error>"
                );
                text_answer(StatusCode::OK, "application/xml", format!("   \n{}", text.trim_start()))
            }
            Action::RefuseTrailers if is_framed(headers) => answer(
                501,
                "NotImplemented",
                "A header you provided implies functionality that is not implemented: x-amz-trailer",
                "",
            ),
            Action::RefuseChecksums if is_framed(headers) || has_checksum(headers) => {
                answer(400, "InvalidArgument", "An unsupported checksum header was given", "")
            }
            Action::Redirect(region) if signed_region(request).is_none_or(|signed| signed != *region) => {
                let bucket = self.target(request).bucket;
                let more = format!("<Endpoint>{bucket}.s3.{region}.amazonaws.com</Endpoint><Bucket>{bucket}</Bucket>");
                let message = "The bucket you are attempting to access must be addressed using the specified endpoint. \
                               Please send all future requests to this endpoint.";
                let mut response = answer(301, "PermanentRedirect", message, &more);
                tell_region(&mut response, region);
                response
            }
            Action::WrongRegion(region) if signed_region(request).is_some_and(|signed| signed != *region) => {
                let signed = signed_region(request).unwrap_or_default();
                let message = format!(
                    "The authorization header is malformed; the region '{signed}' is wrong; expecting '{region}'"
                );
                let more = format!("<Region>{region}</Region>");
                let mut response = answer(400, "AuthorizationHeaderMalformed", &message, &more);
                if matches!(verb, Verb::Head | Verb::HeadBucket) {
                    tell_region(&mut response, region);
                }
                response
            }
            _ => return None,
        })
    }

    /// The answer with its head or body changed.
    fn change(&self, mut response: Response<Answer>, action: &Action, draw: u64) -> Result<Response<Answer>, Failure> {
        if !matches!(response.body(), Answer::S3(_)) {
            // An answer of the server's own is never of a body that a fault is about.
            return Ok(response);
        }
        let length = response.body().size_hint().exact();
        let place = |bytes: u64| match (bytes, length) {
            (ANYWHERE, Some(length)) => draw % length.max(1),
            (ANYWHERE, None) => draw % XML as u64,
            (bytes, _) => bytes,
        };
        let succeeded = response.status().is_success();
        let headers = response.headers_mut();
        let change = match action {
            Action::CloseAfter(bytes) => Change::Cut(place(*bytes), Cut::Close),
            Action::StallAfter(bytes) => Change::Cut(place(*bytes), Cut::Stall),
            Action::ResetAfter(bytes) => Change::Cut(place(*bytes), Cut::Reset),
            Action::Short(bytes) if length.is_some_and(|length| place(*bytes) < length) => {
                headers.insert(CONTENT_LENGTH, place(*bytes).into());
                Change::Cut(place(*bytes), Cut::End)
            }
            Action::Padded(bytes) => {
                let Some(length) = length.map(|length| length + bytes) else { return Ok(response) };
                headers.insert(CONTENT_LENGTH, length.into());
                Change::Cut(length, Cut::End)
            }
            Action::Corrupt(count) if succeeded => Change::Flip(*count, mix(draw)),
            Action::ContentRange(value) => {
                headers.insert(CONTENT_RANGE, HeaderValue::from_str(value)?);
                return Ok(response);
            }
            Action::ShiftRange(bytes) => {
                if let Some(range) = headers.get(CONTENT_RANGE).and_then(|value| shifted(value.to_str().ok()?, *bytes))
                {
                    headers.insert(CONTENT_RANGE, HeaderValue::from_str(&range)?);
                }
                return Ok(response);
            }
            Action::WeakEtag => {
                if let Some(etag) = headers.get_mut(ETAG) {
                    *etag = HeaderValue::from_bytes(&[b"W/", etag.as_bytes()].concat())?;
                }
                return Ok(response);
            }
            Action::NoEtag => {
                headers.remove(ETAG);
                return Ok(response);
            }
            _ => return Ok(response),
        };
        Ok(response.map(|answer| match answer {
            Answer::S3(body) => Answer::Changed(Box::new(ChangedBody::new(body, change, self.line.clone()))),
            other => other,
        }))
    }
}

/// What is to be done to the bytes of the answer.
fn planned(action: &Action, draw: u64) -> Option<Plan> {
    Some(match action {
        Action::SlowHead(time) => Plan::Slow(*time),
        Action::MalformedHead(BadHead::Any) => Plan::Bad(BadHead::KINDS[draw as usize % BadHead::KINDS.len()]),
        Action::MalformedHead(kind) => Plan::Bad(*kind),
        Action::Longer(bytes) => Plan::Longer(*bytes),
        Action::ResetEnd => Plan::ResetEnd,
        _ => return None,
    })
}

/// Reads so many bytes of a body that will not be answered, or a place in it that is drawn.
async fn read(mut body: Incoming, bytes: u64, draw: u64) {
    let length = body.size_hint().exact().unwrap_or(0);
    let wanted = if bytes == ANYWHERE { draw % length.max(1) } else { bytes };
    let mut read = 0;
    while read < wanted {
        let next = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
        match tokio::time::timeout(Duration::from_secs(5), next).await {
            Ok(Some(Ok(frame))) => read += frame.data_ref().map_or(0, Bytes::len) as u64,
            _ => return,
        }
    }
}

async fn whole(body: Incoming) -> Bytes {
    s3s::Body::from(body).store_all_limited(XML).await.unwrap_or_default()
}

/// The answer to a DeleteObjects of which no key was deleted.
fn undeleted(request: &[u8], code: &str) -> Response<Answer> {
    let text = document::plain(request).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let keys = text.split("<Key>").skip(1).filter_map(|rest| rest.split_once("</Key>")).map(|(key, _)| key);
    let errors: String = keys
        .map(|key| format!("<Error><Key>{key}</Key><Code>{code}</Code><Message>{MESSAGE}</Message></Error>"))
        .collect();
    let text = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?><DeleteResult>{errors}</DeleteResult>");
    text_answer(StatusCode::OK, "application/xml", text)
}

/// An answer whose XML is cut off at a place that is drawn, and goes on in nonsense.
async fn torn(mut response: Response<Answer>, draw: u64) -> Result<Response<Answer>, Failure> {
    let body = std::mem::replace(response.body_mut(), Answer::Whole(Bytes::new()));
    let text = match body {
        Answer::S3(mut body) => body.store_all_limited(XML).await?,
        Answer::Whole(bytes) => bytes,
        other => {
            *response.body_mut() = other;
            return Ok(response);
        }
    };
    if text.is_empty() {
        return Ok(response);
    }
    let mut torn = text[..draw as usize % text.len()].to_vec();
    torn.extend_from_slice(b"<Torn & <\xff>");
    response.headers_mut().insert(CONTENT_LENGTH, torn.len().into());
    *response.body_mut() = Answer::Whole(torn.into());
    Ok(response)
}

/// `bytes 0-9/20` as `bytes 3-12/20`.
fn shifted(range: &str, by: u64) -> Option<String> {
    let (ends, size) = range.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = ends.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    Some(format!("bytes {}-{}/{size}", first + by, last + by))
}

fn tell_region(response: &mut Response<Answer>, region: &str) {
    if let Ok(value) = HeaderValue::from_str(region) {
        response.headers_mut().insert("x-amz-bucket-region", value);
    }
}

fn is_framed(headers: &HeaderMap) -> bool {
    let streams = |value: &HeaderValue| value.as_bytes().starts_with(b"STREAMING-");
    headers.contains_key("x-amz-trailer") || headers.get("x-amz-content-sha256").is_some_and(streams)
}

fn has_checksum(headers: &HeaderMap) -> bool {
    let names = headers.keys().map(http::HeaderName::as_str);
    names.into_iter().any(|name| name.starts_with("x-amz-checksum-") || name == "x-amz-sdk-checksum-algorithm")
}

/// The S3 error that most often comes with a status.
fn code_of(status: u16) -> &'static str {
    match status {
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

//! The server's clock, which may be wrong, and requests from another time.

use http::header::{DATE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::answer::{Answer, error_answer};

/// How far a request's time may be from the server's, in seconds: 15 minutes, as in S3.
const MOST: i64 = 15 * 60;

/// What a server whose clock is wrong by `skew` seconds answers to a request from too far away in time.
///
/// A presigned request tells when it was signed, which may be long ago: only the future is refused.
pub(crate) fn refusal<B>(request: &Request<B>, skew: i64) -> Option<Response<Answer>> {
    let presigned = || {
        let pairs = request.uri().query().unwrap_or("").split('&');
        pairs.filter_map(|pair| pair.strip_prefix("X-Amz-Date=")).next()
    };
    let header = request.headers().get("x-amz-date").and_then(|value| value.to_str().ok());
    let text = header.or_else(presigned)?;
    let asked = DateTime::strptime("%Y%m%dT%H%M%SZ", text).ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second();
    let now = Timestamp::now().as_second().saturating_add(skew);
    let ahead = asked.saturating_sub(now);
    if ahead <= MOST && (header.is_none() || ahead >= -MOST) {
        return None;
    }
    let server = Timestamp::from_second(now).unwrap_or_default();
    let more = format!(
        "<RequestTime>{text}</RequestTime><ServerTime>{}</ServerTime><MaxAllowedSkewMilliseconds>{}\
         </MaxAllowedSkewMilliseconds>",
        server.strftime("%Y-%m-%dT%H:%M:%SZ"),
        MOST * 1000
    );
    let message = "The difference between the request time and the current time is too large.";
    let mut answer = error_answer(StatusCode::FORBIDDEN, "RequestTimeTooSkewed", message, &more);
    if request.method() == Method::HEAD {
        *answer.body_mut() = Answer::Whole(bytes::Bytes::new());
    }
    Some(answer)
}

/// Dates an answer by a clock that is wrong by so many seconds.
pub(crate) fn date<B>(response: &mut Response<B>, skew: i64) {
    let now = Timestamp::now().as_second().saturating_add(skew);
    let text = Timestamp::from_second(now).unwrap_or_default().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    if let Ok(value) = HeaderValue::from_str(&text) {
        response.headers_mut().insert(DATE, value);
    }
}

//! Why an attempt failed, and whether another may succeed: the server's refusals and the network's
//! failures, each turned into the engine's one error and a verdict.

use std::io;
use std::time::{Duration, SystemTime};

use super::head::parse_http_date;
use super::remedy::Remedy;
use crate::config::is_region;
use crate::credentials::{TOLERATED, seconds_between};
use crate::error::{Error, ErrorKind};
use crate::net::{NetFailure, region_of_host};
use crate::pace::{RequestPermit, Retry, Throttle};
use crate::wire::response::ResponseHead;
use crate::wire::xml::ErrorBody;

/// One failed attempt.
pub(crate) struct Failure {
    pub(crate) error: Error,
    pub(crate) retry: Retry,
    /// The size of the object, where a refused range said it.
    pub(crate) object_size: Option<u64>,
    /// There was no connection to send the request on.
    pub(crate) unsent: bool,
    /// The place that the next attempt is waited for in.
    pub(crate) place: Option<RequestPermit>,
}

impl Failure {
    pub(crate) fn never(error: Error) -> Failure {
        Failure { error, retry: Retry::Never, object_size: None, unsent: false, place: None }
    }

    pub(crate) fn backoff(error: Error) -> Failure {
        Failure { error, retry: Retry::Backoff, object_size: None, unsent: false, place: None }
    }

    /// Before a byte of the request was sent.
    pub(crate) fn unsent(failure: NetFailure) -> Failure {
        Failure { unsent: true, ..Failure::unanswered(failure) }
    }

    /// Before the head of an answer was received. A server that is not there, as while it restarts, refuses or breaks
    /// connections at this point.
    pub(crate) fn unanswered(failure: NetFailure) -> Failure {
        let is_absent = match &failure {
            NetFailure::Connect { source, .. } => source.kind() != io::ErrorKind::TimedOut,
            NetFailure::Broken { .. } => true,
            _ => false,
        };
        let failure = Failure::from(failure);
        if is_absent { Failure { retry: Retry::Unreachable, ..failure } } else { failure }
    }
}

impl From<NetFailure> for Failure {
    fn from(failure: NetFailure) -> Failure {
        let (kind, retry, hint) = match &failure {
            NetFailure::Resolve { .. } | NetFailure::Connect { .. } => {
                (ErrorKind::Connection, Retry::Backoff, Some("check the endpoint URL and that the server is running"))
            }
            NetFailure::Stale => (ErrorKind::Connection, Retry::AtOnce, None),
            NetFailure::Broken { .. } => (ErrorKind::Connection, Retry::Backoff, None),
            NetFailure::TimedOut { .. } => (ErrorKind::Timeout, Retry::AfterTimeout, None),
            NetFailure::Tls { .. } => (ErrorKind::Connection, Retry::Never, failure.tls_hint()),
            NetFailure::Proxy { may_pass, .. } => (
                ErrorKind::Connection,
                if *may_pass { Retry::Backoff } else { Retry::Never },
                Some("check HTTPS_PROXY, or name the endpoint's host in NO_PROXY to go straight"),
            ),
            NetFailure::Trust(_) => (ErrorKind::Config, Retry::Never, None),
            NetFailure::Malformed(_) => {
                (ErrorKind::Protocol, Retry::Never, Some("check that the endpoint URL is that of an S3 server"))
            }
        };
        let mut error = Error::new(kind, failure.to_string());
        if let Some(hint) = hint {
            error = error.with_hint(hint);
        }
        Failure { error, retry, object_size: None, unsent: false, place: None }
    }
}

/// What is kept of the head of an answer that is not a success.
pub(crate) struct Refusal {
    pub(crate) status: u16,
    request_id: Option<String>,
    region: Option<String>,
    /// The server's clock.
    date: Option<SystemTime>,
    /// The host that a redirect names.
    elsewhere: Option<String>,
    retry_after: Option<Duration>,
    object_size: Option<u64>,
}

impl Refusal {
    pub(crate) fn new(head: &ResponseHead<'_>) -> Refusal {
        Refusal {
            status: head.status,
            request_id: head.request_id.map(str::to_owned),
            region: head.bucket_region.map(str::to_owned),
            date: head.date.and_then(parse_http_date).map(SystemTime::from),
            elsewhere: head.location.and_then(host_of).map(str::to_owned),
            retry_after: head.retry_after.and_then(|seconds| seconds.trim().parse().ok()).map(Duration::from_secs),
            object_size: head.unsatisfied_range,
        }
    }

    /// What could be put right so that the same request succeeds.
    pub(super) fn remedy(&self, document: Option<&ErrorBody>, signed_at: SystemTime) -> Option<Remedy> {
        let code = document.map_or("", |body| body.code.as_str());
        match (self.status, code) {
            // A HEAD has no document: the region alone says what is wrong, if anything does.
            (400, "") if self.region.is_none() && document.is_none() => Some(Remedy::Unsaid),
            (301 | 307, _) | (400, "" | "AuthorizationHeaderMalformed") => {
                let named = self.region.clone().or_else(|| document?.region.clone());
                let host = || self.elsewhere.as_deref().or_else(|| document?.endpoint.as_deref());
                let region = named.or_else(|| host().and_then(region_of_host).map(str::to_owned))?;
                // It will stand in a host's name and in a signature.
                is_region(&region).then_some(Remedy::Region(region))
            }
            (_, "ExpiredToken" | "ExpiredTokenException" | "TokenRefreshRequired") => Some(Remedy::Credentials),
            (_, "RequestTimeTooSkewed" | "RequestExpired") => {
                let said = document.and_then(|body| body.server_time.as_deref()?.parse::<jiff::Timestamp>().ok());
                said.map(SystemTime::from).or(self.date).map(Remedy::Clock)
            }
            // A signature from a wrong time can look wrong, or like one that has expired. What is merely
            // forbidden says nothing of the clock, whatever its date.
            (403, "AccessDenied") if !document.is_some_and(|body| body.message.contains("expired")) => None,
            (403, "" | "AccessDenied" | "SignatureDoesNotMatch" | "InvalidSignatureException") => {
                let tolerated = i64::try_from(TOLERATED.as_secs()).unwrap_or(i64::MAX);
                self.date.filter(|date| seconds_between(signed_at, *date).abs() > tolerated).map(Remedy::Clock)
            }
            _ => None,
        }
    }

    /// Judges the refusal, with the error document that came with it, if one did.
    pub(crate) fn judge(self, document: Option<ErrorBody>) -> Failure {
        let object_size = self.object_size.or_else(|| document.as_ref()?.object_size);
        let (code, message, request_id, region) = match document {
            Some(body) => (Some(body.code), body.message, body.request_id, body.region),
            None => (None, String::new(), None, None),
        };
        let region = self.region.or(region);
        let named = code.as_deref().unwrap_or_default();
        let verdict = verdict(if self.status == 200 { status_of(named) } else { self.status }, named);
        let message = match (message.is_empty(), region) {
            (_, Some(region))
                if matches!((self.status, named), (301 | 307, _) | (400, "" | "AuthorizationHeaderMalformed")) =>
            {
                format!("the bucket is in the region {region}")
            }
            (false, _) => message.trim_end_matches('.').to_owned(),
            (true, _) => verdict.meaning.to_owned(),
        };
        let retry = match verdict.retry {
            Retry::Throttled(throttle) => Retry::Throttled(Throttle { asked: self.retry_after, ..throttle }),
            other => other,
        };
        let mut error =
            Error::new(verdict.kind, message).with_response(self.status, code, self.request_id.or(request_id));
        if let Some(hint) = verdict.hint {
            error = error.with_hint(hint);
        }
        Failure { error, retry, object_size, unsent: false, place: None }
    }
}

/// A failure that came as the body of a 200, as CompleteMultipartUpload's and copies' may.
pub(crate) fn failed_inside_success(body: ErrorBody) -> Failure {
    let refusal = Refusal {
        status: 200,
        request_id: None,
        region: None,
        date: None,
        elsewhere: None,
        retry_after: None,
        object_size: None,
    };
    refusal.judge(Some(body))
}

/// The host of an absolute URL.
fn host_of(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    rest.split(['/', ':', '?', '#']).next()
}

struct Verdict {
    kind: ErrorKind,
    retry: Retry,
    /// For an answer without a document, such as a HEAD's.
    meaning: &'static str,
    hint: Option<&'static str>,
}

/// The status that an error would have had, had it come before the head of a success was sent.
fn status_of(code: &str) -> u16 {
    match code {
        "AccessDenied" | "InvalidObjectState" | "AllAccessDisabled" => 403,
        "NoSuchKey" | "NoSuchUpload" | "NoSuchVersion" => 404,
        "PreconditionFailed" => 412,
        _ => 200,
    }
}

/// What can be said of a refusal that says nothing.
pub(super) const UNSAID: &str = "the server refused the request and did not say why";
pub(super) const UNSAID_HINT: &str = "check that the credentials have not expired, the region, and the key of an object that is encrypted with the \
     customer's own (SSE-C)";

/// What a refusal means, by the codes of S3's error table and the status where there is no code.
fn verdict(status: u16, code: &str) -> Verdict {
    use ErrorKind as K;
    let new = |kind, retry, meaning, hint| Verdict { kind, retry, meaning, hint };
    const CHECK_CLOCK: &str = "set this machine's clock";
    const CHECK_SECRET: &str = "check the secret access key and the region";
    match (status, code) {
        (_, "SlowDown" | "ServiceUnavailable" | "Throttling" | "ThrottlingException" | "RequestLimitExceeded")
        | (429 | 503, _) => new(
            K::Throttled,
            Retry::Throttled(Throttle::default()),
            "the server asks for fewer requests",
            Some("lower --concurrency or try later"),
        ),
        (_, "RequestTimeout") => new(K::Timeout, Retry::Backoff, "the server waited too long for the request", None),
        (_, "InternalError") => new(K::Server, Retry::Backoff, "the server failed", None),
        (_, "RequestTimeTooSkewed") => new(K::Denied, Retry::Never, "the clocks differ", Some(CHECK_CLOCK)),
        (_, "SignatureDoesNotMatch") => new(K::Denied, Retry::Never, "the signature is wrong", Some(CHECK_SECRET)),
        (_, "AuthorizationHeaderMalformed") => new(
            K::Config,
            Retry::Never,
            "the request was signed for another region",
            Some("set --region to the bucket's"),
        ),
        (_, "InvalidAccessKeyId") => new(
            K::Denied,
            Retry::Never,
            "the access key does not exist",
            Some("check AWS_ACCESS_KEY_ID and the endpoint"),
        ),
        (_, "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired") => new(
            K::Denied,
            Retry::Never,
            "the session token is not valid",
            Some("get new credentials, or unset AWS_SESSION_TOKEN"),
        ),
        (_, "NoSuchBucket") => {
            new(K::NotFound, Retry::Never, "the bucket does not exist", Some("check its name and the endpoint"))
        }
        (_, "ConditionalRequestConflict" | "OperationAborted") => {
            new(K::Conflict, Retry::Backoff, "another request is changing the same thing", None)
        }
        (_, "BadDigest" | "XAmzContentSHA256Mismatch") => {
            new(K::Integrity, Retry::Backoff, "the server received other bytes than were sent", None)
        }
        (301 | 302 | 307 | 308, _) => new(
            K::Config,
            Retry::Never,
            "the bucket is elsewhere",
            Some("set --region or --endpoint-url to where it is"),
        ),
        // The answer to a HEAD has no document that could say more.
        (400, "") => new(K::Config, Retry::Never, UNSAID, Some(UNSAID_HINT)),
        (304, _) => new(K::Precondition, Retry::Never, "the object has not changed (not modified)", None),
        (412, _) => new(K::Precondition, Retry::Never, "a condition did not hold", None),
        (401, _) => new(K::Denied, Retry::Never, "the server wants credentials", None),
        (403, _) => new(
            K::Denied,
            Retry::Never,
            "access is denied",
            Some("check the credentials and the permissions on the bucket"),
        ),
        (404, _) => new(K::NotFound, Retry::Never, "it does not exist", None),
        (409, _) => new(K::Conflict, Retry::Never, "it contradicts the bucket's state", None),
        (416, _) => new(K::Config, Retry::Never, "the range lies beyond the end of the object", None),
        (501, _) => new(K::Config, Retry::Never, "the server does not offer this", None),
        (500.., _) => new(K::Server, Retry::Backoff, "the server failed", None),
        (408, _) => new(K::Timeout, Retry::Backoff, "the server waited too long", None),
        _ => new(K::Config, Retry::Never, "the server refused the request", None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_head_says_what_it_cannot_know() {
        let error = refused(400, None, None).judge(None).error.to_string();
        assert!(error.contains("did not say why") && error.contains("expired"), "{error}");
    }

    #[test]
    fn a_region_beside_another_error_does_not_hide_it() {
        let body =
            ErrorBody { code: "InvalidRequest".into(), message: "The key is missing.".into(), ..ErrorBody::default() };
        let error = refused(400, Some("eu-west-1"), None).judge(Some(body)).error;
        assert_eq!(error.message(), "The key is missing");
        let error = refused(400, Some("eu-west-1"), None).judge(None).error;
        assert_eq!(error.message(), "the bucket is in the region eu-west-1");
    }

    #[test]
    fn an_error_inside_a_success_is_of_the_kind_that_it_would_be_outside() {
        for (code, kind) in [
            ("AccessDenied", ErrorKind::Denied),
            ("NoSuchUpload", ErrorKind::NotFound),
            ("PreconditionFailed", ErrorKind::Precondition),
            ("InternalError", ErrorKind::Server),
            ("InvalidPart", ErrorKind::Config),
        ] {
            let body = ErrorBody { code: code.to_owned(), ..ErrorBody::default() };
            let error = failed_inside_success(body).error;
            assert_eq!((error.kind(), error.status()), (kind, Some(200)), "{code}");
        }
    }

    fn refused(status: u16, region: Option<&str>, elsewhere: Option<&str>) -> Refusal {
        Refusal {
            status,
            request_id: None,
            region: region.map(str::to_owned),
            date: None,
            elsewhere: elsewhere.map(str::to_owned),
            retry_after: None,
            object_size: None,
        }
    }

    #[test]
    fn a_region_is_taken_from_wherever_it_stands_and_only_if_it_is_one() {
        let remedy = |refusal: &Refusal, body: Option<&ErrorBody>| match refusal.remedy(body, SystemTime::now()) {
            Some(Remedy::Region(region)) => Some(region),
            _ => None,
        };
        let malformed = |region: Option<&str>| ErrorBody {
            code: "AuthorizationHeaderMalformed".into(),
            region: region.map(str::to_owned),
            ..ErrorBody::default()
        };
        let redirect = ErrorBody {
            code: "TemporaryRedirect".into(),
            endpoint: Some("bkt.s3-eu-west-1.amazonaws.com".into()),
            ..ErrorBody::default()
        };
        let other = ErrorBody { code: "InvalidArgument".into(), ..ErrorBody::default() };
        for (refusal, body, expected) in [
            (refused(301, Some("eu-west-1"), None), None, Some("eu-west-1")),
            (refused(400, Some("eu-west-1"), None), None, Some("eu-west-1")),
            (refused(400, None, None), Some(&malformed(Some("garage"))), Some("garage")),
            (refused(307, None, None), Some(&redirect), Some("eu-west-1")),
            (refused(307, None, Some("bkt.s3.eu-west-2.amazonaws.com")), None, Some("eu-west-2")),
            (refused(307, None, Some("elsewhere.example")), None, None),
            (refused(400, Some("eu-west-1"), None), Some(&other), None),
            (refused(404, Some("eu-west-1"), None), None, None),
            (refused(301, Some("evil.example/"), None), None, None),
            (refused(400, None, None), Some(&malformed(Some("a.b"))), None),
            (refused(301, Some(""), None), None, None),
        ] {
            assert_eq!(remedy(&refusal, body).as_deref(), expected, "{}", refusal.status);
        }
    }

    #[test]
    fn what_passes_is_retried_and_what_does_not_is_not() {
        for (status, code) in
            [(500, "InternalError"), (502, ""), (504, ""), (400, "RequestTimeout"), (409, "ConditionalRequestConflict")]
        {
            assert_eq!(verdict(status, code).retry, Retry::Backoff, "{status} {code}");
        }
        for (status, code) in [(503, "SlowDown"), (503, ""), (429, "")] {
            assert_eq!(verdict(status, code).retry, Retry::Throttled(Throttle::default()), "{status} {code}");
        }
        for (status, code) in [
            (400, "InvalidArgument"),
            (403, "AccessDenied"),
            (404, ""),
            (409, "BucketNotEmpty"),
            (412, ""),
            (416, ""),
            (501, ""),
        ] {
            assert_eq!(verdict(status, code).retry, Retry::Never, "{status} {code}");
        }
    }
}

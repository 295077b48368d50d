//! Refusals by the head of a request alone, before any of its body is read: its size, headers that its
//! signature does not cover, and a region that is none.

use http::header::{AUTHORIZATION, CONTENT_LENGTH, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use quick_xml::escape::escape;

use crate::answer::{Answer, error_answer};
use crate::document;
use crate::verb::{Verb, decode, signed_region};

/// The largest body of one upload, in bytes: 5 GiB, as in S3.
pub(crate) const LARGEST_UPLOAD: u64 = 5 << 30;

/// Returns S3's refusal of a request whose head is enough to refuse it. `region` is the server's.
pub(crate) fn refusal<B>(verb: Verb, request: &Request<B>, region: &str) -> Option<Response<Answer>> {
    let refused = unsigned(request).or_else(|| outside_regions(request, region));
    let mut refused = refused.or_else(|| too_large(verb, request))?;
    if request.method() == Method::HEAD {
        *refused.body_mut() = Answer::Whole(bytes::Bytes::new());
    }
    Some(refused)
}

fn too_large<B>(verb: Verb, request: &Request<B>) -> Option<Response<Answer>> {
    let headers = request.headers();
    let number = |name: &str| headers.get(name)?.to_str().ok()?.parse::<u64>().ok();
    let upload = matches!(verb, Verb::Put | Verb::UploadPart);
    // The framing of an aws-chunked body is not counted.
    let length = number("x-amz-decoded-content-length").or_else(|| number(CONTENT_LENGTH.as_str()))?;
    if upload && length > LARGEST_UPLOAD {
        let message = "Your proposed upload exceeds the maximum allowed size";
        let more = format!("<ProposedSize>{length}</ProposedSize><MaxSizeAllowed>{LARGEST_UPLOAD}</MaxSizeAllowed>");
        return Some(error_answer(StatusCode::BAD_REQUEST, "EntityTooLarge", message, &more));
    }
    if length > document::LARGEST as u64 && document::is_carried(request.method(), verb, headers) {
        let more = format!("<MaxMessageLengthBytes>{}</MaxMessageLengthBytes>", document::LARGEST);
        let message = "Your request was too large.";
        return Some(error_answer(StatusCode::BAD_REQUEST, "MaxMessageLengthExceeded", message, &more));
    }
    None
}

/// Refuses a request with version 4 of the signature that leaves out a header which changes what the request means:
/// nobody would have vouched for it.
fn unsigned<B>(request: &Request<B>) -> Option<Response<Answer>> {
    let signed = signed_headers(request)?;
    let is_signed = |name: &str| signed.split(';').any(|signed| signed.trim().eq_ignore_ascii_case(name));
    let needs = |name: &str| name.starts_with("x-amz-") || name == "host";
    let unsigned: Vec<_> =
        request.headers().keys().map(|name| name.as_str()).filter(|name| needs(name) && !is_signed(name)).collect();
    if unsigned.is_empty() {
        return None;
    }
    let message = "There were headers present in the request which were not signed";
    let more = format!("<HeadersNotSigned>{}</HeadersNotSigned>", escape(unsigned.join(", ")));
    Some(error_answer(StatusCode::FORBIDDEN, "AccessDenied", message, &more))
}

/// Refuses a signature for what no region is called, as s3cmd makes for `US`, and names the region that would do:
/// clients sign again for that.
fn outside_regions<B>(request: &Request<B>, region: &str) -> Option<Response<Answer>> {
    let signed = signed_region(request)?;
    let in_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !signed.is_empty() && signed.bytes().all(in_name) {
        return None;
    }
    let message = format!(
        "The authorization header is malformed; the region '{}' is wrong; expecting '{region}'",
        escape(&signed)
    );
    let more = format!("<Region>{}</Region>", escape(region));
    let mut refused = error_answer(StatusCode::BAD_REQUEST, "AuthorizationHeaderMalformed", &message, &more);
    if let Ok(region) = HeaderValue::from_str(region) {
        // For a HEAD, whose answer has no document.
        refused.headers_mut().insert("x-amz-bucket-region", region);
    }
    Some(refused)
}

/// Returns the names of the headers under a signature of version 4; none where there is no such signature.
fn signed_headers<B>(request: &Request<B>) -> Option<String> {
    let query = request.uri().query().unwrap_or("");
    let parameter = |name: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(found, _)| *found == name).map(|(_, value)| value).next()
    };
    if parameter("X-Amz-Signature").is_some() {
        return parameter("X-Amz-SignedHeaders").map(|names| decode(names).into_owned());
    }
    in_authorization(request.headers()).map(str::to_owned)
}

fn in_authorization(headers: &HeaderMap) -> Option<&str> {
    let authorization = headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("AWS4-HMAC-SHA256")?;
    authorization.split_once("SignedHeaders=")?.1.split([',', ' ']).next()
}

//! Request heads: one pass that writes, checks and signs.
//!
//! Owns the request line and the headers, signed or not. [`write_request`] appends a complete head to a
//! buffer that the connection reuses; the path and the query are written in canonical form and the headers
//! in sorted order, so that the canonical request is a copy of what was just written. It is built behind
//! the head in the same buffer, hashed, and cut off again: signing allocates nothing.
//!
//! Refuses everything that could change the meaning of the head: control characters, bytes outside ASCII,
//! names that are not lower-case tokens, a name given twice, and the names that are written here. Keys may
//! hold anything: they are encoded.

use std::fmt;
use std::io::Write as _;
use std::time::SystemTime;

use smallvec::SmallVec;

use super::sign::{ALGORITHM, EMPTY_SHA256, Moment, Signer, UNSIGNED_PAYLOAD, UNSIGNED_TRAILER, hex};
use super::uri;

/// What this client calls itself.
pub const USER_AGENT: &str = concat!("wirespeed/", env!("CARGO_PKG_VERSION"));

/// The names that [`write_request`] writes itself, and `transfer-encoding`, which would contradict
/// `content-length`.
const OWN_HEADERS: [&str; 9] = [
    "authorization",
    "content-length",
    "host",
    "transfer-encoding",
    "user-agent",
    "x-amz-content-sha256",
    "x-amz-date",
    "x-amz-s3session-token",
    "x-amz-security-token",
];

/// The methods that S3 uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Read an object, or list.
    Get,
    /// Ask for an object's head; the response never has a body.
    Head,
    /// Write an object, a part or a bucket.
    Put,
    /// Start or complete a multipart upload; delete many.
    Post,
    /// Delete one object or bucket, or abort an upload.
    Delete,
}

impl Method {
    /// The method as it stands in the request line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Put => "PUT",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

/// What `x-amz-content-sha256` says about the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// There is no body; the hash of nothing is signed.
    Empty,
    /// The body is not covered by the signature.
    Unsigned,
    /// The SHA-256 of the body.
    Sha256([u8; 32]),
    /// The body is not covered by the signature, and a checksum follows it ([`super::trailer`]).
    UnsignedTrailer,
}

/// A request, without its body.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: Method,
    /// The `Host` header, with the port when it is not the scheme's own.
    pub host: &'a str,
    /// The path before the key, encoded already: empty, or `/bucket`.
    pub path_prefix: &'a str,
    /// The key as it is, not encoded. Empty for a request to the bucket or the service.
    pub key: &'a str,
    /// Query parameters as they are, not encoded, in any order.
    pub query: &'a [(&'a str, &'a str)],
    /// Further headers, names in lower case, in any order. All of them are signed.
    pub headers: &'a [(&'a str, &'a str)],
    /// The length of the body in bytes; `None` for a request that has none.
    pub content_length: Option<u64>,
    /// What to sign of the body. Not sent when the request is not signed.
    pub payload: Payload,
}

/// Why a request can't be written. Names headers, never their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// The host is empty, or holds something other than visible ASCII characters.
    Host,
    /// The path before the key does not begin with `/`, or was not encoded.
    PathPrefix,
    /// A header's name is not a lower-case token.
    HeaderName(String),
    /// A header's value holds something other than visible ASCII characters, spaces and tabs.
    HeaderValue(String),
    /// A header was given twice.
    RepeatedHeader(String),
    /// A header that only the engine may write.
    ReservedHeader(String),
    /// A part of the identity (named) is empty or can't stand in a header.
    Identity(&'static str),
    /// The clock is before 1970 or after 9999.
    Clock,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("the host is empty or holds characters that a Host header can't carry; check the endpoint URL"),
            Self::PathPrefix => f.write_str("the path before the key must begin with '/' and be percent-encoded; check the endpoint URL and the bucket name"),
            Self::HeaderName(name) => write!(f, "the header name {name:?} is not a lower-case HTTP token"),
            Self::HeaderValue(name) => write!(f, "the value of header {name} holds characters other than visible ASCII, space and tab; encode it (for example with percent-encoding) first"),
            Self::RepeatedHeader(name) => write!(f, "the header {name} was given twice; give it once"),
            Self::ReservedHeader(name) => write!(f, "the header {name} is written by the client itself; leave it out"),
            Self::Identity(what) => write!(f, "{what} is empty or holds characters other than visible ASCII; check the credentials and the region"),
            Self::Clock => f.write_str("the system clock is before 1970 or after 9999; set it"),
        }
    }
}

impl std::error::Error for RequestError {}

pub(super) type Header<'a> = (&'a [u8], &'a [u8]);

/// Appends the complete head of `request` to `out`, signed by `signer` for the time `now`, or unsigned
/// without one.
///
/// # Errors
/// [`RequestError`] when a part of the request can't be written as it is; `out` is then as it was.
pub fn write_request(
    out: &mut Vec<u8>,
    request: &Request<'_>,
    signer: Option<&Signer>,
    now: SystemTime,
) -> Result<(), RequestError> {
    let start = out.len();
    let written = match signer {
        None => write_head(out, request, None),
        Some(signer) => signer
            .with_moment(now, |moment| write_head(out, request, Some((signer, moment))))
            .and_then(|written| written),
    };
    if written.is_err() {
        out.truncate(start);
    }
    written
}

fn write_head(
    out: &mut Vec<u8>,
    request: &Request<'_>,
    signer: Option<(&Signer, &Moment)>,
) -> Result<(), RequestError> {
    let digest;
    let payload = match request.payload {
        Payload::Empty => EMPTY_SHA256.as_bytes(),
        Payload::Unsigned => UNSIGNED_PAYLOAD.as_bytes(),
        Payload::UnsignedTrailer => UNSIGNED_TRAILER.as_bytes(),
        Payload::Sha256(hash) => {
            digest = hex(&hash);
            &digest
        }
    };

    if request.host.is_empty() || !request.host.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(RequestError::Host);
    }
    let mut headers: SmallVec<[Header<'_>; 16]> = SmallVec::new();
    headers.push((b"host", request.host.as_bytes()));
    for &(name, value) in request.headers {
        headers.push((name.as_bytes(), checked_header(name, value)?));
    }
    if let Some((signer, moment)) = signer {
        headers.push((b"x-amz-content-sha256", payload));
        headers.push((b"x-amz-date", moment.date().as_bytes()));
        if let Some(token) = signer.session_token() {
            let token = checked_value(token).ok_or(RequestError::Identity("the session token"))?;
            headers.push((signer.token_header().as_bytes(), token));
        }
    }
    headers.sort_unstable_by_key(|header| header.0);
    if let Some(pair) = headers.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(RequestError::RepeatedHeader(String::from_utf8_lossy(pair[0].0).into_owned()));
    }

    out.extend_from_slice(request.method.as_str().as_bytes());
    out.push(b' ');
    let path = out.len();
    write_path(out, request)?;
    let path = path..out.len();
    if !request.query.is_empty() {
        out.push(b'?');
    }
    let query = out.len();
    uri::write_query(out, request.query);
    let query = query..out.len();
    out.extend_from_slice(b" HTTP/1.1\r\n");
    for (name, value) in &headers {
        write_line(out, name, value);
    }
    write_line(out, b"user-agent", USER_AGENT.as_bytes());
    if let Some(length) = request.content_length {
        // Writing to a Vec does not fail.
        let _ = write!(out, "content-length: {length}\r\n");
    }

    if let Some((_, moment)) = signer {
        let canonical = out.len();
        out.extend_from_slice(request.method.as_str().as_bytes());
        out.push(b'\n');
        out.extend_from_within(path);
        out.push(b'\n');
        out.extend_from_within(query);
        out.push(b'\n');
        for (name, value) in &headers {
            out.extend_from_slice(name);
            out.push(b':');
            write_collapsed(out, value);
            out.push(b'\n');
        }
        out.push(b'\n');
        write_names(out, &headers);
        out.push(b'\n');
        out.extend_from_slice(payload);
        let signature = moment.signature(&out[canonical..]);
        out.truncate(canonical);

        out.extend_from_slice(b"authorization: ");
        out.extend_from_slice(ALGORITHM.as_bytes());
        out.extend_from_slice(b" Credential=");
        out.extend_from_slice(moment.credential().as_bytes());
        out.extend_from_slice(b", SignedHeaders=");
        write_names(out, &headers);
        out.extend_from_slice(b", Signature=");
        out.extend_from_slice(&signature);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

pub(super) fn write_path(out: &mut Vec<u8>, request: &Request<'_>) -> Result<(), RequestError> {
    let prefix = request.path_prefix;
    let encoded = prefix.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#'));
    if !encoded || !(prefix.is_empty() || prefix.starts_with('/')) {
        return Err(RequestError::PathPrefix);
    }
    out.extend_from_slice(prefix.as_bytes());
    out.push(b'/');
    uri::encode_path(out, request.key);
    Ok(())
}

/// The value to send for one of the caller's headers.
pub(super) fn checked_header<'a>(name: &str, value: &'a str) -> Result<&'a [u8], RequestError> {
    // RFC 9110, section 5.6.2: tokens; upper case is refused because signed names are lower case.
    let token = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(RequestError::HeaderName(name.to_owned()));
    }
    if OWN_HEADERS.contains(&name) {
        return Err(RequestError::ReservedHeader(name.to_owned()));
    }
    checked_value(value).ok_or_else(|| RequestError::HeaderValue(name.to_owned()))
}

/// `value` without the blanks around it, which HTTP does not transport.
fn checked_value(value: &str) -> Option<&[u8]> {
    let visible = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
    value.bytes().all(visible).then(|| value.trim_matches([' ', '\t']).as_bytes())
}

fn write_line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends a value as the canonical request has it: runs of spaces become one. Tabs stay.
pub(super) fn write_collapsed(out: &mut Vec<u8>, value: &[u8]) {
    if memchr::memmem::find(value, b"  ").is_none() {
        out.extend_from_slice(value);
        return;
    }
    let mut last = 0;
    out.extend(value.iter().copied().filter(|&byte| {
        let keep = byte != b' ' || last != b' ';
        last = byte;
        keep
    }));
}

/// Appends the names of `headers`, joined by semicolons.
pub(super) fn write_names(out: &mut Vec<u8>, headers: &[Header<'_>]) {
    for (index, (name, _)) in headers.iter().enumerate() {
        if index > 0 {
            out.push(b';');
        }
        out.extend_from_slice(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain<'a>() -> Request<'a> {
        Request {
            method: Method::Get,
            host: "localhost:9000",
            path_prefix: "/bucket",
            key: "a//b c",
            query: &[],
            headers: &[],
            content_length: None,
            payload: Payload::Empty,
        }
    }

    fn text(request: &Request<'_>) -> Result<String, RequestError> {
        let mut out = Vec::new();
        write_request(&mut out, request, None, SystemTime::UNIX_EPOCH)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn an_anonymous_head_is_exactly_this() {
        let request = Request {
            method: Method::Put,
            query: &[("uploadId", "a b"), ("partNumber", "7")],
            headers: &[("x-amz-meta-a", "  one  two\t"), ("content-type", "text/plain")],
            content_length: Some(42),
            ..plain()
        };
        assert_eq!(
            text(&request).unwrap(),
            format!(
                "PUT /bucket/a//b%20c?partNumber=7&uploadId=a%20b HTTP/1.1\r\ncontent-type: text/plain\r\n\
                 host: localhost:9000\r\nx-amz-meta-a: one  two\r\nuser-agent: {USER_AGENT}\r\n\
                 content-length: 42\r\n\r\n"
            )
        );
    }

    #[test]
    fn nothing_can_be_smuggled_into_a_head() {
        fn with(headers: &[(&str, &str)]) -> RequestError {
            text(&Request { headers, ..plain() }).unwrap_err()
        }
        for value in ["a\r\nx: y", "a\nb", "a\rb", "a\0b", "é", "\u{7f}"] {
            assert_eq!(with(&[("x-amz-meta-a", value)]), RequestError::HeaderValue("x-amz-meta-a".into()));
        }
        for name in ["", "a b", "a:b", "A", "a\r\n", "é"] {
            assert_eq!(with(&[(name, "v")]), RequestError::HeaderName(name.into()));
        }
        for name in OWN_HEADERS {
            assert_eq!(with(&[(name, "v")]), RequestError::ReservedHeader(name.into()));
        }
        assert_eq!(
            with(&[("range", "a"), ("if-match", "b"), ("range", "c")]),
            RequestError::RepeatedHeader("range".into())
        );
        for host in ["", "a b", "a\r\nb", "é"] {
            assert_eq!(text(&Request { host, ..plain() }), Err(RequestError::Host));
        }
        for path_prefix in ["bucket", "/a b", "/a?b", "/a#b", "/é", "/a\r\nb"] {
            assert_eq!(text(&Request { path_prefix, ..plain() }), Err(RequestError::PathPrefix));
        }
    }

    #[test]
    fn a_refused_request_leaves_the_buffer_as_it_was() {
        let mut out = b"before".to_vec();
        let request = Request { path_prefix: "/a b", ..plain() };
        assert!(write_request(&mut out, &request, None, SystemTime::UNIX_EPOCH).is_err());
        assert_eq!(out, b"before");
    }
}

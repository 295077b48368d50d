//! Response heads: what a response says about itself, borrowed from the receive buffer.
//!
//! Owns the framing of responses: where the head ends, how long the body is, whether the connection can be
//! used again. [`parse_response`] is called with what has been received so far and answers `None` until the
//! head is complete; nothing is copied.
//!
//! Refuses heads whose framing two readers could understand differently (RFC 9112, section 6.3): two
//! lengths that differ, a length beside a transfer coding, a coding other than `chunked`, folded lines;
//! and heads that are too long to be one. A connection that sent such a head must be closed.

use std::fmt;
use std::mem::MaybeUninit;

use super::request::Method;

/// The longest head that is accepted, in bytes. S3 limits a request's headers to 8 KB, of which user
/// metadata are 2 KB; a response repeats the latter. This leaves room for proxies.
pub const MAX_HEAD: usize = 64 * 1024;
/// The most headers that are accepted.
pub const MAX_HEADERS: usize = 128;

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// Exactly this many bytes.
    Length(u64),
    /// The chunked transfer coding, see [`super::chunked`].
    Chunked,
    /// Everything until the server closes the connection: a truncated body looks like a whole one.
    UntilClose,
}

/// `Content-Range: bytes first-last/total`: which bytes of the object the body is. Both ends are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// The offset of the first byte.
    pub first: u64,
    /// The offset of the last byte, never before `first`.
    pub last: u64,
    /// The size of the object, when the server tells it.
    pub total: Option<u64>,
}

/// The head of a response. All text is borrowed from the buffer that was parsed. Where a header that does
/// not frame the body is repeated, the first one counts; one that is not visible ASCII is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead<'a> {
    /// The status code, 100 to 999.
    pub status: u16,
    /// Whether the connection may carry another request once the body is read.
    pub keep_alive: bool,
    /// How long the body is. `Length(0)` for 1xx, 204, 304 and every response to `HEAD`.
    pub body: BodyLength,
    /// The `Content-Length` header as it stands: for `HEAD` the size of the object.
    pub content_length: Option<u64>,
    /// Which bytes of the object the body is.
    pub content_range: Option<ContentRange>,
    /// The size of the object from `Content-Range: bytes */N`, as a 416 carries it.
    pub unsatisfied_range: Option<u64>,
    /// `ETag` with its quotes.
    pub etag: Option<&'a str>,
    /// `Last-Modified`, an HTTP date.
    pub last_modified: Option<&'a str>,
    /// `Date`: the server's clock, an HTTP date.
    pub date: Option<&'a str>,
    /// `Content-Type`.
    pub content_type: Option<&'a str>,
    /// `Location` of a redirect.
    pub location: Option<&'a str>,
    /// `Retry-After`: seconds or an HTTP date.
    pub retry_after: Option<&'a str>,
    /// `x-amz-version-id`.
    pub version_id: Option<&'a str>,
    /// `x-amz-request-id`.
    pub request_id: Option<&'a str>,
    /// `x-amz-bucket-region`.
    pub bucket_region: Option<&'a str>,
    lines: &'a [u8],
}

impl<'a> ResponseHead<'a> {
    /// All headers in their order, values without the blanks around them.
    pub fn headers(&self) -> Headers<'a> {
        Headers { lines: self.lines }
    }

    /// The first value of the header `name`, in any case.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers().find(|header| header.0.eq_ignore_ascii_case(name)).map(|header| header.1)
    }

    /// Returns whether the body is a part of the object: status 206, or a 200 whose `Content-Range` does not name all of
    /// it (gofakes3, and so `rclone serve s3`, answers ranges with 200).
    pub fn is_part(&self) -> bool {
        let is_whole = |range: ContentRange| range.first == 0 && range.total == range.last.checked_add(1);
        self.status == 206 || self.status == 200 && self.content_range.is_some_and(|range| !is_whole(range))
    }
}

/// Walks over the headers of a [`ResponseHead`]. The head was checked when it was parsed, so that finding
/// the lines again costs less than keeping them.
#[derive(Clone, Debug)]
pub struct Headers<'a> {
    lines: &'a [u8],
}

impl<'a> Iterator for Headers<'a> {
    type Item = (&'a str, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let end = memchr::memchr(b'\n', self.lines)?;
        let line = self.lines[..end].strip_suffix(b"\r").unwrap_or(&self.lines[..end]);
        self.lines = &self.lines[end + 1..];
        let colon = memchr::memchr(b':', line)?;
        let name = std::str::from_utf8(&line[..colon]).ok()?;
        Some((name, line[colon + 1..].trim_ascii()))
    }
}

/// Why a response can't be understood. The connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseError {
    /// This is not an HTTP/1 response.
    Syntax(httparse::Error),
    /// The head is longer than [`MAX_HEAD`].
    TooLong,
    /// The head has more than [`MAX_HEADERS`] headers.
    TooManyHeaders,
    /// A status below 100, or a switch to another protocol.
    Status(u16),
    /// `Content-Length` is not a number of bytes, or there are two that differ.
    ContentLength,
    /// `Transfer-Encoding` is not exactly `chunked`, or stands beside a `Content-Length`.
    TransferEncoding,
    /// `Content-Range` is not a range of bytes, or there is more than one.
    ContentRange,
}

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(error) => write!(
                f,
                "not an HTTP/1.1 response ({error}); check that the endpoint URL's scheme and port belong to an S3 server"
            ),
            Self::TooLong => write!(f, "the response head is longer than {MAX_HEAD} bytes"),
            Self::TooManyHeaders => write!(f, "the response has more than {MAX_HEADERS} headers"),
            Self::Status(status) => write!(f, "the response status {status} has no meaning here"),
            Self::ContentLength => f.write_str("the response has an unreadable Content-Length, or two that differ"),
            Self::TransferEncoding => f.write_str(
                "the response has a Transfer-Encoding other than chunked, or both that and a Content-Length",
            ),
            Self::ContentRange => f.write_str("the response has an unreadable Content-Range, or two of them"),
        }
    }
}

impl std::error::Error for ResponseError {}

/// Parses the response head at the start of `buf`, which answers a request of method `method`. Returns the
/// head and its length in bytes (the body, if any, begins there), or `None` when more bytes are needed.
///
/// # Errors
/// [`ResponseError`] when this is no head that can be trusted; it says so as early as it can.
pub fn parse_response(buf: &[u8], method: Method) -> Result<Option<(ResponseHead<'_>, usize)>, ResponseError> {
    // Not initialised, because clearing 4 KiB would cost as much as parsing a usual head.
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut parsed = httparse::Response::new(&mut []);
    let limited = &buf[..buf.len().min(MAX_HEAD)];
    let status =
        httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut parsed, limited, &mut headers);
    let length = match status {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if limited.len() == MAX_HEAD => {
            return Err(ResponseError::TooLong);
        }
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(ResponseError::TooManyHeaders),
        Err(error) => return Err(ResponseError::Syntax(error)),
    };

    let status = parsed.code.unwrap_or(0);
    if status < 100 || status == 101 {
        return Err(ResponseError::Status(status));
    }
    let mut head = ResponseHead {
        status,
        keep_alive: parsed.version == Some(1),
        body: BodyLength::UntilClose,
        content_length: None,
        content_range: None,
        unsatisfied_range: None,
        etag: None,
        last_modified: None,
        date: None,
        content_type: None,
        location: None,
        retry_after: None,
        version_id: None,
        request_id: None,
        bucket_region: None,
        lines: header_lines(&limited[..length]),
    };
    let mut framing = Framing::default();
    for header in parsed.headers.iter() {
        take_header(&mut head, &mut framing, header)?;
    }
    finish(&mut head, &framing, parsed.version == Some(1), method)?;
    Ok(Some((head, length)))
}

/// What the headers say about the connection and the body, before it is weighed.
#[derive(Default)]
struct Framing {
    chunked: bool,
    close: bool,
    keep_alive: bool,
}

fn take_header<'a>(
    head: &mut ResponseHead<'a>,
    framing: &mut Framing,
    header: &httparse::Header<'a>,
) -> Result<(), ResponseError> {
    let value = header.value;
    // Names of different headers mostly differ in length: one comparison decides.
    let is = |name: &str| header.name.eq_ignore_ascii_case(name);
    let field = match header.name.len() {
        4 if is("etag") => &mut head.etag,
        4 if is("date") => &mut head.date,
        8 if is("location") => &mut head.location,
        10 if is("connection") => {
            for token in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                framing.close |= token.eq_ignore_ascii_case(b"close");
                framing.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
            }
            return Ok(());
        }
        11 if is("retry-after") => &mut head.retry_after,
        12 if is("content-type") => &mut head.content_type,
        13 if is("last-modified") => &mut head.last_modified,
        13 if is("content-range") => return take_content_range(head, value),
        14 if is("content-length") => {
            let length = number(value.trim_ascii()).ok_or(ResponseError::ContentLength)?;
            return match head.content_length.replace(length) {
                Some(earlier) if earlier != length => Err(ResponseError::ContentLength),
                _ => Ok(()),
            };
        }
        16 if is("x-amz-request-id") => &mut head.request_id,
        16 if is("x-amz-version-id") => &mut head.version_id,
        17 if is("transfer-encoding") => {
            let chunked = value.trim_ascii().eq_ignore_ascii_case(b"chunked");
            if !chunked || framing.chunked {
                return Err(ResponseError::TransferEncoding);
            }
            framing.chunked = true;
            return Ok(());
        }
        19 if is("x-amz-bucket-region") => &mut head.bucket_region,
        _ => return Ok(()),
    };
    if field.is_none() {
        *field = std::str::from_utf8(value).ok().filter(|text| text.is_ascii()).map(str::trim_ascii);
    }
    Ok(())
}

fn take_content_range(head: &mut ResponseHead<'_>, value: &[u8]) -> Result<(), ResponseError> {
    let parsed = parse_content_range(value.trim_ascii()).ok_or(ResponseError::ContentRange)?;
    if head.content_range.is_some() || head.unsatisfied_range.is_some() {
        return Err(ResponseError::ContentRange);
    }
    match parsed {
        Ok(range) => head.content_range = Some(range),
        Err(total) => head.unsatisfied_range = Some(total),
    }
    Ok(())
}

/// `bytes 0-9/10`, `bytes 0-9/*`, or (as `Err`) the total of `bytes */10`. MinIO answers the last bytes of an empty object
/// with `bytes 0--1/0`, which is read as `bytes */0`.
fn parse_content_range(value: &[u8]) -> Option<Result<ContentRange, u64>> {
    let (unit, rest) = value.split_at_checked(6)?;
    if !unit.eq_ignore_ascii_case(b"bytes ") {
        return None;
    }
    let slash = memchr::memchr(b'/', rest)?;
    let (range, total) = (&rest[..slash], &rest[slash + 1..]);
    let total = if total == b"*" { None } else { Some(number(total)?) };
    if range == b"*" || (range == b"0--1" && total == Some(0)) {
        return total.map(Err);
    }
    let dash = memchr::memchr(b'-', range)?;
    let (first, last) = (number(&range[..dash])?, number(&range[dash + 1..])?);
    if first > last || total.is_some_and(|total| last >= total) {
        return None;
    }
    Some(Ok(ContentRange { first, last, total }))
}

fn finish(head: &mut ResponseHead<'_>, framing: &Framing, http_1_1: bool, method: Method) -> Result<(), ResponseError> {
    // RFC 9112, section 6.1: a transfer coding in an HTTP/1.0 message is a sign of broken framing.
    if framing.chunked && (head.content_length.is_some() || !http_1_1) {
        return Err(ResponseError::TransferEncoding);
    }
    let no_body = method == Method::Head || matches!(head.status, 100..=199 | 204 | 304);
    head.body = match head.content_length {
        _ if no_body => BodyLength::Length(0),
        Some(length) => BodyLength::Length(length),
        None if framing.chunked => BodyLength::Chunked,
        None => BodyLength::UntilClose,
    };
    head.keep_alive = !framing.close && (http_1_1 || framing.keep_alive) && head.body != BodyLength::UntilClose;
    Ok(())
}

/// The lines after the status line.
fn header_lines(head: &[u8]) -> &[u8] {
    // Empty lines may come before the status line.
    let start = head.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(0);
    let end = memchr::memchr(b'\n', &head[start..]).map_or(head.len(), |end| start + end + 1);
    &head[end..]
}

/// Decimal digits and nothing else, within 64 bits.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;

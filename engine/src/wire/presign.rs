//! URLs that carry their own signature: whoever has one may send that one request until it expires.
//!
//! Owns the query form of Signature Version 4. The URL's query is written in canonical form with what
//! the signature is about in it; the canonical request is a copy of it, as in [`super::request`]. The
//! body is never signed: whoever uses the URL brings it.
//!
//! Refuses what [`super::request`] refuses. Headers of the request are signed: who uses the URL must
//! send them with the same values.

use std::time::SystemTime;

use smallvec::SmallVec;

use super::request::{Header, Request, RequestError, checked_header, write_collapsed, write_names, write_path};
use super::sign::{ALGORITHM, Signer, UNSIGNED_PAYLOAD};
use super::uri;

/// The path and query of `request`, signed at `now` and good for `expires` seconds from then on. What
/// stands before it in the URL is scheme and host. `content_length` and `payload` are not looked at.
///
/// # Errors
/// [`RequestError`] when a part of the request can't be written as it is.
pub fn presign(request: &Request<'_>, signer: &Signer, now: SystemTime, expires: u64) -> Result<String, RequestError> {
    if request.host.is_empty() || !request.host.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(RequestError::Host);
    }
    let mut headers: SmallVec<[Header<'_>; 16]> = SmallVec::new();
    headers.push((b"host", request.host.as_bytes()));
    for &(name, value) in request.headers {
        headers.push((name.as_bytes(), checked_header(name, value)?));
    }
    headers.sort_unstable_by_key(|header| header.0);
    if let Some(pair) = headers.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(RequestError::RepeatedHeader(String::from_utf8_lossy(pair[0].0).into_owned()));
    }
    let mut names = Vec::new();
    write_names(&mut names, &headers);
    let names = String::from_utf8_lossy(&names).into_owned();
    let expires = expires.to_string();

    let written = signer.with_moment(now, |moment| {
        let mut query: SmallVec<[(&str, &str); 16]> = SmallVec::from_slice(request.query);
        query.extend([
            ("X-Amz-Algorithm", ALGORITHM),
            ("X-Amz-Credential", moment.credential()),
            ("X-Amz-Date", moment.date()),
            ("X-Amz-Expires", expires.as_str()),
            ("X-Amz-SignedHeaders", names.as_str()),
        ]);
        if let Some(token) = signer.session_token() {
            query.push((signer.token_parameter(), token));
        }
        let mut target = Vec::new();
        write_path(&mut target, request)?;
        let path = target.len();
        target.push(b'?');
        uri::write_query(&mut target, &query);

        let mut canonical = Vec::with_capacity(2 * target.len());
        canonical.extend_from_slice(request.method.as_str().as_bytes());
        canonical.push(b'\n');
        canonical.extend_from_slice(&target[..path]);
        canonical.push(b'\n');
        canonical.extend_from_slice(&target[path + 1..]);
        canonical.push(b'\n');
        for (name, value) in &headers {
            canonical.extend_from_slice(name);
            canonical.push(b':');
            write_collapsed(&mut canonical, value);
            canonical.push(b'\n');
        }
        canonical.push(b'\n');
        canonical.extend_from_slice(names.as_bytes());
        canonical.push(b'\n');
        canonical.extend_from_slice(UNSIGNED_PAYLOAD.as_bytes());
        let signature = moment.signature(&canonical);
        target.extend_from_slice(b"&X-Amz-Signature=");
        target.extend_from_slice(&signature);
        Ok(target)
    });
    // Everything in it was percent-encoded or checked to be visible ASCII.
    written?.map(|target| String::from_utf8_lossy(&target).into_owned())
}

#[cfg(test)]
#[path = "presign_tests.rs"]
mod tests;

//! AWS Signature Version 4, with everything that does not change kept.
//!
//! Owns the credentials of one identity for one region and service. The signing key changes once a day;
//! the time stamp, the credential scope and therefore the beginning of the string to sign change once a
//! second. So a [`Signer`] derives the key once a day, and every thread keeps the last second's
//! `Moment`: an HMAC that has already absorbed the key and the beginning of the string to sign. What is
//! left for a request is one hash of its canonical form and two or three compressions, without a lock.
//!
//! Refuses to show secrets: `Debug` prints the access key id, region and service only. The format of a
//! canonical request is written by [`super::request`].

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use hmac::{Hmac, Mac};
use jiff::Timestamp;
use jiff::tz::Offset;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::request::RequestError;

/// The SHA-256 of nothing, in hexadecimal.
pub const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// Stands for the hash of a body that is not signed.
pub const UNSIGNED_PAYLOAD: &str = "UNSIGNED-PAYLOAD";
/// The same for a body whose checksum follows it.
pub const UNSIGNED_TRAILER: &str = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
pub(super) const ALGORITHM: &str = "AWS4-HMAC-SHA256";

const SECONDS_A_DAY: u64 = 86_400;

type HmacSha256 = Hmac<Sha256>;

/// Signs requests of one identity for one region and service. Shared by all connections.
pub struct Signer {
    /// Tells signers apart in the threads' caches. Never reused.
    id: u64,
    access_key_id: String,
    secret_access_key: Zeroizing<String>,
    session_token: Option<String>,
    region: String,
    service: String,
    in_session: bool,
    /// Taken once a second by each thread that signs, never for a request.
    day: Mutex<Option<DayKey>>,
}

/// The derived signing key of one day, as an HMAC ready to be used.
#[derive(Clone)]
struct DayKey {
    day: u64,
    mac: HmacSha256,
}

/// What a signer's requests of one second have in common.
pub(super) struct Moment {
    signer: u64,
    second: u64,
    /// `20130524T000000Z`
    date: String,
    /// `AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request`
    credential: String,
    /// Has absorbed the string to sign up to the hash of the canonical request.
    mac: HmacSha256,
}

thread_local! {
    static LAST: Cell<Option<Rc<Moment>>> = const { Cell::new(None) };
}

impl Signer {
    /// A signer for one identity. `session_token` belongs to temporary credentials; `service` is `s3`, or
    /// `s3express` for directory buckets.
    pub fn new(
        access_key_id: &str,
        secret_access_key: &str,
        session_token: Option<&str>,
        region: &str,
        service: &str,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            access_key_id: access_key_id.to_owned(),
            secret_access_key: Zeroizing::new(secret_access_key.to_owned()),
            session_token: session_token.map(str::to_owned),
            region: region.to_owned(),
            service: service.to_owned(),
            in_session: false,
            day: Mutex::new(None),
        }
    }

    /// The region that this signer signs for.
    pub fn region(&self) -> &str {
        &self.region
    }

    pub(super) fn session_token(&self) -> Option<&str> {
        self.session_token.as_deref()
    }

    /// The header that carries the session token: directory buckets have one of their own.
    pub(super) fn token_header(&self) -> &'static str {
        if self.in_session { "x-amz-s3session-token" } else { "x-amz-security-token" }
    }

    /// The same in a presigned URL.
    pub(super) fn token_parameter(&self) -> &'static str {
        if self.in_session { "X-Amz-S3session-Token" } else { "X-Amz-Security-Token" }
    }

    /// The same signer for credentials that CreateSession gave out, as directory buckets want them.
    #[must_use]
    pub fn in_session(mut self) -> Self {
        self.in_session = true;
        self
    }

    /// Hands what the requests of `now`'s second share to `use_it`.
    pub(super) fn with_moment<T>(&self, now: SystemTime, use_it: impl FnOnce(&Moment) -> T) -> Result<T, RequestError> {
        let second = now.duration_since(SystemTime::UNIX_EPOCH).map_err(|_| RequestError::Clock)?.as_secs();
        // A thread that is being torn down has no cache any more; it can still sign.
        let cached = LAST.try_with(Cell::take).ok().flatten();
        let moment = match cached {
            Some(moment) if moment.signer == self.id && moment.second == second => moment,
            _ => Rc::new(self.moment(second)?),
        };
        let result = use_it(&moment);
        let _ = LAST.try_with(|last| last.set(Some(moment)));
        Ok(result)
    }

    fn moment(&self, second: u64) -> Result<Moment, RequestError> {
        for (part, what) in
            [(&self.access_key_id, "the access key id"), (&self.region, "the region"), (&self.service, "the service")]
        {
            if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(RequestError::Identity(what));
            }
        }
        let timestamp = i64::try_from(second)
            .ok()
            .and_then(|second| Timestamp::from_second(second).ok())
            .ok_or(RequestError::Clock)?;
        let at = Offset::UTC.to_datetime(timestamp);
        let day = format!("{:04}{:02}{:02}", at.year(), at.month(), at.day());
        let date = format!("{day}T{:02}{:02}{:02}Z", at.hour(), at.minute(), at.second());
        let scope = format!("{day}/{}/{}/aws4_request", self.region, self.service);
        let mut mac = self.day_key(second / SECONDS_A_DAY, &day);
        for part in [ALGORITHM, "\n", &date, "\n", &scope, "\n"] {
            mac.update(part.as_bytes());
        }
        let credential = format!("{}/{scope}", self.access_key_id);
        Ok(Moment { signer: self.id, second, date, credential, mac })
    }

    /// The signing key of `day` (days since 1970; `text` is the same day as `YYYYMMDD`).
    fn day_key(&self, day: u64, text: &str) -> HmacSha256 {
        let mut cached = self.day.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = cached.as_ref().filter(|key| key.day == day) {
            return key.mac.clone();
        }
        // Of its final length from the start: what grows leaves a copy behind.
        let mut secret = Zeroizing::new(String::with_capacity("AWS4".len() + self.secret_access_key.len()));
        secret.push_str("AWS4");
        secret.push_str(&self.secret_access_key);
        let mut key = keyed(secret.as_bytes());
        for part in [text, &self.region, &self.service, "aws4_request"] {
            key.update(part.as_bytes());
            key = keyed(&key.finalize().into_bytes());
        }
        *cached = Some(DayKey { day, mac: key.clone() });
        key
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer")
            .field("access_key_id", &self.access_key_id)
            .field("region", &self.region)
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}

impl Moment {
    pub(super) fn date(&self) -> &str {
        &self.date
    }

    pub(super) fn credential(&self) -> &str {
        &self.credential
    }

    /// The signature of a canonical request, in hexadecimal.
    pub(super) fn signature(&self, canonical_request: &[u8]) -> [u8; 64] {
        let mut mac = self.mac.clone();
        mac.update(&hex(&Sha256::digest(canonical_request).into()));
        hex(&mac.finalize().into_bytes().into())
    }
}

/// 32 bytes in lower-case hexadecimal.
pub fn hex(bytes: &[u8; 32]) -> [u8; 64] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; 64];
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    text
}

/// HMAC-SHA-256 with `key`.
fn keyed(key: &[u8]) -> HmacSha256 {
    // RFC 2104: a key longer than a block is hashed, a shorter one is padded with zeros.
    let mut block = [0; 64];
    if key.len() > block.len() {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    <HmacSha256 as Mac>::new(&block.into())
}

#[cfg(test)]
#[path = "sign_tests.rs"]
mod tests;

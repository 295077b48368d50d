//! Whether what arrived is what was stored: the sums of a download's parts, the object's own checksum,
//! and the comparison; and for uploads, what the server was seen to accept.
//!
//! Parts are summed as they are received, while they are in the cache, and combined when all are there.
//! The object's checksum comes with the answer to a read of the whole object; where the first answer was
//! a range's it is asked for by a HEAD, beside the bodies and never before them. Until that is answered nobody
//! knows which of the CRCs it will be, so every part computes all of them, and from then on the one.
//! Whatever cannot be compared is not refused: the download says that it is not verified, and why.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicI8, AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::head::ObjectInfo;
use super::part::Source;
use super::request::{Call, head_only};
use crate::error::{Error, ErrorKind, Result};
use crate::metrics::Counters;
use crate::wire::checksum::{Checksum, ChecksumAlgorithm, Sum, Summer};
use crate::wire::request::Method;
use crate::wire::response::ResponseHead;

/// How long a download that is complete waits for the answer to its HEAD: the slowest that S3 takes for a first
/// byte, give or take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// What asks for the checksum in the head of an answer.
pub(crate) const CHECKSUM_MODE: (&str, &str) = ("x-amz-checksum-mode", "ENABLED");

/// Whether the bytes of a download were compared with the object's own checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verified {
    /// All bytes of the object, and they agree.
    FullObject(ChecksumAlgorithm),
    /// They were not compared, for this reason.
    Not(Unverified),
}

impl Default for Verified {
    fn default() -> Self {
        Verified::Not(Unverified::NothingRead)
    }
}

/// `verified`, or why it is not.
impl std::fmt::Display for Verified {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Verified::FullObject(_) => f.write_str("verified"),
            Verified::Not(why) => why.fmt(f),
        }
    }
}

/// Why a download was not compared with a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unverified {
    /// No byte was read.
    NothingRead,
    /// `verify_checksums` is off.
    TurnedOff,
    /// Only a part of the object was read.
    Range,
    /// The server keeps no checksum of the object, or none of a kind that is computed here.
    NoChecksum,
    /// It keeps a checksum of the checksums of the parts that it was uploaded in.
    Composite,
    /// It keeps a SHA-256, which cannot be combined from parts that arrive in any order.
    NotCombinable,
    /// The server's checksum of the object cannot be one of the algorithm that it names.
    Malformed,
    /// It did not say: the HEAD was refused (it is a permission of its own), failed, or was too slow.
    NotTold,
}

impl std::fmt::Display for Unverified {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Unverified::NothingRead => "nothing was read",
            Unverified::TurnedOff => "verification is turned off",
            Unverified::Range => "only a part of the object was read",
            Unverified::NoChecksum => "the object has no checksum that could be computed",
            Unverified::Composite => "the object's checksum is one of its parts' checksums",
            Unverified::NotCombinable => "the object's checksum cannot be combined from parts",
            Unverified::Malformed => "the server's checksum of the object cannot be one of its algorithm",
            Unverified::NotTold => "the server did not tell the object's checksum",
        })
    }
}

/// What is known of the object's checksum.
#[derive(Debug)]
enum Known {
    Is(Checksum),
    /// It will not be compared.
    Not(Unverified, Option<Checksum>),
}

/// The verification of one download.
pub(crate) struct Check {
    known: OnceLock<Known>,
    sums: Mutex<Vec<(u64, Vec<Sum>)>>,
    /// All bytes come as one part, whose sum is the object's.
    single: bool,
}

impl Check {
    /// One that compares nothing.
    pub(crate) fn none(why: Unverified) -> Check {
        let check = Check { known: OnceLock::new(), sums: Mutex::default(), single: false };
        check.settle(Known::Not(why, None));
        check
    }

    /// For a whole object, whose first answer has this head. `single`: that answer brings all of it. `asked`: the
    /// request wanted to know the checksum, so that an answer without one says that there is none.
    pub(crate) fn of(head: &ResponseHead<'_>, single: bool, asked: bool) -> Check {
        let check = Check { known: OnceLock::new(), sums: Mutex::default(), single };
        // A range's checksum, where there is one, may be that of an uploaded part.
        if head.status == 200 && !head.is_part() {
            match Checksum::in_head(head) {
                None if !asked => {}
                told => check.learn(told),
            }
        }
        check
    }

    /// For a whole object of which nothing is known yet, that comes in parts.
    pub(crate) fn unknown() -> Check {
        Check { known: OnceLock::new(), sums: Mutex::default(), single: false }
    }

    /// For a whole object whose checksum the server has told, if it has one.
    pub(crate) fn known(checksum: Option<Checksum>) -> Check {
        let check = Check::unknown();
        check.learn(checksum);
        check
    }

    fn settle(&self, known: Known) {
        // Told twice, the first stands: both came with the same version.
        let _ = self.known.set(known);
    }

    /// What the server says the object's checksum is.
    fn learn(&self, checksum: Option<Checksum>) {
        self.settle(match checksum {
            None => Known::Not(Unverified::NoChecksum, None),
            Some(checksum) if checksum.composite => Known::Not(Unverified::Composite, Some(checksum)),
            Some(checksum) if !checksum.is_well_formed() => Known::Not(Unverified::Malformed, Some(checksum)),
            Some(checksum) if !self.single && !checksum.algorithm.combines() => {
                Known::Not(Unverified::NotCombinable, Some(checksum))
            }
            Some(checksum) => Known::Is(checksum),
        });
    }

    /// Whether somebody has to ask for the checksum.
    pub(super) fn is_open(&self) -> bool {
        self.known.get().is_none()
    }

    /// Whether bytes are of any use to it, as far as is known.
    pub(crate) fn wants_bytes(&self) -> bool {
        !matches!(self.known.get(), Some(Known::Not(..)))
    }

    /// The sums of a part that begins now.
    pub(crate) fn begin(&self) -> PartSums {
        let mut sums = PartSums { settled: false, first: None, others: Vec::new() };
        if self.is_open() {
            sums.first = Some(Summer::new(ChecksumAlgorithm::Crc64Nvme));
            let mut others = vec![ChecksumAlgorithm::Crc32, ChecksumAlgorithm::Crc32c];
            others.extend(self.single.then_some(ChecksumAlgorithm::Sha256));
            sums.others = others.into_iter().map(Summer::new).collect();
        } else if let Some(Known::Is(checksum)) = self.known.get() {
            sums.first = Some(Summer::new(checksum.algorithm));
        }
        sums.settled = !self.is_open();
        sums
    }

    /// Keeps the sums of the part that began at `start`.
    pub(crate) fn add(&self, start: u64, sums: PartSums) {
        let sums: Vec<Sum> = sums.first.into_iter().chain(sums.others).map(Summer::finish).collect();
        if !sums.is_empty() {
            self.sums.lock().unwrap_or_else(PoisonError::into_inner).push((start, sums));
        }
    }

    fn conclude(&self, info: &mut ObjectInfo) -> Result<()> {
        let (checksum, verified) = match self.known.get() {
            None => (None, Verified::Not(Unverified::NotTold)),
            Some(Known::Not(why, checksum)) => (checksum.clone(), Verified::Not(*why)),
            Some(Known::Is(checksum)) => (Some(checksum.clone()), self.compare(checksum, info.size)?),
        };
        info.checksum = checksum;
        info.verified = verified;
        Ok(())
    }

    fn compare(&self, checksum: &Checksum, size: u64) -> Result<Verified> {
        let mut sums = std::mem::take(&mut *self.sums.lock().unwrap_or_else(PoisonError::into_inner));
        sums.sort_unstable_by_key(|part| part.0);
        let of_kind = |part: &(u64, Vec<Sum>)| part.1.iter().find(|sum| sum.algorithm() == checksum.algorithm).copied();
        let parts: Option<Vec<Sum>> = sums.iter().map(of_kind).collect();
        let whole = parts.and_then(Sum::of_parts).filter(|whole| whole.length() == size);
        let Some(whole) = whole else { return Ok(Verified::Not(Unverified::NotCombinable)) };
        let (algorithm, computed) = (checksum.algorithm, whole.value());
        if computed != checksum.value {
            let stored = &checksum.value;
            return Err(Error::new(
                ErrorKind::Integrity,
                format!("the bytes are not those that were stored: their {algorithm} is {computed}, the object's is {stored}"),
            )
            .with_hint("read it again; if it stays so, the stored object or something on the way is damaged"));
        }
        Ok(Verified::FullObject(algorithm))
    }
}

/// The sums of one part, while it arrives.
pub(crate) struct PartSums {
    /// It is known which of them counts.
    settled: bool,
    first: Option<Summer>,
    others: Vec<Summer>,
}

impl PartSums {
    /// Takes the bytes that have just arrived.
    pub(crate) fn update(&mut self, bytes: &[u8], check: &Check) {
        if !self.settled
            && let Some(known) = check.known.get()
        {
            self.settled = true;
            let wanted = match known {
                Known::Is(checksum) => Some(checksum.algorithm),
                Known::Not(..) => None,
            };
            let all = self.first.take().into_iter().chain(std::mem::take(&mut self.others));
            self.first = all.into_iter().find(|summer| Some(summer.algorithm()) == wanted);
        }
        for summer in self.first.iter_mut().chain(&mut self.others) {
            summer.update(bytes);
        }
    }
}

impl Source {
    /// Runs `fetching`, and asks for the object's checksum meanwhile where the first answer did not
    /// tell it. Without an answer the download is as good as without a checksum.
    pub(crate) async fn fetch_and_ask<T>(&self, fetching: impl Future<Output = Result<T>>) -> Result<T> {
        if !self.check.is_open() {
            return fetching.await;
        }
        let mut fetching = pin!(fetching);
        // Boxed: most objects do without, and should not carry it.
        let mut asking = Box::pin(self.ask_for_checksum());
        tokio::select! {
            biased;
            fetched = &mut fetching => {
                let fetched = fetched?;
                // Too late is as good as no answer.
                let _ = tokio::time::timeout(PATIENCE, asking).await;
                Ok(fetched)
            }
            () = &mut asking => fetching.await,
        }
    }

    /// Compares what arrived with the object's checksum, and says so in `info`.
    pub(super) fn conclude(&self, info: &mut ObjectInfo) -> Result<()> {
        self.check.conclude(info).map_err(|error| self.subject.explain(error))?;
        let is_checksum = |checksum: &Checksum| self.engine.oddities.is_checksum(&self.subject, checksum);
        info.checksum = info.checksum.take().filter(is_checksum);
        Ok(())
    }

    pub(super) async fn ask_for_checksum(&self) {
        let mut headers = vec![CHECKSUM_MODE];
        headers.extend(self.version.if_match().map(|etag| ("if-match", etag)));
        let query = self.version.version_to_ask_for().map(|id| [("versionId", id)]);
        let call = Call {
            query: query.as_ref().map_or(&[], |query| &query[..]),
            headers: &headers,
            beside: true,
            ..Call::new(Method::Head)
        };
        Counters::add(&self.engine.counters.checksum_heads, 1);
        let read = |head: &ResponseHead<'_>| {
            let same = self.version.check(head, head.content_length.unwrap_or(self.version.size)).is_ok();
            same.then(|| Checksum::in_head(head))
        };
        match self.engine.ask(&self.subject, &call, 0, read, head_only).await {
            Ok(Some(checksum)) => self.check.learn(checksum),
            Ok(None) => tracing::debug!("the object changed before its checksum was asked for"),
            Err(error) => tracing::debug!(%error, "the object's checksum could not be asked for"),
        }
    }
}

/// What the objects that were read last looked like: whether the next is asked for whole, which brings its
/// checksum with it, or by a first range, which wastes nothing where it is large.
pub(crate) struct Sizes {
    /// Above or at 0, objects are expected to be small.
    score: AtomicI8,
}

/// How much of the past counts.
const MEMORY: i8 = 4;

impl Sizes {
    /// A single object of which nothing is known may well be large.
    pub(crate) fn unknown() -> Sizes {
        Sizes { score: AtomicI8::new(-1) }
    }

    /// Of many, most are small.
    pub(crate) fn mostly_small() -> Sizes {
        Sizes { score: AtomicI8::new(MEMORY) }
    }

    pub(crate) fn expects_small(&self) -> bool {
        self.score.load(Ordering::Relaxed) >= 0
    }

    pub(crate) fn saw(&self, small: bool) {
        let score = self.score.load(Ordering::Relaxed);
        let next = if small { score + 1 } else { score - 1 }.clamp(-MEMORY, MEMORY);
        // Of two at once one is lost, which changes nothing for long.
        if next != score {
            self.score.store(next, Ordering::Relaxed);
        }
    }
}

/// How an upload carries its checksum, the least demanding first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Carriage {
    None,
    /// Known before the body is sent.
    Header,
    /// Computed while it is sent, and behind it.
    Trailer,
}

impl Carriage {
    /// What to try where this was refused.
    pub(crate) fn lower(self) -> Carriage {
        match self {
            Carriage::Trailer => Carriage::Header,
            Carriage::Header | Carriage::None => Carriage::None,
        }
    }

    /// Whether the server refused the checksum, or the way in which it came, and not the bytes.
    pub(crate) fn is_refused_by(self, error: &Error) -> bool {
        if self == Carriage::None {
            return false;
        }
        match (error.status(), error.code().unwrap_or_default()) {
            (Some(501), _) => true,
            // What was given in place of a hash was taken for one.
            (Some(400), "XAmzContentSHA256Mismatch") => self == Carriage::Trailer,
            (Some(400), "InvalidArgument" | "InvalidRequest" | "NotImplemented" | "NotSupported" | "") => {
                let message = error.message().to_ascii_lowercase();
                const NAMED: [&str; 7] = [
                    "checksum",
                    "trailer",
                    "chunked",
                    "content-encoding",
                    "x-amz-content-sha256",
                    "streaming",
                    "decoded-content-length",
                ];
                NAMED.iter().any(|name| message.contains(name))
            }
            _ => false,
        }
    }
}

/// What the server was seen to refuse of checksums.
#[derive(Default)]
pub(crate) struct Acceptance {
    /// 0: nothing; 1: trailers; 2: all.
    refused: AtomicU8,
}

impl Acceptance {
    pub(crate) fn best(&self) -> Carriage {
        match self.refused.load(Ordering::Relaxed) {
            0 => Carriage::Trailer,
            1 => Carriage::Header,
            _ => Carriage::None,
        }
    }

    /// `carriage` was accepted after what is above it was not.
    pub(crate) fn lowered_to(&self, carriage: Carriage, bucket: &str) {
        let refused = match carriage {
            Carriage::Trailer => return,
            Carriage::Header => 1,
            Carriage::None => 2,
        };
        if self.refused.fetch_max(refused, Ordering::Relaxed) < refused {
            let instead = match carriage {
                Carriage::Header => "uploads carry them in a header from now on",
                _ => "uploads go without from now on",
            };
            tracing::warn!(bucket, "the server refuses checksums as they were sent: {instead}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, code: &str, message: &str) -> Error {
        Error::new(ErrorKind::Config, message).with_response(status, Some(code.to_owned()), None)
    }

    #[test]
    fn a_refused_form_is_told_from_refused_bytes() {
        for (status, code, message) in [
            (501, "NotImplemented", "A header you provided implies functionality that is not implemented"),
            (400, "InvalidArgument", "STREAMING-UNSIGNED-PAYLOAD-TRAILER is no x-amz-content-sha256"),
            (400, "InvalidRequest", "The checksum algorithm is not supported"),
        ] {
            for carriage in [Carriage::Header, Carriage::Trailer] {
                assert!(carriage.is_refused_by(&refusal(status, code, message)), "{code}");
            }
            assert!(!Carriage::None.is_refused_by(&refusal(status, code, message)));
        }
        for (status, code, message) in [
            (400, "BadDigest", "The CRC64NVME checksum you specified did not match"),
            (403, "AccessDenied", "checksum"),
            (400, "InvalidArgument", "the storage class"),
            (500, "InternalError", "checksum"),
        ] {
            assert!(!Carriage::Trailer.is_refused_by(&refusal(status, code, message)), "{code}");
        }
        let mismatch = refusal(400, "XAmzContentSHA256Mismatch", "");
        assert!(Carriage::Trailer.is_refused_by(&mismatch) && !Carriage::Header.is_refused_by(&mismatch));
    }

    #[test]
    fn what_was_refused_is_remembered_and_never_forgotten() {
        let acceptance = Acceptance::default();
        assert_eq!(acceptance.best(), Carriage::Trailer);
        acceptance.lowered_to(Carriage::None, "e");
        acceptance.lowered_to(Carriage::Header, "e");
        assert_eq!(acceptance.best(), Carriage::None);
    }

    #[test]
    fn sizes_follow_what_is_seen_most() {
        let sizes = Sizes::unknown();
        assert!(!sizes.expects_small());
        sizes.saw(true);
        assert!(sizes.expects_small());
        let many = Sizes::mostly_small();
        for _ in 0..4 {
            many.saw(false);
            assert!(many.expects_small());
        }
        many.saw(false);
        assert!(!many.expects_small());
    }

    #[test]
    fn a_part_that_began_before_the_algorithm_was_known_counts() {
        for algorithm in [ChecksumAlgorithm::Crc64Nvme, ChecksumAlgorithm::Crc32, ChecksumAlgorithm::Crc32c] {
            let check = Check { known: OnceLock::new(), sums: Mutex::default(), single: false };
            let mut before = check.begin();
            before.update(b"123", &check);
            let value = Sum::of(algorithm, b"123456789").value();
            check.settle(Known::Is(Checksum::full(algorithm, value)));
            before.update(b"45", &check);
            let mut after = check.begin();
            after.update(b"6789", &check);
            assert!(after.others.is_empty() && before.others.is_empty(), "only what counts is summed");
            check.add(5, after);
            check.add(0, before);
            let mut info = ObjectInfo { size: 9, ..ObjectInfo::default() };
            check.conclude(&mut info).unwrap();
            assert_eq!(info.verified, Verified::FullObject(algorithm));
            assert_eq!(info.verified.to_string(), "verified");
        }
        assert_eq!(Verified::default().to_string(), "nothing was read");
    }

    #[test]
    fn other_bytes_are_told_with_both_values() {
        let check = Check { known: OnceLock::new(), sums: Mutex::default(), single: false };
        check.settle(Known::Is(Checksum::full(ChecksumAlgorithm::Crc32, "AAAAAA==".to_owned())));
        let mut sums = check.begin();
        sums.update(b"123456789", &check);
        check.add(0, sums);
        let error = check.conclude(&mut ObjectInfo { size: 9, ..ObjectInfo::default() }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Integrity);
        let text = error.to_string();
        assert!(text.contains("CRC32 is y/Q5Jg==, the object's is AAAAAA=="), "{text}");
    }
}

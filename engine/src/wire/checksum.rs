//! Checksums of bodies: computing them, combining them, and how they stand in headers and documents.
//!
//! A [`Summer`] takes bytes in order and ends as a [`Sum`]. The sum of a whole is made from the sums of
//! its parts, in whatever order they were computed, where the algorithm is a CRC ([`Sum::then`]): a CRC
//! is a remainder, and putting bytes behind others multiplies the remainder by a power of x. SHA-256 has
//! no such law: of an object in parts S3 then keeps a composite, a checksum of checksums, which only
//! somebody who knows the parts can check.
//!
//! The CRCs themselves are `crc-fast`'s. Its way of combining two takes some 70 µs a part, a quarter of what
//! summing an 8 MiB part costs in the first place; `power_of_x` and `multiply` do it in 3.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};
use sha2::Sha256;

use super::response::ResponseHead;
use crate::checksum::PREFIX;

pub use crate::checksum::ChecksumAlgorithm;

/// The value of `content-md5` for `body`: its MD5 in base64 (RFC 1864), 24 characters.
///
/// S3 demands it (or another checksum) for `DeleteObjects`. It guards against a damaged body and proves
/// nothing about who wrote it.
pub fn content_md5(body: &[u8]) -> String {
    STANDARD.encode(Md5::digest(body))
}

/// The CRC of that name, if it is one.
fn crc_of(algorithm: ChecksumAlgorithm) -> Option<Crc> {
    use crc_fast::CrcAlgorithm as Fast;
    // The generators, bits reversed: the catalogue's CRC-64/NVME, CRC-32/ISO-HDLC, CRC-32/ISCSI.
    let (fast, bits, generator) = match algorithm {
        ChecksumAlgorithm::Crc64Nvme => (Fast::Crc64Nvme, 64, 0x9a6c_9329_ac4b_c9b5),
        ChecksumAlgorithm::Crc32 => (Fast::Crc32IsoHdlc, 32, 0xedb8_8320),
        ChecksumAlgorithm::Crc32c => (Fast::Crc32Iscsi, 32, 0x82f6_3b78),
        ChecksumAlgorithm::Sha256 => return None,
    };
    Some(Crc { fast, bits, generator })
}

/// A CRC whose bits are reversed, as all of S3's are.
#[derive(Clone, Copy)]
struct Crc {
    fast: crc_fast::CrcAlgorithm,
    bits: u32,
    /// The generator without its highest term; the coefficient of x⁰ is the highest bit.
    generator: u64,
}

impl Crc {
    /// `a` times `b`, modulo the generator.
    fn multiply(self, mut a: u64, mut b: u64) -> u64 {
        let one = 1 << (self.bits - 1);
        let mut product = 0;
        while a != 0 {
            if a & one != 0 {
                product ^= b;
            }
            a = (a << 1) & (one | (one - 1));
            b = (b >> 1) ^ if b & 1 == 1 { self.generator } else { 0 };
        }
        product
    }

    /// x to the power of `8 * bytes`, modulo the generator.
    fn power_of_x(self, bytes: u64) -> u64 {
        let one = 1 << (self.bits - 1);
        let mut power = one;
        let mut square = one >> 8;
        let mut left = bytes;
        while left != 0 {
            if left & 1 == 1 {
                power = self.multiply(power, square);
            }
            square = self.multiply(square, square);
            left >>= 1;
        }
        power
    }
}

/// Takes bytes in order and sums them.
#[derive(Clone)]
pub struct Summer {
    algorithm: ChecksumAlgorithm,
    state: State,
    length: u64,
}

#[derive(Clone)]
enum State {
    Crc(crc_fast::Digest),
    Sha256(Sha256),
}

impl Summer {
    /// The sum of nothing yet.
    pub fn new(algorithm: ChecksumAlgorithm) -> Summer {
        let state = match crc_of(algorithm) {
            Some(crc) => State::Crc(crc_fast::Digest::new(crc.fast)),
            None => State::Sha256(Sha256::new()),
        };
        Summer { algorithm, state, length: 0 }
    }

    /// What it computes.
    pub fn algorithm(&self) -> ChecksumAlgorithm {
        self.algorithm
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        match &mut self.state {
            State::Crc(digest) => digest.update(bytes),
            State::Sha256(digest) => digest.update(bytes),
        }
    }

    /// The sum of all bytes taken.
    pub fn finish(self) -> Sum {
        let digest = match self.state {
            State::Crc(digest) => Digest::Crc(digest.finalize()),
            State::Sha256(digest) => Digest::Sha256(digest.finalize().into()),
        };
        Sum { algorithm: self.algorithm, digest, length: self.length }
    }
}

/// The checksum of some bytes. Shown in base64, as it stands in headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    algorithm: ChecksumAlgorithm,
    digest: Digest,
    length: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Digest {
    Crc(u64),
    Sha256([u8; 32]),
}

impl Sum {
    /// Sums bytes that are there all at once.
    pub fn of(algorithm: ChecksumAlgorithm, bytes: &[u8]) -> Sum {
        let mut summer = Summer::new(algorithm);
        summer.update(bytes);
        summer.finish()
    }

    /// One of `length` bytes that somebody else has computed; `None` where `value` is no base64 of the right length.
    pub fn told(algorithm: ChecksumAlgorithm, value: &str, length: u64) -> Option<Sum> {
        let bytes = STANDARD.decode(value).ok()?;
        let digest = match crc_of(algorithm) {
            Some(Crc { bits: 32, .. }) => Digest::Crc(u32::from_be_bytes(bytes.try_into().ok()?).into()),
            Some(_) => Digest::Crc(u64::from_be_bytes(bytes.try_into().ok()?)),
            None => Digest::Sha256(bytes.try_into().ok()?),
        };
        Some(Sum { algorithm, digest, length })
    }

    /// What computed it.
    pub fn algorithm(&self) -> ChecksumAlgorithm {
        self.algorithm
    }

    /// The digest itself, where it is a SHA-256.
    pub fn sha256(&self) -> Option<[u8; 32]> {
        match self.digest {
            Digest::Crc(_) => None,
            Digest::Sha256(digest) => Some(digest),
        }
    }

    /// How many bytes were summed.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The sum of this one's bytes with the other's behind them; `None` where the two algorithms differ
    /// or theirs does not combine.
    pub fn then(self, behind: Sum) -> Option<Sum> {
        Combiner::new().then(self, behind)
    }

    /// The sum of all the parts in their order; `None` where there are none or they do not combine.
    pub fn of_parts(parts: impl IntoIterator<Item = Sum>) -> Option<Sum> {
        let mut combiner = Combiner::new();
        let mut parts = parts.into_iter();
        let first = parts.next()?;
        parts.try_fold(first, |whole, part| combiner.then(whole, part))
    }

    /// The value in base64.
    pub fn value(&self) -> String {
        match (self.digest, crc_of(self.algorithm)) {
            (Digest::Crc(crc), Some(Crc { bits: 32, .. })) => STANDARD.encode((crc as u32).to_be_bytes()),
            (Digest::Crc(crc), _) => STANDARD.encode(crc.to_be_bytes()),
            (Digest::Sha256(digest), _) => STANDARD.encode(digest),
        }
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.value())
    }
}

/// Combines sums; parts of an object have mostly one length, whose power of x is then computed once.
struct Combiner {
    power: Option<(ChecksumAlgorithm, u64, u64)>,
}

impl Combiner {
    fn new() -> Combiner {
        Combiner { power: None }
    }

    fn then(&mut self, front: Sum, behind: Sum) -> Option<Sum> {
        let crc = crc_of(front.algorithm)?;
        let (Digest::Crc(a), Digest::Crc(b)) = (front.digest, behind.digest) else { return None };
        if front.algorithm != behind.algorithm {
            return None;
        }
        let power = match self.power {
            Some((algorithm, length, power)) if algorithm == front.algorithm && length == behind.length => power,
            _ => {
                let power = crc.power_of_x(behind.length);
                self.power = Some((front.algorithm, behind.length, power));
                power
            }
        };
        // What a CRC begins with and what it is inverted with are the same, so both fall out.
        let digest = Digest::Crc(crc.multiply(a, power) ^ b);
        Some(Sum { algorithm: front.algorithm, digest, length: front.length + behind.length })
    }
}

/// A checksum as a server keeps it with an object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checksum {
    /// What computed it.
    pub algorithm: ChecksumAlgorithm,
    /// The value as the server sent it: base64, of a composite with `-` and the number of parts.
    pub value: String,
    /// Whether it is a checksum of the parts' checksums, and not of the object's bytes.
    pub composite: bool,
}

impl Checksum {
    /// One over all bytes.
    pub fn full(algorithm: ChecksumAlgorithm, value: String) -> Checksum {
        Checksum { algorithm, value, composite: false }
    }

    /// Returns whether the value can be a sum of its algorithm: base64 of as many bytes.
    pub fn is_well_formed(&self) -> bool {
        Sum::told(self.algorithm, &self.value, 0).is_some()
    }

    /// The checksum that a head carries, if it is of a known kind. Where there are several, a CRC is
    /// preferred.
    pub fn in_head(head: &ResponseHead<'_>) -> Option<Checksum> {
        let mut found: Option<(ChecksumAlgorithm, &[u8])> = None;
        let mut kind = None;
        for (name, value) in head.headers() {
            // Cheap for the many headers that are not meant: their lengths differ.
            let Some((prefix, rest)) = name.split_at_checked(PREFIX.len()) else { continue };
            if !prefix.eq_ignore_ascii_case(PREFIX) {
                continue;
            }
            if rest.eq_ignore_ascii_case("type") {
                kind = Some(value);
            } else if let Some(algorithm) = ChecksumAlgorithm::named(rest)
                && found.is_none_or(|(earlier, _)| !earlier.combines())
            {
                found = Some((algorithm, value));
            }
        }
        let (algorithm, value) = found?;
        let value = std::str::from_utf8(value).ok()?.to_owned();
        Some(Checksum::told(algorithm, value, kind.and_then(|kind| std::str::from_utf8(kind).ok())))
    }

    /// One as a server tells it, with its type where that is told too.
    pub fn told(algorithm: ChecksumAlgorithm, value: String, kind: Option<&str>) -> Checksum {
        let composite = value.contains('-') || kind.is_some_and(|kind| kind.eq_ignore_ascii_case("COMPOSITE"));
        Checksum { algorithm, value, composite }
    }
}

#[cfg(test)]
#[path = "checksum_tests.rs"]
mod tests;

//! Objects that are computed and never stored.
//!
//! A synthetic bucket holds series: either `objects` keys `PREFIX` + a zero-padded number, or one named
//! key, each object `size` bytes long. Its listing is arithmetic (a page costs the same anywhere in ten
//! million keys) and its bytes are slices of one table, so that serving them costs no more than the socket.
//!
//! # The formula
//! So that any client can verify what it received, in any language, the bytes are:
//!
//! ```text
//! byte(seed, key, offset) = T[(phase(seed, key) + offset) mod P]      P = 1,048,583, a prime
//! phase(seed, key)        = fnv1a64(key as UTF-8, basis 0xcbf29ce484222325 xor seed) mod P
//! T                       = the first P bytes of w(0), w(1), ... each 8 bytes, little-endian
//! w(i)                    = splitmix64's output for the state (i + 1) * 0x9e3779b97f4a7c15 mod 2^64:
//!                           z = state
//!                           z = (z xor (z >> 30)) * 0xbf58476d1ce4e5b9 mod 2^64
//!                           z = (z xor (z >> 27)) * 0x94d049bb133111eb mod 2^64
//!                           w = z xor (z >> 31)
//! fnv1a64                 = for each byte b: h = ((h xor b) * 0x100000001b3) mod 2^64
//! ```
//!
//! The period is prime so that a range delivered at the wrong place is seen: parts are multiples of a
//! power of two, and no multiple of one below 8 TiB is a multiple of P. The phase depends on the key so that
//! objects mixed up with each other are seen. The ETag is `"syn-` + the phase's hash in hex + `-` + the size in
//! hex `"`; Last-Modified is always 2026-01-01T00:00:00Z.

use std::ops::Bound;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use super::content::Content;
use super::listing::{Entry, KeySpace};
use super::object::{Head, Object};

/// Bytes after which the content of a synthetic object repeats: the smallest prime above 2^20.
pub const PERIOD: u64 = 1_048_583;

/// Seconds from the epoch to 2026-01-01T00:00:00Z.
const MODIFIED: u64 = 1_767_225_600;

/// The most keys a series may have: eight bytes of digits and to spare.
const MOST: u64 = 1_000_000_000_000;

/// A computed object or series of objects, as declared by `--synthetic`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    keys: Keys,
    size: u64,
    seed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Keys {
    One(String),
    Numbered { prefix: String, digits: usize, count: u64 },
}

impl Series {
    /// One object under `key`, of `size` bytes.
    pub fn one(key: impl Into<String>, size: u64) -> Self {
        Self { keys: Keys::One(key.into()), size, seed: 0 }
    }

    /// `count` objects of `size` bytes each, under `prefix` followed by 0, 1, 2... in eight digits (more if
    /// the count needs them).
    pub fn numbered(prefix: impl Into<String>, count: u64, size: u64) -> Self {
        let count = count.min(MOST);
        Self { keys: Keys::Numbered { prefix: prefix.into(), digits: width(count).max(8), count }, size, seed: 0 }
    }

    /// Pads the numbers to `digits` digits, and at least to as many as the largest number has.
    #[must_use]
    pub fn digits(mut self, wanted: usize) -> Self {
        if let Keys::Numbered { digits, count, .. } = &mut self.keys {
            *digits = wanted.max(width(*count));
        }
        self
    }

    /// Other bytes for the same keys.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    fn count(&self) -> u64 {
        match &self.keys {
            Keys::One(_) => 1,
            Keys::Numbered { count, .. } => *count,
        }
    }

    fn key(&self, index: u64) -> String {
        match &self.keys {
            Keys::One(key) => key.clone(),
            Keys::Numbered { prefix, digits, .. } => format!("{prefix}{index:0digits$}"),
        }
    }

    fn contains(&self, key: &str) -> bool {
        match &self.keys {
            Keys::One(only) => only == key,
            Keys::Numbered { prefix, digits, count } => key.strip_prefix(prefix.as_str()).is_some_and(|number| {
                number.len() == *digits
                    && number.bytes().all(|byte| byte.is_ascii_digit())
                    && number.parse().is_ok_and(|number: u64| number < *count)
            }),
        }
    }

    /// The index of the first key at or past `start`: the keys are in byte order, being equally long.
    fn seek(&self, start: Bound<&[u8]>) -> u64 {
        let before = |index: u64| match start {
            Bound::Unbounded => false,
            Bound::Included(start) => self.key(index).as_bytes() < start,
            Bound::Excluded(start) => self.key(index).as_bytes() <= start,
        };
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low + (high - low) / 2;
            if before(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }

    fn entry(&self, key: String) -> Entry {
        let etag = self.etag(&key);
        Entry { key, size: self.size, etag, modified: modified(), storage_class: None }
    }

    fn etag(&self, key: &str) -> String {
        format!("syn-{:016x}-{:x}", hash(self.seed, key), self.size)
    }
}

/// The series of one synthetic bucket.
#[derive(Clone, Debug, Default)]
pub(crate) struct Synthetic {
    series: Vec<Series>,
}

impl Synthetic {
    /// Where two series have a key in common, the earlier one holds.
    pub(crate) fn new(series: Vec<Series>) -> Self {
        Table::get();
        Self { series }
    }

    pub(crate) fn find(&self, key: &str) -> Option<Arc<Object>> {
        let series = self.series.iter().find(|series| series.contains(key))?;
        Some(Arc::new(Object {
            head: Head { content_type: Some("application/octet-stream".to_owned()), ..Head::default() },
            size: series.size,
            etag: series.etag(key),
            modified: modified(),
            checksum: None,
            part_sizes: Vec::new(),
            version: None,
            content: Content::Synthetic { phase: hash(series.seed, key) % PERIOD },
        }))
    }
}

impl KeySpace for Synthetic {
    fn from<'a>(&'a self, start: Bound<&[u8]>) -> Box<dyn Iterator<Item = Entry> + 'a> {
        let mut cursors: Vec<_> = self
            .series
            .iter()
            .map(|series| (series.seek(start)..series.count()).map(|index| series.key(index)).peekable())
            .collect();
        Box::new(std::iter::from_fn(move || {
            let least = cursors.iter_mut().filter_map(|cursor| cursor.peek().cloned()).min()?;
            let mut found = None;
            for (series, cursor) in self.series.iter().zip(&mut cursors) {
                if cursor.next_if_eq(&least).is_some() && found.is_none() {
                    found = Some(series);
                }
            }
            found.map(|series| series.entry(least))
        }))
    }
}

/// The bytes that every synthetic object is a window on: the table twice over, so that a slice of up to one
/// period needs no seam.
#[derive(Debug)]
pub(crate) struct Table(Bytes);

impl Table {
    pub(crate) fn get() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(|| {
            let period = PERIOD as usize;
            let words = (1..).map(|index: u64| splitmix64(index.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes());
            let once: Vec<u8> = words.flatten().take(period).collect();
            Self(Bytes::from(once.repeat(2)))
        })
    }

    /// `length` bytes (at most a period) of the object with this phase, from `offset` on.
    pub(crate) fn slice(&self, phase: u64, offset: u64, length: u64) -> Bytes {
        let start = ((phase + offset % PERIOD) % PERIOD) as usize;
        self.0.slice(start..start + length.min(PERIOD) as usize)
    }
}

/// The CRC-64/NVME of the object with this phase and so many bytes: of one period at most, whatever its size, the rest
/// being the same again.
pub(crate) fn crc64(phase: u64, size: u64) -> u64 {
    let algorithm = crc_fast::CrcAlgorithm::Crc64Nvme;
    let of = |length: u64| crc_fast::checksum(algorithm, &Table::get().slice(phase, 0, length));
    let (mut times, rest) = (size / PERIOD, size % PERIOD);
    let mut whole = 0;
    // The periods, by doubling: as many steps as their number has digits in binary.
    let (mut power, mut length) = if times > 0 { (of(PERIOD), PERIOD) } else { (0, 0) };
    while times > 0 {
        if times % 2 == 1 {
            whole = crc_fast::checksum_combine(algorithm, whole, power, length);
        }
        times /= 2;
        if times > 0 {
            power = crc_fast::checksum_combine(algorithm, power, power, length);
            length *= 2;
        }
    }
    crc_fast::checksum_combine(algorithm, whole, of(rest), rest)
}

fn splitmix64(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn hash(seed: u64, key: &str) -> u64 {
    key.bytes().fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Digits of the largest number below `count`.
fn width(count: u64) -> usize {
    count.saturating_sub(1).to_string().len()
}

fn modified() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(MODIFIED)
}

/// The first `length` bytes from `offset` on of the synthetic object under `key`, as the formula in this
/// module's documentation has them: what a test compares a download with. Owns what it returns.
pub fn synthetic_bytes(seed: u64, key: &str, offset: u64, length: usize) -> Vec<u8> {
    let phase = hash(seed, key) % PERIOD;
    let table = &Table::get().0;
    (0..length as u64).map(|at| table[((phase + offset + at) % PERIOD) as usize]).collect()
}

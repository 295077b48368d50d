//! How a download begins: which bytes are wanted, and which of them the first request asks for, before
//! anybody knows the object's size. Pure: it reads the head of the answer, and sends nothing.

use std::ops::{Bound, Range, RangeBounds};

use super::checksum::Sizes;
use super::options::Fields;
use super::part::RangeText;
use super::refusal::Failure;
use super::version::Pin;
use crate::wire::response::{BodyLength, ResponseHead};

/// Which bytes of an object are wanted, before its size is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    All,
    Range(Range<u64>),
    /// The last so many.
    Suffix(u64),
}

impl Wanted {
    /// What a caller writes as a range.
    pub(crate) fn range(range: impl RangeBounds<u64>) -> Wanted {
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => u64::MAX,
        };
        Wanted::Range(start..end)
    }

    /// The most bytes that it can come to.
    pub(super) fn most(&self) -> u64 {
        match self {
            Wanted::All => u64::MAX,
            Wanted::Range(range) => range.end.saturating_sub(range.start),
            Wanted::Suffix(length) => *length,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Wanted::All => false,
            Wanted::Range(range) => range.is_empty(),
            Wanted::Suffix(length) => *length == 0,
        }
    }

    /// Of an object of this size; `None` where they begin beyond its end. Of an empty object a range from its first
    /// byte on is there, without a byte.
    pub(super) fn of(&self, size: u64) -> Option<Range<u64>> {
        match self {
            Wanted::All => Some(0..size),
            Wanted::Range(range) if range.start > 0 && range.start >= size => None,
            Wanted::Range(range) => Some(range.start..range.end.min(size)),
            Wanted::Suffix(length) => Some(size.saturating_sub(*length)..size),
        }
    }

    /// Returns whether a refused range (416) proves that an object has none of these bytes. Where the server said the
    /// object's size, that decides. Where it did not, only a range from the first byte on proves that there is none:
    /// some servers refuse a suffix that is longer than the object, and others a range that ends beyond it.
    pub(super) fn is_refused_for_good(&self, failure: &Failure) -> bool {
        match failure.object_size {
            Some(size) => self.of(size).is_none_or(|there| there.is_empty()),
            None => {
                let from_first_byte = match self {
                    Wanted::All => true,
                    Wanted::Range(range) => range.start == 0,
                    Wanted::Suffix(_) => false,
                };
                from_first_byte && failure.error.code() == Some("InvalidRange")
            }
        }
    }
}

/// How a download begins.
#[derive(Clone)]
pub(crate) struct Opening<'a> {
    pub(crate) wanted: Wanted,
    /// The length of a part.
    pub(crate) part: u64,
    /// The bytes are wanted in their order: of a suffix that has several parts, the first answer
    /// then brings the last byte, and not the last part, which would have to be held to the end.
    pub(crate) in_order: bool,
    pub(crate) conditions: &'a Fields,
    pub(crate) verify: bool,
    /// The version that other reads of the object have met, where they must be of one.
    pub(crate) pin: Option<&'a Pin>,
    /// Where it is learnt how large objects are.
    pub(crate) sizes: &'a Sizes,
    /// How large this one is, as far as its caller knows.
    pub(crate) size: Option<u64>,
    /// The entity tag that the caller knows it by, where it must be that one.
    pub(crate) listed_etag: Option<&'a str>,
}

impl Opening<'_> {
    /// Whether the first request asks for the whole object: only that answer brings its checksum, and of a small
    /// object it costs no byte more.
    fn asks_for_all(&self) -> bool {
        self.wanted == Wanted::All
            && match self.size {
                Some(size) => size <= self.part,
                None => self.verify && self.sizes.expects_small(),
            }
    }

    /// Returns whether an answer comes from another version than the one that was listed, or does not say which: some servers do
    /// not look at `If-Match`, and some write a tag with quotes in one place and without in another.
    pub(super) fn is_another(&self, head: &ResponseHead<'_>) -> bool {
        match (self.listed_etag, head.etag) {
            (Some(listed), Some(found)) => listed.trim_matches('"') != found.trim_matches('"'),
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    /// The bytes that the first request asks for.
    pub(super) fn first(&self) -> First {
        match &self.wanted {
            Wanted::All if self.asks_for_all() => First::Whole,
            Wanted::All => First::Range(0..self.part),
            Wanted::Range(range) => First::Range(range.start..range.end.min(range.start.saturating_add(self.part))),
            Wanted::Suffix(length) if *length <= self.part => First::Suffix(*length),
            Wanted::Suffix(_) if self.in_order => First::Suffix(1),
            Wanted::Suffix(_) => First::Suffix(self.part),
        }
    }
}

pub(super) enum First {
    /// All of the object, by a request without a range.
    Whole,
    Range(Range<u64>),
    Suffix(u64),
}

impl First {
    /// The value of the `Range` header, if there is one.
    pub(super) fn write<'a>(&self, text: &'a mut RangeText) -> Option<&'a str> {
        match self {
            First::Whole => None,
            First::Range(range) => Some(text.write(range)),
            First::Suffix(length) => Some(text.write_suffix(*length)),
        }
    }

    /// In bytes of the object, as far as the answer says how large it is.
    pub(super) fn asked(&self, head: &ResponseHead<'_>) -> Range<u64> {
        match self {
            First::Whole => 0..u64::MAX,
            First::Range(range) => range.clone(),
            First::Suffix(length) => {
                let size = match (head.content_range, head.body) {
                    (Some(range), _) => range.total.unwrap_or(0),
                    (None, BodyLength::Length(length)) => length,
                    (None, _) => 0,
                };
                size.saturating_sub(*length)..size
            }
        }
    }
}

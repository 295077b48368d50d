//! From sizes to parts: pure arithmetic.
//!
//! Owns: where a download is cut, which ranges are fetched together, what is missing of one that was begun before, and
//! how an upload is cut, within S3's limits. Refuses: an object that
//! S3's limits cannot hold. No input panics or overflows. It does no IO, knows no clock, and holds no
//! bytes: what comes out is ranges, computed on demand, so a plan costs the same for every size.

mod gaps;
mod joined;

pub use gaps::{PartsOfGaps, gaps};
#[cfg(feature = "internals")]
pub use joined::JoinedRange;
pub use joined::{JoinedRanges, join_ranges};

use std::fmt;
use std::iter::FusedIterator;
use std::ops::Range;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The most parts an upload may have.
/// Source: Amazon S3 User Guide, "Amazon S3 multipart upload limits".
pub const MAX_PARTS: u32 = 10_000;

/// The fewest bytes a part may have; the last may have fewer. Source: as [`MAX_PARTS`].
pub const MIN_PART_SIZE: u64 = 5 * MIB;

/// The most bytes a part may have. Source: as [`MAX_PARTS`].
pub const MAX_PART_SIZE: u64 = 5 * GIB;

/// The most bytes one PUT may carry. S3's documentation says "5 GB" in one place and 5 GiB in others;
/// this is the smaller of the two, and a multipart upload serves above it.
/// Source: Amazon S3 User Guide, "Uploading objects".
pub const MAX_PUT_SIZE: u64 = 5_000_000_000;

/// The most bytes an object may have: [`MAX_PARTS`] of [`MAX_PART_SIZE`], 48.8 TiB. S3 announced it,
/// in December 2025, as "50 TB".
pub const MAX_OBJECT_SIZE: u64 = MAX_PARTS as u64 * MAX_PART_SIZE;

/// The parts of `range`, which is in absolute bytes of the object, the end exclusive: each `part_size`
/// bytes but the last, in order, without gaps. A `part_size` of 0 sets no limit: one part. A range that
/// is empty or ends before it begins has no parts.
pub fn download_parts(range: Range<u64>, part_size: u64) -> DownloadParts {
    let len = range.end.saturating_sub(range.start);
    let part_size = match part_size {
        0 => len.max(1),
        // Where addresses have 32 bits, the number of parts must still be a `usize`.
        n => n.max(len.div_ceil(usize::MAX as u64)),
    };
    DownloadParts { start: range.start, len, part_size, next: 0, end: len.div_ceil(part_size) }
}

/// The parts of a download: an iterator of ranges, and any part by its index in constant time, so that
/// workers can share an atomic counter.
#[derive(Debug, Clone)]
pub struct DownloadParts {
    start: u64,
    len: u64,
    part_size: u64,
    /// Indexes still to be given out.
    next: u64,
    end: u64,
}

impl DownloadParts {
    /// Part `index`, counted from 0 over the whole range whatever was iterated; none past the last.
    pub fn get(&self, index: u64) -> Option<Range<u64>> {
        nth_part(self.len, self.part_size, index).map(|part| self.start + part.start..self.start + part.end)
    }
}

impl Iterator for DownloadParts {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        self.nth(0)
    }

    fn nth(&mut self, skipped: usize) -> Option<Range<u64>> {
        let index = self.next.saturating_add(skipped as u64).min(self.end);
        if index == self.end {
            self.next = self.end;
            return None;
        }
        self.next = index + 1;
        self.get(index)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.end - self.next) as usize;
        (left, Some(left))
    }
}

impl DoubleEndedIterator for DownloadParts {
    fn next_back(&mut self) -> Option<Range<u64>> {
        if self.next == self.end {
            return None;
        }
        self.end -= 1;
        self.get(self.end)
    }
}

impl ExactSizeIterator for DownloadParts {}
impl FusedIterator for DownloadParts {}

/// How to upload an object of `size` bytes.
///
/// One request below `multipart_threshold` bytes, or when one part would hold it anyway; a multipart
/// upload from there on and above [`MAX_PUT_SIZE`]. The part size is what was asked, brought within
/// [`MIN_PART_SIZE`] and [`MAX_PART_SIZE`], and raised to a whole number of MiB when the object would
/// otherwise have more than [`MAX_PARTS`].
///
/// # Errors
/// When the object is larger than [`MAX_OBJECT_SIZE`].
pub fn upload_plan(size: u64, part_size: u64, multipart_threshold: u64) -> Result<UploadPlan, PlanError> {
    if size > MAX_OBJECT_SIZE {
        return Err(PlanError::ObjectTooLarge { size });
    }
    let fewest = size.div_ceil(u64::from(MAX_PARTS)).next_multiple_of(MIB);
    // `fewest` is at most `MAX_PART_SIZE`, which is a whole number of MiB, because `size` is at most
    // `MAX_OBJECT_SIZE`.
    let part_size = part_size.clamp(MIN_PART_SIZE, MAX_PART_SIZE).max(fewest);
    if size <= MAX_PUT_SIZE && (size < multipart_threshold || size <= part_size) {
        return Ok(UploadPlan::Single { size });
    }
    let count = size.div_ceil(part_size) as u32;
    Ok(UploadPlan::Multipart { size, part_size, count })
}

/// The size of part `index`, counted from 0, of an upload whose end is not known: `first` bytes, brought
/// within [`MIN_PART_SIZE`] and [`MAX_PART_SIZE`], and twice as many every 1,000 parts, so that the parts
/// do not run out while the early ones stay small. 8 MiB at first makes room for 7.8 TiB.
pub fn growing_part_size(first: u64, index: u32) -> u64 {
    let first = first.clamp(MIN_PART_SIZE, MAX_PART_SIZE);
    // At most 10 doublings within `MAX_PARTS`; whoever asks beyond them gets the largest part there is.
    first.saturating_mul(1 << (index / 1_000).min(20)).min(MAX_PART_SIZE)
}

/// How an object is uploaded. Sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadPlan {
    /// One PUT.
    Single {
        /// The object's size.
        size: u64,
    },
    /// A multipart upload.
    Multipart {
        /// The object's size.
        size: u64,
        /// The size of each part but the last.
        part_size: u64,
        /// How many parts there are, at most [`MAX_PARTS`].
        count: u32,
    },
}

impl UploadPlan {
    /// How many requests carry the body.
    pub fn count(&self) -> u32 {
        match *self {
            UploadPlan::Single { .. } => 1,
            UploadPlan::Multipart { count, .. } => count,
        }
    }

    /// The bytes of part `index`, counted from 0 (its part number is one more); none past the last. The
    /// one part of a single request may be empty.
    pub fn part(&self, index: u32) -> Option<Range<u64>> {
        match *self {
            UploadPlan::Single { size } => (index == 0).then_some(0..size),
            UploadPlan::Multipart { size, part_size, .. } => nth_part(size, part_size, u64::from(index)),
        }
    }
}

/// Why an upload cannot be planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// No number of parts that S3 allows holds the object.
    ObjectTooLarge {
        /// Its size in bytes.
        size: u64,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::ObjectTooLarge { size } => write!(
                f,
                "an object of {size} bytes is more than S3 can hold: at most {MAX_OBJECT_SIZE} bytes \
                 ({MAX_PARTS} parts of {MAX_PART_SIZE}); store it as several objects"
            ),
        }
    }
}

impl std::error::Error for PlanError {}

/// Part `index` of `0..len`.
fn nth_part(len: u64, part_size: u64, index: u64) -> Option<Range<u64>> {
    let start = index.checked_mul(part_size).filter(|&start| start < len)?;
    Some(start..start.saturating_add(part_size).min(len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tiles(parts: impl Iterator<Item = Range<u64>>, whole: Range<u64>, part_size: u64) {
        let mut at = whole.start;
        for part in parts {
            assert_eq!(part.start, at);
            assert!(part.end > part.start && part.end - part.start <= part_size);
            at = part.end;
        }
        assert_eq!(at, whole.end);
    }

    proptest! {
        #[test]
        fn download_parts_tile_the_range(start in any::<u64>(), len in 0u64..5_000, part_size in 1u64..700) {
            let end = start.saturating_add(len);
            let parts = download_parts(start..end, part_size);
            prop_assert_eq!(parts.len() as u64, (end - start).div_ceil(part_size));
            for (index, part) in parts.clone().enumerate() {
                prop_assert_eq!(parts.get(index as u64), Some(part));
            }
            let mut backwards: Vec<_> = parts.clone().rev().collect();
            backwards.reverse();
            prop_assert!(parts.clone().eq(backwards));
            tiles(parts, start..end, part_size);
        }

        #[test]
        fn any_range_and_part_size_hold_at_their_ends(
            start in any::<u64>(), end in any::<u64>(), part_size in any::<u64>(), skip in any::<usize>(),
        ) {
            let mut parts = download_parts(start..end, part_size);
            let count = end.saturating_sub(start).div_ceil(part_size.max(1));
            prop_assert_eq!(count == 0, start >= end);
            prop_assert_eq!(parts.get(count), None);
            prop_assert_eq!(parts.get(u64::MAX), None);
            if count > 0 {
                prop_assert_eq!(parts.get(0).map(|part| part.start), Some(start));
                prop_assert_eq!(parts.get(count - 1).map(|part| part.end), Some(end));
            }
            let there = parts.get(skip as u64);
            prop_assert_eq!(parts.nth(skip), there);
            prop_assert_eq!(parts.len() as u64, count.saturating_sub((skip as u64).saturating_add(1)));
        }

        #[test]
        fn upload_parts_tile_the_object_within_the_limits(
            size in prop_oneof![0..20 * GIB, 0..=MAX_OBJECT_SIZE, Just(MAX_OBJECT_SIZE)],
            part_size in prop_oneof![0..100 * MIB, any::<u64>()],
            threshold in prop_oneof![0..10 * GIB, any::<u64>()],
        ) {
            let plan = upload_plan(size, part_size, threshold).unwrap();
            let parts = (0..plan.count()).map_while(|index| plan.part(index));
            prop_assert_eq!(plan.part(plan.count()), None);
            prop_assert_eq!(plan.part(u32::MAX), None);
            match plan {
                UploadPlan::Single { .. } => {
                    prop_assert!(size <= MAX_PUT_SIZE);
                    prop_assert_eq!(plan.part(0), Some(0..size));
                }
                UploadPlan::Multipart { part_size: planned, count, .. } => {
                    prop_assert!(size >= threshold || size > MAX_PUT_SIZE);
                    prop_assert!(count <= MAX_PARTS);
                    prop_assert!((MIN_PART_SIZE..=MAX_PART_SIZE).contains(&planned));
                    let asked = part_size.clamp(MIN_PART_SIZE, MAX_PART_SIZE);
                    if planned != asked {
                        // Raised, and no further than it had to be.
                        prop_assert!(planned > asked && planned.is_multiple_of(MIB));
                        prop_assert!(size > (planned - MIB) * u64::from(MAX_PARTS));
                    }
                    tiles(parts, 0..size, planned);
                }
            }
        }

        #[test]
        fn too_large_is_an_error(size in MAX_OBJECT_SIZE + 1.., part_size in any::<u64>()) {
            let error = upload_plan(size, part_size, 0).unwrap_err();
            prop_assert_eq!(error, PlanError::ObjectTooLarge { size });
            prop_assert!(error.to_string().contains(&size.to_string()));
        }
    }

    #[test]
    fn the_edges_of_single_and_multipart() {
        let single = |size| Ok(UploadPlan::Single { size });
        assert_eq!(upload_plan(0, 8 * MIB, 0), single(0));
        assert_eq!(upload_plan(16 * MIB - 1, 8 * MIB, 16 * MIB), single(16 * MIB - 1));
        assert_eq!(upload_plan(8 * MIB, 8 * MIB, 0), single(8 * MIB));
        let multipart = |size, part_size, count| Ok(UploadPlan::Multipart { size, part_size, count });
        assert_eq!(upload_plan(16 * MIB, 8 * MIB, 16 * MIB), multipart(16 * MIB, 8 * MIB, 2));
        assert_eq!(upload_plan(MAX_PUT_SIZE + 1, u64::MAX, u64::MAX), multipart(MAX_PUT_SIZE + 1, MAX_PART_SIZE, 1));
        assert_eq!(upload_plan(80_000 * MIB, 8 * MIB, 0), multipart(80_000 * MIB, 8 * MIB, 10_000));
        assert_eq!(upload_plan(80_000 * MIB + 1, 8 * MIB, 0), multipart(80_000 * MIB + 1, 9 * MIB, 8_889));
    }

    #[test]
    fn parts_of_unknown_number_grow_and_hold_terabytes() {
        assert_eq!(growing_part_size(8 * MIB, 0), 8 * MIB);
        assert_eq!(growing_part_size(8 * MIB, 999), 8 * MIB);
        assert_eq!(growing_part_size(8 * MIB, 1_000), 16 * MIB);
        assert_eq!(growing_part_size(1, 0), MIN_PART_SIZE);
        assert_eq!(growing_part_size(u64::MAX, u32::MAX), MAX_PART_SIZE);
        let all = |first| (0..MAX_PARTS).map(|index| growing_part_size(first, index)).sum::<u64>();
        assert!(all(8 * MIB) > 7_900 * GIB, "{}", all(8 * MIB));
        assert_eq!(all(MAX_PART_SIZE), MAX_OBJECT_SIZE);
    }

    #[test]
    fn no_part_size_is_one_part() {
        let mut parts = download_parts(7..u64::MAX, 0);
        assert_eq!((parts.next(), parts.next()), (Some(7..u64::MAX), None));
        assert_eq!(download_parts(7..7, 0).len(), 0);
    }
}

//! What is missing of an object of which some ranges are there already, and its parts.

use std::ops::Range;

use super::{DownloadParts, download_parts};

/// The ranges of `0..size` that none of `there` covers, in order. What of `there` is empty, turned round or beyond
/// the size counts for nothing.
pub fn gaps(size: u64, there: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut there: Vec<&Range<u64>> = there.iter().filter(|range| !range.is_empty()).collect();
    there.sort_unstable_by_key(|range| range.start);
    let mut gaps = Vec::new();
    let mut reached = 0;
    for range in there {
        if range.start >= size {
            break;
        }
        if range.start > reached {
            gaps.push(reached..range.start);
        }
        reached = reached.max(range.end);
    }
    if reached < size {
        gaps.push(reached..size);
    }
    gaps
}

/// The parts of several gaps, each cut as [`download_parts`] cuts it, in order.
#[derive(Debug, Clone)]
pub struct PartsOfGaps {
    gaps: std::vec::IntoIter<Range<u64>>,
    part_size: u64,
    current: DownloadParts,
}

impl PartsOfGaps {
    /// Of these gaps, in parts of at most `part_size` bytes.
    pub fn new(gaps: Vec<Range<u64>>, part_size: u64) -> PartsOfGaps {
        PartsOfGaps { gaps: gaps.into_iter(), part_size, current: download_parts(0..0, part_size) }
    }

    /// How many parts are still to come.
    pub fn left(&self) -> usize {
        let of = |gap: &Range<u64>| download_parts(gap.clone(), self.part_size).len();
        self.gaps.as_slice().iter().map(of).fold(self.current.len(), usize::saturating_add)
    }
}

impl Iterator for PartsOfGaps {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        loop {
            if let Some(part) = self.current.next() {
                return Some(part);
            }
            self.current = download_parts(self.gaps.next()?, self.part_size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_range() -> impl Strategy<Value = Range<u64>> {
        prop_oneof![
            8 => (0u64..120, 0u64..40).prop_map(|(start, length)| start..start + length),
            1 => (any::<u64>(), any::<u64>()).prop_map(|(start, end)| start..end),
        ]
    }

    proptest! {
        #[test]
        fn gaps_are_exactly_what_is_not_there(
            size in 0u64..100, there in proptest::collection::vec(any_range(), 0..8), part_size in 0u64..30,
        ) {
            let gaps = gaps(size, &there);
            for byte in 0..size {
                let is_there = there.iter().any(|range| range.contains(&byte));
                let in_gaps = gaps.iter().filter(|gap| gap.contains(&byte)).count();
                prop_assert_eq!(in_gaps, usize::from(!is_there), "byte {}", byte);
            }
            prop_assert!(gaps.iter().all(|gap| gap.start < gap.end && gap.end <= size));
            prop_assert!(gaps.windows(2).all(|two| two[0].end < two[1].start), "neighbours are one gap");
            let mut parts = PartsOfGaps::new(gaps.clone(), part_size);
            let mut found = Vec::new();
            loop {
                let left = parts.left();
                let Some(part) = parts.next() else { break };
                prop_assert_eq!(parts.left() + 1, left);
                prop_assert!(part_size == 0 || part.end - part.start <= part_size);
                found.push(part);
            }
            prop_assert_eq!(parts.left(), 0);
            let bytes = |ranges: &[Range<u64>]| ranges.iter().cloned().flatten().collect::<Vec<_>>();
            prop_assert_eq!(bytes(&found), bytes(&gaps));
        }
    }
}

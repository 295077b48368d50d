//! Many ranges to few requests: which of the ranges that somebody asks for are fetched together.

use std::ops::Range;

/// The ranges of each key, in the order of keys and offsets, joined where at most `max_gap` bytes between two of
/// them are fetched for nothing. What is fetched together is at most `most` bytes, unless a single range is
/// larger; ranges that lie inside of others are always fetched with them. Ranges without bytes are fetched
/// not at all.
pub fn join_ranges<K: Ord>(ranges: &[(K, Range<u64>)], max_gap: u64, most: u64) -> JoinedRanges {
    let (mut order, empty): (Vec<usize>, Vec<usize>) =
        (0..ranges.len()).partition(|&index| !ranges[index].1.is_empty());
    order.sort_unstable_by(|&a, &b| {
        let ((key_a, a), (key_b, b)) = (&ranges[a], &ranges[b]);
        (key_a, a.start, a.end).cmp(&(key_b, b.start, b.end))
    });
    let mut requests: Vec<JoinedRange> = Vec::new();
    for (place, &index) in order.iter().enumerate() {
        let (key, range) = &ranges[index];
        let last = requests.last_mut().map(|last| (ranges[order[last.members.start]].0 == *key, last));
        let group = match last {
            Some((true, last)) => {
                let end = last.range.end.max(range.end);
                let is_near = range.start <= last.range.end.saturating_add(max_gap);
                if is_near && (end == last.range.end || end - last.range.start <= most) {
                    last.range.end = end;
                    last.members.end = place + 1;
                    continue;
                }
                last.group
            }
            Some((false, last)) => last.group + 1,
            None => 0,
        };
        requests.push(JoinedRange { range: range.clone(), group, members: place..place + 1 });
    }
    JoinedRanges { order, requests, empty }
}

/// What [`join_ranges`] made of some ranges; indexes are places in what it was given.
#[derive(Debug, Clone)]
pub struct JoinedRanges {
    order: Vec<usize>,
    requests: Vec<JoinedRange>,
    empty: Vec<usize>,
}

/// What is fetched together.
#[derive(Debug, Clone)]
pub struct JoinedRange {
    /// From the first byte to the last.
    pub range: Range<u64>,
    /// The same for all of one key, counted from 0.
    pub group: usize,
    members: Range<usize>,
}

impl JoinedRanges {
    /// What is to be fetched, by key and offset.
    pub fn requests(&self) -> &[JoinedRange] {
        &self.requests
    }

    /// The indexes of the ranges that request `request` brings, by offset; at least one.
    pub fn members(&self, request: usize) -> &[usize] {
        &self.order[self.requests[request].members.clone()]
    }

    /// How many keys have something to be fetched.
    pub fn groups(&self) -> usize {
        self.requests.last().map_or(0, |last| last.group + 1)
    }

    /// The indexes of the ranges without bytes.
    pub fn empty(&self) -> &[usize] {
        &self.empty
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_ranges() -> impl Strategy<Value = Vec<(u8, Range<u64>)>> {
        let length = prop_oneof![0u64..40, Just(0), Just(300)];
        let near = (0u8..3, 0u64..600, length).prop_map(|(key, start, length)| (key, start..start + length));
        let wild = (0u8..3, any::<u64>(), any::<u64>()).prop_map(|(key, start, end)| (key, start..end));
        proptest::collection::vec(prop_oneof![8 => near, 1 => wild], 0..40)
    }

    proptest! {
        #[test]
        fn every_asked_byte_is_fetched_and_joined_only_as_allowed(
            ranges in any_ranges(),
            max_gap in prop_oneof![0u64..50, Just(u64::MAX)],
            most in prop_oneof![0u64..200, Just(u64::MAX)],
        ) {
            let joined = join_ranges(&ranges, max_gap, most);
            let mut seen = joined.empty().to_vec();
            for &index in joined.empty() {
                prop_assert!(ranges[index].1.is_empty());
            }
            let mut before: Option<(u8, usize, Range<u64>)> = None;
            for (request, JoinedRange { range, group, .. }) in joined.requests().iter().enumerate() {
                let members = joined.members(request);
                let key = ranges[members[0]].0;
                let asked: Vec<_> = members.iter().map(|&index| ranges[index].1.clone()).collect();
                seen.extend(members);
                prop_assert!(members.iter().all(|&index| ranges[index].0 == key && !ranges[index].1.is_empty()));
                prop_assert_eq!(asked[0].start, range.start);
                prop_assert_eq!(asked.iter().map(|range| range.end).max(), Some(range.end));
                // No hole is wider than was allowed.
                let mut reached = range.start;
                for asked in &asked {
                    prop_assert!(asked.start >= range.start && asked.start.saturating_sub(reached) <= max_gap);
                    reached = reached.max(asked.end);
                }
                let largest = asked.iter().map(|range| range.end - range.start).max();
                prop_assert!(range.end - range.start <= most.max(largest.unwrap_or(0)));
                // And what could be fetched together is.
                if let Some((key_before, group_before, before)) = before {
                    prop_assert!((key_before, before.start) <= (key, range.start));
                    prop_assert_eq!(*group, group_before + usize::from(key_before != key));
                    if key_before == key {
                        let is_far = asked[0].start > before.end.saturating_add(max_gap);
                        prop_assert!(is_far || asked[0].end > before.end && asked[0].end - before.start > most);
                    }
                }
                before = Some((key, *group, range.clone()));
            }
            prop_assert_eq!(joined.groups(), before.map_or(0, |(_, group, _)| group + 1));
            seen.sort_unstable();
            prop_assert!(seen.into_iter().eq(0..ranges.len()), "each index once");
        }
    }

    #[test]
    fn the_gap_that_is_allowed_is_joined_and_one_byte_more_is_not() {
        let ranges = [("k", 100..110), ("k", 0..10), ("k", 10..20), ("k", 31..40), ("j", 0..1), ("k", 5..5)];
        let fetched = |max_gap, most| {
            let joined = join_ranges(&ranges, max_gap, most);
            assert_eq!(joined.empty(), [5]);
            joined.requests().iter().map(|request| request.range.clone()).collect::<Vec<_>>()
        };
        assert_eq!(fetched(0, 100), [0..1, 0..20, 31..40, 100..110]);
        assert_eq!(fetched(10, 100), [0..1, 0..20, 31..40, 100..110]);
        assert_eq!(fetched(11, 100), [0..1, 0..40, 100..110]);
        assert_eq!(fetched(1000, 100), [0..1, 0..40, 100..110]);
        assert_eq!(fetched(1000, 110), [0..1, 0..110]);
        assert_eq!(join_ranges(&ranges, 0, 100).members(1), [1, 2]);
    }
}

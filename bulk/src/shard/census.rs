//! How a source's objects and bytes lie over its keys, counted as they are found and in bounded memory.
//!
//! Neighbours are counted together, in blocks; where there are too many blocks, those that are next to each other are
//! merged. Batches may come in any order, as the pages of a parallel listing do. What comes of it balances shards and
//! no more: which shard a key belongs to is decided by the cuts, which leave no key out and count none twice.

/// What one object costs beside its bytes, in bytes: what a connection of 90 MB/s moves while a far store takes some ten
/// milliseconds to its first byte. Many small objects and few large ones so come to shards of similar length.
const ITEM: u64 = 1 << 20;

/// The most blocks that are kept; a few megabytes.
const MOST: usize = 1 << 16;

/// Objects and bytes by key.
#[derive(Debug)]
pub(super) struct Census {
    blocks: Vec<Block>,
    /// What neighbours that are merged may weigh together.
    grain: u64,
    most: usize,
}

/// Some neighbours.
#[derive(Debug, Clone)]
struct Block {
    /// The last of them.
    last: String,
    load: Load,
}

/// So much work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) items: u64,
    pub(super) bytes: u64,
}

impl Load {
    pub(super) fn of(bytes: u64) -> Load {
        Load { items: 1, bytes }
    }

    pub(super) fn weight(self) -> u64 {
        self.items.saturating_mul(ITEM).saturating_add(self.bytes)
    }

    pub(super) fn add(&mut self, more: Load) {
        self.items += more.items;
        self.bytes = self.bytes.saturating_add(more.bytes);
    }
}

/// One of the ranges that a census is cut into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cut {
    /// The range's last key; `None` of the last range, which is open.
    pub(super) until: Option<String>,
    pub(super) load: Load,
}

impl Census {
    pub(super) fn new() -> Census {
        Census::of_blocks(MOST)
    }

    fn of_blocks(most: usize) -> Census {
        Census { blocks: Vec::new(), grain: ITEM, most }
    }

    /// Counts objects that were found together, each with its bytes.
    pub(super) fn count<'a>(&mut self, found: impl IntoIterator<Item = (&'a str, u64)>) {
        // A block is only made of what came together: what lies between two batches may come yet.
        let mut open = false;
        for (key, bytes) in found {
            let load = Load::of(bytes);
            match self.blocks.last_mut() {
                Some(block)
                    if open
                        && block.last.as_str() < key
                        && block.load.weight().saturating_add(load.weight()) <= self.grain =>
                {
                    key.clone_into(&mut block.last);
                    block.load.add(load);
                }
                _ => {
                    self.blocks.push(Block { last: key.to_owned(), load });
                    open = true;
                }
            }
            if self.blocks.len() == self.most {
                self.condense();
                open = false;
            }
        }
    }

    /// Merges neighbours until half of the room is free.
    fn condense(&mut self) {
        self.sort();
        while self.blocks.len() > self.most / 2 {
            self.grain = self.grain.saturating_mul(2);
            let grain = self.grain;
            self.blocks.dedup_by(|next, block| {
                let merged = block.load.weight().saturating_add(next.load.weight()) <= grain;
                if merged {
                    std::mem::swap(&mut block.last, &mut next.last);
                    block.load.add(next.load);
                }
                merged
            });
        }
    }

    fn sort(&mut self) {
        self.blocks.sort_unstable_by(|a, b| a.last.cmp(&b.last));
    }

    /// Cuts the key space into at most so many ranges of about the same weight; into one where nothing was found.
    pub(super) fn cut(mut self, ranges: usize) -> Vec<Cut> {
        self.sort();
        let weights = self.blocks.iter().map(|block| u128::from(block.load.weight()));
        let (total, ranges) = (weights.sum::<u128>(), ranges.max(1) as u128);
        let mut cuts: Vec<Cut> = Vec::new();
        let (mut load, mut done) = (Load::default(), 0);
        let mut blocks = self.blocks.into_iter().peekable();
        while let Some(block) = blocks.next() {
            load.add(block.load);
            done += u128::from(block.load.weight());
            let due = done * ranges >= total * (cuts.len() as u128 + 1);
            // Of one key that was found twice, both go into one range.
            let splits = blocks.peek().is_some_and(|next| next.last > block.last);
            if due && splits {
                cuts.push(Cut { until: Some(block.last), load: std::mem::take(&mut load) });
            }
        }
        cuts.push(Cut { until: None, load });
        cuts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn census(most: usize, batches: &[Vec<(String, u64)>]) -> Census {
        let mut census = Census::of_blocks(most);
        for batch in batches {
            census.count(batch.iter().map(|(key, bytes)| (key.as_str(), *bytes)));
        }
        census
    }

    /// Which of the ranges hold the key.
    fn holders(cuts: &[Cut], key: &str) -> usize {
        let mut after: Option<&str> = None;
        let mut holders = 0;
        for cut in cuts {
            let until = cut.until.as_deref();
            holders += usize::from(after.is_none_or(|after| key > after) && until.is_none_or(|until| key <= until));
            after = until;
        }
        holders
    }

    #[test]
    fn equal_objects_are_shared_out_evenly() {
        let all: Vec<(String, u64)> = (0..1_000).map(|n| (format!("{n:04}"), 10)).collect();
        let cuts = census(MOST, &[all]).cut(8);
        assert_eq!(cuts.iter().map(|cut| cut.load.items).collect::<Vec<_>>(), [125; 8]);
        assert_eq!(cuts[0].until.as_deref(), Some("0124"));
    }

    #[test]
    fn bytes_count_as_well_as_objects() {
        let mut all: Vec<(String, u64)> = (0..1_000).map(|n| (format!("small/{n:04}"), 0)).collect();
        all.extend((0..10).map(|n| (format!("large/{n}"), 100 * ITEM)));
        all.sort();
        let items: Vec<u64> = census(MOST, &[all]).cut(2).iter().map(|cut| cut.load.items).collect();
        assert_eq!(items, [10, 1_000]);
    }

    #[test]
    fn nothing_and_one_object_make_one_range() {
        assert_eq!(Census::new().cut(4), [Cut { until: None, load: Load::default() }]);
        let one = census(MOST, &[vec![("a".to_owned(), 5)]]).cut(4);
        assert_eq!(one, [Cut { until: None, load: Load { items: 1, bytes: 5 } }]);
    }

    #[test]
    fn shards_stay_even_when_blocks_are_merged_and_pages_come_in_any_order() {
        let page = |n: usize| (0..100).map(|k| (format!("{:06}", n * 100 + k), 10)).collect::<Vec<_>>();
        // 7 is prime to 200: every page once, far from its neighbours.
        let pages: Vec<_> = (0..200).map(|n| page(n * 7 % 200)).collect();
        let census = census(256, &pages);
        assert!(census.blocks.len() < 256);
        for cut in census.cut(8) {
            assert!((2_200..=2_800).contains(&cut.load.items), "{cut:?}");
        }
    }

    proptest! {
        #[test]
        fn every_key_is_in_one_range_and_all_is_counted(
            batches in prop::collection::vec(prop::collection::vec(("[a-c]{0,4}", 0..u64::MAX / 4), 0..12), 0..12),
            most in 2..40_usize,
            ranges in 0..9_usize,
            strangers in prop::collection::vec("[a-d]{0,5}", 0..20),
        ) {
            let cuts = census(most, &batches).cut(ranges);
            let keys = batches.iter().flatten().map(|(key, _)| key).chain(&strangers);
            for key in keys {
                prop_assert_eq!(holders(&cuts, key), 1, "{} in {:?}", key, cuts);
            }
            let items: u64 = cuts.iter().map(|cut| cut.load.items).sum();
            prop_assert_eq!(items as usize, batches.iter().flatten().count());
            prop_assert!(cuts.len() <= ranges.max(1));
            let ends: Vec<_> = cuts.iter().filter_map(|cut| cut.until.as_ref()).collect();
            prop_assert_eq!(ends.len() + 1, cuts.len());
            prop_assert!(ends.is_sorted_by(|a, b| a < b));
        }

        #[test]
        fn no_range_is_heavier_than_its_share_and_one_object(
            sizes in prop::collection::vec(0..50 * ITEM, 1..200),
            ranges in 1..9_usize,
        ) {
            let all: Vec<_> = sizes.iter().enumerate().map(|(n, bytes)| (format!("{n:03}"), *bytes)).collect();
            let total: u64 = sizes.iter().map(|bytes| Load::of(*bytes).weight()).sum();
            let heaviest = sizes.iter().map(|bytes| Load::of(*bytes).weight()).max().unwrap();
            for cut in census(MOST, &[all]).cut(ranges) {
                prop_assert!(cut.load.weight() <= total / ranges as u64 + heaviest + 1);
            }
        }
    }
}

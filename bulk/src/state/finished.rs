//! Which items earlier runs finished: 80 bits of a keyed hash an item, in memory 8 bytes.
//!
//! Filled once, when a file is opened, by two passes over it: the first counts how many digests begin with each two
//! bytes, the second puts the rest of each into its place. So the peak is what stays: 8 bytes an item and 256 KiB. A job
//! that was not interrupted before keeps nothing here, however many items it finishes.
//!
//! Two of ten million items share a digest by chance once in some ten thousand million jobs (10^7 looked up among 10^7, of 2^80), and
//! on purpose never, as long as nobody reads the key.

use sha2::{Digest as _, Sha256};

use super::record::Digest;
use crate::entry::Entry;

/// Makes digests with one file's key.
#[derive(Clone)]
pub(super) struct Digester(Sha256);

impl Digester {
    pub(super) fn new(seed: &[u8]) -> Digester {
        Digester(Sha256::new_with_prefix(seed))
    }

    /// The digest of an item as it looks at its source: of another name, size, time, ETag or version it is another's.
    pub(super) fn digest(&self, item: &Entry) -> Digest {
        let mut hash = self.0.clone();
        let nanoseconds = item.modified.map(|modified| modified.as_nanosecond());
        let texts = [Some(&item.key), item.etag.as_ref(), item.version.as_ref()];
        let numbers = [item.size.map(i128::from), nanoseconds];
        // Each with its length or at a fixed length, so that no two items are the same bytes.
        for text in texts {
            hash.update(text.map_or(u64::MAX, |text| text.len() as u64).to_le_bytes());
            hash.update(text.map_or("", String::as_str));
        }
        for number in numbers {
            hash.update(number.unwrap_or(i128::MIN).to_le_bytes());
        }
        let mut digest = Digest::default();
        let whole = hash.finalize();
        digest.iter_mut().zip(whole).for_each(|(to, from)| *to = from);
        digest
    }
}

const BUCKETS: usize = 1 << 16;

fn split(digest: &Digest) -> (usize, u64) {
    let [a, b, rest @ ..] = *digest;
    (usize::from(u16::from_be_bytes([a, b])), u64::from_be_bytes(rest))
}

/// The first pass: how many there will be.
pub(super) struct Count {
    buckets: Vec<u32>,
}

impl Count {
    pub(super) fn new() -> Count {
        Count { buckets: vec![0; BUCKETS] }
    }

    pub(super) fn add(&mut self, digest: &Digest) {
        let bucket = &mut self.buckets[split(digest).0];
        *bucket = bucket.saturating_add(1);
    }

    /// Begins the second pass.
    pub(super) fn fill(self) -> Filling {
        let mut begins = Vec::with_capacity(BUCKETS + 1);
        let mut all = 0_usize;
        for count in self.buckets {
            begins.push(all);
            all += count as usize;
        }
        let next = begins.clone();
        begins.push(all);
        Filling { next, set: FinishedSet { begins, rest: vec![0; all] } }
    }
}

/// The second pass.
pub(super) struct Filling {
    next: Vec<usize>,
    set: FinishedSet,
}

impl Filling {
    pub(super) fn add(&mut self, digest: &Digest) {
        let (bucket, rest) = split(digest);
        // Beyond its bucket only if the file is another than in the first pass: the item is then not known.
        if self.next[bucket] < self.set.begins[bucket + 1] {
            self.set.rest[self.next[bucket]] = rest;
            self.next[bucket] += 1;
        }
    }

    pub(super) fn finish(mut self) -> FinishedSet {
        for ends in self.set.begins.windows(2) {
            self.set.rest[ends[0]..ends[1]].sort_unstable();
        }
        self.set
    }
}

/// The items that earlier runs finished.
#[derive(Default)]
pub(super) struct FinishedSet {
    /// Where each bucket begins, and the end of the last; empty when there is nothing at all.
    begins: Vec<usize>,
    rest: Vec<u64>,
}

impl FinishedSet {
    pub(super) fn contains(&self, digest: &Digest) -> bool {
        let (bucket, rest) = split(digest);
        match (self.begins.get(bucket), self.begins.get(bucket + 1)) {
            (Some(&begin), Some(&end)) => self.rest[begin..end].binary_search(&rest).is_ok(),
            _ => false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rest.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn set_of(digests: &[Digest]) -> FinishedSet {
        let mut count = Count::new();
        digests.iter().for_each(|digest| count.add(digest));
        let mut filling = count.fill();
        digests.iter().for_each(|digest| filling.add(digest));
        filling.finish()
    }

    #[test]
    fn whatever_is_another_makes_another_item() {
        let digester = Digester::new(b"seed");
        let plain = Entry {
            key: "k".to_owned(),
            size: Some(1),
            etag: Some("\"e\"".to_owned()),
            modified: Timestamp::from_second(5).ok(),
            ..Entry::default()
        };
        let variants = [
            digester.digest(&plain),
            digester.digest(&Entry { key: "k2".to_owned(), ..plain.clone() }),
            digester.digest(&Entry { size: Some(2), ..plain.clone() }),
            digester.digest(&Entry { size: None, ..plain.clone() }),
            digester.digest(&Entry { etag: None, ..plain.clone() }),
            digester.digest(&Entry { etag: Some(String::new()), ..plain.clone() }),
            digester.digest(&Entry { etag: None, version: plain.etag.clone(), ..plain.clone() }),
            digester.digest(&Entry { modified: None, ..plain.clone() }),
            digester.digest(&Entry { modified: Timestamp::from_second(6).ok(), ..plain.clone() }),
            Digester::new(b"other").digest(&plain),
        ];
        let distinct: HashSet<_> = variants.iter().collect();
        assert_eq!(distinct.len(), variants.len());
        assert_eq!(digester.digest(&plain), variants[0]);
    }

    proptest! {
        #[test]
        fn it_holds_what_was_added_and_nothing_else(
            // Two bytes that are often the same, so that buckets hold several.
            added in prop::collection::vec((0..3_u8, 0..3_u8, any::<[u8; 8]>()), 0..60),
            others in prop::collection::vec((0..3_u8, 0..3_u8, any::<[u8; 8]>()), 0..60),
        ) {
            let digest = |&(a, b, rest): &(u8, u8, [u8; 8])| {
                let mut digest = [a, b, 0, 0, 0, 0, 0, 0, 0, 0];
                digest[2..].copy_from_slice(&rest);
                digest
            };
            let added: Vec<Digest> = added.iter().map(digest).collect();
            let set = set_of(&added);
            prop_assert_eq!(set.len(), added.len());
            for candidate in added.iter().copied().chain(others.iter().map(digest)) {
                prop_assert_eq!(set.contains(&candidate), added.contains(&candidate));
            }
        }
    }
}

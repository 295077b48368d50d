//! What a listing in parallel needs to know of a page, whether it holds objects or versions.

use super::{ListedObject, ListedVersion, Page, VersionPage};

/// What the allocator keeps beside each text.
const ALLOCATION: usize = 16;

/// A page whose entries have keys, in the order in which the server sent them.
pub(crate) trait Listed: Default + Send + 'static {
    /// Whether several entries may have the same key.
    const REPEATS: bool;

    /// How many entries it holds.
    fn len(&self) -> usize;

    /// The key of an entry.
    fn key(&self, index: usize) -> &str;

    /// The version of an entry; empty for objects.
    fn version(&self, index: usize) -> &str;

    /// Drops all entries but the first `count`.
    fn keep_first(&mut self, count: usize);

    /// Drops the entries that are not wanted.
    fn retain(&mut self, wanted: impl FnMut(&str, &str) -> bool);

    /// Memory that it takes, in bytes, as near as is needed for a budget.
    fn bytes(&self) -> u64;

    /// Whether every key comes after the one before it, and the first after `floor`.
    fn ascends_from(&self, floor: &str, may_repeat_floor: bool) -> bool {
        let mut before = floor;
        (0..self.len()).all(|index| {
            let key = self.key(index);
            let may_repeat = if index == 0 { may_repeat_floor || floor.is_empty() } else { Self::REPEATS };
            let ascends = before < key || (may_repeat && before == key);
            before = key;
            ascends
        })
    }

    /// How many of its entries, which ascend, have keys up to and including `until`.
    fn up_to(&self, until: Option<&str>) -> usize {
        let Some(until) = until else { return self.len() };
        // Most pages end within their range.
        if self.len().checked_sub(1).is_none_or(|last| self.key(last) <= until) {
            return self.len();
        }
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.key(middle) <= until {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}

impl Listed for Page {
    const REPEATS: bool = false;

    fn len(&self) -> usize {
        self.objects.len()
    }

    fn key(&self, index: usize) -> &str {
        &self.objects[index].key
    }

    fn version(&self, _index: usize) -> &str {
        ""
    }

    fn keep_first(&mut self, count: usize) {
        self.objects.truncate(count);
    }

    fn retain(&mut self, mut wanted: impl FnMut(&str, &str) -> bool) {
        self.objects.retain(|object| wanted(&object.key, ""));
    }

    fn bytes(&self) -> u64 {
        let texts = |object: &ListedObject| {
            let etag = object.etag.as_ref().map_or(0, |etag| etag.capacity() + ALLOCATION);
            object.key.capacity() + ALLOCATION + etag
        };
        let entries = self.objects.capacity() * size_of::<ListedObject>();
        (entries + self.objects.iter().map(texts).sum::<usize>()) as u64
    }
}

impl Listed for VersionPage {
    const REPEATS: bool = true;

    fn len(&self) -> usize {
        self.versions.len()
    }

    fn key(&self, index: usize) -> &str {
        &self.versions[index].key
    }

    fn version(&self, index: usize) -> &str {
        &self.versions[index].version_id
    }

    fn keep_first(&mut self, count: usize) {
        self.versions.truncate(count);
    }

    fn retain(&mut self, mut wanted: impl FnMut(&str, &str) -> bool) {
        self.versions.retain(|version| wanted(&version.key, &version.version_id));
    }

    fn bytes(&self) -> u64 {
        let texts = |version: &ListedVersion| {
            let etag = version.etag.as_ref().map_or(0, |etag| etag.capacity() + ALLOCATION);
            version.key.capacity() + version.version_id.capacity() + 2 * ALLOCATION + etag
        };
        let entries = self.versions.capacity() * size_of::<ListedVersion>();
        (entries + self.versions.iter().map(texts).sum::<usize>()) as u64
    }
}

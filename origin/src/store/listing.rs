//! Pages of a listing: which keys and common prefixes come next, in UTF-8 byte order.
//!
//! Pure but for the [`KeySpace`] it reads, which seeks: a page costs its own length, not the bucket's, and a
//! common prefix is passed over in one seek however many keys are under it.

use std::ops::Bound;
use std::time::SystemTime;

use super::object::Object;

/// Keys in byte order, from any point on.
pub(crate) trait KeySpace {
    /// Every entry from `start` on.
    fn from<'a>(&'a self, start: Bound<&[u8]>) -> Box<dyn Iterator<Item = Entry> + 'a>;
}

/// One object in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) size: u64,
    pub(crate) etag: String,
    pub(crate) modified: SystemTime,
    /// Where it is not the standard one.
    pub(crate) storage_class: Option<String>,
}

impl Entry {
    pub(crate) fn of(key: &str, object: &Object) -> Self {
        Self {
            key: key.to_owned(),
            size: object.size,
            etag: object.etag.clone(),
            modified: object.modified,
            storage_class: object.head.storage_class.clone(),
        }
    }
}

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Just after this key.
    After(String),
    /// Past every key with this prefix.
    Past(String),
}

/// What one page is to hold.
#[derive(Clone, Debug)]
pub(crate) struct Query<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) delimiter: Option<&'a str>,
    pub(crate) start: Option<Start>,
    /// Keys and common prefixes together.
    pub(crate) limit: usize,
}

/// One page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    pub(crate) entries: Vec<Entry>,
    pub(crate) prefixes: Vec<String>,
    /// Where the next page begins, if there is one.
    pub(crate) next: Option<Start>,
}

impl Query<'_> {
    /// The common prefix that `key` is rolled up into.
    fn common_prefix<'k>(&self, key: &'k str) -> Option<&'k str> {
        let delimiter = self.delimiter.filter(|delimiter| !delimiter.is_empty())?;
        let found = key.get(self.prefix.len()..)?.find(delimiter)?;
        key.get(..self.prefix.len() + found + delimiter.len())
    }

    /// Where a listing begins that was told to start after `key`. S3 hands out common prefixes as markers,
    /// so a key that is one stands for all that was rolled up into it.
    pub(crate) fn start_after(&self, key: &str) -> Start {
        if key.starts_with(self.prefix) && self.common_prefix(key) == Some(key) {
            Start::Past(key.to_owned())
        } else {
            Start::After(key.to_owned())
        }
    }
}

/// Cuts one page.
pub(crate) fn page(space: &dyn KeySpace, query: &Query<'_>) -> Page {
    let mut page = Page::default();
    if query.limit == 0 {
        return page;
    }
    let mut last = None;
    let mut entries = space.from(first(query).as_ref().map(Vec::as_slice));
    while let Some(entry) = entries.next() {
        if !entry.key.starts_with(query.prefix) {
            break;
        }
        if page.entries.len() + page.prefixes.len() == query.limit {
            page.next = last;
            break;
        }
        if let Some(common) = query.common_prefix(&entry.key) {
            page.prefixes.push(common.to_owned());
            entries = space.from(Bound::Included(&past(common)));
            last = Some(Start::Past(common.to_owned()));
        } else {
            last = Some(Start::After(entry.key.clone()));
            page.entries.push(entry);
        }
    }
    page
}

fn first(query: &Query<'_>) -> Bound<Vec<u8>> {
    let prefix = query.prefix.as_bytes();
    match &query.start {
        Some(Start::After(key)) if key.as_bytes() >= prefix => Bound::Excluded(key.as_bytes().to_vec()),
        Some(Start::Past(common)) if common.as_bytes() >= prefix => Bound::Included(past(common)),
        _ => Bound::Included(prefix.to_vec()),
    }
}

/// The least byte string above every string with this prefix, which is not empty. No byte of UTF-8 is 0xff,
/// so the last one can always be raised.
fn past(prefix: &str) -> Vec<u8> {
    let mut bytes = prefix.as_bytes().to_vec();
    if let Some(last) = bytes.last_mut() {
        *last += 1;
    }
    bytes
}

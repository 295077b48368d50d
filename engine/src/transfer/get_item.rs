//! One of many objects that are read in one call: which, and which of its bytes.

use std::ops::RangeBounds;

use super::opening::Wanted;

/// What to read of one object among many: by itself all of it, in its newest version; see
/// [`GetMany::items`](crate::GetMany::items).
///
/// ```
/// use wirespeed::GetItem;
///
/// let items = [
///     GetItem::new("whole"),
///     GetItem::new("header").range(..1024),
///     GetItem::new("footer").suffix(64 << 10),
///     GetItem::new("old").version("3HL4kqtJlcpXroDTDmJ"),
/// ];
/// # assert_eq!(items[3].key(), "old");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetItem {
    pub(super) key: String,
    pub(super) wanted: Wanted,
    pub(super) version: Option<String>,
    /// Of the whole object, as far as the caller knows.
    pub(super) size: Option<u64>,
    pub(super) if_match: Option<String>,
}

impl GetItem {
    /// All bytes of the object of this key.
    pub fn new(key: impl Into<String>) -> GetItem {
        GetItem { key: key.into(), wanted: Wanted::All, version: None, size: None, if_match: None }
    }

    /// Only these bytes of it, as [`Get::range`](crate::Get::range).
    #[must_use]
    pub fn range(mut self, range: impl RangeBounds<u64>) -> GetItem {
        self.wanted = Wanted::range(range);
        self
    }

    /// Only its last `length` bytes, as [`Get::suffix`](crate::Get::suffix).
    #[must_use]
    pub fn suffix(mut self, length: u64) -> GetItem {
        self.wanted = Wanted::Suffix(length);
        self
    }

    /// This version of it. Reading by version is a permission of its own (`s3:GetObjectVersion`).
    #[must_use]
    pub fn version(mut self, id: impl Into<String>) -> GetItem {
        self.version = Some(id.into());
        self
    }

    /// The size of the whole object in bytes, as a listing tells it. It decides at once how the object is asked for
    /// and how much memory that takes; where the server then says another, the server's counts.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> GetItem {
        self.size = Some(bytes);
        self
    }

    /// Only while the object has this entity tag, as a listing tells it, so that what was listed is what is read;
    /// otherwise an error of kind [`Precondition`](crate::ErrorKind::Precondition). A weak tag counts for nothing,
    /// since no server compares by it.
    #[must_use]
    pub fn if_match(mut self, etag: impl Into<String>) -> GetItem {
        self.if_match = Some(etag.into());
        self
    }

    /// The key.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl From<String> for GetItem {
    fn from(key: String) -> GetItem {
        GetItem::new(key)
    }
}

impl From<&str> for GetItem {
    fn from(key: &str) -> GetItem {
        GetItem::new(key)
    }
}

//! What one side of a job has under one name.

use jiff::Timestamp;
use wirespeed::{ListedObject, ListedVersion, StorageClass};

/// An object or a file, as a listing, a walk or a list of names tells of it; what is not told is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// The name relative to its [`Place`](crate::Place), `/` between components: a key without the place's prefix, a path
    /// below its folder.
    pub key: String,
    /// In bytes.
    pub size: Option<u64>,
    /// When the object was written, or the file changed.
    pub modified: Option<Timestamp>,
    /// The object's entity tag with its quotes, as the server sent it.
    pub etag: Option<String>,
    /// The one version that is meant, not the newest.
    pub version: Option<String>,
    /// The object's storage class.
    pub storage_class: Option<StorageClass>,
    /// The file's mode, its type included, as `st_mode` has it.
    pub mode: Option<u32>,
    /// The name that it gets on the other side, where that is not `key`.
    pub target: Option<String>,
}

impl Entry {
    /// Of which nothing but the name is known.
    pub fn named(key: impl Into<String>) -> Entry {
        Entry { key: key.into(), ..Entry::default() }
    }

    /// The same under another name on the other side.
    pub fn to(mut self, target: impl Into<String>) -> Entry {
        self.target = Some(target.into());
        self
    }

    /// The name on the other side.
    pub fn target(&self) -> &str {
        self.target.as_deref().unwrap_or(&self.key)
    }

    /// From a listing of the keys that begin with a prefix of `prefix` bytes.
    pub(crate) fn listed(object: ListedObject, prefix: usize) -> Entry {
        let ListedObject { mut key, size, etag, last_modified, storage_class, .. } = object;
        key.drain(..prefix);
        Entry { key, size: Some(size), modified: last_modified, etag, storage_class, ..Entry::default() }
    }

    /// From a listing of versions; a delete marker has no size.
    pub(crate) fn version(version: ListedVersion, prefix: usize) -> Entry {
        let ListedVersion { mut key, version_id, is_delete_marker, size, etag, last_modified, storage_class, .. } =
            version;
        key.drain(..prefix);
        Entry {
            key,
            size: (!is_delete_marker).then_some(size),
            modified: last_modified,
            etag,
            version: Some(version_id),
            storage_class,
            ..Entry::default()
        }
    }

    /// Whether it is what consoles make for a folder: an empty object whose name ends in `/`, or is the prefix itself.
    pub fn is_folder_marker(&self) -> bool {
        self.size == Some(0) && (self.key.is_empty() || self.key.ends_with('/'))
    }
}

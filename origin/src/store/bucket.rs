//! One bucket: an index of objects in byte order, and the uploads in progress; or a synthetic one.

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::{Mutex, RwLock, RwLockReadGuard};

use super::Shelf;
use super::content::Content;
use super::directory::drop_files;
use super::listing::{Entry, KeySpace, Page, Query, page};
use super::object::{Object, now};
use super::synthetic::Synthetic;
use super::uploads::Uploads;

/// One bucket.
pub(crate) struct Bucket {
    pub(crate) name: String,
    pub(crate) created: SystemTime,
    pub(crate) kind: Kind,
}

/// What a bucket is made of.
pub(crate) enum Kind {
    Stored(Stored),
    Synthetic(Synthetic),
}

/// A bucket that objects can be put into.
pub(crate) struct Stored {
    name: String,
    pub(crate) shelf: Shelf,
    index: RwLock<Index>,
    pub(crate) uploads: Mutex<Uploads>,
}

type Index = BTreeMap<Key, Arc<Object>>;

/// A key that is ordered, and can be sought, by its bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(Box<str>);

impl std::borrow::Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Why a write was refused.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The condition does not hold for what is there (or not there).
    Condition,
    /// If-Match on a key that holds nothing.
    Missing,
    Io(io::Error),
}

/// What must hold of the object already under a key for a write to go ahead; checked and written as one.
#[derive(Clone, Debug, Default)]
pub(crate) enum Condition {
    #[default]
    None,
    /// There is no object.
    Absent,
    /// There is one.
    Present,
    /// There is one with this ETag.
    Etag(String),
}

impl Condition {
    fn check(&self, present: Option<&Arc<Object>>) -> Result<(), Refusal> {
        match (self, present) {
            (Self::None, _) | (Self::Absent, None) | (Self::Present, Some(_)) => Ok(()),
            (Self::Absent, Some(_)) => Err(Refusal::Condition),
            (Self::Present | Self::Etag(_), None) => Err(Refusal::Missing),
            (Self::Etag(etag), Some(object)) if *etag == object.etag => Ok(()),
            (Self::Etag(_), Some(_)) => Err(Refusal::Condition),
        }
    }
}

impl Bucket {
    pub(crate) fn stored(name: &str, shelf: Shelf) -> Self {
        let stored = Stored::with_objects(name, shelf, Vec::new());
        Self { name: name.to_owned(), created: now(), kind: Kind::Stored(stored) }
    }

    pub(crate) fn synthetic(name: &str, synthetic: Synthetic) -> Self {
        Self { name: name.to_owned(), created: now(), kind: Kind::Synthetic(synthetic) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match &self.kind {
            Kind::Stored(stored) => stored.index.read().is_empty(),
            Kind::Synthetic(synthetic) => synthetic.from(Bound::Unbounded).next().is_none(),
        }
    }

    pub(crate) fn find(&self, key: &str) -> Option<Arc<Object>> {
        match &self.kind {
            Kind::Stored(stored) => stored.index.read().get(key.as_bytes()).cloned(),
            Kind::Synthetic(synthetic) => synthetic.find(key),
        }
    }

    pub(crate) fn page(&self, query: &Query<'_>) -> Page {
        match &self.kind {
            Kind::Stored(stored) => page(&IndexView(stored.index.read()), query),
            Kind::Synthetic(synthetic) => page(synthetic, query),
        }
    }
}

impl Stored {
    pub(crate) fn with_objects(name: &str, shelf: Shelf, objects: Vec<(String, Arc<Object>)>) -> Self {
        let index = objects.into_iter().map(|(key, object)| (Key(key.into()), object)).collect();
        Self { name: name.to_owned(), shelf, index: RwLock::new(index), uploads: Mutex::default() }
    }

    /// Puts `object` under `key` if the condition holds, and makes it permanent first where the room is a
    /// directory. What to do with the bytes of an object that is refused is the caller's to say.
    pub(crate) fn insert(&self, key: &str, object: Object, condition: &Condition) -> Result<Arc<Object>, Refusal> {
        let mut index = self.index.write();
        condition.check(index.get(key.as_bytes()))?;
        let object = match &self.shelf {
            Shelf::Directory(directory) => directory.commit(&self.name, key, object).map_err(Refusal::Io)?,
            Shelf::Memory | Shelf::Discard => object,
        };
        let object = Arc::new(object);
        let replaced = index.insert(Key(key.into()), object.clone());
        drop(index);
        if let Some(replaced) = replaced {
            drop_files(&replaced.content);
        }
        Ok(object)
    }

    /// Removes every object and every upload.
    pub(crate) fn clear(&self) {
        let keys: Vec<_> = self.index.read().keys().map(|key| key.0.to_string()).collect();
        for key in keys {
            // What can't be removed from a directory stays, as any refused removal.
            if self.remove(&key, &Condition::None).is_err() {
                tracing::warn!(%key, "could not be removed");
            }
        }
        self.uploads.lock().abort_all();
    }

    /// Removes what is under `key` if the condition holds. Nothing there is no error, as in S3.
    pub(crate) fn remove(&self, key: &str, condition: &Condition) -> Result<(), Refusal> {
        let mut index = self.index.write();
        let present = index.get(key.as_bytes());
        condition.check(present)?;
        if let (Shelf::Directory(directory), Some(object)) = (&self.shelf, present) {
            directory.forget(&self.name, key, object).map_err(Refusal::Io)?;
        }
        let removed = index.remove(key.as_bytes());
        drop(index);
        // The bytes of a large object take a while to free: not under the lock.
        drop(removed);
        Ok(())
    }
}

struct IndexView<'a>(RwLockReadGuard<'a, Index>);

impl KeySpace for IndexView<'_> {
    fn from<'a>(&'a self, start: Bound<&[u8]>) -> Box<dyn Iterator<Item = Entry> + 'a> {
        Box::new(self.0.range::<[u8], _>((start, Bound::Unbounded)).map(|(key, object)| Entry {
            key: key.0.to_string(),
            size: object.size,
            etag: object.etag.clone(),
            modified: object.modified,
        }))
    }
}

/// Joins the parts of an upload into one object's content: no byte is copied.
pub(crate) fn join<'a>(parts: impl Iterator<Item = &'a Content>) -> Content {
    let mut frames = Vec::new();
    let mut segments = Vec::new();
    let mut discarded = false;
    for part in parts {
        match part {
            Content::Memory(chunks) => frames.extend(chunks.frames()),
            Content::Files(files) => segments.extend(files.iter().cloned()),
            Content::Discarded | Content::Synthetic { .. } => discarded = true,
        }
    }
    if discarded {
        Content::Discarded
    } else if segments.is_empty() {
        Content::Memory(super::content::Chunks::new(frames))
    } else {
        Content::Files(segments.into())
    }
}

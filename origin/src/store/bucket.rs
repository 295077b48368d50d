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
use super::versions::{Found, Listed, NULL, Version, Versioning, Versions};

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

/// What each key shows, and the versions behind it.
#[derive(Default)]
struct Index {
    current: BTreeMap<Key, Arc<Object>>,
    versions: Versions,
}

/// A key that is ordered, and can be sought, by its bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(pub(crate) Box<str>);

/// What a removal did.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Removed {
    /// The version that was removed, or the delete marker that was made.
    pub(crate) version: Option<String>,
    /// Whether that is a delete marker.
    pub(crate) marker: bool,
}

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
            Kind::Stored(stored) => {
                let index = stored.index.read();
                index.current.is_empty() && index.versions.is_empty()
            }
            Kind::Synthetic(synthetic) => synthetic.from(Bound::Unbounded).next().is_none(),
        }
    }

    pub(crate) fn find(&self, key: &str) -> Option<Arc<Object>> {
        match &self.kind {
            Kind::Stored(stored) => stored.index.read().current.get(key.as_bytes()).cloned(),
            Kind::Synthetic(synthetic) => synthetic.find(key),
        }
    }

    /// What is under a key, or is this version of it.
    pub(crate) fn find_version(&self, key: &str, version: Option<&str>) -> Found {
        let current = |object: Option<Arc<Object>>| object.map_or(Found::Nothing, Found::Object);
        match (&self.kind, version) {
            (Kind::Stored(stored), Some(id)) => {
                let index = stored.index.read();
                if index.versions.versioning == Versioning::Never && id == NULL {
                    return current(index.current.get(key.as_bytes()).cloned());
                }
                index.versions.find(key, id)
            }
            (Kind::Stored(stored), None) => {
                let index = stored.index.read();
                match (index.current.get(key.as_bytes()), index.versions.latest(key)) {
                    (Some(object), _) => Found::Object(object.clone()),
                    (None, Some(marker)) => Found::Marker(marker.id.clone()),
                    (None, None) => Found::Nothing,
                }
            }
            (Kind::Synthetic(synthetic), None | Some(NULL)) => current(synthetic.find(key)),
            (Kind::Synthetic(_), Some(_)) => Found::Nothing,
        }
    }

    /// Whether it keeps versions.
    pub(crate) fn versioning(&self) -> Versioning {
        match &self.kind {
            Kind::Stored(stored) => stored.index.read().versions.versioning,
            Kind::Synthetic(_) => Versioning::Never,
        }
    }

    /// Calls `visit` with the versions of each key from this one on, newest first, until it returns false.
    pub(crate) fn each_version(&self, from: &str, mut visit: impl FnMut(Vec<Listed>) -> bool) {
        let only = |entry: Entry| vec![Listed { entry, id: NULL.to_owned(), is_latest: true, is_marker: false }];
        let start = Bound::Included(from.as_bytes());
        let mut visit_all = |versions: &mut dyn Iterator<Item = Vec<Listed>>| {
            for listed in versions {
                if !visit(listed) {
                    return;
                }
            }
        };
        match &self.kind {
            Kind::Synthetic(synthetic) => visit_all(&mut synthetic.from(start).map(only)),
            Kind::Stored(stored) => {
                let index = stored.index.read();
                match index.versions.versioning {
                    Versioning::Never => visit_all(&mut IndexView(index).from(start).map(only)),
                    _ => visit_all(&mut index.versions.list(from)),
                }
            }
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
        let current = objects.into_iter().map(|(key, object)| (Key(key.into()), object)).collect();
        let index = Index { current, versions: Versions::default() };
        Self { name: name.to_owned(), shelf, index: RwLock::new(index), uploads: Mutex::default() }
    }

    /// Puts `object` under `key` if the condition holds, and makes it permanent first where the room is a
    /// directory. What to do with the bytes of an object that is refused is the caller's to say.
    pub(crate) fn insert(&self, key: &str, object: Object, condition: &Condition) -> Result<Arc<Object>, Refusal> {
        let mut index = self.index.write();
        condition.check(index.current.get(key.as_bytes()))?;
        let mut object = self.commit(key, object)?;
        object.version = index.versions.next_id();
        let object = Arc::new(object);
        let replaced = index.current.insert(Key(key.into()), object.clone());
        let version = object.version.clone();
        let kept = version.is_some();
        if let Some(id) = version {
            drop_version(index.versions.push(key, id, Some(object.clone())).as_ref());
        }
        drop(index);
        if let Some(replaced) = replaced.filter(|_| !kept) {
            drop_files(&replaced.content);
        }
        Ok(object)
    }

    /// Changes what is told of an object, or of one version of it; its bytes stay.
    pub(crate) fn alter(
        &self,
        key: &str,
        object: &Arc<Object>,
        change: impl FnOnce(&mut Object),
    ) -> Result<Arc<Object>, Refusal> {
        let mut index = self.index.write();
        let mut altered = (**object).clone();
        change(&mut altered);
        let is_current = index.current.get(key.as_bytes()).is_some_and(|current| Arc::ptr_eq(current, object));
        if is_current {
            altered = self.commit(key, altered)?;
        }
        let altered = Arc::new(altered);
        index.versions.alter(key, &altered);
        if is_current {
            index.current.insert(Key(key.into()), altered.clone());
        }
        Ok(altered)
    }

    fn commit(&self, key: &str, object: Object) -> Result<Object, Refusal> {
        match &self.shelf {
            Shelf::Directory(directory) => directory.commit(&self.name, key, object).map_err(Refusal::Io),
            Shelf::Memory | Shelf::Discard => Ok(object),
        }
    }

    /// Begins to keep versions, or ceases to.
    pub(crate) fn keep_versions(&self, enabled: bool) {
        let mut index = self.index.write();
        let Index { current, versions } = &mut *index;
        if versions.versioning == Versioning::Never {
            for (key, object) in current {
                *object = Arc::new(Object { version: Some(NULL.to_owned()), ..(**object).clone() });
                versions.push(&key.0, NULL.to_owned(), Some(object.clone()));
            }
        }
        versions.versioning = if enabled { Versioning::Enabled } else { Versioning::Suspended };
    }

    /// Removes every object, every version and every upload.
    pub(crate) fn clear(&self) {
        let keys: Vec<_> = self.index.read().current.keys().map(|key| key.0.to_string()).collect();
        for key in keys {
            // What can't be removed from a directory stays, as any refused removal.
            if self.remove(&key, &Condition::None, None).is_err() {
                tracing::warn!(%key, "could not be removed");
            }
        }
        self.index.write().versions.clear();
        self.uploads.lock().abort_all();
    }

    /// Removes what is under `key`, or one version of it, if the condition holds. Nothing there is no error, as in S3.
    pub(crate) fn remove(&self, key: &str, condition: &Condition, version: Option<&str>) -> Result<Removed, Refusal> {
        let mut index = self.index.write();
        condition.check(index.current.get(key.as_bytes()))?;
        if index.versions.versioning != Versioning::Never {
            return self.remove_version(&mut index, key, version).map_err(Refusal::Io);
        }
        if version.is_some_and(|id| id != NULL) {
            return Ok(Removed::default());
        }
        if let (Shelf::Directory(directory), Some(object)) = (&self.shelf, index.current.get(key.as_bytes())) {
            directory.forget(&self.name, key, object).map_err(Refusal::Io)?;
        }
        let removed = index.current.remove(key.as_bytes());
        drop(index);
        // The bytes of a large object take a while to free: not under the lock.
        drop(removed);
        Ok(Removed { version: version.map(str::to_owned), marker: false })
    }

    /// Where versions are kept: marks a key as deleted, or removes one version for good.
    fn remove_version(&self, index: &mut Index, key: &str, version: Option<&str>) -> io::Result<Removed> {
        let removed = match version {
            None => {
                let id = index.versions.next_id();
                let replaced = id.as_ref().and_then(|id| index.versions.push(key, id.clone(), None));
                drop_version(replaced.as_ref());
                Removed { version: id, marker: true }
            }
            Some(id) => {
                let removed = index.versions.remove(key, id);
                drop_version(removed.as_ref());
                let marker = removed.is_some_and(|removed| removed.object.is_none());
                Removed { version: Some(id.to_owned()), marker }
            }
        };
        let shown = index.current.get(key.as_bytes()).cloned();
        let latest = index.versions.latest(key).and_then(|latest| latest.object.clone());
        match (shown, latest) {
            (None, None) => {}
            (Some(shown), Some(latest)) if Arc::ptr_eq(&shown, &latest) => {}
            (_, Some(latest)) => {
                let object = match &self.shelf {
                    Shelf::Directory(directory) => Arc::new(directory.commit(&self.name, key, (*latest).clone())?),
                    Shelf::Memory | Shelf::Discard => latest,
                };
                index.versions.alter(key, &object);
                index.current.insert(Key(key.into()), object);
            }
            (Some(_), None) => {
                if let Shelf::Directory(directory) = &self.shelf {
                    directory.unlist(&self.name, key)?;
                }
                index.current.remove(key.as_bytes());
            }
        }
        Ok(removed)
    }
}

/// Removes the files of a version that is gone for good.
fn drop_version(version: Option<&Version>) {
    if let Some(object) = version.and_then(|version| version.object.as_ref()) {
        drop_files(&object.content);
    }
}

struct IndexView<'a>(RwLockReadGuard<'a, Index>);

impl KeySpace for IndexView<'_> {
    fn from<'a>(&'a self, start: Bound<&[u8]>) -> Box<dyn Iterator<Item = Entry> + 'a> {
        let later = self.0.current.range::<[u8], _>((start, Bound::Unbounded));
        Box::new(later.map(|(key, object)| Entry::of(&key.0, object)))
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

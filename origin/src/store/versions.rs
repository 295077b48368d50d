//! The versions of a bucket's objects, once it keeps them.
//!
//! Owns what came before, and the delete markers; the object that a key shows is also in the bucket's index, which reads
//! look at. A bucket that never kept versions has nothing here.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use super::bucket::Key;
use super::listing::Entry;
use super::object::{Object, now};

/// The id of a version made while a bucket keeps none.
pub(crate) const NULL: &str = "null";

/// Whether a bucket keeps versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Versioning {
    #[default]
    Never,
    Enabled,
    Suspended,
}

/// One version: an object, or a delete marker.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) id: String,
    pub(crate) modified: SystemTime,
    pub(crate) object: Option<Arc<Object>>,
}

/// What is found under a key, or under a key and a version.
pub(crate) enum Found {
    Object(Arc<Object>),
    /// A delete marker with this id.
    Marker(String),
    Nothing,
}

/// One line of a listing of versions.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) entry: Entry,
    pub(crate) id: String,
    pub(crate) is_latest: bool,
    pub(crate) is_marker: bool,
}

/// Every version of every key of a bucket.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    pub(crate) versioning: Versioning,
    /// Oldest first.
    keys: BTreeMap<Key, Vec<Version>>,
}

impl Versions {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.keys.clear();
    }

    /// The id of the next version, where the bucket keeps any.
    pub(crate) fn next_id(&self) -> Option<String> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        match self.versioning {
            Versioning::Never => None,
            Versioning::Suspended => Some(NULL.to_owned()),
            Versioning::Enabled => {
                let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos() as u64;
                Some(format!("v{since:016x}{:08x}", NEXT.fetch_add(1, Ordering::Relaxed)))
            }
        }
    }

    /// Adds the latest version. A null version takes the place of an earlier one, which is returned.
    pub(crate) fn push(&mut self, key: &str, id: String, object: Option<Arc<Object>>) -> Option<Version> {
        let versions = self.keys.entry(Key(key.into())).or_default();
        let null = versions.iter().position(|version| id == NULL && version.id == NULL);
        let replaced = null.map(|at| versions.remove(at));
        versions.push(Version { id, modified: object.as_ref().map_or_else(now, |object| object.modified), object });
        replaced
    }

    /// Puts another object in the place of a version's.
    pub(crate) fn alter(&mut self, key: &str, object: &Arc<Object>) {
        let versions = self.keys.get_mut(key.as_bytes()).into_iter().flatten();
        for version in versions.filter(|version| Some(&version.id) == object.version.as_ref()) {
            version.object = Some(object.clone());
        }
    }

    /// Takes a version out for good.
    pub(crate) fn remove(&mut self, key: &str, id: &str) -> Option<Version> {
        let versions = self.keys.get_mut(key.as_bytes())?;
        let at = versions.iter().position(|version| version.id == id)?;
        let removed = versions.remove(at);
        if versions.is_empty() {
            self.keys.remove(key.as_bytes());
        }
        Some(removed)
    }

    pub(crate) fn latest(&self, key: &str) -> Option<&Version> {
        self.keys.get(key.as_bytes())?.last()
    }

    pub(crate) fn find(&self, key: &str, id: &str) -> Found {
        let versions = self.keys.get(key.as_bytes());
        match versions.and_then(|versions| versions.iter().find(|version| version.id == id)) {
            Some(Version { object: Some(object), .. }) => Found::Object(object.clone()),
            Some(version) => Found::Marker(version.id.clone()),
            None => Found::Nothing,
        }
    }

    /// Keys in byte order from this one on, and of each the versions, newest first.
    pub(crate) fn list<'a>(&'a self, from: &str) -> impl Iterator<Item = Vec<Listed>> + 'a {
        let later = self.keys.range::<[u8], _>((Bound::Included(from.as_bytes()), Bound::Unbounded));
        later.map(|(key, versions)| {
            let newest_first = versions.iter().rev().enumerate();
            let listed = newest_first.map(|(index, version)| Listed {
                entry: match &version.object {
                    Some(object) => Entry::of(&key.0, object),
                    None => Entry { modified: version.modified, ..Entry::of(&key.0, &Object::default()) },
                },
                id: version.id.clone(),
                is_latest: index == 0,
                is_marker: version.object.is_none(),
            });
            listed.collect()
        })
    }
}

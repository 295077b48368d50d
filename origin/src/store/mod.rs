//! Where buckets and objects live.
//!
//! Owns every object's bytes, metadata and place in the listing, and the multipart uploads in
//! progress. Refuses to know about HTTP or XML: it speaks in keys, heads and streams of [`bytes::Bytes`].
//!
//! How bytes pass: an upload is an [`intake::Intake`] that hashes each frame and hands it, uncopied
//! where it is large enough, to the room that keeps it ([`memory`] or [`directory`]); a download is a
//! [`content::Reader`] that hands out slices of what is kept. Synthetic buckets ([`synthetic`]) keep
//! nothing: slices of one precomputed table are their bytes, arithmetic is their listing.

pub(crate) mod bucket;
pub(crate) mod content;
pub(crate) mod directory;
pub(crate) mod intake;
pub(crate) mod listing;
pub(crate) mod memory;
pub(crate) mod object;
pub(crate) mod synthetic;
pub(crate) mod uploads;
pub(crate) mod versions;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::RwLock;

use bucket::{Bucket, Kind, Stored};
use directory::Directory;
use synthetic::Synthetic;

/// Where the bytes of uploads go.
#[derive(Clone, Debug)]
pub(crate) enum Shelf {
    /// Kept in memory, as the frames that arrived.
    Memory,
    /// Kept in files.
    Directory(Arc<Directory>),
    /// Hashed, counted and dropped: for measuring uploads without measuring memory.
    Discard,
}

/// All buckets of one server.
pub(crate) struct Store {
    shelf: Shelf,
    buckets: RwLock<BTreeMap<String, Arc<Bucket>>>,
}

/// Why a bucket could not be made or removed.
pub(crate) enum BucketRefusal {
    Exists,
    Missing,
    NotEmpty,
    Io(io::Error),
}

impl From<io::Error> for BucketRefusal {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Store {
    /// A store whose uploads go to memory.
    pub(crate) fn in_memory() -> Self {
        Self { shelf: Shelf::Memory, buckets: RwLock::default() }
    }

    /// A store whose uploads go to files; loads what an earlier run left there.
    pub(crate) fn in_directory(directory: Directory) -> io::Result<Self> {
        let directory = Arc::new(directory);
        let shelf = Shelf::Directory(directory.clone());
        let mut buckets = BTreeMap::new();
        for (name, created, objects) in directory.load()? {
            let stored = Stored::with_objects(&name, shelf.clone(), objects);
            buckets.insert(name.clone(), Arc::new(Bucket { name, created, kind: Kind::Stored(stored) }));
        }
        Ok(Self { shelf, buckets: RwLock::new(buckets) })
    }

    /// Creates an ordinary bucket.
    pub(crate) fn create(&self, name: &str) -> Result<(), BucketRefusal> {
        let mut buckets = self.buckets.write();
        if buckets.contains_key(name) {
            return Err(BucketRefusal::Exists);
        }
        if let Shelf::Directory(directory) = &self.shelf {
            directory.create_bucket(name)?;
        }
        let bucket = Bucket::stored(name, self.shelf.clone());
        buckets.insert(name.to_owned(), Arc::new(bucket));
        Ok(())
    }

    /// Creates a bucket that hashes and counts uploads and drops their bytes.
    pub(crate) fn create_discarding(&self, name: &str) -> Result<(), BucketRefusal> {
        self.add(Bucket::stored(name, Shelf::Discard))
    }

    /// Creates a bucket whose objects are computed.
    pub(crate) fn create_synthetic(&self, name: &str, synthetic: Synthetic) -> Result<(), BucketRefusal> {
        self.add(Bucket::synthetic(name, synthetic))
    }

    fn add(&self, bucket: Bucket) -> Result<(), BucketRefusal> {
        let mut buckets = self.buckets.write();
        if buckets.contains_key(&bucket.name) {
            return Err(BucketRefusal::Exists);
        }
        buckets.insert(bucket.name.clone(), Arc::new(bucket));
        Ok(())
    }

    /// Removes an empty bucket, and any multipart uploads still open in it.
    pub(crate) fn remove(&self, name: &str) -> Result<(), BucketRefusal> {
        let mut buckets = self.buckets.write();
        let bucket = buckets.get(name).ok_or(BucketRefusal::Missing)?;
        if !bucket.is_empty() {
            return Err(BucketRefusal::NotEmpty);
        }
        if let Shelf::Directory(directory) = &self.shelf {
            directory.remove_bucket(name)?;
        }
        buckets.remove(name);
        Ok(())
    }

    /// The bucket of that name.
    pub(crate) fn bucket(&self, name: &str) -> Option<Arc<Bucket>> {
        self.buckets.read().get(name).cloned()
    }

    /// Every bucket, by name.
    pub(crate) fn buckets(&self) -> Vec<Arc<Bucket>> {
        self.buckets.read().values().cloned().collect()
    }
}

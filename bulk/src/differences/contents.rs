//! Whether two things of the same size have the same bytes, asked for as little as will tell.
//!
//! A small file is first held against the ETag that the listing told: where it fits, nothing is asked. Then a HEAD for the
//! object's checksum, and a reading of the file. Two objects are two HEADs, or none where their ETags are one. What still
//! cannot be told takes the bytes: they are read, to be compared and dropped, only where the caller says so.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future;
use tokio::sync::Semaphore;
use wirespeed::{ErrorKind, ObjectInfo};

use crate::entry::Entry;
use crate::failure::Failure;
use crate::fingerprint::{Fingerprint, Reading};
use crate::place::{Bucket, Location, Place};

/// Up to here the MD5 of a file is cheaper than a request, in bytes: at some 0.6 GB/s it takes under half a millisecond.
const CHEAP_MD5: u64 = 256 << 10;

/// Files that are read at once. One core sums faster than most disks read.
const READERS: usize = 4;

/// What a comparison came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    Same,
    Different,
    /// Nothing that is told says what the bytes are, for this reason.
    Unknown(&'static str),
}

impl Contents {
    fn of(agree: Option<bool>, why: &'static str) -> Contents {
        match agree {
            Some(true) => Contents::Same,
            Some(false) => Contents::Different,
            None => Contents::Unknown(why),
        }
    }
}

/// Compares what two places have. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Comparing {
    left: Place,
    right: Place,
    /// Read what cannot be told otherwise.
    download: bool,
    readers: Arc<Semaphore>,
}

const NO_CHECKSUM: &str = "the object has no checksum of the whole, and its ETag fits no usual size of parts";
const NOTHING_TOLD: &str = "the object has neither a checksum of the whole nor an ETag that is one";
const NOT_COMPARABLE: &str = "the two objects have checksums of different kinds, or were written in different parts";

impl Comparing {
    pub(crate) fn new(left: &Place, right: &Place, download: bool) -> Comparing {
        Comparing { left: left.clone(), right: right.clone(), download, readers: Arc::new(Semaphore::new(READERS)) }
    }

    /// Whether the two, of one size, have the same bytes.
    ///
    /// # Errors
    /// What hinders the comparison. An object that is gone meanwhile is one of them.
    pub(crate) async fn compare(&self, left: &Entry, right: &Entry) -> Result<Contents, Failure> {
        // A size that a list of names did not tell is asked for by what follows.
        if left.size.is_some() && right.size.is_some() && left.size != right.size {
            return Ok(Contents::Different);
        }
        let told = match (&self.left, &self.right) {
            (Place::Bucket(bucket), Place::Folder(_)) => self.object_and_file(bucket, left, &self.right, right).await?,
            (Place::Folder(_), Place::Bucket(bucket)) => self.object_and_file(bucket, right, &self.left, left).await?,
            (Place::Bucket(one), Place::Bucket(other)) => objects(one, left, other, right).await?,
            (Place::Folder(_), Place::Folder(_)) => {
                let both =
                    future::try_join(self.fingerprint(&self.left, left), self.fingerprint(&self.right, right)).await?;
                Contents::of(both.0.agrees_with(&both.1), NOT_COMPARABLE)
            }
            (Place::Nowhere, _) | (_, Place::Nowhere) => {
                return Err(Failure::Refused("a sink has nothing to compare; name a folder or a bucket".to_owned()));
            }
        };
        match told {
            Contents::Unknown(why) if self.download => {
                let both =
                    future::try_join(self.fingerprint(&self.left, left), self.fingerprint(&self.right, right)).await?;
                Ok(Contents::of(both.0.agrees_with(&both.1), why))
            }
            told => Ok(told),
        }
    }

    async fn object_and_file(
        &self,
        bucket: &Bucket,
        object: &Entry,
        folder: &Place,
        file: &Entry,
    ) -> Result<Contents, Failure> {
        let (Some(path), Some(size)) = (path_of(folder, file), file.size) else {
            return Ok(Contents::Unknown(NOTHING_TOLD));
        };
        let of_listing = object.etag.as_deref().and_then(Fingerprint::of_etag).filter(Fingerprint::is_md5);
        if let Some(md5) = of_listing.filter(|_| size <= CHEAP_MD5) {
            let _reader = self.reader().await;
            // Another MD5 may be none: whether a key of KMS is in play the listing does not tell.
            if md5.is_of_file(&path, size).await? == Some(true) {
                return Ok(Contents::Same);
            }
        }
        let info = ask(bucket, object).await?;
        if info.size != size {
            return Ok(Contents::Different);
        }
        let Some(fingerprint) = Fingerprint::of_object(&info) else { return Ok(Contents::Unknown(NOTHING_TOLD)) };
        let _reader = self.reader().await;
        Ok(Contents::of(fingerprint.is_of_file(&path, size).await?, NO_CHECKSUM))
    }

    /// What one side's bytes are, by reading them.
    async fn fingerprint(&self, place: &Place, entry: &Entry) -> Result<Fingerprint, Failure> {
        if let (Some(path), Some(size)) = (path_of(place, entry), entry.size) {
            let _reader = self.reader().await;
            return Fingerprint::of_file(&path, size).await;
        }
        let Place::Bucket(bucket) = place else {
            return Err(Failure::Refused(format!("`{}` has no size; compare it when it is listed", entry.key)));
        };
        let mut get = bucket.asked(bucket.client.get(&bucket.name, bucket.key_of(&entry.key)));
        if let Some(key) = &bucket.customer_key {
            get = get.sse_customer_key(key.clone());
        }
        if let Some(version) = &entry.version {
            get = get.version(version);
        }
        let mut stream = get.stream().await?;
        let mut reading = Reading::new();
        while let Some(piece) = stream.next().await {
            reading.update(&piece?);
        }
        Ok(reading.finish())
    }

    async fn reader(&self) -> Option<tokio::sync::SemaphorePermit<'_>> {
        // Never closed.
        self.readers.acquire().await.ok()
    }
}

/// Where a file is.
fn path_of(place: &Place, entry: &Entry) -> Option<PathBuf> {
    match place.locate(&entry.key)? {
        Location::File(path) => Some(path),
        Location::Object { .. } => None,
    }
}

async fn objects(one: &Bucket, a: &Entry, other: &Bucket, b: &Entry) -> Result<Contents, Failure> {
    let listed = |entry: &Entry| entry.etag.as_deref().and_then(Fingerprint::of_etag);
    if let (Some(a), Some(b)) = (listed(a), listed(b))
        && a == b
    {
        return Ok(Contents::Same);
    }
    let (a, b) = future::try_join(ask(one, a), ask(other, b)).await?;
    if a.size != b.size {
        return Ok(Contents::Different);
    }
    match (Fingerprint::of_object(&a), Fingerprint::of_object(&b)) {
        (Some(a), Some(b)) => Ok(Contents::of(a.agrees_with(&b), NOT_COMPARABLE)),
        _ => Ok(Contents::Unknown(NOTHING_TOLD)),
    }
}

/// What the server says of an object, its checksum included. Where that is a permission that is missing, without.
async fn ask(bucket: &Bucket, entry: &Entry) -> Result<ObjectInfo, Failure> {
    let head = || {
        let mut head = bucket.asked(bucket.client.head(&bucket.name, bucket.key_of(&entry.key)));
        if let Some(key) = &bucket.customer_key {
            head = head.sse_customer_key(key.clone());
        }
        if let Some(version) = &entry.version {
            head = head.version(version);
        }
        head
    };
    match head().checksum().await {
        Err(error) if error.kind() == ErrorKind::Denied => head().await.map_err(Failure::from),
        answer => answer.map_err(Failure::from),
    }
}

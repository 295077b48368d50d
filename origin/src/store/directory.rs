//! The room that keeps objects in files, and finds them again after a restart.
//!
//! Layout under the directory:
//!
//! ```text
//! incoming/<n>                      uploads on their way in, and parts; emptied at start
//! buckets/<bucket>/objects/<name>.json   one record an object: key, metadata, and the files of its bytes
//! buckets/<bucket>/data/<n>         bytes
//! ```
//!
//! A key is never a path: a record's name is the SHA-256 of its key, so keys of any form and length are safe.
//! Bytes are renamed from `incoming` to `data` first and the record is written beside and renamed over the old
//! one last, so a record always names whole files; data that no record names is removed at the next start.
//! Refused: fsync. A crash of the machine (not of the server) may lose the last objects. Of a bucket that keeps versions
//! the latest objects are found again, and nothing else.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::content::{Content, Segment};
use super::intake::hex;
use super::object::{Checksum, Head, Object};

/// Bytes gathered before a write leaves the event loop for a blocking thread.
const WRITE: usize = 1 << 20;

/// A directory that objects are kept in.
#[derive(Debug)]
pub(crate) struct Directory {
    root: PathBuf,
    next: AtomicU64,
}

#[derive(Serialize, Deserialize)]
struct Record {
    key: String,
    head: Head,
    size: u64,
    etag: String,
    modified_ms: u64,
    checksum: Option<Checksum>,
    part_sizes: Vec<u64>,
    files: Vec<(String, u64)>,
}

/// Objects found under a bucket's directory, with its name and when it was made.
pub(crate) type Loaded = (String, SystemTime, Vec<(String, Arc<Object>)>);

impl Directory {
    /// Opens the directory, making it where it is missing, and drops uploads that never finished.
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        let incoming = root.join("incoming");
        if incoming.exists() {
            fs::remove_dir_all(&incoming)?;
        }
        fs::create_dir_all(&incoming)?;
        fs::create_dir_all(root.join("buckets"))?;
        // Names must not meet those of an earlier run.
        let start = UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        Ok(Self { root: root.to_owned(), next: AtomicU64::new(start as u64) })
    }

    pub(crate) fn create_bucket(&self, name: &str) -> io::Result<()> {
        fs::create_dir_all(self.bucket(name).join("objects"))?;
        fs::create_dir_all(self.bucket(name).join("data"))
    }

    pub(crate) fn remove_bucket(&self, name: &str) -> io::Result<()> {
        fs::remove_dir_all(self.bucket(name))
    }

    /// Begins keeping an upload.
    pub(crate) fn writer(&self) -> io::Result<FileWriter> {
        let path = self.root.join("incoming").join(self.unique());
        let file = Arc::new(File::create_new(&path)?);
        Ok(FileWriter { file, path, size: 0, gathered: Vec::new(), gathered_size: 0, kept: false })
    }

    /// Makes an object that has arrived permanent, and returns it as it is now kept.
    pub(crate) fn commit(&self, bucket: &str, key: &str, mut object: Object) -> io::Result<Object> {
        let base = self.bucket(bucket);
        let mut files = Vec::new();
        if let Content::Files(segments) = &object.content {
            let mut moved = Vec::with_capacity(segments.len());
            for segment in segments.iter() {
                let name = self.unique();
                let path = base.join("data").join(&name);
                fs::rename(&segment.path, &path)?;
                moved.push(Segment { path, size: segment.size });
                files.push((name, segment.size));
            }
            object.content = Content::Files(moved.into());
        }
        let record = Record {
            key: key.to_owned(),
            head: object.head.clone(),
            size: object.size,
            etag: object.etag.clone(),
            modified_ms: millis(object.modified),
            checksum: object.checksum.clone(),
            part_sizes: object.part_sizes.clone(),
            files,
        };
        let temporary = self.root.join("incoming").join(self.unique());
        fs::write(&temporary, serde_json::to_vec(&record)?)?;
        fs::rename(&temporary, base.join("objects").join(record_name(key)))?;
        Ok(object)
    }

    /// Removes an object's record, then its bytes.
    pub(crate) fn forget(&self, bucket: &str, key: &str, object: &Object) -> io::Result<()> {
        self.unlist(bucket, key)?;
        drop_files(&object.content);
        Ok(())
    }

    /// Removes the record of a key; its bytes stay for as long as a version needs them, until the next start at most.
    pub(crate) fn unlist(&self, bucket: &str, key: &str) -> io::Result<()> {
        fs::remove_file(self.bucket(bucket).join("objects").join(record_name(key)))
    }

    /// Everything that an earlier run left.
    pub(crate) fn load(&self) -> io::Result<Vec<Loaded>> {
        let mut buckets = Vec::new();
        for entry in fs::read_dir(self.root.join("buckets"))? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let created = entry.metadata()?.modified()?;
            self.create_bucket(&name)?;
            buckets.push((name, created, self.load_bucket(&entry.path())?));
        }
        Ok(buckets)
    }

    fn load_bucket(&self, base: &Path) -> io::Result<Vec<(String, Arc<Object>)>> {
        let mut objects = Vec::new();
        let mut named = HashSet::new();
        for entry in fs::read_dir(base.join("objects"))? {
            let path = entry?.path();
            let record: Record = serde_json::from_slice(&fs::read(&path)?)
                .map_err(|error| io::Error::other(format!("{}: not an object's record: {error}", path.display())))?;
            let segments =
                record.files.iter().map(|(name, size)| Segment { path: base.join("data").join(name), size: *size });
            let object = Object {
                head: record.head,
                size: record.size,
                etag: record.etag,
                modified: UNIX_EPOCH + Duration::from_millis(record.modified_ms),
                checksum: record.checksum,
                part_sizes: record.part_sizes,
                version: None,
                content: Content::Files(segments.collect()),
            };
            named.extend(record.files.into_iter().map(|(name, _)| name));
            objects.push((record.key, Arc::new(object)));
        }
        for entry in fs::read_dir(base.join("data"))? {
            let entry = entry?;
            if !entry.file_name().to_str().is_some_and(|name| named.contains(name)) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(objects)
    }

    fn bucket(&self, name: &str) -> PathBuf {
        self.root.join("buckets").join(name)
    }

    fn unique(&self) -> String {
        format!("{:016x}", self.next.fetch_add(1, Ordering::Relaxed))
    }
}

/// Removes the files behind content that is no longer wanted. One that is gone already is no error.
pub(crate) fn drop_files(content: &Content) {
    if let Content::Files(segments) = content {
        for segment in segments.iter() {
            if let Err(error) = fs::remove_file(&segment.path) {
                tracing::warn!(path = %segment.path.display(), %error, "could not remove the bytes of an old object");
            }
        }
    }
}

/// Writes one upload; removes its file if it is dropped unfinished.
pub(crate) struct FileWriter {
    file: Arc<File>,
    path: PathBuf,
    size: u64,
    gathered: Vec<Bytes>,
    gathered_size: usize,
    kept: bool,
}

impl FileWriter {
    pub(crate) async fn push(&mut self, frame: Bytes) -> io::Result<()> {
        self.size += frame.len() as u64;
        self.gathered_size += frame.len();
        self.gathered.push(frame);
        if self.gathered_size >= WRITE { self.flush().await } else { Ok(()) }
    }

    pub(crate) async fn finish(mut self) -> io::Result<Content> {
        self.flush().await?;
        self.kept = true;
        let segment = Segment { path: self.path.clone(), size: self.size };
        Ok(Content::Files([segment].into()))
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.gathered_size = 0;
        let gathered = std::mem::take(&mut self.gathered);
        if gathered.is_empty() {
            return Ok(());
        }
        let file = self.file.clone();
        let write = move || gathered.iter().try_for_each(|frame| (&*file).write_all(frame));
        tokio::task::spawn_blocking(write).await.map_err(io::Error::other)?
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if !self.kept {
            // Nothing more can be done about it here; the next start empties `incoming` anyway.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn record_name(key: &str) -> String {
    format!("{}.json", hex(&Sha256::digest(key.as_bytes())))
}

fn millis(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

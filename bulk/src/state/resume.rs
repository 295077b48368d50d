//! What the engine tells of transfers in parts, and what is left of them, between its words and the file's.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use wirespeed::{
    ChecksumAlgorithm, DownloadLog, DownloadResume, FileIdentity, PartialDownload, PartialUpload, UploadLog,
    UploadResume, UploadedPart,
};

use super::State;
use super::history::{AcceptedPart, Began, Half, HalfDownload, HalfUpload};
use super::record::Record;
use crate::entry::Entry;

impl State {
    /// What a download of this item is to be given, so that it is written down and goes on where it stopped.
    pub fn download(&self, item: &Entry) -> DownloadResume {
        let (id, left) = self.left(&item.key, |half| match half {
            Half::Download(half) => Some(partial_download(half)),
            Half::Upload(_) => None,
        });
        let log = DownloadTold(Teller { state: self.clone(), key: item.key.clone(), id: Mutex::new(id) });
        let resume = DownloadResume::new(Arc::new(log));
        match left {
            Some(left) => resume.from_partial(left),
            None => resume,
        }
    }

    /// What an upload of this item to that key is to be given, so that it is written down and goes on where it stopped.
    pub fn upload(&self, item: &Entry, bucket: &str, target: &str) -> UploadResume {
        let (id, left) = self.left(&item.key, |half| match half {
            Half::Upload(half) => Some(partial_upload(half)),
            Half::Download(_) => None,
        });
        let teller = Teller { state: self.clone(), key: item.key.clone(), id: Mutex::new(id) };
        let log = UploadTold { teller, bucket: bucket.to_owned(), target: target.to_owned() };
        let resume = UploadResume::new(Arc::new(log));
        match left {
            Some(left) => resume.from_partial(left),
            None => resume,
        }
    }

    fn left<T>(&self, key: &str, read: impl FnOnce(&Half) -> Option<T>) -> (Option<u64>, Option<T>) {
        let told = self.shared.told();
        (told.history.id(key), told.history.half(key).and_then(read))
    }
}

/// Writes down what becomes of one item.
struct Teller {
    state: State,
    key: String,
    /// What the file calls the transfer, once it has begun.
    id: Mutex<Option<u64>>,
}

impl Teller {
    fn began(&self, record: impl FnOnce(u64, String) -> Record) {
        let mut began = self.id.lock().unwrap_or_else(PoisonError::into_inner);
        self.state.tell_with(|history| {
            let id = history.next_id();
            *began = Some(id);
            record(id, self.key.clone())
        });
    }

    fn goes_on(&self, record: impl FnOnce(u64) -> Record) {
        let id = *self.id.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = id {
            self.state.tell(record(id));
        }
    }
}

struct DownloadTold(Teller);

impl DownloadLog for DownloadTold {
    fn began(&self, partial: &PartialDownload) {
        let PartialDownload { temporary, size, etag, version_id, last_modified, .. } = partial.clone();
        self.0.began(|id, key| Record::Download { id, key, temporary, size, etag, version_id, last_modified });
    }

    fn wrote(&self, range: Range<u64>) {
        self.0.goes_on(|id| Record::Landed { id, from: range.start, until: range.end });
    }
}

struct UploadTold {
    teller: Teller,
    bucket: String,
    target: String,
}

impl UploadLog for UploadTold {
    fn began(&self, upload: &PartialUpload) {
        let PartialUpload { upload_id, part_size, checksum, source, .. } = upload.clone();
        let (bucket, target) = (self.bucket.clone(), self.target.clone());
        let checksum = checksum.map(|algorithm| algorithm.name().to_owned());
        let FileIdentity { size, modified, inode, .. } = source;
        self.teller.began(|id, key| Record::Upload {
            id,
            key,
            upload_id,
            bucket,
            target,
            part_size,
            checksum,
            size,
            modified,
            inode,
        });
    }

    fn sent(&self, part: &UploadedPart) {
        let UploadedPart { number, size, etag, checksum } = part.clone();
        self.teller.goes_on(|id| Record::Part { id, number, size, etag, checksum });
    }
}

fn partial_download(half: &HalfDownload) -> PartialDownload {
    let Began { temporary, size, etag, version_id, last_modified } = half.began.clone();
    PartialDownload { temporary, size, etag, version_id, last_modified, ranges: half.landed.clone() }
}

fn partial_upload(half: &HalfUpload) -> PartialUpload {
    let HalfUpload { upload_id, part_size, checksum, size, modified, inode, parts, .. } = half.clone();
    let part = |AcceptedPart { number, size, etag, checksum }| UploadedPart { number, size, etag, checksum };
    PartialUpload {
        upload_id,
        part_size,
        checksum: checksum.as_deref().and_then(ChecksumAlgorithm::named),
        source: FileIdentity { size, modified, inode },
        parts: parts.into_iter().map(part).collect(),
    }
}

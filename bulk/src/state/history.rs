//! What the records of a file add up to, beyond the finished items: the items that are half done. Pure.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;

use super::record::{Record, add_range};

/// An object that came down in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HalfDownload {
    /// The record that began it.
    pub(super) began: Began,
    /// What is in the temporary: in order, none touches the next.
    pub(super) landed: Vec<Range<u64>>,
}

/// The description of a download's object and of where its bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Began {
    pub(super) temporary: PathBuf,
    pub(super) size: u64,
    pub(super) etag: Option<String>,
    pub(super) version_id: Option<String>,
    pub(super) last_modified: Option<String>,
}

/// An object that went up in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HalfUpload {
    pub(super) upload_id: String,
    pub(super) bucket: String,
    pub(super) target: String,
    pub(super) part_size: u64,
    pub(super) checksum: Option<String>,
    pub(super) size: u64,
    pub(super) modified: Option<i128>,
    pub(super) inode: Option<u64>,
    /// By number; one that was sent twice is the one that was accepted last.
    pub(super) parts: Vec<AcceptedPart>,
}

/// A part that the server has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AcceptedPart {
    pub(super) number: u32,
    pub(super) size: u64,
    pub(super) etag: String,
    pub(super) checksum: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Half {
    Download(HalfDownload),
    Upload(HalfUpload),
}

/// The half-done items, by name and by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct History {
    halves: HashMap<u64, (String, Half)>,
    /// The latest of each key: what came before it was given up.
    ids: HashMap<String, u64>,
    last_id: u64,
}

impl History {
    /// A number that no half-done item of this file has had.
    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id = self.last_id.wrapping_add(1);
        self.last_id
    }

    /// What is half done of that item.
    pub(super) fn half(&self, key: &str) -> Option<&Half> {
        self.halves.get(self.ids.get(key)?).map(|(_, half)| half)
    }

    pub(super) fn id(&self, key: &str) -> Option<u64> {
        self.ids.get(key).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.halves.len()
    }

    /// All that is half done, by name.
    pub(super) fn halves(&self) -> Vec<(&str, &Half)> {
        let mut halves: Vec<_> = self.halves.values().map(|(key, half)| (key.as_str(), half)).collect();
        halves.sort_unstable_by_key(|(key, _)| *key);
        halves
    }

    /// Takes what happened. A record that fits nothing (its beginning is missing) says nothing.
    pub(super) fn apply(&mut self, record: &Record) {
        match record {
            Record::Download { id, key, temporary, size, etag, version_id, last_modified } => {
                let began = Began {
                    temporary: temporary.clone(),
                    size: *size,
                    etag: etag.clone(),
                    version_id: version_id.clone(),
                    last_modified: last_modified.clone(),
                };
                self.begin(*id, key, Half::Download(HalfDownload { began, landed: Vec::new() }));
            }
            Record::Upload { id, key, upload_id, bucket, target, part_size, checksum, size, modified, inode } => {
                let half = HalfUpload {
                    upload_id: upload_id.clone(),
                    bucket: bucket.clone(),
                    target: target.clone(),
                    part_size: *part_size,
                    checksum: checksum.clone(),
                    size: *size,
                    modified: *modified,
                    inode: *inode,
                    parts: Vec::new(),
                };
                self.begin(*id, key, Half::Upload(half));
            }
            Record::Landed { id, from, until } => {
                if let Some((_, Half::Download(half))) = self.halves.get_mut(id)
                    && *until <= half.began.size
                {
                    add_range(&mut half.landed, *from..*until);
                }
            }
            Record::Part { id, number, size, etag, checksum } => {
                if let Some((_, Half::Upload(half))) = self.halves.get_mut(id) {
                    let part =
                        AcceptedPart { number: *number, size: *size, etag: etag.clone(), checksum: checksum.clone() };
                    match half.parts.binary_search_by_key(number, |part| part.number) {
                        Ok(place) => half.parts[place] = part,
                        Err(place) => half.parts.insert(place, part),
                    }
                }
            }
            Record::Done { id: Some(id), .. } => {
                if let Some((key, _)) = self.halves.remove(id)
                    && self.ids.get(&key) == Some(id)
                {
                    self.ids.remove(&key);
                }
            }
            Record::Done { id: None, .. }
            | Record::Job(_)
            | Record::Opened { .. }
            | Record::Failed { .. }
            | Record::Synced { .. } => {}
        }
    }

    fn begin(&mut self, id: u64, key: &str, half: Half) {
        self.last_id = self.last_id.max(id);
        if let Some(before) = self.ids.insert(key.to_owned(), id) {
            self.halves.remove(&before);
        }
        self.halves.insert(id, (key.to_owned(), half));
    }

    /// The records that make this again.
    pub(super) fn records(&self) -> Vec<Record> {
        let mut ids: Vec<_> = self.halves.keys().copied().collect();
        ids.sort_unstable();
        let mut records = Vec::new();
        for id in ids {
            let Some((key, half)) = self.halves.get(&id) else { continue };
            match half {
                Half::Download(HalfDownload { began, landed }) => {
                    let Began { temporary, size, etag, version_id, last_modified } = began.clone();
                    let key = key.clone();
                    records.push(Record::Download { id, key, temporary, size, etag, version_id, last_modified });
                    let landed = landed.iter();
                    records.extend(landed.map(|range| Record::Landed { id, from: range.start, until: range.end }));
                }
                Half::Upload(half) => {
                    let HalfUpload { upload_id, bucket, target, part_size, checksum, size, modified, inode, parts } =
                        half.clone();
                    let key = key.clone();
                    records.push(Record::Upload {
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
                    records.extend(parts.into_iter().map(|part| {
                        let AcceptedPart { number, size, etag, checksum } = part;
                        Record::Part { id, number, size, etag, checksum }
                    }));
                }
            }
        }
        records
    }
}

//! One line of a resume file: the checksum of what follows, a blank, the record as JSON, a line feed.
//!
//! Pure. A line is a whole record or none: what a crash tore, or a disk changed, has another checksum and is no
//! record. JSON, so that a person who wonders what a job left behind can read it.

use std::ops::Range;
use std::path::PathBuf;

use crc_fast::CrcAlgorithm;
use serde::{Deserialize, Serialize};

/// The longest line that is read. The longest that is written holds [`DIGESTS_A_LINE`] items; a key has 1 KiB at most, a
/// path 4 KiB.
pub const LONGEST_LINE: usize = 64 << 10;

/// How many finished items stand in one line of a compacted file.
pub const DIGESTS_A_LINE: usize = 1_000;

/// The eight digits of the checksum and the blank.
const CHECKSUM_BYTES: usize = 9;

/// The digest of an item and of what it looked like: the first 80 bits of a keyed hash.
pub type Digest = [u8; 10];

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// The first line: which job the file is of.
    Job(Job),
    /// A process took the file up.
    Opened {
        /// Its number.
        pid: u32,
        /// The boot of the machine that it ran in; what was not on disk when another begins may be gone.
        boot: Option<String>,
    },
    /// Items are finished.
    Done {
        /// Their digests.
        #[serde(with = "base64_digests")]
        items: Vec<Digest>,
        /// The half-done item that this one was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
    },
    /// A download of several parts began.
    Download {
        /// What later records call it.
        id: u64,
        /// The item's name in the job.
        key: String,
        /// Where its bytes are.
        #[serde(with = "path_text")]
        temporary: PathBuf,
        /// Of the whole object, in bytes.
        size: u64,
        /// The object's ETag.
        etag: Option<String>,
        /// The object's version.
        version_id: Option<String>,
        /// The object's `Last-Modified`, as the server wrote it.
        last_modified: Option<String>,
    },
    /// Bytes of a download are in its temporary.
    Landed {
        /// Which.
        id: u64,
        /// The first byte.
        from: u64,
        /// The byte after the last.
        until: u64,
    },
    /// A multipart upload began.
    Upload {
        /// What later records call it.
        id: u64,
        /// The item's name in the job.
        key: String,
        /// The server's name for it.
        upload_id: String,
        /// Where the object will be.
        bucket: String,
        /// Its key there.
        target: String,
        /// In bytes.
        part_size: u64,
        /// The name of the checksum that its parts carry.
        checksum: Option<String>,
        /// Of the local file, in bytes.
        size: u64,
        /// When the local file was written, in nanoseconds since 1970.
        modified: Option<i128>,
        /// The local file's number.
        inode: Option<u64>,
    },
    /// The server accepted a part.
    Part {
        /// Of which upload.
        id: u64,
        /// From 1.
        number: u32,
        /// In bytes.
        size: u64,
        /// What the server calls it.
        etag: String,
        /// In base64.
        checksum: Option<String>,
    },
    /// An item failed; it will be tried again when the job goes on.
    Failed {
        /// Its name in the job.
        key: String,
        /// What happened.
        why: String,
    },
    /// All that this file said up to that byte is also on disk.
    Synced {
        /// The length of the file that it speaks of.
        until: u64,
    },
}

/// The job that a file is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The version of the format: [`VERSION`].
    pub wirespeed_state: u32,
    /// `cp`, `sync`.
    pub verb: String,
    /// Where from.
    pub source: String,
    /// Where to.
    pub destination: String,
    /// What else decides which items there are and what becomes of them.
    pub options: String,
    /// The key of the digests, in base64, so that nobody can make a key whose digest is another's.
    pub seed: String,
}

/// The version of the format that is written, and the only one that is read.
pub const VERSION: u32 = 1;

/// Appends the record's line.
pub fn write_line(line: &mut Vec<u8>, record: &Record) {
    let begin = line.len();
    line.extend_from_slice(b"00000000 ");
    // Writing to memory does not fail, nor does any of the types refuse to be written.
    let _ = serde_json::to_writer(&mut *line, record);
    let sum = format!("{:08x}", checksum(&line[begin + CHECKSUM_BYTES..]));
    line[begin..begin + sum.len()].copy_from_slice(sum.as_bytes());
    line.push(b'\n');
}

/// Reads a line with its line feed; `None` where it is torn or damaged.
pub fn read_line(line: &[u8]) -> Option<Record> {
    let line = line.strip_suffix(b"\n")?;
    let (sum, json) = line.split_at_checked(CHECKSUM_BYTES)?;
    // Compared as it is written: `from_str_radix` would take `+` and capitals too.
    let expected = format!("{:08x} ", checksum(json));
    if sum != expected.as_bytes() {
        return None;
    }
    serde_json::from_slice(json).ok()
}

fn checksum(json: &[u8]) -> u32 {
    // The CRC's 32 bits are the lower half.
    crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, json) as u32
}

/// Adds a range to those that are there, which are in order and do not touch; so they stay.
pub fn add_range(ranges: &mut Vec<Range<u64>>, new: Range<u64>) {
    if new.is_empty() {
        return;
    }
    let first = ranges.partition_point(|range| range.end < new.start);
    let behind = ranges.partition_point(|range| range.start <= new.end);
    let mut whole = new;
    if let (Some(left), Some(right)) = (ranges.get(first), ranges[..behind].last())
        && first < behind
    {
        whole = whole.start.min(left.start)..whole.end.max(right.end);
    }
    ranges.splice(first..behind, [whole]);
}

/// Digests one behind the other, in base64.
mod base64_digests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD_NO_PAD;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    use super::Digest;

    pub(super) fn serialize<S: Serializer>(digests: &[Digest], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD_NO_PAD.encode(digests.as_flattened()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Digest>, D::Error> {
        // Base64 needs no escapes in JSON, so that the text can be borrowed.
        let text = <&str>::deserialize(deserializer)?;
        let bytes = STANDARD_NO_PAD.decode(text).map_err(de::Error::custom)?;
        let (digests, rest) = bytes.as_chunks();
        if rest.is_empty() { Ok(digests.to_vec()) } else { Err(de::Error::custom("half a digest")) }
    }
}

/// A path as text, or where it is not UTF-8 as its bytes.
mod path_text {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize, Serialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => Written::Text(text.to_owned()),
            None => Written::Bytes(path.as_os_str().as_bytes().to_vec()),
        }
        .serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        Ok(match Written::deserialize(deserializer)? {
            Written::Text(text) => PathBuf::from(text),
            Written::Bytes(bytes) => PathBuf::from(OsString::from_vec(bytes)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    fn text() -> impl Strategy<Value = String> {
        prop_oneof!["[a-z/]{1,8}", any::<String>()]
    }

    fn path() -> impl Strategy<Value = PathBuf> {
        prop_oneof![
            text().prop_map(PathBuf::from),
            prop::collection::vec(any::<u8>(), 1..12).prop_map(|bytes| PathBuf::from(OsString::from_vec(bytes)))
        ]
    }

    fn record() -> impl Strategy<Value = Record> {
        let digests = prop::collection::vec(any::<Digest>(), 0..4);
        prop_oneof![
            (digests, any::<Option<u64>>()).prop_map(|(items, id)| Record::Done { items, id }),
            (any::<u32>(), any::<Option<String>>()).prop_map(|(pid, boot)| Record::Opened { pid, boot }),
            (any::<u64>(), text(), path(), any::<u64>(), any::<Option<String>>()).prop_map(
                |(id, key, temporary, size, etag)| Record::Download {
                    id,
                    key,
                    temporary,
                    size,
                    etag,
                    version_id: None,
                    last_modified: None
                }
            ),
            (any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(id, from, until)| Record::Landed { id, from, until }),
            (any::<u64>(), text(), text(), any::<Option<i128>>(), any::<Option<u64>>()).prop_map(
                |(id, key, upload_id, modified, inode)| Record::Upload {
                    id,
                    bucket: "b".to_owned(),
                    target: key.clone(),
                    key,
                    upload_id,
                    part_size: 5 << 20,
                    checksum: None,
                    size: 7,
                    modified,
                    inode
                }
            ),
            (any::<u64>(), any::<u32>(), text(), any::<Option<String>>())
                .prop_map(|(id, number, etag, checksum)| Record::Part { id, number, size: 1, etag, checksum }),
            (text(), text()).prop_map(|(key, why)| Record::Failed { key, why }),
            any::<u64>().prop_map(|until| Record::Synced { until }),
        ]
    }

    proptest! {
        #[test]
        fn a_line_reads_back_as_written(record in record()) {
            let mut line = Vec::new();
            write_line(&mut line, &record);
            prop_assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1, "one line");
            prop_assert_eq!(read_line(&line), Some(record));
        }

        #[test]
        fn no_part_of_a_line_is_a_record(record in record(), cut in any::<prop::sample::Index>()) {
            let mut line = Vec::new();
            write_line(&mut line, &record);
            // All but the line feed, at most: with that it would be the line.
            line.truncate(cut.index(line.len() - 1));
            prop_assert_eq!(read_line(&line), None);
            line.push(b'\n');
            prop_assert_eq!(read_line(&line), None, "not even with a line feed behind");
        }

        #[test]
        fn a_changed_line_is_no_record(record in record(), at in any::<prop::sample::Index>(), bit in 0..8) {
            let mut line = Vec::new();
            write_line(&mut line, &record);
            let at = at.index(line.len());
            line[at] ^= 1_u8 << bit;
            prop_assert_eq!(read_line(&line), None);
        }

        #[test]
        fn ranges_add_up(pieces in prop::collection::vec((0..60_u64, 0..9_u64), 0..30)) {
            let mut ranges = Vec::new();
            let mut model = [false; 70];
            for (from, length) in pieces {
                add_range(&mut ranges, from..from + length);
                model[from as usize..(from + length) as usize].fill(true);
            }
            let mut covered = [false; 70];
            for range in &ranges {
                prop_assert!(!range.is_empty());
                covered[range.start as usize..range.end as usize].fill(true);
            }
            prop_assert_eq!(covered, model);
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "in order, none touches the next");
        }
    }
}

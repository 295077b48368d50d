//! Whether a local file is the one that an earlier run began to upload.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::UNIX_EPOCH;

/// What a local file looked like. Two files are taken for one where nothing differs that is known of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    /// Its length in bytes.
    pub size: u64,
    /// When it was last written to, in nanoseconds since 1970.
    pub modified: Option<i128>,
    /// Its number in its file system.
    pub inode: Option<u64>,
}

impl FileIdentity {
    pub(crate) fn of(found: &Metadata) -> FileIdentity {
        let modified = found.modified().ok().map(|time| match time.duration_since(UNIX_EPOCH) {
            Ok(after) => after.as_nanos() as i128,
            Err(before) => -(before.duration().as_nanos() as i128),
        });
        FileIdentity { size: found.len(), modified, inode: Some(found.ino()) }
    }

    /// Whether this may be the other, unchanged.
    pub(crate) fn may_be(&self, other: &FileIdentity) -> bool {
        fn agree<T: PartialEq>(ours: Option<T>, theirs: Option<T>) -> bool {
            ours.is_none() || theirs.is_none() || ours == theirs
        }
        self.size == other.size && agree(self.modified, other.modified) && agree(self.inode, other.inode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_itself_until_something_differs() {
        let file = FileIdentity { size: 5, modified: Some(-1), inode: Some(7) };
        assert!(file.may_be(&file));
        assert!(file.may_be(&FileIdentity { modified: None, inode: None, ..file }));
        for other in [
            FileIdentity { size: 6, ..file },
            FileIdentity { modified: Some(0), ..file },
            FileIdentity { inode: Some(8), ..file },
        ] {
            assert!(!file.may_be(&other), "{other:?}");
        }
    }
}

//! One of many objects that are downloaded to files in one call: which, where to, and how the file is to appear.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::file::FileAttributes;
use super::get_item::GetItem;
use super::resume::DownloadResume;

/// An object and the file that it is to become; see [`GetMany::into_files`](crate::GetMany::into_files).
///
/// ```
/// use wirespeed::FileItem;
///
/// # let listed_at = jiff::Timestamp::UNIX_EPOCH;
/// let item = FileItem::new("logs/2026/a.log", "logs/a.log")
///     .size(4096)
///     .if_match("\"9b2cf535f27731c974343645a3985328\"")
///     .modified(listed_at);
/// # assert_eq!(item.key(), "logs/2026/a.log");
/// ```
#[derive(Debug, Clone)]
pub struct FileItem {
    pub(super) object: GetItem,
    pub(super) path: PathBuf,
    pub(super) attributes: FileAttributes,
    pub(super) no_clobber: bool,
    pub(super) resume: Option<DownloadResume>,
    pub(super) job: Option<u32>,
}

impl FileItem {
    /// The newest version of the object of this key, to a file of this name. Missing folders are made, and a file
    /// that is there is replaced.
    pub fn new(key: impl Into<String>, path: impl Into<PathBuf>) -> FileItem {
        let attributes = FileAttributes::default();
        FileItem {
            object: GetItem::new(key),
            path: path.into(),
            attributes,
            no_clobber: false,
            resume: None,
            job: None,
        }
    }

    /// The object's size in bytes, as [`GetItem::size`].
    #[must_use]
    pub fn size(mut self, bytes: u64) -> FileItem {
        self.object = self.object.size(bytes);
        self
    }

    /// Only while the object has this entity tag, as [`GetItem::if_match`].
    #[must_use]
    pub fn if_match(mut self, etag: impl Into<String>) -> FileItem {
        self.object = self.object.if_match(etag);
        self
    }

    /// This version of the object, as [`GetItem::version`].
    #[must_use]
    pub fn version(mut self, id: impl Into<String>) -> FileItem {
        self.object = self.object.version(id);
        self
    }

    /// The time of modification that the file gets; where it is not given, the time at which it is written.
    #[must_use]
    pub fn modified(mut self, time: Timestamp) -> FileItem {
        self.attributes.modified = Some(time);
        self
    }

    /// The permission bits that the file gets, as `0o640`; where they are not given, those that new files get.
    #[must_use]
    pub fn mode(mut self, bits: u32) -> FileItem {
        self.attributes.mode = Some(bits);
        self
    }

    /// Leaves a file that is there as it is, also one that appears meanwhile: an error of kind
    /// [`Precondition`](crate::ErrorKind::Precondition).
    #[must_use]
    pub fn no_clobber(mut self) -> FileItem {
        self.no_clobber = true;
        self
    }

    /// Lets the download survive its process, as [`Get::resume`](crate::Get::resume).
    #[must_use]
    pub fn resume(mut self, resume: DownloadResume) -> FileItem {
        self.resume = Some(resume);
        self
    }

    /// Names the temporary by the number of the job that the file is of, and not by a random one. A file of that name
    /// is taken for what an earlier run of the same job left when it was killed, and is replaced: so give no two runs
    /// at a time the same number. Where the name is too long for that, the number is random all the same.
    #[must_use]
    pub fn job(mut self, number: u32) -> FileItem {
        self.job = Some(number);
        self
    }

    /// The key.
    pub fn key(&self) -> &str {
        self.object.key()
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl<K: Into<String>, P: Into<PathBuf>> From<(K, P)> for FileItem {
    fn from((key, path): (K, P)) -> FileItem {
        FileItem::new(key, path)
    }
}

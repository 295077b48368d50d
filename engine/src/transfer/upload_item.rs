//! One of many files that are uploaded in one call: which, its key, and what sets it apart from the others.

use std::path::{Path, PathBuf};

use super::put_options::PutOptions;
use super::resume::UploadResume;

/// A file and the object that it is to become; see [`PutMany::from_files`](crate::PutMany::from_files).
///
/// ```
/// use wirespeed::{PutOptions, UploadItem};
///
/// let item = UploadItem::new("a.csv", "reports/a.csv").size(4096).options(PutOptions::new().if_none_match_any());
/// # assert_eq!(item.key(), "reports/a.csv");
/// ```
#[derive(Debug, Clone)]
pub struct UploadItem {
    pub(super) path: PathBuf,
    pub(super) key: String,
    pub(super) size: Option<u64>,
    pub(super) options: Option<Box<PutOptions>>,
    pub(super) resume: Option<UploadResume>,
}

impl UploadItem {
    /// The file of this name to an object of this key.
    pub fn new(path: impl Into<PathBuf>, key: impl Into<String>) -> UploadItem {
        UploadItem { path: path.into(), key: key.into(), size: None, options: None, resume: None }
    }

    /// The file's size in bytes, as whoever found it saw it. A file that has another when it is read is an error of
    /// kind [`Integrity`](crate::ErrorKind::Integrity). A small file is then opened and read in one go.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> UploadItem {
        self.size = Some(bytes);
        self
    }

    /// How this object is written, in the place of what is said for all of the call.
    #[must_use]
    pub fn options(mut self, options: PutOptions) -> UploadItem {
        self.options = Some(Box::new(options));
        self
    }

    /// Lets the upload survive its process, as [`Put::resume`](crate::Put::resume).
    #[must_use]
    pub fn resume(mut self, resume: UploadResume) -> UploadItem {
        self.resume = Some(resume);
        self
    }

    /// The key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl<P: Into<PathBuf>, K: Into<String>> From<(P, K)> for UploadItem {
    fn from((path, key): (P, K)) -> UploadItem {
        UploadItem::new(path, key)
    }
}

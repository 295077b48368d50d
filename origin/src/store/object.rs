//! What is known of one object: its head (the headers that the uploader chose), size, ETag, time,
//! checksum, and where its bytes are.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::content::Content;

/// The headers an uploader gives an object and gets back on every read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) content_type: Option<String>,
    pub(crate) content_encoding: Option<String>,
    pub(crate) content_language: Option<String>,
    pub(crate) content_disposition: Option<String>,
    pub(crate) cache_control: Option<String>,
    /// As seconds since the epoch.
    pub(crate) expires: Option<i64>,
    pub(crate) website_redirect: Option<String>,
    pub(crate) storage_class: Option<String>,
    pub(crate) metadata: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) tags: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) encryption: Option<Encryption>,
}

/// What an object is said to be encrypted with. Nothing is: it is only remembered, and asked for where S3 asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Encryption {
    /// `AES256` or one of the `aws:kms` family, and the key's name for those.
    Managed { algorithm: String, key: Option<String> },
    /// A key that the client brings with every request; the MD5 of it, in base64.
    Customer { md5: String },
}

/// The checksum algorithms of S3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Algorithm {
    Crc32,
    Crc32c,
    Crc64Nvme,
    Sha1,
    Sha256,
}

/// A checksum as S3 shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checksum {
    pub(crate) algorithm: Algorithm,
    /// Base64 of the big-endian value; a composite one ends in `-N`.
    pub(crate) value: String,
    /// A checksum of the parts' checksums rather than of the object's bytes.
    pub(crate) composite: bool,
}

impl Checksum {
    /// Returns whether `promised` is this checksum. Of a composite one the number of parts may be left out, as minio-go
    /// does when it completes an upload.
    pub(crate) fn is_promised_by(&self, promised: &str) -> bool {
        let without_count = || self.value.split_once('-').map(|(value, _)| value);
        promised == self.value || (self.composite && Some(promised) == without_count())
    }
}

/// One object, never changed once made: a new upload makes a new one.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) head: Head,
    pub(crate) size: u64,
    /// Without quotes.
    pub(crate) etag: String,
    pub(crate) modified: SystemTime,
    pub(crate) checksum: Option<Checksum>,
    /// Bytes of each part, where the object was uploaded in parts.
    pub(crate) part_sizes: Vec<u64>,
    /// Its id, in a bucket that keeps versions.
    pub(crate) version: Option<String>,
    pub(crate) content: Content,
}

impl Default for Object {
    /// An object of nothing, from the beginning of time.
    fn default() -> Self {
        Self {
            head: Head::default(),
            size: 0,
            etag: String::new(),
            modified: UNIX_EPOCH,
            checksum: None,
            part_sizes: Vec::new(),
            version: None,
            content: Content::Discarded,
        }
    }
}

/// Now, cut to milliseconds: what the XML of a listing can carry.
pub(crate) fn now() -> SystemTime {
    let millis = UNIX_EPOCH.elapsed().unwrap_or_default().as_millis();
    UNIX_EPOCH + std::time::Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

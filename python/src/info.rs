//! What the server says, as Python's objects: plain values, made when a call has ended.

use std::collections::BTreeMap;

use jiff::Timestamp;
use pyo3::prelude::*;

/// As `CRC64NVME:fJ3vKdU3mLM=`.
fn checksum(checksum: &wirespeed::Checksum) -> String {
    format!("{}:{}", checksum.algorithm, checksum.value)
}

/// What the server says of an object.
#[pyclass(frozen, module = "wirespeed")]
pub(crate) struct ObjectInfo(wirespeed::ObjectInfo);

impl From<wirespeed::ObjectInfo> for ObjectInfo {
    fn from(info: wirespeed::ObjectInfo) -> ObjectInfo {
        ObjectInfo(info)
    }
}

#[pymethods]
impl ObjectInfo {
    /// Bytes that the object has, whatever was asked for.
    #[getter]
    fn size(&self) -> u64 {
        self.0.size
    }

    /// The entity tag, with its quotes, as the server sent it.
    #[getter]
    fn etag(&self) -> Option<&str> {
        self.0.etag.as_deref()
    }

    #[getter]
    fn version_id(&self) -> Option<&str> {
        self.0.version_id.as_deref()
    }

    /// When it was stored, in UTC.
    #[getter]
    fn last_modified(&self) -> Option<Timestamp> {
        self.0.last_modified
    }

    #[getter]
    fn content_type(&self) -> Option<&str> {
        self.0.content_type.as_deref()
    }

    #[getter]
    fn content_encoding(&self) -> Option<&str> {
        self.0.content_encoding.as_deref()
    }

    #[getter]
    fn content_disposition(&self) -> Option<&str> {
        self.0.content_disposition.as_deref()
    }

    #[getter]
    fn content_language(&self) -> Option<&str> {
        self.0.content_language.as_deref()
    }

    #[getter]
    fn cache_control(&self) -> Option<&str> {
        self.0.cache_control.as_deref()
    }

    #[getter]
    fn expires(&self) -> Option<&str> {
        self.0.expires.as_deref()
    }

    #[getter]
    fn server_side_encryption(&self) -> Option<&str> {
        self.0.server_side_encryption.as_deref()
    }

    #[getter]
    fn kms_key_id(&self) -> Option<&str> {
        self.0.kms_key_id.as_deref()
    }

    #[getter]
    fn tag_count(&self) -> Option<u32> {
        self.0.tag_count
    }

    #[getter]
    fn storage_class(&self) -> Option<&str> {
        self.0.storage_class.as_deref()
    }

    /// The checksum that the server keeps of it, such as ``CRC64NVME:fJ3vKdU3mLM=``.
    #[getter]
    fn checksum(&self) -> Option<String> {
        self.0.checksum.as_ref().map(checksum)
    }

    /// ``"verified"``, or why the bytes were not compared with a checksum.
    #[getter]
    fn verified(&self) -> String {
        match self.0.verified {
            wirespeed::Verified::FullObject(_) => "verified".into(),
            wirespeed::Verified::Not(why) => why.to_string(),
            _ => "unknown".into(),
        }
    }

    /// The user's own metadata, names in lower case.
    #[getter]
    fn metadata(&self) -> BTreeMap<&str, &str> {
        self.0.metadata.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    fn __repr__(&self) -> String {
        let etag = self.0.etag.as_deref().unwrap_or("None");
        format!("<wirespeed.ObjectInfo size={} etag={etag}>", self.0.size)
    }
}

/// What the server says of an object that it has stored.
#[pyclass(frozen, get_all, module = "wirespeed")]
pub(crate) struct PutResult {
    etag: Option<String>,
    version_id: Option<String>,
    /// Requests that carried the body.
    parts: u32,
    /// The checksum that was sent with it, such as ``CRC64NVME:fJ3vKdU3mLM=``.
    checksum: Option<String>,
}

impl From<wirespeed::PutOutcome> for PutResult {
    fn from(outcome: wirespeed::PutOutcome) -> PutResult {
        PutResult {
            etag: outcome.etag,
            version_id: outcome.version_id,
            parts: outcome.parts,
            checksum: outcome.checksum.as_ref().map(checksum),
        }
    }
}

#[pymethods]
impl PutResult {
    fn __repr__(&self) -> String {
        format!("<wirespeed.PutResult etag={} parts={}>", self.etag.as_deref().unwrap_or("None"), self.parts)
    }
}

/// What `download` and `upload` moved.
#[pyclass(frozen, get_all, module = "wirespeed")]
#[derive(Default)]
pub(crate) struct Transferred {
    /// How many objects.
    pub(crate) objects: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
}

impl Transferred {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes += bytes;
    }
}

#[pymethods]
impl Transferred {
    fn __repr__(&self) -> String {
        format!("<wirespeed.Transferred objects={} bytes={}>", self.objects, self.bytes)
    }
}

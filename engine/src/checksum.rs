//! The names of checksums: in settings, in headers and in documents. What they compute is `wire`'s business.

use std::fmt;

/// What the headers of all checksums begin with.
pub(crate) const PREFIX: &str = "x-amz-checksum-";

/// The checksums that this client computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChecksumAlgorithm {
    /// CRC-64/NVME: S3's own default.
    Crc64Nvme,
    /// CRC-32 of ISO-HDLC, as in zip and gzip.
    Crc32,
    /// CRC-32C, Castagnoli's.
    Crc32c,
    /// SHA-256. Costs some thirty times as much as a CRC.
    Sha256,
}

impl ChecksumAlgorithm {
    /// Every algorithm.
    pub const ALL: [ChecksumAlgorithm; 4] = [Self::Crc64Nvme, Self::Crc32, Self::Crc32c, Self::Sha256];

    /// The name in settings: `crc64nvme`, `crc32`, `crc32c`, `sha256`.
    pub fn name(self) -> &'static str {
        &self.header()[PREFIX.len()..]
    }

    /// The header that carries a checksum of this kind.
    pub fn header(self) -> &'static str {
        match self {
            Self::Crc64Nvme => "x-amz-checksum-crc64nvme",
            Self::Crc32 => "x-amz-checksum-crc32",
            Self::Crc32c => "x-amz-checksum-crc32c",
            Self::Sha256 => "x-amz-checksum-sha256",
        }
    }

    /// The name in S3's own words, as `x-amz-checksum-algorithm` wants it.
    pub fn s3_name(self) -> &'static str {
        &self.element()["Checksum".len()..]
    }

    /// The element that carries a checksum of this kind in a document.
    pub fn element(self) -> &'static str {
        match self {
            Self::Crc64Nvme => "ChecksumCRC64NVME",
            Self::Crc32 => "ChecksumCRC32",
            Self::Crc32c => "ChecksumCRC32C",
            Self::Sha256 => "ChecksumSHA256",
        }
    }

    /// The value of `x-amz-checksum-type` for an object that is written in parts.
    pub fn multipart_type(self) -> &'static str {
        if self.combines() { "FULL_OBJECT" } else { "COMPOSITE" }
    }

    /// Whether the checksum of a whole can be made from those of its parts.
    pub fn combines(self) -> bool {
        self != Self::Sha256
    }

    /// The algorithm of that name, in any case.
    pub fn named(name: &str) -> Option<ChecksumAlgorithm> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name().eq_ignore_ascii_case(name))
    }

    /// The algorithm whose checksums that element carries.
    pub fn of_element(name: &str) -> Option<ChecksumAlgorithm> {
        let kind = name.strip_prefix("Checksum")?;
        Self::ALL.into_iter().find(|algorithm| algorithm.s3_name() == kind)
    }
}

impl fmt::Display for ChecksumAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.s3_name())
    }
}

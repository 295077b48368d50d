//! Flags about checksums on what transfers: the engine has them on, so these choose another or turn them off. `sync` has
//! the same under other names, because its `--checksum` says how to compare.

use clap::{Args, ValueEnum};

/// Which checksum uploads carry, and whether downloads are held against theirs.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ChecksumFlags {
    /// Checksum that uploads carry; NONE also leaves downloads unchecked [default: CRC64NVME]
    #[arg(long, value_name = "ALGORITHM", visible_alias = "checksum-algorithm", ignore_case = true)]
    checksum: Option<Checksum>,
    /// Whether a download is held against the object's checksum [default: ENABLED]
    #[arg(long, value_name = "MODE", value_parser = ["ENABLED", "DISABLED"])]
    checksum_mode: Option<String>,
}

/// The same for `sync`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SyncChecksumFlags {
    /// Checksum that uploads carry; NONE also leaves downloads unchecked [default: CRC64NVME]
    #[arg(long, value_name = "ALGORITHM", ignore_case = true)]
    checksum_algorithm: Option<Checksum>,
    /// Whether a download is held against the object's checksum [default: ENABLED]
    #[arg(long, value_name = "MODE", value_parser = ["ENABLED", "DISABLED"])]
    checksum_mode: Option<String>,
}

impl SyncChecksumFlags {
    /// As the other verbs have them.
    pub(crate) fn plain(&self) -> ChecksumFlags {
        ChecksumFlags { checksum: self.checksum_algorithm, checksum_mode: self.checksum_mode.clone() }
    }
}

/// The checksums that an upload can carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
enum Checksum {
    Crc64Nvme,
    Crc32,
    Crc32C,
    Sha256,
    None,
}

impl ChecksumFlags {
    /// Whether any of them is given.
    pub(crate) fn given(&self) -> bool {
        self.checksum.is_some() || self.checksum_mode.is_some()
    }

    /// The settings that they stand for.
    pub(crate) fn settings(&self) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
        let algorithm = self.checksum.map(|checksum| match checksum {
            Checksum::Crc64Nvme => "crc64nvme",
            Checksum::Crc32 => "crc32",
            Checksum::Crc32C => "crc32c",
            Checksum::Sha256 => "sha256",
            Checksum::None => "none",
        });
        let mode = match self.checksum_mode.as_deref() {
            Some("ENABLED") => Some("true"),
            Some(_) => Some("false"),
            None => (self.checksum == Some(Checksum::None)).then_some("false"),
        };
        let algorithm = algorithm.map(|name| ("checksum_algorithm", name));
        algorithm.into_iter().chain(mode.map(|mode| ("verify_checksums", mode)))
    }
}

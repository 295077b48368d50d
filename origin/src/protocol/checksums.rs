//! The `x-amz-checksum-*` family: which was asked for, which was given, and showing one in an answer.

use http::HeaderMap;
use s3s::TrailingHeaders;
use s3s::dto::ChecksumAlgorithm;
use s3s::{S3Result, s3_error};

use crate::store::object::{Algorithm, Checksum};

/// Every algorithm, with its header.
const HEADERS: [(Algorithm, &str); 5] = [
    (Algorithm::Crc32, "x-amz-checksum-crc32"),
    (Algorithm::Crc32c, "x-amz-checksum-crc32c"),
    (Algorithm::Crc64Nvme, "x-amz-checksum-crc64nvme"),
    (Algorithm::Sha1, "x-amz-checksum-sha1"),
    (Algorithm::Sha256, "x-amz-checksum-sha256"),
];

/// The checksum in an input (or a part named in one), whichever of its five fields holds it.
macro_rules! given {
    ($input:expr) => {{
        use $crate::store::object::Algorithm;
        let fields = [
            (Algorithm::Crc32, $input.checksum_crc32.take()),
            (Algorithm::Crc32c, $input.checksum_crc32c.take()),
            (Algorithm::Crc64Nvme, $input.checksum_crc64nvme.take()),
            (Algorithm::Sha1, $input.checksum_sha1.take()),
            (Algorithm::Sha256, $input.checksum_sha256.take()),
        ];
        fields.into_iter().find_map(|(algorithm, value)| {
            value.map(|value| $crate::store::object::Checksum { composite: value.contains('-'), algorithm, value })
        })
    }};
}
pub(super) use given;

/// Puts a checksum into the field of an answer that is its own.
macro_rules! show {
    ($output:expr, $checksum:expr) => {{
        use $crate::store::object::Algorithm;
        let checksum: Option<&$crate::store::object::Checksum> = $checksum;
        if let Some(checksum) = checksum {
            let field = match checksum.algorithm {
                Algorithm::Crc32 => &mut $output.checksum_crc32,
                Algorithm::Crc32c => &mut $output.checksum_crc32c,
                Algorithm::Crc64Nvme => &mut $output.checksum_crc64nvme,
                Algorithm::Sha1 => &mut $output.checksum_sha1,
                Algorithm::Sha256 => &mut $output.checksum_sha256,
            };
            *field = Some(checksum.value.clone());
        }
    }};
}
pub(super) use show;

/// The algorithm announced for a trailer, or asked for by name.
pub(super) fn announced(headers: &HeaderMap) -> Option<Algorithm> {
    let trailer = headers.get("x-amz-trailer")?.to_str().ok()?;
    HEADERS
        .into_iter()
        .find(|(_, name)| trailer.split(',').any(|part| part.trim() == *name))
        .map(|(algorithm, _)| algorithm)
}

/// The checksum that came after the body.
pub(crate) fn trailing(trailers: Option<TrailingHeaders>) -> Option<Checksum> {
    named_in(&trailers?.take()?)
}

/// The checksum that one of these headers holds.
pub(crate) fn named_in(headers: &HeaderMap) -> Option<Checksum> {
    HEADERS.into_iter().find_map(|(algorithm, name)| {
        let value = headers.get(name)?.to_str().ok()?.trim().to_owned();
        Some(Checksum { algorithm, value, composite: false })
    })
}

/// The algorithm of that name.
pub(super) fn named(algorithm: Option<&ChecksumAlgorithm>) -> S3Result<Option<Algorithm>> {
    match algorithm.map(ChecksumAlgorithm::as_str) {
        None => Ok(None),
        Some(ChecksumAlgorithm::CRC32) => Ok(Some(Algorithm::Crc32)),
        Some(ChecksumAlgorithm::CRC32C) => Ok(Some(Algorithm::Crc32c)),
        Some(ChecksumAlgorithm::CRC64NVME) => Ok(Some(Algorithm::Crc64Nvme)),
        Some(ChecksumAlgorithm::SHA1) => Ok(Some(Algorithm::Sha1)),
        Some(ChecksumAlgorithm::SHA256) => Ok(Some(Algorithm::Sha256)),
        Some(other) => Err(s3_error!(InvalidRequest, "{other} is not a checksum algorithm of this server")),
    }
}

//! What a server was seen to do otherwise than S3, of which its user is warned once per client.

use std::sync::OnceLock;

use crate::wire::checksum::Checksum;

/// The warnings of one client that have been given.
#[derive(Default)]
pub(crate) struct Oddities {
    ranges: OnceLock<()>,
    checksums: OnceLock<()>,
}

impl Oddities {
    /// The server answered a request for a part of an object with the whole object.
    pub(crate) fn ignores_ranges(&self, bucket: &str) {
        self.ranges.get_or_init(|| {
            tracing::warn!(bucket, "the server ignores Range: what comes before the bytes that are wanted is received too");
        });
    }

    /// The server sent a checksum that cannot be one of its algorithm.
    pub(crate) fn malformed_checksum(&self, bucket: &str, key: &str, checksum: &Checksum) {
        self.checksums.get_or_init(|| {
            let (algorithm, value) = (checksum.algorithm, &checksum.value);
            tracing::warn!(
                bucket,
                key,
                "the server sends checksums that are not of their algorithm's length, so objects that have them are not \
                 verified: {algorithm} {value:?}"
            );
        });
    }
}

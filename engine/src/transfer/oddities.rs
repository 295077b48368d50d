//! Deviations of a server from S3 of which the user is warned once per client.

use std::sync::OnceLock;

use super::request::Subject;
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
            tracing::warn!(
                bucket,
                "the server ignores Range: what comes before the bytes that are wanted is received too"
            );
        });
    }

    /// Returns whether a checksum can be one of its algorithm. The first that cannot is warned of.
    pub(crate) fn is_checksum(&self, subject: &Subject, checksum: &Checksum) -> bool {
        let is_one = checksum.composite || checksum.is_well_formed();
        if !is_one {
            self.checksums.get_or_init(|| {
                let (algorithm, value) = (checksum.algorithm, checksum.value.chars().take(100).collect::<String>());
                tracing::warn!(
                    bucket = &*subject.bucket,
                    key = subject.key,
                    "the server sends checksums that cannot be of their algorithm, so objects that have them are not \
                     verified: {algorithm} {value:?}"
                );
            });
        }
        is_one
    }
}

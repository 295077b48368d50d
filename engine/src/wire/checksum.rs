//! Checksums that travel in headers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};

/// The value of `content-md5` for `body`: its MD5 in base64 (RFC 1864), 24 characters.
///
/// S3 demands it (or another checksum) for `DeleteObjects`. It guards against a damaged body and proves
/// nothing about who wrote it.
pub fn content_md5(body: &[u8]) -> String {
    STANDARD.encode(Md5::digest(body))
}

#[cfg(test)]
mod tests {
    use super::content_md5;

    #[test]
    fn matches_known_digests() {
        assert_eq!(content_md5(b"Check Integrity!"), "nwqq6b6ua/tTDk7B5M184w==");
        assert_eq!(content_md5(b""), "1B2M2Y8AsgTpgAmY7PhCfg==");
    }
}

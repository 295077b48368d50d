//! Names of places: `s3://bucket/key`, a path on this machine, or `-` for a standard stream.
//!
//! Owns how a command line argument becomes one of these. Refuses an argument that names no bucket and one that
//! says `s3://` but is not UTF-8. An access point's ARN may stand in the bucket's place. Whether a bucket or key can exist is for the engine to say.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// `s3://bucket/key`; the key is empty when the bucket alone is meant, and can be a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct S3Uri {
    pub(crate) bucket: String,
    pub(crate) key: String,
}

impl S3Uri {
    /// Reads `s3://bucket[/key]`. The key is taken as it stands: nothing is decoded, no slash is folded.
    pub(crate) fn parse(text: &str) -> Result<S3Uri, String> {
        let rest = text
            .strip_prefix("s3://")
            .ok_or_else(|| format!("`{text}` is not an S3 address; write it as s3://bucket/key"))?;
        let (bucket, key) = wirespeed::split_bucket(rest);
        if bucket.is_empty() {
            return Err(format!("`{text}` names no bucket; write it as s3://bucket/key"));
        }
        Ok(S3Uri { bucket: bucket.to_owned(), key: key.to_owned() })
    }

    /// The same bucket with another key.
    pub(crate) fn with_key(&self, key: &str) -> S3Uri {
        S3Uri { bucket: self.bucket.clone(), key: key.to_owned() }
    }

    /// The key as a folder: `a/b` is `a/b/`, so that `a/b2` is not meant; the whole bucket stays empty.
    pub(crate) fn folder(&self) -> String {
        if self.key.is_empty() || self.key.ends_with('/') { self.key.clone() } else { format!("{}/", self.key) }
    }

    /// Whether this can only mean a set of objects: a bucket alone or a key that ends in `/`.
    pub(crate) fn is_prefix(&self) -> bool {
        self.key.is_empty() || self.key.ends_with('/')
    }

    /// The key's last component; empty when [`is_prefix`](Self::is_prefix).
    pub(crate) fn file_name(&self) -> &str {
        self.key.rsplit('/').next().unwrap_or_default()
    }
}

impl fmt::Display for S3Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}", self.bucket)?;
        if self.key.is_empty() { Ok(()) } else { write!(f, "/{}", self.key) }
    }
}

/// One end of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    S3(S3Uri),
    Local(PathBuf),
    /// `-`
    Standard,
}

impl Location {
    /// Reads one end of a copy; a local path may be any bytes, an S3 address must be UTF-8.
    pub(crate) fn parse(text: OsString) -> Result<Location, String> {
        if text == "-" {
            return Ok(Location::Standard);
        }
        if text.is_empty() {
            return Err("an empty path names nothing".to_owned());
        }
        if !text.as_encoded_bytes().starts_with(b"s3://") {
            return Ok(Location::Local(PathBuf::from(text)));
        }
        match text.into_string() {
            Ok(text) => S3Uri::parse(&text).map(Location::S3),
            Err(text) => Err(format!("`{}` is not UTF-8, and S3 keys are", text.display())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn uri(text: &str) -> S3Uri {
        S3Uri::parse(text).unwrap()
    }

    #[test]
    fn a_bucket_alone() {
        assert_eq!(uri("s3://b"), uri("s3://b/"));
        assert!(uri("s3://b").is_prefix());
        assert_eq!(uri("s3://b").to_string(), "s3://b");
    }

    #[test]
    fn keys_are_not_normalised() {
        assert_eq!(uri("s3://b//a/../c%20 ").key, "/a/../c%20 ");
    }

    #[test]
    fn folders_end_in_one_slash() {
        assert_eq!(uri("s3://b").folder(), "");
        assert_eq!(uri("s3://b/a").folder(), "a/");
        assert_eq!(uri("s3://b/a/").folder(), "a/");
        assert_eq!(uri("s3://b/a/c").file_name(), "c");
        assert_eq!(uri("s3://b/a/").file_name(), "");
    }

    #[test]
    fn an_access_point_stands_for_a_bucket() {
        const POINT: &str = "arn:aws:s3:eu-west-1:123456789012:accesspoint/mine";
        for (key, rest) in [("", ""), ("", "/"), ("a/b:c", "/a/b:c")] {
            let read = uri(&format!("s3://{POINT}{rest}"));
            assert_eq!((read.bucket.as_str(), read.key.as_str()), (POINT, key));
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "s3:", "s3://", "s3:///k", "b/k", "S3://b/k", "https://b/k"] {
            assert!(S3Uri::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn locations() {
        assert_eq!(Location::parse("-".into()), Ok(Location::Standard));
        assert_eq!(Location::parse("s3:/b".into()), Ok(Location::Local("s3:/b".into())));
        assert_eq!(Location::parse("s3://b/k".into()), Ok(Location::S3(uri("s3://b/k"))));
        assert!(Location::parse("".into()).is_err());
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStringExt as _;
            let odd = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            assert!(Location::parse(odd(b"s3://b/\xff")).is_err());
            assert!(matches!(Location::parse(odd(b"dir/\xff")), Ok(Location::Local(_))));
        }
    }

    proptest! {
        #[test]
        fn an_address_reads_back_as_written(bucket in "[^/]{1,20}", key in any::<String>()) {
            let written = S3Uri { bucket, key };
            prop_assert_eq!(S3Uri::parse(&written.to_string()), Ok(written));
        }
    }
}

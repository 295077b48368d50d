//! What stands where a bucket is named: a bucket, an access point's ARN, a directory bucket. Pure.
//!
//! Owns the reading of those names, and the refusals: what S3 could not hold, and what this client
//! does not speak, each by its name and with the reason, before anything is sent.

use crate::error::{Error, ErrorKind, Result};

/// What a bucket's name says about where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BucketName<'a> {
    /// A bucket, or the alias of an access point, which is used like one.
    General(&'a str),
    /// A directory bucket (S3 Express One Zone) or an access point of one, in `zone`, such as `use1-az4`.
    Directory { name: &'a str, zone: &'a str },
    /// An access point, by its ARN.
    AccessPoint { partition: &'a str, region: &'a str, account: &'a str, name: &'a str },
}

impl<'a> BucketName<'a> {
    /// Reads a name.
    ///
    /// AWS wants 3 to 63 lower-case letters, digits, dots and dashes; older buckets and other servers
    /// also have capitals, underscores and up to 255 characters, so those pass.
    pub(crate) fn read(bucket: &'a str) -> Result<BucketName<'a>> {
        let refuse =
            |why: &str| Err(Error::new(ErrorKind::Config, format!("{bucket:?} cannot be a bucket's name: {why}")));
        if let Some(arn) = bucket.strip_prefix("arn:") {
            return read_arn(bucket, arn);
        }
        let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
        if bucket.is_empty() {
            return refuse("it is empty");
        }
        if !(3..=255).contains(&bucket.len()) {
            return refuse("it must have 3 to 63 characters");
        }
        if !bucket.bytes().all(legal) {
            return refuse("it may hold letters, digits, dots and dashes only");
        }
        if !bucket.as_bytes()[0].is_ascii_alphanumeric() || bucket.contains("..") {
            return refuse("it must begin with a letter or digit and hold no two dots in a row");
        }
        if bucket.ends_with("--ol-s3") {
            return Err(object_lambda(bucket));
        }
        if bucket.ends_with("--op-s3") {
            return Err(outposts(bucket));
        }
        let directory = bucket.strip_suffix("--x-s3").or_else(|| bucket.strip_suffix("--xa-s3"));
        match directory.and_then(|front| front.rsplit_once("--")) {
            Some((name, zone)) if !name.is_empty() && !zone.is_empty() => {
                Ok(BucketName::Directory { name: bucket, zone })
            }
            _ => Ok(BucketName::General(bucket)),
        }
    }
}

/// Splits the part of an S3 URI behind `s3://` into the bucket and the key, which is empty where the bucket stands
/// alone. Neither is decoded or checked.
///
/// The bucket ends at the first slash, or, if it is the ARN of an access point or of something on Outposts, behind the
/// resource's name, whose own slashes belong to it.
///
/// ```
/// use wirespeed::split_bucket;
///
/// assert_eq!(split_bucket("bucket/a/b"), ("bucket", "a/b"));
/// let point = "arn:aws:s3:eu-west-1:123456789012:accesspoint/mine";
/// assert_eq!(split_bucket(&format!("{point}/a/b")), (point, "a/b"));
/// ```
pub fn split_bucket(rest: &str) -> (&str, &str) {
    let (bucket, key) = rest.split_at(bucket_length(rest));
    (bucket, key.strip_prefix('/').unwrap_or(key))
}

/// Length of the bucket at the beginning of `rest`.
fn bucket_length(rest: &str) -> usize {
    let first_slash = rest.find('/').unwrap_or(rest.len());
    // `arn:partition:service:region:account:kind/name`: the first slash is behind five colons.
    let slashes = match rest[..first_slash].strip_prefix("arn:").and_then(|arn| arn.splitn(5, ':').nth(4)) {
        Some("accesspoint") => 1,
        Some("outpost") => 3, // outpost/ID/accesspoint/NAME
        _ => 0,
    };
    rest.match_indices('/').nth(slashes).map_or(rest.len(), |(at, _)| at)
}

/// Refuses a bucket name that no S3 server could hold, before anything is sent.
pub(crate) fn check_bucket(bucket: &str) -> Result<()> {
    BucketName::read(bucket).map(|_| ())
}

/// Whether the bucket is a directory bucket, which lists in no order and knows no `start-after`.
pub(crate) fn is_directory_bucket(bucket: &str) -> bool {
    matches!(BucketName::read(bucket), Ok(BucketName::Directory { .. }))
}

/// `arn:partition:s3:region:account:accesspoint/name`, without its `arn:`.
fn read_arn<'a>(bucket: &'a str, arn: &'a str) -> Result<BucketName<'a>> {
    let refuse =
        |why: &str| Err(Error::new(ErrorKind::Config, format!("{bucket:?} cannot be used as a bucket: {why}")));
    let mut fields = arn.splitn(5, ':');
    let mut next = || fields.next().unwrap_or_default();
    let (partition, service, region, account, resource) = (next(), next(), next(), next(), next());
    match service {
        "s3" => {}
        "s3-object-lambda" => return Err(object_lambda(bucket)),
        "s3-outposts" => return Err(outposts(bucket)),
        _ => return refuse("it is not an ARN of S3"),
    }
    if region.is_empty() && account.is_empty() {
        return refuse("it is the ARN of a bucket or key: give the bucket's name alone");
    }
    let plain = |text: &str| {
        !text.is_empty() && text.len() <= 63 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let name = match resource.split_once(['/', ':']) {
        Some(("accesspoint", name)) => name,
        _ => return refuse("of ARNs only those of access points name something to read from or write to"),
    };
    if region.is_empty() {
        return refuse(
            "a multi-region access point is signed with Signature Version 4A, which this client does not speak; \
             name the access point or the bucket of one region",
        );
    }
    if !plain(partition) || !plain(region) || !plain(name) {
        return refuse("it should be arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME");
    }
    if account.len() != 12 || !account.bytes().all(|b| b.is_ascii_digit()) {
        return refuse("its account is not one of 12 digits");
    }
    Ok(BucketName::AccessPoint { partition, region, account, name })
}

fn object_lambda(bucket: &str) -> Error {
    Error::new(
        ErrorKind::Config,
        format!(
            "{bucket:?} is an S3 Object Lambda access point, which this client does not speak: what it returns is \
             computed, so it cannot be read in checked ranges"
        ),
    )
    .with_hint("name the access point or the bucket under it")
}

fn outposts(bucket: &str) -> Error {
    Error::new(
        ErrorKind::Config,
        format!("{bucket:?} is on S3 on Outposts, which this client does not speak: it has a service name of its own"),
    )
    .with_hint("name a bucket or access point of a region")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_exist_are_refused() {
        for bucket in ["", "ab", "a/b", "a b", "-ab", "a..b", "ümlaut"] {
            assert!(check_bucket(bucket).is_err(), "{bucket}");
        }
        for bucket in ["my.bucket-1", "Old_Bucket", "my-ap-ehf8dsgnosi7e8fkjyt1mzwd8a1t4use1a-s3alias", "--x-s3"] {
            let general = matches!(BucketName::read(bucket), Ok(BucketName::General(_)));
            assert_eq!(general, bucket != "--x-s3", "{bucket}");
        }
    }

    #[test]
    fn the_slashes_of_an_arn_belong_to_the_bucket() {
        const POINT: &str = "arn:aws:s3:eu-west-1:123456789012:accesspoint/mine";
        const COLONS: &str = "arn:aws:s3:eu-west-1:123456789012:accesspoint:mine";
        const MANY_REGIONS: &str = "arn:aws:s3::123456789012:accesspoint/mfzwi23gnjvgw.mrap";
        const LAMBDA: &str = "arn:aws:s3-object-lambda:us-west-2:123456789012:accesspoint/a";
        const OUTPOST: &str = "arn:aws:s3-outposts:us-west-2:123456789012:outpost/op-1/accesspoint/a";
        for bucket in ["bucket", POINT, COLONS, MANY_REGIONS, LAMBDA, OUTPOST, "arn:aws:s3:::bucket", "arn:", ""] {
            assert_eq!(split_bucket(bucket), (bucket, ""));
            for key in ["", "k", "a/b:c", "/a//b/", "arn:aws:s3:r:1:accesspoint/k", "k?versionId=a/b", "ü%2F#"] {
                assert_eq!(split_bucket(&format!("{bucket}/{key}")), (bucket, key));
            }
        }
        // Not an ARN: its kind is behind a slash.
        assert_eq!(split_bucket("arn:x/y:s3:r:1:accesspoint/k"), ("arn:x", "y:s3:r:1:accesspoint/k"));
        assert_eq!(split_bucket("b/arn:aws:s3:r:1:accesspoint/k"), ("b", "arn:aws:s3:r:1:accesspoint/k"));
    }

    #[test]
    fn a_directory_bucket_is_told_by_its_ending() {
        let read = BucketName::read("data--use1-az4--x-s3").unwrap();
        assert_eq!(read, BucketName::Directory { name: "data--use1-az4--x-s3", zone: "use1-az4" });
        let point = BucketName::read("point--euw1-az1--xa-s3").unwrap();
        assert!(matches!(point, BucketName::Directory { zone: "euw1-az1", .. }));
        assert!(!is_directory_bucket("data--x-s3"));
        assert!(!is_directory_bucket("data"));
    }

    #[test]
    fn an_access_point_is_told_by_its_arn() {
        for arn in
            ["arn:aws:s3:eu-west-1:123456789012:accesspoint/mine", "arn:aws:s3:eu-west-1:123456789012:accesspoint:mine"]
        {
            let read = BucketName::read(arn).unwrap();
            let expected = BucketName::AccessPoint {
                partition: "aws",
                region: "eu-west-1",
                account: "123456789012",
                name: "mine",
            };
            assert_eq!(read, expected);
        }
    }

    #[test]
    fn what_is_not_spoken_is_refused_by_name() {
        for (bucket, said) in [
            ("arn:aws:s3::123456789012:accesspoint/mfzwi23gnjvgw.mrap", "4A"),
            ("arn:aws:s3-outposts:us-west-2:123456789012:outpost/op-1/accesspoint/a", "Outposts"),
            ("arn:aws:s3-object-lambda:us-west-2:123456789012:accesspoint/a", "Object Lambda"),
            ("point-ehf8dsgnosi7e8fkjyt1mzwd8a1t4use1a--ol-s3", "Object Lambda"),
            ("point-o0000000000000000000000000000000000000000--op-s3", "Outposts"),
            ("arn:aws:s3:::bucket", "the bucket's name alone"),
            ("arn:aws:s3:::bucket/key", "the bucket's name alone"),
            ("arn:aws:sns:us-west-2:123456789012:topic", "not an ARN of S3"),
            ("arn:aws:s3:us-west-2:1234:accesspoint/a", "12 digits"),
            ("arn:aws:s3:us-west-2:123456789012:accesspoint/a/object/b", "accesspoint/NAME"),
            ("arn:aws:s3:us-west-2:123456789012:job/a", "only those of access points"),
            ("arn:aws", "not an ARN of S3"),
        ] {
            let error = BucketName::read(bucket).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}

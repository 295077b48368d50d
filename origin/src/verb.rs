//! Which operation a request asks for, and of which bucket and key: for counting, and for faults.

use std::fmt;
use std::str::FromStr;

use http::header::{AUTHORIZATION, HeaderValue, RANGE};
use http::{HeaderMap, Method, Request, Uri};
use percent_encoding::percent_decode_str;

macro_rules! verbs {
    ($($(#[$doc:meta])* $name:ident $text:literal,)*) => {
        /// An S3 operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Verb {
            $($(#[$doc])* $name,)*
        }

        impl Verb {
            /// Every verb.
            pub const ALL: &[Verb] = &[$(Verb::$name,)*];

            /// Its name in statistics and on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $(Verb::$name => $text,)*
                }
            }
        }
    };
}

verbs! {
    /// GetObject
    Get "get",
    /// HeadObject
    Head "head",
    /// PutObject
    Put "put",
    /// CopyObject
    Copy "copy",
    /// DeleteObject
    Delete "delete",
    /// DeleteObjects
    DeleteMany "delete-many",
    /// ListObjects and ListObjectsV2
    List "list",
    /// CreateMultipartUpload
    CreateMultipart "create-multipart",
    /// UploadPart
    UploadPart "upload-part",
    /// UploadPartCopy
    UploadPartCopy "upload-part-copy",
    /// CompleteMultipartUpload
    CompleteMultipart "complete-multipart",
    /// AbortMultipartUpload
    AbortMultipart "abort-multipart",
    /// ListParts
    ListParts "list-parts",
    /// ListMultipartUploads
    ListUploads "list-uploads",
    /// ListBuckets
    ListBuckets "list-buckets",
    /// CreateBucket
    CreateBucket "create-bucket",
    /// HeadBucket
    HeadBucket "head-bucket",
    /// DeleteBucket
    DeleteBucket "delete-bucket",
    /// ListObjectVersions
    ListVersions "list-versions",
    /// GetObjectTagging, PutObjectTagging and DeleteObjectTagging
    Tagging "tagging",
    /// CreateSession
    CreateSession "create-session",
    /// Anything else
    Other "other",
}

impl Verb {
    /// Whether S3 counts it among reads when it limits requests.
    pub(crate) fn is_read(self) -> bool {
        matches!(
            self,
            Self::Get
                | Self::Head
                | Self::List
                | Self::ListVersions
                | Self::ListParts
                | Self::ListUploads
                | Self::ListBuckets
                | Self::HeadBucket
        )
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Verb {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|verb| verb.name() == text).copied();
        found.ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|verb| verb.name()).collect();
            format!("no such verb: {text}; there are {}", names.join(", "))
        })
    }
}

/// The bucket and the still encoded key that a request names; both may be empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) bucket: &'a str,
    pub(crate) key: &'a str,
}

impl<'a> Target<'a> {
    /// Of a request in virtual-host style where `host` is the bucket in its Host header, else in path style.
    pub(crate) fn of(uri: &'a Uri, host: Option<&'a str>) -> Self {
        let path = uri.path().strip_prefix('/').unwrap_or(uri.path());
        let (bucket, key) = match host {
            Some(bucket) => (bucket, path),
            None => path.split_once('/').unwrap_or((path, "")),
        };
        Self { bucket, key }
    }
}

/// What a request names: its target, and which part of that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    pub(crate) target: Target<'a>,
    range: &'a [u8],
    query: &'a str,
}

impl<'a> Named<'a> {
    pub(crate) fn of<B>(target: Target<'a>, request: &'a Request<B>) -> Self {
        let range = request.headers().get(RANGE).map_or(&[][..], HeaderValue::as_bytes);
        Self { target, range, query: request.uri().query().unwrap_or("") }
    }

    /// What tells this request from others, and is the same when it is tried again: nothing of the signature, and no
    /// upload's id.
    pub(crate) fn parts(&self, verb: Verb) -> impl Iterator<Item = &'a [u8]> {
        const TELLING: [&str; 7] =
            ["partNumber=", "versionId=", "prefix=", "start-after=", "marker=", "key-marker=", "continuation-token="];
        let told = self.query.split('&').filter(|pair| TELLING.iter().any(|name| pair.starts_with(name)));
        let Target { bucket, key } = self.target;
        [verb.name().as_bytes(), bucket.as_bytes(), key.as_bytes(), self.range]
            .into_iter()
            .chain(told.map(str::as_bytes))
    }
}

/// The region that a request is signed for, if it is.
pub(crate) fn signed_region<B>(request: &Request<B>) -> Option<String> {
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let credential = match header {
        Some(header) => header.split("Credential=").nth(1)?.split(',').next()?.to_owned(),
        None => {
            let pairs = request.uri().query()?.split('&');
            let encoded = pairs.filter_map(|pair| pair.strip_prefix("X-Amz-Credential=")).next()?;
            decode(encoded).into_owned()
        }
    };
    credential.rsplit('/').nth(2).map(str::to_owned)
}

/// A key as it is, from the encoded form of a URI.
pub(crate) fn decode(key: &str) -> std::borrow::Cow<'_, str> {
    percent_decode_str(key).decode_utf8_lossy()
}

/// The operation that a request asks for.
pub(crate) fn classify(method: &Method, target: Target<'_>, uri: &Uri, headers: &HeaderMap) -> Verb {
    let Target { bucket, key } = target;
    let query = uri.query().unwrap_or("");
    let names = |name: &str| query.split('&').any(|pair| pair.split('=').next() == Some(name));
    let copies = || headers.contains_key("x-amz-copy-source");
    match (method.as_str(), bucket.is_empty(), key.is_empty()) {
        ("GET", true, _) => Verb::ListBuckets,
        ("GET", false, true) if names("uploads") => Verb::ListUploads,
        ("GET", false, true) if names("versions") => Verb::ListVersions,
        ("GET", false, true) if names("session") => Verb::CreateSession,
        ("GET" | "PUT" | "DELETE", false, false) if names("tagging") => Verb::Tagging,
        ("GET", false, true) if query.is_empty() || names("list-type") || names("prefix") || names("marker") => {
            Verb::List
        }
        ("GET", false, true) if names("delimiter") || names("max-keys") || names("encoding-type") => Verb::List,
        ("GET", false, false) if names("uploadId") => Verb::ListParts,
        ("GET", false, false) if ["acl", "attributes"].into_iter().any(names) => Verb::Other,
        ("GET", false, false) => Verb::Get,
        ("HEAD", false, true) => Verb::HeadBucket,
        ("HEAD", false, false) => Verb::Head,
        ("PUT", false, true) if query.is_empty() => Verb::CreateBucket,
        ("PUT", false, false) if names("uploadId") && copies() => Verb::UploadPartCopy,
        ("PUT", false, false) if names("uploadId") => Verb::UploadPart,
        ("PUT", false, false) if names("acl") => Verb::Other,
        ("PUT", false, false) if copies() => Verb::Copy,
        ("PUT", false, false) => Verb::Put,
        ("POST", false, true) if names("delete") => Verb::DeleteMany,
        ("POST", false, false) if names("uploads") => Verb::CreateMultipart,
        ("POST", false, false) if names("uploadId") => Verb::CompleteMultipart,
        ("DELETE", false, true) if query.is_empty() => Verb::DeleteBucket,
        ("DELETE", false, false) if names("uploadId") => Verb::AbortMultipart,
        ("DELETE", false, false) => Verb::Delete,
        _ => Verb::Other,
    }
}

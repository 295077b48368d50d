//! Turning what the store knows into what answers carry, and what requests carry into what the store keeps.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use s3s::dto::{ETag, Metadata, Owner, StorageClass, Timestamp};
use s3s::{S3Error, S3ErrorCode, S3Result, s3_error};

use crate::store::bucket::Refusal;
use crate::store::object::Head;

/// The headers of an upload, gathered from any input that carries them.
macro_rules! head_of {
    ($input:expr) => {
        $crate::store::object::Head {
            content_type: $input.content_type.take(),
            content_encoding: $crate::protocol::reply::kept_encoding($input.content_encoding.take()),
            content_language: $input.content_language.take(),
            content_disposition: $input.content_disposition.take(),
            cache_control: $input.cache_control.take(),
            expires: $input.expires.take().map($crate::protocol::reply::epoch_seconds),
            website_redirect: $input.website_redirect_location.take(),
            storage_class: $crate::protocol::reply::known_class($input.storage_class.take())?,
            metadata: $crate::protocol::reply::metadata_of($input.metadata.take())?,
            tags: $crate::protocol::tagging::parse($input.tagging.take())?,
            encryption: $crate::protocol::encryption::asked!($input)?,
        }
    };
}
pub(super) use head_of;

/// The fields that GET and HEAD answers have in common.
macro_rules! describe {
    ($output:ty, $object:expr) => {{
        let object: &$crate::store::object::Object = $object;
        let head = &object.head;
        let default_type = || "binary/octet-stream".to_owned();
        let mut output = <$output>::default();
        output.accept_ranges = Some("bytes".to_owned());
        output.content_type = Some(head.content_type.clone().unwrap_or_else(default_type));
        output.content_encoding = head.content_encoding.clone();
        output.content_language = head.content_language.clone();
        output.content_disposition = head.content_disposition.clone();
        output.cache_control = head.cache_control.clone();
        output.expires = head.expires.map($crate::protocol::reply::from_epoch_seconds);
        output.website_redirect_location = head.website_redirect.clone();
        output.storage_class = head.storage_class.clone().map(s3s::dto::StorageClass::from);
        output.metadata = $crate::protocol::reply::metadata_to(head);
        output.e_tag = Some($crate::protocol::reply::etag(&object.etag));
        output.last_modified = Some(object.modified.into());
        output.version_id = object.version.clone();
        $crate::protocol::encryption::show_encryption!(output, &head.encryption);
        output
    }};
}
pub(super) use describe;

/// `aws-chunked` tells how the upload was framed; it is no property of the object.
pub(super) fn kept_encoding(encoding: Option<String>) -> Option<String> {
    let encoding = encoding?;
    let kept: Vec<_> = encoding.split(',').map(str::trim).filter(|name| *name != "aws-chunked").collect();
    let kept = kept.join(", ");
    (!kept.is_empty()).then_some(kept)
}

/// The most metadata of one object: 2 KiB of names and values, as in S3.
const METADATA: usize = 2 << 10;

pub(super) fn metadata_of(metadata: Option<Metadata>) -> S3Result<BTreeMap<String, String>> {
    let metadata: BTreeMap<_, _> = metadata.unwrap_or_default().into_iter().collect();
    if metadata.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() > METADATA {
        return Err(s3_error!(MetadataTooLarge, "Your metadata headers exceed the maximum allowed metadata size"));
    }
    Ok(metadata)
}

/// A storage class that S3 has; the standard one is not told of.
pub(super) fn known_class(class: Option<StorageClass>) -> S3Result<Option<String>> {
    const CLASSES: [&str; 12] = [
        StorageClass::DEEP_ARCHIVE,
        StorageClass::EXPRESS_ONEZONE,
        StorageClass::GLACIER,
        StorageClass::GLACIER_IR,
        StorageClass::INTELLIGENT_TIERING,
        StorageClass::ONEZONE_IA,
        StorageClass::OUTPOSTS,
        StorageClass::REDUCED_REDUNDANCY,
        StorageClass::SNOW,
        StorageClass::STANDARD,
        StorageClass::STANDARD_IA,
        "FSX_OPENZFS",
    ];
    let Some(class) = class else { return Ok(None) };
    if !CLASSES.contains(&class.as_str()) {
        return Err(s3_error!(InvalidStorageClass, "The storage class you specified is not valid"));
    }
    Ok(Some(class.as_str().to_owned()).filter(|class| class != StorageClass::STANDARD))
}

pub(super) fn metadata_to(head: &Head) -> Option<HashMap<String, String>> {
    (!head.metadata.is_empty()).then(|| head.metadata.clone().into_iter().collect())
}

/// A strong ETag from its value without quotes.
pub(super) fn etag(value: &str) -> ETag {
    ETag::Strong(value.to_owned())
}

pub(super) fn epoch_seconds(time: Timestamp) -> i64 {
    seconds(system_time(time))
}

pub(super) fn from_epoch_seconds(seconds: i64) -> Timestamp {
    let since = Duration::from_secs(seconds.unsigned_abs());
    Timestamp::from(if seconds < 0 { UNIX_EPOCH - since } else { UNIX_EPOCH + since })
}

/// Whole seconds since the epoch, as HTTP dates count.
pub(super) fn seconds(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_secs() as i64,
        Err(before) => -(before.duration().as_secs() as i64),
    }
}

pub(super) fn system_time(time: Timestamp) -> SystemTime {
    let mut text = Vec::new();
    let formatted = time.format(s3s::dto::TimestampFormat::EpochSeconds, &mut text);
    let seconds = formatted.ok().and_then(|()| std::str::from_utf8(&text).ok()?.parse::<f64>().ok()).unwrap_or(0.0);
    if seconds < 0.0 { UNIX_EPOCH } else { UNIX_EPOCH + Duration::from_secs_f64(seconds) }
}

/// The one owner of everything here.
pub(super) fn owner() -> Owner {
    Owner { display_name: Some("wirespeed".to_owned()), id: Some("wirespeed-origin".to_owned()) }
}

/// An error that carries headers besides its XML.
pub(super) fn error_with_headers(
    code: S3ErrorCode,
    message: &'static str,
    headers: &[(HeaderName, String)],
) -> S3Error {
    let mut map = HeaderMap::new();
    // Headers given to the error replace its own, of which it has this one.
    map.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            map.insert(name, value);
        }
    }
    let mut error = S3Error::with_message(code, message);
    error.set_headers(map);
    error
}

/// An error by a code that `s3s` has no name for.
pub(crate) fn error_called(code: &'static str, status: StatusCode, message: impl Into<Cow<'static, str>>) -> S3Error {
    let code = S3ErrorCode::from_bytes(code.as_bytes()).unwrap_or(S3ErrorCode::InvalidRequest);
    let mut error = S3Error::with_message(code, message);
    error.set_status_code(status);
    error
}

/// A failure of the store's own, told without its inner workings.
pub(super) fn internal(error: io::Error) -> S3Error {
    tracing::error!(%error, "the store failed");
    S3Error::with_message(S3ErrorCode::InternalError, "We encountered an internal error. Please try again.")
}

pub(super) fn refused(refusal: Refusal) -> S3Error {
    match refusal {
        Refusal::Condition => S3Error::with_message(
            S3ErrorCode::PreconditionFailed,
            "At least one of the pre-conditions you specified did not hold",
        ),
        Refusal::Missing => no_such_key(),
        Refusal::Io(error) => internal(error),
    }
}

pub(super) fn no_such_key() -> S3Error {
    S3Error::with_message(S3ErrorCode::NoSuchKey, "The specified key does not exist.")
}

//! Conditional requests: which conditions hold, and which answer says that one does not.
//!
//! Order and precedence are HTTP's (RFC 9110, 13.2.2): If-Match, else If-Unmodified-Since; then If-None-Match,
//! else If-Modified-Since. Times are compared in whole seconds, which is all that HTTP dates carry.

use http::header::{ETAG, LAST_MODIFIED};
use s3s::dto::{ETagCondition, Timestamp};
use s3s::{S3ErrorCode, S3Result, s3_error};

use super::reply::{epoch_seconds, error_with_headers, seconds};
use crate::store::bucket::Condition;
use crate::store::object::Object;

/// The conditions of one read.
#[derive(Default)]
pub(super) struct Read {
    pub(super) if_match: Option<ETagCondition>,
    pub(super) if_none_match: Option<ETagCondition>,
    pub(super) if_modified_since: Option<Timestamp>,
    pub(super) if_unmodified_since: Option<Timestamp>,
}

impl Read {
    /// # Errors
    /// `PreconditionFailed` (412) or `NotModified` (304).
    pub(super) fn check(self, object: &Object) -> S3Result<()> {
        let modified = seconds(object.modified);
        let unchanged = match (self.if_match, self.if_unmodified_since) {
            (Some(condition), _) => matches(&condition, object),
            (None, Some(time)) => modified <= epoch_seconds(time),
            (None, None) => true,
        };
        if !unchanged {
            return Err(s3_error!(PreconditionFailed, "At least one of the pre-conditions you specified did not hold"));
        }
        let wanted = match (self.if_none_match, self.if_modified_since) {
            (Some(condition), _) => !matches(&condition, object),
            (None, Some(time)) => modified > epoch_seconds(time),
            (None, None) => true,
        };
        if wanted {
            return Ok(());
        }
        let etag = format!("\"{}\"", object.etag);
        let headers = [(ETAG, etag), (LAST_MODIFIED, http_date(object))];
        Err(error_with_headers(S3ErrorCode::NotModified, "Not Modified", &headers))
    }
}

/// The condition of a write.
///
/// # Errors
/// `NotImplemented` for what S3 does not take either: If-None-Match with an ETag.
pub(super) fn of_write(if_match: Option<ETagCondition>, if_none_match: Option<ETagCondition>) -> S3Result<Condition> {
    match (if_match, if_none_match) {
        (None, None) => Ok(Condition::None),
        (None, Some(ETagCondition::Any)) => Ok(Condition::Absent),
        (Some(ETagCondition::Any), None) => Ok(Condition::Present),
        (Some(ETagCondition::ETag(etag)), None) => Ok(Condition::Etag(etag.value().to_owned())),
        _ => Err(s3_error!(NotImplemented, "A write takes If-Match, or If-None-Match with the value *")),
    }
}

fn matches(condition: &ETagCondition, object: &Object) -> bool {
    match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(etag) => etag.value() == object.etag,
    }
}

fn http_date(object: &Object) -> String {
    let mut text = Vec::new();
    let formatted = Timestamp::from(object.modified).format(s3s::dto::TimestampFormat::HttpDate, &mut text);
    formatted.map(|()| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
}

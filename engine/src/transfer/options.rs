//! What a request carries beyond its own headers, and how it is given: who pays, who must own the
//! bucket, the customer's own key, the version.
//!
//! An operation keeps these beside its subject ([`Attached`]), so that every request made for it
//! carries them: a download's later ranges, each part of an upload, the abort after a failure. What
//! belongs to one kind of request only (metadata, conditions) is a list of [`Fields`] in the call.
//! An operation without any of it pays one comparison a request.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use smallvec::SmallVec;

use super::request::Call;
use crate::error::{Error, ErrorKind, Result};
use crate::wire::checksum::content_md5;
use crate::wire::request::Method;

/// Names and values as a request takes them.
pub(crate) type Borrowed<'a> = SmallVec<[(&'a str, &'a str); 8]>;

/// Headers of one kind of request, kept for as long as it may be repeated.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields(Vec<(Cow<'static, str>, String)>);

impl Fields {
    pub(crate) fn push(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) {
        self.0.push((name.into(), value.into()));
    }

    pub(crate) fn push_some(&mut self, name: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.push(name, value);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, value.as_str()))
    }

    pub(crate) fn borrowed(&self) -> Borrowed<'_> {
        self.iter().collect()
    }
}

/// A time as HTTP writes it (RFC 9110, section 5.6.7); none outside the years that it can write.
pub(crate) fn http_date(time: Timestamp) -> Option<String> {
    jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&time).ok()
}

/// A key of the customer's own (SSE-C): the server encrypts with it and forgets it. Who loses it
/// loses the object.
///
/// It travels with every request that reads or writes the object's bytes. AWS takes it over TLS only.
///
/// ```
/// let key = wirespeed::SseCustomerKey::new(&[7; 32])?;
/// assert_eq!(format!("{key:?}"), "SseCustomerKey(hidden)");
/// # Ok::<(), wirespeed::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SseCustomerKey {
    key: String,
    md5: String,
}

impl SseCustomerKey {
    /// A key for AES-256.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] where it has not exactly 32 bytes.
    pub fn new(key: &[u8]) -> Result<SseCustomerKey> {
        if key.len() != 32 {
            let message = format!("the customer's encryption key has {} bytes", key.len());
            return Err(Error::new(ErrorKind::Config, message).with_hint("AES-256 takes 32 bytes, not encoded"));
        }
        Ok(SseCustomerKey { key: STANDARD.encode(key), md5: content_md5(key) })
    }

    /// The headers that tell the key of the object in question.
    fn headers(&self) -> [(&'static str, &str); 3] {
        [
            ("x-amz-server-side-encryption-customer-algorithm", "AES256"),
            ("x-amz-server-side-encryption-customer-key", &self.key),
            ("x-amz-server-side-encryption-customer-key-md5", &self.md5),
        ]
    }

    /// The headers that tell the key of a copy's source.
    pub(crate) fn push_as_source(&self, fields: &mut Fields) {
        fields.push("x-amz-copy-source-server-side-encryption-customer-algorithm", "AES256");
        fields.push("x-amz-copy-source-server-side-encryption-customer-key", &*self.key);
        fields.push("x-amz-copy-source-server-side-encryption-customer-key-md5", &*self.md5);
    }
}

impl fmt::Debug for SseCustomerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SseCustomerKey(hidden)")
    }
}

/// Who pays for a request, and who must own the bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) request_payer: bool,
    pub(crate) expected_owner: Option<String>,
}

impl Access {
    pub(crate) fn attached(self) -> Option<Arc<Attached>> {
        Attached { access: self, ..Attached::default() }.shared()
    }
}

/// What every request of one operation carries.
#[derive(Clone, Default)]
pub(crate) struct Attached {
    pub(crate) access: Access,
    pub(crate) customer_key: Option<SseCustomerKey>,
    /// The version that is read or deleted.
    pub(crate) version_id: Option<String>,
}

impl Attached {
    /// None where there is nothing to carry.
    pub(crate) fn shared(self) -> Option<Arc<Attached>> {
        let none = self.access == Access::default() && self.customer_key.is_none() && self.version_id.is_none();
        (!none).then(|| Arc::new(self))
    }

    /// The query and the headers of `call`, and what belongs to it from here.
    pub(crate) fn beside<'a>(&'a self, call: &Call<'a>) -> (Borrowed<'a>, Borrowed<'a>) {
        let mut query = Borrowed::from_slice(call.query);
        let mut headers = Borrowed::from_slice(call.headers);
        if self.access.request_payer {
            headers.push(("x-amz-request-payer", "requester"));
        }
        if let Some(owner) = &self.access.expected_owner {
            headers.push(("x-amz-expected-bucket-owner", owner));
        }
        // Deleting and aborting touch no bytes.
        if let Some(key) = self.customer_key.as_ref().filter(|_| call.method != Method::Delete) {
            headers.extend(key.headers());
        }
        if let Some(version) = &self.version_id
            && !query.iter().any(|(name, _)| *name == "versionId")
        {
            query.push(("versionId", version));
        }
        (query, headers)
    }
}

/// Gives a builder the methods that say who pays and who must own the bucket.
macro_rules! access_methods {
    ($builder:ident, $this:ident => $access:expr) => {
        impl $builder {
            /// Agrees to pay for the requests, as buckets whose requesters pay demand
            /// (`x-amz-request-payer`).
            pub fn request_payer(mut self) -> $builder {
                let $this = &mut self;
                $access.request_payer = true;
                self
            }

            /// Refuses a bucket that does not belong to this account, an id of 12 digits
            /// (`x-amz-expected-bucket-owner`): the error is of kind
            /// [`Denied`](crate::ErrorKind::Denied).
            pub fn expected_owner(mut self, account: impl Into<String>) -> $builder {
                let $this = &mut self;
                $access.expected_owner = Some(account.into());
                self
            }
        }
    };
}
pub(crate) use access_methods;

/// Gives a builder that has nothing more to be chosen its `await`.
macro_rules! sent_by_await {
    ($builder:ident, $output:ty) => {
        impl IntoFuture for $builder {
            type Output = crate::error::Result<$output>;
            type IntoFuture = crate::transfer::options::Sending<$output>;

            fn into_future(self) -> Self::IntoFuture {
                Box::pin(self.send())
            }
        }
    };
}
pub(crate) use sent_by_await;

/// An operation that is under way.
pub type Sending<T> = std::pin::Pin<Box<dyn Future<Output = Result<T>> + Send>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_customers_key_is_as_s3_documents_it_and_never_shown() {
        let key = SseCustomerKey::new(b"0123456789abcdef0123456789abcdef").unwrap();
        assert_eq!(key.headers()[1].1, "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");
        assert_eq!(key.headers()[2].1, content_md5(b"0123456789abcdef0123456789abcdef"));
        assert!(!format!("{key:?}").contains("MDEy"));
        assert_eq!(SseCustomerKey::new(b"short").unwrap_err().kind(), ErrorKind::Config);
    }

    #[test]
    fn what_is_attached_goes_with_the_requests_that_it_belongs_to() {
        let attached = Attached {
            access: Access { request_payer: true, expected_owner: Some("123".into()) },
            customer_key: Some(SseCustomerKey::new(&[1; 32]).unwrap()),
            version_id: Some("v1".into()),
        };
        let names = |call: &Call<'_>| {
            let (query, headers) = attached.beside(call);
            (query.iter().map(|pair| pair.1.to_owned()).collect::<Vec<_>>(), headers.len())
        };
        assert_eq!(names(&Call::new(Method::Get)), (vec!["v1".to_owned()], 5));
        assert_eq!(names(&Call::new(Method::Delete)), (vec!["v1".to_owned()], 2), "no key with a delete");
        let pinned = Call { query: &[("versionId", "v2")], ..Call::new(Method::Get) };
        assert_eq!(names(&pinned).0, ["v2"], "named once");
        assert!(Attached::default().shared().is_none());
    }

    #[test]
    fn times_are_written_as_http_writes_them() {
        let time = Timestamp::from_second(1_445_412_480).unwrap();
        assert_eq!(http_date(time).unwrap(), "Wed, 21 Oct 2015 07:28:00 GMT");
    }
}

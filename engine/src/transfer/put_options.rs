//! What an object is written with: how it is described, kept, encrypted and guarded.
//!
//! The one list of options behind PUT, PUT of many, copies and uploads of unknown length. What a
//! multipart upload needs of it is spread over its requests: the description goes with the start,
//! the conditions with the completion, the customer's key and the bucket's owner with all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::options::{Access, Attached, Fields, SseCustomerKey};
use crate::wire::uri::encode_query;

/// How an object is to be written. Also spelled out on each builder that writes; this is for those
/// who write many with the same options.
///
/// ```no_run
/// # async fn example(client: wirespeed::Client) -> wirespeed::Result<()> {
/// use wirespeed::PutOptions;
///
/// let options = PutOptions::new()
///     .content_type("text/csv")
///     .metadata("origin", "sensor-7")
///     .tag("team", "weather")
///     .storage_class("STANDARD_IA")
///     .sse_kms("alias/reports");
/// client.put("bucket", "a.csv").options(options.clone()).file("a.csv").await?;
/// client.put("bucket", "b.csv").options(options).file("b.csv").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutOptions {
    pub(crate) access: Access,
    pub(crate) content_type: Option<String>,
    pub(crate) content_encoding: Option<String>,
    pub(crate) content_disposition: Option<String>,
    pub(crate) content_language: Option<String>,
    pub(crate) cache_control: Option<String>,
    /// An HTTP date.
    pub(crate) expires: Option<String>,
    pub(crate) website_redirect: Option<String>,
    pub(crate) metadata: Vec<(String, String)>,
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) storage_class: Option<String>,
    pub(crate) acl: Option<String>,
    /// Grants of access and the object's lock, by header name.
    pub(crate) protection: BTreeMap<&'static str, String>,
    /// SSE-S3: a key of the service.
    pub(crate) service_key: bool,
    pub(crate) kms: Option<Kms>,
    pub(crate) customer_key: Option<SseCustomerKey>,
    pub(crate) condition: Condition,
    /// The object is to be proven to be stored.
    pub(crate) confirm: bool,
}

/// SSE-KMS: with which of the account's keys, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kms {
    /// The account's default key where it is not named.
    pub(crate) key_id: Option<String>,
    pub(crate) bucket_key: Option<bool>,
    pub(crate) context: Option<String>,
}

/// What must hold for the object to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Condition {
    #[default]
    None,
    /// There is no object of that key.
    Absent,
    /// There is one, with this entity tag.
    Matches(String),
}

impl PutOptions {
    /// Nothing beyond the server's defaults.
    pub fn new() -> PutOptions {
        PutOptions::default()
    }

    /// The headers of the request that creates the object or its upload.
    pub(crate) fn of_object(&self) -> Fields {
        let mut fields = self.description();
        fields.push_some("x-amz-website-redirect-location", self.website_redirect.as_deref());
        if let Some(tags) = self.tags_in_a_header() {
            fields.push("x-amz-tagging", tags);
        }
        fields.push_some("x-amz-storage-class", self.storage_class.as_deref());
        fields.push_some("x-amz-acl", self.acl.as_deref());
        for (name, value) in &self.protection {
            fields.push(*name, value);
        }
        if self.service_key {
            fields.push("x-amz-server-side-encryption", "AES256");
        }
        if let Some(Kms { key_id, bucket_key, context }) = &self.kms {
            fields.push("x-amz-server-side-encryption", "aws:kms");
            fields.push_some("x-amz-server-side-encryption-aws-kms-key-id", key_id.as_deref());
            if let Some(bucket_key) = bucket_key {
                fields.push("x-amz-server-side-encryption-bucket-key-enabled", bucket_key.to_string());
            }
            let context = context.as_ref().map(|context| STANDARD.encode(context));
            fields.push_some("x-amz-server-side-encryption-context", context.as_deref());
        }
        fields
    }

    /// What a copy takes from its source unless it is told otherwise.
    fn description(&self) -> Fields {
        let mut fields = Fields::default();
        for (name, value) in [
            ("content-type", &self.content_type),
            ("content-encoding", &self.content_encoding),
            ("content-disposition", &self.content_disposition),
            ("content-language", &self.content_language),
            ("cache-control", &self.cache_control),
            ("expires", &self.expires),
        ] {
            fields.push_some(name, value.as_deref());
        }
        for (name, value) in &self.metadata {
            fields.push(format!("x-amz-meta-{}", name.to_ascii_lowercase()), value);
        }
        fields
    }

    /// Whether it says anything of what a copy takes from its source otherwise.
    pub(crate) fn describes(&self) -> bool {
        !self.description().is_empty()
    }

    /// The headers of the request that makes the object visible.
    pub(crate) fn conditions(&self) -> Fields {
        let mut fields = Fields::default();
        match &self.condition {
            Condition::None => {}
            Condition::Absent => fields.push("if-none-match", "*"),
            Condition::Matches(etag) => fields.push("if-match", etag),
        }
        fields
    }

    /// What goes with every request.
    pub(crate) fn attached(&self) -> Option<Arc<Attached>> {
        Attached { access: self.access.clone(), customer_key: self.customer_key.clone(), version_id: None }.shared()
    }

    /// `x-amz-tagging`: pairs as in a query.
    fn tags_in_a_header(&self) -> Option<String> {
        if self.tags.is_empty() {
            return None;
        }
        let mut text = Vec::new();
        for (name, value) in &self.tags {
            if !text.is_empty() {
                text.push(b'&');
            }
            encode_query(&mut text, name);
            text.push(b'=');
            encode_query(&mut text, value);
        }
        // Percent-encoded, so it is ASCII.
        String::from_utf8(text).ok()
    }
}

/// The options of a write, as its requests take them.
#[derive(Default)]
pub(crate) struct Written {
    /// With PutObject, CreateMultipartUpload and CopyObject.
    pub(crate) object: Fields,
    /// With PutObject, CompleteMultipartUpload and CopyObject.
    pub(crate) conditions: Fields,
    /// Requires proof that the object is stored: an answer alone is not enough.
    pub(crate) confirm: bool,
}

impl Written {
    pub(crate) fn new(options: &PutOptions) -> Arc<Written> {
        let (object, conditions) = (options.of_object(), options.conditions());
        Arc::new(Written { object, conditions, confirm: options.confirm })
    }
}

/// Gives a builder the methods that say how to write.
macro_rules! put_methods {
    ($builder:ident, $this:ident => $options:expr) => {
        crate::transfer::options::access_methods!($builder, $this => $options.access);

        impl $builder {
            /// The media type, as `text/csv`; where it is not given, the server's default.
            pub fn content_type(mut self, media_type: impl Into<String>) -> $builder {
                let $this = &mut self;
                $options.content_type = Some(media_type.into());
                self
            }

            /// How the bytes are encoded, as `gzip`. They are stored and read as they are.
            pub fn content_encoding(mut self, encoding: impl Into<String>) -> $builder {
                let $this = &mut self;
                $options.content_encoding = Some(encoding.into());
                self
            }

            /// How a browser should present the object, as `attachment; filename="a.csv"`.
            pub fn content_disposition(mut self, disposition: impl Into<String>) -> $builder {
                let $this = &mut self;
                $options.content_disposition = Some(disposition.into());
                self
            }

            /// The language that the content is in, as `de-CH`.
            pub fn content_language(mut self, language: impl Into<String>) -> $builder {
                let $this = &mut self;
                $options.content_language = Some(language.into());
                self
            }

            /// How caches may keep the object, as `max-age=3600`.
            pub fn cache_control(mut self, directives: impl Into<String>) -> $builder {
                let $this = &mut self;
                $options.cache_control = Some(directives.into());
                self
            }

            /// When caches should ask again, to the second.
            pub fn expires(mut self, time: jiff::Timestamp) -> $builder {
                let $this = &mut self;
                $options.expires = crate::transfer::options::http_date(time);
                self
            }

            /// Where a website bucket sends who asks for the object.
            pub fn website_redirect(mut self, location: impl Into<String>) -> $builder {
                let $this = &mut self;
                $options.website_redirect = Some(location.into());
                self
            }

            /// Adds a pair of the user's own metadata. The name is sent in lower case, without
            /// `x-amz-meta-` here; the value must be visible ASCII. S3 keeps 2 KB of them.
            pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> $builder {
                let $this = &mut self;
                $options.metadata.push((name.into(), value.into()));
                self
            }

            /// Adds a tag. S3 keeps 10 of them an object.
            pub fn tag(mut self, name: impl Into<String>, value: impl Into<String>) -> $builder {
                let $this = &mut self;
                $options.tags.push((name.into(), value.into()));
                self
            }

            /// The storage class, as `STANDARD_IA`.
            pub fn storage_class(mut self, class: impl Into<String>) -> $builder {
                let $this = &mut self;
                $options.storage_class = Some(class.into());
                self
            }

            /// A canned access control list, as `bucket-owner-full-control`. Buckets whose owner is
            /// enforced, AWS's default, refuse most of them.
            pub fn acl(mut self, canned: impl Into<String>) -> $builder {
                let $this = &mut self;
                $options.acl = Some(canned.into());
                self
            }

            /// Grants all rights to these grantees, as `id="123", uri="http://acs.amazonaws.com/groups/global/AllUsers"`.
            /// Buckets whose owner is enforced, AWS's default, refuse grants.
            pub fn grant_full_control(mut self, grantees: impl Into<String>) -> $builder {
                let $this = &mut self;
                $options.protection.insert("x-amz-grant-full-control", grantees.into());
                self
            }

            /// Lets these grantees read the object and its metadata.
            pub fn grant_read(mut self, grantees: impl Into<String>) -> $builder {
                let $this = &mut self;
                $options.protection.insert("x-amz-grant-read", grantees.into());
                self
            }

            /// Lets these grantees read the object's access control list.
            pub fn grant_read_acp(mut self, grantees: impl Into<String>) -> $builder {
                let $this = &mut self;
                $options.protection.insert("x-amz-grant-read-acp", grantees.into());
                self
            }

            /// Lets these grantees write the object's access control list.
            pub fn grant_write_acp(mut self, grantees: impl Into<String>) -> $builder {
                let $this = &mut self;
                $options.protection.insert("x-amz-grant-write-acp", grantees.into());
                self
            }

            /// Retention mode of the object's lock, `GOVERNANCE` or `COMPLIANCE`; needs
            /// `object_lock_retain_until`, and a bucket with Object Lock.
            pub fn object_lock_mode(mut self, mode: impl Into<String>) -> $builder {
                let $this = &mut self;
                $options.protection.insert("x-amz-object-lock-mode", mode.into());
                self
            }

            /// Time until which this version can't be deleted; needs `object_lock_mode`.
            pub fn object_lock_retain_until(mut self, time: jiff::Timestamp) -> $builder {
                let $this = &mut self;
                $options.protection.insert("x-amz-object-lock-retain-until-date", time.to_string());
                self
            }

            /// Legal hold: this version can't be deleted until the hold is taken off.
            pub fn object_lock_legal_hold(mut self, on: bool) -> $builder {
                let $this = &mut self;
                let state = if on { "ON" } else { "OFF" };
                $options.protection.insert("x-amz-object-lock-legal-hold", state.to_owned());
                self
            }

            /// Encrypted with a key of the service's (SSE-S3).
            pub fn sse_s3(mut self) -> $builder {
                let $this = &mut self;
                $options.service_key = true;
                $options.kms = None;
                self
            }

            /// Encrypted with a key of KMS (SSE-KMS): its id, its ARN or an alias; an empty text is
            /// the account's default key.
            pub fn sse_kms(mut self, key_id: impl Into<String>) -> $builder {
                let $this = &mut self;
                $options.service_key = false;
                $options.kms.get_or_insert_default().key_id = Some(key_id.into()).filter(|id| !id.is_empty());
                self
            }

            /// Whether the bucket's own key stands between KMS and the object, which saves requests
            /// to KMS. Means SSE-KMS.
            pub fn sse_kms_bucket_key(mut self, enabled: bool) -> $builder {
                let $this = &mut self;
                $options.service_key = false;
                $options.kms.get_or_insert_default().bucket_key = Some(enabled);
                self
            }

            /// The encryption context for KMS: the text of a JSON object of strings. Means SSE-KMS.
            pub fn sse_kms_context(mut self, json: impl Into<String>) -> $builder {
                let $this = &mut self;
                $options.service_key = false;
                $options.kms.get_or_insert_default().context = Some(json.into());
                self
            }

            /// Encrypted with the customer's own key (SSE-C).
            pub fn sse_customer_key(mut self, key: crate::SseCustomerKey) -> $builder {
                let $this = &mut self;
                $options.customer_key = Some(key);
                self
            }

            /// Only where no object of that key exists (`If-None-Match: *`); otherwise an error of
            /// kind [`Precondition`](crate::ErrorKind::Precondition).
            ///
            /// When the answer to an attempt was lost and the next finds an object, it is compared
            /// with what was sent; where that cannot be told, the error says so.
            pub fn if_none_match_any(mut self) -> $builder {
                let $this = &mut self;
                $options.condition = crate::transfer::put_options::Condition::Absent;
                self
            }

            /// Only where the object that is there has this entity tag; otherwise an error of kind
            /// [`Precondition`](crate::ErrorKind::Precondition), or
            /// [`NotFound`](crate::ErrorKind::NotFound) where there is none.
            pub fn if_match(mut self, etag: impl Into<String>) -> $builder {
                let $this = &mut self;
                $options.condition = crate::transfer::put_options::Condition::Matches(etag.into());
                self
            }

            /// Succeeds only where the object is proven to be stored, for callers who then delete what it was made of.
            ///
            /// S3's usual answers are proof, and cost no request: the checksum that was sent, or an entity tag that
            /// follows from those of the source or of the parts. After any other answer the object is asked for with
            /// a HEAD, and must have the size and the entity tag that the answer named.
            pub fn confirmed(mut self) -> $builder {
                let $this = &mut self;
                $options.confirm = true;
                self
            }
        }
    };
}
pub(crate) use put_methods;

put_methods!(PutOptions, this => this);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_and_locks_go_with_the_request_that_creates_the_object() {
        let options = PutOptions::new()
            .grant_full_control("id=\"a\"")
            .grant_read("id=\"b\"")
            .grant_read("id=\"c\"")
            .grant_read_acp("id=\"d\"")
            .grant_write_acp("id=\"e\"")
            .object_lock_mode("GOVERNANCE")
            .object_lock_retain_until("2030-01-01T00:00:00Z".parse().unwrap())
            .object_lock_legal_hold(true);
        assert_eq!(
            options.of_object().iter().collect::<Vec<_>>(),
            [
                ("x-amz-grant-full-control", "id=\"a\""),
                ("x-amz-grant-read", "id=\"c\""),
                ("x-amz-grant-read-acp", "id=\"d\""),
                ("x-amz-grant-write-acp", "id=\"e\""),
                ("x-amz-object-lock-legal-hold", "ON"),
                ("x-amz-object-lock-mode", "GOVERNANCE"),
                ("x-amz-object-lock-retain-until-date", "2030-01-01T00:00:00Z"),
            ]
        );
        assert!(options.conditions().is_empty());
        assert!(!options.describes());
    }

    #[test]
    fn each_request_gets_its_own_headers() {
        let options = PutOptions::new()
            .content_type("text/csv")
            .metadata("Origin", "a b")
            .tag("k&", "v =")
            .sse_kms("alias/a")
            .sse_kms_bucket_key(true)
            .sse_kms_context("{\"a\":\"b\"}")
            .if_match("\"e\"");
        let object = options.of_object();
        let object: Vec<_> = object.iter().collect();
        assert_eq!(
            object,
            [
                ("content-type", "text/csv"),
                ("x-amz-meta-origin", "a b"),
                ("x-amz-tagging", "k%26=v%20%3D"),
                ("x-amz-server-side-encryption", "aws:kms"),
                ("x-amz-server-side-encryption-aws-kms-key-id", "alias/a"),
                ("x-amz-server-side-encryption-bucket-key-enabled", "true"),
                ("x-amz-server-side-encryption-context", "eyJhIjoiYiJ9"),
            ]
        );
        assert_eq!(options.conditions().iter().collect::<Vec<_>>(), [("if-match", "\"e\"")]);
        assert!(options.attached().is_none());
        assert!(PutOptions::new().of_object().is_empty() && PutOptions::new().conditions().is_empty());
    }
}

//! What a job and a shard of it are, in plain data, and what the engine is asked to do for them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use wirespeed::{ChecksumAlgorithm, Client, ClientBuilder, Config, CopyDirective, PutOptions};
use wirespeed_local::media_type;

use crate::compare::Compare;
use crate::entry::Entry;
use crate::failure::Failure;
use crate::filter::Filter;
use crate::job::Job;
use crate::place::{Bucket, Place};

/// The form of the specs that this version writes and reads.
pub(super) const VERSION: u32 = 1;

/// Settings of the planner's client that decide what is done, and so go along. What says how much of a machine is used,
/// whom it trusts and who it is (memory, certificates, profiles) is the worker's own.
const DECIDING: [&str; 11] = [
    "endpoint_url",
    "region",
    "addressing_style",
    "use_dualstack_endpoint",
    "use_fips_endpoint",
    "use_accelerate_endpoint",
    "part_size",
    "multipart_threshold",
    "payload_signing",
    "checksum_algorithm",
    "verify_checksums",
];

/// What is to be done between two places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BulkSpec {
    /// What to do.
    pub verb: Verb,
    /// `s3://bucket/prefix`, where a prefix is a folder whether it ends in `/` or not; or the absolute path of a folder,
    /// which every worker must see.
    pub from: String,
    /// The same of the other side.
    pub to: String,
    /// How.
    #[serde(default)]
    pub options: ShardOptions,
    /// Settings of the workers' clients, by the engine's names for them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

/// What is done with what is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// All of it is copied.
    Copy,
    /// What the other side does not have, or has otherwise, is copied.
    Sync,
}

/// How a job is done; what is not said is as the command line has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShardOptions {
    /// Which names are wanted: the last rule that matches decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// Only what changed before, an instant as in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub older_than: Option<String>,
    /// Only what changed after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newer_than: Option<String>,
    /// Only what has more bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub larger: Option<u64>,
    /// Only what has fewer bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smaller: Option<u64>,
    /// When both sides have the same: `size_and_time`, `exact_time`, `size_only`, `checksum` or `always`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compare: Option<String>,
    /// What the source has no more is deleted, by a sync.
    #[serde(skip_serializing_if = "is_false")]
    pub delete: bool,
    /// What is on the other side stays as it is.
    #[serde(skip_serializing_if = "is_false")]
    pub no_clobber: bool,
    /// Times and modes of files are kept as metadata, and given back.
    #[serde(skip_serializing_if = "is_false")]
    pub preserve: bool,
    /// Symbolic links are left out.
    #[serde(skip_serializing_if = "is_false")]
    pub no_follow_symlinks: bool,
    /// Copies from S3 to S3 go through the worker.
    #[serde(skip_serializing_if = "is_false")]
    pub through_here: bool,
    /// Nothing is changed, only told.
    #[serde(skip_serializing_if = "is_false")]
    pub dry_run: bool,
    /// Who asks pays.
    #[serde(skip_serializing_if = "is_false")]
    pub request_payer: bool,
    /// The account that the buckets must belong to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_bucket_owner: Option<String>,
    /// How objects are written.
    #[serde(skip_serializing_if = "is_default")]
    pub write: WriteSpec,
}

/// One rule about names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// What matches is wanted.
    Include(String),
    /// What matches is not.
    Exclude(String),
}

/// How objects are written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WriteSpec {
    /// The media type; guessed from an uploaded file's name where it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The media type is left to the server.
    #[serde(skip_serializing_if = "is_false")]
    pub no_guess_mime_type: bool,
    /// How the bytes are encoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_encoding: Option<String>,
    /// How a browser should present it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_disposition: Option<String>,
    /// The language of the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_language: Option<String>,
    /// How caches may keep it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<String>,
    /// When caches should ask again, an instant as in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// Where a website bucket sends who asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub website_redirect: Option<String>,
    /// Metadata of the user's own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Tags.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// The storage class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<String>,
    /// A canned access control list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acl: Option<String>,
    /// `AES256` or `aws:kms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sse: Option<String>,
    /// The key of KMS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sse_kms_key_id: Option<String>,
    /// Whether the bucket's own key stands between KMS and the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sse_kms_bucket_key: Option<bool>,
    /// The encryption context for KMS, a JSON object of texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sse_kms_context: Option<String>,
    /// The checksum that uploads carry, or `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// Where a copy takes its description from: `COPY` or `REPLACE`; the latter where any of it is given here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_directive: Option<String>,
}

/// One part of a job. JSON by [`ShardSpec::to_json`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardSpec {
    /// The form of the spec.
    pub version: u32,
    /// Which of the shards it is, from 0.
    pub shard: u32,
    /// How many there are.
    pub shards: u32,
    /// The whole job.
    pub job: BulkSpec,
    /// What of it this is.
    pub slice: Slice,
    /// Items that it was planned to have.
    pub items: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What of a job's source a shard is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Slice {
    /// Keys relative to the place, in the order of their bytes.
    Range {
        /// Those after this one; all from the first where it is not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
        /// Those up to and including this one; all to the last where it is not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<String>,
    },
    /// These and no others.
    Names(Vec<NamedItem>),
}

/// One item of a list; what is known of it saves a question.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedItem {
    /// Its name relative to the source.
    pub key: String,
    /// Its name on the other side, where it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The version that is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// In bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The entity tag that it must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

impl From<NamedItem> for Entry {
    fn from(item: NamedItem) -> Entry {
        let NamedItem { key, to, version, size, etag } = item;
        Entry { key, target: to, version, size, etag, ..Entry::default() }
    }
}

impl BulkSpec {
    /// A job without options, for workers whose clients are set as this one is.
    pub fn new(verb: Verb, from: impl Into<String>, to: impl Into<String>, client: &Client) -> BulkSpec {
        let (options, settings) = (ShardOptions::default(), BTreeMap::new());
        BulkSpec { verb, from: from.into(), to: to.into(), options, settings }.settings_of(client)
    }

    /// The same for workers whose clients are set as this one is, in what decides what is done.
    pub fn settings_of(mut self, client: &Client) -> BulkSpec {
        self.settings = deciding(client);
        self
    }

    /// The source.
    pub(super) fn source(&self, client: &Client) -> Result<Place, Failure> {
        self.place(&self.from, client)
    }

    fn place(&self, text: &str, client: &Client) -> Result<Place, Failure> {
        let Some(rest) = text.strip_prefix("s3://") else {
            let folder = PathBuf::from(text);
            return match folder.is_absolute() {
                true => Ok(Place::Folder(folder)),
                false => Err(unusable(format!("`{text}` is neither s3://bucket/prefix nor an absolute path"))),
            };
        };
        let (name, prefix) = wirespeed::split_bucket(rest);
        if name.is_empty() {
            return Err(unusable(format!("`{text}` names no bucket; write it as s3://bucket/prefix")));
        }
        let ends = prefix.is_empty() || prefix.ends_with('/');
        let prefix = if ends { prefix.to_owned() } else { format!("{prefix}/") };
        let mut bucket = Bucket::new(client, name, prefix);
        if self.options.request_payer {
            bucket = bucket.request_payer();
        }
        if let Some(account) = &self.options.expected_bucket_owner {
            bucket = bucket.expected_owner(account);
        }
        Ok(bucket.into())
    }

    /// The job between its places, without a slice.
    pub(super) fn job(&self, client: &Client) -> Result<Job, Failure> {
        let (from, to) = (self.place(&self.from, client)?, self.place(&self.to, client)?);
        if matches!((&from, &to), (Place::Folder(_), Place::Folder(_))) {
            return Err(unusable("both sides are folders; one of them must be s3://bucket/prefix".to_owned()));
        }
        let options = &self.options;
        if options.delete && self.verb != Verb::Sync {
            return Err(unusable("only a sync deletes".to_owned()));
        }
        let mut job = match self.verb {
            Verb::Copy => Job::copy(from, to),
            Verb::Sync => Job::sync(from, to),
        };
        job = job
            .filter(self.filter()?)
            .options(options.write.options(options)?)
            .delete_extra(options.delete)
            .no_clobber(options.no_clobber)
            .preserve(options.preserve)
            .follow_links(!options.no_follow_symlinks)
            .through_here(options.through_here)
            .dry_run(options.dry_run);
        if let Some(compare) = options.compare.as_deref() {
            job = job.compare(named_compare(compare)?);
        }
        if let Some(name) = options.write.checksum.as_deref() {
            job = job.checksum(named_checksum(name)?);
        }
        job = job.metadata_directive(match options.write.metadata_directive.as_deref() {
            Some("COPY") => CopyDirective::Copy,
            Some("REPLACE") => CopyDirective::Replace,
            Some(other) => return Err(unusable(format!("metadata_directive is COPY or REPLACE, not `{other}`"))),
            None if options.write.describes() => CopyDirective::Replace,
            None => CopyDirective::Copy,
        });
        if !options.write.tags.is_empty() {
            job = job.tagging_directive(CopyDirective::Replace);
        }
        if options.write.content_type.is_none() && !options.write.no_guess_mime_type {
            job = job.content_type_by_key(|key| media_type::guess(key).map(str::to_owned));
        }
        Ok(job)
    }

    pub(super) fn filter(&self) -> Result<Filter, Failure> {
        let options = &self.options;
        let mut filter = options.rules.iter().fold(Filter::new(), |filter, rule| match rule {
            Rule::Include(pattern) => filter.include(pattern),
            Rule::Exclude(pattern) => filter.exclude(pattern),
        });
        if let Some(text) = &options.older_than {
            filter = filter.older_than(instant("older_than", text)?);
        }
        if let Some(text) = &options.newer_than {
            filter = filter.newer_than(instant("newer_than", text)?);
        }
        if let Some(bytes) = options.larger {
            filter = filter.larger(bytes);
        }
        if let Some(bytes) = options.smaller {
            filter = filter.smaller(bytes);
        }
        Ok(filter)
    }
}

impl WriteSpec {
    /// Whether it describes the object in a way that a copy would otherwise take from its source.
    fn describes(&self) -> bool {
        let texts = [
            &self.content_type,
            &self.content_encoding,
            &self.content_disposition,
            &self.content_language,
            &self.cache_control,
            &self.expires,
        ];
        texts.iter().any(|text| text.is_some()) || !self.metadata.is_empty()
    }

    fn options(&self, job: &ShardOptions) -> Result<PutOptions, Failure> {
        type Setter = fn(PutOptions, String) -> PutOptions;
        let texts: [(&Option<String>, Setter); 8] = [
            (&self.content_type, PutOptions::content_type),
            (&self.content_encoding, PutOptions::content_encoding),
            (&self.content_disposition, PutOptions::content_disposition),
            (&self.content_language, PutOptions::content_language),
            (&self.cache_control, PutOptions::cache_control),
            (&self.storage_class, PutOptions::storage_class),
            (&self.acl, PutOptions::acl),
            (&self.website_redirect, PutOptions::website_redirect),
        ];
        let mut options = PutOptions::new();
        for (text, set) in texts {
            if let Some(text) = text {
                options = set(options, text.clone());
            }
        }
        for (name, value) in &self.metadata {
            options = options.metadata(name, value);
        }
        for (name, value) in &self.tags {
            options = options.tag(name, value);
        }
        options = match (self.sse.as_deref(), &self.sse_kms_key_id) {
            (None, None) => options,
            (Some("AES256"), None) => options.sse_s3(),
            (Some("aws:kms") | None, key) => options.sse_kms(key.clone().unwrap_or_default()),
            (Some(sse), _) => {
                return Err(unusable(format!("sse is AES256, or aws:kms with or without a key, not `{sse}`")));
            }
        };
        if let Some(text) = &self.expires {
            options = options.expires(instant("expires", text)?);
        }
        if let Some(enabled) = self.sse_kms_bucket_key {
            options = options.sse_kms_bucket_key(enabled);
        }
        if let Some(context) = &self.sse_kms_context {
            options = options.sse_kms_context(context.clone());
        }
        if job.request_payer {
            options = options.request_payer();
        }
        if let Some(account) = &job.expected_bucket_owner {
            options = options.expected_owner(account);
        }
        Ok(options)
    }
}

impl ShardSpec {
    /// The spec as one line of JSON.
    pub fn to_json(&self) -> String {
        // Texts and numbers: nothing of it can fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what [`to_json`](ShardSpec::to_json) wrote.
    ///
    /// # Errors
    /// [`Failure::Refused`] where it is something else, or of another version of wirespeed.
    pub fn from_json(text: &str) -> Result<ShardSpec, Failure> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let wrong = |error: serde_json::Error| {
            unusable(format!("this is no shard ({error}); give run-shard a line of what `wirespeed plan` printed"))
        };
        let Versioned { version } = serde_json::from_str(text).map_err(wrong)?;
        if version != VERSION {
            return Err(unusable(format!(
                "the shard is of version {version}, this wirespeed runs version {VERSION}; plan it again"
            )));
        }
        serde_json::from_str(text).map_err(wrong)
    }

    /// A client's beginning with the settings that the job was planned with; credentials are the caller's to bring.
    ///
    /// # Errors
    /// [`Failure::Engine`] where this version does not know a setting.
    pub fn client_builder(&self) -> Result<ClientBuilder, Failure> {
        let mut builder = Client::builder();
        for (name, value) in &self.job.settings {
            builder = builder.set(name, value)?;
        }
        Ok(builder)
    }
}

/// The settings of a client that go along: those that are not the defaults.
fn deciding(client: &Client) -> BTreeMap<String, String> {
    let defaults: BTreeMap<_, _> = Config::default().entries().collect();
    let goes_along = |(name, value): &(&'static str, String)| {
        // What stands before an @ may be a password.
        DECIDING.contains(name) && defaults.get(name) != Some(value) && !value.contains('@')
    };
    client.config().entries().filter(goes_along).map(|(name, value)| (name.to_owned(), value)).collect()
}

fn named_compare(name: &str) -> Result<Compare, Failure> {
    Ok(match name {
        "size_and_time" => Compare::SizeAndTime,
        "exact_time" => Compare::ExactTime,
        "size_only" => Compare::SizeOnly,
        "checksum" => Compare::Checksum,
        "always" => Compare::Always,
        _ => {
            return Err(unusable(format!(
                "compare is size_and_time, exact_time, size_only, checksum or always, not `{name}`"
            )));
        }
    })
}

fn named_checksum(name: &str) -> Result<Option<ChecksumAlgorithm>, Failure> {
    if name.eq_ignore_ascii_case("none") {
        return Ok(None);
    }
    let algorithm = ChecksumAlgorithm::named(name);
    algorithm.map(Some).ok_or_else(|| unusable(format!("there is no checksum `{name}`")))
}

fn instant(what: &str, text: &str) -> Result<Timestamp, Failure> {
    text.parse().map_err(|_| unusable(format!("{what} is an instant as 2027-01-31T12:00:00Z, not `{text}`")))
}

pub(super) fn unusable(why: String) -> Failure {
    Failure::Refused(why)
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

//! Flags that say how an object is written, on `cp` and `pipe`, spelled as `aws s3 cp` spells them where it has them.
//!
//! Owns how their text becomes the engine's [`PutOptions`]. What a server makes of a value is the server's to say:
//! storage classes and media types are passed on as they are.

use clap::Args;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str};
use wirespeed::PutOptions;
use wirespeed_bulk::WriteSpec;
use wirespeed_local::media_type;

use crate::access::Access;
use crate::customer_key::CustomerKey;
use crate::failure::Failure;

const ACLS: [&str; 8] = [
    "private",
    "public-read",
    "public-read-write",
    "authenticated-read",
    "aws-exec-read",
    "bucket-owner-read",
    "bucket-owner-full-control",
    "log-delivery-write",
];

/// How an object is described, kept and encrypted.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Options for what is written")]
pub(crate) struct WriteFlags {
    /// Media type [default: guessed from the name]
    #[arg(long, value_name = "TYPE", value_parser = header)]
    content_type: Option<String>,
    /// Leave the media type to the server
    #[arg(long)]
    no_guess_mime_type: bool,
    /// How the bytes are encoded, as gzip; they are stored as they are
    #[arg(long, value_name = "ENCODING", value_parser = header)]
    content_encoding: Option<String>,
    /// How a browser should present it, as 'attachment; filename="a.csv"'
    #[arg(long, value_name = "DISPOSITION", value_parser = header)]
    content_disposition: Option<String>,
    /// Language of the content, as de-CH
    #[arg(long, value_name = "LANGUAGE", value_parser = header)]
    content_language: Option<String>,
    /// How caches may keep it, as max-age=3600
    #[arg(long, value_name = "DIRECTIVES", value_parser = header)]
    cache_control: Option<String>,
    /// When caches should ask again, as 2027-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    expires: Option<Timestamp>,
    /// Where a website bucket sends who asks for it
    #[arg(long, value_name = "LOCATION", value_parser = header)]
    website_redirect: Option<String>,
    /// Metadata of your own, as k=v,k2=v2 or as a JSON object (repeatable)
    #[arg(long, value_name = "PAIRS", value_parser = metadata)]
    metadata: Vec<Pairs>,
    /// Tags, as 'k=v&k2=v2', percent-encoded
    #[arg(long, value_name = "PAIRS", value_parser = tagging)]
    tagging: Option<Pairs>,
    /// Storage class, as STANDARD_IA
    #[arg(long, value_name = "CLASS", value_parser = header)]
    storage_class: Option<String>,
    /// Canned access control list
    #[arg(long, value_name = "ACL", value_parser = ACLS)]
    acl: Option<String>,
    /// Encrypt with a key of the service (AES256) or of KMS
    #[arg(long, value_name = "KIND", num_args = 0..=1, require_equals = true, default_missing_value = "AES256")]
    #[arg(value_parser = ["AES256", "aws:kms"])]
    sse: Option<String>,
    /// Key of KMS: its id, ARN or alias [default: the account's own]
    #[arg(long, value_name = "KEY_ID", requires = "sse", value_parser = header)]
    sse_kms_key_id: Option<String>,
    /// Encryption context for KMS, a JSON object of texts
    #[arg(long, value_name = "JSON", requires = "sse", value_parser = json_object)]
    sse_kms_encryption_context: Option<String>,
    /// Let the bucket's own key stand between KMS and the object, which saves requests to KMS
    #[arg(long, requires = "sse")]
    bucket_key_enabled: bool,
    #[command(flatten)]
    pub(crate) customer_key: CustomerKey,
    /// Only while the object has this ETag: the one that is read, or the one that is written over
    #[arg(long, value_name = "ETAG", value_parser = header)]
    pub(crate) if_match: Option<String>,
    /// Writing: only if there is no such object yet. Reading, with =ETAG: only if the ETag does not match
    #[arg(long, value_name = "ETAG", num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    #[arg(value_parser = header)]
    pub(crate) if_none_match: Option<String>,
}

/// A method of the options that takes text.
type Setter = fn(PutOptions, String) -> PutOptions;

/// Names and values.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pairs(Vec<(String, String)>);

impl WriteFlags {
    /// The options of an object that is uploaded; `name` is what its media type is guessed from.
    pub(crate) fn options(&self, access: &Access, name: Option<&str>) -> Result<PutOptions, Failure> {
        let mut options = self.given(access)?;
        if let Some(media_type) = self.guess(name) {
            options = options.content_type(media_type);
        }
        Ok(options)
    }

    /// What the name says, where the flags leave it to the name.
    pub(crate) fn guess(&self, name: Option<&str>) -> Option<&'static str> {
        if self.content_type.is_some() || self.no_guess_mime_type { None } else { name.and_then(media_type::guess) }
    }

    /// The options that the flags name, and no others.
    pub(crate) fn given(&self, access: &Access) -> Result<PutOptions, Failure> {
        let mut options = access.on(PutOptions::new());
        let texts: [(&Option<String>, Setter); 8] = [
            (&self.content_type, PutOptions::content_type),
            (&self.content_encoding, PutOptions::content_encoding),
            (&self.content_disposition, PutOptions::content_disposition),
            (&self.content_language, PutOptions::content_language),
            (&self.cache_control, PutOptions::cache_control),
            (&self.website_redirect, PutOptions::website_redirect),
            (&self.storage_class, PutOptions::storage_class),
            (&self.acl, PutOptions::acl),
        ];
        for (text, set) in texts {
            if let Some(text) = text {
                options = set(options, text.clone());
            }
        }
        if let Some(time) = self.expires {
            options = options.expires(time);
        }
        for (name, value) in self.metadata.iter().flat_map(|pairs| &pairs.0) {
            options = options.metadata(name, value);
        }
        for (name, value) in self.tagging.iter().flat_map(|pairs| &pairs.0) {
            options = options.tag(name, value);
        }
        let of_kms = self.sse_kms_encryption_context.is_some() || self.bucket_key_enabled;
        if of_kms && self.sse.as_deref() != Some("aws:kms") {
            let message = "--sse-kms-encryption-context and --bucket-key-enabled need --sse aws:kms";
            return Err(Failure::Usage(message.to_owned()));
        }
        options = match (self.sse.as_deref(), &self.sse_kms_key_id) {
            (None, _) => options,
            (Some("aws:kms"), key) => options.sse_kms(key.clone().unwrap_or_default()),
            (Some(_), None) => options.sse_s3(),
            (Some(_), Some(_)) => {
                return Err(Failure::Usage("--sse-kms-key-id needs --sse aws:kms; AES256 takes no key".to_owned()));
            }
        };
        if let Some(context) = &self.sse_kms_encryption_context {
            options = options.sse_kms_context(context);
        }
        if self.bucket_key_enabled {
            options = options.sse_kms_bucket_key(true);
        }
        if let Some(key) = self.customer_key.read()? {
            options = options.sse_customer_key(key);
        }
        match (&self.if_match, self.if_none_match.as_deref()) {
            (None, None) => Ok(options),
            (Some(etag), None) => Ok(options.if_match(etag)),
            (None, Some("*")) => Ok(options.if_none_match_any()),
            (None, Some(_)) => Err(Failure::Usage(
                "what is written can only be held against the absence of an object: --if-none-match takes no ETag here"
                    .to_owned(),
            )),
            (Some(_), Some(_)) => {
                Err(Failure::Usage("--if-match and --if-none-match exclude each other on a write".to_owned()))
            }
        }
    }

    /// The flags as the plain data of a shard's spec.
    ///
    /// # Errors
    /// [`Failure::Usage`] where it has no place: keys of the customer's own, which are secrets, and conditions on the one
    /// object that is there.
    pub(crate) fn spec(&self) -> Result<WriteSpec, Failure> {
        let refused = [
            (self.customer_key.read()?.is_some(), "a key of SSE-C is a secret, and a shard holds none"),
            (self.if_match.is_some(), "--if-match is for one object"),
            (self.if_none_match.is_some(), "--if-none-match is for one object; say --no-clobber"),
        ];
        if let Some((_, why)) = refused.into_iter().find(|(given, _)| *given) {
            return Err(Failure::Usage(why.to_owned()));
        }
        let pairs = |pairs: &Pairs| pairs.0.to_vec();
        Ok(WriteSpec {
            content_type: self.content_type.clone(),
            no_guess_mime_type: self.no_guess_mime_type,
            content_encoding: self.content_encoding.clone(),
            content_disposition: self.content_disposition.clone(),
            content_language: self.content_language.clone(),
            cache_control: self.cache_control.clone(),
            expires: self.expires.map(|time| time.to_string()),
            website_redirect: self.website_redirect.clone(),
            metadata: self.metadata.iter().flat_map(pairs).collect(),
            tags: self.tagging.iter().flat_map(pairs).collect(),
            storage_class: self.storage_class.clone(),
            acl: self.acl.clone(),
            sse: self.sse.clone(),
            sse_kms_key_id: self.sse_kms_key_id.clone(),
            sse_kms_bucket_key: self.bucket_key_enabled.then_some(true),
            sse_kms_context: self.sse_kms_encryption_context.clone(),
            ..WriteSpec::default()
        })
    }

    /// The flags again, as words of a command; a condition on one object is none of many.
    pub(crate) fn words(&self) -> Vec<String> {
        let texts = [
            ("--content-type", &self.content_type),
            ("--content-encoding", &self.content_encoding),
            ("--content-disposition", &self.content_disposition),
            ("--content-language", &self.content_language),
            ("--cache-control", &self.cache_control),
            ("--website-redirect", &self.website_redirect),
            ("--storage-class", &self.storage_class),
            ("--acl", &self.acl),
            ("--sse", &self.sse),
            ("--sse-kms-key-id", &self.sse_kms_key_id),
            ("--sse-kms-encryption-context", &self.sse_kms_encryption_context),
        ];
        let given = texts.into_iter().filter_map(|(flag, text)| Some(format!("{flag}={}", text.as_deref()?)));
        let mut words: Vec<String> = given.collect();
        words.extend(self.expires.map(|time| format!("--expires={time}")));
        if !self.metadata.is_empty() {
            let pairs = self.metadata.iter().flat_map(|pairs| pairs.0.iter().cloned());
            let object: std::collections::BTreeMap<String, String> = pairs.collect();
            words.extend(serde_json::to_string(&object).map(|object| format!("--metadata={object}")));
        }
        if let Some(tags) = &self.tagging {
            let encoded = |text: &str| percent_encoding::utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
            let tags: Vec<String> =
                tags.0.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
            words.push(format!("--tagging={}", tags.join("&")));
        }
        for (flag, given) in [
            ("--no-guess-mime-type", self.no_guess_mime_type),
            ("--bucket-key-enabled", self.bucket_key_enabled),
            ("--if-none-match=*", self.if_none_match.as_deref() == Some("*")),
        ] {
            words.extend(given.then(|| flag.to_owned()));
        }
        words.extend(self.customer_key.words());
        words
    }

    /// Whether a flag describes the object in a way that a copy would otherwise take from its source.
    pub(crate) fn describes(&self) -> bool {
        let texts = [
            &self.content_type,
            &self.content_encoding,
            &self.content_disposition,
            &self.content_language,
            &self.cache_control,
        ];
        texts.iter().any(|text| text.is_some()) || self.expires.is_some() || !self.metadata.is_empty()
    }

    /// Whether an object is only read if its ETag is another.
    pub(crate) fn asks_for_another(&self) -> bool {
        self.if_none_match.as_deref().is_some_and(|etag| etag != "*")
    }

    /// Whether tags are given.
    pub(crate) fn tags(&self) -> bool {
        self.tagging.is_some()
    }

    /// Whether any flag is given that only a write heeds.
    pub(crate) fn writes(&self) -> bool {
        let kept = self.storage_class.is_some() || self.acl.is_some() || self.sse.is_some();
        let absent = self.if_none_match.is_some() && !self.asks_for_another();
        self.describes() || self.website_redirect.is_some() || self.tags() || kept || absent
    }
}

/// The text of a JSON object of texts.
fn json_object(text: &str) -> Result<String, String> {
    match serde_json::from_str::<std::collections::BTreeMap<String, String>>(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("it is no JSON object of texts".to_owned()),
    }
}

/// What can stand in a header.
fn header(text: &str) -> Result<String, String> {
    match text.chars().find(|c| !c.is_ascii() || c.is_ascii_control()) {
        None => Ok(text.to_owned()),
        Some(wrong) => Err(format!("{wrong:?} cannot stand in a header; use printable ASCII")),
    }
}

/// A point in time: with its zone, as HTTP writes it, or a date, which begins at midnight UTC.
fn time(text: &str) -> Result<Timestamp, String> {
    let of_date = |date: Date| date.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp());
    text.parse()
        .or_else(|_| jiff::fmt::rfc2822::parse(text).map(|zoned| zoned.timestamp()))
        .or_else(|_| text.parse().and_then(of_date))
        .map_err(|_| "write it as 2027-01-31T12:00:00Z, 2027-01-31 or as HTTP does".to_owned())
}

/// `k=v,k2=v2`, or a JSON object of texts, for values that have a comma.
fn metadata(text: &str) -> Result<Pairs, String> {
    let pairs = if text.trim_start().starts_with('{') {
        let object: std::collections::BTreeMap<String, String> =
            serde_json::from_str(text).map_err(|_| "it is no JSON object of texts")?;
        object.into_iter().collect()
    } else {
        text.split(',').map(pair).collect::<Result<Vec<_>, _>>()?
    };
    for (name, value) in &pairs {
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(token) {
            return Err(format!("`{name}` cannot be the name of a header"));
        }
        header(value)?;
    }
    Ok(Pairs(pairs))
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("`{text}` has no `=`; write it as k=v,k2=v2"))?;
    Ok((name.trim().to_owned(), value.to_owned()))
}

/// `k=v&k2=v2` as in a query: percent-encoded, `+` a space.
fn tagging(text: &str) -> Result<Pairs, String> {
    let decoded = |text: &str| {
        let spaced = text.replace('+', " ");
        percent_decode_str(&spaced).decode_utf8().map(|text| text.into_owned()).map_err(|_| "it is not UTF-8")
    };
    let mut pairs = Vec::new();
    for tag in text.split('&').filter(|tag| !tag.is_empty()) {
        let (name, value) = tag.split_once('=').unwrap_or((tag, ""));
        if name.is_empty() {
            return Err(format!("`{tag}` has no name; write it as k=v&k2=v2"));
        }
        pairs.push((decoded(name)?, decoded(value)?));
    }
    Ok(Pairs(pairs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(expected: &[(&str, &str)]) -> Pairs {
        Pairs(expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn metadata_is_shorthand_or_json() {
        assert_eq!(metadata("a=1,b=x=y"), Ok(pairs(&[("a", "1"), ("b", "x=y")])));
        assert_eq!(metadata("{\"a\": \"1,2\"}"), Ok(pairs(&[("a", "1,2")])));
        for wrong in ["a", "=1", "a b=1", "a=ü", "{\"a\":1}", "{", "a=1,b"] {
            assert!(metadata(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tags_are_a_query() {
        assert_eq!(tagging("k%26=v+w&empty&z=%C3%BC"), Ok(pairs(&[("k&", "v w"), ("empty", ""), ("z", "ü")])));
        assert!(tagging("=v").is_err() && tagging("a=%ff").is_err());
    }

    #[test]
    fn the_words_of_the_flags_are_the_flags() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            write: WriteFlags,
        }
        let read = |words: &[String]| {
            let line = std::iter::once("x".to_owned()).chain(words.iter().cloned());
            <Line as clap::Parser>::try_parse_from(line).unwrap().write
        };
        let given = [
            "--content-type=text/plain",
            "--cache-control=a, b",
            "--expires=2027-01-31",
            "--metadata=k=v",
            "--metadata={\"a\": \"1,2\"}",
            "--tagging=a%26=b&c=d+e",
            "--sse=aws:kms",
            "--sse-kms-key-id=id",
            "--bucket-key-enabled",
            "--no-guess-mime-type",
            "--if-none-match",
            "--storage-class=GLACIER",
            "--sse-c",
            "--sse-c-key=fileb://key",
        ];
        let once = read(&given.map(str::to_owned)).words();
        assert_eq!(read(&once).words(), once);
        for word in ["--content-type=text/plain", "--tagging=a%26=b&c=d%20e", "--storage-class=GLACIER", "fileb://key"]
        {
            assert!(once.iter().any(|found| found == word), "{word}: {once:?}");
        }
        let secret = read(&["--sse-c".to_owned(), "--sse-c-key=0123456789abcdef0123456789abcdef".to_owned()]);
        assert_eq!(secret.words(), [""; 0]);
    }

    #[test]
    fn times_are_read_in_each_form() {
        for text in ["2015-10-21T07:28:00Z", "2015-10-21T09:28:00+02:00", "Wed, 21 Oct 2015 07:28:00 GMT"] {
            assert_eq!(time(text).unwrap().as_second(), 1_445_412_480, "{text}");
        }
        assert_eq!(time("2015-10-21").unwrap().as_second(), 1_445_385_600);
        assert!(time("tomorrow").is_err() && time("").is_err());
    }

    #[test]
    fn a_header_is_printable_ascii() {
        assert!(header("attachment; filename=\"a.csv\"").is_ok());
        assert!(header("a\r\nx-evil: 1").is_err() && header("ü").is_err());
    }
}

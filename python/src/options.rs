//! The keywords that many verbs share, read by name.

use jiff::Timestamp;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use wirespeed::{ChecksumAlgorithm, PutOptions, SseCustomerKey};

use crate::errors::{self, Raised};

/// How an object is read.
#[derive(Clone, Default)]
pub(crate) struct ReadOptions {
    pub(crate) version_id: Option<String>,
    pub(crate) if_match: Option<String>,
    pub(crate) if_none_match: Option<String>,
    pub(crate) if_modified_since: Option<Timestamp>,
    pub(crate) if_unmodified_since: Option<Timestamp>,
    pub(crate) sse_customer_key: Option<SseCustomerKey>,
    pub(crate) request_payer: bool,
    pub(crate) expected_bucket_owner: Option<String>,
}

const READ: [&str; 8] = [
    "version_id",
    "if_match",
    "if_none_match",
    "if_modified_since",
    "if_unmodified_since",
    "sse_customer_key",
    "request_payer",
    "expected_bucket_owner",
];

impl ReadOptions {
    pub(crate) fn parse(given: Option<&Bound<'_, PyDict>>) -> PyResult<ReadOptions> {
        let mut options = ReadOptions::default();
        for (name, value) in given.into_iter().flatten() {
            if value.is_none() {
                continue;
            }
            let name = name.cast_into::<PyString>()?;
            let name = name.to_str()?;
            match name {
                "version_id" => options.version_id = Some(value.extract()?),
                "if_match" => options.if_match = Some(value.extract()?),
                "if_none_match" => options.if_none_match = Some(value.extract()?),
                "if_modified_since" => options.if_modified_since = Some(time(name, &value)?),
                "if_unmodified_since" => options.if_unmodified_since = Some(time(name, &value)?),
                "sse_customer_key" => options.sse_customer_key = Some(customer_key(&value)?),
                "request_payer" => options.request_payer = value.extract()?,
                "expected_bucket_owner" => options.expected_bucket_owner = Some(value.extract()?),
                _ => return Err(unknown(name, &READ)),
            }
        }
        Ok(options)
    }
}

/// Gives a reading builder of the engine's the options.
macro_rules! apply_read {
    ($builder:expr, $options:expr) => {{
        let (mut builder, options) = ($builder, $options);
        if let Some(etag) = options.if_match {
            builder = builder.if_match(etag);
        }
        if let Some(etag) = options.if_none_match {
            builder = builder.if_none_match(etag);
        }
        if let Some(time) = options.if_modified_since {
            builder = builder.if_modified_since(time);
        }
        if let Some(time) = options.if_unmodified_since {
            builder = builder.if_unmodified_since(time);
        }
        if let Some(key) = options.sse_customer_key {
            builder = builder.sse_customer_key(key);
        }
        if options.request_payer {
            builder = builder.request_payer();
        }
        if let Some(account) = options.expected_bucket_owner {
            builder = builder.expected_owner(account);
        }
        builder
    }};
}
pub(crate) use apply_read;

/// How an object is written.
#[derive(Clone, Default)]
pub(crate) struct WriteOptions {
    pub(crate) put: PutOptions,
    /// The checksum that is asked for; the client's own where this is `None`.
    pub(crate) checksum: Option<Option<ChecksumAlgorithm>>,
}

const WRITE: [&str; 27] = [
    "content_type",
    "content_encoding",
    "content_disposition",
    "content_language",
    "cache_control",
    "expires",
    "website_redirect",
    "metadata",
    "tags",
    "storage_class",
    "acl",
    "grant_full_control",
    "grant_read",
    "grant_read_acp",
    "grant_write_acp",
    "object_lock_mode",
    "object_lock_retain_until",
    "object_lock_legal_hold",
    "sse",
    "sse_kms_key_id",
    "sse_kms_bucket_key",
    "sse_kms_context",
    "sse_customer_key",
    "checksum",
    "if_match",
    "if_none_match",
    "request_payer",
];

impl WriteOptions {
    pub(crate) fn parse(given: Option<&Bound<'_, PyDict>>) -> PyResult<WriteOptions> {
        let mut put = PutOptions::new();
        let mut checksum = None;
        for (name, value) in given.into_iter().flatten() {
            let name = name.cast_into::<PyString>()?;
            let name = name.to_str()?;
            if name == "checksum" {
                checksum = Some(algorithm(&value)?);
                continue;
            }
            if value.is_none() {
                continue;
            }
            let text = || value.extract::<String>();
            put = match name {
                "content_type" => put.content_type(text()?),
                "content_encoding" => put.content_encoding(text()?),
                "content_disposition" => put.content_disposition(text()?),
                "content_language" => put.content_language(text()?),
                "cache_control" => put.cache_control(text()?),
                "expires" => put.expires(time(name, &value)?),
                "website_redirect" => put.website_redirect(text()?),
                "metadata" => {
                    pairs(name, &value)?.into_iter().fold(put, |put, (name, value)| put.metadata(name, value))
                }
                "tags" => pairs(name, &value)?.into_iter().fold(put, |put, (name, value)| put.tag(name, value)),
                "storage_class" => put.storage_class(text()?),
                "acl" => put.acl(text()?),
                "grant_full_control" => put.grant_full_control(text()?),
                "grant_read" => put.grant_read(text()?),
                "grant_read_acp" => put.grant_read_acp(text()?),
                "grant_write_acp" => put.grant_write_acp(text()?),
                "object_lock_mode" => put.object_lock_mode(text()?),
                "object_lock_retain_until" => put.object_lock_retain_until(time(name, &value)?),
                "object_lock_legal_hold" => put.object_lock_legal_hold(value.extract()?),
                "sse" => match text()?.as_str() {
                    "AES256" => put.sse_s3(),
                    "aws:kms" => put.sse_kms(""),
                    other => return Err(errors::config(format!("sse is \"AES256\" or \"aws:kms\", not {other:?}"))),
                },
                "sse_kms_key_id" => put.sse_kms(text()?),
                "sse_kms_bucket_key" => put.sse_kms_bucket_key(value.extract()?),
                "sse_kms_context" => put.sse_kms_context(text()?),
                "sse_customer_key" => put.sse_customer_key(customer_key(&value)?),
                "if_match" => put.if_match(text()?),
                "if_none_match" => match text()?.as_str() {
                    "*" => put.if_none_match_any(),
                    other => return Err(errors::config(format!("of a write if_none_match is \"*\", not {other:?}"))),
                },
                "request_payer" => match value.extract()? {
                    true => put.request_payer(),
                    false => put,
                },
                "expected_bucket_owner" => put.expected_owner(text()?),
                _ => {
                    let known: Vec<&str> = WRITE.iter().copied().chain(["expected_bucket_owner"]).collect();
                    return Err(unknown(name, &known));
                }
            };
        }
        Ok(WriteOptions { put, checksum })
    }
}

fn algorithm(value: &Bound<'_, PyAny>) -> PyResult<Option<ChecksumAlgorithm>> {
    if value.is_none() {
        return Ok(None);
    }
    let text: String = value.extract()?;
    let known = ChecksumAlgorithm::named(&text).ok_or_else(|| {
        errors::config(format!(
            "checksum is None, \"CRC64NVME\", \"CRC32\", \"CRC32C\", \"SHA1\" or \"SHA256\", not {text:?}"
        ))
    })?;
    Ok(Some(known))
}

pub(crate) fn time(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Timestamp> {
    value.extract().map_err(|error: PyErr| {
        let refusal = PyTypeError::new_err(format!(
            "{name} is a datetime that knows its time zone, such as datetime.now(timezone.utc), not {value}"
        ));
        refusal.set_cause(value.py(), Some(error));
        refusal
    })
}

pub(crate) fn customer_key(value: &Bound<'_, PyAny>) -> PyResult<SseCustomerKey> {
    let key: Vec<u8> = value.extract().map_err(|_| PyTypeError::new_err("sse_customer_key is 32 bytes"))?;
    SseCustomerKey::new(&key).raised(value.py())
}

fn pairs(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    let wrong = || PyTypeError::new_err(format!("{name} is a mapping of str to str"));
    let items = value.call_method0("items").map_err(|_| wrong())?;
    items.try_iter()?.map(|pair| pair?.extract().map_err(|_| wrong())).collect()
}

/// An argument that says how many bytes.
pub(crate) fn bytes(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    value.extract().map_err(|error: PyErr| match error.is_instance_of::<PyOverflowError>(value.py()) {
        true => errors::config(format!("{name} is a number of bytes from 0 on, not {value}")),
        false => PyTypeError::new_err(format!("{name} is a number of bytes, not {value}")),
    })
}

/// Names the nearest that there is.
pub(crate) fn unknown(name: &str, known: &[&str]) -> PyErr {
    let near = known
        .iter()
        .map(|candidate| (strsim::levenshtein(name, candidate), candidate))
        .min()
        .filter(|(distance, _)| *distance <= 3)
        .map(|(_, candidate)| format!("; did you mean {candidate}?"))
        .unwrap_or_else(|| format!("; there are {}", known.join(", ")));
    PyTypeError::new_err(format!("there is no option {name:?}{near}"))
}

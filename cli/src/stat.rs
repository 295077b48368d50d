//! `wirespeed stat`: what is known of an object without reading it.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;
use wirespeed::ObjectInfo;

use crate::access::Access;
use crate::context::Context;
use crate::customer_key::CustomerKey;
use crate::failure::{Exit, Failure, visible};
use crate::units::Size;
use crate::uri::S3Uri;

const EXAMPLES: &str = "\
Examples:
  wirespeed stat s3://bucket/key
  wirespeed stat s3://bucket/key --version-id ID
  wirespeed stat --json s3://bucket/key | jq .size";

/// Show an object's size, ETag, version, time, checksum, encryption, type and metadata
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// s3://bucket/key
    #[arg(required = true, value_name = "S3_URI", value_parser = S3Uri::parse)]
    uris: Vec<S3Uri>,
    /// This version of the one object
    #[arg(long, value_name = "ID")]
    version_id: Option<String>,
    /// Whether the object's checksum is asked for; of one that a key of KMS encrypted, that takes kms:Decrypt
    #[arg(long, value_name = "MODE", default_value = "ENABLED", value_parser = ["ENABLED", "DISABLED"])]
    checksum_mode: String,
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    customer_key: CustomerKey,
}

#[derive(Serialize)]
struct Record<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    bucket: &'a str,
    key: &'a str,
    size: u64,
    etag: Option<&'a str>,
    version_id: Option<&'a str>,
    last_modified: Option<String>,
    checksum: Option<ChecksumRecord<'a>>,
    content_type: Option<&'a str>,
    content_encoding: Option<&'a str>,
    content_disposition: Option<&'a str>,
    content_language: Option<&'a str>,
    cache_control: Option<&'a str>,
    expires: Option<&'a str>,
    storage_class: Option<&'a str>,
    server_side_encryption: Option<&'a str>,
    kms_key_id: Option<&'a str>,
    tag_count: Option<u32>,
    metadata: BTreeMap<&'a str, &'a str>,
}

#[derive(Serialize)]
struct ChecksumRecord<'a> {
    algorithm: &'static str,
    value: &'a str,
    /// `COMPOSITE` is a checksum of the parts' checksums.
    #[serde(rename = "type")]
    kind: &'static str,
}

/// Runs `stat`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    if let Some(uri) = arguments.uris.iter().find(|uri| uri.key.is_empty()) {
        return Err(Failure::Usage(format!("`{uri}` names no object; `wirespeed ls {uri}` lists the bucket")));
    }
    if arguments.version_id.is_some() && arguments.uris.len() > 1 {
        return Err(Failure::Usage("--version-id is of one object; name one".to_owned()));
    }
    let customer_key = arguments.customer_key.read()?;
    let mut failed = 0;
    for uri in &arguments.uris {
        let mut head = arguments.access.on(context.client.head(&uri.bucket, &uri.key));
        if let Some(version) = &arguments.version_id {
            head = head.version(version);
        }
        if arguments.checksum_mode == "ENABLED" {
            head = head.checksum();
        }
        if let Some(key) = &customer_key {
            head = head.sse_customer_key(key.clone());
        }
        match head.await {
            Ok(info) => print(context, uri, &info)?,
            Err(error) if arguments.uris.len() == 1 => return Err(error.into()),
            Err(error) => {
                failed += 1;
                context.output.failure(&error.into());
            }
        }
    }
    Ok(match failed {
        0 => Exit::Done,
        failed if failed == arguments.uris.len() => Exit::Failed,
        _ => Exit::Partial,
    })
}

fn print(context: &Context<'_>, uri: &S3Uri, info: &ObjectInfo) -> Result<(), Failure> {
    let checksum = info.checksum.as_ref().map(|checksum| ChecksumRecord {
        algorithm: checksum.algorithm.s3_name(),
        value: &checksum.value,
        kind: if checksum.composite { "COMPOSITE" } else { "FULL_OBJECT" },
    });
    let last_modified = info.last_modified.map(|time| time.to_string());
    if context.output.json() {
        return context.output.record(&Record {
            kind: "object",
            bucket: &uri.bucket,
            key: &uri.key,
            size: info.size,
            etag: info.etag.as_deref(),
            version_id: info.version_id.as_deref(),
            last_modified,
            checksum,
            content_type: info.content_type.as_deref(),
            content_encoding: info.content_encoding.as_deref(),
            content_disposition: info.content_disposition.as_deref(),
            content_language: info.content_language.as_deref(),
            cache_control: info.cache_control.as_deref(),
            expires: info.expires.as_deref(),
            storage_class: info.storage_class.as_deref(),
            server_side_encryption: info.server_side_encryption.as_deref(),
            kms_key_id: info.kms_key_id.as_deref(),
            tag_count: info.tag_count,
            metadata: info.metadata.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
        });
    }
    let line = |name: &str, value: &str| context.output.line(&format!("{name:<14} {}", visible(value)));
    line("object", &uri.to_string())?;
    line("size", &format!("{} ({})", info.size, Size(info.size)))?;
    let checksum = checksum.map(|ChecksumRecord { algorithm, value, kind }| format!("{algorithm} {value} ({kind})"));
    let tag_count = info.tag_count.map(|count| count.to_string());
    let optional = [
        ("etag", info.etag.as_deref()),
        ("version", info.version_id.as_deref()),
        ("last modified", last_modified.as_deref()),
        ("checksum", checksum.as_deref()),
        ("content type", info.content_type.as_deref()),
        ("encoding", info.content_encoding.as_deref()),
        ("disposition", info.content_disposition.as_deref()),
        ("language", info.content_language.as_deref()),
        ("cache control", info.cache_control.as_deref()),
        ("expires", info.expires.as_deref()),
        ("storage class", info.storage_class.as_deref()),
        ("encryption", info.server_side_encryption.as_deref()),
        ("kms key", info.kms_key_id.as_deref()),
        ("tags", tag_count.as_deref()),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            line(name, value)?;
        }
    }
    info.metadata.iter().try_for_each(|(name, value)| line("metadata", &format!("{name}={value}")))
}

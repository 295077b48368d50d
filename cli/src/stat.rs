//! `wirespeed stat`, also `head` as in s5cmd: what is known of objects without reading them, and of buckets.
//!
//! Many are asked for at a time and shown in their order.

use std::collections::BTreeMap;

use clap::Args;
use futures_util::StreamExt as _;
use serde::Serialize;
use wirespeed::{Method, ObjectInfo, SseCustomerKey};

use crate::access::Access;
use crate::context::Context;
use crate::customer_key::CustomerKey;
use crate::failure::{Exit, Failure, visible};
use crate::targets::targets;
use crate::units::Size;
use crate::uri::S3Uri;
use crate::wildcard::Wildcards;

const EXAMPLES: &str = "\
Examples:
  wirespeed stat s3://bucket/key
  wirespeed stat s3://bucket/key --version-id ID
  wirespeed stat 's3://bucket/reports/*.pdf'     each that matches
  wirespeed head s3://bucket                     whether the bucket is there, and in which region
  wirespeed stat --json s3://bucket/key | jq .size";

/// Show an object's size, ETag, version, time, checksum, encryption, type and metadata
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, visible_alias = "head")]
pub(crate) struct Arguments {
    /// s3://bucket/key, with wildcards, or s3://bucket
    #[arg(required = true, value_name = "S3_URI", value_parser = S3Uri::parse)]
    uris: Vec<S3Uri>,
    /// This version of the one object
    #[arg(long, value_name = "ID")]
    version_id: Option<String>,
    /// Whether the object's checksum is asked for; of one that a key of KMS encrypted, that takes kms:Decrypt
    #[arg(long, value_name = "MODE", default_value = "ENABLED", value_parser = ["ENABLED", "DISABLED"])]
    checksum_mode: String,
    #[command(flatten)]
    wildcards: Wildcards,
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

#[derive(Serialize)]
struct BucketRecord<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    region: Option<&'a str>,
}

/// Most objects that are asked for at a time.
const AT_A_TIME: usize = 64;

/// Runs `stat`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let one = match arguments.uris.as_slice() {
        [uri] if arguments.wildcards.of(uri).is_none() => true,
        _ if arguments.version_id.is_some() => {
            return Err(Failure::Usage("--version-id is of one object; name one".to_owned()));
        }
        _ => false,
    };
    let customer_key = arguments.customer_key.read()?;
    let targets = targets(context, &arguments.uris, &arguments.wildcards, &arguments.access);
    let asked = targets.map(|target| async {
        let uri = target?.uri;
        let known = ask(context, arguments, customer_key.as_ref(), &uri).await?;
        Ok::<_, Failure>((uri, known))
    });
    let mut told = asked.buffered(AT_A_TIME);
    let (mut done, mut failed) = (0_u64, 0_u64);
    while let Some(told) = told.next().await {
        match told {
            Ok((uri, known)) => {
                // An empty line between objects: their lines are many.
                if done > 0 && !context.output.json() {
                    context.output.line("")?;
                }
                done += 1;
                match known {
                    Known::Object(info) => print(context, &uri, &info)?,
                    Known::Bucket { region } => print_bucket(context, &uri, region.as_deref())?,
                }
            }
            Err(failure) if one => return Err(failure),
            Err(failure) => {
                failed += 1;
                context.output.failure(&failure);
            }
        }
    }
    Ok(match (done, failed) {
        (_, 0) => Exit::Done,
        (0, _) => Exit::Failed,
        _ => Exit::Partial,
    })
}

enum Known {
    Object(Box<ObjectInfo>),
    Bucket { region: Option<String> },
}

async fn ask(
    context: &Context<'_>,
    arguments: &Arguments,
    customer_key: Option<&SseCustomerKey>,
    uri: &S3Uri,
) -> Result<Known, Failure> {
    if uri.key.is_empty() {
        let answer = arguments.access.on(context.client.raw(Method::Head, &uri.bucket, "")).send().await?;
        return Ok(Known::Bucket { region: answer.header("x-amz-bucket-region").map(str::to_owned) });
    }
    let mut head = arguments.access.on(context.client.head(&uri.bucket, &uri.key));
    if let Some(version) = &arguments.version_id {
        head = head.version(version);
    }
    if arguments.checksum_mode == "ENABLED" {
        head = head.checksum();
    }
    if let Some(key) = customer_key {
        head = head.sse_customer_key(key.clone());
    }
    Ok(Known::Object(Box::new(head.await?)))
}

fn print_bucket(context: &Context<'_>, uri: &S3Uri, region: Option<&str>) -> Result<(), Failure> {
    if context.output.json() {
        return context.output.record(&BucketRecord { kind: "bucket", name: &uri.bucket, region });
    }
    context.output.line(&format!("{:<14} {}", "bucket", visible(&uri.to_string())))?;
    region.map_or(Ok(()), |region| context.output.line(&format!("{:<14} {}", "region", visible(region))))
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

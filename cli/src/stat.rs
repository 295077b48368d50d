//! `wirespeed stat`: what is known of an object without reading it.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;
use wirespeed::ObjectInfo;

use crate::context::Context;
use crate::failure::{Exit, Failure, visible};
use crate::units::Size;
use crate::uri::S3Uri;

const EXAMPLES: &str = "\
Examples:
  wirespeed stat s3://bucket/key
  wirespeed stat --json s3://bucket/key | jq .size";

/// Show an object's size, ETag, time, type and metadata
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// s3://bucket/key
    #[arg(required = true, value_name = "S3_URI", value_parser = S3Uri::parse)]
    uris: Vec<S3Uri>,
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
    content_type: Option<&'a str>,
    storage_class: Option<&'a str>,
    metadata: BTreeMap<&'a str, &'a str>,
}

/// Runs `stat`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    if let Some(uri) = arguments.uris.iter().find(|uri| uri.key.is_empty()) {
        return Err(Failure::Usage(format!("`{uri}` names no object; `wirespeed ls {uri}` lists the bucket")));
    }
    let mut failed = 0;
    for uri in &arguments.uris {
        match context.client.head(&uri.bucket, &uri.key).await {
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
            content_type: info.content_type.as_deref(),
            storage_class: info.storage_class.as_deref(),
            metadata: info.metadata.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
        });
    }
    let line = |name: &str, value: &str| context.output.line(&format!("{name:<14} {}", visible(value)));
    line("object", &uri.to_string())?;
    line("size", &format!("{} ({})", info.size, Size(info.size)))?;
    let optional = [
        ("etag", info.etag.as_deref()),
        ("version", info.version_id.as_deref()),
        ("last modified", last_modified.as_deref()),
        ("content type", info.content_type.as_deref()),
        ("storage class", info.storage_class.as_deref()),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            line(name, value)?;
        }
    }
    info.metadata.iter().try_for_each(|(name, value)| line("metadata", &format!("{name}={value}")))
}

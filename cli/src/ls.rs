//! `wirespeed ls`: buckets, one level of a bucket, or all keys under a prefix.

use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use wirespeed::{ListedObject, Page, StorageClass};

use crate::context::Context;
use crate::failure::{Exit, Failure, visible};
use crate::units::Size;
use crate::uri::S3Uri;

const EXAMPLES: &str = "\
Examples:
  wirespeed ls                                     the buckets
  wirespeed ls s3://bucket/photos/                 one level: folders (PRE) and objects
  wirespeed ls s3://bucket/photos/2026             what begins so
  wirespeed ls --recursive --summarize --human-readable s3://bucket
  wirespeed ls --json --recursive s3://bucket      one JSON object a line, keys as they are";

/// List buckets, or the objects of a bucket
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// s3://bucket[/prefix]; without it the buckets are listed
    #[arg(value_name = "S3_URI", value_parser = S3Uri::parse)]
    uri: Option<S3Uri>,
    /// All keys under the prefix, not one level
    #[arg(long, short)]
    recursive: bool,
    /// Sizes as in 1.5 MiB
    #[arg(long)]
    human_readable: bool,
    /// Count objects and bytes at the end
    #[arg(long)]
    summarize: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Record<'a> {
    Bucket {
        name: &'a str,
        creation_date: Option<String>,
    },
    Prefix {
        prefix: &'a str,
    },
    Object {
        key: &'a str,
        size: u64,
        last_modified: Option<String>,
        etag: Option<&'a str>,
        storage_class: Option<&'a str>,
    },
    Summary {
        objects: u64,
        bytes: u64,
    },
}

/// Runs `ls`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.uri {
        None => buckets(context).await,
        Some(uri) => objects(context, arguments, uri).await,
    }
}

async fn buckets(context: &Context<'_>) -> Result<Exit, Failure> {
    let output = context.output;
    for bucket in context.client.list_buckets().await? {
        if output.json() {
            let creation_date = bucket.creation_date.map(|time| time.to_string());
            output.record(&Record::Bucket { name: &bucket.name, creation_date })?;
        } else {
            output.line(&format!("{} {}", local_time(bucket.creation_date), visible(&bucket.name)))?;
        }
    }
    Ok(Exit::Done)
}

async fn objects(context: &Context<'_>, arguments: &Arguments, uri: &S3Uri) -> Result<Exit, Failure> {
    let mut list = context.client.list(&uri.bucket).prefix(&uri.key);
    if !arguments.recursive {
        list = list.delimiter("/");
    }
    let mut pages = list.pages();
    let (mut objects, mut bytes, mut found) = (0, 0, false);
    while let Some(page) = pages.next().await {
        let page = page?;
        found |= !page.objects.is_empty() || !page.prefixes.is_empty();
        objects += page.objects.len() as u64;
        bytes += page.objects.iter().map(|object| object.size).sum::<u64>();
        print_page(context, arguments, &uri.key, &page)?;
        context.output.flush()?;
    }
    if arguments.summarize {
        if context.output.json() {
            context.output.record(&Record::Summary { objects, bytes })?;
        } else {
            let size = size(bytes, arguments.human_readable);
            context.output.line(&format!("\nTotal Objects: {objects}\n   Total Size: {size}"))?;
        }
    }
    // As `aws s3 ls`: a prefix under which nothing is found can be tested for; an empty bucket is no failure.
    Ok(if found || uri.key.is_empty() { Exit::Done } else { Exit::Partial })
}

fn print_page(context: &Context<'_>, arguments: &Arguments, prefix: &str, page: &Page) -> Result<(), Failure> {
    let output = context.output;
    // One level is shown by names, a whole tree by keys.
    let hidden = if arguments.recursive { 0 } else { prefix.rfind('/').map_or(0, |slash| slash + 1) };
    for prefix in &page.prefixes {
        if output.json() {
            output.record(&Record::Prefix { prefix })?;
        } else {
            output.line(&format!("{:>30} {}", "PRE", visible(prefix.get(hidden..).unwrap_or(prefix))))?;
        }
    }
    for object in &page.objects {
        if output.json() {
            output.record(&record(object))?;
        } else {
            let size = size(object.size, arguments.human_readable);
            let name = object.key.get(hidden..).unwrap_or(&object.key);
            output.line(&format!("{} {size:>10} {}", local_time(object.last_modified), visible(name)))?;
        }
    }
    Ok(())
}

fn record(object: &ListedObject) -> Record<'_> {
    Record::Object {
        key: &object.key,
        size: object.size,
        last_modified: object.last_modified.map(|time| time.to_string()),
        etag: object.etag.as_deref(),
        storage_class: object.storage_class.as_ref().map(StorageClass::as_str),
    }
}

fn size(bytes: u64, human_readable: bool) -> String {
    if human_readable { Size(bytes).to_string() } else { bytes.to_string() }
}

/// `2026-01-31 12:00:00` in the local zone, 19 columns; blank when the server gave no time.
pub(crate) fn local_time(time: Option<Timestamp>) -> String {
    match time {
        Some(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        None => " ".repeat(19),
    }
}

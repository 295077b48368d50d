//! `wirespeed ls`: buckets, one level of a bucket, or all keys under a prefix.

use std::borrow::Cow;

use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use wirespeed::{ListedObject, ListedVersion, StorageClass};

use crate::access::Access;
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
  wirespeed ls --json --recursive s3://bucket      one JSON object a line, keys as they are
  wirespeed ls --all-versions s3://bucket/key      with version ids; DELETED for a delete marker";

/// List buckets, or the objects of a bucket
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// s3://bucket[/prefix]; without it the buckets are listed
    #[arg(value_name = "S3_URI", value_parser = Place::parse)]
    uri: Option<Place>,
    /// All keys under the prefix, not one level
    #[arg(long, short)]
    recursive: bool,
    /// Sizes as in 1.5 MiB
    #[arg(long)]
    human_readable: bool,
    /// Count objects and bytes at the end
    #[arg(long)]
    summarize: bool,
    /// All versions and delete markers, with their ids
    #[arg(long, requires = "uri")]
    all_versions: bool,
    #[command(flatten)]
    access: Access,
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
    Version {
        key: &'a str,
        version_id: &'a str,
        is_latest: bool,
        is_delete_marker: bool,
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
        Some(Place::Bucket(uri)) => objects(context, arguments, uri).await,
        Some(Place::Service) if arguments.all_versions => {
            Err(Failure::Usage("--all-versions is for what is in a bucket; name one".to_owned()))
        }
        None | Some(Place::Service) => buckets(context).await,
    }
}

/// What is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// `s3://`: the buckets, as without it.
    Service,
    Bucket(S3Uri),
}

impl Place {
    fn parse(text: &str) -> Result<Place, String> {
        if text == "s3://" { Ok(Place::Service) } else { S3Uri::parse(text).map(Place::Bucket) }
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
    let mut list = arguments.access.on(context.client.list(&uri.bucket)).prefix(&uri.key);
    if !arguments.recursive {
        list = list.delimiter("/");
    }
    // One level is shown by names, a whole tree by keys.
    let hidden = if arguments.recursive { 0 } else { uri.key.rfind('/').map_or(0, |slash| slash + 1) };
    let lines = Lines { context, human_readable: arguments.human_readable, hidden };
    let mut seen = Seen::default();
    if arguments.all_versions {
        let mut pages = list.versions();
        while let Some(page) = pages.next().await {
            let page = page?;
            seen.add(page.prefixes.len(), page.versions.iter().map(|version| version.size));
            page.prefixes.iter().try_for_each(|prefix| lines.prefix(prefix))?;
            page.versions.iter().try_for_each(|version| lines.version(version))?;
            context.output.flush()?;
        }
    } else {
        let mut pages = list.pages();
        while let Some(page) = pages.next().await {
            let page = page?;
            seen.add(page.prefixes.len(), page.objects.iter().map(|object| object.size));
            page.prefixes.iter().try_for_each(|prefix| lines.prefix(prefix))?;
            page.objects.iter().try_for_each(|object| lines.object(object))?;
            context.output.flush()?;
        }
    }
    let Seen { prefixes, objects, bytes } = seen;
    if arguments.summarize {
        if context.output.json() {
            context.output.record(&Record::Summary { objects, bytes })?;
        } else {
            let size = size(bytes, arguments.human_readable);
            context.output.line(&format!("\nTotal Objects: {objects}\n   Total Size: {size}"))?;
        }
    }
    // As `aws s3 ls`: a prefix under which nothing is found can be tested for; an empty bucket is no failure.
    Ok(if prefixes + objects > 0 || uri.key.is_empty() { Exit::Done } else { Exit::Partial })
}

/// What a listing has had so far.
#[derive(Default)]
struct Seen {
    prefixes: u64,
    objects: u64,
    bytes: u64,
}

impl Seen {
    fn add(&mut self, prefixes: usize, sizes: impl Iterator<Item = u64>) {
        self.prefixes += prefixes as u64;
        for size in sizes {
            self.objects += 1;
            self.bytes += size;
        }
    }
}

/// Prints what is found, a line each.
struct Lines<'a> {
    context: &'a Context<'a>,
    human_readable: bool,
    /// How many bytes of each key are not shown.
    hidden: usize,
}

impl Lines<'_> {
    fn prefix(&self, prefix: &str) -> Result<(), Failure> {
        if self.context.output.json() {
            return self.context.output.record(&Record::Prefix { prefix });
        }
        self.context.output.line(&format!("{:>30} {}", "PRE", self.name(prefix)))
    }

    fn object(&self, object: &ListedObject) -> Result<(), Failure> {
        if self.context.output.json() {
            return self.context.output.record(&record(object));
        }
        let (time, size) = (local_time(object.last_modified), size(object.size, self.human_readable));
        self.context.output.line(&format!("{time} {size:>10} {}", self.name(&object.key)))
    }

    fn version(&self, version: &ListedVersion) -> Result<(), Failure> {
        if self.context.output.json() {
            return self.context.output.record(&Record::Version {
                key: &version.key,
                version_id: &version.version_id,
                is_latest: version.is_latest,
                is_delete_marker: version.is_delete_marker,
                size: version.size,
                last_modified: version.last_modified.map(|time| time.to_string()),
                etag: version.etag.as_deref(),
                storage_class: version.storage_class.as_ref().map(StorageClass::as_str),
            });
        }
        let size =
            if version.is_delete_marker { "DELETED".to_owned() } else { size(version.size, self.human_readable) };
        let (time, id) = (local_time(version.last_modified), visible(&version.version_id));
        self.context.output.line(&format!("{time} {size:>10} {id} {}", self.name(&version.key)))
    }

    fn name<'k>(&self, key: &'k str) -> Cow<'k, str> {
        visible(key.get(self.hidden..).unwrap_or(key))
    }
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

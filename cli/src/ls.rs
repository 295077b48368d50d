//! `wirespeed ls`: buckets, one level of a bucket, or all keys under a prefix or that match a pattern.
//!
//! Rows go from a page of the listing into the output's buffer; nothing is kept. What is waited for is waited for with
//! all rows printed.

use clap::Args;
use futures_util::FutureExt as _;
use serde::Serialize;
use serde::ser::Serializer;
use wirespeed::{ListedObject, ListedVersion, Pages, StorageClass};

use crate::access::Access;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::filter_flags::FilterFlags;
use crate::output::Output;
use crate::rows::{Clock, SIZE_WIDTH, push_right, push_size, push_visible};
use crate::selection::{Order, Scope, Selection};
use crate::units::Size;
use crate::uri::S3Uri;
use crate::wildcard::Wildcards;

const EXAMPLES: &str = "\
Examples:
  wirespeed ls                                     the buckets
  wirespeed ls s3://bucket/photos/                 one level: folders (PRE) and objects
  wirespeed ls s3://bucket/photos/2026             what begins so
  wirespeed ls 's3://bucket/photos/*.jpg'          what matches, at any depth
  wirespeed ls -r s3://bucket --newer-than 1d      what was written since yesterday
  wirespeed ls --recursive --summarize --human-readable s3://bucket
  wirespeed ls --json --recursive s3://bucket      one JSON object a line, keys as they are
  wirespeed ls -r --unordered s3://bucket          as pages come: the fastest
  wirespeed ls --all-versions s3://bucket/key      with version ids; DELETED for a delete marker";

/// List buckets, or the objects of a bucket
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// s3://bucket[/prefix], or with wildcards; without it the buckets are listed
    #[arg(value_name = "S3_URI", value_parser = Place::parse)]
    uri: Option<Place>,
    /// All keys under the prefix, not one level
    #[arg(long, short)]
    recursive: bool,
    /// Sizes as in 1.5 MiB
    #[arg(long, short = 'H', visible_alias = "humanize")]
    human_readable: bool,
    /// Count objects and bytes at the end
    #[arg(long)]
    summarize: bool,
    /// All versions and delete markers, with their ids
    #[arg(long, requires = "uri")]
    all_versions: bool,
    /// In the order in which pages come, where keys need no order
    #[arg(long)]
    unordered: bool,
    /// Show storage classes
    #[arg(long, short = 's')]
    storage_class: bool,
    /// Show ETags
    #[arg(long, short)]
    etag: bool,
    /// Nothing but whole addresses: s3://bucket/key
    #[arg(long, visible_alias = "show-fullpath", conflicts_with_all = ["human_readable", "storage_class", "etag"])]
    addresses: bool,
    #[command(flatten)]
    wildcards: Wildcards,
    #[command(flatten)]
    filter: FilterFlags,
    #[command(flatten)]
    access: Access,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Record<'a> {
    Bucket {
        name: &'a str,
        creation_date: Option<Time>,
    },
    Prefix {
        prefix: &'a str,
    },
    Object {
        key: &'a str,
        size: u64,
        last_modified: Option<Time>,
        etag: Option<&'a str>,
        storage_class: Option<&'a str>,
    },
    Version {
        key: &'a str,
        version_id: &'a str,
        is_latest: bool,
        is_delete_marker: bool,
        size: u64,
        last_modified: Option<Time>,
        etag: Option<&'a str>,
        storage_class: Option<&'a str>,
    },
    Summary {
        objects: u64,
        bytes: u64,
    },
}

/// An instant as JSON has it, in UTC.
pub(crate) struct Time(pub(crate) jiff::Timestamp);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
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
    let mut clock = Clock::local();
    let buckets = context.client.list_buckets().await?;
    context.output.rows(|rows| {
        for bucket in &buckets {
            if context.output.json() {
                let creation_date = bucket.creation_date.map(Time);
                context.output.push_record(&Record::Bucket { name: &bucket.name, creation_date }, rows);
                continue;
            }
            clock.push(bucket.creation_date, rows);
            rows.push(b' ');
            push_visible(&bucket.name, rows);
            rows.push(b'\n');
        }
    })?;
    Ok(Exit::Done)
}

async fn objects(context: &Context<'_>, arguments: &Arguments, uri: &S3Uri) -> Result<Exit, Failure> {
    let output = context.output;
    let selection = Selection::new(uri, Scope::Prefix, &arguments.wildcards, &arguments.filter);
    let whole = arguments.recursive || selection.is_pattern();
    let order = if arguments.unordered { Order::AsTheyCome } else { Order::ByKey };
    let level = || selection.list(&context.client, &arguments.access).delimiter("/");
    let all = || selection.list_all(&context.client, &arguments.access, order);
    // One level is shown by names, a whole tree by keys.
    let hidden = if whole { 0 } else { selection.folder().len() };
    let mut lines = Lines { output, arguments, bucket: &uri.bucket, hidden, clock: Clock::local() };
    let mut seen = Seen::default();
    if arguments.all_versions {
        let mut pages = if whole { all().versions() } else { level().versions() };
        while let Some(page) = next(&mut pages, output).await? {
            output.rows(|rows| {
                page.prefixes.iter().for_each(|prefix| lines.prefix(prefix, rows));
                for version in &page.versions {
                    if selection.wants(&version.key, version.size, version.last_modified) {
                        seen.add(version.size);
                        lines.version(version, rows);
                    }
                }
            })?;
            seen.prefixes += page.prefixes.len() as u64;
        }
    } else {
        let mut pages = if whole { all().pages() } else { level().pages() };
        while let Some(page) = next(&mut pages, output).await? {
            output.rows(|rows| {
                page.prefixes.iter().for_each(|prefix| lines.prefix(prefix, rows));
                for object in &page.objects {
                    if selection.wants(&object.key, object.size, object.last_modified) {
                        seen.add(object.size);
                        lines.object(object, rows);
                    }
                }
            })?;
            seen.prefixes += page.prefixes.len() as u64;
        }
    }
    let Seen { prefixes, objects, bytes } = seen;
    if arguments.summarize {
        if output.json() {
            output.record(&Record::Summary { objects, bytes })?;
        } else {
            let size = if arguments.human_readable { Size(bytes).to_string() } else { bytes.to_string() };
            output.line(&format!("\nTotal Objects: {objects}\n   Total Size: {size}"))?;
        }
    }
    // As `aws s3 ls`: a prefix under which nothing is found can be tested for; an empty bucket is no failure.
    Ok(if prefixes + objects > 0 || selection.is_bucket() { Exit::Done } else { Exit::Partial })
}

/// The next page. Where it has to be waited for, all that was printed is seen meanwhile.
pub(crate) async fn next<P: Send + 'static>(pages: &mut Pages<P>, output: &Output) -> Result<Option<P>, Failure> {
    let page = match pages.next().now_or_never() {
        Some(page) => page,
        None => {
            output.flush()?;
            pages.next().await
        }
    };
    Ok(page.transpose()?)
}

/// What a listing has had so far.
#[derive(Default)]
struct Seen {
    prefixes: u64,
    objects: u64,
    bytes: u64,
}

impl Seen {
    fn add(&mut self, size: u64) {
        self.objects += 1;
        self.bytes += size;
    }
}

/// Prints what is found, a row each.
struct Lines<'a> {
    output: &'a Output,
    arguments: &'a Arguments,
    bucket: &'a str,
    /// How many bytes of each key are not shown.
    hidden: usize,
    clock: Clock,
}

impl Lines<'_> {
    fn prefix(&self, prefix: &str, rows: &mut Vec<u8>) {
        if self.output.json() {
            return self.output.push_record(&Record::Prefix { prefix }, rows);
        }
        if !self.arguments.addresses {
            push_right("PRE ", TIME_AND_SIZE + 1, rows);
        }
        self.name(prefix, rows);
    }

    fn object(&mut self, object: &ListedObject, rows: &mut Vec<u8>) {
        if self.output.json() {
            return self.output.push_record(&record(object), rows);
        }
        if !self.arguments.addresses {
            self.clock.push(object.last_modified, rows);
            rows.push(b' ');
            push_size(object.size, self.arguments.human_readable, SIZE_WIDTH, rows);
            rows.push(b' ');
            self.details(object.storage_class.as_ref(), object.etag.as_deref(), rows);
        }
        self.name(&object.key, rows);
    }

    fn version(&mut self, version: &ListedVersion, rows: &mut Vec<u8>) {
        if self.output.json() {
            let record = Record::Version {
                key: &version.key,
                version_id: &version.version_id,
                is_latest: version.is_latest,
                is_delete_marker: version.is_delete_marker,
                size: version.size,
                last_modified: version.last_modified.map(Time),
                etag: version.etag.as_deref(),
                storage_class: version.storage_class.as_ref().map(StorageClass::as_str),
            };
            return self.output.push_record(&record, rows);
        }
        if !self.arguments.addresses {
            self.clock.push(version.last_modified, rows);
            rows.push(b' ');
            if version.is_delete_marker {
                push_right("DELETED", SIZE_WIDTH, rows);
            } else {
                push_size(version.size, self.arguments.human_readable, SIZE_WIDTH, rows);
            }
            rows.push(b' ');
            push_visible(&version.version_id, rows);
            rows.push(b' ');
            self.details(version.storage_class.as_ref(), version.etag.as_deref(), rows);
        }
        self.name(&version.key, rows);
    }

    /// The columns that were asked for; `-` for what the server does not tell.
    fn details(&self, class: Option<&StorageClass>, etag: Option<&str>, rows: &mut Vec<u8>) {
        if self.arguments.storage_class {
            push_visible(class.map_or("-", StorageClass::as_str), rows);
            rows.push(b' ');
        }
        if self.arguments.etag {
            push_visible(etag.unwrap_or("-"), rows);
            rows.push(b' ');
        }
    }

    fn name(&self, key: &str, rows: &mut Vec<u8>) {
        if self.arguments.addresses {
            rows.extend_from_slice(b"s3://");
            push_visible(self.bucket, rows);
            rows.push(b'/');
            push_visible(key, rows);
        } else {
            push_visible(key.get(self.hidden..).unwrap_or(key), rows);
        }
        rows.push(b'\n');
    }
}

/// Columns before a name.
const TIME_AND_SIZE: usize = 30;

fn record(object: &ListedObject) -> Record<'_> {
    Record::Object {
        key: &object.key,
        size: object.size,
        last_modified: object.last_modified.map(Time),
        etag: object.etag.as_deref(),
        storage_class: object.storage_class.as_ref().map(StorageClass::as_str),
    }
}

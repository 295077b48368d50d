//! `wirespeed diff`: what two trees differ in, without moving them where checksums allow that.
//!
//! A line a name in the order of names, as `diff` and `git status` mark them: `-` the left side alone has it, `+` the right side
//! alone, `*` both and they differ, `?` both in one size and nothing more is told. The exit code is `diff`'s: 0 the same, 1 not,
//! 3 trouble. What is only `?` counts as not the same: who wants to know takes `--download`, who does not care
//! `--size-only`.

use std::ffi::OsString;
use std::path::Path;

use clap::Args;
use serde::Serialize;
use wirespeed_bulk::{Bucket, Differences, Entry, Finding, Found, Place};

use crate::access::Access;
use crate::context::Context;
use crate::customer_key::CustomerKey;
use crate::failure::{Exit, Failure, visible};
use crate::filter_flags::FilterFlags;
use crate::uri::Location;

const EXAMPLES: &str = "\
Examples:
  wirespeed diff ./photos s3://bucket/photos
  wirespeed diff s3://bucket/a s3://bucket/b --size-only
  wirespeed diff ./photos s3://bucket/photos --exclude '*.tmp' --json | jq -r .key
  wirespeed diff -q ./backup s3://bucket/backup && echo the same";

/// Tell what two trees differ in: folders, prefixes, or one of each
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A folder, or s3://bucket[/prefix]
    #[arg(value_name = "LEFT", value_hint = clap::ValueHint::DirPath)]
    left: OsString,
    /// A folder, or s3://bucket[/prefix]
    #[arg(value_name = "RIGHT", value_hint = clap::ValueHint::DirPath)]
    right: OsString,
    /// Compare bytes by checksums, as is done anyway
    #[arg(long, conflicts_with = "size_only")]
    checksum: bool,
    /// Take what has one name and one size for the same
    #[arg(long)]
    size_only: bool,
    /// Download, to compare and drop, what no checksum tells
    #[arg(long, conflicts_with = "size_only")]
    download: bool,
    /// Leave symbolic links out
    #[arg(long)]
    no_follow_symlinks: bool,
    /// Print what is the same too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    filter: FilterFlags,
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    customer_key: CustomerKey,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Record<'a> {
    Difference {
        /// `only_left`, `only_right`, `size`, `contents`, `unknown`, `same`, `failed`.
        status: &'static str,
        key: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        left: Option<Side<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        right: Option<Side<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    Summary {
        same: u64,
        only_left: u64,
        only_right: u64,
        different: u64,
        unknown: u64,
        failed: u64,
    },
}

/// What one side has.
#[derive(Serialize)]
struct Side<'a> {
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<&'a str>,
    last_modified: Option<String>,
}

impl Side<'_> {
    fn of(entry: &Entry) -> Side<'_> {
        let last_modified = entry.modified.map(|modified| modified.to_string());
        Side { size: entry.size, etag: entry.etag.as_deref(), last_modified }
    }
}

/// Runs `diff`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let left = place(context, arguments, &arguments.left)?;
    let right = place(context, arguments, &arguments.right)?;
    let mut differences =
        Differences::between(left, right).filter(arguments.filter.filter()).follow_links(!arguments.no_follow_symlinks);
    if arguments.size_only {
        differences = differences.size_only();
    }
    if arguments.download {
        differences = differences.download();
    }
    let mut printed = Ok(());
    let found = differences.run(|finding| {
        if printed.is_ok() {
            printed = print(context, arguments.all, &finding);
        }
    });
    let found = found.await.map_err(trouble)?;
    printed?;
    summarize(context, &found)?;
    Ok(match found {
        Found { failed: 1.., .. } => Exit::Failed,
        found if found.is_same() => Exit::Done,
        _ => Exit::Partial,
    })
}

/// A tree: a folder that is there, or a prefix taken as a folder.
fn place(context: &Context<'_>, arguments: &Arguments, text: &OsString) -> Result<Place, Failure> {
    match Location::parse(text.clone()).map_err(Failure::Usage)? {
        Location::Standard => Err(Failure::Usage("`-` is no tree; name a folder or a prefix".to_owned())),
        Location::Local(path) => match std::fs::metadata(&path) {
            Ok(found) if found.is_dir() => Ok(Place::folder(path)),
            Ok(_) => Err(Failure::Usage(format!("`{}` is no folder; diff compares trees", shown(&path)))),
            Err(source) => Err(Failure::local("read the folder", &path, source)),
        },
        Location::S3(uri) => {
            let mut bucket = Bucket::new(&context.client, &uri.bucket, uri.folder());
            if arguments.access.request_payer.is_some() {
                bucket = bucket.request_payer();
            }
            if let Some(owner) = &arguments.access.expected_bucket_owner {
                bucket = bucket.expected_owner(owner);
            }
            if let Some(key) = arguments.customer_key.read()? {
                bucket = bucket.sse_customer_key(key);
            }
            Ok(bucket.into())
        }
    }
}

/// Why a side cannot be listed, as the command line tells of it.
fn trouble(failure: wirespeed_bulk::Failure) -> Failure {
    match failure {
        wirespeed_bulk::Failure::Engine(error) => error.into(),
        wirespeed_bulk::Failure::Local { doing, path, source } => Failure::local(doing, &path, source),
        other => Failure::Refused(other.to_string()),
    }
}

fn shown(path: &Path) -> String {
    visible(&path.to_string_lossy()).into_owned()
}

fn print(context: &Context<'_>, all: bool, finding: &Finding) -> Result<(), Failure> {
    let (status, mark, left, right, why) = match finding {
        Finding::Same(left, right) if all => ("same", '=', Some(left), Some(right), None),
        Finding::Same(..) => return Ok(()),
        Finding::OnlyLeft(left) => ("only_left", '-', Some(left), None, None),
        Finding::OnlyRight(right) => ("only_right", '+', None, Some(right), None),
        Finding::Size(left, right) => {
            let size = |entry: &Entry| entry.size.map_or("unknown".to_owned(), |size| size.to_string());
            ("size", '*', Some(left), Some(right), Some(format!("{} and {} bytes", size(left), size(right))))
        }
        Finding::Contents(left, right) => ("contents", '*', Some(left), Some(right), Some("other contents".to_owned())),
        Finding::Unknown(left, right, why) => ("unknown", '?', Some(left), Some(right), Some((*why).to_owned())),
        Finding::Skipped(entry, why) => {
            context.output.note(&format!("skipped {}: {why}", visible(&entry.key)));
            return Ok(());
        }
        Finding::Failed(entry, failure) => {
            context.output.failure(&Failure::Refused(format!("cannot compare {}: {failure}", visible(&entry.key))));
            if !context.output.json() {
                return Ok(());
            }
            ("failed", '!', Some(entry), None, Some(failure.to_string()))
        }
        // What later versions of the library may find.
        _ => return Ok(()),
    };
    let key = left.or(right).map_or("", |entry| entry.key.as_str());
    if context.output.json() {
        let (left, right) = (left.map(Side::of), right.map(Side::of));
        return context.output.record(&Record::Difference { status, key, left, right, why });
    }
    if context.output.quiet() {
        return Ok(());
    }
    let key = visible(key);
    match why {
        Some(why) => context.output.line(&format!("{mark} {key} ({why})")),
        None => context.output.line(&format!("{mark} {key}")),
    }
}

fn summarize(context: &Context<'_>, found: &Found) -> Result<(), Failure> {
    let Found { only_left, only_right, different, unknown, same, failed } = *found;
    if context.output.json() {
        return context.output.record(&Record::Summary { same, only_left, only_right, different, unknown, failed });
    }
    let mut line = format!("{same} the same");
    for (count, what) in [
        (different, "different"),
        (only_left, "only on the left"),
        (only_right, "only on the right"),
        (unknown, "not told (--download compares them)"),
        (failed, "failed"),
    ] {
        if count > 0 {
            line += &format!(", {count} {what}");
        }
    }
    context.output.note(&line);
    Ok(())
}

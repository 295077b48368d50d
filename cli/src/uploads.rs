//! `wirespeed uploads`: multipart uploads that nobody has finished. Their parts are stored, and billed, until they are
//! aborted; `ls` does not show them.
//!
//! A verb of its own, and not a flag of `rm`: to forget a flag must not delete objects.

use clap::{Args, Subcommand};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use serde::Serialize;
use wirespeed::ListedUpload;

use crate::access::Access;
use crate::context::Context;
use crate::failure::{Exit, Failure, visible};
use crate::moment::parse_moment;
use crate::rows::{Clock, push_visible};
use crate::tally::{Item, Operation, Tally};
use crate::uri::S3Uri;

const EXAMPLES: &str = "\
Examples:
  wirespeed uploads ls s3://bucket                           all of a bucket
  wirespeed uploads ls s3://bucket/photos/
  wirespeed uploads abort s3://bucket/key --upload-id ID     one
  wirespeed uploads abort s3://bucket/key                    all of that key
  wirespeed uploads abort -r s3://bucket --older-than 7d     all under a prefix that began before";

const LS_EXAMPLES: &str = "\
Examples:
  wirespeed uploads ls s3://bucket
  wirespeed uploads ls --json s3://bucket/photos/

Columns: when it began, its id, its key.";

const ABORT_EXAMPLES: &str = "\
Examples:
  wirespeed uploads abort s3://bucket/key --upload-id ID
  wirespeed uploads abort s3://bucket/key
  wirespeed uploads abort -r s3://bucket --older-than 7d --dryrun

An upload that is under way elsewhere fails when it is aborted here: --older-than leaves the young ones alone.";

/// List or abort multipart uploads that were not finished
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List them
    #[command(after_help = LS_EXAMPLES)]
    Ls(List),
    /// Abort them, which deletes the parts that they have stored
    #[command(after_help = ABORT_EXAMPLES)]
    Abort(Abort),
}

#[derive(Debug, Args)]
struct List {
    /// s3://bucket[/prefix]
    #[arg(value_name = "S3_URI", value_parser = S3Uri::parse)]
    uri: S3Uri,
    #[command(flatten)]
    access: Access,
}

#[derive(Debug, Args)]
struct Abort {
    /// s3://bucket/key, or with --recursive s3://bucket[/prefix]
    #[arg(value_name = "S3_URI", value_parser = S3Uri::parse)]
    uri: S3Uri,
    /// Only this one
    #[arg(long, value_name = "ID", conflicts_with_all = ["recursive", "older_than"])]
    upload_id: Option<String>,
    /// Those of every key under the prefix
    #[arg(long, short)]
    recursive: bool,
    /// Only those that began before: an age as 7d or 12h, or a time as 2026-01-31
    #[arg(long, value_name = "AGE", value_parser = parse_moment)]
    older_than: Option<Timestamp>,
    /// Print what would be done, and do nothing
    #[arg(long, visible_alias = "dry-run")]
    dryrun: bool,
    #[command(flatten)]
    access: Access,
}

/// Most aborts that are under way at a time.
const AT_A_TIME: usize = 16;

#[derive(Serialize)]
struct Record<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    key: &'a str,
    upload_id: &'a str,
    initiated: Option<String>,
    storage_class: Option<&'a str>,
}

/// Runs `uploads`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.verb {
        Verb::Ls(list) => ls(context, list).await,
        Verb::Abort(arguments) => abort(context, arguments).await,
    }
}

async fn ls(context: &Context<'_>, List { uri, access }: &List) -> Result<Exit, Failure> {
    let output = context.output;
    let mut clock = Clock::local();
    let mut pages = access.on(context.client.list_uploads(&uri.bucket)).prefix(&uri.key).pages();
    while let Some(page) = pages.next().await {
        for upload in page?.uploads {
            let ListedUpload { key, upload_id, initiated, storage_class, .. } = &upload;
            if output.json() {
                let storage_class = storage_class.as_ref().map(wirespeed::StorageClass::as_str);
                let initiated = initiated.map(|time| time.to_string());
                output.record(&Record { kind: "upload", key, upload_id, initiated, storage_class })?;
            } else {
                output.rows(|rows| {
                    clock.push(*initiated, rows);
                    for column in [upload_id, key] {
                        rows.push(b' ');
                        push_visible(column, rows);
                    }
                    rows.push(b'\n');
                })?;
            }
        }
        output.flush()?;
    }
    Ok(Exit::Done)
}

async fn abort(context: &Context<'_>, arguments: &Abort) -> Result<Exit, Failure> {
    let uri = &arguments.uri;
    if !arguments.recursive && uri.key.is_empty() {
        return Err(Failure::Usage(format!("`{uri}` names no key; add --recursive for all uploads under it")));
    }
    let mut tally = Tally::start(context.output, Operation::Abort);
    let Some(upload_id) = &arguments.upload_id else {
        let stopped = abort_listed(context, arguments, &mut tally).await.err();
        return tally.finish(stopped);
    };
    let item = item(uri, &uri.key, upload_id);
    if arguments.dryrun {
        tally.would(&item);
        return tally.finish(None);
    }
    let abort = context.client.abort_upload(&uri.bucket, &uri.key, upload_id);
    match arguments.access.on(abort).await {
        Ok(()) => {
            tally.done(&item);
            tally.finish(None)
        }
        Err(error) if is_gone(&error) => {
            context.output.note(&format!("{}: there is no such upload (any more)", visible(&item.source)));
            tally.done(&item);
            tally.finish(None)
        }
        Err(error) => tally.failed_alone(&item, error.into()),
    }
}

async fn abort_listed(context: &Context<'_>, arguments: &Abort, tally: &mut Tally<'_>) -> Result<(), Failure> {
    let Abort { uri, recursive, older_than, dryrun, access, .. } = arguments;
    let prefix = if *recursive { uri.folder() } else { uri.key.clone() };
    let meant = |upload: &ListedUpload| {
        let old_enough = older_than.is_none_or(|before| upload.initiated.is_some_and(|began| began < before));
        (*recursive || upload.key == uri.key) && old_enough
    };
    let mut pages = access.on(context.client.list_uploads(&uri.bucket)).prefix(prefix).pages();
    while let Some(page) = pages.next().await {
        let mut meant = page?.uploads.into_iter().filter(meant);
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < AT_A_TIME
                && let Some(ListedUpload { key, upload_id, .. }) = meant.next()
            {
                let item = item(uri, &key, &upload_id);
                if *dryrun {
                    tally.would(&item);
                    continue;
                }
                let abort = access.on(context.client.abort_upload(&uri.bucket, key, upload_id));
                running.push(async { (item, abort.await) });
            }
            match running.next().await {
                Some((item, Ok(()))) => tally.done(&item),
                // Completed or aborted by somebody else meanwhile.
                Some((item, Err(error))) if is_gone(&error) => tally.done(&item),
                Some((item, Err(error))) => tally.failed(&item, error.into())?,
                None => break,
            }
        }
    }
    Ok(())
}

/// Whether there is no such upload, which is what an abort is for.
fn is_gone(error: &wirespeed::Error) -> bool {
    error.code() == Some("NoSuchUpload")
}

fn item(uri: &S3Uri, key: &str, upload_id: &str) -> Item {
    Item { source: uri.with_key(key).to_string(), upload_id: Some(upload_id.to_owned()), ..Item::default() }
}

//! `wirespeed uploads`: multipart uploads that nobody has finished. Their parts are stored, and billed, until they are
//! aborted; `ls` does not show them.
//!
//! A verb of its own, and not a flag of `rm`: to forget a flag must not delete objects.

use std::time::Duration;

use clap::{Args, Subcommand};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use serde::Serialize;
use wirespeed::ListedUpload;

use crate::access::Access;
use crate::context::Context;
use crate::failure::{Exit, Failure, visible};
use crate::ls::local_time;
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
    /// Only those that began longer ago, as in 7d or 12h
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: Option<Duration>,
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
    let mut pages = access.on(context.client.list_uploads(&uri.bucket)).prefix(&uri.key).pages();
    while let Some(page) = pages.next().await {
        for upload in page?.uploads {
            let ListedUpload { key, upload_id, initiated, storage_class, .. } = &upload;
            if output.json() {
                let storage_class = storage_class.as_ref().map(wirespeed::StorageClass::as_str);
                let initiated = initiated.map(|time| time.to_string());
                output.record(&Record { kind: "upload", key, upload_id, initiated, storage_class })?;
            } else {
                output.line(&format!("{} {} {}", local_time(*initiated), visible(upload_id), visible(key)))?;
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
    let before = older_than.and_then(|age| Timestamp::now().checked_sub(age).ok());
    let meant = |upload: &ListedUpload| {
        let old_enough = before.is_none_or(|before| upload.initiated.is_some_and(|began| began < before));
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

/// `7d`, `12h`, `30m`, `45s`.
fn age(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not an age; write it as 7d, 12h, 30m or 45s");
    let (number, unit) = text.split_at(text.len() - text.chars().next_back().map_or(0, char::len_utf8));
    let seconds = match unit {
        "d" => 24 * 3600,
        "h" => 3600,
        "m" => 60,
        "s" => 1,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_read() {
        for (text, seconds) in [("7d", 7 * 24 * 3600), ("12h", 12 * 3600), ("30m", 1800), ("0s", 0)] {
            assert_eq!(age(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for wrong in ["", "7", "d", "-1d", "1.5h", "7ä", "99999999999999999d"] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
    }
}

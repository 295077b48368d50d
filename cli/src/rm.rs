//! `wirespeed rm`: deletes one object, or all under a prefix while they are still being listed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use clap::Args;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use wirespeed::DeleteFailure;

use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::tally::{Item, Operation, Tally};
use crate::uri::S3Uri;

const EXAMPLES: &str = "\
Examples:
  wirespeed rm s3://bucket/key
  wirespeed rm --recursive s3://bucket/photos/2025    all under photos/2025/, not photos/2025-new.jpg
  wirespeed rm --recursive s3://bucket                empties the bucket

S3 does not say whether a key existed: deleting one that does not is no error.";

/// Delete objects
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// s3://bucket/key, or with --recursive s3://bucket[/prefix]
    #[arg(value_name = "S3_URI", value_parser = S3Uri::parse)]
    uri: S3Uri,
    /// Delete every object under the prefix
    #[arg(long, short)]
    recursive: bool,
}

/// Pages of keys (1,000 each, one request) that are deleted at a time.
const PAGES_AT_A_TIME: usize = 4;

/// Runs `rm`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let uri = &arguments.uri;
    if arguments.recursive {
        return many(context, uri).await;
    }
    if uri.key.is_empty() {
        return Err(Failure::Usage(format!(
            "`{uri}` is a whole bucket; add --recursive to empty it, or use `wirespeed rb` to remove it"
        )));
    }
    let mut tally = Tally::start(context.output, Operation::Delete);
    let item = item(uri, &uri.key);
    match context.client.delete(&uri.bucket, &uri.key).await {
        Ok(_) => {
            tally.done(&item);
            tally.finish(None)
        }
        Err(error) => tally.failed_alone(&item, error.into()),
    }
}

/// Deletes everything under a prefix.
pub(crate) async fn many(context: &Context<'_>, uri: &S3Uri) -> Result<Exit, Failure> {
    let mut tally = Tally::start(context.output, Operation::Delete);
    let stopped = delete_pages(context, uri, &mut tally).await.err();
    tally.finish(stopped)
}

async fn delete_pages(context: &Context<'_>, uri: &S3Uri, tally: &mut Tally<'_>) -> Result<(), Failure> {
    let mut pages = context.client.list(&uri.bucket).prefix(uri.folder()).pages();
    let mut listed = false;
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            page = pages.next(), if !listed && running.len() < PAGES_AT_A_TIME => match page {
                Some(page) => {
                    let keys: Vec<String> = page?.objects.into_iter().map(|object| object.key).collect();
                    if !keys.is_empty() {
                        running.push(async {
                            let result = context.client.delete_many(&uri.bucket, keys.clone()).await;
                            (keys, result)
                        });
                    }
                }
                None => listed = true,
            },
            Some((keys, result)) = running.next(), if !running.is_empty() => {
                account(uri, keys, result?, tally)?;
            }
            else => return Ok(()),
        }
    }
}

/// Enters a page of keys that were to be deleted, with what the server says of those that it kept. What it says of a
/// key that was not asked for, or of none, is a failure too: some object is still there.
fn account(uri: &S3Uri, keys: Vec<String>, failures: Vec<DeleteFailure>, tally: &mut Tally<'_>) -> Result<(), Failure> {
    let mut kept: HashMap<String, Option<DeleteFailure>> = keys.iter().map(|key| (key.clone(), None)).collect();
    let mut strange = Vec::new();
    for failure in failures {
        match kept.entry(failure.key.clone()) {
            Entry::Occupied(mut entry) => drop(entry.insert(Some(failure))),
            Entry::Vacant(_) => strange.push(failure),
        }
    }
    for key in keys {
        let item = item(uri, &key);
        match kept.remove(&key).flatten() {
            None => tally.done(&item),
            Some(failure) => tally.failed(&item, rejected(uri, &item.source, failure))?,
        }
    }
    for failure in strange {
        let (item, what) = if failure.key.is_empty() {
            (item(uri, &uri.folder()), format!("an object under {uri} whose key the server does not tell"))
        } else {
            let item = item(uri, &failure.key);
            let what = format!("{}, a key that was not asked for", item.source);
            (item, what)
        };
        tally.failed(&item, rejected(uri, &what, failure))?;
    }
    Ok(())
}

fn rejected(uri: &S3Uri, what: &str, failure: DeleteFailure) -> Failure {
    Failure::Rejected {
        what: format!("cannot delete {what}: {} ({})", failure.message, failure.code),
        bucket: uri.bucket.clone(),
        key: failure.key,
        code: failure.code,
    }
}

fn item(uri: &S3Uri, key: &str) -> Item {
    Item { source: uri.with_key(key).to_string(), destination: None, size: None, etag: None }
}

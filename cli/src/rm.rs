//! `wirespeed rm`: deletes one object, or all under a prefix while they are still being listed.

use std::collections::HashMap;

use clap::Args;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

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
    context.client.delete(&uri.bucket, &uri.key).await?;
    tally.done(&item(uri, &uri.key));
    tally.finish(None)
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
                let mut failures: HashMap<String, _> =
                    result?.into_iter().map(|failure| (failure.key.clone(), failure)).collect();
                for key in keys {
                    let item = item(uri, &key);
                    match failures.remove(&key) {
                        None => tally.done(&item),
                        Some(failure) => tally.failed(&item, Failure::Rejected {
                            what: format!("cannot delete {}: {} ({})", item.source, failure.message, failure.code),
                            bucket: uri.bucket.clone(),
                            key,
                            code: failure.code,
                        })?,
                    }
                }
            }
            else => return Ok(()),
        }
    }
}

fn item(uri: &S3Uri, key: &str) -> Item {
    Item { source: uri.with_key(key).to_string(), destination: None, size: None, etag: None }
}

//! `wirespeed rm`: deletes one object, or all under a prefix while they are still being listed; one version, or all of
//! them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use clap::Args;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use wirespeed::{DeleteFailure, ListedVersion, Page, Pages, VersionPage};

use crate::access::Access;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::tally::{Item, Operation, Tally};
use crate::uri::S3Uri;

const EXAMPLES: &str = "\
Examples:
  wirespeed rm s3://bucket/key
  wirespeed rm --recursive s3://bucket/photos/2025    all under photos/2025/, not photos/2025-new.jpg
  wirespeed rm --recursive --dryrun s3://bucket       what emptying the bucket would delete
  wirespeed rm s3://bucket/key --version-id ID        one version, for good
  wirespeed rm --all-versions s3://bucket/key         all versions and delete markers of a key, for good
  wirespeed rm --all-versions --recursive s3://bucket

S3 does not say whether a key existed: deleting one that does not is no error. Where the bucket keeps versions, a
deletion without --version-id or --all-versions hides the object and keeps it.";

/// Delete objects, or versions of them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// s3://bucket/key, or with --recursive s3://bucket[/prefix]
    #[arg(value_name = "S3_URI", value_parser = S3Uri::parse)]
    uri: S3Uri,
    /// Delete every object under the prefix
    #[arg(long, short)]
    recursive: bool,
    /// Delete this version of the one object, for good
    #[arg(long, value_name = "ID", conflicts_with = "recursive")]
    version_id: Option<String>,
    /// Delete every version and delete marker, for good
    #[arg(long, conflicts_with = "version_id")]
    all_versions: bool,
    /// Print what would be done, and do nothing
    #[arg(long, visible_alias = "dry-run")]
    dryrun: bool,
    #[command(flatten)]
    access: Access,
}

/// Pages of keys (1,000 each, one request) that are deleted at a time.
const PAGES_AT_A_TIME: usize = 4;

/// Runs `rm`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let uri = &arguments.uri;
    if !arguments.recursive && uri.key.is_empty() {
        return Err(Failure::Usage(format!(
            "`{uri}` is a whole bucket; add --recursive to empty it, or use `wirespeed rb` to remove it"
        )));
    }
    let mut tally = Tally::start(context.output, Operation::Delete);
    if arguments.recursive || arguments.all_versions {
        let source = Source::listed(context, arguments);
        let stopped = delete_listed(context, arguments, source, &mut tally).await.err();
        return tally.finish(stopped);
    }
    let item = item(uri, &uri.key, arguments.version_id.as_deref());
    if arguments.dryrun {
        tally.would(&item);
        return tally.finish(None);
    }
    let mut delete = arguments.access.on(context.client.delete(&uri.bucket, &uri.key));
    if let Some(version) = &arguments.version_id {
        delete = delete.version(version);
    }
    match delete.await {
        Ok(_) => {
            tally.done(&item);
            tally.finish(None)
        }
        Err(error) => tally.failed_alone(&item, error.into()),
    }
}

/// Deletes every object of a bucket.
pub(crate) async fn empty(context: &Context<'_>, uri: &S3Uri) -> Result<Exit, Failure> {
    let arguments = Arguments {
        uri: uri.clone(),
        recursive: true,
        version_id: None,
        all_versions: false,
        dryrun: false,
        access: Access::default(),
    };
    run(context, &arguments).await
}

/// A key, and its version where one is meant.
type Target = (String, Option<String>);

/// Where what is to be deleted comes from, a page at a time.
enum Source {
    Keys(Pages<Page>),
    /// Of one key alone, or of all.
    Versions(Pages<VersionPage>, Option<String>),
}

impl Source {
    fn listed(context: &Context<'_>, arguments: &Arguments) -> Source {
        let uri = &arguments.uri;
        let prefix = if arguments.recursive { uri.folder() } else { uri.key.clone() };
        let list = arguments.access.on(context.client.list(&uri.bucket)).prefix(prefix);
        if arguments.all_versions {
            Source::Versions(list.versions(), (!arguments.recursive).then(|| uri.key.clone()))
        } else {
            Source::Keys(list.pages())
        }
    }

    /// The next page; none at the end. Cancelling the wait loses nothing.
    async fn next(&mut self) -> Option<wirespeed::Result<Vec<Target>>> {
        match self {
            Source::Keys(pages) => {
                let page = pages.next().await?;
                Some(page.map(|page| page.objects.into_iter().map(|object| (object.key, None)).collect()))
            }
            Source::Versions(pages, only) => {
                let page = pages.next().await?;
                let meant = |version: &ListedVersion| only.as_ref().is_none_or(|only| version.key == *only);
                let target = |version: ListedVersion| (version.key, Some(version.version_id));
                Some(page.map(|page| page.versions.into_iter().filter(meant).map(target).collect()))
            }
        }
    }
}

async fn delete_listed(
    context: &Context<'_>,
    arguments: &Arguments,
    mut source: Source,
    tally: &mut Tally<'_>,
) -> Result<(), Failure> {
    let uri = &arguments.uri;
    let mut listed = false;
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            page = source.next(), if !listed && running.len() < PAGES_AT_A_TIME => match page {
                Some(page) => {
                    let targets = page?;
                    if arguments.dryrun {
                        targets.iter().for_each(|(key, version)| tally.would(&item(uri, key, version.as_deref())));
                    } else if !targets.is_empty() {
                        running.push(async {
                            let result = delete(context, arguments, targets.clone()).await;
                            (targets, result)
                        });
                    }
                }
                None => listed = true,
            },
            Some((targets, result)) = running.next(), if !running.is_empty() => {
                account(uri, targets, result?, tally)?;
            }
            else => return Ok(()),
        }
    }
}

async fn delete(
    context: &Context<'_>,
    arguments: &Arguments,
    targets: Vec<Target>,
) -> wirespeed::Result<Vec<DeleteFailure>> {
    let (mut keys, mut versions) = (Vec::new(), Vec::new());
    for (key, version) in targets {
        match version {
            None => keys.push(key),
            Some(version) => versions.push((key, version)),
        }
    }
    let delete = context.client.delete_many(&arguments.uri.bucket, keys).versions(versions);
    arguments.access.on(delete).await
}

/// Enters a page of targets that were to be deleted, with what the server says of those that it kept. What it says of a
/// key that was not asked for, or of none, is a failure too: some object is still there.
fn account(
    uri: &S3Uri,
    targets: Vec<Target>,
    failures: Vec<DeleteFailure>,
    tally: &mut Tally<'_>,
) -> Result<(), Failure> {
    let mut kept: HashMap<Target, Option<DeleteFailure>> =
        targets.iter().map(|target| (target.clone(), None)).collect();
    let mut strange = Vec::new();
    for failure in failures {
        match kept.entry((failure.key.clone(), failure.version_id.clone())) {
            Entry::Occupied(mut entry) => drop(entry.insert(Some(failure))),
            Entry::Vacant(_) => strange.push(failure),
        }
    }
    for target in targets {
        let item = item(uri, &target.0, target.1.as_deref());
        match kept.remove(&target).flatten() {
            None => tally.done(&item),
            Some(failure) => tally.failed(&item, rejected(uri, &item.source, failure))?,
        }
    }
    for failure in strange {
        let (item, what) = if failure.key.is_empty() {
            let what = format!("an object under {uri} whose key the server does not tell");
            (item(uri, &uri.folder(), None), what)
        } else {
            let item = item(uri, &failure.key, failure.version_id.as_deref());
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

fn item(uri: &S3Uri, key: &str, version: Option<&str>) -> Item {
    let version_id = version.map(str::to_owned);
    Item { source: uri.with_key(key).to_string(), version_id, ..Item::default() }
}

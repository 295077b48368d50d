//! `wirespeed rm`: deletes one object, or all under a prefix while they are still being listed; one version, or all of
//! them. Deletions go 1,000 to a request.

use clap::Args;
use wirespeed_bulk::{Entry, Job, Pattern};

use crate::access::Access;
use crate::bulk::account::Verb;
use crate::bulk::ends::{place, split};
use crate::bulk::run_flags::RunFlags;
use crate::bulk::{self, Telling};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::filter_flags::FilterFlags;
use crate::tally::{Item, Operation, Tally};
use crate::uri::S3Uri;
use crate::wildcard::Wildcards;

const EXAMPLES: &str = "\
Examples:
  wirespeed rm s3://bucket/key
  wirespeed rm --recursive s3://bucket/photos/2025    all under photos/2025/, not photos/2025-new.jpg
  wirespeed rm 's3://bucket/logs/2025-*.gz'           all that match
  wirespeed rm --recursive s3://bucket/tmp --older-than 7d --exclude '*.keep'
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
    /// s3://bucket/key, also with wildcards, or with --recursive s3://bucket[/prefix]
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
    /// Delete nothing more once so many are deleted
    #[arg(long, value_name = "NUMBER")]
    max_delete: Option<u64>,
    #[command(flatten)]
    wildcards: Wildcards,
    #[command(flatten)]
    filter: FilterFlags,
    #[command(flatten)]
    pub(crate) run: RunFlags,
    #[command(flatten)]
    access: Access,
}

/// Runs `rm`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    bulk::supervised(&arguments.run, remove(context, arguments)).await
}

async fn remove(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { uri, filter, run, .. } = arguments;
    if !arguments.recursive && uri.key.is_empty() {
        return Err(Failure::Usage(format!(
            "`{uri}` is a whole bucket; add --recursive to empty it, or use `wirespeed rb` to remove it"
        )));
    }
    let pattern = arguments.wildcards.split(uri);
    let many = arguments.recursive || arguments.all_versions || pattern.is_some();
    if !many && !filter.given() && run.failures.is_none() && !run.stat {
        return one(context, arguments).await;
    }
    if pattern.is_some() && arguments.version_id.is_some() {
        return Err(Failure::Usage("--version-id is of one object; leave out the wildcards, or add --raw".to_owned()));
    }
    let (mut wanted, mut alone) = (filter.filter(), None);
    let prefix = match pattern {
        Some((prefix, pattern)) => {
            wanted = wanted.matching(pattern);
            prefix
        }
        None if arguments.recursive => uri.folder(),
        // Of all that begins with the key, only what ends with it.
        None if arguments.all_versions => {
            wanted = wanted.matching(Pattern::new(""));
            uri.key.clone()
        }
        None => {
            let (folder, name) = split(uri);
            alone = Some(Entry { version: arguments.version_id.clone(), ..Entry::named(name) });
            folder
        }
    };
    let from = place(&context.client, &uri.bucket, &prefix, &arguments.access, None);
    let mut job = Job::delete(from).filter(wanted).all_versions(arguments.all_versions);
    if let Some(alone) = alone {
        job = job.entries([alone]);
    }
    if let Some(most) = arguments.max_delete {
        job = job.max_delete(most);
    }
    let missing = if arguments.recursive { uri.with_key(&prefix) } else { uri.clone() };
    let telling = Telling {
        verb: Verb::Remove,
        operation: "delete",
        missing: &missing.to_string(),
        words: arguments.access.words(),
    };
    bulk::run(context, job, run, telling).await
}

/// Deletes one object, or one version of it.
async fn one(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { uri, version_id, .. } = arguments;
    let mut tally = Tally::start(context.output, Operation::Delete);
    let item = Item { source: uri.to_string(), version_id: version_id.clone(), ..Item::default() };
    if arguments.run.dryrun {
        tally.would(&item);
        return tally.finish(None);
    }
    let mut delete = arguments.access.on(context.client.delete(&uri.bucket, &uri.key));
    if let Some(version) = version_id {
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
        max_delete: None,
        wildcards: Wildcards::default(),
        filter: FilterFlags::default(),
        run: RunFlags::default(),
        access: Access::default(),
    };
    run(context, &arguments).await
}

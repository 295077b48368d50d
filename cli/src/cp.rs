//! `wirespeed cp`: between this machine and S3, or within S3, one object or a whole tree.
//!
//! Owns which way a copy goes. One object that goes alone is one call of the engine: `download`, `upload` and `remote`, or
//! `pipe` and `cat` for the standard streams. Whatever is more than that is a job, see [`bulk`](crate::bulk). Refuses local
//! to local, a tree without `--recursive`, streams where a tree is meant, and flags that the way it goes would ignore.

mod download;
mod remote;
mod upload;

use clap::Args;

use crate::access::Access;
use crate::bulk::account::Verb;
use crate::bulk::ends::is_nowhere;
use crate::bulk::run_flags::{RunFlags, TreeFlags};
use crate::bulk::{self, Asked};
use crate::checksum_flags::ChecksumFlags;
use crate::context::Context;
use crate::copy_flags::CopyFlags;
use crate::failure::{Exit, Failure};
use crate::filter_flags::FilterFlags;
use crate::tally::Item;
use crate::units::parse_size;
use crate::uri::{Location, S3Uri};
use crate::wildcard::Wildcards;
use crate::write_flags::WriteFlags;
use crate::{cat, pipe};

const EXAMPLES: &str = "\
Examples:
  wirespeed cp s3://bucket/big.bin .                    keeps the name
  wirespeed cp report.pdf s3://bucket/reports/          keeps the name
  wirespeed cp report.pdf s3://bucket/reports/may.pdf
  wirespeed cp --recursive s3://bucket/photos ./photos  all under photos/
  wirespeed cp --recursive ./photos s3://bucket/photos
  wirespeed cp --recursive --dryrun ./photos s3://bucket/photos
  wirespeed cp 's3://bucket/logs/2026-*.gz' ./logs      all that match
  wirespeed cp --recursive . s3://bucket --exclude '*' --include '*.jpg'
  wirespeed cp --recursive --state job s3://bucket/big ./big
                                                        run again, it goes on where it stopped
  wirespeed cp s3://bucket/a s3://other/a               on the server; no byte passes here
  wirespeed cp s3://bucket/big.tar - | tar x            to standard output
  tar c . | wirespeed cp - s3://bucket/all.tar          from standard input
  wirespeed cp page.html s3://bucket/ --cache-control max-age=60 --metadata author=me

Files appear under their names when they are whole. A key that would leave the target folder (`../x`, `/x`, through a
symbolic link) is refused, the rest goes on, and the exit code is 1.";

/// Copy objects and files: up, down, or from object to object
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) copying: Copying,
    /// Version of the one source object
    #[arg(long, value_name = "ID", conflicts_with = "recursive")]
    version_id: Option<String>,
    /// From standard input: about how many bytes will come, where they are more than 50 GB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    expected_size: Option<u64>,
}

/// What `cp` and `mv` have in common.
#[derive(Debug, Args)]
pub(crate) struct Copying {
    /// s3://bucket/key, also with wildcards, a path, or - for standard input
    #[arg(value_parser = location(), value_hint = clap::ValueHint::AnyPath)]
    pub(crate) source: Location,
    /// s3://bucket/key, a path, or - for standard output
    #[arg(value_parser = location(), value_hint = clap::ValueHint::AnyPath)]
    pub(crate) destination: Location,
    /// Everything under the source
    #[arg(long, short)]
    pub(crate) recursive: bool,
    /// Leave alone whatever is there already
    #[arg(long, short = 'n')]
    pub(crate) no_clobber: bool,
    #[command(flatten)]
    pub(crate) wildcards: Wildcards,
    #[command(flatten)]
    pub(crate) filter: FilterFlags,
    #[command(flatten)]
    pub(crate) tree: TreeFlags,
    #[command(flatten)]
    pub(crate) run: RunFlags,
    #[command(flatten)]
    pub(crate) access: Access,
    #[command(flatten)]
    pub(crate) checksum: ChecksumFlags,
    #[command(flatten)]
    pub(crate) write: WriteFlags,
    #[command(flatten)]
    pub(crate) copy: CopyFlags,
}

impl Copying {
    /// As a job is asked for it.
    pub(crate) fn asked<'a>(&'a self, verb: Verb, version: Option<&'a str>) -> Asked<'a> {
        Asked {
            verb,
            source: &self.source,
            destination: &self.destination,
            recursive: self.recursive || self.tree.from_file.is_some(),
            deletes: false,
            version,
            wildcards: &self.wildcards,
            filter: &self.filter,
            access: &self.access,
            checksum: &self.checksum,
            write: &self.write,
            copy: &self.copy,
            tree: &self.tree,
            run: &self.run,
        }
    }

    /// Whether it is one object that no flag makes more of: then it is one call of the engine.
    fn goes_alone(&self) -> bool {
        let Copying { recursive, no_clobber, filter, tree, run, .. } = self;
        let many = *recursive || tree.from_file.is_some() || self.has_wildcards();
        let job = tree.state.is_some() || tree.preserve || tree.source.given() || *no_clobber || filter.given();
        !many && !job && run.failures.is_none() && !run.stat && !is_nowhere(&self.destination)
    }

    fn has_wildcards(&self) -> bool {
        matches!(&self.source, Location::S3(uri) if self.wildcards.of(uri).is_some())
    }
}

pub(crate) fn location() -> impl clap::builder::TypedValueParser<Value = Location> {
    use clap::builder::TypedValueParser as _;
    clap::builder::OsStringValueParser::new().try_map(Location::parse)
}

impl Arguments {
    /// Whether standard input is what is copied, or names it.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.copying.source == Location::Standard || self.copying.tree.reads_stdin()
    }
}

/// Advice where a source that ends in `/` is not an object.
const ADD_RECURSIVE: &str = "add --recursive for all under it";

/// Runs `cp`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    bulk::supervised(&arguments.copying.run, copy(context, arguments)).await
}

async fn copy(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let copying = &arguments.copying;
    let asked = copying.asked(Verb::Copy, arguments.version_id.as_deref());
    asked.check()?;
    if !copying.goes_alone() {
        let no_clobber = copying.no_clobber;
        return bulk::transfer(context, &asked, |job| job.no_clobber(no_clobber)).await;
    }
    match (&copying.source, &copying.destination) {
        (Location::S3(uri), _) if uri.key.is_empty() => Err(Failure::Usage(format!(
            "`{uri}` names no object; give the whole key, or add --recursive for all under it"
        ))),
        (Location::S3(uri), Location::Local(path)) => download::one(context, arguments, uri, path).await,
        (Location::S3(from), Location::S3(to)) => remote::one(context, arguments, from, to).await,
        (Location::S3(uri), Location::Standard) => to_stdout(context, arguments, uri).await,
        (Location::Local(path), Location::S3(uri)) => upload::one(context, arguments, path, uri).await,
        (Location::Standard, Location::S3(uri)) => from_stdin(context, arguments, uri).await,
        (Location::Local(_) | Location::Standard, _) => {
            Err(Failure::Usage("neither end is on S3; write that end as s3://bucket/key".to_owned()))
        }
    }
}

async fn to_stdout(context: &Context<'_>, arguments: &Arguments, uri: &S3Uri) -> Result<Exit, Failure> {
    if arguments.copying.run.dryrun {
        let item = Item { source: uri.to_string(), destination: Some("-".to_owned()), ..Item::default() };
        return download::would(context, arguments, uri, item).await;
    }
    let version = arguments.version_id.as_deref();
    let key = arguments.copying.write.customer_key.read()?;
    let conditions = cat::Conditions {
        if_match: arguments.copying.write.if_match.clone(),
        if_none_match: arguments.copying.write.if_none_match.clone(),
    };
    let reading = cat::Reading {
        version,
        access: &arguments.copying.access,
        customer_key: key,
        range: None,
        conditions: &conditions,
    };
    cat::to_stdout(context, uri, &reading).await.map(|()| Exit::Done)
}

async fn from_stdin(context: &Context<'_>, arguments: &Arguments, uri: &S3Uri) -> Result<Exit, Failure> {
    if uri.is_prefix() {
        let message = format!("`{uri}` is a folder, and a stream has no name in it; give the whole key, or use pipe");
        return Err(Failure::Usage(message));
    }
    let options = arguments.copying.write.options(&arguments.copying.access, Some(&uri.key))?;
    pipe::upload(context, uri, options, arguments.expected_size, arguments.copying.run.dryrun).await
}

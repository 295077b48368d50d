//! `wirespeed cp`: between this machine and S3, or within S3, one object or a whole tree.
//!
//! Owns which way a copy goes and what its two ends mean; `download`, `upload` and `remote` do the three ways, `pipe` and
//! `cat` the standard streams. Refuses local to local, a tree without `--recursive`, streams where a tree is meant, and
//! flags that the way it goes would ignore.

mod download;
mod remote;
mod under_way;
mod upload;
mod walk;

use std::path::Path;

use clap::{Args, ValueEnum};

use self::under_way::UnderWay;
use crate::access::Access;
use crate::checksum_flags::ChecksumFlags;
use crate::context::Context;
use crate::customer_key::CopySourceKey;
use crate::failure::{Exit, Failure};
use crate::tally::{Item, Tally};
use crate::units::parse_size;
use crate::uri::{Location, S3Uri};
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
    /// s3://bucket/key, a path, or - for standard input
    #[arg(value_parser = location(), value_hint = clap::ValueHint::AnyPath)]
    source: Location,
    /// s3://bucket/key, a path, or - for standard output
    #[arg(value_parser = location(), value_hint = clap::ValueHint::AnyPath)]
    destination: Location,
    /// Copy everything under the source
    #[arg(long, short)]
    recursive: bool,
    /// Print what would be done, and do nothing
    #[arg(long, visible_alias = "dry-run")]
    dryrun: bool,
    /// Version of the one source object
    #[arg(long, value_name = "ID", conflicts_with = "recursive")]
    version_id: Option<String>,
    /// From standard input: about how many bytes will come, where they are more than 50 GB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    expected_size: Option<u64>,
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    pub(crate) checksum: ChecksumFlags,
    #[command(flatten)]
    write: WriteFlags,
    #[command(flatten)]
    copy: CopyFlags,
}

/// What only a copy on the server has.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Options for S3 to S3")]
struct CopyFlags {
    /// Whether type, headers and metadata come from the source or from the flags
    #[arg(long, value_name = "DIRECTIVE", value_parser = ["COPY", "REPLACE"])]
    metadata_directive: Option<String>,
    /// What comes from the source: nothing; type, headers and metadata; or tags too
    #[arg(long, value_name = "PROPERTIES")]
    copy_props: Option<CopyProps>,
    /// Refuse a source bucket that does not belong to this account [default: that of --expected-bucket-owner]
    #[arg(long, value_name = "ACCOUNT", value_parser = crate::access::account)]
    expected_source_bucket_owner: Option<String>,
    #[command(flatten)]
    source_key: CopySourceKey,
}

/// What a copy takes from its source, as `aws s3 cp --copy-props` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CopyProps {
    None,
    MetadataDirective,
    Default,
}

impl CopyFlags {
    fn given(&self) -> bool {
        let owner = self.expected_source_bucket_owner.is_some();
        self.metadata_directive.is_some() || self.copy_props.is_some() || owner || self.source_key.given()
    }
}

fn location() -> impl clap::builder::TypedValueParser<Value = Location> {
    use clap::builder::TypedValueParser as _;
    clap::builder::OsStringValueParser::new().try_map(Location::parse)
}

/// Runs `cp`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let usage = |message: &str| Err(Failure::Usage(message.to_owned()));
    let (source, destination) = (&arguments.source, &arguments.destination);
    if matches!(source, Location::S3(_)) && !matches!(destination, Location::S3(_)) && arguments.write.writes() {
        return usage("flags for what is written have no effect on a download; leave them out");
    }
    let within_s3 = matches!((source, destination), (Location::S3(_), Location::S3(_)));
    if arguments.copy.given() && !within_s3 {
        return usage(
            "--metadata-directive, --copy-props, --expected-source-bucket-owner and --sse-c-copy-source are for copies \
             from S3 to S3",
        );
    }
    if within_s3 && arguments.checksum.given() {
        return usage(
            "a copy on the server keeps the checksum of its source; leave out --checksum and --checksum-mode",
        );
    }
    if arguments.recursive && (arguments.write.if_match.is_some() || arguments.write.asks_for_another()) {
        return usage("an ETag is of one object; leave out --recursive");
    }
    if arguments.version_id.is_some() && !matches!(source, Location::S3(_)) {
        return usage("--version-id names a version of an object, and the source is none");
    }
    match (source, destination, arguments.recursive) {
        (Location::S3(uri), Location::Local(folder), true) => download::many(context, arguments, uri, folder).await,
        (Location::S3(from), Location::S3(to), true) => remote::many(context, arguments, from, to).await,
        (Location::S3(uri), _, false) if uri.is_prefix() => Err(Failure::Usage(format!(
            "`{uri}` names no object; give the whole key, or add --recursive for all under it"
        ))),
        (Location::S3(uri), Location::Local(path), false) => download::one(context, arguments, uri, path).await,
        (Location::S3(from), Location::S3(to), false) => remote::one(context, arguments, from, to).await,
        (Location::S3(uri), Location::Standard, false) => to_stdout(context, arguments, uri).await,
        (Location::Local(folder), Location::S3(uri), true) => upload::many(context, arguments, folder, uri).await,
        (Location::Local(path), Location::S3(uri), false) => upload::one(context, arguments, path, uri).await,
        (Location::Standard, Location::S3(uri), false) => from_stdin(context, arguments, uri).await,
        (_, Location::Standard, true) | (Location::Standard, _, true) => {
            usage("a stream holds one object; leave out --recursive or name a folder")
        }
        (Location::Local(_) | Location::Standard, _, _) => {
            usage("neither end is on S3; write that end as s3://bucket/key")
        }
    }
}

async fn to_stdout(context: &Context<'_>, arguments: &Arguments, uri: &S3Uri) -> Result<Exit, Failure> {
    if arguments.dryrun {
        let item = Item { source: uri.to_string(), destination: Some("-".to_owned()), ..Item::default() };
        return download::would(context, arguments, uri, item).await;
    }
    let version = arguments.version_id.as_deref();
    let key = arguments.write.customer_key.read()?;
    let conditions = cat::Conditions {
        if_match: arguments.write.if_match.clone(),
        if_none_match: arguments.write.if_none_match.clone(),
    };
    let reading =
        cat::Reading { version, access: &arguments.access, customer_key: key, range: None, conditions: &conditions };
    cat::to_stdout(context, uri, &reading).await?;
    Ok(Exit::Done)
}

async fn from_stdin(context: &Context<'_>, arguments: &Arguments, uri: &S3Uri) -> Result<Exit, Failure> {
    let options = arguments.write.options(&arguments.access, Some(&uri.key))?;
    pipe::upload(context, uri, options, arguments.expected_size, arguments.dryrun).await
}

/// The destination on S3 of one object: a bucket, or what ends in `/`, takes the name that it had.
fn under_its_name(destination: &S3Uri, name: &str) -> S3Uri {
    if destination.is_prefix() {
        destination.with_key(&format!("{}{name}", destination.key))
    } else {
        destination.clone()
    }
}

/// The name of a path, as a key could have it.
fn own_name(path: &Path) -> Option<&str> {
    path.file_name().and_then(|name| name.to_str())
}

/// Enters what the engine took and never answered for, once its call has ended.
fn account_for_lost<I: Send + 'static>(under_way: UnderWay<I, Item>, tally: &mut Tally<'_>) -> Result<(), Failure> {
    let lost = under_way.end();
    lost.items.iter().try_for_each(|item| tally.lost(item))?;
    if lost.cut_short {
        return Err(Failure::Lost(
            "the copy ended before everything was found: the tasks that did it ended in a panic, a fault of wirespeed; \
             run it again, and report the fault"
                .to_owned(),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Form, Output};
    use crate::tally::Operation;

    /// The account of a job of three items, of which `done` had outcomes when the engine's call ended.
    async fn account(done: usize, complete: bool) -> Result<Exit, Failure> {
        let output = Output::new(Form { json: false, quiet: true });
        let mut tally = Tally::start(&output, Operation::Upload);
        let (mut under_way, stream) = UnderWay::new();
        for number in 0..3 {
            let item = Item { source: number.to_string(), ..Item::default() };
            under_way.add(number, item);
        }
        under_way.hand_over().await;
        if complete {
            under_way.complete();
        }
        drop(stream);
        (0..done).filter_map(|index| under_way.take(index)).for_each(|item| tally.done(&item));
        let stopped = account_for_lost(under_way, &mut tally).err();
        tally.finish(stopped)
    }

    #[tokio::test]
    async fn what_was_lost_is_never_a_success() {
        assert_eq!(account(3, true).await.unwrap(), Exit::Done);
        assert_eq!(account(2, true).await.unwrap(), Exit::Partial);
        assert_eq!(account(0, true).await.unwrap(), Exit::Failed);
        assert_eq!(account(3, false).await.unwrap_err().exit(), Exit::Failed, "not all was found");
    }
}

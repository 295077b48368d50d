//! `wirespeed sync`: makes one tree like another, by copying what differs and, with `--delete`, deleting what is extra.
//!
//! What differs is decided as `aws s3 sync` decides it; see docs/cli.md. Nothing is deleted before the source was listed to
//! its end without an error.

use clap::Args;
use wirespeed_bulk::Compare;

use crate::access::Access;
use crate::bulk::account::Verb;
use crate::bulk::run_flags::{RunFlags, TreeFlags};
use crate::bulk::{self, Asked};
use crate::checksum_flags::SyncChecksumFlags;
use crate::context::Context;
use crate::copy_flags::CopyFlags;
use crate::cp::location;
use crate::failure::{Exit, Failure};
use crate::filter_flags::FilterFlags;
use crate::uri::Location;
use crate::wildcard::Wildcards;
use crate::write_flags::WriteFlags;

const EXAMPLES: &str = "\
Examples:
  wirespeed sync ./site s3://bucket/site --delete
  wirespeed sync s3://bucket/photos ./photos --exclude '*' --include '*.jpg'
  wirespeed sync s3://bucket/a s3://other/a --dryrun        shows what would be copied
  wirespeed sync ./data s3://bucket/data --checksum         compares contents where times mislead
  wirespeed sync ./data s3://bucket/data --delete --max-delete 100 --lock /run/lock/data
                                                            from cron: prints only what changed

Something is copied if it is missing, if sizes differ, or if the source is newer; down, if the file is newer than the
object, because a download gives a file the time of its object.";

/// Make a tree on one side like that on the other
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// s3://bucket[/prefix], or a folder
    #[arg(value_parser = location(), value_hint = clap::ValueHint::DirPath)]
    source: Location,
    /// s3://bucket[/prefix], or a folder
    #[arg(value_parser = location(), value_hint = clap::ValueHint::DirPath)]
    destination: Location,
    /// Delete what is at the destination and not at the source, unless a filter leaves it out
    #[arg(long, conflicts_with = "from_file")]
    delete: bool,
    /// Delete nothing if it would be more than so many
    #[arg(long, value_name = "NUMBER", requires = "delete")]
    max_delete: Option<u64>,
    /// Compare sizes alone
    #[arg(long, conflicts_with_all = ["exact_timestamps", "checksum"])]
    size_only: bool,
    /// Down: copy also where the file is older than the object, unless times are equal
    #[arg(long, conflicts_with = "checksum")]
    exact_timestamps: bool,
    /// Compare sizes, and contents by their checksums without downloading them
    #[arg(long)]
    checksum: bool,
    #[command(flatten)]
    wildcards: Wildcards,
    #[command(flatten)]
    filter: FilterFlags,
    #[command(flatten)]
    pub(crate) tree: TreeFlags,
    #[command(flatten)]
    pub(crate) run: RunFlags,
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    pub(crate) checksums: SyncChecksumFlags,
    #[command(flatten)]
    write: WriteFlags,
    #[command(flatten)]
    copy: CopyFlags,
}

impl Arguments {
    /// Whether standard input names what is synced.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.source == Location::Standard || self.tree.reads_stdin()
    }

    fn compare(&self) -> Compare {
        match (self.size_only, self.exact_timestamps, self.checksum) {
            (true, _, _) => Compare::SizeOnly,
            (_, true, _) => Compare::ExactTime,
            (_, _, true) => Compare::Checksum,
            _ => Compare::SizeAndTime,
        }
    }
}

/// Runs `sync`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let checksum = arguments.checksums.plain();
    let asked = Asked {
        verb: Verb::Sync,
        source: &arguments.source,
        destination: &arguments.destination,
        recursive: true,
        deletes: arguments.delete,
        version: None,
        wildcards: &arguments.wildcards,
        filter: &arguments.filter,
        access: &arguments.access,
        checksum: &checksum,
        write: &arguments.write,
        copy: &arguments.copy,
        tree: &arguments.tree,
        run: &arguments.run,
    };
    bulk::supervised(&arguments.run, async {
        asked.check()?;
        bulk::transfer(context, &asked, |job| {
            let job = job.compare(arguments.compare()).delete_extra(arguments.delete);
            match arguments.max_delete {
                Some(most) => job.max_delete(most),
                None => job,
            }
        })
        .await
    })
    .await
}

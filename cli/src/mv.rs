//! `wirespeed mv`: copies, and removes each source that was really copied.

use clap::Args;

use crate::bulk::account::Verb;
use crate::bulk::{self};
use crate::context::Context;
use crate::cp::Copying;
use crate::failure::{Exit, Failure};
use crate::uri::Location;

const EXAMPLES: &str = "\
Examples:
  wirespeed mv s3://bucket/a s3://bucket/b
  wirespeed mv report.pdf s3://bucket/reports/            keeps the name
  wirespeed mv --recursive s3://bucket/inbox ./inbox
  wirespeed mv 's3://bucket/logs/2025-*' s3://archive/logs/ --storage-class GLACIER_IR
  wirespeed mv --recursive --dryrun ./outbox s3://bucket/outbox

A source is removed when its copy is proven by the server's checksum or ETag, else by a HEAD: an object in batches with
others, a file only if it is still what was copied. What failed stays where it was. Where the bucket keeps versions, the source is hidden, not gone.";

/// Move objects and files: copy, then remove what was copied
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) copying: Copying,
}

impl Arguments {
    /// Whether standard input names what is moved.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.copying.source == Location::Standard || self.copying.tree.reads_stdin()
    }
}

/// Runs `mv`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let copying = &arguments.copying;
    bulk::supervised(&copying.run, async {
        let asked = copying.asked(Verb::Move, None);
        asked.check()?;
        bulk::transfer(context, &asked, |job| job.no_clobber(copying.no_clobber)).await
    })
    .await
}

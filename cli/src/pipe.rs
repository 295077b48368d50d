//! `wirespeed pipe`: standard input to an object, whose length nobody knows before its end.

use clap::Args;
use wirespeed::{Progress, PutOptions};

use crate::access::Access;
use crate::checksum_flags::ChecksumFlags;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::progress::{Bar, Expected};
use crate::tally::{Item, Operation, Tally};
use crate::units::parse_size;
use crate::uri::S3Uri;
use crate::write_flags::WriteFlags;

const EXAMPLES: &str = "\
Examples:
  pg_dump db | gzip | wirespeed pipe s3://bucket/db.sql.gz
  tar c /data | wirespeed pipe s3://bucket/data.tar --expected-size 2TB
  echo done | wirespeed pipe s3://bucket/flag --content-type text/plain --if-none-match

When the input ends early because its writer failed, a shell does not tell: use `set -o pipefail` to learn of it. What
was uploaded is an object all the same.";

/// Upload standard input
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// s3://bucket/key
    #[arg(value_name = "S3_URI", value_parser = S3Uri::parse)]
    uri: S3Uri,
    /// About how many bytes will come, where they are more than 50 GB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    expected_size: Option<u64>,
    /// Print what would be done, and do nothing
    #[arg(long, visible_alias = "dry-run")]
    dryrun: bool,
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    pub(crate) checksum: ChecksumFlags,
    #[command(flatten)]
    write: WriteFlags,
}

/// Runs `pipe`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let uri = &arguments.uri;
    let options = arguments.write.options(&arguments.access, Some(&uri.key))?;
    if uri.key.is_empty() {
        return Err(Failure::Usage(format!("`{uri}` names no object, and a stream has no name; give the whole key")));
    }
    upload(context, uri, options, arguments.expected_size, arguments.dryrun).await
}

/// Uploads standard input.
pub(crate) async fn upload(
    context: &Context<'_>,
    uri: &S3Uri,
    options: PutOptions,
    expected_size: Option<u64>,
    dryrun: bool,
) -> Result<Exit, Failure> {
    let mut tally = Tally::start(context.output, Operation::Upload);
    let mut item = Item { source: "-".to_owned(), destination: Some(uri.to_string()), ..Item::default() };
    if dryrun {
        tally.would(&item);
        return tally.finish(None);
    }
    let progress = Progress::default();
    let bar = Bar::show(context.output, &progress, &Expected::one_of_unknown_size());
    let mut put = context.client.put(&uri.bucket, &uri.key).options(options).progress(progress.clone());
    if let Some(bytes) = expected_size {
        put = put.expected_size(bytes);
    }
    let result = put.reader(tokio::io::stdin()).await;
    drop(bar);
    match result {
        Ok(outcome) => {
            item.size = Some(progress.bytes());
            item.etag = outcome.etag;
            tally.done(&item);
            tally.finish(None)
        }
        Err(error) => tally.failed_alone(&item, error.into()),
    }
}

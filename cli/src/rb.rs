//! `wirespeed rb`: removes a bucket, with `--force` after all its objects.

use clap::Args;

use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::uri::S3Uri;
use crate::{mb, rm};

const EXAMPLES: &str = "\
Examples:
  wirespeed rb s3://bucket
  wirespeed rb s3://bucket --force     deletes every object first";

/// Remove a bucket
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// s3://bucket
    #[arg(value_name = "S3_URI", value_parser = S3Uri::parse)]
    uri: S3Uri,
    /// Delete every object of the bucket first (old versions are kept, and keep the bucket)
    #[arg(long)]
    force: bool,
}

/// Runs `rb`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let uri = mb::bucket_alone(&arguments.uri)?;
    if arguments.force {
        let exit = rm::empty(context, uri).await?;
        if exit != Exit::Done {
            return Ok(exit);
        }
    }
    context.client.delete_bucket(&uri.bucket).await?;
    mb::report(context, "remove_bucket", &uri.bucket)?;
    Ok(Exit::Done)
}

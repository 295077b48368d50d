//! `wirespeed mb`: makes a bucket.

use clap::Args;
use serde::Serialize;

use crate::context::Context;
use crate::failure::{Exit, Failure, visible};
use crate::uri::S3Uri;

const EXAMPLES: &str = "\
Examples:
  wirespeed mb s3://bucket
  wirespeed mb s3://bucket --region eu-central-1";

/// Make a bucket
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// s3://bucket
    #[arg(value_name = "S3_URI", value_parser = S3Uri::parse)]
    uri: S3Uri,
}

/// Runs `mb`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let uri = bucket_alone(&arguments.uri)?;
    context.client.create_bucket(&uri.bucket).await?;
    report(context, "make_bucket", &uri.bucket)?;
    Ok(Exit::Done)
}

/// Refuses an address with a key where only a bucket can be meant.
pub(crate) fn bucket_alone(uri: &S3Uri) -> Result<&S3Uri, Failure> {
    if uri.key.is_empty() {
        return Ok(uri);
    }
    Err(Failure::Usage(format!("`{uri}` has a key; give the bucket alone, s3://{}", uri.bucket)))
}

/// The line for a bucket that was made or removed.
pub(crate) fn report(context: &Context<'_>, operation: &str, bucket: &str) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Record<'a> {
        #[serde(rename = "type")]
        kind: &'static str,
        operation: &'a str,
        name: &'a str,
    }
    if context.output.json() {
        context.output.record(&Record { kind: "bucket", operation, name: bucket })
    } else if context.output.quiet() {
        Ok(())
    } else {
        context.output.line(&format!("{operation}: {}", visible(bucket)))
    }
}

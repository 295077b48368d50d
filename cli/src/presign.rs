//! `wirespeed presign`: a URL that lets whoever has it read or write one object for a while.
//!
//! Nothing is sent, and nothing checks that the object is there.

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::uri::S3Uri;

const EXAMPLES: &str = "\
Examples:
  wirespeed presign s3://bucket/report.pdf                      to read it, for an hour
  wirespeed presign s3://bucket/report.pdf --expires-in 604800  for a week, the longest there is
  wirespeed presign s3://bucket/inbox/a.csv --method PUT --content-type text/csv
  curl --upload-file a.csv \"$(wirespeed presign s3://bucket/a.csv --method PUT)\"

The URL is as good as a password until it expires, and with temporary credentials no longer than they are.";

/// Print a URL that reads or writes one object without credentials
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// s3://bucket/key
    #[arg(value_name = "S3_URI", value_parser = S3Uri::parse)]
    uri: S3Uri,
    /// Seconds that the URL is good for, up to 604800
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(u64).range(1..=604_800))]
    expires_in: u64,
    /// What the URL is for
    #[arg(long, default_value = "GET", ignore_case = true)]
    method: Method,
    /// This version of the object
    #[arg(long, value_name = "ID")]
    version_id: Option<String>,
    /// PUT: the media type that must be sent with it; GET: the one that the server is to say
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[value(rename_all = "UPPER")]
#[serde(rename_all = "UPPERCASE")]
enum Method {
    Get,
    Put,
    Head,
    Delete,
}

#[derive(Serialize)]
struct Record<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    method: Method,
    url: &'a str,
    expires_in: u64,
}

/// Runs `presign`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { uri, expires_in, method, version_id, content_type } = arguments;
    if uri.key.is_empty() {
        return Err(Failure::Usage(format!("`{uri}` names no object; give the whole key")));
    }
    let mut presign = context.client.presign(&uri.bucket, &uri.key).expires_in(Duration::from_secs(*expires_in));
    if let Some(version) = version_id {
        presign = presign.version(version);
    }
    presign = match (method, content_type) {
        (_, None) => presign,
        (Method::Put, Some(media_type)) => presign.content_type(media_type),
        (Method::Get | Method::Head, Some(media_type)) => presign.response_content_type(media_type),
        (Method::Delete, Some(_)) => {
            return Err(Failure::Usage("a deletion has no --content-type; leave it out".to_owned()));
        }
    };
    let url = match method {
        Method::Get => presign.get().await?,
        Method::Put => presign.put().await?,
        Method::Head => presign.head().await?,
        Method::Delete => presign.delete().await?,
    };
    if context.output.json() {
        let record = Record { kind: "url", method: *method, url: &url, expires_in: *expires_in };
        context.output.record(&record)?;
    } else {
        context.output.line(&url)?;
    }
    Ok(Exit::Done)
}

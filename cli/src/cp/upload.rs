//! This machine to S3: one file to an object. The engine reads it; here it is never opened.

use std::fs;
use std::io;
use std::path::Path;

use wirespeed::Progress;

use super::Arguments;
use crate::bulk::ends::{own_name, under_its_name};
use crate::context::Context;
use crate::failure::{Exit, Failure, visible};
use crate::progress::{Bar, Expected};
use crate::tally::{Item, Operation, Tally, shown};
use crate::uri::S3Uri;

/// Uploads one file to `uri`, under its own name when that is a bucket or ends in `/`.
pub(super) async fn one(
    context: &Context<'_>,
    arguments: &Arguments,
    path: &Path,
    uri: &S3Uri,
) -> Result<Exit, Failure> {
    let found = fs::metadata(path).map_err(|source| Failure::local("read", path, source))?;
    if found.is_dir() {
        let name = visible(&path.to_string_lossy()).into_owned();
        return Err(Failure::Usage(format!("`{name}` is a folder; add --recursive to upload all of it")));
    }
    if !found.is_file() {
        let kind = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
        return Err(Failure::local("upload", path, kind));
    }
    let uri = if uri.is_prefix() { under_its_name(uri, name_of(path)?) } else { uri.clone() };
    let options = arguments.copying.write.options(&arguments.copying.access, own_name(path))?;
    let mut tally = Tally::start(context.output, Operation::Upload);
    let mut item =
        Item { source: shown(path), destination: Some(uri.to_string()), size: Some(found.len()), ..Item::default() };
    if arguments.copying.run.dryrun {
        tally.would(&item);
        return tally.finish(None);
    }
    let (progress, expected) = (Progress::default(), Expected::default());
    expected.add(found.len());
    expected.complete();
    let bar = Bar::show(context.output, &progress, &expected);
    let result = context.client.put(&uri.bucket, &uri.key).options(options).progress(progress).file(path).await;
    drop(bar);
    match result {
        Ok(outcome) => {
            item.etag = outcome.etag;
            tally.done(&item);
            tally.finish(None)
        }
        Err(error) => tally.failed_alone(&item, error.into()),
    }
}

fn name_of(path: &Path) -> Result<&str, Failure> {
    own_name(path).ok_or_else(|| {
        Failure::Usage(format!(
            "`{}` has no name that a key could keep; give the whole key, as in s3://bucket/key",
            visible(&path.to_string_lossy())
        ))
    })
}

//! This machine to S3: one file to an object, or all files of a folder under a prefix.
//!
//! The folder is walked on a thread of its own, and files go to one call of the engine as they are found. The engine
//! reads them; here they are never opened.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wirespeed::Progress;

use super::account_for_lost;
use super::under_way::UnderWay;
use super::walk::{Found, Walk};
use crate::context::Context;
use crate::failure::{Exit, Failure, visible};
use crate::progress::{Bar, Expected};
use crate::tally::{Item, Operation, Tally, shown};
use crate::uri::S3Uri;

/// Most files that are taken from the walk at once.
const AT_ONCE: usize = 1_000;

/// Uploads one file to `uri`, under its own name when that is a bucket or ends in `/`.
pub(super) async fn one(context: &Context<'_>, path: &Path, uri: &S3Uri) -> Result<Exit, Failure> {
    let found = fs::metadata(path).map_err(|source| Failure::local("read", path, source))?;
    if found.is_dir() {
        let name = visible(&path.to_string_lossy()).into_owned();
        return Err(Failure::Usage(format!("`{name}` is a folder; add --recursive to upload all of it")));
    }
    if !found.is_file() {
        let kind = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
        return Err(Failure::local("upload", path, kind));
    }
    let uri = if uri.is_prefix() { uri.with_key(&format!("{}{}", uri.key, own_name(path)?)) } else { uri.clone() };
    let mut tally = Tally::start(context.output, Operation::Upload);
    let mut item =
        Item { source: shown(path), destination: Some(uri.to_string()), size: Some(found.len()), etag: None };
    let (progress, expected) = (Progress::default(), Expected::default());
    expected.add(found.len());
    expected.complete();
    let bar = Bar::show(context.output, &progress, &expected);
    let result = context.client.put(&uri.bucket, &uri.key).progress(progress).file(path).await;
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

fn own_name(path: &Path) -> Result<&str, Failure> {
    path.file_name().and_then(|name| name.to_str()).ok_or_else(|| {
        Failure::Usage(format!(
            "`{}` has no name that a key could keep; give the whole key, as in s3://bucket/key",
            visible(&path.to_string_lossy())
        ))
    })
}

/// Uploads every file below `folder` under the prefix.
pub(super) async fn many(context: &Context<'_>, folder: &Path, uri: &S3Uri) -> Result<Exit, Failure> {
    let found = fs::metadata(folder).map_err(|source| Failure::local("read the folder", folder, source))?;
    if !found.is_dir() {
        let name = visible(&folder.to_string_lossy()).into_owned();
        return Err(Failure::Usage(format!("`{name}` is not a folder; leave out --recursive to upload one file")));
    }
    let mut tally = Tally::start(context.output, Operation::Upload);
    let stopped = transfer(context, folder, uri, &mut tally).await.err();
    tally.finish(stopped)
}

async fn transfer(context: &Context<'_>, folder: &Path, uri: &S3Uri, tally: &mut Tally<'_>) -> Result<(), Failure> {
    let prefix = uri.with_key(&uri.folder());
    let (progress, expected) = (Progress::default(), Expected::default());
    let _bar = Bar::show(context.output, &progress, &expected);
    let mut walk = Walk::start(folder);
    let (mut under_way, files) = UnderWay::new();
    let mut outcomes = context.client.put_many(&uri.bucket).progress(progress).files_from(files)?;
    loop {
        tokio::select! {
            found = walk.next(AT_ONCE), if under_way.wants_more() => {
                if found.is_empty() {
                    under_way.complete();
                    expected.complete();
                }
                found.into_iter().try_for_each(|found| add(found, &prefix, &mut under_way, &expected, tally))?;
            }
            () = under_way.hand_over(), if under_way.has_found() => {}
            outcome = outcomes.next() => {
                let Some((index, result)) = outcome else { return account_for_lost(under_way, tally) };
                let Some(mut item) = under_way.take(index) else { continue };
                match result {
                    Ok(outcome) => {
                        item.etag = outcome.etag;
                        tally.done(&item);
                    }
                    Err(error) => tally.failed(&item, error.into())?,
                }
            }
        }
    }
}

fn add(
    found: Found,
    prefix: &S3Uri,
    under_way: &mut UnderWay<(PathBuf, String), Item>,
    expected: &Expected,
    tally: &mut Tally<'_>,
) -> Result<(), Failure> {
    match found {
        Found::File { path, relative, size } => {
            let uri = prefix.with_key(&format!("{}{relative}", prefix.key));
            let item = Item { source: shown(&path), destination: Some(uri.to_string()), size: Some(size), etag: None };
            expected.add(size);
            under_way.add((path, uri.key), item);
        }
        Found::Skipped { path, why } => tally.skipped(&shown(&path), why),
        Found::Failed { path, failure } => {
            let item = Item { source: shown(&path), destination: None, size: None, etag: None };
            tally.failed(&item, failure)?;
        }
    }
    Ok(())
}

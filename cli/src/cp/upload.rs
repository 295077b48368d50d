//! This machine to S3: one file to an object, or all files of a folder under a prefix.
//!
//! The folder is walked on a thread of its own, and files are handed to the engine in batches as they are found. The
//! engine reads them; here they are never opened.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use futures_util::StreamExt as _;
use futures_util::stream::SelectAll;
use wirespeed::Progress;

use super::UNDER_WAY;
use super::walk::{Found, Walk};
use crate::context::Context;
use crate::failure::{Exit, Failure, visible};
use crate::progress::{Bar, Expected};
use crate::tally::{Item, Operation, Tally, shown};
use crate::uri::S3Uri;

/// Most files that are handed to the engine in one call.
const BATCH: usize = 1_000;

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
    let prefix = uri.folder();
    let (progress, expected) = (Progress::default(), Expected::default());
    let _bar = Bar::show(context.output, &progress, &expected);
    let mut walk = Walk::start(folder);
    let mut running = SelectAll::new();
    let (mut walked, mut under_way) = (false, 0);
    loop {
        tokio::select! {
            found = walk.next(BATCH), if !walked && under_way < UNDER_WAY => {
                if found.is_empty() {
                    walked = true;
                    expected.complete();
                    continue;
                }
                let batch = batch(found, &prefix, &expected, tally)?;
                if batch.is_empty() {
                    continue;
                }
                under_way += batch.len();
                let files: Vec<(PathBuf, String)> =
                    batch.iter().map(|planned| (planned.path.clone(), planned.key.clone())).collect();
                let results = context.client.put_many(&uri.bucket).progress(progress.clone()).files(files);
                running.push(results.map(move |(index, result)| (batch.get(index).cloned(), result)).boxed());
            }
            Some((planned, result)) = running.next(), if !running.is_empty() => {
                under_way -= 1;
                let Some(planned) = planned else { continue };
                let mut item = planned.item(uri);
                match result {
                    Ok(outcome) => {
                        item.etag = outcome.etag;
                        tally.done(&item);
                    }
                    Err(error) => tally.failed(&item, error.into())?,
                }
            }
            else => return Ok(()),
        }
    }
}

/// One file with the key it goes to.
#[derive(Clone)]
struct Planned {
    path: PathBuf,
    key: String,
    size: u64,
}

impl Planned {
    fn item(&self, uri: &S3Uri) -> Item {
        Item {
            source: shown(&self.path),
            destination: Some(uri.with_key(&self.key).to_string()),
            size: Some(self.size),
            etag: None,
        }
    }
}

fn batch(found: Vec<Found>, prefix: &str, expected: &Expected, tally: &mut Tally<'_>) -> Result<Vec<Planned>, Failure> {
    let mut batch = Vec::with_capacity(found.len());
    for found in found {
        match found {
            Found::File { path, relative, size } => {
                expected.add(size);
                batch.push(Planned { path, key: format!("{prefix}{relative}"), size });
            }
            Found::Skipped { path, why } => tally.skipped(&shown(&path), why),
            Found::Failed { path, failure } => {
                let item = Item { source: shown(&path), destination: None, size: None, etag: None };
                tally.failed(&item, failure)?;
            }
        }
    }
    Ok(batch)
}

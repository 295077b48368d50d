//! This machine to S3: one file to an object, or all files of a folder under a prefix.
//!
//! The folder is walked on a thread of its own, and files go to one call of the engine as they are found. The engine
//! reads them; here they are never opened.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wirespeed::Progress;

use super::under_way::UnderWay;
use super::walk::{Found, Walk, failure};
use super::{Arguments, account_for_lost, own_name, under_its_name};
use crate::context::Context;
use crate::failure::{Exit, Failure, visible};
use crate::progress::{Bar, Expected};
use crate::tally::{Item, Operation, Tally, shown};
use crate::uri::S3Uri;

/// Most files that are taken from the walk at once.
const AT_ONCE: usize = 1_000;

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
    let options = arguments.write.options(&arguments.access, own_name(path))?;
    let mut tally = Tally::start(context.output, Operation::Upload);
    let mut item =
        Item { source: shown(path), destination: Some(uri.to_string()), size: Some(found.len()), ..Item::default() };
    if arguments.dryrun {
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

/// Uploads every file below `folder` under the prefix.
pub(super) async fn many(
    context: &Context<'_>,
    arguments: &Arguments,
    folder: &Path,
    uri: &S3Uri,
) -> Result<Exit, Failure> {
    let found = fs::metadata(folder).map_err(|source| Failure::local("read the folder", folder, source))?;
    if !found.is_dir() {
        let name = visible(&folder.to_string_lossy()).into_owned();
        return Err(Failure::Usage(format!("`{name}` is not a folder; leave out --recursive to upload one file")));
    }
    let mut tally = Tally::start(context.output, Operation::Upload);
    let stopped = transfer(context, arguments, folder, uri, &mut tally).await.err();
    tally.finish(stopped)
}

async fn transfer(
    context: &Context<'_>,
    arguments: &Arguments,
    folder: &Path,
    uri: &S3Uri,
    tally: &mut Tally<'_>,
) -> Result<(), Failure> {
    let prefix = uri.with_key(&uri.folder());
    let options = arguments.write.given(&arguments.access)?;
    let mut walk = Walk::start(folder);
    if arguments.dryrun {
        loop {
            let found = walk.next(AT_ONCE).await;
            if found.is_empty() {
                return Ok(());
            }
            for found in found {
                if let Some((_, item)) = judge(found, &prefix, tally)? {
                    tally.would(&item);
                }
            }
        }
    }
    let (progress, expected) = (Progress::default(), Expected::default());
    let _bar = Bar::show(context.output, &progress, &expected);
    let (mut under_way, files) = UnderWay::new();
    let write = arguments.write.clone();
    let media_type = move |key: &str| write.guess(Some(key)).map(str::to_owned);
    let put = context.client.put_many(&uri.bucket).options(options).content_type_by_key(media_type);
    let mut outcomes = put.progress(progress).files_from(files)?;
    loop {
        tokio::select! {
            found = walk.next(AT_ONCE), if under_way.wants_more() => {
                if found.is_empty() {
                    under_way.complete();
                    expected.complete();
                }
                for found in found {
                    if let Some((file, item)) = judge(found, &prefix, tally)? {
                        expected.add(item.size.unwrap_or(0));
                        under_way.add(file, item);
                    }
                }
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

/// A file with the key that it becomes, and what is told of it.
type Planned = ((PathBuf, String), Item);

/// The file and the key that it goes to. What is no file is entered at once.
fn judge(found: Found, prefix: &S3Uri, tally: &mut Tally<'_>) -> Result<Option<Planned>, Failure> {
    match found {
        Found::File { path, relative, size } => {
            let uri = prefix.with_key(&format!("{}{relative}", prefix.key));
            let item =
                Item { source: shown(&path), destination: Some(uri.to_string()), size: Some(size), ..Item::default() };
            return Ok(Some(((path, uri.key), item)));
        }
        Found::Skipped { path, why } => tally.skipped(&shown(&path), why),
        Found::Failed { path, why } => {
            let item = Item { source: shown(&path), ..Item::default() };
            tally.failed(&item, failure(&path, why))?;
        }
    }
    Ok(None)
}

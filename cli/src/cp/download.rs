//! S3 to this machine: one object to a file, or all under a prefix into a folder.
//!
//! Pages of the listing become batches for the engine while later pages are still fetched; results come back as they
//! finish. Every key goes through `local_path` first. The bytes themselves are the engine's: into a temporary file beside
//! the target, renamed when whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use futures_util::StreamExt as _;
use futures_util::stream::SelectAll;
use wirespeed::{Page, Progress};

use super::UNDER_WAY;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::listing::Listing;
use crate::local_path::{self, Target};
use crate::progress::{Bar, Expected};
use crate::tally::{Item, Operation, Tally, shown};
use crate::uri::S3Uri;

/// Downloads one object to `destination`, or into it when it is a folder.
pub(super) async fn one(context: &Context<'_>, uri: &S3Uri, destination: &Path) -> Result<Exit, Failure> {
    let path = destination_file(uri, destination)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|source| Failure::local("make the folder", folder, source))?;
    }
    let mut tally = Tally::start(context.output, Operation::Download);
    let mut item = Item { source: uri.to_string(), destination: Some(shown(&path)), size: None, etag: None };
    let (progress, expected) = (Progress::default(), Expected::default());
    let bar = Bar::show(context.output, &progress, &expected);
    let transfer = context.client.get(&uri.bucket, &uri.key).progress(progress).file(&path);
    // Only a bar has to know the size before the first answer; the transfer does not wait for it.
    let size = async {
        if context.output.wants_bar()
            && let Ok(info) = context.client.head(&uri.bucket, &uri.key).await
        {
            expected.add(info.size);
            expected.complete();
        }
        std::future::pending().await
    };
    let result = tokio::select! {
        result = transfer => result,
        () = size => return Ok(Exit::Done),
    };
    drop(bar);
    match result {
        Ok(info) => {
            item.size = Some(info.size);
            item.etag = info.etag;
            tally.done(&item);
            tally.finish(None)
        }
        Err(error) => tally.failed_alone(&item, error.into()),
    }
}

fn destination_file(uri: &S3Uri, destination: &Path) -> Result<PathBuf, Failure> {
    let wants_folder = destination.as_os_str().as_encoded_bytes().ends_with(b"/");
    if !wants_folder && !destination.is_dir() {
        return Ok(destination.to_owned());
    }
    let name = local_path::file_name(uri.file_name())
        .map_err(|why| Failure::Refused(format!("refused {uri}: {why}; name the file to write")))?;
    let path = destination.join(name);
    if path.is_dir() {
        return Err(Failure::local("write", &path, io::ErrorKind::IsADirectory.into()));
    }
    Ok(path)
}

/// Downloads everything under the prefix into `root`.
pub(super) async fn many(context: &Context<'_>, uri: &S3Uri, root: &Path) -> Result<Exit, Failure> {
    if root.exists() && !root.is_dir() {
        return Err(Failure::local("download into", root, io::ErrorKind::NotADirectory.into()));
    }
    let mut tally = Tally::start(context.output, Operation::Download);
    let stopped = transfer(context, uri, root, &mut tally).await.err();
    tally.finish(stopped)
}

async fn transfer(context: &Context<'_>, uri: &S3Uri, root: &Path, tally: &mut Tally<'_>) -> Result<(), Failure> {
    let prefix = uri.folder();
    let mut plan = Plan { uri, prefix: &prefix, target: Target::new(root) };
    let (progress, expected) = (Progress::default(), Expected::default());
    let _bar = Bar::show(context.output, &progress, &expected);
    let mut listing = Listing::start(&context.client, &uri.bucket, &prefix);
    let mut running = SelectAll::new();
    let (mut listed, mut under_way, mut found) = (false, 0, false);
    loop {
        tokio::select! {
            page = listing.next(), if !listed && under_way < UNDER_WAY => {
                let Some(page) = page else {
                    listed = true;
                    expected.complete();
                    continue;
                };
                let page = page?;
                if !found && !page.objects.is_empty() {
                    found = true;
                    fs::create_dir_all(root).map_err(|source| Failure::local("make the folder", root, source))?;
                }
                let batch = plan.batch(page, &expected, tally)?;
                if batch.is_empty() {
                    continue;
                }
                under_way += batch.len();
                let files: Vec<(String, PathBuf)> =
                    batch.iter().map(|planned| (planned.key.clone(), planned.path.clone())).collect();
                let results = context.client.get_many(&uri.bucket).progress(progress.clone()).files(files);
                running.push(results.map(move |(index, result)| (batch.get(index).map(Planned::item), result)).boxed());
            }
            Some((item, result)) = running.next(), if !running.is_empty() => {
                under_way -= 1;
                let Some(item) = item else { continue };
                let mut item = uri_item(uri, item);
                match result {
                    Ok(info) => {
                        item.size = Some(info.size);
                        item.etag = info.etag;
                        tally.done(&item);
                    }
                    Err(error) => tally.failed(&item, error.into())?,
                }
            }
            else => break,
        }
    }
    if !found {
        context.output.note(&format!("nothing found under s3://{}/{prefix}", uri.bucket));
    }
    Ok(())
}

/// One key with the file it goes to.
struct Planned {
    key: String,
    path: PathBuf,
}

impl Planned {
    fn item(&self) -> (String, PathBuf) {
        (self.key.clone(), self.path.clone())
    }
}

fn uri_item(uri: &S3Uri, (key, path): (String, PathBuf)) -> Item {
    Item { source: uri.with_key(&key).to_string(), destination: Some(shown(&path)), size: None, etag: None }
}

/// Turns pages of keys into batches of files.
struct Plan<'a> {
    uri: &'a S3Uri,
    prefix: &'a str,
    target: Target,
}

impl Plan<'_> {
    fn batch(&mut self, page: Page, expected: &Expected, tally: &mut Tally<'_>) -> Result<Vec<Planned>, Failure> {
        let mut batch = Vec::with_capacity(page.objects.len());
        for object in page.objects {
            let relative = object.key.strip_prefix(self.prefix).unwrap_or(&object.key);
            let source = || self.uri.with_key(&object.key).to_string();
            if object.size == 0 && (relative.is_empty() || relative.ends_with('/')) {
                tally.skipped(&source(), "an empty object that stands for a folder");
                continue;
            }
            match self.target.map(relative) {
                Ok(path) => {
                    expected.add(object.size);
                    batch.push(Planned { key: object.key, path });
                }
                Err(why) => {
                    let item = Item { source: source(), destination: None, size: Some(object.size), etag: None };
                    let refusal = format!("refused {}: {why}; copy it alone, under a name of your choice", item.source);
                    tally.failed(&item, Failure::Refused(refusal))?;
                }
            }
        }
        Ok(batch)
    }
}

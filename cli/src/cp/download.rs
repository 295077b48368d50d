//! S3 to this machine: one object to a file, or all under a prefix into a folder.
//!
//! Keys go to one call of the engine page by page, while later pages are still fetched; results come back as they
//! finish. Every key goes through `local_path` first. The bytes themselves are the engine's: into a temporary file beside
//! the target, renamed when whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wirespeed::{Page, Progress};

use super::account_for_lost;
use super::under_way::UnderWay;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::local_path::{self, Target};
use crate::progress::{Bar, Expected};
use crate::tally::{Item, Operation, Tally, shown};
use crate::uri::S3Uri;

/// Downloads one object to `destination`, or into it when it is a folder.
pub(super) async fn one(context: &Context<'_>, uri: &S3Uri, destination: &Path) -> Result<Exit, Failure> {
    let path = destination_file(uri, destination)?;
    let mut tally = Tally::start(context.output, Operation::Download);
    let mut item = Item { source: uri.to_string(), destination: Some(shown(&path)), size: None, etag: None };
    let progress = Progress::default();
    // The size comes with the first bytes: to ask for it before would be a request for the bar alone.
    let bar = Bar::show(context.output, &progress, &Expected::one_of_unknown_size());
    // The call for many makes missing folders, and only once there is something to put into them.
    let files = [(uri.key.clone(), path)];
    let mut transfer = context.client.get_many(&uri.bucket).progress(progress).files(files)?;
    let outcome = transfer.next().await;
    drop(bar);
    match outcome.map(|(_, result)| result) {
        Some(Ok(info)) => {
            item.size = Some(info.size);
            item.etag = info.etag;
            tally.done(&item);
            tally.finish(None)
        }
        Some(Err(error)) => tally.failed_alone(&item, error.into()),
        None => {
            let failure = tally.loss_of(&item);
            tally.failed_alone(&item, failure)
        }
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
    let mut plan = Plan { uri, prefix: &prefix, target: Target::new(root), found: false };
    let (progress, expected) = (Progress::default(), Expected::default());
    let _bar = Bar::show(context.output, &progress, &expected);
    let mut pages = context.client.list(&uri.bucket).prefix(&prefix).pages();
    let (mut under_way, files) = UnderWay::new();
    let mut outcomes = context.client.get_many(&uri.bucket).progress(progress).files_from(files)?;
    loop {
        tokio::select! {
            page = pages.next(), if under_way.wants_more() => match page {
                Some(page) => plan.add(page?, &mut under_way, &expected, tally)?,
                None => {
                    under_way.complete();
                    expected.complete();
                }
            },
            () = under_way.hand_over(), if under_way.has_found() => {}
            outcome = outcomes.next() => {
                let Some((index, result)) = outcome else { break };
                let Some(mut item) = under_way.take(index) else { continue };
                match result {
                    Ok(info) => {
                        item.size = Some(info.size);
                        item.etag = info.etag;
                        tally.done(&item);
                    }
                    Err(error) => tally.failed(&item, error.into())?,
                }
            }
        }
    }
    account_for_lost(under_way, tally)?;
    if !plan.found {
        context.output.note(&format!("nothing found under s3://{}/{prefix}", uri.bucket));
    }
    Ok(())
}

/// Turns pages of keys into files.
struct Plan<'a> {
    uri: &'a S3Uri,
    prefix: &'a str,
    target: Target,
    /// Whether there was any object at all.
    found: bool,
}

impl Plan<'_> {
    fn add(
        &mut self,
        page: Page,
        under_way: &mut UnderWay<(String, PathBuf), Item>,
        expected: &Expected,
        tally: &mut Tally<'_>,
    ) -> Result<(), Failure> {
        if !self.found && !page.objects.is_empty() {
            self.found = true;
            let root = self.target.root();
            fs::create_dir_all(root).map_err(|source| Failure::local("make the folder", root, source))?;
        }
        for object in page.objects {
            let source = self.uri.with_key(&object.key).to_string();
            let relative = object.key.strip_prefix(self.prefix).unwrap_or(&object.key);
            if object.size == 0 && (relative.is_empty() || relative.ends_with('/')) {
                tally.skipped(&source, "an empty object that stands for a folder");
                continue;
            }
            match self.target.map(relative) {
                Ok(path) => {
                    expected.add(object.size);
                    let item = Item { source, destination: Some(shown(&path)), size: Some(object.size), etag: None };
                    under_way.add((object.key, path), item);
                }
                Err(why) => {
                    let refusal = format!("refused {source}: {why}; copy it alone, under a name of your choice");
                    let item = Item { source, destination: None, size: Some(object.size), etag: None };
                    tally.failed(&item, Failure::Refused(refusal))?;
                }
            }
        }
        Ok(())
    }
}

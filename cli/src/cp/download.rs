//! S3 to this machine: one object to a file, or all under a prefix into a folder.
//!
//! Keys go to one call of the engine page by page, while later pages are still fetched; results come back as they
//! finish. Every key goes through a `Target` first. The bytes themselves are the engine's: into a temporary file beside
//! the target, renamed when whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wirespeed::{GetMany, ObjectInfo, Page, Progress, SseCustomerKey};
use wirespeed_local::{Target, file_name};

use super::under_way::UnderWay;
use super::{Arguments, account_for_lost};
use crate::access::Access;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::progress::{Bar, Expected};
use crate::tally::{Item, Operation, Tally, shown};
use crate::uri::S3Uri;

/// Downloads one object to `destination`, or into it when it is a folder.
pub(super) async fn one(
    context: &Context<'_>,
    arguments: &Arguments,
    uri: &S3Uri,
    destination: &Path,
) -> Result<Exit, Failure> {
    let path = destination_file(uri, destination)?;
    let mut item = Item { source: uri.to_string(), destination: Some(shown(&path)), ..Item::default() };
    if arguments.dryrun {
        return would(context, arguments, uri, item).await;
    }
    let mut tally = Tally::start(context.output, Operation::Download);
    let progress = Progress::default();
    // The size comes with the first bytes: to ask for it before would be a request for the bar alone.
    let bar = Bar::show(context.output, &progress, &Expected::one_of_unknown_size());
    let outcome = match &arguments.version_id {
        Some(version) => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.exists());
            if let Some(folder) = parent {
                // No folder is made for what is not there.
                let key = arguments.write.customer_key.read()?;
                if let Err(error) = head(context, &arguments.access, uri, Some(version), key).await {
                    drop(bar);
                    return tally.failed_alone(&item, error.into());
                }
                fs::create_dir_all(folder).map_err(|source| Failure::local("make the folder", folder, source))?;
            }
            let mut get = arguments.access.on(context.client.get(&uri.bucket, &uri.key)).version(version);
            if let Some(key) = arguments.write.customer_key.read()? {
                get = get.sse_customer_key(key);
            }
            if let Some(etag) = &arguments.write.if_match {
                get = get.if_match(etag);
            }
            if let Some(etag) = &arguments.write.if_none_match {
                get = get.if_none_match(etag);
            }
            Some(get.progress(progress).file(path).await)
        }
        None => {
            // The call for many makes missing folders, and only once there is something to put into them.
            let files = [(uri.key.clone(), path)];
            let mut transfer = getter(context, arguments, uri)?.progress(progress).files(files)?;
            transfer.next().await.map(|(_, result)| result)
        }
    };
    drop(bar);
    match outcome {
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

/// Tells of a download that is not done, once it is known that the object is there.
pub(super) async fn would(
    context: &Context<'_>,
    arguments: &Arguments,
    uri: &S3Uri,
    mut item: Item,
) -> Result<Exit, Failure> {
    let mut tally = Tally::start(context.output, Operation::Download);
    let key = arguments.write.customer_key.read()?;
    match head(context, &arguments.access, uri, arguments.version_id.as_deref(), key).await {
        Ok(info) => {
            item.size = Some(info.size);
            item.etag = info.etag;
            tally.would(&item);
            tally.finish(None)
        }
        Err(error) => tally.failed_alone(&item, error.into()),
    }
}

/// What the server says of the object that a copy begins with.
pub(super) async fn head(
    context: &Context<'_>,
    access: &Access,
    uri: &S3Uri,
    version: Option<&str>,
    key: Option<SseCustomerKey>,
) -> wirespeed::Result<ObjectInfo> {
    let mut head = access.on(context.client.head(&uri.bucket, &uri.key));
    if let Some(version) = version {
        head = head.version(version);
    }
    if let Some(key) = key {
        head = head.sse_customer_key(key);
    }
    head.await
}

fn getter(context: &Context<'_>, arguments: &Arguments, uri: &S3Uri) -> Result<GetMany, Failure> {
    let mut get = arguments.access.on(context.client.get_many(&uri.bucket));
    if let Some(etag) = &arguments.write.if_match {
        get = get.if_match(etag);
    }
    if let Some(etag) = &arguments.write.if_none_match {
        get = get.if_none_match(etag);
    }
    Ok(match arguments.write.customer_key.read()? {
        Some(key) => get.sse_customer_key(key),
        None => get,
    })
}

fn destination_file(uri: &S3Uri, destination: &Path) -> Result<PathBuf, Failure> {
    let wants_folder = destination.as_os_str().as_encoded_bytes().ends_with(b"/");
    if !wants_folder && !destination.is_dir() {
        return Ok(destination.to_owned());
    }
    let name = file_name(uri.file_name())
        .map_err(|why| Failure::Refused(format!("refused {uri}: {why}; name the file to write")))?;
    let path = destination.join(name);
    if path.is_dir() {
        return Err(Failure::local("write", &path, io::ErrorKind::IsADirectory.into()));
    }
    Ok(path)
}

/// Downloads everything under the prefix into `root`.
pub(super) async fn many(
    context: &Context<'_>,
    arguments: &Arguments,
    uri: &S3Uri,
    root: &Path,
) -> Result<Exit, Failure> {
    if root.exists() && !root.is_dir() {
        return Err(Failure::local("download into", root, io::ErrorKind::NotADirectory.into()));
    }
    let mut tally = Tally::start(context.output, Operation::Download);
    let stopped = transfer(context, arguments, uri, root, &mut tally).await.err();
    tally.finish(stopped)
}

async fn transfer(
    context: &Context<'_>,
    arguments: &Arguments,
    uri: &S3Uri,
    root: &Path,
    tally: &mut Tally<'_>,
) -> Result<(), Failure> {
    let prefix = uri.folder();
    let mut plan = Plan { uri, prefix: &prefix, target: Target::new(root), found: false };
    let mut pages = arguments.access.on(context.client.list(&uri.bucket)).prefix(&prefix).pages();
    if arguments.dryrun {
        while let Some(page) = pages.next().await {
            plan.of(page?, tally)?.iter().for_each(|(_, item)| tally.would(item));
        }
        plan.tell_if_empty(context);
        return Ok(());
    }
    let (progress, expected) = (Progress::default(), Expected::default());
    let _bar = Bar::show(context.output, &progress, &expected);
    let (mut under_way, files) = UnderWay::new();
    let mut outcomes = getter(context, arguments, uri)?.progress(progress).files_from(files)?;
    loop {
        tokio::select! {
            page = pages.next(), if under_way.wants_more() => match page {
                Some(page) => {
                    plan.make_root(page.as_ref())?;
                    for (file, item) in plan.of(page?, tally)? {
                        expected.add(item.size.unwrap_or(0));
                        under_way.add(file, item);
                    }
                }
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
    plan.tell_if_empty(context);
    Ok(())
}

/// A key with the file that it becomes, and what is told of it.
type Planned = ((String, PathBuf), Item);

/// Turns pages of keys into files.
struct Plan<'a> {
    uri: &'a S3Uri,
    prefix: &'a str,
    target: Target,
    /// Whether there was any object at all.
    found: bool,
}

impl Plan<'_> {
    /// Makes the target folder, once there is an object to put into it.
    fn make_root(&self, page: Result<&Page, &wirespeed::Error>) -> Result<(), Failure> {
        if self.found || page.map_or(true, |page| page.objects.is_empty()) {
            return Ok(());
        }
        let root = self.target.root();
        fs::create_dir_all(root).map_err(|source| Failure::local("make the folder", root, source))
    }

    /// The files of a page. What is refused or skipped is entered at once.
    fn of(&mut self, page: Page, tally: &mut Tally<'_>) -> Result<Vec<Planned>, Failure> {
        let mut files = Vec::with_capacity(page.objects.len());
        self.found |= !page.objects.is_empty();
        for object in page.objects {
            let source = self.uri.with_key(&object.key).to_string();
            let relative = object.key.strip_prefix(self.prefix).unwrap_or(&object.key);
            if object.size == 0 && (relative.is_empty() || relative.ends_with('/')) {
                tally.skipped(&source, "an empty object that stands for a folder");
                continue;
            }
            match self.target.map(relative) {
                Ok(path) => {
                    let item =
                        Item { source, destination: Some(shown(&path)), size: Some(object.size), ..Item::default() };
                    files.push(((object.key, path), item));
                }
                Err(why) => {
                    let refusal = format!("refused {source}: {why}; copy it alone, under a name of your choice");
                    let item = Item { source, destination: None, size: Some(object.size), ..Item::default() };
                    tally.failed(&item, Failure::Refused(refusal))?;
                }
            }
        }
        Ok(files)
    }

    fn tell_if_empty(&self, context: &Context<'_>) {
        if !self.found {
            context.output.note(&format!("nothing found under s3://{}/{}", self.uri.bucket, self.prefix));
        }
    }
}

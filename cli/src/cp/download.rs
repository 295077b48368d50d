//! S3 to this machine: one object to a file, or into a folder under its own name. The engine writes it beside its target
//! and renames it when it is whole.

use std::fs;
use std::path::Path;

use wirespeed::{GetMany, ObjectInfo, Progress, SseCustomerKey};

use super::{ADD_RECURSIVE, Arguments};
use crate::access::Access;
use crate::bulk::ends::destination_file;
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
    if arguments.copying.run.dryrun {
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
                let key = arguments.copying.write.customer_key.read()?;
                if let Err(error) = head(context, &arguments.copying.access, uri, Some(version), key).await {
                    drop(bar);
                    return tally.failed_alone(&item, Failure::from(error).of_object(uri, ADD_RECURSIVE));
                }
                fs::create_dir_all(folder).map_err(|source| Failure::local("make the folder", folder, source))?;
            }
            let mut get = arguments.copying.access.on(context.client.get(&uri.bucket, &uri.key)).version(version);
            if let Some(key) = arguments.copying.write.customer_key.read()? {
                get = get.sse_customer_key(key);
            }
            if let Some(etag) = &arguments.copying.write.if_match {
                get = get.if_match(etag);
            }
            if let Some(etag) = &arguments.copying.write.if_none_match {
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
        Some(Err(error)) => tally.failed_alone(&item, Failure::from(error).of_object(uri, ADD_RECURSIVE)),
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
    let key = arguments.copying.write.customer_key.read()?;
    match head(context, &arguments.copying.access, uri, arguments.version_id.as_deref(), key).await {
        Ok(info) => {
            item.size = Some(info.size);
            item.etag = info.etag;
            tally.would(&item);
            tally.finish(None)
        }
        Err(error) => tally.failed_alone(&item, Failure::from(error).of_object(uri, ADD_RECURSIVE)),
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
    let mut get = arguments.copying.access.on(context.client.get_many(&uri.bucket));
    if let Some(etag) = &arguments.copying.write.if_match {
        get = get.if_match(etag);
    }
    if let Some(etag) = &arguments.copying.write.if_none_match {
        get = get.if_none_match(etag);
    }
    Ok(match arguments.copying.write.customer_key.read()? {
        Some(key) => get.sse_customer_key(key),
        None => get,
    })
}

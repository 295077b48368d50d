//! S3 to S3: the server copies, and no byte passes here.
//!
//! A tree is listed page by page while copies are under way, as many at a time as the client has requests in flight; the
//! engine admits the requests themselves. Sizes come from the listing, so that an object is one request.

use std::collections::VecDeque;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use wirespeed::{Copy, CopyDirective, CopyOutcome, ListedObject, Progress, PutOptions, SseCustomerKey};

use super::{Arguments, CopyProps, download, under_its_name};
use crate::access::Access;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::progress::{Bar, Expected};
use crate::tally::{Item, Operation, Tally};
use crate::uri::S3Uri;

/// What all copies of one command have in common.
struct Copying<'a> {
    context: &'a Context<'a>,
    arguments: &'a Arguments,
    /// Without a media type that is guessed.
    options: PutOptions,
    metadata: CopyDirective,
    tags: CopyDirective,
    source_key: Option<SseCustomerKey>,
    /// Who pays for what is asked of the source, and who must own it.
    source_access: Access,
}

impl<'a> Copying<'a> {
    fn new(context: &'a Context<'a>, arguments: &'a Arguments) -> Result<Copying<'a>, Failure> {
        let (write, copy) = (&arguments.write, &arguments.copy);
        let metadata = match (copy.metadata_directive.as_deref(), copy.copy_props) {
            (Some("REPLACE"), _) | (None, Some(CopyProps::None)) => CopyDirective::Replace,
            _ => CopyDirective::Copy,
        };
        if metadata == CopyDirective::Copy && write.describes() {
            return Err(Failure::Usage(
                "a copy takes type, headers and metadata from its source; to give it others, add --metadata-directive \
                 REPLACE"
                    .to_owned(),
            ));
        }
        let tags = match copy.copy_props {
            None | Some(CopyProps::Default) if !write.tags() => CopyDirective::Copy,
            _ => CopyDirective::Replace,
        };
        let options = write.given(&arguments.access)?;
        let mut source_access = arguments.access.clone();
        if let Some(owner) = &copy.expected_source_bucket_owner {
            source_access.expected_bucket_owner = Some(owner.clone());
        }
        let source_key = copy.source_key.read()?;
        Ok(Copying { context, arguments, options, metadata, tags, source_key, source_access })
    }

    fn copy(&self, from: &S3Uri, to: &S3Uri, size: Option<u64>, progress: &Progress) -> Copy {
        let mut options = self.options.clone();
        if self.metadata == CopyDirective::Replace
            && let Some(media_type) = self.arguments.write.guess(Some(&from.key))
        {
            options = options.content_type(media_type);
        }
        let mut copy = self.context.client.copy(&from.bucket, &from.key, &to.bucket, &to.key);
        copy = copy.options(options).metadata_directive(self.metadata).tagging_directive(self.tags);
        if let Some(version) = &self.arguments.version_id {
            copy = copy.source_version(version);
        }
        if let Some(key) = &self.source_key {
            copy = copy.source_sse_customer_key(key.clone());
        }
        if let Some(owner) = &self.source_access.expected_bucket_owner {
            copy = copy.source_expected_owner(owner);
        }
        if let Some(bytes) = size {
            copy = copy.source_size(bytes);
        }
        copy.progress(progress.clone())
    }
}

/// Copies one object.
pub(super) async fn one(
    context: &Context<'_>,
    arguments: &Arguments,
    from: &S3Uri,
    to: &S3Uri,
) -> Result<Exit, Failure> {
    let to = under_its_name(to, from.file_name());
    let copying = Copying::new(context, arguments)?;
    let mut tally = Tally::start(context.output, Operation::Copy);
    let mut item = Item { source: from.to_string(), destination: Some(to.to_string()), ..Item::default() };
    if arguments.dryrun {
        let (version, key) = (arguments.version_id.as_deref(), copying.source_key);
        return match download::head(context, &copying.source_access, from, version, key).await {
            Ok(info) => {
                item.size = Some(info.size);
                tally.would(&item);
                tally.finish(None)
            }
            Err(error) => tally.failed_alone(&item, error.into()),
        };
    }
    let progress = Progress::default();
    let bar = Bar::show(context.output, &progress, &Expected::one_of_unknown_size());
    let result = copying.copy(from, &to, None, &progress).await;
    drop(bar);
    match result {
        Ok(outcome) => {
            item.size = Some(progress.bytes());
            item.etag = outcome.etag;
            tally.done(&item);
            tally.finish(None)
        }
        Err(error) => tally.failed_alone(&item, error.into()),
    }
}

/// Copies everything under one prefix to under another.
pub(super) async fn many(
    context: &Context<'_>,
    arguments: &Arguments,
    from: &S3Uri,
    to: &S3Uri,
) -> Result<Exit, Failure> {
    let (source, target) = (from.with_key(&from.folder()), to.with_key(&to.folder()));
    // What is copied would be listed, and copied again.
    if source.bucket == target.bucket && target.key != source.key && target.key.starts_with(&source.key) {
        return Err(Failure::Usage(format!("{target} lies within {source}; copy it to a place outside")));
    }
    let copying = Copying::new(context, arguments)?;
    let mut tally = Tally::start(context.output, Operation::Copy);
    let stopped = copy_pages(&copying, &source, &target, &mut tally).await.err();
    tally.finish(stopped)
}

async fn copy_pages(
    copying: &Copying<'_>,
    source: &S3Uri,
    target: &S3Uri,
    tally: &mut Tally<'_>,
) -> Result<(), Failure> {
    let Copying { context, arguments, .. } = copying;
    let (progress, expected) = (Progress::default(), Expected::default());
    let _bar = (!arguments.dryrun).then(|| Bar::show(context.output, &progress, &expected));
    let mut pages = copying.source_access.on(context.client.list(&source.bucket)).prefix(&source.key).pages();
    let at_a_time = context.client.config().concurrency;
    let (mut found, mut listed, mut any) = (VecDeque::<ListedObject>::new(), false, false);
    let mut running = FuturesUnordered::new();
    loop {
        while running.len() < at_a_time
            && let Some(object) = found.pop_front()
        {
            let from = source.with_key(&object.key);
            let relative = object.key.strip_prefix(&source.key).unwrap_or(&object.key);
            let to = target.with_key(&format!("{}{relative}", target.key));
            let (source, destination) = (from.to_string(), Some(to.to_string()));
            let item = Item { source, destination, size: Some(object.size), ..Item::default() };
            if arguments.dryrun {
                tally.would(&item);
                continue;
            }
            let copy = copying.copy(&from, &to, item.size, &progress);
            running.push(async { (item, copy.await) });
        }
        tokio::select! {
            page = pages.next(), if !listed && found.is_empty() => match page {
                Some(page) => {
                    for object in page?.objects {
                        any = true;
                        let relative = object.key.strip_prefix(&source.key).unwrap_or(&object.key);
                        // As for a download: what a console makes for a folder is none of its content.
                        if object.size == 0 && (relative.is_empty() || relative.ends_with('/')) {
                            let marker = source.with_key(&object.key).to_string();
                            tally.skipped(&marker, "an empty object that stands for a folder");
                            continue;
                        }
                        expected.add(object.size);
                        found.push_back(object);
                    }
                }
                None => {
                    listed = true;
                    expected.complete();
                }
            },
            Some((item, result)) = running.next(), if !running.is_empty() => enter(item, result, tally)?,
            else => break,
        }
    }
    if !any {
        context.output.note(&format!("nothing found under {source}"));
    }
    Ok(())
}

fn enter(mut item: Item, result: wirespeed::Result<CopyOutcome>, tally: &mut Tally<'_>) -> Result<(), Failure> {
    match result {
        Ok(outcome) => {
            item.etag = outcome.etag;
            tally.done(&item);
            Ok(())
        }
        Err(error) => tally.failed(&item, error.into()),
    }
}

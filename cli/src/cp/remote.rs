//! S3 to S3: the server copies one object, and no byte passes here.

use wirespeed::{CopyDirective, Progress};

use super::{ADD_RECURSIVE, Arguments, download};
use crate::bulk::ends::under_its_name;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::progress::{Bar, Expected};
use crate::tally::{Item, Operation, Tally};
use crate::uri::S3Uri;

/// Copies one object.
pub(super) async fn one(
    context: &Context<'_>,
    arguments: &Arguments,
    from: &S3Uri,
    to: &S3Uri,
) -> Result<Exit, Failure> {
    let to = under_its_name(to, from.file_name());
    let (copying, version) = (&arguments.copying, arguments.version_id.as_deref());
    let (metadata, tags) = copying.copy.directives(&copying.write)?;
    let (source_access, source_key) = (copying.copy.source_access(&copying.access), copying.copy.source_key()?);
    let mut options = copying.write.given(&copying.access)?;
    if metadata == CopyDirective::Replace
        && let Some(media_type) = copying.write.guess(Some(&from.key))
    {
        options = options.content_type(media_type);
    }
    let mut tally = Tally::start(context.output, Operation::Copy);
    let mut item = Item { source: from.to_string(), destination: Some(to.to_string()), ..Item::default() };
    if copying.run.dryrun {
        return match download::head(context, &source_access, from, version, source_key).await {
            Ok(info) => {
                item.size = Some(info.size);
                tally.would(&item);
                tally.finish(None)
            }
            Err(error) => tally.failed_alone(&item, Failure::from(error).of_object(from, ADD_RECURSIVE)),
        };
    }
    let progress = Progress::default();
    let bar = Bar::show(context.output, &progress, &Expected::one_of_unknown_size());
    let mut copy = context.client.copy(&from.bucket, &from.key, &to.bucket, &to.key).options(options);
    copy = copy.metadata_directive(metadata).tagging_directive(tags).progress(progress.clone());
    if let Some(version) = version {
        copy = copy.source_version(version);
    }
    if let Some(key) = source_key {
        copy = copy.source_sse_customer_key(key);
    }
    if let Some(owner) = &source_access.expected_bucket_owner {
        copy = copy.source_expected_owner(owner);
    }
    let result = copy.await;
    drop(bar);
    match result {
        Ok(outcome) => {
            item.size = Some(progress.bytes());
            item.etag = outcome.etag;
            tally.done(&item);
            tally.finish(None)
        }
        Err(error) => tally.failed_alone(&item, Failure::from(error).of_object(from, ADD_RECURSIVE)),
    }
}

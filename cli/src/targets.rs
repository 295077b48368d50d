//! The objects that addresses name one by one: keys as they are, patterns as what the listing finds.

use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};

use crate::access::Access;
use crate::context::Context;
use crate::failure::Failure;
use crate::filter_flags::FilterFlags;
use crate::selection::{Order, Scope, Selection};
use crate::uri::S3Uri;
use crate::wildcard::Wildcards;

/// One object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) uri: S3Uri,
    /// In bytes, where a listing has told.
    pub(crate) size: Option<u64>,
}

/// The objects in the order of the addresses, those of a pattern in the order of their keys. A pattern that nothing
/// matches is a failure in its place.
pub(crate) fn targets<'a>(
    context: &'a Context<'_>,
    uris: &'a [S3Uri],
    wildcards: &'a Wildcards,
    access: &'a Access,
) -> BoxStream<'a, Result<Target, Failure>> {
    let of_one = move |uri: &'a S3Uri| match wildcards.of(uri) {
        None => stream::iter([Ok(Target { uri: uri.clone(), size: None })]).boxed(),
        Some(_) => matching(context, uri, wildcards, access),
    };
    stream::iter(uris).flat_map(of_one).boxed()
}

fn matching<'a>(
    context: &'a Context<'_>,
    uri: &'a S3Uri,
    wildcards: &Wildcards,
    access: &Access,
) -> BoxStream<'a, Result<Target, Failure>> {
    let selection = Selection::new(uri, Scope::Prefix, wildcards, &FilterFlags::default());
    let pages = selection.list_all(&context.client, access, Order::ByKey).pages();
    let found = pages.map_err(Failure::from).map_ok(move |page| {
        let meant = |object: &wirespeed::ListedObject| selection.wants(&object.key, object.size, object.last_modified);
        let target =
            |object: wirespeed::ListedObject| Ok(Target { uri: uri.with_key(&object.key), size: Some(object.size) });
        stream::iter(page.objects.into_iter().filter(meant).map(target).collect::<Vec<_>>())
    });
    let nothing = Failure::NothingFound(format!("nothing matches `{uri}`; --raw takes it as it stands"));
    let mut nothing = Some(nothing);
    // The last word is said only where there was none before.
    let found = found.try_flatten().map(Some).chain(stream::iter([None]));
    found
        .filter_map(move |target| {
            let said = match target {
                Some(target) => {
                    nothing = None;
                    Some(target)
                }
                None => nothing.take().map(Err),
            };
            std::future::ready(said)
        })
        .boxed()
}

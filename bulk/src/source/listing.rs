//! Keys of a bucket, by its listing.

use tokio::sync::mpsc;
use wirespeed::{List, Pages};

use super::{Batch, Looking};
use crate::entry::Entry;
use crate::failure::Failure;
use crate::place::Bucket;

type Send = mpsc::Sender<Result<Batch, Failure>>;

/// Sends the keys of a bucket's prefix.
pub(super) async fn objects(bucket: Bucket, looking: Looking, send: Send) {
    let prefix = bucket.prefix.len();
    let list = within(&bucket, &looking).in_parallel();
    let mut pages = match looking.in_order {
        true if bucket.lists_in_no_order() => return in_order(list.pages(), prefix, &send).await,
        true => list.in_order().pages(),
        false => list.pages(),
    };
    while let Some(page) = pages.next().await {
        let entries = page.map(|page| page.objects.into_iter().map(|object| Entry::listed(object, prefix)).collect());
        if !hand_on(entries, &send).await {
            return;
        }
    }
}

/// Sends the keys of a directory bucket, all of which have to be known for that.
async fn in_order(mut pages: Pages, prefix: usize, send: &Send) {
    let mut all = Vec::new();
    while let Some(page) = pages.next().await {
        match page {
            Ok(page) => all.extend(page.objects.into_iter().map(|object| Entry::listed(object, prefix))),
            Err(error) => {
                let _ = send.send(Err(error.into())).await;
                return;
            }
        }
    }
    all.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    let mut all = all.into_iter().peekable();
    while all.peek().is_some() {
        if !hand_on(Ok(all.by_ref().take(1_000).collect()), send).await {
            return;
        }
    }
}

/// Sends all versions and delete markers of the keys of a bucket's prefix.
pub(super) async fn versions(bucket: Bucket, looking: Looking, send: Send) {
    let prefix = bucket.prefix.len();
    let mut pages = within(&bucket, &looking).in_parallel().versions();
    while let Some(page) = pages.next().await {
        let entries =
            page.map(|page| page.versions.into_iter().map(|version| Entry::version(version, prefix)).collect());
        if !hand_on(entries, &send).await {
            return;
        }
    }
}

/// Hands a page on; `false` when nobody listens any more.
async fn hand_on(entries: wirespeed::Result<Vec<Entry>>, send: &Send) -> bool {
    let batch = entries.map_err(Failure::from).map(|entries| Batch { entries, troubles: Vec::new() });
    send.send(batch).await.is_ok()
}

/// The listing of what is looked for.
fn within(bucket: &Bucket, looking: &Looking) -> List {
    let mut list = bucket.list(&looking.prefix);
    if let Some(after) = &looking.range.after {
        list = list.start_after(bucket.key_of(after));
    }
    if let Some(until) = &looking.range.until {
        list = list.until(bucket.key_of(until));
    }
    list
}

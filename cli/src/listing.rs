//! A listing that runs ahead: pages are fetched while those before them are worked on.
//!
//! The channel holds [`AHEAD`] pages, so a listing of millions of keys waits for the work and not in memory.

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use wirespeed::{Client, Page};

/// Pages (of up to 1,000 keys) that may wait.
const AHEAD: usize = 4;

/// Pages as they come. Dropping it stops the listing.
pub(crate) struct Listing {
    pages: mpsc::Receiver<wirespeed::Result<Page>>,
    _task: JoinSet<()>,
}

impl Listing {
    /// Lists every key of `bucket` that begins with `prefix`, in byte order. Must run inside the runtime.
    pub(crate) fn start(client: &Client, bucket: &str, prefix: &str) -> Listing {
        let mut pages = client.list(bucket).prefix(prefix).pages();
        let (send, receive) = mpsc::channel(AHEAD);
        let mut task = JoinSet::new();
        task.spawn(async move {
            while let Some(page) = pages.next().await {
                if send.send(page).await.is_err() {
                    break;
                }
            }
        });
        Listing { pages: receive, _task: task }
    }

    /// The next page; after an error there is none. Cancelling the wait loses nothing.
    pub(crate) async fn next(&mut self) -> Option<wirespeed::Result<Page>> {
        self.pages.recv().await
    }
}

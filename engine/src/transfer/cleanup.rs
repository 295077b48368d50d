//! What must still be cleaned up behind the caller's back, counted so that it can be waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The count of one client.
#[derive(Default)]
pub(crate) struct Cleanups(Arc<Count>);

#[derive(Default)]
struct Count {
    pending: AtomicUsize,
    ended: Notify,
}

/// Something that leaves a trace on the server unless it is ended well; dropped when it was.
pub(crate) struct Cleanup(Arc<Count>);

impl Cleanups {
    pub(crate) fn begin(&self) -> Cleanup {
        self.0.pending.fetch_add(1, Ordering::SeqCst);
        Cleanup(Arc::clone(&self.0))
    }

    /// Waits until nothing is left to be cleaned up.
    pub(crate) async fn settled(&self) {
        loop {
            // Listening begins before looking, or the last end could be missed between the two.
            let ended = self.0.ended.notified();
            if self.0.pending.load(Ordering::SeqCst) == 0 {
                return;
            }
            ended.await;
        }
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        self.0.pending.fetch_sub(1, Ordering::SeqCst);
        self.0.ended.notify_waiters();
    }
}

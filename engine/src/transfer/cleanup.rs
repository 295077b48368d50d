//! What must still be cleaned up behind the caller's back: multipart uploads, from before their start is asked for until
//! they are known to be complete or aborted. Counted, so that it can be waited for, and known by name, so that what
//! survives can be told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// A multipart upload that this client began, and that is neither complete nor known to be aborted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnfinishedUpload {
    /// The bucket.
    pub bucket: String,
    /// The key that it was to become.
    pub key: String,
    /// Its id; `None` while the server has not answered the request that starts it.
    pub upload_id: Option<String>,
}

/// The uploads of one client. The lock is taken when one begins and when one ends, never for a part.
#[derive(Default)]
pub(crate) struct Cleanups(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Default)]
struct State {
    begun: u64,
    pending: BTreeMap<u64, UnfinishedUpload>,
    /// Whose abort failed: nobody does anything about them any more.
    survivors: Vec<UnfinishedUpload>,
}

impl Shared {
    /// A panic elsewhere must not hide what is left behind.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something that leaves a trace on the server unless it is ended well; dropped when it was.
pub(crate) struct Cleanup {
    shared: Arc<Shared>,
    number: u64,
}

impl Cleanups {
    /// An upload of `key` is about to be started.
    pub(crate) fn begin(&self, bucket: &str, key: &str) -> Cleanup {
        let upload = UnfinishedUpload { bucket: bucket.to_owned(), key: key.to_owned(), upload_id: None };
        let mut state = self.0.lock();
        state.begun += 1;
        let number = state.begun;
        state.pending.insert(number, upload);
        drop(state);
        Cleanup { shared: Arc::clone(&self.0), number }
    }

    /// Waits until nothing is left to be cleaned up.
    pub(crate) async fn settled(&self) {
        loop {
            // Listening begins before looking, or the last end could be missed between the two.
            let ended = self.0.ended.notified();
            if self.0.lock().pending.is_empty() {
                return;
            }
            ended.await;
        }
    }

    /// What is under way, being aborted, or could not be aborted.
    pub(crate) fn unfinished(&self) -> Vec<UnfinishedUpload> {
        let state = self.0.lock();
        state.survivors.iter().chain(state.pending.values()).cloned().collect()
    }
}

impl Cleanup {
    /// The server has named the upload.
    pub(crate) fn named(&self, upload_id: &str) {
        if let Some(upload) = self.shared.lock().pending.get_mut(&self.number) {
            upload.upload_id = Some(upload_id.to_owned());
        }
    }

    /// The upload could not be aborted, and nobody is told.
    pub(crate) fn survives(self) {
        let mut state = self.shared.lock();
        let survivor = state.pending.get(&self.number).cloned();
        state.survivors.extend(survivor);
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        self.shared.lock().pending.remove(&self.number);
        self.shared.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_not_ended_well_is_known_by_name() {
        let cleanups = Cleanups::default();
        let (done, lost, early) =
            (cleanups.begin("b", "done"), cleanups.begin("b", "lost"), cleanups.begin("b", "early"));
        done.named("1");
        lost.named("2");
        drop(done);
        lost.survives();
        let names = |uploads: Vec<UnfinishedUpload>| {
            uploads.into_iter().map(|upload| (upload.key, upload.upload_id)).collect::<Vec<_>>()
        };
        assert_eq!(
            names(cleanups.unfinished()),
            [("lost".to_owned(), Some("2".to_owned())), ("early".to_owned(), None)]
        );
        drop(early);
        cleanups.settled().await;
        assert_eq!(cleanups.unfinished().len(), 1, "what survives stays known");
    }
}

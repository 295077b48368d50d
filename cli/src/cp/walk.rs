//! The walk over a folder that is uploaded, on a blocking thread that stays at most [`AHEAD`] entries ahead.

use std::path::Path;

use tokio::sync::mpsc;
use wirespeed_local::{Unreadable, entries};

use crate::failure::{Failure, visible};

/// Entries that may wait to be uploaded.
const AHEAD: usize = 4_096;

/// What the walk came upon.
pub(super) use wirespeed_local::Found;

/// A walk under way; dropping it ends the walk.
pub(super) struct Walk {
    found: mpsc::Receiver<Found>,
}

impl Walk {
    /// Starts at `folder`. Must run inside the runtime.
    pub(super) fn start(folder: &Path) -> Walk {
        let (send, found) = mpsc::channel(AHEAD);
        let folder = folder.to_owned();
        tokio::task::spawn_blocking(move || {
            for found in entries(&folder) {
                if send.blocking_send(found).is_err() {
                    break;
                }
            }
        });
        Walk { found }
    }

    /// The next entries, as many as there are up to `most`; none at the end. Cancelling the wait loses nothing.
    pub(super) async fn next(&mut self, most: usize) -> Vec<Found> {
        let mut found = Vec::new();
        self.found.recv_many(&mut found, most).await;
        found
    }
}

/// What is told of something that cannot be uploaded.
pub(super) fn failure(path: &Path, why: Unreadable) -> Failure {
    let name = visible(&path.to_string_lossy()).into_owned();
    match why {
        Unreadable::Io(source) => Failure::Local { what: format!("cannot read `{name}`"), source },
        Unreadable::NotUtf8 => {
            Failure::Refused(format!("refused `{name}`: its name is not UTF-8, and S3 keys are; rename it"))
        }
    }
}

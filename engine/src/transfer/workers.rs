//! A crew of tasks over one queue of parts, which ends together.

use std::future::Future;
use std::pin::pin;

use tokio::task::{JoinError, JoinSet};
use tracing::Instrument;

use crate::error::{Error, ErrorKind, Result};

/// Runs `lead` here and `others` as tasks of their own until all are done, or until one fails: then
/// the rest are stopped, and waited for, so that none of them writes any more. Dropped, it stops
/// them too.
pub(crate) async fn run_together<T: Send + 'static, F>(
    lead: impl Future<Output = Result<T>>,
    others: impl Iterator<Item = F>,
) -> Result<Vec<T>>
where
    F: Future<Output = Result<T>> + Send + 'static,
{
    let mut crew = JoinSet::new();
    for other in others {
        crew.spawn(other.in_current_span());
    }
    let mut lead = pin!(lead);
    let mut leading = true;
    let mut done = Vec::new();
    while leading || !crew.is_empty() {
        let finished = tokio::select! {
            finished = &mut lead, if leading => {
                leading = false;
                finished
            }
            Some(finished) = crew.join_next() => finished.unwrap_or_else(|error| Err(lost(error))),
        };
        match finished {
            Ok(value) => done.push(value),
            Err(error) => {
                crew.shutdown().await;
                return Err(error);
            }
        }
    }
    Ok(done)
}

/// A task that ended without an answer.
pub(crate) fn lost(error: JoinError) -> Error {
    Error::new(ErrorKind::Cancelled, "a worker was stopped").with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn the_first_failure_stops_the_rest() {
        let held = Arc::new(());
        let others = (0..3).map(|_| {
            let held = Arc::clone(&held);
            async move {
                let _held = held;
                std::future::pending::<Result<()>>().await
            }
        });
        let failed = run_together(async { Err(Error::new(ErrorKind::Integrity, "bad")) }, others);
        assert_eq!(failed.await.unwrap_err().kind(), ErrorKind::Integrity);
        assert_eq!(Arc::strong_count(&held), 1, "a task outlived the failure");
    }

    #[tokio::test]
    async fn all_are_waited_for() {
        let others = (1..4).map(|n| async move {
            tokio::task::yield_now().await;
            Ok(n)
        });
        let mut done = run_together(async { Ok(0) }, others).await.unwrap();
        done.sort();
        assert_eq!(done, [0, 1, 2, 3]);
    }
}

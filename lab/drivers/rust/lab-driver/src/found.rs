//! What a listing within the round has found so far: the plan's items, in their order, and nothing else.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::sync::Semaphore;

/// How many of the plan's items may be taken.
pub(crate) struct Found {
    items: AtomicUsize,
    /// One for each item that was found, and one for each worker when there are no more to come.
    turns: Option<Semaphore>,
}

impl Found {
    /// All `items` at once, or, where they are to be `listed`, none of them yet.
    pub(crate) fn new(items: usize, listed: bool) -> Found {
        Found { items: AtomicUsize::new(if listed { 0 } else { items }), turns: listed.then(|| Semaphore::new(0)) }
    }

    pub(crate) fn count(&self) -> usize {
        self.items.load(Relaxed)
    }

    /// Waits until there may be another item.
    pub(crate) async fn turn(&self) {
        if let Some(turns) = &self.turns
            && let Ok(turn) = turns.acquire().await
        {
            turn.forget();
        }
    }

    /// The next item was found.
    pub(crate) fn another(&self) {
        self.items.fetch_add(1, Relaxed);
        self.all_for(1);
    }

    /// No more will be found: `workers` need not wait.
    pub(crate) fn all_for(&self, workers: usize) {
        if let Some(turns) = &self.turns {
            turns.add_permits(workers);
        }
    }
}

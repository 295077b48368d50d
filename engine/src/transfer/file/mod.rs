//! Local files, both ways, on the runtime's blocking threads.

mod appearance;
mod partial;
mod source;
mod temporary;
mod threads;

pub(crate) use appearance::Appearance;
pub use appearance::FileAttributes;
pub(crate) use partial::{FileWriter, PartialFile, write_file};
pub(crate) use source::{FoundFile, SourceFile};
pub(crate) use threads::FileThreads;

use crate::error::{Error, ErrorKind, Result};

/// Runs blocking work; a panic in it becomes an error.
pub(crate) async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Error::new(ErrorKind::Cancelled, "the runtime stopped").with_source(error)))
}

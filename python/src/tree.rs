//! What `download` and `upload` have in common: files and objects that are found while the first of them
//! are on their way, and what can be wrong with them here.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use tokio::sync::mpsc;
use wirespeed::Error;

use crate::errors;
use crate::get_many::items::{hint, interruptible};
use crate::info::Transferred;

/// Items that may wait for the engine: enough that it never waits for a page of a listing.
const AHEAD: usize = 2_000;

/// Items for one call of the engine's that are still being found.
pub(crate) struct Found<I>(mpsc::Receiver<I>);

/// Where they are put, and where the engine takes them from.
pub(crate) fn found<I>() -> (mpsc::Sender<I>, Found<I>) {
    let (sender, receiver) = mpsc::channel(AHEAD);
    (sender, Found(receiver))
}

impl<I> Stream for Found<I> {
    type Item = I;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<I>> {
        self.0.poll_recv(cx)
    }
}

/// Why a transfer of many stopped.
pub(crate) enum Trouble {
    Engine(Error),
    /// It cannot be done safely, or at all.
    Refused(String),
    Local(String, io::Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Engine(error)
    }
}

impl Trouble {
    pub(crate) fn local(doing: &str, path: &Path, source: io::Error) -> Trouble {
        Trouble::Local(format!("cannot {doing} {}: {source}", path.display()), source)
    }

    pub(crate) fn raise(&self, py: Python<'_>) -> PyErr {
        match self {
            Trouble::Engine(error) => errors::from_engine(py, error),
            Trouble::Refused(why) => errors::config(why),
            Trouble::Local(what, source) => errors::system(py, what, source),
        }
    }
}

/// Runs what may wait for a disk, or for a file system across the network, where no transfer waits for it.
pub(crate) async fn on_disk<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Trouble> {
    let stopped = |_| Trouble::Local("the runtime has ended".to_owned(), io::ErrorKind::Interrupted.into());
    tokio::task::spawn_blocking(work).await.map_err(stopped)
}

/// How a call ends.
pub(crate) fn finish(py: Python<'_>, outcome: Result<Transferred, Trouble>) -> PyResult<Py<PyAny>> {
    let transferred = outcome.map_err(|trouble| trouble.raise(py))?;
    Ok(Py::new(py, transferred)?.into_any())
}

/// Where a call goes to, which must be said unless it is a list of pairs.
pub(crate) fn pairs<'py>(
    source: &Bound<'py, PyAny>,
    what: &str,
) -> PyResult<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    let items = source.try_iter().map_err(|_| match source.get_type().name() {
        Ok(kind) => PyTypeError::new_err(format!("the source is a str or an iterable of pairs {what}, not {kind}")),
        Err(trouble) => trouble,
    })?;
    let mut pairs = Vec::with_capacity(hint(source));
    for (index, item) in items.enumerate() {
        interruptible(source.py(), index)?;
        let item = item?;
        let pair = item.extract().map_err(|_| match item.repr() {
            Ok(item) => PyTypeError::new_err(format!("item {index} is no pair {what}: {item}")),
            Err(trouble) => trouble,
        })?;
        pairs.push(pair);
    }
    Ok(pairs)
}

/// A path, as a file that is a folder is named: with a slash at its end, or by being one.
pub(crate) fn names_folder(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/") || path.is_dir()
}

/// The last component of a key or a path.
pub(crate) fn last_component(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or(text)
}

/// Says which file or folder a call without a target is to go to.
pub(crate) fn target_of(target: Option<PathBuf>) -> PyResult<PathBuf> {
    target.ok_or_else(|| PyTypeError::new_err("say where it goes: a file or a folder, as the second argument"))
}

//! What a PUT reads bytes from that are not in memory: a file-like object, or an iterable of pieces.
//!
//! Owns: the pump. It runs the caller's Python code, so it needs the interpreter's lock and is never on
//! a thread of the engine's: the thread that waits runs it, or in the awaitable view a thread of the
//! event loop's executor. What the caller's code raises ends the upload and is raised unchanged.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use pyo3::exceptions::{PyBlockingIOError, PyException, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyString};
use tokio::sync::oneshot;
use wirespeed::PutOutcome;

use crate::aio;
use crate::call::{self, Call, TICK};
use crate::feed::{Trouble, Upload};
use crate::info::PutResult;
use crate::memory::Shared;
use crate::progress::Watch;
use crate::stream::Stream;

/// What a reader is asked for at once.
const READ: usize = 1 << 20;

/// Where the pieces come from.
pub(super) enum Source {
    /// The `read` of a file-like object.
    Reader(Py<PyAny>),
    Pieces(Py<PyIterator>, u64),
}

impl Source {
    /// # Errors
    /// What gives no bytes says so.
    pub(super) fn new(data: &Bound<'_, PyAny>) -> PyResult<Source> {
        let py = data.py();
        let refused = |why: &str| match data.get_type().name() {
            Ok(kind) => PyTypeError::new_err(format!("a {kind} cannot be put: {why}")),
            Err(trouble) => trouble,
        };
        if data.hasattr(intern!(py, "__fspath__"))? {
            return Err(refused("a file is put by put_file(), or open(path, \"rb\")"));
        }
        // A stream's parts need no copy on the way to here, what its `read` gives does.
        if !data.is_instance_of::<Stream>()
            && let Some(read) = data.getattr_opt(intern!(py, "read"))?
        {
            return Ok(Source::Reader(read.unbind()));
        }
        if data.hasattr(intern!(py, "__aiter__"))? {
            return Err(refused("it is iterated over by async for; write its pieces to a writer()"));
        }
        match data.try_iter() {
            Ok(pieces) => Ok(Source::Pieces(pieces.unbind(), 0)),
            Err(_) => Err(refused("give bytes, a buffer, a file opened in binary mode, or an iterable of bytes")),
        }
    }

    fn next(&mut self, py: Python<'_>) -> PyResult<Option<Shared>> {
        match self {
            Source::Reader(read) => {
                let piece = read.bind(py).call1((READ,))?;
                if piece.is_none() {
                    return Err(PyBlockingIOError::new_err(
                        "the reader has nothing to give now and does not wait: put needs one that does",
                    ));
                }
                let bytes = bytes_of(&piece, || "the reader gave".into(), "; open the file in binary mode (\"rb\")")?;
                Ok(Some(bytes).filter(|bytes| !bytes.as_ref().is_empty()))
            }
            Source::Pieces(pieces, index) => {
                let Some(piece) = pieces.bind(py).clone().next() else { return Ok(None) };
                let bytes = bytes_of(&piece?, || format!("piece {index} is"), "; encode it")?;
                *index += 1;
                Ok(Some(bytes))
            }
        }
    }

    /// Hands everything over, waiting while too much is unsent.
    fn pump(&mut self, py: Python<'_>, upload: &Upload, watch: &mut Option<Watch>) -> PyResult<()> {
        let mut looked = Instant::now();
        while let Some(piece) = self.next(py)? {
            if !upload.take_at_once(&piece) {
                upload.take(py, piece, false)?;
            }
            if looked.elapsed() >= TICK {
                py.check_signals()?;
                watch.as_mut().map_or(Ok(()), |watch| watch.tell(py))?;
                looked = Instant::now();
            }
        }
        Ok(())
    }
}

fn bytes_of(piece: &Bound<'_, PyAny>, what: impl FnOnce() -> String, text: &str) -> PyResult<Shared> {
    let kind = || piece.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
    if piece.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(format!("{} str, not bytes{text}", what())));
    }
    Shared::new(piece)?.ok_or_else(|| PyTypeError::new_err(format!("{} {}, not bytes", what(), kind())))
}

/// Uploads all that the source gives.
pub(super) fn put(
    py: Python<'_>,
    upload: Upload,
    mut source: Source,
    mut watch: Option<Watch>,
    awaitable: bool,
) -> PyResult<Py<PyAny>> {
    if awaitable {
        return submit(py, upload, source, watch);
    }
    if let Err(raised) = source.pump(py, &upload, &mut watch) {
        let feed = upload.feed.clone();
        let aborted = call::wait(py, &upload.live, async move { Ok(feed.abort().await) }, &mut None);
        return Err(match aborted {
            Ok(aborted) => noted(py, raised, aborted),
            // A client that was closed meanwhile has ended the upload itself.
            Err(other) if other.is_instance_of::<PyException>(py) => raised,
            Err(interrupt) => interrupt,
        });
    }
    let finishing = upload.feed.finish();
    let future = async move { Ok(finishing.await) };
    Call { future, finish: result, watch }.run(py, &upload.live, false)
}

/// What was raised, with a note where the upload could not be cleaned up after it.
fn noted(py: Python<'_>, raised: PyErr, aborted: Result<(), Trouble>) -> PyErr {
    let Err(trouble) = aborted else { return raised };
    let note = format!("the upload could not be aborted: {}", trouble.raise(py).value(py));
    let added = raised.value(py).call_method1(intern!(py, "add_note"), (note,));
    added.err().unwrap_or(raised)
}

fn result(py: Python<'_>, outcome: Result<PutOutcome, Trouble>) -> PyResult<Py<PyAny>> {
    let outcome = outcome.map_err(|trouble| trouble.raise(py))?;
    Ok(Py::new(py, PutResult::from(outcome))?.into_any())
}

/// How a pump in a thread of the executor has ended: what it raised, if anything.
type Pumped = Result<(), PyErr>;

/// What the executor runs.
#[pyclass(frozen, module = "wirespeed")]
struct Pump {
    upload: Arc<Upload>,
    work: Mutex<Option<(Source, oneshot::Sender<Pumped>)>>,
}

#[pymethods]
impl Pump {
    fn __call__(&self, py: Python<'_>) {
        let work = self.work.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((mut source, ended)) = work {
            // Where nobody waits any more, nobody misses it.
            let _ = ended.send(source.pump(py, &self.upload, &mut None));
        }
    }
}

fn submit(py: Python<'_>, upload: Upload, source: Source, watch: Option<Watch>) -> PyResult<Py<PyAny>> {
    let (ended, pumped) = oneshot::channel();
    let (feed, live) = (upload.feed.clone(), Arc::clone(&upload.live));
    let upload = Arc::new(upload);
    let pump = Pump { upload: Arc::clone(&upload), work: Mutex::new(Some((source, ended))) };
    // Cancelled, the upload ends, and the pump at its next piece; also where its task has yet to begin.
    let unless_done = feed.unless_done();
    let future = async move {
        let outcome = match pumped.await {
            Ok(Ok(())) => Ok(feed.finish().await),
            Ok(Err(raised)) => Err((Some(raised), feed.abort().await)),
            // The executor was shut down before it came to it.
            Err(_) => Err((None, feed.abort().await)),
        };
        unless_done.disarm();
        drop(upload);
        Ok(outcome)
    };
    let finish = |py: Python<'_>, outcome| match outcome {
        Ok(outcome) => result(py, outcome),
        Err((Some(raised), aborted)) => Err(noted(py, raised, aborted)),
        Err((None, _)) => Err(Trouble::Stopped.raise(py)),
    };
    let running = aio::running_loop(py)?;
    running.call_method1(intern!(py, "run_in_executor"), (py.None(), Bound::new(py, pump)?))?;
    Call { future, finish, watch }.run(py, &live, true)
}

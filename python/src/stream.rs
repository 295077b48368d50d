//! A GET in order, fetched ahead of whoever reads it: parts one after another, or a file to read.
//!
//! Owns: the engine's stream, behind a lock that one call at a time holds, so that threads and tasks
//! that share a stream take turns. A part stays in the flow until the interpreter has taken it: a read
//! that was stopped (Ctrl-C, a cancelled task) has lost nothing. Only what was copied cannot be put back:
//! where the read was longer than [`flow::AT_ONCE`] and had handed on some already, or was cancelled in the
//! turn in which its bytes came. The stream then says so, and never goes on behind a gap.
//!
//! Iterating hands on the memory where a part landed. `read` and `readinto` copy once, from there to
//! where the caller wants them. The end is compared with the object's checksum, also where a read asked
//! for no byte more than there are.

mod flow;

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyType};
use tokio_util::sync::CancellationToken;
use wirespeed::ObjectStream;

use crate::aio::{self, Arriving, Step};
use crate::call::Call;
use crate::client::{Live, Verbs};
use crate::errors;
use crate::fork::Inherited;
use crate::info::ObjectInfo;
use crate::location::{Location, Wanted};
use crate::memory::{Lent, NewBytes};
use crate::options::{ReadOptions, bytes};
use crate::{get, runtime};
use flow::{Flow, Shared, Trouble, Turn, Undelivered};

/// What has landed and is no longer than this is copied without leaving the interpreter.
const COPY_HERE: usize = 256 << 10;

/// What a read gives, on its way to the caller.
struct Read {
    value: Py<PyAny>,
    undelivered: Undelivered,
}

impl Read {
    fn hand_over(self) -> Py<PyAny> {
        self.undelivered.deliver();
        self.value
    }
}

/// A read that is awaited. It is the caller's when the caller is woken: where a task is cancelled in the
/// turn in which its bytes come, the stream knows that they are lost.
struct AwaitedRead {
    begun: Mutex<Option<Py<PyAny>>>,
    read: Arc<Mutex<Option<Read>>>,
}

impl AwaitedRead {
    fn begin<T: Send + 'static>(
        py: Python<'_>,
        live: &Arc<Live>,
        future: impl Future<Output = wirespeed::Result<T>> + Send + 'static,
        finish: impl FnOnce(Python<'_>, T) -> PyResult<Read> + Send + 'static,
    ) -> PyResult<Py<PyAny>> {
        let read = Arc::new(Mutex::new(None));
        let place = Arc::clone(&read);
        let finish = move |py: Python<'_>, filled: T| {
            let read = finish(py, filled)?;
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
            Ok(PyBool::new(py, true).to_owned().into_any().unbind())
        };
        let begun = Mutex::new(Some(aio::submit(py, live, future, finish, None)?));
        Ok(Py::new(py, Step::new(AwaitedRead { begun, read }))?.into_any())
    }
}

impl Arriving for AwaitedRead {
    fn take(&self, _py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(read.map(Read::hand_over))
    }

    fn arrival(&self, _py: Python<'_>) -> PyResult<Py<PyAny>> {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).take();
        begun.ok_or_else(|| PyRuntimeError::new_err("a read can be awaited once; call read again"))
    }
}

/// What belongs to the process that opened the stream.
struct Held {
    shared: Arc<Shared>,
    live: Arc<Live>,
}

impl Held {
    /// Stops what is in flight and lets go of what has landed.
    fn end(&self) {
        self.shared.closing.cancel();
        let flow = Arc::clone(&self.shared.flow);
        // Without threads there is nothing in flight.
        if let Ok(threads) = runtime::threads() {
            threads.handle().spawn(async move {
                let mut flow = flow.lock().await;
                flow.stream = None;
                flow.landed.clear();
            });
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.end();
    }
}

/// What both views of a stream do.
struct Reading {
    held: Inherited<Held>,
    closed: AtomicBool,
    awaitable: bool,
}

impl Reading {
    fn new(live: Arc<Live>, stream: ObjectStream, awaitable: bool) -> Reading {
        let info = Mutex::new(stream.info().clone());
        let length = stream.length();
        let flow = Flow { stream: Some(stream), landed: VecDeque::new(), taken: 0, trouble: None };
        let shared = Shared {
            flow: Arc::new(tokio::sync::Mutex::new(flow)),
            info,
            length,
            position: AtomicU64::new(0),
            torn: AtomicBool::new(false),
            closing: CancellationToken::new(),
        };
        let held = Inherited::new(Held { shared: Arc::new(shared), live });
        Reading { held, closed: AtomicBool::new(false), awaitable }
    }

    fn held(&self) -> PyResult<&Held> {
        self.held.get().ok_or_else(|| errors::inherited("stream"))
    }

    fn next(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let held = self.held()?;
        let shared = Arc::clone(&held.shared);
        let future = async move {
            let part = shared.unless_closed(shared.part()).await;
            Ok((shared, part))
        };
        let finish = |py: Python<'_>, (shared, part): (Arc<Shared>, Result<Turn, Trouble>)| {
            let turn = part.map_err(|trouble| trouble.raise(py))?;
            match shared.take(turn) {
                Some(part) => Ok(Py::new(py, part)?.into_any()),
                None => Err(PyStopIteration::new_err(())),
            }
        };
        Call { future, finish, watch: None }.run(py, &held.live, false)
    }

    fn read(&self, py: Python<'_>, size: Option<i64>) -> PyResult<Py<PyAny>> {
        let shared = &self.held()?.shared;
        let left = shared.length - shared.position.load(Ordering::Relaxed).min(shared.length);
        let size = size.and_then(|size| u64::try_from(size).ok()).map_or(left, |size| size.min(left));
        let size = usize::try_from(size).map_err(|_| errors::config("more bytes than an object can have"))?;
        self.fill(py, NewBytes::new(py, size)?, |py, bytes, filled| Ok(bytes.finish(py, filled).into_any()))
    }

    fn readinto(&self, py: Python<'_>, destination: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.fill(py, Lent::new(destination)?, |py, lent, filled| {
            lent.release(py);
            Ok(filled.into_pyobject(py)?.into_any().unbind())
        })
    }

    fn fill<B: AsMut<[u8]> + Send + 'static>(
        &self,
        py: Python<'_>,
        mut into: B,
        finish: impl FnOnce(Python<'_>, B, u64) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Py<PyAny>> {
        let held = self.held()?;
        let shared = &held.shared;
        if shared.closing.is_cancelled() {
            return Err(Trouble::Closed.raise(py));
        }
        let room = into.as_mut().len();
        if !self.awaitable
            && room <= COPY_HERE
            && let Some(mut turn) = shared.try_turn()
            && turn.flow.waiting() >= room
            && turn.flow.taken + (room as u64) < shared.length
        {
            turn.undelivered = turn.flow.copy(into.as_mut());
            let undelivered = turn.undelivered;
            turn.deliver(shared);
            return finish(py, into, undelivered as u64);
        }
        let shared = Arc::clone(shared);
        let future = async move {
            let filled = shared.unless_closed(shared.fill(into.as_mut())).await;
            Ok((shared, into, filled))
        };
        type Filled<B> = (Arc<Shared>, B, Result<Turn, Trouble>);
        let finish = move |py: Python<'_>, (shared, into, filled): Filled<B>| {
            let turn = match filled {
                Ok(turn) => turn,
                Err(trouble) => {
                    drop(into);
                    return Err(trouble.raise(py));
                }
            };
            let undelivered = Undelivered { bytes: turn.leave(), shared };
            let value = finish(py, into, undelivered.bytes)?;
            Ok(Read { value, undelivered })
        };
        if self.awaitable {
            return AwaitedRead::begin(py, &held.live, future, finish);
        }
        let finish = |py: Python<'_>, filled: Filled<B>| Ok(finish(py, filled)?.hand_over());
        Call { future, finish, watch: None }.run(py, &held.live, false)
    }

    fn info(&self) -> ObjectInfo {
        let info = self.held.read_only().shared.info.lock();
        ObjectInfo::from(info.unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn length(&self) -> u64 {
        self.held.read_only().shared.length
    }

    fn tell(&self) -> u64 {
        self.held.read_only().shared.position.load(Ordering::Relaxed)
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    fn close(&self) {
        if !self.closed.swap(true, Ordering::Relaxed)
            && let Some(held) = self.held.get()
        {
            held.end();
        }
    }

    fn describe(&self, name: &str) -> String {
        let state = if self.is_closed() { ", closed" } else { "" };
        format!("<wirespeed.{name} at {} of {} bytes{state}>", self.tell(), self.length())
    }
}

/// An object in order, fetched ahead: iterate over its parts (`Buffer`), or read it as a file.
///
/// Iterating copies nothing; `read` and `readinto` copy each byte once, from where it landed. Threads
/// that share a stream take turns. Dropped or closed, it stops what is in flight. It is not seekable:
/// ``io.BufferedReader(stream)`` adds lines and peeking, ``io.TextIOWrapper(stream)`` text.
#[pyclass(frozen, weakref, module = "wirespeed")]
pub(crate) struct Stream(Reading);

/// As `Stream`, for ``async for`` and ``await``.
#[pyclass(frozen, weakref, module = "wirespeed")]
pub(crate) struct AsyncStream(Reading);

macro_rules! both {
    ($name:ident, $text:literal) => {
        #[pymethods]
        impl $name {
            /// What the server says of the object; when the stream has ended, also whether its bytes agreed
            /// with its checksum.
            #[getter]
            fn info(&self) -> ObjectInfo {
                self.0.info()
            }

            /// Bytes that the whole stream has.
            #[getter]
            fn length(&self) -> u64 {
                self.0.length()
            }

            /// Reads `size` bytes, fewer only at the end; all that are left without a size, or with a negative
            /// one. One copy: from where they landed into the new ``bytes``.
            #[pyo3(signature = (size=-1, /), text_signature = "($self, size=-1, /)")]
            fn read(&self, py: Python<'_>, size: Option<i64>) -> PyResult<Py<PyAny>> {
                self.0.read(py, size)
            }

            /// Fills a writable buffer, less of it only at the end, and returns how many bytes that took. One
            /// copy: from where they landed.
            #[pyo3(signature = (destination, /))]
            fn readinto(&self, py: Python<'_>, destination: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                self.0.readinto(py, destination)
            }

            /// Bytes that have been read.
            fn tell(&self) -> u64 {
                self.0.tell()
            }

            /// Whether it is closed.
            #[getter]
            fn closed(&self) -> bool {
                self.0.is_closed()
            }

            /// Stops what is in flight. Reading on is an error; closing again is none.
            fn close(&self) {
                self.0.close();
            }

            fn __repr__(&self) -> String {
                self.0.describe($text)
            }
        }
    };
}

both!(Stream, "Stream");
both!(AsyncStream, "AsyncStream");

#[pymethods]
impl Stream {
    /// Always true, as `io` asks.
    fn readable(&self) -> bool {
        true
    }

    /// Always false, as `io` asks.
    fn writable(&self) -> bool {
        false
    }

    /// Always false: open another stream with ``range=`` to read elsewhere.
    fn seekable(&self) -> bool {
        false
    }

    /// Does nothing, as `io` asks of what is read.
    fn flush(&self) {}

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.0.next(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        kind: Option<&Bound<'_, PyType>>,
        error: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) {
        let _ = (kind, error, traceback);
        self.0.close();
    }
}

impl Arriving for Py<AsyncStream> {
    fn take(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let shared = &self.get().0.held()?.shared;
        if shared.closing.is_cancelled() {
            return Ok(None);
        }
        let part = shared.try_turn().and_then(|turn| shared.take(turn));
        part.map(|part| Ok(Py::new(py, part)?.into_any())).transpose()
    }

    fn arrival(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let held = self.get().0.held()?;
        let shared = Arc::clone(&held.shared);
        let future = async move {
            let part = shared.unless_closed(shared.part()).await;
            Ok(part.map(|turn| !turn.flow.landed.is_empty()))
        };
        let finish = |py: Python<'_>, landed: Result<bool, Trouble>| {
            let landed = landed.map_err(|trouble| trouble.raise(py))?;
            Ok(PyBool::new(py, landed).to_owned().into_any().unbind())
        };
        aio::submit(py, &held.live, future, finish, None)
    }
}

#[pymethods]
impl AsyncStream {
    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__(slf: Py<Self>) -> Step {
        Step::new(slf)
    }

    fn __aenter__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        aio::ready(slf.py(), slf.as_any().clone().unbind())
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __aexit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyType>>,
        error: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let _ = (kind, error, traceback);
        self.0.close();
        aio::ready(py, py.None())
    }
}

#[pymethods]
impl Verbs {
    /// Opens an object to be read in order; returns when the server has answered.
    ///
    /// Parts are fetched ahead of the reader: `window` bytes of them at most, at least 128 KiB, a
    /// quarter of the client's memory where none is given. What went wrong is raised where the bytes
    /// would have come, a checksum that does not agree at the end.
    ///
    /// `range`, `verify` and the options are those of `get`, and so is what it raises.
    #[pyo3(signature = (r#where, *, bucket=None, range=None, window=None, verify=None, **options))]
    fn stream(
        &self,
        py: Python<'_>,
        r#where: &Bound<'_, PyAny>,
        bucket: Option<&str>,
        range: Option<&Bound<'_, PyAny>>,
        window: Option<&Bound<'_, PyAny>>,
        verify: Option<bool>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let location = Location::object(r#where, bucket)?;
        let wanted = Wanted::parse(range)?;
        let window = window.map(|window| bytes("window", window)).transpose()?;
        let options = ReadOptions::parse(options)?;
        let live = self.live(py)?;
        let mut get = get::request(&live.engine, location, wanted, options);
        if let Some(window) = window {
            get = get.window(window);
        }
        if let Some(verify) = verify {
            get = get.verify(verify);
        }
        let (awaitable, owner) = (self.awaitable, Arc::clone(&live));
        let finish = move |py: Python<'_>, stream| {
            let reading = Reading::new(owner, stream, awaitable);
            Ok(match awaitable {
                true => Py::new(py, AsyncStream(reading))?.into_any(),
                false => Py::new(py, Stream(reading))?.into_any(),
            })
        };
        Call { future: get.stream(), finish, watch: None }.run(py, &live, self.awaitable)
    }
}

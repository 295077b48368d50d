//! An object that is written as a file is: piece by piece, its length known at the end.
//!
//! Owns: what a file-like object promises, in two views; the bytes take the way of [`crate::feed`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use wirespeed::PutOutcome;

use crate::call::Call;
use crate::client::Verbs;
use crate::errors;
use crate::feed::{Trouble, Upload};
use crate::fork::Inherited;
use crate::info::PutResult;
use crate::location::Location;
use crate::memory::Shared;
use crate::options::{WriteOptions, bytes};
use crate::{aio, put};

/// What both views of a writer do.
struct Writing {
    upload: Inherited<Upload>,
    position: AtomicU64,
    closed: AtomicBool,
    result: Arc<OnceLock<Py<PutResult>>>,
    awaitable: bool,
}

impl Writing {
    fn upload(&self) -> PyResult<&Upload> {
        self.upload.get().ok_or_else(|| errors::inherited("writer"))
    }

    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let upload = self.upload()?;
        if self.is_closed() {
            return Err(Trouble::Closed.raise(py));
        }
        let piece = piece(data)?;
        let length = piece.as_ref().len();
        if upload.take_at_once(&piece) {
            self.position.fetch_add(length as u64, Ordering::Relaxed);
            let length = length.into_pyobject(py)?.into_any().unbind();
            return if self.awaitable { aio::ready(py, length) } else { Ok(length) };
        }
        let taken = upload.take(py, piece, self.awaitable)?;
        self.position.fetch_add(length as u64, Ordering::Relaxed);
        Ok(taken)
    }

    fn close(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let upload = self.upload()?;
        if self.closed.swap(true, Ordering::Relaxed) {
            return self.nothing(py);
        }
        let (feed, result) = (&upload.feed, Arc::clone(&self.result));
        let finishing = feed.finish();
        let future = async move { Ok(finishing.await) };
        let finish = move |py: Python<'_>, outcome: Result<PutOutcome, Trouble>| {
            let outcome = outcome.map_err(|trouble| trouble.raise(py))?;
            let _ = result.set(Py::new(py, PutResult::from(outcome))?);
            Ok(py.None())
        };
        Call { future, finish, watch: None }.run(py, &upload.live, self.awaitable)
    }

    fn abort(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let upload = self.upload()?;
        if self.closed.swap(true, Ordering::Relaxed) {
            return self.nothing(py);
        }
        let finish = |py: Python<'_>, aborted: Result<(), Trouble>| {
            aborted.map_err(|trouble| trouble.raise(py))?;
            Ok(py.None())
        };
        let feed = upload.feed.clone();
        let future = async move { Ok(feed.abort().await) };
        Call { future, finish, watch: None }.run(py, &upload.live, self.awaitable)
    }

    /// The end of a `with` block. What cannot be cleaned up after an exception is a note to it.
    fn exit(&self, py: Python<'_>, error: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        let Some(upload) = self.upload.get() else { return self.nothing(py) };
        let Some(error) = error else { return self.close(py) };
        if self.closed.swap(true, Ordering::Relaxed) {
            return self.nothing(py);
        }
        let (feed, error) = (upload.feed.clone(), error.clone().unbind());
        let future = async move { Ok(feed.abort().await) };
        let finish = move |py: Python<'_>, aborted: Result<(), Trouble>| {
            if let Err(trouble) = aborted {
                let note = format!("the upload could not be aborted: {}", trouble.raise(py).value(py));
                error.call_method1(py, intern!(py, "add_note"), (note,))?;
            }
            Ok(py.None())
        };
        Call { future, finish, watch: None }.run(py, &upload.live, self.awaitable)
    }

    fn nothing(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if self.awaitable { aio::ready(py, py.None()) } else { Ok(py.None()) }
    }

    fn tell(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    fn result(&self, py: Python<'_>) -> Option<Py<PutResult>> {
        self.result.get().map(|result| result.clone_ref(py))
    }

    fn describe(&self, name: &str) -> String {
        let state = if self.is_closed() { ", closed" } else { "" };
        format!("<wirespeed.{name} at {} bytes{state}>", self.tell())
    }
}

/// The memory of something that is written.
fn piece(data: &Bound<'_, PyAny>) -> PyResult<Shared> {
    put::refuse_text(data)?;
    Shared::new(data)?.ok_or_else(|| match data.get_type().name() {
        Ok(kind) => {
            PyTypeError::new_err(format!("what is written is bytes-like (bytes, memoryview, an array), not {kind}"))
        }
        Err(trouble) => trouble,
    })
}

/// An object being written: parts go out as they fill, the object appears at `close`.
///
/// Leaving the ``with`` block by an exception, or dropping the writer unclosed, aborts: no object,
/// no parts left behind. So does a `write` or `close` that is stopped half-way by Ctrl-C.
///
/// It is what `json.dump` (inside ``io.TextIOWrapper``), `pickle.dump`, `zipfile`, `tarfile`
/// (``mode="w|"``), `numpy.save` and `torch.save` write to. A wrapper such as ``io.TextIOWrapper``
/// closes what it wraps also after an exception: leave the writer's own ``with`` block around it.
#[pyclass(frozen, weakref, module = "wirespeed")]
pub(crate) struct Writer(Writing);

/// As `Writer`, awaitable.
#[pyclass(frozen, weakref, module = "wirespeed")]
pub(crate) struct AsyncWriter(Writing);

macro_rules! both {
    ($name:ident, $text:literal) => {
        #[pymethods]
        impl $name {
            /// Takes the bytes, which may be changed again afterwards, and returns how many there were. Waits
            /// while too many are unsent.
            ///
            /// Raises what has gone wrong with the upload meanwhile; nothing is stored then.
            #[pyo3(signature = (data, /))]
            fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                self.0.write(py, data)
            }

            /// Sends what is left and stores the object; `result` then says what the server said. Closing again
            /// does nothing.
            ///
            /// Raises as `put`; nothing is stored then, and the writer is closed all the same.
            fn close(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
                self.0.close(py)
            }

            /// Ends it without an object, and returns when the server has no parts of it any more. After `close`
            /// it does nothing.
            ///
            /// Raises where the parts could not be removed; the exception's `upload_id` names them.
            fn abort(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
                self.0.abort(py)
            }

            /// Bytes that have been written.
            fn tell(&self) -> u64 {
                self.0.tell()
            }

            /// Whether it is closed.
            #[getter]
            fn closed(&self) -> bool {
                self.0.is_closed()
            }

            /// What the server said, once closed.
            #[getter]
            fn result(&self, py: Python<'_>) -> Option<Py<PutResult>> {
                self.0.result(py)
            }

            fn __repr__(&self) -> String {
                self.0.describe($text)
            }
        }
    };
}

both!(Writer, "Writer");
both!(AsyncWriter, "AsyncWriter");

#[pymethods]
impl Writer {
    /// Always true, as `io` asks.
    fn writable(&self) -> bool {
        true
    }

    /// Always false, as `io` asks.
    fn readable(&self) -> bool {
        false
    }

    /// Always false: parts that were sent cannot be changed.
    fn seekable(&self) -> bool {
        false
    }

    /// Does nothing, as `io` asks: parts go out when they are full, and the object appears at `close`.
    fn flush(&self) {}

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyType>>,
        error: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (kind, traceback);
        self.0.exit(py, error).map(drop)
    }
}

#[pymethods]
impl AsyncWriter {
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
        let _ = (kind, traceback);
        self.0.exit(py, error)
    }
}

#[pymethods]
impl Verbs {
    /// Opens an object to be written piece by piece: one request, or a multipart upload, by what comes.
    ///
    /// Returns a `Writer` (`AsyncWriter` in the awaitable view) at once, in both views; nothing is sent
    /// before there is something to send. `expected_size` in bytes makes the parts large enough for
    /// objects of more than 7.8 TiB. The options are those of `put`.
    #[pyo3(signature = (r#where, *, bucket=None, expected_size=None, **options),
           text_signature = "($self, where, *, bucket=None, expected_size=0, **options)")]
    fn writer(
        &self,
        py: Python<'_>,
        r#where: &Bound<'_, PyAny>,
        bucket: Option<&str>,
        expected_size: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let location = Location::object(r#where, bucket)?;
        let options = WriteOptions::parse(options)?;
        let expected_size = expected_size.map_or(Ok(0), |size| bytes("expected_size", size))?;
        let live = self.live(py)?;
        let upload = Upload::begin(&live, put::request(&live.engine, location, options).expected_size(expected_size))?;
        let writing = Writing {
            upload: Inherited::new(upload),
            position: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            result: Arc::new(OnceLock::new()),
            awaitable: self.awaitable,
        };
        Ok(match self.awaitable {
            true => Py::new(py, AsyncWriter(writing))?.into_any(),
            false => Py::new(py, Writer(writing))?.into_any(),
        })
    }
}

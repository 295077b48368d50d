//! The engine's errors as Python's exceptions.
//!
//! The tree itself is Python (`wirespeed/errors.py`), where deriving from two classes is a line. A
//! kind becomes the class of that name, and the context its attributes.

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use wirespeed::{Error, ErrorKind};

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("wirespeed.errors").map(Bound::unbind))?;
    Ok(module.bind(py).getattr(name)?.cast_into::<PyType>()?)
}

/// For what the system said with this number.
fn local_class(errno: Option<i32>) -> &'static str {
    if errno == Some(libc::ENOENT) { "LocalFileNotFoundError" } else { "LocalIOError" }
}

fn class_of(kind: ErrorKind, errno: Option<i32>) -> &'static str {
    match kind {
        ErrorKind::NotFound => "NotFoundError",
        ErrorKind::Precondition => "PreconditionError",
        ErrorKind::Conflict => "ConflictError",
        ErrorKind::Denied => "DeniedError",
        ErrorKind::Throttled => "ThrottledError",
        ErrorKind::Timeout => "TimedOutError",
        ErrorKind::Connection => "BrokenConnectionError",
        ErrorKind::Integrity => "IntegrityError",
        ErrorKind::Config => "ConfigError",
        ErrorKind::Cancelled => "CancelledError",
        ErrorKind::Io => local_class(errno),
        ErrorKind::Protocol => "ProtocolError",
        ErrorKind::Server => "ServerError",
        _ => "WirespeedError",
    }
}

/// An exception for what the engine says.
pub(crate) fn from_engine(py: Python<'_>, error: &Error) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let fields = PyDict::new(py);
        fields.set_item("operation", error.operation())?;
        fields.set_item("bucket", error.bucket())?;
        fields.set_item("key", error.key())?;
        fields.set_item("status", error.status())?;
        fields.set_item("code", error.code())?;
        fields.set_item("request_id", error.request_id())?;
        fields.set_item("attempts", error.attempts())?;
        fields.set_item("elapsed", error.elapsed().as_secs_f64())?;
        fields.set_item("upload_id", error.upload_id())?;
        let sources = std::iter::successors(std::error::Error::source(error), |source| source.source());
        let mut os_errors = sources.filter_map(|source| source.downcast_ref::<std::io::Error>()?.raw_os_error());
        let errno = os_errors.next();
        fields.set_item("errno", errno)?;
        let exception = class(py, class_of(error.kind(), errno))?.call((error.to_string(),), Some(&fields))?;
        Ok(PyErr::from_value(exception))
    };
    made().unwrap_or_else(|trouble| trouble)
}

fn raise(name: &str, message: String) -> PyErr {
    Python::attach(|py| match class(py, name).and_then(|class| class.call1((message,))) {
        Ok(exception) => PyErr::from_value(exception),
        Err(trouble) => trouble,
    })
}

/// What the caller gave cannot be used.
pub(crate) fn config(message: impl Into<String>) -> PyErr {
    raise("ConfigError", message.into())
}

/// The machine would not.
pub(crate) fn local_io(message: impl Into<String>) -> PyErr {
    raise("LocalIOError", message.into())
}

/// The same, with the system's number.
pub(crate) fn system(py: Python<'_>, message: &str, source: &std::io::Error) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let fields = PyDict::new(py);
        let errno = source.raw_os_error();
        fields.set_item("errno", errno)?;
        Ok(PyErr::from_value(class(py, local_class(errno))?.call((message,), Some(&fields))?))
    };
    made().unwrap_or_else(|trouble| trouble)
}

/// The work was stopped before it finished.
pub(crate) fn cancelled(message: impl Into<String>) -> PyErr {
    raise("CancelledError", message.into())
}

const STOPPED: &str = "the call was stopped: the client was closed, or the interpreter ends";

/// Makes sure that [`ending`] finds what it needs.
pub(crate) fn prepare(py: Python<'_>) {
    if let Err(trouble) = class(py, "CancelledError") {
        trouble.write_unraisable(py, None);
    }
}

/// A call was begun in one thread while another ends the interpreter. Made without running a line of
/// Python, which might find the interpreter gone.
pub(crate) fn ending(py: Python<'_>) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let class = class(py, "CancelledError")?;
        let exception = class.call_method1(intern!(py, "__new__"), (&class, STOPPED))?;
        for name in ["operation", "bucket", "key", "status", "code", "request_id", "upload_id"] {
            exception.setattr(name, py.None())?;
        }
        exception.setattr("attempts", 0)?;
        exception.setattr("elapsed", 0.0)?;
        Ok(PyErr::from_value(exception))
    };
    made().unwrap_or_else(|trouble| trouble)
}

/// A call ended without a result.
pub(crate) fn stopped(because_of_us: bool) -> PyErr {
    if because_of_us {
        return cancelled(STOPPED);
    }
    let message = "the call ended without a result: one of its tasks panicked, which is a bug in wirespeed; what it \
                   said is on stderr, please report it";
    raise("WirespeedError", message.into())
}

/// Something was used that was made before a fork.
pub(crate) fn inherited(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!(
        "this {what} was begun before the fork, and its threads are the parent's; begin one here"
    ))
}

/// For `map_err` where the interpreter is at hand.
pub(crate) trait Raised<T> {
    fn raised(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> Raised<T> for Result<T, Error> {
    fn raised(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| from_engine(py, &error))
    }
}

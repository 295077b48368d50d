//! One step of an ``async for`` over what arrives in its own time.
//!
//! What has arrived is there without going through the loop. What has not is waited for by a future
//! that says no more than that something is there; it is taken when whoever waits is woken. A task that
//! is cancelled, even in the very turn in which something arrived for it, thus takes nothing with it.

use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyStopAsyncIteration, PyStopIteration};
use pyo3::intern;
use pyo3::prelude::*;

/// Where the steps take what they give.
pub(crate) trait Arriving: Send + Sync + 'static {
    /// The next of what has arrived. It is gone with that.
    fn take(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>>;

    /// An asyncio future, begun, of whether something has arrived; false is the end. Somebody else may be
    /// faster to take it.
    fn arrival(&self, py: Python<'_>) -> PyResult<Py<PyAny>>;
}

/// The next of what arrives, to be awaited.
#[pyclass(frozen, name = "_Step", module = "wirespeed")]
pub(crate) struct Step {
    of: Box<dyn Arriving>,
    /// What the future that is waited for gives its loop.
    waiting: Mutex<Option<Py<PyAny>>>,
}

impl Step {
    pub(crate) fn new(of: impl Arriving) -> Step {
        Step { of: Box::new(of), waiting: Mutex::default() }
    }

    fn waiting(&self) -> MutexGuard<'_, Option<Py<PyAny>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on waiting. What the loop is to see, or whether something has arrived.
    fn resume(&self, py: Python<'_>, waiting: Py<PyAny>) -> PyResult<ControlFlow<Py<PyAny>, bool>> {
        match waiting.call_method0(py, intern!(py, "__next__")) {
            Ok(seen) => {
                *self.waiting() = Some(waiting);
                Ok(ControlFlow::Break(seen))
            }
            Err(ended) if ended.is_instance_of::<PyStopIteration>(py) => {
                ended.value(py).getattr(intern!(py, "value"))?.extract().map(ControlFlow::Continue)
            }
            Err(error) => Err(error),
        }
    }
}

#[pymethods]
impl Step {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        loop {
            let waiting = self.waiting().take();
            let waiting = match waiting {
                Some(waiting) => waiting,
                None => {
                    if let Some(taken) = self.of.take(py)? {
                        return Err(PyStopIteration::new_err((taken,)));
                    }
                    self.of.arrival(py)?.call_method0(py, intern!(py, "__await__"))?
                }
            };
            match self.resume(py, waiting)? {
                ControlFlow::Break(seen) => return Ok(seen),
                ControlFlow::Continue(true) => {}
                ControlFlow::Continue(false) => return Err(PyStopAsyncIteration::new_err(())),
            }
        }
    }

    /// Raises it where it waits.
    #[pyo3(signature = (kind, value=None, traceback=None))]
    fn throw(
        &self,
        kind: &Bound<'_, PyAny>,
        value: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let py = kind.py();
        let waiting = self.waiting().take();
        match waiting {
            // Newer interpreters warn of three arguments.
            Some(waiting) if value.is_none() && traceback.is_none() => {
                waiting.call_method1(py, intern!(py, "throw"), (kind,))
            }
            Some(waiting) => waiting.call_method1(py, intern!(py, "throw"), (kind, value, traceback)),
            None => Err(PyErr::from_value(value.unwrap_or(kind).clone())),
        }
    }

    /// Waits no more.
    fn close(&self) {
        drop(self.waiting().take());
    }
}

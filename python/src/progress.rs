//! How far a call has come, told to a callback from the thread that waits.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use pyo3::prelude::*;

use crate::call::TICK;
use crate::runtime;

/// How far a call has come; what a progress callback is given, about ten times a second and once
/// at the end.
#[pyclass(frozen, name = "Progress", module = "wirespeed")]
pub(crate) struct Snapshot {
    /// Bytes that have arrived (or, of an upload, that the server has accepted).
    #[pyo3(get)]
    bytes: u64,
    /// Bytes known to be on their way or there; grows as sizes become known.
    #[pyo3(get)]
    expected: u64,
    /// Objects that are complete.
    #[pyo3(get)]
    objects: u64,
}

#[pymethods]
impl Snapshot {
    fn __repr__(&self) -> String {
        format!("Progress(bytes={}, expected={}, objects={})", self.bytes, self.expected, self.objects)
    }
}

/// A callback, and the counts that it is told.
pub(crate) struct Watch {
    counts: wirespeed::Progress,
    callback: Py<PyAny>,
    told: Option<(u64, u64, u64)>,
    looked: Instant,
}

impl Watch {
    /// Counts for the engine to fill, and who is to be told of them.
    pub(crate) fn new(callback: Option<Py<PyAny>>) -> (wirespeed::Progress, Option<Watch>) {
        let counts = wirespeed::Progress::default();
        let watch =
            callback.map(|callback| Watch { counts: counts.clone(), callback, told: None, looked: Instant::now() });
        (counts, watch)
    }

    /// Tells what has changed since the last time.
    pub(crate) fn tell(&mut self, py: Python<'_>) -> PyResult<()> {
        self.looked = Instant::now();
        let now = (self.counts.bytes(), self.counts.expected(), self.counts.objects());
        if self.told == Some(now) {
            return Ok(());
        }
        self.told = Some(now);
        let (bytes, expected, objects) = now;
        let snapshot = Snapshot { bytes, expected, objects };
        runtime::threads()?.calling(py, || self.callback.call1(py, (snapshot,))).map(drop)
    }

    /// The same, where the last time was a tick ago: for loops of waits that are shorter than that.
    pub(crate) fn tell_if_due(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.looked.elapsed() < TICK { Ok(()) } else { self.tell(py) }
    }
}

/// A watch that several may tell of, one at a time. The callback is called without the lock: it may do
/// anything, wait for the others too. Who finds it being told skips.
#[derive(Clone)]
pub(crate) struct SharedWatch(Arc<Mutex<Option<Watch>>>);

impl SharedWatch {
    pub(crate) fn new(watch: Option<Watch>) -> SharedWatch {
        SharedWatch(Arc::new(Mutex::new(watch)))
    }

    /// For a wait that tells it; whoever takes it puts it back.
    pub(crate) fn take(&self) -> Option<Watch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn put_back(&self, watch: Watch) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(watch);
    }

    /// As `Watch::tell_if_due`.
    pub(crate) fn tell_if_due(&self, py: Python<'_>) -> PyResult<()> {
        let Some(mut watch) = self.take() else { return Ok(()) };
        let told = watch.tell_if_due(py);
        self.put_back(watch);
        told
    }

    /// As `Watch::tell`.
    pub(crate) fn tell(&self, py: Python<'_>) -> PyResult<()> {
        let Some(mut watch) = self.take() else { return Ok(()) };
        let told = watch.tell(py);
        self.put_back(watch);
        told
    }
}

//! What comes of the items as they finish: an iterator, of which each step that has nothing left asks
//! the engine for the next batch.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex as BlockingMutex, PoisonError};

use pyo3::exceptions::{PyStopAsyncIteration, PyStopIteration};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyType};
use tokio::sync::Mutex;
use wirespeed::{Error, Progress, Result};

use super::coming::{self, Coming, Delivered};
use super::items::{Prepared, Request};
use super::{OnError, Verbs};
use crate::call::{Call, STOPPING, wait};
use crate::client::Live;
use crate::errors::{self, Raised};
use crate::fork::Inherited;
use crate::memory::{self, Lending};
use crate::progress::Watch;
use crate::runtime;

type Batch = Vec<(usize, Result<Delivered>)>;
type Value = fn(Python<'_>, Result<Delivered>) -> PyResult<Py<PyAny>>;

enum Stage {
    Prepared(Prepared, Progress),
    Begun(Coming),
    Failed(Error),
    Ended,
}

impl Stage {
    /// Under way, where it was not yet.
    fn begun(self, live: &Live) -> Stage {
        match self {
            Stage::Prepared(prepared, progress) => {
                Coming::begin(&live.engine, prepared, progress).map_or_else(Stage::Failed, Stage::Begun)
            }
            other => other,
        }
    }
}

/// A bulk call under way.
#[derive(Clone)]
struct Bulk {
    live: Arc<Live>,
    stage: Arc<Inherited<Mutex<Stage>>>,
}

impl Bulk {
    fn new(live: &Arc<Live>, prepared: Prepared, progress: Progress) -> Bulk {
        let stage = Inherited::new(Mutex::new(Stage::Prepared(prepared, progress)));
        Bulk { live: Arc::clone(live), stage: Arc::new(stage) }
    }

    /// Refuses what was begun before a fork.
    fn ours(&self) -> PyResult<()> {
        if self.stage.is_ours() { Ok(()) } else { Err(errors::inherited("bulk call")) }
    }

    /// The next outcomes: none after the last. Dropped before it has them, it has taken none.
    async fn batch(self) -> Result<Batch> {
        let Bulk { live, stage } = self;
        let mut batch = Vec::new();
        let Some(stage) = stage.get() else { return Ok(batch) };
        let mut stage = stage.lock().await;
        *stage = std::mem::replace(&mut *stage, Stage::Ended).begun(&live);
        if let Stage::Begun(coming) = &mut *stage
            && coming.next_batch(&mut batch).await > 0
        {
            return Ok(batch);
        }
        match std::mem::replace(&mut *stage, Stage::Ended) {
            Stage::Failed(error) => Err(error),
            _ => Ok(batch),
        }
    }

    /// Begins now, before anybody asks for an outcome.
    fn begin(&self) -> PyResult<()> {
        let Bulk { live, stage } = self.clone();
        let threads = runtime::threads()?;
        threads.spawn(self.live.stopping(threads), async move {
            if let Some(stage) = stage.get() {
                let mut stage = stage.lock().await;
                *stage = std::mem::replace(&mut *stage, Stage::Ended).begun(&live);
            }
        });
        Ok(())
    }

    /// Stops what is in flight, where its tasks run.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let Bulk { live, stage } = self.clone();
        let stopped = async move {
            if let Some(stage) = stage.get() {
                *stage.lock().await = Stage::Ended;
            }
            Ok(())
        };
        wait(py, &live, stopped, &mut None)
    }
}

struct Iterating {
    bulk: Bulk,
    ready: BlockingMutex<VecDeque<(usize, Result<Delivered>)>>,
    on_error: OnError,
    watch: BlockingMutex<Option<Watch>>,
    value: Value,
    /// The caller's destinations, which are the caller's again once it is closed.
    lending: Option<Lending>,
}

/// An outcome on its way to Python, or the end: put back where a call is stopped before it is taken.
struct Taken {
    iterating: Arc<Iterating>,
    outcome: Option<(usize, Result<Delivered>)>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(outcome) = self.outcome.take() {
            self.iterating.ready.lock().unwrap_or_else(PoisonError::into_inner).push_front(outcome);
        }
    }
}

impl Iterating {
    /// What has finished and was not taken yet.
    fn pop(&self) -> Option<(usize, Result<Delivered>)> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// The next outcome; on the engine's threads.
    async fn next(self: Arc<Self>) -> Result<Taken> {
        loop {
            let mut outcome = self.pop();
            if outcome.is_none() {
                let batch = self.bulk.clone().batch().await?;
                if !batch.is_empty() {
                    self.ready.lock().unwrap_or_else(PoisonError::into_inner).extend(batch);
                    continue;
                }
                outcome = self.pop();
            }
            return Ok(Taken { iterating: self, outcome });
        }
    }

    /// An outcome as Python's.
    fn give(&self, py: Python<'_>, (index, outcome): (usize, Result<Delivered>)) -> PyResult<(usize, Py<PyAny>)> {
        let outcome = match (outcome, self.on_error) {
            (Err(error), OnError::Raise) => return Err(error).raised(py),
            (outcome, _) => outcome,
        };
        Ok((index, (self.value)(py, outcome)?))
    }

    fn tell(&self, py: Python<'_>) -> PyResult<()> {
        let watch = &mut *self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch.as_mut().map_or(Ok(()), |watch| watch.tell(py))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let ours = self.bulk.stage.is_ours();
        let stopped = if ours { self.bulk.stop(py) } else { Ok(()) };
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).clear();
        if ours && let Some(lending) = self.lending.clone() {
            runtime::threads()?.detached(py, || lending.wait(STOPPING));
            memory::sweep(py);
        }
        stopped
    }
}

/// What comes of the items of a bulk call, as they finish: ``(index, outcome)``, where a failed item's
/// outcome is its exception if ``errors="return"``. Closed or dropped, it stops the rest.
#[pyclass(frozen, weakref, module = "wirespeed")]
pub(crate) struct Completions(Arc<Iterating>);

#[pymethods]
impl Completions {
    #[classmethod]
    fn __class_getitem__(class: &Bound<'_, PyType>, _item: &Bound<'_, PyAny>) -> Py<PyType> {
        class.clone().unbind()
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<(usize, Py<PyAny>)> {
        if let Some(outcome) = self.0.pop() {
            return self.0.give(py, outcome);
        }
        self.0.bulk.ours()?;
        let mut taken = wait(py, &self.0.bulk.live, Arc::clone(&self.0).next(), &mut None)?;
        self.0.tell(py)?;
        match taken.outcome.take() {
            Some(outcome) => self.0.give(py, outcome),
            None => Err(PyStopIteration::new_err(())),
        }
    }

    /// Stops what is in flight. Nothing more is given.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.close(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _ = (kind, error, traceback);
        self.0.close(py)
    }
}

/// As `Completions`, for ``async for``.
#[pyclass(frozen, weakref, module = "wirespeed")]
pub(crate) struct AsyncCompletions(Arc<Iterating>);

#[pymethods]
impl AsyncCompletions {
    #[classmethod]
    fn __class_getitem__(class: &Bound<'_, PyType>, _item: &Bound<'_, PyAny>) -> Py<PyType> {
        class.clone().unbind()
    }

    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.0.bulk.ours()?;
        let future = Arc::clone(&self.0).next();
        let finish = move |py: Python<'_>, mut taken: Taken| {
            taken.iterating.tell(py)?;
            match taken.outcome.take() {
                Some(outcome) => Ok(taken.iterating.give(py, outcome)?.into_pyobject(py)?.into_any().unbind()),
                None => Err(PyStopAsyncIteration::new_err(())),
            }
        };
        Call { future, finish, watch: None }.run(py, &self.0.bulk.live, true)
    }

    /// Stops what is in flight. Nothing more is given.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.close(py)
    }

    fn __aenter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("wirespeed._driving")?.call_method1("value", (slf,))
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __aexit__<'py>(
        &self,
        py: Python<'py>,
        kind: &Bound<'py, PyAny>,
        error: &Bound<'py, PyAny>,
        traceback: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = (kind, error, traceback);
        self.0.close(py)?;
        py.import("wirespeed._driving")?.call_method1("value", (py.None(),))
    }
}

pub(super) fn begin(
    verbs: &Verbs,
    py: Python<'_>,
    request: Request,
    on_error: OnError,
    progress: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let live = verbs.live(py)?;
    let (counts, watch) = Watch::new(progress);
    let value: Value = if request.copies() { coming::copied } else { coming::value };
    let lending = request.kind.lending();
    let bulk = Bulk::new(&live, request.prepare(py)?, counts);
    bulk.begin()?;
    let watch = BlockingMutex::new(watch);
    let iterating = Iterating { bulk, ready: BlockingMutex::default(), on_error, watch, value, lending };
    Ok(if verbs.awaitable {
        Py::new(py, AsyncCompletions(Arc::new(iterating)))?.into_any()
    } else {
        Py::new(py, Completions(Arc::new(iterating)))?.into_any()
    })
}

/// A list of `bytes` that are copied out of the engine's memory batch by batch, while it is still in
/// the cache and so that it is soon used again.
#[expect(clippy::too_many_arguments)]
pub(super) fn copied(
    py: Python<'_>,
    live: &Arc<Live>,
    request: Request,
    count: usize,
    on_error: OnError,
    counts: Progress,
    mut watch: Option<Watch>,
    awaitable: bool,
) -> PyResult<Py<PyAny>> {
    let bulk = Bulk::new(live, request.prepare(py)?, counts);
    if awaitable {
        let batches = Batches { bulk, on_error, watch: BlockingMutex::new(watch) };
        return py.import("wirespeed._driving")?.call_method1("gather", (batches, count)).map(Bound::unbind);
    }
    let mut values: Vec<Py<PyAny>> = Vec::new();
    values.resize_with(count, || py.None());
    loop {
        let batch = match wait(py, live, bulk.clone().batch(), &mut watch) {
            Ok(batch) => batch,
            Err(raised) => {
                bulk.stop(py)?;
                return Err(raised);
            }
        };
        if batch.is_empty() {
            break;
        }
        for (index, outcome) in batch {
            if let (Err(error), OnError::Raise) = (&outcome, on_error) {
                let raised = errors::from_engine(py, error);
                bulk.stop(py)?;
                return Err(raised);
            }
            if let Some(place) = values.get_mut(index) {
                *place = coming::copied(py, outcome)?;
            }
        }
    }
    if let Some(watch) = &mut watch {
        watch.tell(py)?;
    }
    Ok(PyList::new(py, values)?.into_any().unbind())
}

/// The same for a coroutine.
#[pyclass(frozen, module = "wirespeed._wirespeed")]
struct Batches {
    bulk: Bulk,
    on_error: OnError,
    watch: BlockingMutex<Option<Watch>>,
}

#[pymethods]
impl Batches {
    /// The next outcomes, as pairs of index and value; an empty list after the last.
    fn next_batch(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let this = slf.get();
        let py = slf.py();
        let itself = slf.clone().unbind();
        let on_error = this.on_error;
        let finish = move |py: Python<'_>, batch: Batch| {
            if let Some(watch) = &mut *itself.get().watch.lock().unwrap_or_else(PoisonError::into_inner) {
                watch.tell(py)?;
            }
            let mut values = Vec::with_capacity(batch.len());
            for (index, outcome) in batch {
                if let (Err(error), OnError::Raise) = (&outcome, on_error) {
                    return Err(errors::from_engine(py, error));
                }
                values.push((index, coming::copied(py, outcome)?));
            }
            Ok(PyList::new(py, values)?.into_any().unbind())
        };
        this.bulk.ours()?;
        Call { future: this.bulk.clone().batch(), finish, watch: None }.run(py, &this.bulk.live, true)
    }
}

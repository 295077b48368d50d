//! What comes of the items as they finish: an iterator, of which each step that has nothing left asks
//! the engine for the next batch.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex as BlockingMutex, PoisonError};

use pyo3::exceptions::{PyStopAsyncIteration, PyStopIteration};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyType};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wirespeed::{Error, Progress, Result};

use super::coming::{self, Coming, Delivered};
use super::items::{Prepared, Request};
use super::{OnError, Verbs};
use crate::call::{Call, STOPPING, wait};
use crate::client::Live;
use crate::errors::{self, Raised};
use crate::fork::Inherited;
use crate::memory::{self, Lending};
use crate::progress::{SharedWatch, Watch};
use crate::{aio, runtime};

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
struct Bulk {
    live: Arc<Live>,
    stage: Mutex<Stage>,
    /// Cancelled, it gives nothing more, and whoever waits for something is let go at once.
    closing: CancellationToken,
    /// The caller's destinations that a task may still write to.
    lending: Lending,
}

impl Bulk {
    fn new(live: &Arc<Live>, prepared: Prepared, progress: Progress, lending: Lending) -> Arc<Bulk> {
        let stage = Mutex::new(Stage::Prepared(prepared, progress));
        Arc::new(Bulk { live: Arc::clone(live), stage, closing: CancellationToken::new(), lending })
    }

    /// The next outcomes: none after the last. Dropped before it has them, it has taken none.
    async fn batch(self: Arc<Self>) -> Result<Batch> {
        tokio::select! {
            biased;
            () = self.closing.cancelled() => Ok(Vec::new()),
            batch = self.fetch() => batch,
        }
    }

    async fn fetch(&self) -> Result<Batch> {
        let mut batch = Vec::new();
        let mut stage = self.stage.lock().await;
        *stage = std::mem::replace(&mut *stage, Stage::Ended).begun(&self.live);
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
    fn begin(self: &Arc<Self>) -> PyResult<()> {
        let bulk = Arc::clone(self);
        let threads = runtime::threads()?;
        threads.spawn(self.live.stopping(threads), async move {
            let mut stage = bulk.stage.lock().await;
            *stage = std::mem::replace(&mut *stage, Stage::Ended).begun(&bulk.live);
        });
        Ok(())
    }

    /// Stops what is in flight, and waits until no task writes to the caller's memory.
    async fn end(&self) {
        self.closing.cancel();
        *self.stage.lock().await = Stage::Ended;
        self.lending.clone().over().await;
    }

    /// Stops what is in flight, where its tasks run; without waiting, and also where the client was closed
    /// before.
    fn halt(self: &Arc<Self>) -> PyResult<JoinHandle<()>> {
        self.closing.cancel();
        let bulk = Arc::clone(self);
        Ok(runtime::threads()?.handle().spawn(async move { bulk.end().await }))
    }

    /// The same, and waits until it has ended.
    fn stop(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        let ending = self.halt()?;
        let threads = runtime::threads()?;
        threads.detached(py, || {
            // Longer than that nothing is in flight that was stopped.
            let ended = async { tokio::time::timeout(STOPPING, ending).await.is_ok() };
            threads.handle().block_on(ended)
        });
        memory::sweep(py);
        Ok(())
    }
}

/// What both views do. A child of the process that began it neither uses nor drops it.
struct Iterating {
    bulk: Arc<Bulk>,
    ready: BlockingMutex<VecDeque<(usize, Result<Delivered>)>>,
    on_error: OnError,
    watch: SharedWatch,
    value: Value,
}

/// An outcome on its way to Python, or the end: put back where a call is stopped before it is taken.
struct Taken {
    iterating: Arc<Iterating>,
    outcome: Option<(usize, Result<Delivered>)>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(outcome) = self.outcome.take()
            && !self.iterating.bulk.closing.is_cancelled()
        {
            self.iterating.ready.lock().unwrap_or_else(PoisonError::into_inner).push_front(outcome);
        }
    }
}

impl Iterating {
    /// What has finished and was not taken yet.
    fn pop(&self) -> Option<(usize, Result<Delivered>)> {
        if self.bulk.closing.is_cancelled() {
            return None;
        }
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// The next outcome; on the engine's threads. One that ends the call is given when no task writes to
    /// the caller's memory any more.
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
            if matches!((&outcome, self.on_error), (Some((_, Err(_))), OnError::Raise)) {
                self.bulk.closing.cancel();
                self.forget();
                self.bulk.end().await;
            }
            return Ok(Taken { iterating: self, outcome });
        }
    }

    /// Drops what nobody will take, outside of the lock: that may run Python code.
    fn forget(&self) {
        let ready = std::mem::take(&mut *self.ready.lock().unwrap_or_else(PoisonError::into_inner));
        drop(ready);
    }

    /// An outcome as Python's.
    fn give(&self, py: Python<'_>, (index, outcome): (usize, Result<Delivered>)) -> PyResult<(usize, Py<PyAny>)> {
        let outcome = match (outcome, self.on_error) {
            (Err(error), OnError::Raise) => return Err(error).raised(py),
            (outcome, _) => outcome,
        };
        Ok((index, (self.value)(py, outcome)?))
    }

    /// What has been taken, or that there is nothing more.
    fn given(&self, py: Python<'_>, taken: &mut Taken) -> PyResult<Option<(usize, Py<PyAny>)>> {
        match taken.outcome.take() {
            Some(outcome) => {
                self.watch.tell_if_due(py)?;
                self.give(py, outcome).map(Some)
            }
            None => self.watch.tell(py).map(|()| None),
        }
    }

    /// Gives nothing more, and returns when the caller's memory is the caller's again.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.bulk.closing.cancel();
        self.forget();
        self.bulk.stop(py)
    }

    /// The same without waiting.
    fn halt(&self) -> PyResult<JoinHandle<()>> {
        self.bulk.closing.cancel();
        self.forget();
        self.bulk.halt()
    }
}

/// What comes of the items of a bulk call, as they finish: ``(index, outcome)``, where a failed item's
/// outcome is its exception if ``errors="return"``. Closed or dropped, it stops the rest.
#[pyclass(frozen, weakref, module = "wirespeed")]
pub(crate) struct Completions(Inherited<Arc<Iterating>>);

impl Completions {
    fn iterating(&self) -> PyResult<&Arc<Iterating>> {
        self.0.get().ok_or_else(|| errors::inherited("bulk call"))
    }
}

impl Drop for Completions {
    fn drop(&mut self) {
        let Some(iterating) = self.0.get() else { return };
        // Without threads there is nothing in flight.
        let _ = iterating.halt();
        if !iterating.bulk.lending.is_over() {
            // Whoever drops it may use the destinations at once.
            let _ = Python::try_attach(|py| iterating.close(py));
        }
    }
}

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
        let iterating = self.iterating()?;
        let next = match iterating.pop() {
            Some(outcome) => iterating.give(py, outcome).map(Some),
            None => {
                let mut watch = iterating.watch.take();
                let taken = wait(py, &iterating.bulk.live, Arc::clone(iterating).next(), &mut watch);
                if let Some(watch) = watch {
                    iterating.watch.put_back(watch);
                }
                taken.and_then(|mut taken| iterating.given(py, &mut taken))
            }
        };
        match next {
            Ok(Some(next)) => Ok(next),
            Ok(None) => Err(PyStopIteration::new_err(())),
            Err(raised) => {
                iterating.close(py)?;
                Err(raised)
            }
        }
    }

    /// Stops what is in flight. Nothing more is given; destinations are the caller's again when it returns.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.get().map_or(Ok(()), |iterating| iterating.close(py))
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
        self.close(py)
    }
}

/// As `Completions`, for ``async for``.
#[pyclass(frozen, weakref, module = "wirespeed")]
pub(crate) struct AsyncCompletions(Inherited<Arc<Iterating>>);

impl Drop for AsyncCompletions {
    fn drop(&mut self) {
        if let Some(iterating) = self.0.get() {
            // As of `Completions`; the loop is not to wait.
            let _ = iterating.halt();
        }
    }
}

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
        let iterating = self.0.get().ok_or_else(|| errors::inherited("bulk call"))?;
        let future = Arc::clone(iterating).next();
        let finish = move |py: Python<'_>, mut taken: Taken| {
            let iterating = Arc::clone(&taken.iterating);
            match iterating.given(py, &mut taken) {
                Ok(Some(next)) => Ok(next.into_pyobject(py)?.into_any().unbind()),
                Ok(None) => Err(PyStopAsyncIteration::new_err(())),
                Err(raised) => {
                    drop(iterating.halt()?);
                    Err(raised)
                }
            }
        };
        Call { future, finish, watch: None }.run(py, &iterating.bulk.live, true)
    }

    /// Stops what is in flight. Nothing more is given. What it returns need not be awaited: it is done when
    /// destinations are the caller's again.
    fn close(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let Some(iterating) = self.0.get() else { return aio::ready(py, py.None()) };
        let ending = iterating.halt()?;
        let live = &iterating.bulk.live;
        if live.stopping(runtime::threads()?).is_cancelled() {
            // A closed client has ended everything, and begins no more calls.
            return aio::ready(py, py.None());
        }
        let future = async move {
            // That it could not be waited for to its end is no error: all is stopped.
            let _ = ending.await;
            Ok(())
        };
        Call { future, finish: |py: Python<'_>, ()| Ok(py.None()), watch: None }.run(py, live, true)
    }

    fn __aenter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("wirespeed._driving")?.call_method1("value", (slf,))
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __aexit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        let _ = (kind, error, traceback);
        self.close(py)
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
    // Made ahead, `bytes` would take memory for all items before the first is there.
    let value: Value = if request.wants_bytes() { coming::copied } else { coming::value };
    let lending = request.kind.lending().unwrap_or_default();
    let bulk = Bulk::new(&live, request.prepare(py, false)?, counts, lending);
    bulk.begin()?;
    let ready = BlockingMutex::default();
    let iterating =
        Inherited::new(Arc::new(Iterating { bulk, ready, on_error, watch: SharedWatch::new(watch), value }));
    Ok(if verbs.awaitable {
        Py::new(py, AsyncCompletions(iterating))?.into_any()
    } else {
        Py::new(py, Completions(iterating))?.into_any()
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
    watch: Option<Watch>,
    awaitable: bool,
) -> PyResult<Py<PyAny>> {
    let bulk = Bulk::new(live, request.prepare(py, false)?, counts, Lending::default());
    if awaitable {
        let batches = Batches { bulk, on_error, watch: SharedWatch::new(watch) };
        let batches = AwaitedBatches(Inherited::new(Arc::new(batches)));
        return py.import("wirespeed._driving")?.call_method1("gather", (batches, count)).map(Bound::unbind);
    }
    match copies(py, &bulk, count, on_error, watch) {
        Ok(values) => Ok(PyList::new(py, values)?.into_any().unbind()),
        Err(raised) => {
            bulk.stop(py)?;
            Err(raised)
        }
    }
}

fn copies(
    py: Python<'_>,
    bulk: &Arc<Bulk>,
    count: usize,
    on_error: OnError,
    mut watch: Option<Watch>,
) -> PyResult<Vec<Py<PyAny>>> {
    let mut values: Vec<Py<PyAny>> = Vec::new();
    values.resize_with(count, || py.None());
    loop {
        let batch = wait(py, &bulk.live, bulk.clone().batch(), &mut watch)?;
        if batch.is_empty() {
            break;
        }
        for outcome in batch {
            let (index, value) = copy(py, outcome, on_error)?;
            if let Some(place) = values.get_mut(index) {
                *place = value;
            }
        }
        // Also where there is always something to be taken.
        watch.as_mut().map_or(Ok(()), |watch| watch.tell_if_due(py))?;
    }
    watch.as_mut().map_or(Ok(()), |watch| watch.tell(py))?;
    Ok(values)
}

fn copy(
    py: Python<'_>,
    (index, outcome): (usize, Result<Delivered>),
    on_error: OnError,
) -> PyResult<(usize, Py<PyAny>)> {
    match (&outcome, on_error) {
        (Err(error), OnError::Raise) => Err(errors::from_engine(py, error)),
        _ => Ok((index, coming::copied(py, outcome)?)),
    }
}

struct Batches {
    bulk: Arc<Bulk>,
    on_error: OnError,
    watch: SharedWatch,
}

/// The same for a coroutine.
#[pyclass(frozen, module = "wirespeed._wirespeed")]
struct AwaitedBatches(Inherited<Arc<Batches>>);

#[pymethods]
impl AwaitedBatches {
    /// The next outcomes, as pairs of index and value; an empty list after the last.
    fn next_batch(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let batches = self.0.get().ok_or_else(|| errors::inherited("bulk call"))?;
        let these = Arc::clone(batches);
        let finish = move |py: Python<'_>, batch: Batch| {
            match batch.is_empty() {
                true => these.watch.tell(py)?,
                false => these.watch.tell_if_due(py)?,
            }
            let values = batch.into_iter().map(|outcome| copy(py, outcome, these.on_error));
            Ok(PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)?.into_any().unbind())
        };
        Call { future: batches.bulk.clone().batch(), finish, watch: None }.run(py, &batches.bulk.live, true)
    }
}

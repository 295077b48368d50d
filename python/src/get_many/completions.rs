//! What comes of the items as they finish: an iterator, of which each step that has nothing left asks
//! the engine for the next batch.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex as BlockingMutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyType};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wirespeed::{Error, Progress, Result};

use super::coming::{self, Coming, Delivered};
use super::items::{Prepared, Request};
use super::{OnError, Verbs};
use crate::aio::{self, Arriving, Step};
use crate::call::{Call, STOPPING, wait};
use crate::client::Live;
use crate::errors;
use crate::fork::Inherited;
use crate::memory::{self, Lending};
use crate::progress::{SharedWatch, Watch};
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

/// What has finished and was not taken yet.
#[derive(Default)]
struct Ready {
    outcomes: VecDeque<(usize, Result<Delivered>)>,
    /// What has ended the call, until it is raised.
    failure: Option<Error>,
}

impl Ready {
    fn is_empty(&self) -> bool {
        self.outcomes.is_empty() && self.failure.is_none()
    }
}

/// What both views do. A child of the process that began it neither uses nor drops it.
struct Iterating {
    bulk: Arc<Bulk>,
    ready: BlockingMutex<Ready>,
    on_error: OnError,
    watch: SharedWatch,
    value: Value,
}

impl Iterating {
    fn ready(&self) -> MutexGuard<'_, Ready> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the next outcome ends the call.
    fn ends_with(&self, ready: &Ready) -> bool {
        self.on_error == OnError::Raise && matches!(ready.outcomes.front(), Some((_, Err(_))))
    }

    /// Sees to it that something can be taken, and says whether there is something; on the engine's
    /// threads. Stopped before it has ended, it has taken nothing. What ends the call can be taken when no
    /// task writes to the caller's memory any more.
    async fn fill(self: Arc<Self>) -> Result<bool> {
        if self.ready().is_empty() {
            let batch = self.bulk.clone().batch().await;
            self.add(batch);
        }
        let ends = self.ends_with(&self.ready());
        if ends {
            self.bulk.end().await;
            self.fail();
        }
        Ok(!self.ready().is_empty())
    }

    /// Adds what has come, unless nobody may have it any more.
    fn add(&self, batch: Result<Batch>) {
        let mut ready = self.ready();
        if !self.bulk.closing.is_cancelled() {
            match batch {
                Ok(batch) => ready.outcomes.extend(batch),
                Err(error) => ready.failure = Some(error),
            }
        }
    }

    /// Leaves nothing to be taken but the error that comes next.
    fn fail(&self) {
        let mut ready = self.ready();
        // The rest is dropped outside of the lock: that may run Python code.
        let mut rest = std::mem::take(&mut ready.outcomes);
        if let Some((_, Err(error))) = rest.pop_front() {
            ready.failure = Some(error);
        }
        drop(ready);
    }

    /// The next of what is ready, as Python's.
    fn take(&self, py: Python<'_>) -> PyResult<Option<(usize, Py<PyAny>)>> {
        let mut ready = self.ready();
        if let Some(error) = ready.failure.take() {
            drop(ready);
            return Err(errors::from_engine(py, &error));
        }
        if self.bulk.closing.is_cancelled() || self.ends_with(&ready) {
            return Ok(None);
        }
        let next = ready.outcomes.pop_front();
        drop(ready);
        next.map(|(index, outcome)| Ok((index, (self.value)(py, outcome)?))).transpose()
    }

    /// Tells how far things have come, and passes on whether there is more.
    fn tell(&self, py: Python<'_>, filled: bool) -> PyResult<bool> {
        match filled {
            true => self.watch.tell_if_due(py)?,
            false => self.watch.tell(py)?,
        }
        Ok(filled)
    }

    /// Waits until something can be taken; whether there is something.
    fn wait(self: &Arc<Self>, py: Python<'_>) -> PyResult<bool> {
        let mut watch = self.watch.take();
        let filled = wait(py, &self.bulk.live, Arc::clone(self).fill(), &mut watch);
        if let Some(watch) = watch {
            self.watch.put_back(watch);
        }
        self.tell(py, filled?)
    }

    fn next(self: &Arc<Self>, py: Python<'_>) -> PyResult<Option<(usize, Py<PyAny>)>> {
        loop {
            let taken = self.take(py)?;
            if taken.is_some() || !self.wait(py)? {
                return Ok(taken);
            }
        }
    }

    /// Drops what nobody will take, outside of the lock: that may run Python code.
    fn forget(&self) {
        let forgotten = std::mem::take(&mut *self.ready());
        drop(forgotten);
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
        match iterating.next(py) {
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

impl AsyncCompletions {
    fn iterating(&self) -> PyResult<&Arc<Iterating>> {
        self.0.get().ok_or_else(|| errors::inherited("bulk call"))
    }
}

impl Arriving for Py<AsyncCompletions> {
    fn take(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let iterating = self.get().iterating()?;
        match iterating.take(py) {
            Ok(Some(next)) => Ok(Some(next.into_pyobject(py)?.into_any().unbind())),
            Ok(None) => Ok(None),
            Err(raised) => {
                drop(iterating.halt()?);
                Err(raised)
            }
        }
    }

    fn arrival(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let iterating = self.get().iterating()?;
        let these = Arc::clone(iterating);
        let finish = move |py: Python<'_>, filled: bool| match these.tell(py, filled) {
            Ok(filled) => Ok(PyBool::new(py, filled).to_owned().into_any().unbind()),
            Err(raised) => {
                drop(these.halt()?);
                Err(raised)
            }
        };
        aio::submit(py, &iterating.bulk.live, Arc::clone(iterating).fill(), finish, None)
    }
}

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

    fn __anext__(slf: Py<Self>) -> Step {
        Step::new(slf)
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

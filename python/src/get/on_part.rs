//! An object through a callback: its parts as they land, in any order, each as a view of the engine's
//! memory, which goes back to the pool when the view is let go.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyMemoryView;
use tokio::sync::Mutex;
use wirespeed::{Get, ObjectParts, Part, Result};

use crate::buffer::Buffer;
use crate::call::{Call, wait};
use crate::client::Live;
use crate::errors;
use crate::fork::Inherited;
use crate::info::ObjectInfo;
use crate::progress::{SharedWatch, Watch};
use crate::runtime;

/// The next parts: at least one, or none after the last.
async fn batch(parts: &mut ObjectParts) -> Result<Vec<Part>> {
    let mut batch = Vec::new();
    if let Some(part) = parts.next().await {
        batch.push(part?);
        while let Some(part) = parts.try_next() {
            batch.push(part);
        }
    }
    Ok(batch)
}

fn view<'py>(py: Python<'py>, part: Part) -> PyResult<(u64, Bound<'py, PyMemoryView>)> {
    let buffer = Bound::new(py, Buffer::of_part(part.body))?;
    Ok((part.offset, PyMemoryView::from(&buffer)?))
}

pub(super) fn receive(
    py: Python<'_>,
    live: &Arc<Live>,
    get: Get,
    callback: Py<PyAny>,
    mut watch: Option<Watch>,
    awaitable: bool,
) -> PyResult<Py<PyAny>> {
    if awaitable {
        let owner = Arc::clone(live);
        let finish = move |py: Python<'_>, parts| {
            let parts = Arc::new(Mutex::new(parts));
            Ok(Py::new(py, Parts(Inherited::new(Download { live: owner, parts })))?.into_any())
        };
        let parts = Call { future: get.parts(), finish, watch: None }.run(py, live, true)?;
        let progress = watch.map(|watch| Py::new(py, Teller(SharedWatch::new(Some(watch))))).transpose()?;
        let driving = py.import("wirespeed._driving")?;
        return driving.call_method1("each_part", (parts, callback, progress)).map(Bound::unbind);
    }
    // Callbacks and waits by turns: the end must not come between them.
    let _inside = runtime::inside();
    let mut parts = Some(wait(py, live, get.parts(), &mut watch)?);
    let outcome = each(py, live, &mut parts, callback.bind(py), &mut watch);
    if let Some(parts) = parts {
        // What is in flight is stopped where its tasks run.
        let threads = runtime::threads()?;
        let _context = threads.handle().enter();
        threads.detached(py, || drop(parts));
    }
    outcome
}

fn each(
    py: Python<'_>,
    live: &Arc<Live>,
    parts: &mut Option<ObjectParts>,
    callback: &Bound<'_, PyAny>,
    watch: &mut Option<Watch>,
) -> PyResult<Py<PyAny>> {
    let threads = runtime::threads()?;
    loop {
        let Some(mut taken) = parts.take() else { return Err(errors::cancelled("the download was stopped")) };
        let next = async move {
            let batch = batch(&mut taken).await?;
            Ok((taken, batch))
        };
        let (back, batch) = wait(py, live, next, watch)?;
        let parts = parts.insert(back);
        if let Some(watch) = watch {
            // The parts may come quicker than a wait sees a tick.
            if batch.is_empty() { watch.tell(py)? } else { watch.tell_if_due(py)? }
        }
        if batch.is_empty() {
            return Ok(Py::new(py, ObjectInfo::from(parts.info().clone()))?.into_any());
        }
        for part in batch {
            let view = view(py, part)?;
            threads.calling(py, || callback.call1(view))?;
            if runtime::ends_elsewhere() {
                return Err(errors::ending(py));
            }
        }
    }
}

/// The parts of a download that is awaited.
#[pyclass(frozen, module = "wirespeed._wirespeed")]
struct Parts(Inherited<Download>);

struct Download {
    live: Arc<Live>,
    parts: Arc<Mutex<ObjectParts>>,
}

#[pymethods]
impl Parts {
    /// The next parts, as pairs of offset and view; the object's info after the last.
    fn next(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let Download { live, parts } = self.0.get().ok_or_else(|| errors::inherited("download"))?;
        let parts = Arc::clone(parts);
        let future = async move {
            let mut parts = parts.lock().await;
            let batch = batch(&mut parts).await?;
            Ok((batch, parts.info().clone()))
        };
        let finish = |py: Python<'_>, (batch, info): (Vec<Part>, wirespeed::ObjectInfo)| {
            if batch.is_empty() {
                return Ok(Py::new(py, ObjectInfo::from(info))?.into_any());
            }
            let views = batch.into_iter().map(|part| view(py, part)).collect::<PyResult<Vec<_>>>()?;
            Ok(views.into_pyobject(py)?.into_any().unbind())
        };
        Call { future, finish, watch: None }.run(py, live, true)
    }
}

/// Tells a progress callback how far a download has come.
#[pyclass(frozen, module = "wirespeed._wirespeed")]
struct Teller(SharedWatch);

#[pymethods]
impl Teller {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        self.0.tell(py)
    }
}

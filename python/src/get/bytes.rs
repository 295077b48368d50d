//! An object as real `bytes`: its size comes with the first answer, then the object is made, then the
//! bytes land in it. Nothing is copied and nothing is zeroed first.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use wirespeed::{BegunGet, Get};

use crate::call::{Call, wait};
use crate::client::Live;
use crate::errors;
use crate::fork::Inherited;
use crate::memory::NewBytes;
use crate::progress::Watch;

pub(super) fn receive(
    py: Python<'_>,
    live: &Arc<Live>,
    get: Get,
    mut watch: Option<Watch>,
    awaitable: bool,
) -> PyResult<Py<PyAny>> {
    if awaitable {
        let owner = Arc::clone(live);
        let finish = move |py: Python<'_>, begun| {
            let begun = Download { live: owner, begun: Mutex::new(Some((begun, watch))) };
            Ok(Py::new(py, Begun(Inherited::new(begun)))?.into_any())
        };
        let begun = Call { future: get.begin(), finish, watch: None }.run(py, live, true)?;
        return py.import("wirespeed._driving")?.call_method1("finish", (begun,)).map(Bound::unbind);
    }
    let begun = wait(py, live, get.begin(), &mut watch)?;
    rest(py, live, begun, watch, false)
}

fn rest(
    py: Python<'_>,
    live: &Arc<Live>,
    begun: BegunGet,
    watch: Option<Watch>,
    awaitable: bool,
) -> PyResult<Py<PyAny>> {
    let length = usize::try_from(begun.length()).unwrap_or(usize::MAX);
    let destination = NewBytes::new(py, length)?;
    let future = async move { begun.into_owned(destination).await.map(|(filled, length, _)| (filled, length)) };
    let finish = |py: Python<'_>, (filled, length): (NewBytes, u64)| Ok(filled.finish(py, length).into_any());
    Call { future, finish, watch }.run(py, live, awaitable)
}

/// A download whose size is known and whose destination is not made yet.
#[pyclass(frozen, module = "wirespeed._wirespeed")]
struct Begun(Inherited<Download>);

struct Download {
    live: Arc<Live>,
    begun: Mutex<Option<(BegunGet, Option<Watch>)>>,
}

#[pymethods]
impl Begun {
    /// Receives the rest.
    fn receive(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let Download { live, begun } = self.0.get().ok_or_else(|| errors::inherited("download"))?;
        let begun = begun.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (begun, watch) = begun.ok_or_else(|| errors::cancelled("the download has been received"))?;
        rest(py, live, begun, watch, true)
    }
}

//! PUT: an object from memory or from a file.

use std::path::PathBuf;

use bytes::Bytes;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use wirespeed::Put;

use crate::buffer::Buffer;
use crate::call::Call;
use crate::client::Verbs;
use crate::info::PutResult;
use crate::location::Location;
use crate::memory::Shared;
use crate::options::WriteOptions;
use crate::progress::Watch;

/// The engine's request for what Python asks.
pub(crate) fn request(client: &wirespeed::Client, location: Location, options: WriteOptions) -> Put {
    let put = client.put(location.bucket, location.key).options(options.put);
    match options.checksum {
        Some(checksum) => put.checksum(checksum),
        None => put,
    }
}

/// A str is no bytes, whatever it is to be written to.
pub(crate) fn refuse_text(data: &Bound<'_, PyAny>) -> PyResult<()> {
    match data.is_instance_of::<PyString>() {
        true => Err(PyTypeError::new_err("a str has no bytes before it is encoded: text.encode()")),
        false => Ok(()),
    }
}

/// Bytes to be sent from where they lie; `None` where it is no memory.
pub(crate) fn memory(data: &Bound<'_, PyAny>) -> PyResult<Option<Bytes>> {
    refuse_text(data)?;
    if let Ok(buffer) = data.cast::<Buffer>()
        && let Some(buffer) = buffer.get().shared()
    {
        return Ok(Some(buffer.into()));
    }
    Ok(Shared::new(data)?.map(Bytes::from_owner))
}

#[pymethods]
impl Verbs {
    /// Writes an object from memory: one request, or a multipart upload, by its size. The memory is
    /// sent from where it lies and must not change until this returns.
    #[pyo3(signature = (r#where, data, *, bucket=None, progress=None, **options))]
    fn put(
        &self,
        py: Python<'_>,
        r#where: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        bucket: Option<&str>,
        progress: Option<Py<PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let location = Location::object(r#where, bucket)?;
        let options = WriteOptions::parse(options)?;
        let body = memory(data)?.ok_or_else(|| PyTypeError::new_err("no memory"))?;
        let live = self.live(py)?;
        let (counts, watch) = Watch::new(progress);
        let put = request(&live.engine, location, options).progress(counts);
        let finish = |py: Python<'_>, outcome| Ok(Py::new(py, PutResult::from(outcome))?.into_any());
        Call { future: put.bytes(body), finish, watch }.run(py, &live, self.awaitable)
    }

    /// Writes an object from a local file, read part by part within the memory budget.
    ///
    /// Raises as `put`; `LocalIOError` where the file cannot be read, `IntegrityError` where it changed
    /// meanwhile.
    #[pyo3(signature = (r#where, path, *, bucket=None, progress=None, **options))]
    fn put_file(
        &self,
        py: Python<'_>,
        r#where: &Bound<'_, PyAny>,
        path: PathBuf,
        bucket: Option<&str>,
        progress: Option<Py<PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let location = Location::object(r#where, bucket)?;
        let options = WriteOptions::parse(options)?;
        let live = self.live(py)?;
        let (counts, watch) = Watch::new(progress);
        let put = request(&live.engine, location, options).progress(counts);
        let finish = |py: Python<'_>, outcome| Ok(Py::new(py, PutResult::from(outcome))?.into_any());
        Call { future: put.file(path), finish, watch }.run(py, &live, self.awaitable)
    }
}

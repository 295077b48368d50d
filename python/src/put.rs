//! PUT: an object from memory, from a file, or from whatever gives bytes.

mod source;

use std::path::PathBuf;

use bytes::Bytes;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use wirespeed::Put;

use crate::buffer::Buffer;
use crate::call::Call;
use crate::client::Verbs;
use crate::feed::Upload;
use crate::info::PutResult;
use crate::location::Location;
use crate::memory::Shared;
use crate::options::WriteOptions;
use crate::progress::Watch;
use source::Source;

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
    /// Writes an object: one request, or a multipart upload, by its size.
    ///
    /// `data` is memory (bytes, a memoryview, a numpy array, a `Buffer`), which is sent from where it
    /// lies and must not change until this returns; or something that is read to its end: a file-like
    /// object with ``read(size)``, opened in binary mode, or an iterable of bytes-like pieces. What is
    /// read is held a part at a time, within the memory budget. In the awaitable view it is read in a
    /// thread of the event loop's executor, so that what it does there must bear that; where the call is
    /// cancelled, that thread ends when its reader next returns.
    ///
    /// What a reader raises stops the upload and is raised here, unchanged; nothing is stored then.
    /// `progress` is called with a `Progress`.
    ///
    /// Raises `PreconditionError` where ``if_match`` or ``if_none_match="*"`` does not hold, and the
    /// others of `wirespeed.errors`.
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
        let body = match memory(data)? {
            Some(memory) => Ok(memory),
            None => Err(Source::new(data)?),
        };
        let live = self.live(py)?;
        let (counts, watch) = Watch::new(progress);
        let put = request(&live.engine, location, options).progress(counts);
        let memory = match body {
            Ok(memory) => memory,
            Err(source) => return source::put(py, Upload::begin(&live, put)?, source, watch, self.awaitable),
        };
        let finish = |py: Python<'_>, outcome| Ok(Py::new(py, PutResult::from(outcome))?.into_any());
        Call { future: put.bytes(memory), finish, watch }.run(py, &live, self.awaitable)
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

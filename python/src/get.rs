//! GET: an object, or a range of it, into the engine's memory, the caller's, or a callback's hands.

mod bytes;
mod on_part;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use wirespeed::Get;

use crate::buffer::Buffer;
use crate::call::Call;
use crate::client::Verbs;
use crate::errors;
use crate::location::{Location, Wanted};
use crate::memory::{Lending, Lent};
use crate::options::{ReadOptions, apply_read};
use crate::progress::Watch;

/// The engine's request for what Python asks.
pub(crate) fn request(client: &wirespeed::Client, location: Location, wanted: Wanted, mut options: ReadOptions) -> Get {
    let mut get = client.get(location.bucket, location.key);
    get = match wanted {
        Wanted::All => get,
        Wanted::Range(start, None) => get.range(start..),
        Wanted::Range(start, Some(stop)) => get.range(start..stop),
        Wanted::Suffix(length) => get.suffix(length),
    };
    if let Some(id) = options.version_id.take() {
        get = get.version(id);
    }
    apply_read!(get, options)
}

#[pymethods]
impl Verbs {
    /// Reads an object, or a range of it.
    ///
    /// Returns a `Buffer`: read-only memory of the engine's, which is not copied. With ``as_bytes=True``
    /// it is real ``bytes``, received straight into it. With ``on_part=f``, nothing is kept:
    /// ``f(offset, view)`` is called with each part as it lands, in any order, on the thread that
    /// waits; the memoryview is valid for as long as it is held, and memory goes back to the pool when
    /// it is let go. What ``f`` raises stops the transfer and is raised here.
    ///
    /// `range` is ``(start, stop)`` as in a slice, ``(-n, None)`` the last n bytes; it is cut at the
    /// object's end. `verify` says whether the bytes are compared with the object's own checksum, where
    /// all of it is read. `progress` is called with a `Progress`.
    ///
    /// Raises `NotFoundError`, `DeniedError`, `PreconditionError` (it changed while it was read),
    /// `IntegrityError` and the others of `wirespeed.errors`.
    #[pyo3(signature = (r#where, *, bucket=None, range=None, as_bytes=false, on_part=None, verify=None, progress=None,
                        **options))]
    fn get(
        &self,
        py: Python<'_>,
        r#where: &Bound<'_, PyAny>,
        bucket: Option<&str>,
        range: Option<&Bound<'_, PyAny>>,
        as_bytes: bool,
        on_part: Option<Py<PyAny>>,
        verify: Option<bool>,
        progress: Option<Py<PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let location = Location::object(r#where, bucket)?;
        let wanted = Wanted::parse(range)?;
        let options = ReadOptions::parse(options)?;
        let live = self.live(py)?;
        let (counts, watch) = Watch::new(progress);
        let mut get = request(&live.engine, location, wanted, options).progress(counts);
        if let Some(verify) = verify {
            get = get.verify(verify);
        }
        match (as_bytes, on_part) {
            (true, Some(_)) => {
                Err(errors::config("as_bytes keeps the bytes and on_part does not: choose one of the two"))
            }
            (true, None) => bytes::receive(py, &live, get, watch, self.awaitable),
            (false, Some(callback)) => on_part::receive(py, &live, get, callback, watch, self.awaitable),
            (false, None) => {
                let finish = |py: Python<'_>, object| Ok(Py::new(py, Buffer::of_object(py, object)?)?.into_any());
                Call { future: get.buffer(), finish, watch }.run(py, &live, self.awaitable)
            }
        }
    }

    /// Reads an object, or a range of it, into memory of the caller's, and returns how many bytes that
    /// were. What lies behind them is left alone.
    ///
    /// `destination` is writable and in one piece: a bytearray, a numpy array, a torch tensor (pinned
    /// or not), an mmap, shared memory. It must not be used by others until this returns.
    ///
    /// Raises as `get`, ``BufferError`` where the destination cannot be filled, `ConfigError` where it
    /// is too small: it may then have been written to in part, as after any failure.
    #[pyo3(signature = (r#where, destination, *, bucket=None, range=None, verify=None, progress=None, **options))]
    fn get_into(
        &self,
        py: Python<'_>,
        r#where: &Bound<'_, PyAny>,
        destination: &Bound<'_, PyAny>,
        bucket: Option<&str>,
        range: Option<&Bound<'_, PyAny>>,
        verify: Option<bool>,
        progress: Option<Py<PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let location = Location::object(r#where, bucket)?;
        let wanted = Wanted::parse(range)?;
        let options = ReadOptions::parse(options)?;
        let lending = Lending::default();
        let destination = Lent::within(destination, &lending)?;
        let live = self.live(py)?;
        let (counts, watch) = Watch::new(progress);
        let mut get = request(&live.engine, location, wanted, options).progress(counts);
        if let Some(verify) = verify {
            get = get.verify(verify);
        }
        let future = async move { get.into_owned(destination).await.map(|(lent, length, _)| (lent, length)) };
        let finish = |py: Python<'_>, (lent, length): (Lent, u64)| {
            lent.release(py);
            Ok(length.into_pyobject(py)?.into_any().unbind())
        };
        Call { future, finish, watch }.run_lending(py, &live, self.awaitable, lending)
    }
}

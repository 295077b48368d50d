//! Bytes in the engine's memory, as Python sees them: read-only and never copied.

use std::ffi::{c_int, c_void};

use memchr::memmem;
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyBufferError, PyIndexError, PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PySlice};

use crate::fork::Inherited;
use crate::info::ObjectInfo;
use crate::memory::{NewBytes, Shared};
use crate::runtime;

/// What is no longer than this is copied without leaving the interpreter.
const COPY_HERE: usize = 1 << 20;

/// A copy as `bytes`; other threads go on while a long one is made.
pub(crate) fn copied(py: Python<'_>, bytes: &[u8]) -> PyResult<Py<PyBytes>> {
    if bytes.len() <= COPY_HERE {
        return Ok(PyBytes::new(py, bytes).unbind());
    }
    let mut copy = NewBytes::new(py, bytes.len())?;
    let copy = runtime::threads()?.detached(py, move || {
        copy.as_mut().copy_from_slice(bytes);
        copy
    });
    Ok(copy.finish(py, bytes.len() as u64))
}

/// Bytes in the engine's memory: read-only, shared, never copied.
///
/// Supports the buffer protocol (``memoryview(b)``, ``numpy.frombuffer(b, dtype)``), DLPack
/// (``numpy.from_dlpack(b)``), ``len``, ``bytes`` and comparison. A slice is a `Buffer` over the same
/// memory, which goes back to the client's pool with the last of them and of the views of them.
#[pyclass(frozen, sequence, weakref, module = "wirespeed")]
pub(crate) struct Buffer {
    bytes: Inherited<wirespeed::Buffer>,
    info: Option<Py<ObjectInfo>>,
}

impl Buffer {
    pub(crate) fn of_object(py: Python<'_>, object: wirespeed::Object) -> PyResult<Buffer> {
        let info = Py::new(py, ObjectInfo::from(object.info))?;
        Ok(Buffer { bytes: Inherited::new(object.body), info: Some(info) })
    }

    pub(crate) fn of_part(bytes: wirespeed::Buffer) -> Buffer {
        Buffer { bytes: Inherited::new(bytes), info: None }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.read_only()
    }

    /// To be sent again from where it lies.
    pub(crate) fn shared(&self) -> Option<wirespeed::Buffer> {
        self.bytes.get().cloned()
    }
}

#[pymethods]
impl Buffer {
    /// What the server said of the object; ``None`` for a part of a stream.
    #[getter]
    fn info(&self, py: Python<'_>) -> Option<Py<ObjectInfo>> {
        self.info.as_ref().map(|info| info.clone_ref(py))
    }

    /// How many bytes there are.
    #[getter]
    fn nbytes(&self) -> usize {
        self.bytes().len()
    }

    /// A copy, as ``bytes``.
    fn tobytes(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        copied(py, self.bytes())
    }

    fn __bytes__(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        self.tobytes(py)
    }

    fn __len__(&self) -> usize {
        self.bytes().len()
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = index.py();
        let bytes = self.bytes();
        if let Ok(slice) = index.cast::<PySlice>() {
            let indices = slice.indices(isize::try_from(bytes.len()).unwrap_or(isize::MAX))?;
            if indices.step != 1 {
                return Err(PyBufferError::new_err(
                    "a Buffer is sliced in steps of one; for others slice memoryview(buffer)",
                ));
            }
            // The indices of a slice are within the length, and not negative for steps forward.
            let start = usize::try_from(indices.start).unwrap_or(0);
            let stop = usize::try_from(indices.stop).unwrap_or(0).max(start);
            let info = self.info(py);
            let bytes = self.bytes.beside(self.bytes.read_only().slice(start..stop));
            return Ok(Bound::new(py, Buffer { bytes, info })?.into_any());
        }
        let length = isize::try_from(bytes.len()).unwrap_or(isize::MAX);
        let index: isize =
            index.extract().map_err(|error: PyErr| match error.is_instance_of::<PyOverflowError>(py) {
                true => PyIndexError::new_err(format!("index {index} of a Buffer of {length} bytes")),
                false => PyTypeError::new_err("an index is an integer or a slice"),
            })?;
        let from_start = if index < 0 { index + length } else { index };
        let byte = usize::try_from(from_start).ok().and_then(|index| bytes.get(index));
        let byte = byte.ok_or_else(|| PyIndexError::new_err(format!("index {index} of a Buffer of {length} bytes")))?;
        Ok(byte.into_pyobject(py)?.into_any())
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let view = slf.py().get_type::<pyo3::types::PyMemoryView>().call1((slf,))?;
        Ok(view.try_iter()?.into_any())
    }

    fn __contains__(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Ok(byte) = value.extract::<u8>() {
            return Ok(self.bytes().contains(&byte));
        }
        let wanted = Shared::new(value)?
            .ok_or_else(|| PyTypeError::new_err("a Buffer contains integers from 0 to 255 and bytes"))?;
        Ok(memmem::find(self.bytes(), wanted.as_ref()).is_some())
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, operator: CompareOp) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let equal = match Shared::new(other) {
            Ok(Some(other)) => self.bytes() == other.as_ref(),
            _ => return Ok(py.NotImplemented()),
        };
        match operator {
            CompareOp::Eq => Ok(equal.into_pyobject(py)?.to_owned().into_any().unbind()),
            CompareOp::Ne => Ok((!equal).into_pyobject(py)?.to_owned().into_any().unbind()),
            _ => Ok(py.NotImplemented()),
        }
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        // That of equal bytes, so that both find the same entry.
        self.tobytes(py)?.bind(py).hash()
    }

    fn __repr__(&self) -> String {
        format!("<wirespeed.Buffer of {} bytes>", self.bytes().len())
    }

    /// Pickled by copying the bytes: what comes out is ``bytes``.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Py<PyBytes>,))> {
        Ok((py.get_type::<PyBytes>().into_any(), (self.tobytes(py)?,)))
    }

    /// # Safety
    /// `view` is null or a view to be filled, as the buffer protocol says.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("there is no view to be filled"));
        }
        let bytes = slf.get().bytes();
        let (address, length) = (bytes.as_ptr().cast_mut().cast::<c_void>(), bytes.len());
        let length = ffi::Py_ssize_t::try_from(length).map_err(|_| PyBufferError::new_err("too long for a view"))?;
        // SAFETY: the memory is held by the object, which the view holds. Read-only: a request for
        // writable memory is refused with a BufferError, and the view then holds nothing.
        let status = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), address, length, 1, flags) };
        if status == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}

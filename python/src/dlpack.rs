//! DLPack: the struct by which array libraries hand memory to each other, as its header defines it
//! (<https://dmlc.github.io/dlpack/latest/c_api.html>).
//!
//! Owns: the export of a [`Buffer`] as a tensor of bytes, and the layout that a tensor to be filled is
//! read by. A consumer of version 1 is told that the memory is read-only; an older one cannot be told.

use std::ffi::{CStr, c_void};

use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::buffer::Buffer;

pub(crate) const NAME: &CStr = c"dltensor";
pub(crate) const USED_NAME: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";

/// The memory of the host.
const CPU: (i32, i32) = (1, 0);
const UNSIGNED: u8 = 1;
const READ_ONLY: u64 = 1;

#[repr(C)]
struct Device {
    kind: i32,
    id: i32,
}

#[repr(C)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
pub(crate) struct Tensor {
    data: *mut c_void,
    device: Device,
    dimensions: i32,
    data_type: DataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
pub(crate) struct ManagedTensor {
    pub(crate) view: Tensor,
    context: *mut c_void,
    pub(crate) deleter: Option<unsafe extern "C" fn(*mut ManagedTensor)>,
}

#[repr(C)]
struct VersionedTensor {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut VersionedTensor)>,
    flags: u64,
    view: Tensor,
}

impl Tensor {
    /// Its length in bytes, where its elements lie side by side in the order of C.
    pub(crate) fn contiguous_bytes(&self) -> Option<usize> {
        let dimensions = usize::try_from(self.dimensions).ok()?;
        let element = usize::from(self.data_type.bits).checked_mul(usize::from(self.data_type.lanes))?;
        let mut count: usize = 1;
        for dimension in (0..dimensions).rev() {
            // SAFETY: shape, and strides where they are given, have `dimensions` entries.
            let (extent, stride) = unsafe {
                let extent = usize::try_from(*self.shape.add(dimension)).ok()?;
                (extent, (!self.strides.is_null()).then(|| *self.strides.add(dimension)))
            };
            if stride.is_some_and(|stride| extent > 1 && usize::try_from(stride) != Ok(count)) {
                return None;
            }
            count = count.checked_mul(extent)?;
        }
        count.checked_mul(element).map(|bits| bits / 8)
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.data.cast::<u8>().wrapping_add(usize::try_from(self.byte_offset).unwrap_or(0))
    }

    /// A row of bytes. `shape` must outlive it.
    fn row(bytes: &[u8], shape: *mut i64) -> Tensor {
        Tensor {
            data: bytes.as_ptr().cast_mut().cast(),
            device: Device { kind: CPU.0, id: CPU.1 },
            dimensions: 1,
            data_type: DataType { code: UNSIGNED, bits: 8, lanes: 1 },
            shape,
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        }
    }
}

/// What an exported tensor keeps alive.
struct Kept {
    shape: i64,
    _buffer: Py<Buffer>,
}

unsafe extern "C" fn delete(tensor: *mut ManagedTensor) {
    // SAFETY: made by `export` and deleted once; whoever deletes it may do so without the
    // interpreter's lock, for which a dropped reference waits.
    unsafe {
        let tensor = Box::from_raw(tensor);
        drop(Box::from_raw(tensor.context.cast::<Kept>()));
    }
}

unsafe extern "C" fn delete_versioned(tensor: *mut VersionedTensor) {
    // SAFETY: as in `delete`.
    unsafe {
        let tensor = Box::from_raw(tensor);
        drop(Box::from_raw(tensor.context.cast::<Kept>()));
    }
}

/// Nobody took the tensor out of its capsule.
unsafe extern "C" fn drop_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter with a capsule of ours, which a consumer would have renamed.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

#[pymethods]
impl Buffer {
    /// The bytes as a one-dimensional tensor of uint8, for ``from_dlpack`` of any array library.
    ///
    /// Consumers that know DLPack 1.0 are told that the memory is read-only; with older ones, such as
    /// torch before 2.9, keep from writing to it.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if stream.is_some() {
            return Err(PyValueError::new_err("memory of the host has no stream: stream must be None"));
        }
        if dl_device.is_some_and(|device| device != CPU) {
            return Err(PyBufferError::new_err("the bytes are in the memory of the host; move the array after"));
        }
        if copy == Some(true) {
            return Err(PyBufferError::new_err("nothing is copied here; copy the array after"));
        }
        let bytes = slf.get().bytes();
        let kept = Box::into_raw(Box::new(Kept {
            shape: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
            _buffer: slf.clone().unbind(),
        }));
        // SAFETY: just made, and alive until the tensor is deleted.
        let view = Tensor::row(bytes, unsafe { &raw mut (*kept).shape });
        let (address, name) = if max_version.is_some_and(|(major, _)| major >= 1) {
            let tensor = VersionedTensor {
                major: 1,
                minor: 0,
                context: kept.cast(),
                deleter: Some(delete_versioned),
                flags: READ_ONLY,
                view,
            };
            (Box::into_raw(Box::new(tensor)).cast::<c_void>(), VERSIONED)
        } else {
            let tensor = ManagedTensor { view, context: kept.cast(), deleter: Some(delete) };
            (Box::into_raw(Box::new(tensor)).cast::<c_void>(), NAME)
        };
        // SAFETY: the address is not null, the name is static, and the destructor takes back what
        // nobody has taken.
        unsafe {
            let capsule = ffi::PyCapsule_New(address, name.as_ptr(), Some(drop_capsule));
            Bound::from_owned_ptr_or_err(py, capsule)
        }
    }

    /// Where the bytes are: ``(1, 0)``, the memory of the host.
    fn __dlpack_device__(&self) -> (i32, i32) {
        CPU
    }
}

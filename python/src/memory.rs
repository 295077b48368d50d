//! Memory that Python lends the engine, and gives the engine to fill.
//!
//! Owns: the hold on a caller's buffer while a transfer may touch it. [`Lent`] is a writable
//! destination (bytearray, numpy array, mmap, shared memory, or a tensor by DLPack), [`Shared`] a
//! source that is only read, [`NewBytes`] a `bytes` object that nobody has seen yet.
//!
//! A hold is let go with the interpreter's lock held: at once by a thread of Python's. An engine thread
//! that ends with one, or with any object of Python's, because its call was stopped, puts it on a pile
//! that whoever waited clears.

use std::ffi::CStr;
use std::os::raw::c_char;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crossbeam_queue::SegQueue;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use pyo3::{ffi, intern};

use crate::call::STOPPING;
use crate::dlpack::{ManagedTensor, NAME, USED_NAME};
use crate::errors;
use crate::fork::PerProcess;
use crate::{fork, runtime};

/// What ended on a thread that cannot let go of it.
enum Left {
    Hold(Hold),
    /// Something that holds objects of Python's. Dropped on an engine thread, they would go to a list
    /// behind a lock, which a fork could find locked.
    Objects(Box<dyn Send>),
}

static PILE: PerProcess<SegQueue<Left>> = PerProcess::new(SegQueue::new);

/// Lets go of what engine threads left behind.
pub(crate) fn sweep(py: Python<'_>) {
    while let Some(left) = PILE.get().pop() {
        match left {
            Left::Hold(hold) => hold.release(py),
            Left::Objects(objects) => drop(objects),
        }
    }
}

/// Drops what holds objects of Python's: here, or on the pile where this is an engine thread.
pub(crate) fn leave(objects: impl Send + 'static) {
    if is_engines() {
        PILE.get().push(Left::Objects(Box::new(objects)));
    }
}

/// Whether Python does not know this thread.
fn is_engines() -> bool {
    // SAFETY: only asks; the engine's threads have no such state.
    unsafe { ffi::PyGILState_GetThisThreadState() }.is_null()
}

enum Hold {
    View(Box<ffi::Py_buffer>),
    Tensor(NonNull<ManagedTensor>),
}

// SAFETY: a view is plain data that says where memory is; it is released only with the interpreter's
// lock held, and the memory does not move while it is held.
unsafe impl Send for Hold {}

impl Hold {
    fn release(self, _py: Python<'_>) {
        match self {
            // SAFETY: filled by PyObject_GetBuffer and released once; the lock is held.
            Hold::View(mut view) => unsafe { ffi::PyBuffer_Release(&mut *view) },
            // SAFETY: taken from its capsule, so its deleter is ours to call, once.
            Hold::Tensor(tensor) => unsafe {
                if let Some(deleter) = tensor.as_ref().deleter {
                    deleter(tensor.as_ptr());
                }
            },
        }
    }
}

/// Contiguous memory of a Python object's.
struct Memory {
    start: NonNull<u8>,
    length: usize,
    hold: Option<Hold>,
    generation: u64,
}

// SAFETY: as of `Hold`; the memory is only touched through the owner of this value.
unsafe impl Send for Memory {}
// SAFETY: shared, it is only read.
unsafe impl Sync for Memory {}

impl Memory {
    fn view(object: &Bound<'_, PyAny>, flags: i32) -> PyResult<Memory> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: the view is zeroed and outlives the call; a failure leaves nothing to be released.
        let status = unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &mut *view, flags) };
        if status != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        // An empty view may have no address.
        let start = NonNull::new(view.buf.cast()).unwrap_or(NonNull::dangling());
        let length = usize::try_from(view.len).unwrap_or(0);
        Ok(Memory { start, length, hold: Some(Hold::View(view)), generation: fork::generation() })
    }

    /// To be written to, unless there are references in it: bytes in their place would be followed.
    fn writable(object: &Bound<'_, PyAny>) -> PyResult<Memory> {
        let py = object.py();
        let (memory, holds_references) = match Memory::view(object, ffi::PyBUF_CONTIG | ffi::PyBUF_FORMAT) {
            Ok(memory) => {
                let holds_references = memory.format().is_some_and(names_references);
                (memory, holds_references)
            }
            // Numpy knows no format for some of its types, such as times.
            Err(_) => {
                let memory = Memory::view(object, ffi::PyBUF_WRITABLE)?;
                let dtype = object.getattr_opt(intern!(py, "dtype"))?;
                let answer = dtype.map(|dtype| dtype.getattr(intern!(py, "hasobject"))?.is_truthy());
                (memory, answer.transpose()?.unwrap_or(false))
            }
        };
        if holds_references {
            return Err(PyTypeError::new_err(format!(
                "this {} holds references to objects, in whose place no bytes may be put; give memory of numbers",
                kind(object)
            )));
        }
        Ok(memory)
    }

    /// What the view says of its elements.
    fn format(&self) -> Option<&CStr> {
        let Some(Hold::View(view)) = &self.hold else { return None };
        // SAFETY: null or a string that lives as long as the view.
        (!view.format.is_null()).then(|| unsafe { CStr::from_ptr(view.format) })
    }

    fn tensor(object: &Bound<'_, PyAny>) -> PyResult<Memory> {
        let py = object.py();
        let refused = |why: &str| PyBufferError::new_err(format!("this {} cannot be filled: {why}", kind(object)));
        let device: (i32, i32) = object.call_method0(intern!(py, "__dlpack_device__"))?.extract()?;
        if !matches!(device.0, 1 | 3) {
            return Err(refused(
                "it is not in the memory of the host; receive into a (pinned) tensor there, then copy",
            ));
        }
        let capsule = object.call_method0(intern!(py, "__dlpack__")).map_err(|error| {
            let refusal = refused("it does not give its memory away; has it gradients? Use .detach()");
            refusal.set_cause(py, Some(error));
            refusal
        })?;
        let capsule = capsule.cast_into::<PyCapsule>()?;
        let address = capsule.pointer_checked(Some(NAME))?;
        let tensor = address.cast::<ManagedTensor>();
        // SAFETY: the capsule has the name under which the protocol promises such a tensor; renamed, it
        // leaves the deleter to us.
        unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), USED_NAME.as_ptr().cast::<c_char>()) };
        let hold = Hold::Tensor(tensor);
        // SAFETY: alive until its deleter is called.
        let view = unsafe { &tensor.as_ref().view };
        let Some(length) = view.contiguous_bytes() else {
            hold.release(py);
            return Err(refused("its elements do not lie side by side; use .contiguous()"));
        };
        let start = NonNull::new(view.start()).unwrap_or(NonNull::dangling());
        Ok(Memory { start, length, hold: Some(hold), generation: fork::generation() })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // In a child the object is the child's own copy, which nobody will miss the release of.
        let Some(hold) = self.hold.take().filter(|_| self.generation == fork::generation()) else { return };
        if is_engines() {
            PILE.get().push(Left::Hold(hold));
        } else if !runtime::ends_elsewhere() {
            let _ = Python::try_attach(|py| hold.release(py));
        }
    }
}

/// Whether a format of the buffer protocol has an `O` outside of a field's name.
fn names_references(format: &CStr) -> bool {
    format.to_bytes().split(|&byte| byte == b':').step_by(2).any(|types| types.contains(&b'O'))
}

fn kind(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string())
}

fn is_buffer(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: only asks the type.
    unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) == 1 }
}

/// Counts the destinations of one call that a task may still write to.
#[derive(Clone, Default)]
pub(crate) struct Lending(Arc<AtomicUsize>);

/// One of them.
struct Loan(Arc<AtomicUsize>);

impl Drop for Loan {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl Lending {
    fn loan(&self) -> Loan {
        self.0.fetch_add(1, Ordering::Relaxed);
        Loan(Arc::clone(&self.0))
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }

    /// Waits until no task writes any more, which is soon after they were stopped.
    pub(crate) fn wait(self, patience: Duration) {
        let began = Instant::now();
        while !self.is_over() && began.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The same without a thread.
    pub(crate) async fn over(self) {
        let began = Instant::now();
        while !self.is_over() && began.elapsed() < STOPPING {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// The result of a call, an error only when no task writes any more.
    pub(crate) async fn settle<T>(self, result: wirespeed::Result<T>) -> wirespeed::Result<T> {
        if result.is_err() {
            self.over().await;
        }
        result
    }
}

/// A destination of the caller's.
pub(crate) struct Lent {
    memory: Memory,
    _loan: Loan,
}

impl Lent {
    /// # Errors
    /// What cannot be written to, or does not lie in one piece, says so.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Lent> {
        Lent::within(object, &Lending::default())
    }

    /// One of those that are lent to a call.
    ///
    /// # Errors
    /// Those of [`Lent::new`].
    pub(crate) fn within(object: &Bound<'_, PyAny>, lending: &Lending) -> PyResult<Lent> {
        let lent = |memory| Lent { memory, _loan: lending.loan() };
        let py = object.py();
        if is_buffer(object) {
            return Memory::writable(object).map(lent).map_err(|error| {
                if error.is_instance_of::<PyTypeError>(py) {
                    return error;
                }
                let what = kind(object);
                let refusal = PyBufferError::new_err(format!(
                    "this {what} cannot be filled: {}; give writable memory in one piece (a bytearray, a C-contiguous \
                     numpy array, an mmap opened for writing)",
                    error.value(py)
                ));
                refusal.set_cause(py, Some(error));
                refusal
            });
        }
        if object.hasattr(intern!(py, "__dlpack__"))? {
            return Memory::tensor(object).map(lent);
        }
        Err(PyTypeError::new_err(format!(
            "the destination is a {}; it must be a writable buffer (bytearray, numpy array, torch tensor, mmap, shared memory)",
            kind(object)
        )))
    }

    /// Gives it back to its owner.
    pub(crate) fn release(mut self, py: Python<'_>) {
        if let Some(hold) = self.memory.hold.take() {
            hold.release(py);
        }
    }
}

impl AsMut<[u8]> for Lent {
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: the hold keeps the memory where it is and as long as it is. That Python code reads or
        // writes there meanwhile is its own race, as with every function that fills a buffer without the
        // interpreter's lock.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start.as_ptr(), self.memory.length) }
    }
}

/// A source that is sent from where it lies.
pub(crate) struct Shared(Memory);

impl Shared {
    /// `None` where it is no buffer.
    ///
    /// # Errors
    /// What does not lie in one piece says so.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Option<Shared>> {
        let py = object.py();
        if is_buffer(object) {
            let memory = Memory::view(object, ffi::PyBUF_SIMPLE).map_err(|error| {
                let what = kind(object);
                let refusal = PyBufferError::new_err(format!(
                    "this {what} cannot be sent: {}; it must lie in one piece (numpy.ascontiguousarray makes one)",
                    error.value(py)
                ));
                refusal.set_cause(py, Some(error));
                refusal
            })?;
            return Ok(Some(Shared(memory)));
        }
        if object.hasattr(intern!(py, "__dlpack__"))? {
            return Memory::tensor(object).map(|memory| Some(Shared(memory)));
        }
        Ok(None)
    }
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: as in `Lent`.
        unsafe { std::slice::from_raw_parts(self.0.start.as_ptr(), self.0.length) }
    }
}

/// A `bytes` object that is not filled yet and that nobody else knows of.
pub(crate) struct NewBytes {
    object: Option<Py<PyBytes>>,
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: nobody else has a reference to the object, and its memory does not move.
unsafe impl Send for NewBytes {}

impl NewBytes {
    /// Not zeroed: what is not filled must not be shown.
    ///
    /// # Errors
    /// Where there is no memory.
    pub(crate) fn new(py: Python<'_>, length: usize) -> PyResult<NewBytes> {
        let size =
            ffi::Py_ssize_t::try_from(length).map_err(|_| errors::config("more bytes than an object can have"))?;
        // SAFETY: a null source asks for a new object of that length; its memory is right behind it.
        let (object, start) = unsafe {
            let object = Bound::from_owned_ptr_or_err(py, ffi::PyBytes_FromStringAndSize(ptr::null(), size))?;
            let start = ffi::PyBytes_AsString(object.as_ptr());
            (object.cast_into_unchecked::<PyBytes>(), start)
        };
        let start = NonNull::new(start.cast()).unwrap_or(NonNull::dangling());
        Ok(NewBytes { object: Some(object.unbind()), start, length })
    }

    /// The object, of which the first `filled` bytes were received.
    pub(crate) fn finish(mut self, py: Python<'_>, filled: u64) -> Py<PyBytes> {
        if filled == self.length as u64
            && let Some(object) = self.object.take()
        {
            return object;
        }
        let filled = usize::try_from(filled).unwrap_or(self.length).min(self.length);
        // SAFETY: so many bytes at its front are initialised.
        PyBytes::new(py, unsafe { std::slice::from_raw_parts(self.start.as_ptr(), filled) }).unbind()
    }
}

impl Drop for NewBytes {
    fn drop(&mut self) {
        leave(self.object.take());
    }
}

impl AsMut<[u8]> for NewBytes {
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: its own memory, which nobody reads before it is finished. That it is not initialised
        // is of no consequence for bytes that are only written.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

//! A page of a listing, or all of it, as Python sees it: columns for array libraries, rows for people.
//!
//! Owns: the hand-over by the Arrow PyCapsule interface
//! (<https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>). The arrays are shared with
//! whoever takes them out of their capsule, and released by it; a capsule that nobody took from releases
//! them itself when it is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatchIterator, StringArray, StructArray};
use arrow_schema::ArrowError;
use jiff::Timestamp;
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PySlice, PyString};

use crate::columns::Columns;

/// One object, or one version of one, in a listing.
#[pyclass(frozen, module = "wirespeed")]
pub(crate) struct ListedObject {
    /// The key, decoded.
    #[pyo3(get)]
    key: Py<PyString>,
    /// Its size in bytes; 0 for a delete marker.
    #[pyo3(get)]
    size: i64,
    /// The entity tag byte for byte, with its quotes.
    #[pyo3(get)]
    etag: Option<String>,
    /// When it was stored, in UTC; ``None`` where the server does not tell.
    #[pyo3(get)]
    last_modified: Option<Timestamp>,
    /// The storage class; ``None`` where the server does not tell.
    #[pyo3(get)]
    storage_class: Option<String>,
    /// The version; ``None`` unless versions were listed.
    #[pyo3(get)]
    version_id: Option<String>,
    /// Whether it is the newest version of its key.
    #[pyo3(get)]
    is_latest: bool,
    /// Whether it only says that the object was deleted: it then has no bytes.
    #[pyo3(get)]
    is_delete_marker: bool,
}

#[pymethods]
impl ListedObject {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let key = self.key.bind(py).repr()?;
        let version = self.version_id.as_ref().map(|id| format!(" version_id={id:?}")).unwrap_or_default();
        let marker = if self.is_delete_marker { " is_delete_marker=True" } else { "" };
        Ok(format!("<wirespeed.ListedObject key={key} size={}{version}{marker}>", self.size))
    }
}

fn text(column: &StringArray, row: usize) -> Option<String> {
    column.is_valid(row).then(|| column.value(row).to_owned())
}

impl ListedObject {
    fn of_row(py: Python<'_>, columns: &Columns, row: usize) -> Option<ListedObject> {
        let (chunk, row) = columns.find(row)?;
        let time = &chunk.last_modified;
        let versions = chunk.versions.as_ref();
        Some(ListedObject {
            key: PyString::new(py, chunk.keys.value(row)).unbind(),
            size: chunk.sizes.value(row),
            etag: text(&chunk.etags, row),
            last_modified: time.is_valid(row).then(|| Timestamp::from_microsecond(time.value(row)).ok()).flatten(),
            storage_class: text(&chunk.storage_classes, row),
            version_id: versions.map(|versions| versions.ids.value(row).to_owned()),
            is_latest: versions.is_none_or(|versions| versions.latest.value(row)),
            is_delete_marker: versions.is_some_and(|versions| versions.delete_markers.value(row)),
        })
    }
}

/// Columns, and how many of their rows have been handed out.
#[pyclass(frozen, name = "_Rows", module = "wirespeed")]
pub(crate) struct Rows {
    columns: Arc<Columns>,
    next: AtomicUsize,
}

impl Rows {
    pub(crate) fn new(columns: Columns) -> Rows {
        Rows::of(Arc::new(columns))
    }

    fn of(columns: Arc<Columns>) -> Rows {
        Rows { columns, next: AtomicUsize::new(0) }
    }

    pub(crate) fn next(&self, py: Python<'_>) -> Option<ListedObject> {
        let rows = self.columns.rows;
        let row = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |row| (row < rows).then_some(row + 1));
        ListedObject::of_row(py, &self.columns, row.ok()?)
    }
}

#[pymethods]
impl Rows {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Option<ListedObject> {
        self.next(py)
    }
}

/// Up to 1,000 objects of a listing, or all of it (`Listing.table`), as columns.
///
/// Goes into pyarrow, polars, duckdb and pandas by the Arrow PyCapsule interface, without an object
/// for each key: ``pyarrow.record_batch(page)``. Columns: ``key`` (string), ``size`` (int64, bytes),
/// ``last_modified`` (timestamp[us, UTC]), ``etag`` (string), ``storage_class`` (string), and of a
/// listing of versions also ``version_id`` (string), ``is_latest`` and ``is_delete_marker`` (bool).
///
/// As a sequence it has a `ListedObject` for each row, made when it is asked for.
#[pyclass(frozen, sequence, weakref, module = "wirespeed")]
pub(crate) struct Page(Arc<Columns>);

impl From<Columns> for Page {
    fn from(columns: Columns) -> Page {
        Page(Arc::new(columns))
    }
}

impl Page {
    pub(crate) fn of(rows: &Rows) -> Page {
        Page(Arc::clone(&rows.columns))
    }
}

fn broken(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(format!("the columns cannot be handed over: {error}"))
}

#[pymethods]
impl Page {
    /// The common prefixes of a listing with a delimiter.
    #[getter]
    fn prefixes(&self) -> Vec<&str> {
        self.0.prefixes.iter().map(String::as_str).collect()
    }

    /// The keys, in the server's order.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, Counted(self.0.keys(), self.0.rows))
    }

    /// The sizes in bytes, in the order of the keys.
    fn sizes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, Counted(self.0.sizes(), self.0.rows))
    }

    fn __len__(&self) -> usize {
        self.0.rows
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = index.py();
        let length = isize::try_from(self.0.rows).unwrap_or(isize::MAX);
        let at = |row: isize| usize::try_from(row).ok().and_then(|row| ListedObject::of_row(py, &self.0, row));
        if let Ok(slice) = index.cast::<PySlice>() {
            let indices = slice.indices(length)?;
            let count = isize::try_from(indices.slicelength).unwrap_or(0);
            let rows = (0..count).filter_map(|nth| at(indices.start + nth * indices.step));
            return Ok(PyList::new(py, rows.collect::<Vec<_>>())?.into_any());
        }
        let index: isize = index.extract().map_err(|_| PyTypeError::new_err("an index is an integer or a slice"))?;
        let object = at(if index < 0 { index + length } else { index });
        let object =
            object.ok_or_else(|| PyIndexError::new_err(format!("index {index} of a Page of {length} objects")))?;
        Ok(Bound::new(py, object)?.into_any())
    }

    fn __iter__(&self) -> Rows {
        Rows::of(Arc::clone(&self.0))
    }

    fn __repr__(&self) -> String {
        let prefixes = match self.0.prefixes.len() {
            0 => String::new(),
            count => format!(" and {count} prefixes"),
        };
        format!("<wirespeed.Page of {} objects{prefixes}>", self.0.rows)
    }

    /// The columns' names and types, as Arrow's C data interface has them.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema().as_ref()).map_err(broken)?;
        PyCapsule::new(py, schema, Some(c"arrow_schema".into()))
    }

    /// The columns as one array of structs, as Arrow's C data interface has it. Nothing is copied.
    ///
    /// Another schema than the page's own is not made: cast afterwards. Raises ``ValueError`` where
    /// there is more than 1 GiB of keys: those come as a stream, to ``pyarrow.table(page)``.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // To have one's own schema all the same is what the interface provides for.
        let _ = requested_schema;
        let mut batches = self.0.batches().map_err(broken)?;
        let (Some(batch), true) = (batches.pop(), batches.is_empty()) else {
            let message = "so many keys do not fit into one array: take them as a stream, as pyarrow.table(page) does";
            return Err(PyValueError::new_err(message));
        };
        let schema = self.__arrow_c_schema__(py)?;
        let array = FFI_ArrowArray::new(&StructArray::from(batch).into_data());
        Ok((schema, PyCapsule::new(py, array, Some(c"arrow_array".into()))?))
    }

    /// The columns as a stream of arrays of structs, as Arrow's C stream interface has it. Nothing is
    /// copied; another schema than the page's own is not made.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.0.batches().map_err(broken)?;
        let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new(py, stream, Some(c"arrow_array_stream".into()))
    }
}

/// An iterator whose length is known from elsewhere, so that a list is made in one piece.
pub(crate) struct Counted<I>(pub(crate) I, pub(crate) usize);

impl<I: Iterator> Iterator for Counted<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        let item = self.0.next()?;
        self.1 = self.1.saturating_sub(1);
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.1, Some(self.1))
    }
}

impl<I: Iterator> ExactSizeIterator for Counted<I> {}

//! The compiled half of the Python package `wirespeed`.
//!
//! Each verb is a file. A call reads its arguments (`location`, `options`, `memory`), makes the
//! engine's request, and is run on the engine's threads (`runtime`) and either waited for (`call`)
//! or awaited (`aio`). Bytes land in memory that exists before they arrive: the engine's pool
//! (`buffer`), the caller's buffer or a new `bytes` object (`memory`). Nothing on the data's path
//! takes the interpreter's lock.
//!
//! The module declares that it does not need the global interpreter lock. All its classes are frozen.
//! Subinterpreters are refused at import: the classes and the runtime are one for the process.

// A verb's keywords are its arguments.
#![allow(clippy::too_many_arguments)]

mod aio;
mod bucket;
mod buffer;
mod bulk;
mod by_bucket;
mod call;
mod client;
mod columns;
mod copy;
mod delete;
mod dlpack;
mod download;
mod errors;
mod feed;
mod fork;
mod get;
mod get_many;
mod head;
mod info;
mod list;
mod location;
mod logging;
mod memory;
mod options;
mod page;
mod presign;
mod progress;
mod put;
mod put_many;
mod raw;
mod runtime;
mod stream;
mod tree;
mod upload;
mod writer;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _wirespeed {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::bucket::BucketInfo;
    #[pymodule_export]
    use crate::buffer::Buffer;
    #[pymodule_export]
    use crate::bulk::{_merge_shards, _plan_shards, _run_shard};
    #[pymodule_export]
    use crate::client::{AsyncClient, Client};
    #[pymodule_export]
    use crate::copy::CopyResult;
    #[pymodule_export]
    use crate::delete::{DeleteFailure, DeleteResult};
    #[pymodule_export]
    use crate::get_many::{AsyncCompletions, Completions};
    #[pymodule_export]
    use crate::info::{ObjectInfo, PutResult, Transferred};
    #[pymodule_export]
    use crate::list::{AsyncListing, Listing};
    #[pymodule_export]
    use crate::page::{ListedObject, Page};
    #[pymodule_export]
    use crate::progress::Snapshot;
    #[pymodule_export]
    use crate::raw::RawAnswer;
    #[pymodule_export]
    use crate::stream::{AsyncStream, Stream};
    #[pymodule_export]
    use crate::writer::{AsyncWriter, Writer};

    /// Stops what is in flight: called at the interpreter's end.
    #[pyfunction]
    fn _stop(py: Python<'_>) {
        crate::runtime::stop(py);
    }

    /// Splits a path as `s3://` URIs have it into the bucket, which may be an access point's ARN, and the key.
    #[pyfunction]
    fn _split_bucket(path: &str) -> (&str, &str) {
        wirespeed::split_bucket(path)
    }

    #[pymodule_init]
    fn begin(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // SAFETY: the interpreter is attached; the main one has the number 0.
        if unsafe { pyo3::ffi::PyInterpreterState_GetID(pyo3::ffi::PyInterpreterState_Get()) } != 0 {
            return Err(pyo3::exceptions::PyImportError::new_err(
                "wirespeed does not work in subinterpreters: import it in the main interpreter, or use processes or \
                 threads (under mod_wsgi: WSGIApplicationGroup %{GLOBAL})",
            ));
        }
        crate::fork::watch();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

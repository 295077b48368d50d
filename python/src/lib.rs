//! The compiled half of the Python package.

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _wirespeed {}

//! HEAD: what the server says of an object, without its bytes.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use wirespeed::{ErrorKind, Head};

use crate::call::Call;
use crate::client::Verbs;
use crate::info::ObjectInfo;
use crate::location::Location;
use crate::options::{ReadOptions, apply_read};

/// The engine's request for what Python asks.
pub(crate) fn request(client: &wirespeed::Client, location: Location, mut options: ReadOptions) -> Head {
    let mut head = client.head(location.bucket, location.key);
    if let Some(id) = options.version_id.take() {
        head = head.version(id);
    }
    apply_read!(head, options)
}

#[pymethods]
impl Verbs {
    /// What the server says of an object, its checksum too, without its bytes.
    ///
    /// Raises `NotFoundError` where there is none, and the others of `wirespeed.errors`.
    #[pyo3(signature = (r#where, *, bucket=None, **options))]
    fn head(
        &self,
        py: Python<'_>,
        r#where: &Bound<'_, PyAny>,
        bucket: Option<&str>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let location = Location::object(r#where, bucket)?;
        let live = self.live(py)?;
        let head = request(&live.engine, location, ReadOptions::parse(options)?).checksum();
        let finish = |py: Python<'_>, info| Ok(Py::new(py, ObjectInfo::from(info))?.into_any());
        Call { future: head.into_future(), finish, watch: None }.run(py, &live, self.awaitable)
    }

    /// Whether there is such an object.
    ///
    /// Raises what `head` raises, but for `NotFoundError`: to be refused is not to be absent.
    #[pyo3(signature = (r#where, *, bucket=None, **options))]
    fn exists(
        &self,
        py: Python<'_>,
        r#where: &Bound<'_, PyAny>,
        bucket: Option<&str>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let location = Location::object(r#where, bucket)?;
        let live = self.live(py)?;
        let head = request(&live.engine, location, ReadOptions::parse(options)?);
        let future = async move {
            match head.await {
                Ok(_) => Ok(true),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
                Err(error) => Err(error),
            }
        };
        let finish = |py: Python<'_>, exists| Ok(PyBool::new(py, exists).to_owned().into_any().unbind());
        Call { future, finish, watch: None }.run(py, &live, self.awaitable)
    }
}

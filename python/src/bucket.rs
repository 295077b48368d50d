//! Buckets: listed, made, removed.

use jiff::Timestamp;
use pyo3::prelude::*;
use wirespeed::ListedBucket;

use crate::call::Call;
use crate::client::Verbs;

/// A bucket that the credentials can see.
#[pyclass(frozen, get_all, module = "wirespeed")]
pub(crate) struct BucketInfo {
    /// Its name.
    name: String,
    /// When it was made, in UTC; ``None`` where the server does not tell.
    created: Option<Timestamp>,
    /// The region that it is in; ``None`` where the server does not tell.
    region: Option<String>,
}

impl From<ListedBucket> for BucketInfo {
    fn from(bucket: ListedBucket) -> BucketInfo {
        BucketInfo { name: bucket.name, created: bucket.creation_date, region: bucket.region }
    }
}

#[pymethods]
impl BucketInfo {
    fn __repr__(&self) -> String {
        format!("<wirespeed.BucketInfo {}>", self.name)
    }
}

#[pymethods]
impl Verbs {
    /// The buckets that the credentials can see, those whose names begin with `prefix` where it is
    /// given; a list of `BucketInfo`.
    ///
    /// Raises `DeniedError` and the others of `wirespeed.errors`.
    #[pyo3(signature = (*, prefix=None))]
    fn list_buckets(&self, py: Python<'_>, prefix: Option<String>) -> PyResult<Py<PyAny>> {
        let live = self.live(py)?;
        let list = live.engine.list_buckets().prefix(prefix.unwrap_or_default());
        let finish = |py: Python<'_>, buckets: Vec<ListedBucket>| {
            let buckets: Vec<_> = buckets.into_iter().map(BucketInfo::from).collect();
            Ok(buckets.into_pyobject(py)?.into_any().unbind())
        };
        Call { future: list.into_future(), finish, watch: None }.run(py, &live, self.awaitable)
    }

    /// Makes a bucket of this name, in the client's region.
    ///
    /// Raises `ConflictError` where it exists, and the others of `wirespeed.errors`.
    #[pyo3(signature = (bucket))]
    fn create_bucket(&self, py: Python<'_>, bucket: String) -> PyResult<Py<PyAny>> {
        let live = self.live(py)?;
        let engine = live.engine.clone();
        let future = async move { engine.create_bucket(bucket).await };
        Call { future, finish: |py: Python<'_>, ()| Ok(py.None()), watch: None }.run(py, &live, self.awaitable)
    }

    /// Removes the bucket of this name, which must be empty.
    ///
    /// Raises `ConflictError` where it is not empty, `NotFoundError` where there is none, and the
    /// others of `wirespeed.errors`.
    #[pyo3(signature = (bucket))]
    fn delete_bucket(&self, py: Python<'_>, bucket: String) -> PyResult<Py<PyAny>> {
        let live = self.live(py)?;
        let engine = live.engine.clone();
        let future = async move { engine.delete_bucket(bucket).await };
        Call { future, finish: |py: Python<'_>, ()| Ok(py.None()), watch: None }.run(py, &live, self.awaitable)
    }
}

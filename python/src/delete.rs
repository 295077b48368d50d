//! DELETE: one object, one version of it, or many at once.

use std::future::poll_fn;
use std::task::Poll;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use wirespeed::{DeleteMany, DeleteOutcome};

use crate::call::Call;
use crate::client::Verbs;
use crate::get_many::items::interruptible;
use crate::location::Location;

/// What the server says of a deletion.
#[pyclass(frozen, get_all, module = "wirespeed")]
pub(crate) struct DeleteResult {
    /// Whether what was made or, where a version was named, removed is a delete marker: a bucket that
    /// keeps versions deletes an object by putting a marker before them.
    delete_marker: bool,
    /// The version that was removed, or that the new delete marker is; ``None`` where the bucket keeps
    /// no versions.
    version_id: Option<String>,
}

impl From<DeleteOutcome> for DeleteResult {
    fn from(outcome: DeleteOutcome) -> DeleteResult {
        DeleteResult { delete_marker: outcome.delete_marker, version_id: outcome.version_id }
    }
}

#[pymethods]
impl DeleteResult {
    fn __repr__(&self) -> String {
        let marker = if self.delete_marker { "True" } else { "False" };
        let version = self.version_id.as_deref().unwrap_or("None");
        format!("<wirespeed.DeleteResult delete_marker={marker} version_id={version}>")
    }
}

/// An object that `delete_many` could not delete.
#[pyclass(frozen, get_all, module = "wirespeed")]
pub(crate) struct DeleteFailure {
    /// The bucket that it is in.
    bucket: String,
    /// Its key.
    key: String,
    /// The version that was to be deleted; ``None`` where none was named.
    version_id: Option<String>,
    /// The server's code, such as ``AccessDenied``.
    code: String,
    /// The server's explanation; may be empty.
    message: String,
}

#[pymethods]
impl DeleteFailure {
    fn __repr__(&self) -> String {
        let DeleteFailure { bucket, key, code, message, .. } = self;
        format!("<wirespeed.DeleteFailure s3://{bucket}/{}: {code} {message}>", key.escape_debug())
    }
}

/// What is to be deleted in one bucket.
struct Targets {
    bucket: String,
    keys: Vec<String>,
    versions: Vec<(String, String)>,
}

/// An item of `delete_many`: where, and of which version.
fn target(item: &Bound<'_, PyAny>, bucket: Option<&str>, index: usize) -> PyResult<(Location, Option<String>)> {
    if item.is_instance_of::<PyString>() {
        return Ok((Location::object(item, bucket)?, None));
    }
    let wrong = || {
        let kind = item.get_type().name().map(|name| name.to_string()).unwrap_or_default();
        PyTypeError::new_err(format!("item {index} is a str, or a tuple of it and a version id, not {kind}"))
    };
    let pair = item.cast::<PyTuple>().map_err(|_| wrong())?;
    let (text, version): (Bound<'_, PyAny>, Option<String>) = pair.extract().map_err(|_| wrong())?;
    Ok((Location::object(&text, bucket)?, version))
}

/// The items by bucket, in the order in which the buckets first come.
fn by_bucket(items: &Bound<'_, PyAny>, bucket: Option<&str>) -> PyResult<Vec<Targets>> {
    if items.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("items is an iterable of str, not one str; for one object there is delete"));
    }
    let mut all: Vec<Targets> = Vec::new();
    for (index, item) in items.try_iter()?.enumerate() {
        interruptible(items.py(), index)?;
        let (location, version) = target(&item?, bucket, index)?;
        // Neighbours are mostly of one bucket, and there are few.
        let at = match all.iter().rposition(|targets| targets.bucket == location.bucket) {
            Some(at) => at,
            None => {
                all.push(Targets { bucket: location.bucket, keys: Vec::new(), versions: Vec::new() });
                all.len() - 1
            }
        };
        match version {
            None => all[at].keys.push(location.key),
            Some(version) => all[at].versions.push((location.key, version)),
        }
    }
    Ok(all)
}

/// Deletes in all buckets at once. What cannot be asked of one of them stops the others.
async fn in_all(requests: Vec<(String, DeleteMany)>) -> wirespeed::Result<Vec<DeleteFailure>> {
    let (buckets, mut pending): (Vec<_>, Vec<_>) =
        requests.into_iter().map(|(bucket, request)| (bucket, Some(request.into_future()))).unzip();
    let mut refused: Vec<_> = pending.iter().map(|_| Vec::new()).collect();
    poll_fn(|cx| {
        for (waiting, refused) in pending.iter_mut().zip(&mut refused) {
            if let Some(Poll::Ready(outcome)) = waiting.as_mut().map(|future| future.as_mut().poll(cx)) {
                *waiting = None;
                match outcome {
                    Ok(failures) => *refused = failures,
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
        }
        if pending.iter().all(Option::is_none) { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await?;
    let failures = buckets.iter().zip(refused).flat_map(|(bucket, refused)| {
        refused.into_iter().map(|failure| DeleteFailure {
            bucket: bucket.clone(),
            key: failure.key,
            version_id: failure.version_id,
            code: failure.code,
            message: failure.message,
        })
    });
    Ok(failures.collect())
}

#[pymethods]
impl Verbs {
    /// Deletes an object, or one version of it.
    ///
    /// To delete what is not there succeeds, as in S3. In a bucket that keeps versions the object is
    /// hidden behind a delete marker, unless `version_id` says which version is to go for good. With
    /// `if_match` it is deleted only while it has this entity tag.
    ///
    /// Raises `PreconditionError` where it has another, `NotFoundError` where there is no such bucket,
    /// and the others of `wirespeed.errors`.
    #[pyo3(signature = (r#where, *, bucket=None, version_id=None, if_match=None, request_payer=false,
                        expected_bucket_owner=None))]
    fn delete(
        &self,
        py: Python<'_>,
        r#where: &Bound<'_, PyAny>,
        bucket: Option<&str>,
        version_id: Option<String>,
        if_match: Option<String>,
        request_payer: bool,
        expected_bucket_owner: Option<String>,
    ) -> PyResult<Py<PyAny>> {
        let location = Location::object(r#where, bucket)?;
        let live = self.live(py)?;
        let mut delete = live.engine.delete(location.bucket, location.key);
        if let Some(id) = version_id {
            delete = delete.version(id);
        }
        if let Some(etag) = if_match {
            delete = delete.if_match(etag);
        }
        if request_payer {
            delete = delete.request_payer();
        }
        if let Some(account) = expected_bucket_owner {
            delete = delete.expected_owner(account);
        }
        let finish = |py: Python<'_>, outcome| Ok(Py::new(py, DeleteResult::from(outcome))?.into_any());
        Call { future: delete.into_future(), finish, watch: None }.run(py, &live, self.awaitable)
    }

    /// Deletes many objects, in any number of buckets: 1,000 a request, many requests at once.
    ///
    /// An item is a location, or a tuple ``(location, version_id)``. To delete what is not there
    /// succeeds, as in S3.
    ///
    /// Returns a `DeleteFailure` for each object that the server would not delete: an empty list when
    /// all are gone. Raises where a whole request fails, such as `NotFoundError` where there is no such
    /// bucket; some of the objects may be gone then.
    #[pyo3(signature = (items, *, bucket=None, request_payer=false, expected_bucket_owner=None))]
    fn delete_many(
        &self,
        py: Python<'_>,
        items: &Bound<'_, PyAny>,
        bucket: Option<&str>,
        request_payer: bool,
        expected_bucket_owner: Option<String>,
    ) -> PyResult<Py<PyAny>> {
        let targets = by_bucket(items, bucket)?;
        let live = self.live(py)?;
        let request = |Targets { bucket, keys, versions }: Targets| {
            let mut delete = live.engine.delete_many(&bucket, keys).versions(versions);
            if request_payer {
                delete = delete.request_payer();
            }
            if let Some(account) = &expected_bucket_owner {
                delete = delete.expected_owner(account);
            }
            (bucket, delete)
        };
        let requests = targets.into_iter().map(request).collect();
        let finish = |py: Python<'_>, failures: Vec<DeleteFailure>| Ok(failures.into_pyobject(py)?.into_any().unbind());
        Call { future: in_all(requests), finish, watch: None }.run(py, &live, self.awaitable)
    }
}

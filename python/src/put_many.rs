//! PUT of many objects from memory, in one crossing.

use bytes::Bytes;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use wirespeed::{Outcomes, Progress, PutMany, PutOutcome, Result};

use crate::by_bucket::{Coming, group};
use crate::call::Call;
use crate::client::Verbs;
use crate::errors;
use crate::get_many::OnError;
use crate::get_many::items::{hint, interruptible};
use crate::info::PutResult;
use crate::location::Location;
use crate::options::WriteOptions;
use crate::progress::Watch;
use crate::put;

/// The engine's request for what Python asks, for one bucket.
pub(crate) fn request(
    client: &wirespeed::Client,
    bucket: String,
    options: WriteOptions,
    progress: Progress,
) -> PutMany {
    let put = client.put_many(bucket).options(options.put).progress(progress);
    match options.checksum {
        Some(checksum) => put.checksum(checksum),
        None => put,
    }
}

/// The bucket, the key and the bytes of each item.
fn parse(items: &Bound<'_, PyAny>, bucket: Option<&str>) -> PyResult<Vec<(String, (String, Bytes))>> {
    let mut parsed = Vec::with_capacity(hint(items));
    for (index, item) in items.try_iter()?.enumerate() {
        interruptible(items.py(), index)?;
        let item = item?;
        let Ok((location, data)) = item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() else {
            return Err(PyTypeError::new_err(format!("item {index} is no pair (location, data): {}", item.repr()?)));
        };
        let Location { bucket, key } = Location::object(&location, bucket)?;
        let Some(bytes) = put::memory(&data)? else {
            return Err(PyTypeError::new_err(format!(
                "the data of item {index} is a {}, not bytes-like; put() reads from files and iterables",
                data.get_type().name()?
            )));
        };
        parsed.push((bucket, (key, bytes)));
    }
    Ok(parsed)
}

#[pymethods]
impl Verbs {
    /// Writes many objects from memory in one call, which share the client's connections.
    ///
    /// `items` are pairs of a location and bytes-like data, which is sent from where it lies and must not
    /// change until this returns. The options hold for each of them.
    ///
    /// Returns a list of `PutResult` in the order of the items. ``errors="raise"`` stops at the first that
    /// fails and raises what `put` raises: some objects are stored then. ``errors="return"`` puts the
    /// exception in the item's place and goes on.
    #[pyo3(signature = (items, *, bucket=None, errors="raise", progress=None, **options))]
    fn put_many(
        &self,
        py: Python<'_>,
        items: &Bound<'_, PyAny>,
        bucket: Option<&str>,
        errors: &str,
        progress: Option<Py<PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let on_error = OnError::parse(errors)?;
        let options = WriteOptions::parse(options)?;
        let items = parse(items, bucket)?;
        let live = self.live(py)?;
        let (counts, watch) = Watch::new(progress);
        let (count, groups, engine) = (items.len(), group(items), live.engine.clone());
        let future = async move {
            let mut coming = Coming::begin(groups, |bucket, items| -> Result<Outcomes<PutOutcome>> {
                request(&engine, bucket, options.clone(), counts.clone()).bytes(items)
            })?;
            let mut outcomes: Vec<Option<Result<PutOutcome>>> = Vec::new();
            outcomes.resize_with(count, || None);
            while let Some((place, outcome)) = coming.next().await {
                match outcome {
                    Err(error) if on_error == OnError::Raise => return Err(error),
                    outcome => {
                        if let Some(slot) = outcomes.get_mut(place) {
                            *slot = Some(outcome);
                        }
                    }
                }
            }
            Ok(outcomes)
        };
        let finish = |py: Python<'_>, outcomes: Vec<Option<Result<PutOutcome>>>| {
            let values = outcomes.into_iter().map(|outcome| match outcome.ok_or_else(|| errors::stopped(false))? {
                Ok(outcome) => Ok(Py::new(py, PutResult::from(outcome))?.into_any()),
                Err(error) => Ok(errors::from_engine(py, &error).into_value(py).into_any()),
            });
            let values = values.collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, values)?.into_any().unbind())
        };
        Call { future, finish, watch }.run(py, &live, self.awaitable)
    }
}

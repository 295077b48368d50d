//! Jobs of many objects in shards: cut here, run here, each in plain data.
//!
//! Owns the crossing alone: specs and results are JSON, which `wirespeed/bulk` reads and writes. What a job is, how it
//! is cut and what a shard does is the crate's for both the command line and Python.

use pyo3::prelude::*;
use wirespeed_bulk::{BulkSpec, Failure, NamedItem, ShardResult, ShardSpec};

use crate::call::Call;
use crate::client::Verbs;
use crate::errors;
use crate::progress::Watch;
use crate::tree::Trouble;

/// Cuts a job into shards: a listing of its source, or a list of names as JSON, into at most so many.
#[pyfunction]
#[pyo3(signature = (client, job, names, shards))]
pub(crate) fn _plan_shards(
    py: Python<'_>,
    client: &Bound<'_, Verbs>,
    job: &str,
    names: Option<&str>,
    shards: usize,
) -> PyResult<Py<PyAny>> {
    let live = client.get().live(py)?;
    let job: BulkSpec = parsed(job)?;
    let job = job.settings_of(&live.engine);
    let names: Option<Vec<NamedItem>> = names.map(parsed).transpose()?;
    let engine = live.engine.clone();
    let future = async move {
        let planned = match names {
            Some(names) => wirespeed_bulk::plan_names(job, &engine, names, shards),
            None => wirespeed_bulk::plan(job, &engine, shards).await,
        };
        Ok(planned)
    };
    let finish = |py: Python<'_>, planned: Result<Vec<ShardSpec>, Failure>| {
        let planned = planned.map_err(|failure| raise(py, failure))?;
        let texts: Vec<String> = planned.iter().map(ShardSpec::to_json).collect();
        Ok(texts.into_pyobject(py)?.unbind())
    };
    Call { future, finish, watch: None }.run(py, &live, false)
}

/// Runs one shard; what came of it.
#[pyfunction]
#[pyo3(signature = (client, spec, progress))]
pub(crate) fn _run_shard(
    py: Python<'_>,
    client: &Bound<'_, Verbs>,
    spec: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let live = client.get().live(py)?;
    let spec = ShardSpec::from_json(spec).map_err(|failure| raise(py, failure))?;
    let (counts, watch) = Watch::new(progress);
    let engine = live.engine.clone();
    let future = async move { Ok(wirespeed_bulk::run_shard(&spec, &engine, counts, &mut ()).await) };
    let finish = |py: Python<'_>, result: Result<ShardResult, Failure>| {
        let result = result.map_err(|failure| raise(py, failure))?;
        Ok(result.to_json().into_pyobject(py)?.into_any().unbind())
    };
    Call { future, finish, watch }.run(py, &live, false)
}

/// One report of the results of shards.
#[pyfunction]
pub(crate) fn _merge_shards(py: Python<'_>, results: Vec<String>) -> PyResult<String> {
    let results: Result<Vec<_>, _> = results.iter().map(|text| ShardResult::from_json(text)).collect();
    Ok(wirespeed_bulk::merge(results.map_err(|failure| raise(py, failure))?).to_json())
}

fn parsed<'a, T: serde::Deserialize<'a>>(json: &'a str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| errors::config(error.to_string()))
}

fn raise(py: Python<'_>, failure: Failure) -> PyErr {
    let what = failure.to_string();
    match failure {
        Failure::Engine(error) => Trouble::Engine(error),
        Failure::Local { source, .. } => Trouble::Local(what, source),
        _ => Trouble::Refused(what),
    }
    .raise(py)
}

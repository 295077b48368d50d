//! GET of many objects, or of many ranges, in one crossing.
//!
//! Items are grouped by bucket and handed to the engine at once. What comes of them is gathered by a
//! task on the engine's threads, in batches, and becomes Python's in one go: a list in the items'
//! order, or an iterator as they finish ([`completions`]).

mod coming;
mod completions;
pub(crate) mod items;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

pub(crate) use completions::{AsyncCompletions, Completions};

use crate::call::Call;
use crate::client::Verbs;
use crate::errors;
use crate::location::{Location, Wanted};
use crate::options::{ReadOptions, bytes};
use crate::progress::Watch;
use coming::{Coming, Delivered};
use items::{Item, Kind, Request};

/// What comes of an item that has failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnError {
    /// The first one stops the call.
    Raise,
    /// Its exception stands in its place.
    Return,
}

impl OnError {
    pub(crate) fn parse(text: &str) -> PyResult<OnError> {
        match text {
            "raise" => Ok(OnError::Raise),
            "return" => Ok(OnError::Return),
            other => Err(errors::config(format!("errors is \"raise\" or \"return\", not {other:?}"))),
        }
    }
}

#[pymethods]
impl Verbs {
    /// Reads many objects, or ranges of them, in one call.
    ///
    /// `items` are ``"s3://bucket/key"`` (or keys, with ``bucket=``), or pairs of one and a range as `get`
    /// takes it. Small objects are one request each; large ones are fetched in parts; all share the
    /// client's connections and memory budget.
    ///
    /// Returns a list in the order of the items: `Buffer` each, ``bytes`` with ``as_bytes=True``, or with
    /// ``into=[...]``, a writable buffer for each, how many bytes were written at its front. With
    /// ``as_completed=True`` it returns an iterator of ``(index, outcome)`` in the order in which they
    /// finish, which holds no more undelivered bytes than the memory budget allows.
    ///
    /// ``max_gap=n`` joins ranges of one object that lie at most n bytes apart into one request.
    /// Those of one object that have a start and an end then come from one version of it, or
    /// `PreconditionError` is raised.
    ///
    /// ``errors="raise"`` stops at the first item that fails and raises what `get` raises;
    /// ``errors="return"`` puts the exception in the item's place and goes on.
    #[pyo3(signature = (items, *, bucket=None, into=None, as_bytes=false, as_completed=false, max_gap=None,
                        errors="raise", verify=None, progress=None, **options))]
    fn get_many(
        &self,
        py: Python<'_>,
        items: &Bound<'_, PyAny>,
        bucket: Option<&str>,
        into: Option<&Bound<'_, PyAny>>,
        as_bytes: bool,
        as_completed: bool,
        max_gap: Option<&Bound<'_, PyAny>>,
        errors: &str,
        verify: Option<bool>,
        progress: Option<Py<PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let on_error = OnError::parse(errors)?;
        let max_gap = max_gap.map(|gap| bytes("max_gap", gap)).transpose()?;
        let items = items::parse(items, bucket)?;
        let kind = Kind::of(items.len(), into, as_bytes, max_gap)?;
        let options = ReadOptions::parse(options)?;
        let request = Request { items, kind, max_gap, verify, options };
        if as_completed {
            return completions::begin(self, py, request, on_error, progress);
        }
        self.gather(py, request, on_error, progress)
    }

    /// Reads many ranges of one object: a list in the order of the ranges, of `Buffer` or, with
    /// ``as_bytes=True``, of ``bytes``.
    ///
    /// Ranges that lie at most `max_gap` bytes apart, overlap or are equal become one request; what lies
    /// between them is received and dropped. Those that have a start and an end come from one version of
    /// the object, or `PreconditionError` is raised. Open ranges ``(start, None)``, ``(-n, None)`` and
    /// ``None`` are requests of their own, which may meet another version: compare the ``info.etag`` of
    /// the `Buffer` objects, or pin all with ``if_match=``. Otherwise as `get`.
    #[pyo3(signature = (r#where, ranges, *, bucket=None, max_gap=None, as_bytes=false, progress=None, **options),
           text_signature = "($self, where, ranges, *, bucket=None, max_gap=0, as_bytes=False, progress=None, **options)")]
    fn get_ranges(
        &self,
        py: Python<'_>,
        r#where: &Bound<'_, PyAny>,
        ranges: &Bound<'_, PyAny>,
        bucket: Option<&str>,
        max_gap: Option<&Bound<'_, PyAny>>,
        as_bytes: bool,
        progress: Option<Py<PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let Location { bucket, key } = Location::object(r#where, bucket)?;
        let max_gap = max_gap.map_or(Ok(0), |gap| bytes("max_gap", gap))?;
        let mut items = Vec::new();
        for range in ranges.try_iter()? {
            items::interruptible(py, items.len())?;
            let wanted = Wanted::parse(Some(&range?))?;
            items.push(Item { bucket: bucket.clone(), key: key.clone(), wanted });
        }
        let kind = Kind::of(items.len(), None, as_bytes, Some(max_gap))?;
        let options = ReadOptions::parse(options)?;
        let request = Request { items, kind, max_gap: Some(max_gap), verify: None, options };
        self.gather(py, request, OnError::Raise, progress)
    }
}

impl Verbs {
    /// All of them, in the order of the items.
    fn gather(
        &self,
        py: Python<'_>,
        request: Request,
        on_error: OnError,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let live = self.live(py)?;
        let (counts, watch) = Watch::new(progress);
        let count = request.items.len();
        if request.copies(live.engine.config().memory) {
            return completions::copied(py, &live, request, count, on_error, counts, watch, self.awaitable);
        }
        let lending = request.kind.lending().unwrap_or_default();
        let makes_bytes = request.wants_bytes();
        let request = request.prepare(py, makes_bytes)?;
        let engine = live.engine.clone();
        let future = async move {
            let mut coming = Coming::begin(&engine, request, counts)?;
            let mut outcomes: Vec<Option<wirespeed::Result<Delivered>>> = Vec::new();
            outcomes.resize_with(count, || None);
            let mut batch = Vec::new();
            while coming.next_batch(&mut batch).await > 0 {
                for (index, outcome) in batch.drain(..) {
                    match outcome {
                        Err(error) if on_error == OnError::Raise => return Err(error),
                        outcome => {
                            if let Some(place) = outcomes.get_mut(index) {
                                *place = Some(outcome);
                            }
                        }
                    }
                }
            }
            Ok(outcomes)
        };
        let finish = |py: Python<'_>, outcomes: Vec<Option<wirespeed::Result<Delivered>>>| {
            let values =
                outcomes.into_iter().map(|outcome| coming::value(py, outcome.ok_or_else(|| errors::stopped(false))?));
            let values = values.collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, values)?.into_any().unbind())
        };
        Call { future, finish, watch }.run_lending(py, &live, self.awaitable, lending)
    }
}

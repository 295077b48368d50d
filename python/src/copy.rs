//! COPY: an object within the server; no byte of it comes here.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use wirespeed::{Copy, CopyDirective, CopyOutcome};

use crate::call::Call;
use crate::client::Verbs;
use crate::errors;
use crate::location::Location;
use crate::options::{self, WriteOptions};
use crate::progress::Watch;

/// What the server says of a copy.
#[pyclass(frozen, get_all, module = "wirespeed")]
pub(crate) struct CopyResult {
    /// The copy's entity tag, with its quotes, as the server sent it.
    etag: Option<String>,
    /// The copy's version; ``None`` where the bucket keeps none.
    version_id: Option<String>,
    /// How many requests copied the bytes.
    parts: u32,
}

impl From<CopyOutcome> for CopyResult {
    fn from(outcome: CopyOutcome) -> CopyResult {
        CopyResult { etag: outcome.etag, version_id: outcome.version_id, parts: outcome.parts }
    }
}

#[pymethods]
impl CopyResult {
    fn __repr__(&self) -> String {
        format!("<wirespeed.CopyResult etag={} parts={}>", self.etag.as_deref().unwrap_or("None"), self.parts)
    }
}

#[pymethods]
impl Verbs {
    /// Copies an object within the server, from ``"s3://bucket/key"`` to another; no byte of it comes
    /// here. Sources above 256 MiB are copied by parts, in parallel, all of one version of the source.
    ///
    /// Content type and the like and metadata come from the source, unless the copy is given any of
    /// them: then all of them are what is given. So do the tags, by themselves. `metadata_directive` and
    /// `tagging_directive` (``"COPY"`` or ``"REPLACE"``) say it in words. `source_if_match` copies only while the
    /// source has this entity tag, `source_if_none_match` while it has a different one, `source_if_modified_since`
    /// and `source_if_unmodified_since` by when it was written; `source_version_id` copies that version, and
    /// `source_sse_customer_key` is the key it was encrypted with. `progress` is called with a `Progress`.
    ///
    /// Raises `NotFoundError` where there is no such source, `PreconditionError` where it has another
    /// tag or changes while it is copied, and the others of `wirespeed.errors`. With `confirm`, for those
    /// who delete the source afterwards, the copy succeeds only where it is proven: its tag is the
    /// source's or follows from those of its parts, or a HEAD finds it with the source's size.
    #[pyo3(signature = (source, target, *, source_version_id=None, source_if_match=None, confirm=false, progress=None, **options))]
    fn copy(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        source_version_id: Option<String>,
        source_if_match: Option<String>,
        confirm: bool,
        progress: Option<Py<PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let source = Location::object(source, None)?;
        let target = Location::object(target, None)?;
        let of_source = options.map(take_source_options).transpose()?.unwrap_or_default();
        let options = WriteOptions::parse(options)?;
        if options.checksum.is_some() {
            return Err(errors::config("a copy has no checksum= of its own: the server keeps or makes one"));
        }
        let live = self.live(py)?;
        let (counts, watch) = Watch::new(progress);
        let mut copy = live
            .engine
            .copy(source.bucket, source.key, target.bucket, target.key)
            .options(options.put)
            .progress(counts);
        if confirm {
            copy = copy.confirmed();
        }
        if let Some(id) = source_version_id {
            copy = copy.source_version(id);
        }
        if let Some(etag) = source_if_match {
            copy = copy.source_if_match(etag);
        }
        copy = of_source.into_iter().fold(copy, |copy, apply| apply(copy));
        let finish = |py: Python<'_>, outcome| Ok(Py::new(py, CopyResult::from(outcome))?.into_any());
        Call { future: copy.into_future(), finish, watch }.run(py, &live, self.awaitable)
    }
}

type Apply = Box<dyn FnOnce(Copy) -> Copy>;

/// Takes out of `options` those that concern the source or what comes from it.
fn take_source_options(options: &Bound<'_, PyDict>) -> PyResult<Vec<Apply>> {
    let mut taken: Vec<Apply> = Vec::new();
    for name in [
        "source_if_none_match",
        "source_if_modified_since",
        "source_if_unmodified_since",
        "source_sse_customer_key",
        "metadata_directive",
        "tagging_directive",
    ] {
        let Some(value) = options.get_item(name)? else { continue };
        options.del_item(name)?;
        if value.is_none() {
            continue;
        }
        taken.push(match name {
            "source_if_none_match" => {
                let etag: String = value.extract()?;
                Box::new(|copy: Copy| copy.source_if_none_match(etag))
            }
            "source_if_modified_since" => {
                let time = options::time(name, &value)?;
                Box::new(move |copy: Copy| copy.source_if_modified_since(time))
            }
            "source_if_unmodified_since" => {
                let time = options::time(name, &value)?;
                Box::new(move |copy: Copy| copy.source_if_unmodified_since(time))
            }
            "source_sse_customer_key" => {
                let key = options::customer_key(&value)?;
                Box::new(|copy: Copy| copy.source_sse_customer_key(key))
            }
            "metadata_directive" => {
                let directive = directive(name, &value)?;
                Box::new(move |copy: Copy| copy.metadata_directive(directive))
            }
            _ => {
                let directive = directive(name, &value)?;
                Box::new(move |copy: Copy| copy.tagging_directive(directive))
            }
        });
    }
    Ok(taken)
}

fn directive(name: &str, value: &Bound<'_, PyAny>) -> PyResult<CopyDirective> {
    match value.extract::<String>()?.as_str() {
        "COPY" => Ok(CopyDirective::Copy),
        "REPLACE" => Ok(CopyDirective::Replace),
        other => Err(errors::config(format!("{name} is \"COPY\" or \"REPLACE\", not {other:?}"))),
    }
}

//! RAW: one S3 request as the caller writes it, for the operations that have no verb.

use std::collections::BTreeMap;

use bytes::Bytes;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use wirespeed::Method;

use crate::call::Call;
use crate::client::Verbs;
use crate::errors;
use crate::put::memory;

/// The answer to a raw request: a success, whatever its body says.
#[pyclass(frozen, module = "wirespeed")]
pub(crate) struct RawAnswer {
    /// The HTTP status, 200 to 299.
    #[pyo3(get)]
    status: u16,
    headers: Vec<(String, String)>,
    body: Bytes,
}

#[pymethods]
impl RawAnswer {
    /// The headers, names in lower case; values of a repeated header are joined by ``", "``.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let headers = PyDict::new(py);
        for (name, value) in &self.headers {
            match headers.get_item(name)? {
                Some(earlier) => headers.set_item(name, format!("{}, {value}", earlier.extract::<String>()?))?,
                None => headers.set_item(name, value)?,
            }
        }
        Ok(headers)
    }

    /// The body.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.body)
    }

    fn __repr__(&self) -> String {
        format!("<wirespeed.RawAnswer {}, {} bytes>", self.status, self.body.len())
    }
}

fn method_of(name: &str) -> PyResult<Method> {
    Ok(match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "PUT" => Method::Put,
        "POST" => Method::Post,
        "DELETE" => Method::Delete,
        _ => {
            let message =
                format!("method must be \"GET\", \"HEAD\", \"PUT\", \"POST\" or \"DELETE\", but it is {name:?}");
            return Err(errors::config(message));
        }
    })
}

#[pymethods]
impl Verbs {
    /// Sends one S3 request as it is written here, for the operations that have no verb: versioning,
    /// policies, lifecycle rules, tags, ACLs. It is signed, retried and judged like any other.
    ///
    /// Without a key it is about the bucket, without a bucket about the service. `query` and `headers`
    /// map names to values, neither of them encoded; header names are in lower case. `body` is memory,
    /// which only PUT and POST carry. Bodies are held whole in both directions: use `get` and `put` for
    /// data.
    ///
    /// Raises the errors of `wirespeed.errors` for every status outside 200 to 299, `ConfigError` for
    /// a header that cannot be sent, and `ProtocolError` for an answer above 16 MiB.
    #[pyo3(signature = (method, bucket="", key="", *, query=None, headers=None, body=None),
           text_signature = "($self, method, bucket='', key='', *, query=None, headers=None, body=None)")]
    fn raw(
        &self,
        py: Python<'_>,
        method: &str,
        bucket: &str,
        key: &str,
        query: Option<BTreeMap<String, String>>,
        headers: Option<BTreeMap<String, String>>,
        body: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let method = method_of(method)?;
        if bucket.is_empty() && !key.is_empty() {
            return Err(errors::config("a key needs its bucket: give bucket as well"));
        }
        let body = match body {
            None => Bytes::new(),
            Some(body) => memory(body)?.ok_or_else(|| PyTypeError::new_err("body must be bytes-like"))?,
        };
        if !body.is_empty() && !matches!(method, Method::Put | Method::Post) {
            return Err(errors::config("only PUT and POST carry a body"));
        }
        let live = self.live(py)?;
        let mut raw = live.engine.raw(method, bucket, key).body(body);
        for (name, value) in query.unwrap_or_default() {
            raw = raw.query(name, value);
        }
        for (name, value) in headers.unwrap_or_default() {
            raw = raw.header(name.to_ascii_lowercase(), value);
        }
        let finish = |py: Python<'_>, answer: wirespeed::RawAnswer| {
            let wirespeed::RawAnswer { status, headers, body, .. } = answer;
            Ok(Py::new(py, RawAnswer { status, headers, body })?.into_any())
        };
        Call { future: raw.send(), finish, watch: None }.run(py, &live, self.awaitable)
    }
}

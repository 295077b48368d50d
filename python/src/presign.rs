//! PRESIGN: URLs that let whoever has them send one request.

use std::collections::BTreeMap;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::call::Call;
use crate::client::Verbs;
use crate::errors;
use crate::location::Location;

#[derive(Clone, Copy)]
enum Method {
    Get,
    Put,
    Head,
    Delete,
}

impl Method {
    fn parse(name: &str) -> PyResult<Method> {
        Ok(match name {
            "GET" => Method::Get,
            "PUT" => Method::Put,
            "HEAD" => Method::Head,
            "DELETE" => Method::Delete,
            _ => {
                return Err(errors::config(format!(
                    "method is \"GET\", \"PUT\", \"HEAD\" or \"DELETE\", not {name:?}"
                )));
            }
        })
    }
}

#[pymethods]
impl Verbs {
    /// A URL that lets whoever has it send one request, without credentials of their own, until it
    /// expires. Nothing is sent. Treat it like a password.
    ///
    /// `method` is what the URL is for: ``"GET"``, ``"PUT"``, ``"HEAD"`` or ``"DELETE"``. `expires_in`
    /// is in whole seconds, 1 to 604,800 (7 days); with temporary credentials it ends with them if that
    /// is sooner. `content_type` is what an upload must be sent with, or what the server is to say in
    /// answer to a GET or HEAD. `response` sets further headers of that answer, by their names:
    /// ``{"content-disposition": "attachment"}``; also ``content-encoding``, ``content-language``,
    /// ``cache-control`` and ``expires``.
    ///
    /// Raises `ConfigError` where the time is out of bounds or the client is anonymous.
    #[pyo3(signature = (r#where, *, bucket=None, method="GET", expires_in=3600.0, version_id=None, content_type=None,
                        response=None),
           text_signature = "($self, where, *, bucket=None, method='GET', expires_in=3600, version_id=None, \
                             content_type=None, response=None)")]
    fn presign(
        &self,
        py: Python<'_>,
        r#where: &Bound<'_, PyAny>,
        bucket: Option<&str>,
        method: &str,
        expires_in: f64,
        version_id: Option<String>,
        content_type: Option<String>,
        response: Option<BTreeMap<String, String>>,
    ) -> PyResult<Py<PyAny>> {
        let location = Location::object(r#where, bucket)?;
        let method = Method::parse(method)?;
        let time = Duration::try_from_secs_f64(expires_in).map_err(|_| {
            errors::config(format!("expires_in is a time in seconds, 1 to 604800 (7 days), not {expires_in}"))
        })?;
        let live = self.live(py)?;
        let mut presign = live.engine.presign(location.bucket, location.key).expires_in(time);
        if let Some(id) = version_id {
            presign = presign.version(id);
        }
        if let Some(media_type) = content_type {
            presign = match method {
                Method::Get | Method::Head => presign.response_content_type(media_type),
                Method::Put => presign.content_type(media_type),
                Method::Delete => return Err(errors::config("a DELETE has no content: leave content_type out")),
            };
        }
        for (name, value) in response.unwrap_or_default() {
            if !matches!(method, Method::Get | Method::Head) {
                return Err(errors::config("response sets headers of the answer to a GET or HEAD: leave it out"));
            }
            presign = match name.to_ascii_lowercase().as_str() {
                "content-disposition" => presign.response_content_disposition(value),
                "content-encoding" => presign.response_content_encoding(value),
                "content-language" => presign.response_content_language(value),
                "cache-control" => presign.response_cache_control(value),
                "expires" => presign.response_expires(value),
                _ => {
                    return Err(errors::config(format!(
                        "response cannot set {name:?}; it sets content-disposition, content-encoding, \
                         content-language, cache-control and expires"
                    )));
                }
            };
        }
        let future = async move {
            match method {
                Method::Get => presign.get().await,
                Method::Put => presign.put().await,
                Method::Head => presign.head().await,
                Method::Delete => presign.delete().await,
            }
        };
        let finish = |py: Python<'_>, url: String| Ok(PyString::new(py, &url).into_any().unbind());
        Call { future, finish, watch: None }.run(py, &live, self.awaitable)
    }
}

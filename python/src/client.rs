//! The client: what it was told, and the engine's client that does the work.
//!
//! Owns: the settings, from which a child after a fork and whoever unpickles make a client of their
//! own; the two views of one client, of which one waits and the other is awaited. The verbs are in
//! the files of their names.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple, PyType};
use tokio_util::sync::CancellationToken;
use wirespeed::{CONFIG_KEYS, Credentials};

use crate::aio;
use crate::call::Call;
use crate::errors::{self, Raised};
use crate::fork::Inherited;
use crate::options::unknown;
use crate::runtime::{self, Threads};

/// The engine's client of one process.
pub(crate) struct Live {
    pub(crate) engine: wirespeed::Client,
    stopping: OnceLock<CancellationToken>,
}

impl Live {
    /// Cancelled when the client is closed or the interpreter ends.
    pub(crate) fn stopping(self: &Arc<Self>, threads: &Threads) -> &CancellationToken {
        self.stopping.get_or_init(|| {
            threads.remember(self);
            threads.token()
        })
    }

    fn stop(&self) {
        if let Some(stopping) = self.stopping.get() {
            stopping.cancel();
        }
    }
}

/// What a client was told.
struct Told {
    settings: Vec<(String, String)>,
    credentials: Option<Credentials>,
    anonymous: bool,
}

impl Told {
    fn client(&self) -> wirespeed::Result<wirespeed::Client> {
        let mut builder = wirespeed::Client::builder();
        for (name, value) in &self.settings {
            builder = builder.set(name, value)?;
        }
        if let Some(credentials) = &self.credentials {
            builder = builder.credentials(credentials.clone());
        }
        if self.anonymous {
            builder = builder.anonymous();
        }
        builder.build()
    }
}

struct Shared {
    told: Told,
    /// The arguments it was made with, to make it again elsewhere.
    arguments: Py<PyDict>,
    holds_secrets: bool,
    pickle_secrets: bool,
    /// `None` once it is closed.
    live: ArcSwapOption<Inherited<Arc<Live>>>,
}

/// The verbs of a client, whichever way they are waited for.
#[pyclass(frozen, subclass, name = "_Verbs", module = "wirespeed._wirespeed")]
pub(crate) struct Verbs {
    shared: Arc<Shared>,
    pub(crate) awaitable: bool,
}

impl Verbs {
    /// The engine's client, made anew in a child.
    pub(crate) fn live(&self, py: Python<'_>) -> PyResult<Arc<Live>> {
        loop {
            let current = self.shared.live.load();
            let Some(inherited) = current.as_ref() else {
                return Err(errors::config("the client is closed; make another"));
            };
            if let Some(live) = inherited.get() {
                return Ok(Arc::clone(live));
            }
            let engine = self.shared.told.client().raised(py)?;
            let fresh = Arc::new(Live { engine, stopping: OnceLock::new() });
            // Where another thread was quicker, or has closed it, that stands.
            self.shared.live.compare_and_swap(&current, Some(Arc::new(Inherited::new(fresh))));
        }
    }

    fn view(&self, awaitable: bool) -> Verbs {
        Verbs { shared: Arc::clone(&self.shared), awaitable }
    }

    fn make(
        py: Python<'_>,
        credentials: [Option<String>; 3],
        anonymous: bool,
        pickle_secrets: bool,
        settings: Option<&Bound<'_, PyDict>>,
        awaitable: bool,
    ) -> PyResult<Verbs> {
        let arguments = PyDict::new(py);
        let mut told = Told { settings: Vec::new(), credentials: None, anonymous };
        let mut holds_secrets = false;
        for (name, value) in settings.into_iter().flatten() {
            if value.is_none() {
                continue;
            }
            arguments.set_item(&name, &value)?;
            let name = name.cast_into::<PyString>()?.to_str()?.to_owned();
            if !CONFIG_KEYS.iter().any(|key| key.name == name) {
                let mut known: Vec<&str> = CONFIG_KEYS.iter().map(|key| key.name).collect();
                known.extend(["access_key_id", "secret_access_key", "session_token", "anonymous"]);
                return Err(unknown(&name, &known));
            }
            let value = as_setting(&name, &value)?;
            // A proxy's address may hold its password.
            holds_secrets |= name.ends_with("_proxy") && value.contains('@');
            told.settings.push((name, value));
        }
        let [id, secret, token] = credentials;
        for (name, value) in [("access_key_id", &id), ("secret_access_key", &secret), ("session_token", &token)] {
            if let Some(value) = value {
                holds_secrets = true;
                arguments.set_item(name, value)?;
            }
        }
        told.credentials = match (id, secret, token) {
            (None, None, None) => None,
            (Some(_), _, _) | (_, Some(_), _) if anonymous => {
                return Err(errors::config("a client with an access key is not anonymous: leave one of the two out"));
            }
            (Some(id), Some(secret), token) => {
                let credentials = Credentials::new(id, secret);
                Some(match token {
                    Some(token) => credentials.with_session_token(token),
                    None => credentials,
                })
            }
            (Some(_), None, _) => return Err(errors::config("access_key_id is given without secret_access_key")),
            (None, _, _) => {
                return Err(errors::config("secret_access_key or session_token is given without access_key_id"));
            }
        };
        for (name, value) in [("anonymous", anonymous), ("pickle_secrets", pickle_secrets)] {
            if value {
                arguments.set_item(name, value)?;
            }
        }
        let engine = told.client().raised(py)?;
        let live = Arc::new(Live { engine, stopping: OnceLock::new() });
        let live = ArcSwapOption::from_pointee(Inherited::new(live));
        let shared = Shared { told, arguments: arguments.unbind(), holds_secrets, pickle_secrets, live };
        Ok(Verbs { shared: Arc::new(shared), awaitable })
    }
}

/// A setting as text, which is how the engine reads it.
fn as_setting(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let is_time = name.ends_with("_timeout");
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(value.is_true().to_string());
    }
    if is_time && (value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>()) {
        let seconds: f64 = value.extract()?;
        let time = Duration::try_from_secs_f64(seconds)
            .map_err(|_| errors::config(format!("{name} is a time in seconds above zero, not {seconds}")))?;
        return Ok(format!("{}ms", time.as_millis()));
    }
    if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyString>() || value.hasattr("__fspath__")? {
        return Ok(value.str()?.to_str()?.to_owned());
    }
    let kind = value.get_type();
    Err(PyTypeError::new_err(format!("{name} is a str or a number, not {}", kind.name()?)))
}

#[pymethods]
impl Verbs {
    /// What is in effect, by name; no secret is among it.
    #[getter]
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let settings = PyDict::new(py);
        for (name, value) in self.live(py)?.engine.config().entries() {
            settings.set_item(name, value)?;
        }
        Ok(settings)
    }

    /// Counters since the client was made: requests, retries, connections, bytes and memory.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let metrics = self.live(py)?.engine.metrics();
        let counters = PyDict::new(py);
        for (name, value) in [
            ("requests", metrics.requests),
            ("retries", metrics.retries),
            ("checksum_heads", metrics.checksum_heads),
            ("connections_opened", metrics.connections_opened),
            ("connections_idle", metrics.connections_idle),
            ("socket_memory", metrics.socket_memory),
            ("bytes_received", metrics.bytes_received),
            ("bytes_sent", metrics.bytes_sent),
            ("memory_in_use", metrics.memory_in_use),
            ("memory_idle", metrics.memory_idle),
        ] {
            counters.set_item(name, value)?;
        }
        Ok(counters)
    }

    /// Stops what is in flight, aborts unfinished uploads and lets go of connections and memory. Using
    /// the client again, in either view, is an error. Need not be called. Of an `AsyncClient` it is to be
    /// awaited, for which it has begun already.
    fn close(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if self.awaitable {
            // Nothing is stopped that cannot be waited for.
            aio::running_loop(py)?;
        }
        let inherited = self.shared.live.swap(None);
        let live = inherited.as_ref().and_then(|inherited| inherited.get());
        let Some(live) = live.filter(|live| live.stopping.get().is_some()) else {
            return if self.awaitable { aio::ready(py, py.None()) } else { Ok(py.None()) };
        };
        live.stop();
        let engine = live.engine.clone();
        let last = Arc::new(Live { engine: engine.clone(), stopping: OnceLock::new() });
        // What cannot be cleaned up in time has been said by the engine's own warning.
        let future = async move {
            let _ = engine.settle(runtime::LAST_PATIENCE).await;
            Ok(())
        };
        let finish = |py: Python<'_>, ()| Ok(py.None());
        Call { future, finish, watch: None }.run(py, &last, self.awaitable)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let shared = &slf.get().shared;
        if shared.holds_secrets && !shared.pickle_secrets {
            return Err(errors::config(
                "this client was given its secret in the program, and a pickle would hold it in plain. Let the \
                 credentials be found where the client is unpickled (environment, profile, instance role), or make \
                 the client with pickle_secrets=True",
            ));
        }
        let partial = py.import("functools")?.getattr("partial")?;
        let made = partial.call((slf.get_type(),), Some(shared.arguments.bind(py)))?;
        Ok((made, PyTuple::empty(py)))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let shared = &slf.get().shared;
        let name = slf.get_type().name()?.to_string();
        Ok(match shared.live.load().as_ref() {
            None => format!("<wirespeed.{name}, closed>"),
            Some(live) => {
                let config = live.read_only().engine.config();
                let endpoint = config.endpoint_url.as_deref().unwrap_or("AWS");
                format!("<wirespeed.{name} of {endpoint}, region {}>", config.region)
            }
        })
    }
}

// Rustfmt would indent the signature further each time.
#[rustfmt::skip]
macro_rules! view {
    ($name:ident, $awaitable:literal, $doc:literal) => {
        #[doc = $doc]
        #[pyclass(frozen, subclass, extends = Verbs, weakref, module = "wirespeed")]
        pub(crate) struct $name;

        #[pymethods]
        impl $name {
            #[new]
            #[pyo3(signature = (*, access_key_id=None, secret_access_key=None, session_token=None, anonymous=false,
                                pickle_secrets=false, **settings))]
            fn new(
                py: Python<'_>,
                access_key_id: Option<String>,
                secret_access_key: Option<String>,
                session_token: Option<String>,
                anonymous: bool,
                pickle_secrets: bool,
                settings: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<PyClassInitializer<$name>> {
                let credentials = [access_key_id, secret_access_key, session_token];
                let verbs = Verbs::make(py, credentials, anonymous, pickle_secrets, settings, $awaitable)?;
                Ok(PyClassInitializer::from(verbs).add_subclass($name))
            }
        }
    };
}

view!(
    Client,
    false,
    "A client of one endpoint: its connections, its memory and its budget.\n\n\
     Making one sends nothing and starts nothing. It may be used from any number of threads at once, and in\n\
     children after a fork; pickled, it takes its settings along and never a secret.\n\n\
     Settings are keywords (``endpoint_url=``, ``region=``, ``concurrency=``, …); what is not given comes from\n\
     ``WIRESPEED_<NAME>`` and the AWS variables, then from the profile."
);
view!(AsyncClient, true, "The awaitable view of a client: the same verbs and arguments, to be awaited in asyncio.");

#[pymethods]
impl Client {
    /// The awaitable view of this client.
    #[getter]
    fn aio(slf: &Bound<'_, Self>) -> PyResult<Py<AsyncClient>> {
        let verbs = slf.as_super().get().view(true);
        Py::new(slf.py(), PyClassInitializer::from(verbs).add_subclass(AsyncClient))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        slf: &Bound<'_, Self>,
        kind: Option<&Bound<'_, PyType>>,
        error: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (kind, error, traceback);
        slf.as_super().get().close(slf.py()).map(drop)
    }
}

#[pymethods]
impl AsyncClient {
    fn __aenter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("wirespeed._driving")?.call_method1("value", (slf,))
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __aexit__<'py>(
        slf: &Bound<'py, Self>,
        kind: &Bound<'py, PyAny>,
        error: &Bound<'py, PyAny>,
        traceback: &Bound<'py, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        let _ = (kind, error, traceback);
        slf.as_super().get().close(slf.py())
    }

    /// The blocking view of this client.
    #[getter]
    fn blocking(slf: &Bound<'_, Self>) -> PyResult<Py<Client>> {
        let verbs = slf.as_super().get().view(false);
        Py::new(slf.py(), PyClassInitializer::from(verbs).add_subclass(Client))
    }
}

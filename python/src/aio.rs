//! Calls that are awaited.
//!
//! Owns: the way from the engine's threads into an asyncio loop. A finished call puts its result into
//! the loop's [`Inbox`] and, where the loop does not know yet that something lies there, writes one
//! byte into a socket that the loop reads. The loop then takes all there is: many results, one wake.
//! No thread of the engine's ever takes the interpreter's lock.

use std::future::Future;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_queue::SegQueue;
use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use wirespeed::Result;

use crate::call::TICK;
use crate::client::Live;
use crate::errors::{self, Raised};
use crate::fork;
use crate::memory::Lending;
use crate::progress::Watch;
use crate::{logging, memory, runtime};

type Finish = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

enum Letter {
    Done { future: Arc<Py<PyAny>>, finish: Finish },
    Look { future: Arc<Py<PyAny>>, watch: Arc<Mutex<Watch>>, task: Arc<Mutex<Option<AbortHandle>>> },
}

struct Inbox {
    letters: SegQueue<Letter>,
    /// Whether the loop has been told of a letter that it has not fetched yet.
    told: AtomicBool,
    bell: UnixStream,
}

impl Inbox {
    fn post(&self, letter: Letter) {
        self.letters.push(letter);
        if !self.told.swap(true, Ordering::AcqRel) {
            // Full means that the loop has yet to read: it will. Closed means that there is no loop.
            let _ = (&self.bell).write(&[1]);
        }
    }
}

/// What a loop calls when the bell has rung.
#[pyclass(frozen, weakref, module = "wirespeed")]
struct Mailman {
    inbox: Arc<Inbox>,
    ear: UnixStream,
    generation: u64,
}

#[pymethods]
impl Mailman {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let _ = (&self.ear).read(&mut [0; 64]);
        self.inbox.told.store(false, Ordering::Release);
        memory::sweep(py);
        logging::pass_on(py)?;
        while let Some(letter) = self.inbox.letters.pop() {
            match letter {
                // What a cancelled call brought is not taken: a stream keeps it for the next.
                Letter::Done { future, finish } if !is_done(py, &future)? => settle(py, &future, finish(py))?,
                Letter::Done { finish, .. } => drop(finish),
                Letter::Look { future, watch, task } => {
                    let told = watch.lock().unwrap_or_else(PoisonError::into_inner).tell(py);
                    if let Err(raised) = told {
                        if let Some(task) = &*task.lock().unwrap_or_else(PoisonError::into_inner) {
                            task.abort();
                        }
                        settle(py, &future, Err(raised))?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn is_done(py: Python<'_>, future: &Py<PyAny>) -> PyResult<bool> {
    future.bind(py).call_method0(intern!(py, "done"))?.is_truthy()
}

/// Completes an asyncio future, unless somebody has cancelled it.
fn settle(py: Python<'_>, future: &Py<PyAny>, outcome: PyResult<Py<PyAny>>) -> PyResult<()> {
    if is_done(py, future)? {
        return Ok(());
    }
    let future = future.bind(py);
    match outcome {
        Ok(value) => future.call_method1(intern!(py, "set_result"), (value,))?,
        Err(raised) if raised.is_instance_of::<PyStopIteration>(py) => {
            // A future takes no StopIteration, which would end whatever generator awaits it.
            let told = PyRuntimeError::new_err("a callback raised StopIteration");
            told.set_cause(py, Some(raised));
            future.call_method1(intern!(py, "set_exception"), (told,))?
        }
        Err(raised) => future.call_method1(intern!(py, "set_exception"), (raised,))?,
    };
    Ok(())
}

/// Stops the engine's task when its future is cancelled.
#[pyclass(frozen, module = "wirespeed")]
struct Canceller {
    task: AbortHandle,
    generation: u64,
}

#[pymethods]
impl Canceller {
    fn __call__(&self, future: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = future.py();
        if future.call_method0(intern!(py, "cancelled"))?.is_truthy()? && self.generation == fork::generation() {
            self.task.abort();
        }
        Ok(())
    }
}

pub(crate) fn running_loop(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    RUNNING.import(py, "asyncio", "get_running_loop")?.call0().map_err(|error| {
        if error.is_instance_of::<PyRuntimeError>(py) {
            PyRuntimeError::new_err(
                "there is no running event loop: await this in a coroutine that asyncio runs, or use the blocking Client",
            )
        } else {
            error
        }
    })
}

/// Something to be awaited that is there already.
pub(crate) fn ready(py: Python<'_>, value: Py<PyAny>) -> PyResult<Py<PyAny>> {
    let future = running_loop(py)?.call_method0(intern!(py, "create_future"))?;
    future.call_method1(intern!(py, "set_result"), (value,))?;
    Ok(future.unbind())
}

/// The loop's mailman, hired where it has none.
fn mailman<'py>(py: Python<'py>, running: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Mailman>> {
    static MAILMEN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let mailmen = MAILMEN
        .get_or_try_init(py, || py.import("weakref")?.getattr("WeakKeyDictionary")?.call0().map(Bound::unbind))?
        .bind(py);
    let known = mailmen.call_method1(intern!(py, "get"), (running,))?;
    if let Ok(known) = known.cast_into::<Mailman>()
        && known.get().generation == fork::generation()
    {
        return Ok(known);
    }
    // What was on its way to a loop that is closed keeps the loop, and that its mailman: nobody else ends this.
    for other in mailmen.call_method0("keys")?.try_iter()?.collect::<PyResult<Vec<_>>>()? {
        if other.call_method0(intern!(py, "is_closed"))?.is_truthy()? {
            mailmen.call_method1(intern!(py, "pop"), (other, py.None()))?;
        }
    }
    let pair = UnixStream::pair().and_then(|(bell, ear)| {
        bell.set_nonblocking(true)?;
        ear.set_nonblocking(true)?;
        Ok((bell, ear))
    });
    let (bell, ear) = pair.map_err(|error| errors::local_io(format!("a socket for the event loop: {error}")))?;
    let inbox = Arc::new(Inbox { letters: SegQueue::new(), told: AtomicBool::new(false), bell });
    let descriptor = ear.as_raw_fd();
    let mailman = Bound::new(py, Mailman { inbox, ear, generation: fork::generation() })?;
    running.call_method1(intern!(py, "add_reader"), (descriptor, &mailman))?;
    mailmen.set_item(running, &mailman)?;
    Ok(mailman)
}

/// Begins a call and gives the asyncio future that its result will be set on.
pub(crate) fn submit<T: Send + 'static>(
    py: Python<'_>,
    live: &Arc<Live>,
    work: impl Future<Output = Result<T>> + Send + 'static,
    finish: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    watch: Option<Watch>,
) -> PyResult<Py<PyAny>> {
    submit_lending(py, live, work, finish, watch, Lending::default())
}

/// The same of a call that fills memory of the caller's.
pub(crate) fn submit_lending<T: Send + 'static>(
    py: Python<'_>,
    live: &Arc<Live>,
    work: impl Future<Output = Result<T>> + Send + 'static,
    finish: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    watch: Option<Watch>,
    lending: Lending,
) -> PyResult<Py<PyAny>> {
    // As in `Call::run_lending`.
    let work = Box::pin(work);
    let running = running_loop(py)?;
    let inbox = Arc::clone(&mailman(py, &running)?.get().inbox);
    let threads = runtime::threads()?;
    logging::follow(py)?;
    memory::sweep(py);
    let future = running.call_method0(intern!(py, "create_future"))?.unbind();
    let awaited = future.clone_ref(py);
    let future = Arc::new(future);
    let watch = watch.map(|watch| Arc::new(Mutex::new(watch)));
    let itself = Arc::new(Mutex::new(None));
    let handle = Arc::clone(&itself);
    let stopped = Stopped { inbox: Arc::clone(&inbox), future: Arc::clone(&future), lending, delivered: false };
    let task = threads.spawn(live.stopping(threads), async move {
        let mut stopped = stopped;
        let result = match &watch {
            None => work.await,
            Some(watch) => {
                let look = || Letter::Look {
                    future: Arc::clone(&future),
                    watch: Arc::clone(watch),
                    task: Arc::clone(&handle),
                };
                ticking(work, || inbox.post(look())).await
            }
        };
        let finish = move |py: Python<'_>| {
            let result = result.raised(py)?;
            if let Some(watch) = watch {
                watch.lock().unwrap_or_else(PoisonError::into_inner).tell(py)?;
            }
            finish(py, result)
        };
        stopped.delivered = true;
        inbox.post(Letter::Done { future: Arc::clone(&future), finish: Box::new(finish) });
    });
    *itself.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.clone());
    let canceller = Canceller { task, generation: fork::generation() };
    awaited.call_method1(py, intern!(py, "add_done_callback"), (canceller,))?;
    Ok(awaited)
}

/// Says that a call was stopped, where it was dropped before it had a result.
struct Stopped {
    inbox: Arc<Inbox>,
    future: Arc<Py<PyAny>>,
    lending: Lending,
    delivered: bool,
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if !self.delivered {
            let finish = |_: Python<'_>| -> PyResult<Py<PyAny>> {
                Err(errors::cancelled("the call was stopped: the client was closed, or the interpreter ends"))
            };
            let letter = Letter::Done { future: Arc::clone(&self.future), finish: Box::new(finish) };
            let (inbox, lending) = (Arc::clone(&self.inbox), self.lending.clone());
            match Handle::try_current() {
                // The loop lets go of the caller's memory when no task writes to it any more.
                Ok(runtime) if !lending.is_over() => {
                    runtime.spawn(async move {
                        lending.over().await;
                        inbox.post(letter);
                    });
                }
                _ => inbox.post(letter),
            }
        }
    }
}

async fn ticking<T>(work: impl Future<Output = T>, tick: impl Fn()) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        match tokio::time::timeout(TICK, &mut work).await {
            Ok(result) => return result,
            Err(_) => tick(),
        }
    }
}

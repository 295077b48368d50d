//! Calls that are awaited.
//!
//! Owns: the way from the engine's threads into an asyncio loop. A finished call puts its result into
//! the loop's [`Inbox`] and, where the loop does not know yet that something lies there, writes one
//! byte into a socket that the loop reads. The loop then takes all there is: many results, one wake.
//! No thread of the engine's ever takes the interpreter's lock.

mod step;

use std::future::Future;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_queue::SegQueue;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use wirespeed::Result;

pub(crate) use step::{Arriving, Step};

use crate::call::TICK;
use crate::client::Live;
use crate::errors::{self, Raised};
use crate::fork::Inherited;
use crate::memory::Lending;
use crate::progress::{SharedWatch, Watch};
use crate::{logging, memory, runtime};

type Finish = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

enum Letter {
    Done { future: Arc<Py<PyAny>>, finish: Finish },
    Look { future: Arc<Py<PyAny>>, watch: SharedWatch, task: Arc<Mutex<Option<AbortHandle>>> },
}

impl Letter {
    fn open(self, py: Python<'_>) -> PyResult<()> {
        match self {
            // What a cancelled call brought is not taken: a stream keeps it for the next.
            Letter::Done { future, finish } if !is_done(py, &future)? => settle(py, &future, finish(py)),
            Letter::Done { .. } => Ok(()),
            Letter::Look { future, watch, task } => {
                let Err(raised) = watch.tell(py) else { return Ok(()) };
                if let Some(task) = &*task.lock().unwrap_or_else(PoisonError::into_inner) {
                    task.abort();
                }
                settle(py, &future, Err(raised))
            }
        }
    }
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

impl Drop for Inbox {
    fn drop(&mut self) {
        while let Some(letter) = self.letters.pop() {
            memory::leave(letter);
        }
    }
}

/// What a loop calls when the bell has rung. In a child, which has a copy of the loop, it does nothing:
/// the letters and the bell are the parent's.
#[pyclass(frozen, weakref, module = "wirespeed._wirespeed")]
struct Mailman {
    inbox: Inherited<Arc<Inbox>>,
    ear: UnixStream,
}

#[pymethods]
impl Mailman {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let Some(inbox) = self.inbox.get() else { return Ok(()) };
        let _ = (&self.ear).read(&mut [0; 64]);
        // Sees all that was posted by those who found that the loop knows.
        inbox.told.swap(false, Ordering::AcqRel);
        memory::sweep(py);
        // One that fails must not keep the others from those who wait for them.
        let mut outcome = Ok(());
        while let Some(letter) = inbox.letters.pop() {
            outcome = outcome.and(letter.open(py));
        }
        outcome.and(logging::pass_on(py))
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
    let set_exception = |raised: &PyErr| future.call_method1(intern!(py, "set_exception"), (raised.clone_ref(py),));
    match outcome {
        Ok(value) => future.call_method1(intern!(py, "set_result"), (value,))?,
        // A future takes no StopIteration, which would end whatever generator awaits it.
        Err(raised) => match set_exception(&raised) {
            Ok(set) => set,
            Err(refused) => {
                let kind = raised.get_type(py);
                let text = format!("a callback raised {}, which no future takes: {refused}", kind.name()?);
                let told = PyRuntimeError::new_err(text);
                told.set_cause(py, Some(raised));
                set_exception(&told)?
            }
        },
    };
    Ok(())
}

/// Stops the engine's task when its future is cancelled.
#[pyclass(frozen, module = "wirespeed._wirespeed")]
struct Canceller(Inherited<AbortHandle>);

#[pymethods]
impl Canceller {
    fn __call__(&self, future: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = future.py();
        if let Some(task) = self.0.get()
            && future.call_method0(intern!(py, "cancelled"))?.is_truthy()?
        {
            task.abort();
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

/// The mailmen by their loops.
static MAILMEN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Lets go of the mailmen of closed loops. What was on its way to a closed loop keeps the loop, and that
/// its mailman: nobody else ends this.
///
/// # Errors
/// What a signal handler raises, which may run here: Ctrl-C is not to be lost.
pub(crate) fn dismiss(py: Python<'_>) -> PyResult<()> {
    MAILMEN.get(py).map_or(Ok(()), |mailmen| dismiss_of(mailmen.bind(py)))
}

fn dismiss_of(mailmen: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = mailmen.py();
    if mailmen.len()? == 0 {
        return Ok(());
    }
    // A copy: iterating over the loops themselves fails where another thread adds one.
    for reference in mailmen.call_method0(intern!(py, "keyrefs"))?.try_iter()? {
        let other = reference?.call0()?;
        if !other.is_none() && other.call_method0(intern!(py, "is_closed"))?.is_truthy()? {
            mailmen.call_method1(intern!(py, "pop"), (other, py.None()))?;
        }
    }
    Ok(())
}

/// The loop's mailman, hired where it has none.
fn mailman<'py>(py: Python<'py>, running: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Mailman>> {
    let mailmen = MAILMEN
        .get_or_try_init(py, || py.import("weakref")?.getattr("WeakKeyDictionary")?.call0().map(Bound::unbind))?
        .bind(py);
    let known = mailmen.call_method1(intern!(py, "get"), (running,))?;
    if let Ok(known) = known.cast_into::<Mailman>()
        && known.get().inbox.is_ours()
    {
        return Ok(known);
    }
    dismiss_of(mailmen)?;
    let pair = UnixStream::pair().and_then(|(bell, ear)| {
        bell.set_nonblocking(true)?;
        ear.set_nonblocking(true)?;
        Ok((bell, ear))
    });
    let (bell, ear) = pair.map_err(|error| errors::local_io(format!("a socket for the event loop: {error}")))?;
    let inbox = Arc::new(Inbox { letters: SegQueue::new(), told: AtomicBool::new(false), bell });
    let descriptor = ear.as_raw_fd();
    let mailman = Bound::new(py, Mailman { inbox: Inherited::new(inbox), ear })?;
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
    let mailman = mailman(py, &running)?;
    let inbox = Arc::clone(mailman.get().inbox.get().ok_or_else(|| errors::inherited("loop"))?);
    let threads = runtime::threads()?;
    logging::follow(py)?;
    memory::sweep(py);
    let future = running.call_method0(intern!(py, "create_future"))?.unbind();
    let awaited = future.clone_ref(py);
    let itself = Arc::new(Mutex::new(None));
    let handle = Arc::clone(&itself);
    let watch = watch.map(|watch| SharedWatch::new(Some(watch)));
    let owed = Some(Owed { future: Arc::new(future), watch, finish });
    let stopping = live.stopping(threads);
    let owing = Owing { inbox, owed, lending, stopping: stopping.clone() };
    let task = threads.spawn(stopping, async move {
        let mut owing = owing;
        let result = match owing.watched() {
            None => work.await,
            Some((future, watch)) => {
                let inbox = Arc::clone(&owing.inbox);
                let look = || {
                    let (future, watch, task) = (Arc::clone(&future), watch.clone(), Arc::clone(&handle));
                    inbox.post(Letter::Look { future, watch, task });
                };
                ticking(work, look).await
            }
        };
        if let Some(Owed { future, watch, finish }) = owing.owed.take() {
            let finish = move |py: Python<'_>| {
                let result = result.raised(py)?;
                if let Some(watch) = watch {
                    watch.tell(py)?;
                }
                finish(py, result)
            };
            owing.inbox.post(Letter::Done { future, finish: Box::new(finish) });
        }
    });
    *itself.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.clone());
    awaited.call_method1(py, intern!(py, "add_done_callback"), (Canceller(Inherited::new(task)),))?;
    Ok(awaited)
}

/// What a call still owes its loop. It holds objects of Python's, so it ends in a letter, whichever way
/// the call does, and never on an engine thread.
struct Owing<G: Send + 'static> {
    inbox: Arc<Inbox>,
    owed: Option<Owed<G>>,
    lending: Lending,
    stopping: CancellationToken,
}

struct Owed<G> {
    future: Arc<Py<PyAny>>,
    watch: Option<SharedWatch>,
    finish: G,
}

impl<G: Send + 'static> Owing<G> {
    fn watched(&self) -> Option<(Arc<Py<PyAny>>, SharedWatch)> {
        let owed = self.owed.as_ref()?;
        Some((Arc::clone(&owed.future), owed.watch.clone()?))
    }
}

impl<G: Send + 'static> Drop for Owing<G> {
    /// Says that the call was stopped, where it was dropped before it had a result.
    fn drop(&mut self) {
        let Some(Owed { future, watch, finish }) = self.owed.take() else { return };
        let stopped = self.stopping.is_cancelled();
        let finish = move |_: Python<'_>| -> PyResult<Py<PyAny>> {
            drop((watch, finish));
            Err(errors::stopped(stopped))
        };
        let letter = Letter::Done { future, finish: Box::new(finish) };
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

async fn ticking<T>(work: impl Future<Output = T>, tick: impl Fn()) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        match tokio::time::timeout(TICK, &mut work).await {
            Ok(result) => return result,
            Err(_) => tick(),
        }
    }
}

//! One call into the engine: begun from Python, run on the engine's threads, waited for in one of two
//! ways.
//!
//! Owns: the blocking wait. The caller's thread gives up the interpreter's lock and sleeps until the
//! result is there; ten times a second it wakes to let a signal handler run (Ctrl-C), to tell how far
//! things have come and to pass on log records. Whatever a handler or a callback raises stops the call
//! and is raised. The awaitable form is in [`crate::aio`].

use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use pyo3::prelude::*;
use wirespeed::Result;

use crate::client::Live;
use crate::errors::{self, Raised};
use crate::memory::Lending;
use crate::progress::Watch;
use crate::{aio, logging, memory, runtime};

/// How often a waiting thread looks up.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// How long a stopped call is waited for: its tasks end at their next turn.
pub(crate) const STOPPING: Duration = Duration::from_secs(5);

/// Something for the engine to do, and how its result becomes Python's.
pub(crate) struct Call<F, G> {
    pub(crate) future: F,
    pub(crate) finish: G,
    pub(crate) watch: Option<Watch>,
}

impl<T, F, G> Call<F, G>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
    G: FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
{
    /// Waits here, or gives something to be awaited.
    pub(crate) fn run(self, py: Python<'_>, live: &Arc<Live>, awaitable: bool) -> PyResult<Py<PyAny>> {
        self.run_lending(py, live, awaitable, Lending::default())
    }

    /// The same of a call that fills memory of the caller's: an error is raised, and a signal let
    /// through, when no task writes there any more. A cancelled awaitable cannot wait; the memory is
    /// then the caller's again when its buffer view is released.
    pub(crate) fn run_lending(
        self,
        py: Python<'_>,
        live: &Arc<Live>,
        awaitable: bool,
        lending: Lending,
    ) -> PyResult<Py<PyAny>> {
        let Call { future, finish, mut watch } = self;
        let settling = lending.clone();
        // The engine's futures are tens of kilobytes, which every wrapper around one would move and hold
        // again: enough of them to overflow a thread's stack where nothing is optimised.
        let future = Box::pin(future);
        let future = async move { settling.settle(future.await).await };
        if awaitable {
            return aio::submit_lending(py, live, future, finish, watch, lending);
        }
        let _inside = runtime::inside();
        let result = wait_lending(py, live, future, &mut watch, lending)?;
        if let Some(watch) = &mut watch {
            watch.tell(py)?;
        }
        finish(py, result)
    }
}

/// Runs a future on the engine's threads and waits for it; `watch` is told while it lasts.
pub(crate) fn wait<T: Send + 'static>(
    py: Python<'_>,
    live: &Arc<Live>,
    future: impl Future<Output = Result<T>> + Send + 'static,
    watch: &mut Option<Watch>,
) -> PyResult<T> {
    wait_lending(py, live, Box::pin(future), watch, Lending::default())
}

/// `future` is small: the engine's are boxed by whoever calls.
fn wait_lending<T: Send + 'static>(
    py: Python<'_>,
    live: &Arc<Live>,
    future: impl Future<Output = Result<T>> + Send + 'static,
    watch: &mut Option<Watch>,
    lending: Lending,
) -> PyResult<T> {
    let _inside = runtime::inside();
    if runtime::ends_elsewhere() {
        return Err(errors::ending(py));
    }
    // Many short waits, none of which sees a tick, are a loop that Ctrl-C has to end too.
    py.check_signals()?;
    let threads = runtime::threads()?;
    logging::follow(py)?;
    let (sender, mut receiver) = sync_channel(1);
    let stopping = live.stopping(threads);
    let task = threads.spawn(stopping, deliver(future, sender));
    let look_up = |watch: &mut Option<Watch>| -> PyResult<()> {
        py.check_signals()?;
        logging::pass_on(py)?;
        watch.as_mut().map_or(Ok(()), |watch| watch.tell(py))
    };
    let outcome = loop {
        let (received, back) = threads.detached(py, move || (receiver.recv_timeout(TICK), receiver));
        receiver = back;
        match received {
            Ok(result) => break result,
            Err(RecvTimeoutError::Timeout) => {
                if let Err(raised) = look_up(watch) {
                    task.abort();
                    // Its memory is the caller's again only when no task writes to it any more.
                    threads.detached(py, move || {
                        while receiver.recv_timeout(STOPPING).is_ok() {}
                        lending.wait(STOPPING);
                    });
                    memory::sweep(py);
                    return Err(raised);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                // As above; the task itself has ended.
                threads.detached(py, move || lending.wait(STOPPING));
                memory::sweep(py);
                logging::pass_on(py)?;
                return Err(errors::stopped(stopping.is_cancelled()));
            }
        }
    };
    memory::sweep(py);
    aio::dismiss(py)?;
    logging::pass_on(py)?;
    outcome.raised(py)
}

async fn deliver<T>(future: impl Future<Output = Result<T>>, sender: SyncSender<Result<T>>) {
    // Where nobody waits any more, nobody misses it.
    let _ = sender.send(future.await);
}

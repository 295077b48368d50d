//! The threads that the engine runs on.
//!
//! Owns: one runtime a process, begun by the first call and never by the import. A child begins its
//! own and leaves its parent's alone. Its threads never take the interpreter's lock: they hand results
//! to whoever waits, so that no transfer ever waits for Python.

use std::future::Future;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::client::Live;
use crate::errors;
use crate::fork::{self, PerProcess};

/// More threads than this bring nothing: one receives several GB/s.
const MOST_THREADS: usize = 8;

/// How long the end of the interpreter waits for what was in flight: temporaries to be removed,
/// uploads to be aborted.
pub(crate) const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// The thread that ends the interpreter, once it does.
static ENDING: OnceLock<ThreadId> = OnceLock::new();

/// Whether it has waited for the others: who has not come back by now might find no interpreter.
static GONE: AtomicBool = AtomicBool::new(false);

/// Whether the interpreter ends, in another thread.
pub(crate) fn ends_elsewhere() -> bool {
    ENDING.get().is_some_and(|ending| *ending != thread::current().id())
}

fn is_gone_elsewhere() -> bool {
    GONE.load(Ordering::SeqCst) && ends_elsewhere()
}

/// Threads of Python's that are in a call.
#[derive(Default)]
struct Doors {
    inside: AtomicUsize,
    /// Those that have left the interpreter and mean to come back at once.
    returning: AtomicUsize,
}

static DOORS: PerProcess<Doors> = PerProcess::new(Doors::default);

/// One that the end of the interpreter waits for.
pub(crate) struct Inside(&'static Doors);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

/// To be held while a call is waited for and its outcome made: made of Python's, that may let go of the
/// interpreter's lock, and with frames of ours below must not find the interpreter gone.
pub(crate) fn inside() -> Inside {
    let doors = DOORS.get();
    doors.inside.fetch_add(1, Ordering::SeqCst);
    Inside(doors)
}

static CURRENT: AtomicPtr<Threads> = AtomicPtr::new(ptr::null_mut());

/// The runtime of this process, and what runs on it.
pub(crate) struct Threads {
    runtime: Handle,
    /// Kept, since dropping it would stop its threads.
    _owned: Option<Runtime>,
    tasks: TaskTracker,
    stopping: CancellationToken,
    /// The clients that have used it.
    clients: Mutex<Vec<Weak<Live>>>,
    generation: u64,
}

/// This process's runtime, begun where there is none yet.
pub(crate) fn threads() -> PyResult<&'static Threads> {
    let current = CURRENT.load(Ordering::Acquire);
    // SAFETY: what is stored there was leaked, so it lives for as long as the process.
    if let Some(threads) = unsafe { current.as_ref() }
        && threads.generation == fork::generation()
    {
        return Ok(threads);
    }
    let begun = Threads::begin().map_err(|error| {
        errors::local_io(format!(
            "the engine's threads cannot be started: {error}; is there a limit on threads or memory?"
        ))
    })?;
    let begun = Box::into_raw(Box::new(begun));
    match CURRENT.compare_exchange(current, begun, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: leaked just now.
        Ok(_) => Ok(unsafe { &*begun }),
        Err(_) => {
            // Another thread was quicker.
            // SAFETY: nobody else has seen this one.
            drop(unsafe { Box::from_raw(begun) });
            threads()
        }
    }
}

impl Threads {
    fn begin() -> std::io::Result<Threads> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let named = std::env::var("WIRESPEED_THREADS").ok().and_then(|count| count.parse().ok());
        let count: usize = named.unwrap_or(cores.min(MOST_THREADS)).clamp(1, 1024);
        let stopping = CancellationToken::new();
        let (runtime, owned) = if count == 1 {
            // One thread needs no queues that others may steal from.
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let handle = runtime.handle().clone();
            std::thread::Builder::new()
                .name("wirespeed".into())
                .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
            (handle, None)
        } else {
            let runtime =
                Builder::new_multi_thread().worker_threads(count).thread_name("wirespeed").enable_all().build()?;
            (runtime.handle().clone(), Some(runtime))
        };
        let clients = Mutex::new(Vec::new());
        let generation = fork::generation();
        Ok(Threads { runtime, _owned: owned, tasks: TaskTracker::new(), stopping, clients, generation })
    }

    /// A client that may have something to be cleaned up at the end.
    pub(crate) fn remember(&self, client: &Arc<Live>) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|client| client.strong_count() > 0);
        clients.push(Arc::downgrade(client));
    }

    /// A token that the end of the interpreter cancels.
    pub(crate) fn token(&self) -> CancellationToken {
        self.stopping.child_token()
    }

    /// Runs it to its end, or until it is aborted or the token is cancelled.
    pub(crate) fn spawn(
        &self,
        stopping: &CancellationToken,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> AbortHandle {
        let stopping = stopping.clone();
        let task = async move {
            tokio::select! {
                biased;
                () = stopping.cancelled_owned() => {}
                () = future => {}
            }
        };
        self.tasks.spawn_on(task, &self.runtime).abort_handle()
    }

    /// Calls something of Python's. Where the interpreter ends meanwhile, its end waits a moment for
    /// this to return, and the thread then goes nowhere, as in `detached`.
    pub(crate) fn calling<T>(&self, py: Python<'_>, call: impl FnOnce() -> T) -> T {
        let _inside = inside();
        let value = call();
        if is_gone_elsewhere() {
            py.detach(|| stay_outside());
        }
        value
    }

    /// Leaves the interpreter to others while this lasts.
    ///
    /// A thread that came to the interpreter's door when it is gone would before Python 3.14 be unwound
    /// there, through frames that cannot be, and the process would abort. So [`stop`], which comes
    /// before that, waits for those that are in a call; who comes later still stays outside.
    pub(crate) fn detached<T: Send>(&self, py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
        let inside = inside();
        let Inside(Doors { returning, .. }) = &inside;
        let value = py.detach(|| {
            let value = work();
            returning.fetch_add(1, Ordering::SeqCst);
            if is_gone_elsewhere() {
                returning.fetch_sub(1, Ordering::SeqCst);
                stay_outside();
            }
            value
        });
        returning.fetch_sub(1, Ordering::SeqCst);
        value
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.runtime
    }
}

fn stay_outside() -> ! {
    loop {
        thread::park();
    }
}

/// Stops what is in flight, and waits a moment for what has to be cleaned up and for the threads that
/// waited for it: their calls raise, so that whoever joins them at the end does not wait for ever.
pub(crate) fn stop(py: Python<'_>) {
    errors::prepare(py);
    ENDING.get_or_init(|| thread::current().id());
    // SAFETY: as in `threads`.
    let Some(threads) = (unsafe { CURRENT.load(Ordering::Acquire).as_ref() }) else { return };
    if threads.generation != fork::generation() {
        return;
    }
    let clients: Vec<_> = {
        let clients = threads.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.iter().filter_map(Weak::upgrade).collect()
    };
    py.detach(|| {
        threads.stopping.cancel();
        threads.tasks.close();
        let (done, wait) = std::sync::mpsc::sync_channel(1);
        let tasks = threads.tasks.clone();
        threads.runtime.spawn(async move {
            tasks.wait().await;
            for client in clients {
                // What could not be cleaned up has been said by the engine's own warning.
                let _ = client.engine.settle(LAST_PATIENCE).await;
            }
            let _ = done.send(());
        });
        let until = Instant::now() + LAST_PATIENCE;
        let _ = wait.recv_timeout(LAST_PATIENCE);
        let doors = DOORS.get();
        while doors.inside.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        GONE.store(true, Ordering::SeqCst);
        while doors.returning.load(Ordering::SeqCst) > 0 {
            thread::sleep(Duration::from_millis(1));
        }
    });
}

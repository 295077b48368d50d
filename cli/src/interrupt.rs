//! Signals: the first SIGINT or SIGTERM cancels, the second ends the process at once.
//!
//! They are awaited on a thread of their own, because the command's thread may be inside a write to a pipe that nobody
//! reads. For the same reason the process ends by itself when cancelling has not ended it within [`GRACE`].

use std::io;
use std::process;
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::failure::Exit;

/// "Stops within a second" holds whatever the command is stuck in.
const GRACE: Duration = Duration::from_millis(900);

/// The first signal, once it comes.
pub(crate) struct Interrupt {
    first: oneshot::Receiver<Exit>,
}

impl Interrupt {
    /// Takes SIGINT and SIGTERM over from the system.
    pub(crate) fn watch() -> io::Result<Interrupt> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (mut interrupts, mut terminations) = {
            let _guard = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
        };
        let (tell, first) = oneshot::channel();
        thread::Builder::new().name("signals".to_owned()).stack_size(128 << 10).spawn(move || {
            runtime.block_on(async move {
                let mut next = async || {
                    tokio::select! {
                        _ = interrupts.recv() => Exit::Interrupted,
                        _ = terminations.recv() => Exit::Terminated,
                    }
                };
                let exit = next().await;
                // A command that has just ended no longer listens; the process is on its way out.
                let _ = tell.send(exit);
                let _ = tokio::time::timeout(GRACE, next()).await;
                process::exit(exit as i32)
            })
        })?;
        Ok(Interrupt { first })
    }

    /// Waits for the first signal; the exit code that it means.
    pub(crate) async fn wait(self) -> Exit {
        match self.first.await {
            Ok(exit) => exit,
            // The watching thread is gone, so no signal can come this way.
            Err(_) => std::future::pending().await,
        }
    }
}

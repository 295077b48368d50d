//! `--verbose`: what the engine does, on standard error.
//!
//! Once: retries, throttling, uploads that could not be aborted (the engine's own events). Twice: every request as well,
//! as its observer sees it. Without the flag there is no subscriber and no observer, and so no cost.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;
use wirespeed::{Observer, RequestEvent};

/// Sends events to standard error, if they were asked for.
pub(crate) fn start(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => "wirespeed=debug",
        _ => "wirespeed=trace",
    };
    // Fails only when a subscriber is set already, and then that one serves.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(level))
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .try_init();
}

/// Tells of every request.
pub(crate) struct Requests;

impl Observer for Requests {
    fn request(&self, event: &RequestEvent) {
        let RequestEvent { operation, status, bytes, time_to_first_byte, total, .. } = event;
        tracing::trace!(operation, status, bytes, ?time_to_first_byte, ?total, "request");
    }
}

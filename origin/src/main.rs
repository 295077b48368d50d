//! Runs the embedded S3 server.

mod arguments;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use arguments::Arguments;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // s3s logs each refusal that a client is sent as an error of its own.
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,s3s=off"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).init();
    match serve(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wirespeed-origin: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(arguments: Arguments) -> io::Result<()> {
    let runtime = match arguments.threads() {
        1 => runtime::Builder::new_current_thread().enable_all().build()?,
        threads => runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?,
    };
    runtime.block_on(async {
        let mut interrupted = signal(SignalKind::interrupt())?;
        let mut terminated = signal(SignalKind::terminate())?;
        let (port_file, ca_file) = (arguments.port_file.clone(), arguments.tls_ca_file.clone());
        let running = arguments.builder()?.start().await?;
        // The port last: whoever waits for it finds the other.
        if let (Some(path), Some(pem)) = (ca_file, running.ca_pem()) {
            write(&path, pem)?;
        }
        if let Some(path) = port_file {
            write(&path, &format!("{}\n", running.address().port()))?;
        }
        // Nobody may be reading; that is no reason not to serve.
        let _ = writeln!(io::stdout(), "wirespeed-origin listening on {}", running.endpoint());
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
        running.stop().await;
        Ok(())
    })
}

/// Writes a file and renames it into place: whoever waits for it never reads half.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    std::fs::write(&temporary, text)
        .and_then(|()| std::fs::rename(&temporary, path))
        .map_err(|error| io::Error::new(error.kind(), format!("can't write {}: {error}", path.display())))
}

//! The raw socket loop under TLS: what moving the bytes costs when nothing but aws-lc's AES-128-GCM stands
//! between the socket and the memory. `drivers/limit` is the same without TLS.
//!
//! One thread, edge-triggered epoll, nonblocking keep-alive sockets, unsigned requests rendered before the clock
//! starts. rustls verifies the server and makes the handshake; the keys it hands over are then used here. Of each
//! record that arrives the content is opened from the receive buffer, which stays in cache, into its final place;
//! what is sent is sealed from the caller's memory into a buffer of the connection's own. It may do what a client
//! can't: it knows every length, keeps no ticket, and fails where it would have to think.
//!
//! `work` renders requests, `event_loop` waits, `connection` sends and receives, `record` opens and seals.

mod connection;
mod event_loop;
mod record;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use protocol::{Moved, Steps, bytes};
use serde_json::json;

use crate::event_loop::EventLoop;
use crate::work::Work;

/// The raw socket loop under TLS 1.3 with AES-128-GCM, no client in it.
#[derive(Parser, Debug)]
pub struct Options {
    /// get: one object in ranges; put: one object for each part
    #[arg(long)]
    mode: Mode,
    /// Server that answers unsigned requests, as https://HOST:PORT
    #[arg(long)]
    endpoint: String,
    /// PEM file of the authorities to trust
    #[arg(long)]
    ca: PathBuf,
    /// Bucket of the object
    #[arg(long)]
    bucket: String,
    /// Key of the object (put: keys KEY0, KEY1, ...)
    #[arg(long)]
    key: String,
    /// Bytes of the object
    #[arg(long, value_parser = bytes)]
    size: u64,
    /// Bytes of a range, or of an upload
    #[arg(long, value_parser = bytes, default_value = "8MiB")]
    part: u64,
    /// Connections, each with one request in flight
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    connections: u16,
    /// SO_RCVLOWAT while a body is outstanding; 0 for the kernel's default
    #[arg(long, value_parser = bytes, default_value = "0")]
    rcvlowat: u64,
    /// SO_SNDBUF; 0 for the kernel's own tuning
    #[arg(long, value_parser = bytes, default_value = "0")]
    sndbuf: u64,
    /// SO_RCVBUF; 0 for the kernel's own tuning
    #[arg(long, value_parser = bytes, default_value = "0")]
    rcvbuf: u64,
    /// Ciphertext received at once, into one buffer for all connections; at least 32KiB
    #[arg(long, value_parser = bytes, default_value = "256KiB")]
    scratch: u64,
    /// Content sealed at once; at least 16KiB
    #[arg(long, value_parser = bytes, default_value = "64KiB")]
    seal: u64,
    /// Where bodies go
    #[arg(long, default_value = "memory")]
    sink: Sink,
    /// Write the memory of the last round there, untimed
    #[arg(long)]
    dump: Option<PathBuf>,
    /// Rounds in this process
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Print `ready`, then run one round for each `go` on standard input
    #[arg(long)]
    step: bool,
    /// Give up when nothing moved for so many seconds
    #[arg(long, default_value_t = 30)]
    timeout: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Mode {
    Get,
    Put,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Sink {
    Memory,
    Discard,
}

fn run(options: &Options) -> Result<()> {
    if options.size == 0 || options.part == 0 || options.scratch < 32 << 10 || options.seal < 16 << 10 {
        bail!("--size and --part are at least 1, --scratch at least 32KiB, --seal at least 16KiB");
    }
    let mut work = Work::prepare(options)?;
    let mut event_loop = EventLoop::open(options, &work)?;
    let config = json!({
        "client": "limit-tls", "cipher": "TLS13_AES_128_GCM_SHA256", "connections": options.connections,
        "size": options.size, "part": options.part, "rcvlowat": options.rcvlowat, "rcvbuf": options.rcvbuf,
        "sndbuf": options.sndbuf, "scratch": options.scratch, "seal": options.seal,
    });
    let (operation, sink) = (name(options.mode), name(options.sink));
    let head = json!({ "operation": operation, "sink": sink, "config": config });
    Steps { step: options.step, rounds: options.rounds }.run(head, || {
        let moved = event_loop.round(&mut work)?;
        Ok(Moved { bytes: moved.bytes, objects: 1, requests: moved.requests, reconnects: moved.reconnects })
    })?;
    if let Some(path) = &options.dump {
        std::fs::write(path, &work.memory[..]).with_context(|| format!("can't write {}", path.display()))?;
    }
    Ok(())
}

fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("limit-tls: {error:#}");
            ExitCode::FAILURE
        }
    }
}

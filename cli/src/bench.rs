//! `wirespeed bench`: the engine alone, round after round in one process, so that what is measured is the transfer and
//! not the start of a process.
//!
//! Owns the rounds and their clock; `work` says what a round does, `latency` listens to the engine's requests,
//! `memory` knows the process's peak, `report` prints. Listing, the body of an upload, folders and their clearing are all outside the clock. The first round is
//! cold (connections, memory) and stands in the list like the others.

mod latency;
mod memory;
mod report;
mod work;

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike as _};
use serde::Serialize;
use tokio::io::AsyncBufReadExt as _;

pub(crate) use self::latency::Latency;
use self::report::{Report, Round, StepRound};
use self::work::{KeysFormat, Work};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::units::parse_size;
use crate::uri::S3Uri;

const EXAMPLES: &str = "\
Examples:
  wirespeed bench get s3://bucket/1GiB --sink memory --rounds 20
  wirespeed bench get s3://bucket/small/ --sink discard --json
  wirespeed bench get s3://bucket --keys-format 'data/{:08}' --count 20000
  wirespeed bench get s3://bucket/1GiB --sink file --path /mnt/disk
  wirespeed bench put s3://bucket/upload --size 1GiB --unsigned-payload
  wirespeed bench put s3://bucket/many/ --size 64KiB --count 20000

A target that ends in / or is a bucket alone means the keys under it, listed once before the clock starts.
What `put` uploads stays there; `wirespeed rm` removes it.";

/// Measure the engine alone: time, CPU time, requests, latency, memory
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// What to measure
    operation: Operation,
    /// s3://bucket/key or s3://bucket/prefix/, all in one bucket
    #[arg(required = true, value_name = "S3_URI", value_parser = S3Uri::parse)]
    targets: Vec<S3Uri>,
    /// Where bytes go (get) or come from (put): memory, discard (get only), file
    #[arg(long, default_value = "memory")]
    sink: Sink,
    /// Rounds to measure
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Folder for --sink file; its files are removed after each round (default: a temporary folder)
    #[arg(long, value_name = "FOLDER")]
    path: Option<PathBuf>,
    /// get: at most so many keys of a prefix; put: so many objects under a prefix
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// put: bytes an object [default: 1GiB without --count]
    #[arg(long, value_parser = parse_size)]
    size: Option<u64>,
    /// Keys by number instead of by listing, as in 'data/{:08}'; needs --count
    #[arg(long, value_name = "FORMAT", value_parser = KeysFormat::parse, requires = "count")]
    keys_format: Option<KeysFormat>,
    /// get of many, to memory: keep every object until the round is over, as a caller does who wants them all at once
    #[arg(long)]
    keep: bool,
    /// Print `ready`, then run one round for every line `go` on standard input and print it as a JSON line
    #[arg(long, conflicts_with = "rounds")]
    step: bool,
}

/// The direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Operation {
    /// From S3
    Get,
    /// To S3
    Put,
}

/// What is at this machine's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sink {
    Memory,
    Discard,
    File,
}

/// Runs `bench`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let work = Work::prepare(context, arguments).await?;
    if arguments.step {
        return step(context, &work).await;
    }
    let mut rounds = Vec::with_capacity(arguments.rounds as usize);
    for _ in 0..arguments.rounds {
        rounds.push(round(context, &work).await?);
    }
    let report = Report {
        operation: arguments.operation,
        sink: arguments.sink,
        rounds,
        peak_rss_bytes: memory::peak_resident()?,
        socket_memory_bytes: context.client.metrics().socket_memory,
        config: context.client.config().entries().collect(),
    };
    if context.output.json() {
        context.output.record(&report)?;
    } else {
        report.table().iter().try_for_each(|line| context.output.line(line))?;
    }
    Ok(Exit::Done)
}

async fn step(context: &Context<'_>, work: &Work) -> Result<Exit, Failure> {
    let mut lines = tokio::io::BufReader::new(tokio::io::stdin()).lines();
    context.output.line("ready")?;
    context.output.flush()?;
    let cannot = |source| Failure::Local { what: "cannot read standard input".to_owned(), source };
    while let Some(line) = lines.next_line().await.map_err(cannot)? {
        if line.trim() != "go" {
            return Err(Failure::Usage(format!("`{line}` is no command of --step; write `go` for a round")));
        }
        let round = round(context, work).await?;
        context.output.record(&StepRound {
            round,
            peak_rss_bytes: memory::peak_resident()?,
            socket_memory_bytes: context.client.metrics().socket_memory,
        })?;
        context.output.flush()?;
    }
    Ok(Exit::Done)
}

async fn round(context: &Context<'_>, work: &Work) -> Result<Round, Failure> {
    let keys = work.keys();
    let requests = context.client.metrics().requests;
    let before = usage()?;
    let started = Instant::now();
    let moved = work.round(&context.client, keys).await?;
    let seconds = started.elapsed().as_secs_f64();
    let after = usage()?;
    let requests = context.client.metrics().requests - requests;
    work.clear()?;
    let (ttfb_ms, latency_ms) = context.latency.as_ref().map(|latency| latency.take()).unwrap_or_default();
    Ok(Round {
        seconds,
        bytes: moved.bytes,
        objects: moved.objects,
        requests,
        user_s: seconds_between(before.user_time(), after.user_time()),
        system_s: seconds_between(before.system_time(), after.system_time()),
        ttfb_ms,
        latency_ms,
    })
}

/// The whole process's CPU time.
fn usage() -> Result<Usage, Failure> {
    getrusage(UsageWho::RUSAGE_SELF).map_err(|error| Failure::Local {
        what: "cannot read the process's resource usage".to_owned(),
        source: error.into(),
    })
}

fn seconds_between(before: TimeVal, after: TimeVal) -> f64 {
    (after - before).num_microseconds() as f64 / 1e6
}

//! What every Rust driver shares: the arguments of a workload, the clock around
//! a round, and the JSON that comes out. It holds no client, and does nothing
//! between a round's two clock readings.

use std::future::Future;
use std::io::{BufRead, Write};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Parser;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use serde_json::{Value, json};

/// The workload: one object of `size` bytes in ranges of `part` bytes, or
/// `count` objects of `size` bytes each, named by prefix, number and suffix.
#[derive(Parser, Clone, Debug)]
pub struct Workload {
    /// Server, as `http://HOST:PORT`.
    #[arg(long)]
    pub endpoint: String,
    /// Bucket that holds the objects.
    #[arg(long)]
    pub bucket: String,
    /// The one object to read in ranges.
    #[arg(long, required_unless_present = "keys_prefix")]
    pub key: Option<String>,
    /// Common beginning of the keys of many objects.
    #[arg(long)]
    pub keys_prefix: Option<String>,
    /// What follows the number in each key.
    #[arg(long, default_value = "")]
    pub keys_suffix: String,
    /// Width to which the number in a key is padded with zeros.
    #[arg(long, default_value_t = 1)]
    pub digits: usize,
    /// Number in the first key.
    #[arg(long, default_value_t = 0)]
    pub first: u64,
    /// How many objects.
    #[arg(long, default_value_t = 1)]
    pub count: u64,
    /// Bytes of each object.
    #[arg(long, value_parser = bytes)]
    pub size: u64,
    /// Bytes of a range.
    #[arg(long, value_parser = bytes, default_value = "8MiB")]
    pub part: u64,
    /// Requests in flight.
    #[arg(long, default_value_t = 16)]
    pub connections: usize,
    /// Rounds in this process.
    #[arg(long, default_value_t = 1)]
    pub rounds: u32,
    /// Print `ready`, then run one round for each `go` on standard input.
    #[arg(long)]
    pub step: bool,
    /// Access key id.
    #[arg(long, env = "AWS_ACCESS_KEY_ID")]
    pub access_key: String,
    /// Secret access key.
    #[arg(long, env = "AWS_SECRET_ACCESS_KEY", hide_env_values = true)]
    pub secret_key: String,
    /// Region that signatures name.
    #[arg(long, env = "AWS_REGION", default_value = "us-east-1")]
    pub region: String,
}

/// One request of a workload: a key, and the range to ask for if not all of it.
#[derive(Clone, Debug)]
pub struct Get {
    /// Key of the object.
    pub key: String,
    /// First byte and the one past the last; `None` for the whole object.
    pub range: Option<(u64, u64)>,
    /// Bytes that must come.
    pub len: u64,
}

/// A number of bytes, as `65536`, `64KiB`, `8MiB` or `1GiB`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        unit => return Err(format!("unknown unit {unit}: use KiB, MiB or GiB")),
    };
    let value: u64 = digits.parse().map_err(|error| format!("{digits}: {error}"))?;
    Ok(value << shift)
}

/// The kernel's high-water mark of this address space. (getrusage's peak begins
/// at that of the process that started this one.)
fn peak_rss_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok())
        .context("no VmHWM in /proc/self/status")?;
    Ok(kib * 1024)
}

impl Workload {
    /// The requests of a round, in order.
    pub fn gets(&self) -> Vec<Get> {
        if let Some(prefix) = &self.keys_prefix {
            let (width, suffix) = (self.digits, &self.keys_suffix);
            return (self.first..self.first + self.count)
                .map(|n| Get { key: format!("{prefix}{n:0width$}{suffix}"), range: None, len: self.size })
                .collect();
        }
        let key = self.key.clone().unwrap_or_default();
        (0..self.size)
            .step_by(self.part as usize)
            .map(|from| {
                let to = (from + self.part).min(self.size);
                Get { key: key.clone(), range: Some((from, to)), len: to - from }
            })
            .collect()
    }

    fn objects(&self) -> u64 {
        if self.keys_prefix.is_some() { self.count } else { 1 }
    }

    /// Runs the rounds on a runtime of one thread. `round` returns the bytes it
    /// received; anything but the bytes of the workload is an error.
    pub fn run<F, Fut>(&self, config: Value, round: F) -> Result<()>
    where
        F: FnMut(Vec<Get>) -> Fut,
        Fut: Future<Output = Result<u64>>,
    {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        self.run_on(&runtime, config, round)
    }

    /// The same on a runtime of the client's own.
    pub fn run_on<F, Fut>(&self, runtime: &tokio::runtime::Runtime, config: Value, mut round: F) -> Result<()>
    where
        F: FnMut(Vec<Get>) -> Fut,
        Fut: Future<Output = Result<u64>>,
    {
        let gets = self.gets();
        let wanted: u64 = gets.iter().map(|get| get.len).sum();
        let head = json!({ "operation": "get", "sink": "discard", "config": config });
        Steps { step: self.step, rounds: self.rounds }.run(head, || {
            let bytes = runtime.block_on(round(gets.clone()))?;
            if bytes != wanted {
                bail!("received {bytes} bytes, not {wanted}");
            }
            Ok(Moved { bytes, objects: self.objects(), requests: gets.len() as u64, reconnects: 0 })
        })
    }
}

/// What one round moved.
pub struct Moved {
    /// Bytes of bodies.
    pub bytes: u64,
    /// Whole objects.
    pub objects: u64,
    /// Requests answered.
    pub requests: u64,
    /// Connections that had to be made again.
    pub reconnects: u64,
}

/// How rounds are asked for: on standard input, or so many of them.
pub struct Steps {
    /// Print `ready`, then run one round for each `go`.
    pub step: bool,
    /// Without `step`: how many.
    pub rounds: u32,
}

impl Steps {
    /// Runs the rounds, each between two readings of the clocks, and prints them: one JSON object a round, or
    /// one for all, which begins with `head`.
    pub fn run(&self, mut head: Value, mut round: impl FnMut() -> Result<Moved>) -> Result<()> {
        let mut once = || measure(&mut round);
        let mut out = std::io::stdout().lock();
        if self.step {
            writeln!(out, "ready")?;
            out.flush()?;
            for line in std::io::stdin().lock().lines() {
                if line.context("standard input")?.trim() != "go" {
                    bail!("standard input takes lines that say go");
                }
                writeln!(out, "{}", once()?)?;
                out.flush()?;
            }
            return Ok(());
        }
        head["rounds"] = (0..self.rounds).map(|_| once()).collect::<Result<Vec<_>>>()?.into();
        head["peak_rss_bytes"] = peak_rss_bytes()?.into();
        writeln!(out, "{head}")?;
        Ok(())
    }
}

fn measure(round: &mut impl FnMut() -> Result<Moved>) -> Result<Value> {
    let before = getrusage(UsageWho::RUSAGE_SELF)?;
    let start = Instant::now();
    let moved = round()?;
    let seconds = start.elapsed().as_secs_f64();
    let after = getrusage(UsageWho::RUSAGE_SELF)?;
    let between = |a: TimeVal, b: TimeVal| (a.num_microseconds() - b.num_microseconds()) as f64 / 1e6;
    Ok(json!({
        "seconds": seconds, "bytes": moved.bytes, "objects": moved.objects, "requests": moved.requests,
        "reconnects": moved.reconnects,
        "user_s": between(after.user_time(), before.user_time()),
        "system_s": between(after.system_time(), before.system_time()),
        "peak_rss_bytes": peak_rss_bytes()?,
    }))
}

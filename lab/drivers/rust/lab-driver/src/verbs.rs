//! The verbs of the protocol, and the statuses that a driver exits with.

use std::fmt;
use std::io::{BufRead, BufWriter, Write};
use std::process::exit;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::body::body;
use crate::plan::{Operation, Plan, Source, VERSION};
use crate::round::Round;
use crate::{About, Client};

/// The plan or a later line is malformed, or of another version.
const BAD_INPUT: i32 = 65;
/// The client cannot do this plan.
const SKIPPED: i32 = 77;

/// Why a client cannot do a plan that is well formed.
#[derive(Debug)]
pub struct Skip(String);

impl Skip {
    /// The reason, as the report will show it.
    pub fn new(reason: impl Into<String>) -> Skip {
        Skip(reason.into())
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Skip {}

/// Does what the first argument says and exits, where it is a verb of the protocol; otherwise returns.
pub fn answer<C: Client>() {
    match std::env::args().nth(1).as_deref() {
        Some("describe") => println!("{}", describe(&C::ABOUT)),
        Some("run") => {
            if let Err(error) = run::<C>() {
                leave(&C::ABOUT, &error);
            }
        }
        _ => return,
    }
    exit(0)
}

fn describe(about: &About) -> Value {
    let mut line = json!({"type": "describe", "protocol": VERSION, "language": "rust"});
    if let (Value::Object(line), Ok(Value::Object(about))) = (&mut line, serde_json::to_value(about)) {
        line.extend(about);
    }
    line
}

/// A line that should not have come.
#[derive(Debug)]
struct BadInput;

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard input")
    }
}

fn leave(about: &About, error: &anyhow::Error) -> ! {
    if let Some(skip) = error.downcast_ref::<Skip>() {
        println!("{}", json!({"type": "skip", "reason": skip.to_string()}));
        exit(SKIPPED)
    }
    eprintln!("{}: {error:#}", about.name);
    exit(if error.is::<BadInput>() { BAD_INPUT } else { 1 })
}

#[derive(Deserialize)]
struct Go {
    round: u64,
    #[serde(default)]
    verify: bool,
}

fn parse_go(line: &str) -> Result<Go> {
    let value: Value = serde_json::from_str(line).context("a line is not JSON")?;
    ensure!(value["type"] == "go", "after the plan come lines of the type go, not {}", value["type"]);
    serde_json::from_value(value).context("a go is malformed")
}

/// A plan that cannot be done stays a [`Skip`]; all else that is wrong with a line is bad input.
fn as_input<T>(parsed: Result<T>) -> Result<T> {
    parsed.map_err(|error| if error.is::<Skip>() { error } else { error.context(BadInput) })
}

fn run<C: Client>() -> Result<()> {
    let mut lines = std::io::stdin().lock().lines();
    let line = as_input(lines.next().context("there is no plan").and_then(|line| Ok(line?)))?;
    let plan = Arc::new(as_input(Plan::parse(&line, &C::ABOUT))?);
    let from_memory = plan.operation == Operation::Put && plan.source == Source::Memory;
    let longest = plan.work.iter().map(|item| item.size as usize).max().unwrap_or_default();
    let body = from_memory.then(|| body(longest));
    if let Some(file) = &plan.ca_file {
        // SAFETY: no other thread has been started yet.
        unsafe { std::env::set_var("SSL_CERT_FILE", file) };
    }
    let runtime = C::runtime().context("start a runtime")?;
    let client = {
        let _inside = runtime.enter();
        Arc::new(C::open(&plan)?)
    };
    // Not held between rounds, and large enough that a round's lines take few writes.
    let mut out = BufWriter::with_capacity(1 << 20, std::io::stdout());
    writeln!(out, "{}", json!({"type": "ready"}))?;
    out.flush()?;
    for line in lines {
        let go = as_input(line.context("read a line").and_then(|line| parse_go(&line)))?;
        let round = Round::new(Arc::clone(&client), Arc::clone(&plan), body.clone(), go.round, go.verify);
        let clock = runtime.block_on(async {
            let running = Arc::clone(&round);
            tokio::spawn(async move { running.run().await }).await
        })?;
        // Apart from the samples, so that forming them is not taken for the client's work.
        writeln!(out, "{}", json!({"type": "stopped", "round": go.round}))?;
        out.flush()?;
        round.report(clock, &mut out)?;
    }
    Ok(())
}

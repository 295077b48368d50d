//! Checks that an S3 store does what S3 does, as far as wirespeed relies on it.
//!
//! Drives the engine's public API against a bucket, under a fresh prefix, and says of each case
//! whether the store passes it, differs, or does not offer it. Before anything is sent it says what
//! that costs and asks. What it made is removed at its end, whatever ends it.

mod case;
mod cases;
mod cleanup;
mod known;
mod report;
mod store;
mod suite;

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use wirespeed::{Client, ClientBuilder};

use crate::case::Case;
use crate::known::{Known, Outcome};
use crate::suite::{Row, Spent, Suite};

/// Checks that an S3 store does what S3 does, as far as wirespeed relies on it.
///
/// Credentials and settings come from where the engine takes them. The exit status is 0 when no case is red, 1 when
/// one is, 2 when nothing could be checked, 3 when the store stopped answering before all cases had run, 130 after an
/// interrupt. What could not be removed at the end is named, and changes no exit status.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The store; AWS in the region when left out.
    #[arg(long, value_name = "URL")]
    endpoint_url: Option<String>,
    /// The bucket to work in, under a fresh prefix.
    #[arg(long, required_unless_present = "list")]
    bucket: Option<String>,
    /// The region that requests are signed for.
    #[arg(long)]
    region: Option<String>,
    /// Any other setting of the engine.
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    /// Also run the cases that make buckets of their own, and remove them.
    #[arg(long)]
    own_buckets: bool,
    /// Only cases whose name has this in it; may be given again.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Names the cases and what each costs, and sends nothing.
    #[arg(long)]
    list: bool,
    /// Compare with what is known of this server; a case that fails beyond that is red, and so is one that no longer
    /// fails.
    #[arg(long, value_name = "NAME", conflicts_with = "known")]
    server: Option<String>,
    /// The same from a file of your own.
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// Don't ask before sending anything.
    #[arg(long)]
    yes: bool,
    /// One JSON document instead of a table.
    #[arg(long)]
    json: bool,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

const RED: u8 = 1;
const UNUSABLE: u8 = 2;
const GONE: u8 = 3;
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match start(&arguments) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("wirespeed-conformance: {error}");
            ExitCode::from(UNUSABLE)
        }
    }
}

fn start(arguments: &Arguments) -> Result<u8, Box<dyn std::error::Error>> {
    let mut cases = cases::all();
    if !arguments.only.is_empty() {
        cases.retain(|case| arguments.only.iter().any(|only| case.name.contains(only.as_str())));
    }
    if cases.is_empty() {
        return Err("no case has such a name; --list names them".into());
    }
    if arguments.list {
        let mut out = io::stdout().lock();
        for case in &cases {
            writeln!(out, "{:<44} {}", case.name, case.cost)?;
        }
        return Ok(0);
    }
    let known = match (&arguments.server, &arguments.known) {
        (Some(server), _) => Known::of_server(server)?,
        (None, Some(path)) => {
            let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            Known::parse(&text)?
        }
        (None, None) => Known::default(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(check(arguments, &cases, &known))
}

async fn check(arguments: &Arguments, cases: &[Case], known: &Known) -> Result<u8, Box<dyn std::error::Error>> {
    let client = builder(arguments)?.build()?;
    let anonymous = builder(arguments)?.anonymous().build()?;
    let bucket = arguments.bucket.clone().unwrap_or_default();
    let suite = Suite::new(client.clone(), anonymous, bucket.clone(), arguments.own_buckets);
    let declared = suite.cost(cases);
    eprintln!("{} cases under {bucket}/{}: {declared}", cases.len(), suite.prefix());
    if !arguments.yes && !agreed()? {
        return Ok(UNUSABLE);
    }
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    let before = client.metrics();
    let mut rows: Vec<Row> = Vec::new();
    let told = |row: Row| {
        if !arguments.json {
            // Nobody may be reading any more; the exit status still says what came of it.
            let _ = report::line(&mut io::stdout().lock(), &row);
        }
        rows.push(row);
    };
    let (mut interrupted, gone) = tokio::select! {
        ran = suite.run(cases, known, told) => (false, ran.err()),
        _ = interrupts.recv() => (true, None),
        _ = terminations.recv() => (true, None),
    };
    let not_run = cases.len() - rows.len();
    let left = if gone.is_some() {
        suite.unremoved()
    } else {
        tokio::select! {
            left = suite.clean_up() => left,
            _ = interrupts.recv() => {
                interrupted = true;
                suite.unremoved()
            }
        }
    };
    let spent = Spent::between(&before, &client.metrics());
    let mut out = io::stdout().lock();
    if arguments.json {
        let place = (&*bucket, suite.prefix());
        writeln!(out, "{:#}", report::document(place, &rows, not_run, &left, &declared, &spent))?;
    } else {
        report::summary(&mut out, &rows, &declared, &spent)?;
    }
    for left in &left {
        eprintln!("wirespeed-conformance: left behind: {left}");
    }
    if let Some(why) = &gone {
        eprintln!("wirespeed-conformance: the store answers no longer ({why}): {not_run} cases were not run");
    }
    // A store that was never there has answered no case.
    let answered = rows.iter().filter(|row| !matches!(row.outcome, Outcome::Skipped(_))).count() > 1;
    Ok(match (interrupted, gone) {
        (true, _) => INTERRUPTED,
        (false, Some(_)) => {
            if answered {
                GONE
            } else {
                UNUSABLE
            }
        }
        (false, None) if rows.iter().any(|row| row.outcome.is_red()) => RED,
        (false, None) => 0,
    })
}

fn builder(arguments: &Arguments) -> wirespeed::Result<ClientBuilder> {
    // Parts of the least size, so that a case in parts costs little.
    let mut builder = Client::builder().part_size(store::PART as u64);
    for (name, value) in [("endpoint_url", &arguments.endpoint_url), ("region", &arguments.region)] {
        if let Some(value) = value {
            builder = builder.set(name, value)?;
        }
    }
    for (name, value) in &arguments.set {
        builder = builder.set(name, value)?;
    }
    Ok(builder)
}

/// Asks whether to go on. Where nobody can be asked, nobody has agreed.
fn agreed() -> Result<bool, Box<dyn std::error::Error>> {
    if !io::stdin().is_terminal() {
        return Err("nobody is there to be asked; --yes agrees beforehand".into());
    }
    eprint!("Go on? [y/N] ");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

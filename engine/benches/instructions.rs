//! The hot paths by the instructions that they execute: a regression shows without a stopwatch.
//!
//! `cargo bench --features internals --bench instructions` counts with valgrind, prints every path beside
//! its record in `benches/instructions.json`, and fails when one needs over 5 % more than its record.
//! `… --bench instructions -- --update` writes the record anew; commit it with the change that explains it.
//!
//! A path is run twice, with different numbers of rounds; what the difference costs, divided by the
//! difference, is one round, free of start-up. SHA-256 is counted apart: valgrind has no SHA instructions,
//! so that the hash takes its slow path there and would drown everything else.

mod workload;

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde_json::{Value, json};
use workload::PATHS;

/// By how much a path may exceed its record. Compilers and allocators move counts by 1 or 2 %.
const TOLERANCE: f64 = 0.05;
const ROUNDS: [usize; 2] = [20, 60];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.as_slice() {
        [command, name, rounds] if command == "--run" => run(name, rounds).map(|()| true),
        rest => measure(rest.iter().any(|argument| argument == "--update")),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("instructions: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What one round of a path executes.
#[derive(Clone, Copy, Default)]
struct Count {
    instructions: u64,
    hashing: u64,
}

fn run(name: &str, rounds: &str) -> Result<(), Box<dyn Error>> {
    let path = PATHS.iter().find(|path| path.0 == name).ok_or("no such path")?;
    path.1(rounds.parse()?);
    Ok(())
}

fn measure(update: bool) -> Result<bool, Box<dyn Error>> {
    let file = record_file();
    let mut record: Value = match std::fs::read_to_string(&file) {
        Ok(text) => serde_json::from_str(&text)?,
        Err(_) => json!({}),
    };
    let mut counts = BTreeMap::new();
    for (name, _) in PATHS {
        let [few, many] = [count(name, ROUNDS[0])?, count(name, ROUNDS[1])?];
        let rounds = (ROUNDS[1] - ROUNDS[0]) as u64;
        let count = Count {
            instructions: many.instructions.saturating_sub(few.instructions) / rounds,
            hashing: many.hashing.saturating_sub(few.hashing) / rounds,
        };
        counts.insert(name, count);
    }

    if update {
        record[std::env::consts::ARCH] = counts
            .iter()
            .map(|(name, count)| {
                (name.to_string(), json!({"instructions": count.instructions, "hashing": count.hashing}))
            })
            .collect();
        std::fs::write(&file, serde_json::to_string_pretty(&record)? + "\n")?;
        println!("wrote {}", file.display());
    }
    let mut good = true;
    println!("{:<12} {:>12} {:>12} {:>8}", "path", "now", "record", "change");
    for (name, count) in counts {
        let recorded = &record[std::env::consts::ARCH][name];
        good &= compare(name, count.instructions, recorded["instructions"].as_u64());
        if count.hashing > 0 {
            good &= compare(&format!("{name} (hash)"), count.hashing, recorded["hashing"].as_u64());
        }
    }
    Ok(good)
}

fn compare(name: &str, now: u64, recorded: Option<u64>) -> bool {
    let Some(recorded) = recorded else {
        println!("{name:<12} {now:>12} {:>12}          NO RECORD: write one with --update", "-");
        return false;
    };
    let change = now as f64 / recorded.max(1) as f64 - 1.0;
    let verdict = match change {
        change if change > TOLERANCE => "REGRESSION",
        change if change < -TOLERANCE => "better: update the record",
        _ => "",
    };
    println!("{name:<12} {now:>12} {recorded:>12} {:>+7.1}% {verdict}", change * 100.0);
    change <= TOLERANCE
}

fn record_file() -> PathBuf {
    // Cargo names the package's folder to what it runs; by hand, run this from the workspace's root.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| "engine".into(), PathBuf::from);
    package.join("benches/instructions.json")
}

/// Runs a path under callgrind and adds up what it wrote.
fn count(name: &str, rounds: usize) -> Result<Count, Box<dyn Error>> {
    let profile = std::env::temp_dir().join(format!("instructions.{}.{name}.{rounds}", std::process::id()));
    let status = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(std::env::current_exe()?)
        .args(["--run", name, &rounds.to_string()])
        .stdout(Stdio::null())
        .status()
        .map_err(|error| format!("valgrind could not be started ({error}); install it"))?;
    if !status.success() {
        return Err(format!("valgrind failed on {name}: {status}").into());
    }
    let counted = add_up(&profile);
    std::fs::remove_file(&profile)?;
    counted
}

/// Adds up the self cost of all functions in a callgrind profile.
fn add_up(profile: &Path) -> Result<Count, Box<dyn Error>> {
    let text = std::fs::read_to_string(profile)?;
    let mut total = Count::default();
    let mut hashes = HashMap::new();
    let (mut hashing, mut inclusive) = (false, false);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=").or_else(|| line.strip_prefix("cfn=")) {
            // A name is spelt out once, `(12) name`, and afterwards called `(12)`.
            let (id, spelt) = name.split_once(')').ok_or("a function without a number")?;
            if !spelt.is_empty() {
                hashes.insert(id.to_owned(), spelt.contains("sha2") || spelt.contains("sha256"));
            }
            if line.starts_with("fn=") {
                hashing = hashes.get(id).copied().unwrap_or(false);
            }
        } else if line.starts_with("calls=") {
            // The next line is what the callee cost; the callee's own lines say so too.
            inclusive = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let cost: u64 = line.split(' ').nth(1).ok_or("a line without a cost")?.parse()?;
            if std::mem::take(&mut inclusive) {
                continue;
            }
            if hashing {
                total.hashing += cost;
            } else {
                total.instructions += cost;
            }
        }
    }
    Ok(total)
}

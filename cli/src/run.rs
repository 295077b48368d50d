//! `wirespeed run`: many commands, one a line, by one client: its connections, its memory, its credentials.
//!
//! A thread reads the lines and parses them while the commands before them run, so many at a time. What one line does is
//! no other's business: it fails alone, and what it says has its number. Refuses what lines cannot have each for
//! themselves: another client's settings, standard input, and programs within the program.

use std::fs::File;
use std::future::Future;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Instant;

use clap::{Args, CommandFactory as _, FromArgMatches as _};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::arguments::{Cli, Command, joined};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::output::Form;
use crate::quoting::words;
use crate::units::{Elapsed, thousands};

const EXAMPLES: &str = "\
Examples:
  wirespeed run commands.txt
  wirespeed run --jobs 8 --fail-fast commands.txt
  printf 'cp %s s3://bucket/in/\\n' *.csv | wirespeed run -
  wirespeed find s3://bucket/tmp --older-than 7d --command 'rm {}' | wirespeed run -

A line is a command as it is typed, with or without `wirespeed` before it: `cp a.csv s3://bucket/in/`. Quotes and
backslashes are those of a shell, # begins a comment, and nothing is expanded. Lines run many at a time and end in any
order; one that fails does not stop the others. Options about the client are given to `run` and hold for all.";

/// Run many commands from a file, many at a time
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A file of commands, one a line, or - for standard input
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// Commands under way at a time
    #[arg(long, short, visible_alias = "numworkers", value_name = "NUMBER", default_value_t = 256,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    jobs: u32,
    /// Begin no more once one has failed
    #[arg(long)]
    fail_fast: bool,
}

#[derive(Serialize)]
struct Summary {
    #[serde(rename = "type")]
    kind: &'static str,
    operation: &'static str,
    commands: u64,
    failed: u64,
    seconds: f64,
}

/// One line that says something.
struct Line {
    number: u64,
    command: Result<Cli, Failure>,
}

/// Runs `run`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let started = Instant::now();
    let mut lines = read(arguments)?;
    let mut running = FuturesUnordered::new();
    let (mut commands, mut failed, mut reading) = (0, 0, true);
    let mut stopped = None;
    loop {
        tokio::select! {
            line = lines.recv(), if reading && running.len() < arguments.jobs as usize => match line {
                Some(Ok(line)) => {
                    commands += 1;
                    running.push(execute(context, line));
                }
                Some(Err(failure)) => {
                    stopped = Some(failure);
                    reading = false;
                }
                None => reading = false,
            },
            Some(ended) = running.next(), if !running.is_empty() => match ended {
                Ended::Done => {}
                Ended::Failed => {
                    failed += 1;
                    reading &= !arguments.fail_fast;
                }
                // What no line would survive is told once.
                Ended::Hopeless(failure) => {
                    failed += 1;
                    reading = false;
                    stopped.get_or_insert(failure);
                }
            },
            else => break,
        }
    }
    let elapsed = started.elapsed();
    if context.output.json() {
        let seconds = elapsed.as_secs_f64();
        let summary = Summary { kind: "summary", operation: "run", commands, failed, seconds };
        context.output.report_record(&summary);
    } else if context.output.wants_bar() {
        let failures = if failed > 0 { format!(", {} failed", thousands(failed)) } else { String::new() };
        let commands = format!("{} command{}", thousands(commands), if commands == 1 { "" } else { "s" });
        context.output.note(&format!("run: {commands} in {}{failures}", Elapsed(elapsed)));
    }
    match stopped {
        Some(failure) => Err(failure),
        None if failed > 0 => Ok(Exit::Partial),
        None => Ok(Exit::Done),
    }
}

/// How one command ended; what it had to say is said.
enum Ended {
    Done,
    Failed,
    Hopeless(Failure),
}

async fn execute(context: &Context<'_>, line: Line) -> Ended {
    let json_and_quiet = match &line.command {
        Ok(cli) => Form { json: cli.global.json, quiet: cli.global.quiet, ..Form::default() },
        Err(_) => Form::default(),
    };
    let output = context.output.of_line(line.number, json_and_quiet);
    let exit = match &line.command {
        Ok(cli) => dispatched(&context.of_line(&output), &cli.command).await,
        Err(_) => Ok(Exit::Usage),
    };
    match (exit, line.command) {
        (_, Err(failure)) | (Err(failure @ (Failure::Usage(_) | Failure::Local { .. })), _) => {
            output.failure(&failure);
            Ended::Failed
        }
        (Ok(Exit::Done) | Err(Failure::StdoutClosed), _) => Ended::Done,
        (Ok(_), _) => Ended::Failed,
        (Err(Failure::Engine(error)), _) if error.is_about_client() => Ended::Hopeless(Failure::Engine(error)),
        (Err(failure), _) => {
            output.failure(&failure);
            Ended::Failed
        }
    }
}

/// Boxed, because a command can be `run` as far as the compiler knows.
fn dispatched<'a>(
    context: &'a Context<'a>,
    command: &'a Command,
) -> Pin<Box<dyn Future<Output = Result<Exit, Failure>> + 'a>> {
    Box::pin(crate::run(context, command))
}

/// The lines as they are read; an error where the rest cannot be.
fn read(arguments: &Arguments) -> Result<mpsc::Receiver<Result<Line, Failure>>, Failure> {
    let cannot = |source| Failure::local("read the commands in", &arguments.file, source);
    let (sender, lines) = mpsc::channel(arguments.jobs as usize);
    let input: Box<dyn BufRead + Send> = if arguments.file.as_os_str() == "-" {
        Box::new(BufReader::new(io::stdin()))
    } else {
        Box::new(BufReader::with_capacity(1 << 18, File::open(&arguments.file).map_err(cannot)?))
    };
    let file = arguments.file.clone();
    // The process does not wait for this thread, which can be inside a read that never ends.
    tokio::task::spawn_blocking(move || {
        let mut parser = Parser::new();
        for (line, number) in input.split(b'\n').zip(1..) {
            let line = match line {
                Ok(line) => parser.line(&line).map(|command| Ok(Line { number, command })),
                Err(source) => Some(Err(Failure::local("read the commands in", &file, source))),
            };
            let Some(line) = line else { continue };
            let is_last = line.is_err();
            // Nobody listens once a failure has ended the job.
            if sender.blocking_send(line).is_err() || is_last {
                return;
            }
        }
    });
    Ok(lines)
}

/// The one definition of the command line, built once for all lines.
struct Parser(clap::Command);

impl Parser {
    fn new() -> Parser {
        let mut definition = Cli::command();
        definition.build();
        Parser(definition)
    }

    /// The command of a line; none where it says nothing.
    fn line(&mut self, line: &[u8]) -> Option<Result<Cli, Failure>> {
        let mut words = match words(line) {
            Ok(words) => words,
            Err(why) => return Some(Err(Failure::Usage(why.to_owned()))),
        };
        if words.first()? != "wirespeed" {
            words.insert(0, "wirespeed".into());
        }
        let parsed = self
            .0
            .try_get_matches_from_mut(joined(words))
            .and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches));
        Some(match parsed {
            Ok(cli) => match refusal(&cli) {
                None => Ok(cli),
                Some(why) => Err(Failure::Usage(why)),
            },
            Err(error) => Err(Failure::Usage(first_paragraph(&error.to_string()))),
        })
    }
}

/// Why a command cannot be one of many, where it cannot.
fn refusal(cli: &Cli) -> Option<String> {
    if cli.global.is_about_client() {
        return Some(
            "all lines share one client; give its options to `run`, where they hold for every line".to_owned(),
        );
    }
    let settings: Vec<_> = cli.command.settings().iter().map(|(name, value)| format!("--set {name}={value}")).collect();
    if !settings.is_empty() {
        let settings = settings.join(" ");
        return Some(format!(
            "it needs a client of its own, and all lines share one; give `run` {settings} for every line"
        ));
    }
    let why = match &cli.command {
        Command::Run(_) => "a line of `run` cannot be `run`; put the lines of both into one file",
        Command::Bench(_) => "a measurement beside other work measures nothing; run it by itself",
        Command::Completions(_) | Command::Manual(_) => "it is about the program itself; run it by itself",
        command if command.reads_stdin() => "lines have no standard input of their own; name a file",
        _ => return None,
    };
    Some(why.to_owned())
}

/// What clap says first, in one line and without its heading.
fn first_paragraph(message: &str) -> String {
    let paragraph = message.split("\n\n").next().unwrap_or(message);
    let lines: Vec<&str> = paragraph.lines().map(str::trim).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Option<Result<Cli, String>> {
        Parser::new().line(line.as_bytes()).map(|line| line.map_err(|failure| failure.to_string()))
    }

    #[test]
    fn lines_are_commands() {
        for line in ["cp 'a b' s3://b/", "wirespeed rm s3://b/k", "ls s3://b --json # why", "stat --quiet s3://b/k\r"] {
            assert!(parsed(line).unwrap().is_ok(), "{line}");
        }
        for nothing in ["", "   ", "# cp a s3://b"] {
            assert!(parsed(nothing).is_none(), "{nothing}");
        }
    }

    #[test]
    fn what_a_line_cannot_have_is_refused_with_a_reason() {
        for (line, why) in [
            ("--region eu-west-1 ls", "one client"),
            ("ls --set max_attempts=3", "one client"),
            ("cp a s3://b --checksum SHA256", "checksum_algorithm=sha256"),
            ("run other", "one file"),
            ("bench get s3://b/k", "measure"),
            ("manual", "program itself"),
            ("pipe s3://b/k", "standard input"),
            ("cp - s3://b/k", "standard input"),
            ("cp 'a s3://b", "not closed"),
            ("fly s3://b", "fly"),
            ("cp s3://b/k", "required"),
            ("cp --no-such-flag a s3://b", "--no-such-flag"),
        ] {
            let error = parsed(line).unwrap().err().unwrap_or_default();
            assert!(error.contains(why), "{line}: {error}");
            assert!(!error.contains('\n') && !error.starts_with("error"), "{line}: {error}");
        }
    }

    #[test]
    fn one_line_leaves_nothing_for_the_next() {
        let mut parser = Parser::new();
        let mut ls = |line: &str| match parser.line(line.as_bytes()) {
            Some(Ok(cli)) => cli.global.json,
            other => panic!("{}", other.is_none()),
        };
        assert!(ls("ls --json -r s3://b"));
        assert!(!ls("ls s3://b"));
    }
}

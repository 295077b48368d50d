//! The wirespeed command line: S3 from the shell at the speed of the wire.
//!
//! Arguments go to the engine, what it answers goes to `output`; nothing here moves bytes. One module a verb. `main`
//! owns the process: the runtime, the signals, and the exit code.

mod access;
mod arguments;
mod bench;
mod bulk;
mod cat;
mod checksum_flags;
mod completions;
mod context;
mod copy_flags;
mod cp;
mod customer_key;
mod diff;
mod du;
mod failure;
mod filter_flags;
mod find;
mod interrupt;
mod ls;
mod manual;
mod mb;
mod moment;
mod mv;
mod output;
mod pipe;
mod plan;
mod presign;
mod progress;
mod quoting;
mod rb;
mod rm;
mod rows;
mod run;
mod run_shard;
mod selection;
mod stat;
mod sync;
mod tally;
mod targets;
mod trace;
mod tree;
mod units;
mod uploads;
mod uri;
mod wildcard;
mod write_flags;

use std::process;
use std::time::Duration;

use clap::Parser as _;

use crate::arguments::{Cli, Command};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::output::{Form, Output};

/// How long what was dropped may take to end and its uploads to be aborted, and after that blocking threads to return:
/// together they stay under `interrupt::GRACE`, and so under a second.
const SETTLE_WITHIN: Duration = Duration::from_millis(700);
const STOP_WITHIN: Duration = Duration::from_millis(100);

fn main() {
    let cli = match Cli::try_parse_from(arguments::joined(std::env::args_os())) {
        Ok(cli) => cli,
        Err(answer) => {
            // Help, version or a usage error; nobody is left to tell if it cannot be printed.
            let _ = answer.print();
            process::exit(answer.exit_code());
        }
    };
    let progress = cli.command.progress();
    let output = Output::new(Form { json: cli.global.json, quiet: cli.global.quiet, progress });
    let exit = match &cli.command {
        // What speaks of the program itself needs no client, and so no credentials.
        Command::Completions(arguments) => completions::run(&output, arguments),
        Command::Manual(arguments) => manual::run(&output, arguments),
        _ => start(&cli, &output),
    };
    let exit = exit.unwrap_or_else(|failure| {
        output.failure(&failure);
        failure.exit()
    });
    let exit = match output.flush() {
        Err(failure) if exit == Exit::Done => {
            output.failure(&failure);
            failure.exit()
        }
        _ => exit,
    };
    // Not a return from main: a thread that waits for standard input would be waited for.
    process::exit(exit as i32);
}

fn start(cli: &Cli, output: &Output) -> Result<Exit, Failure> {
    trace::start(cli.global.verbose);
    let interrupt = Interrupt::watch().map_err(|source| cannot("watch for signals", source))?;
    let runtime = runtime().map_err(|source| cannot("start the runtime", source))?;
    let exit = runtime.block_on(supervise(cli, output, interrupt));
    match exit {
        Ok(Exit::Interrupted | Exit::Terminated) | Err(_) => runtime.shutdown_timeout(STOP_WITHIN),
        Ok(_) => runtime.shutdown_background(),
    }
    exit
}

/// Runs the command until it ends or a signal cancels it, and then has cleaned up what it left unfinished.
async fn supervise(cli: &Cli, output: &Output, interrupt: Interrupt) -> Result<Exit, Failure> {
    let context = Context::new(&cli.global, &cli.command, output)?;
    let mut command = Box::pin(run(&context, &cli.command));
    let exit = tokio::select! {
        exit = &mut command => exit,
        exit = interrupt.wait() => Ok(exit),
    };
    // First the command's future, with every stream of outcomes in it: that tells the engine's tasks to end. They do so,
    // and start to abort their uploads, when they are polled next; on a runtime of one thread, not before this one waits.
    drop(command);
    let how = match exit {
        Ok(Exit::Interrupted) => Some("interrupted"),
        Ok(Exit::Terminated) => Some("terminated"),
        _ => None,
    };
    match (how, cli.command.state()) {
        (Some(how), Some(_)) => output.note_always(&format!("{how}; the same command goes on where it stopped")),
        (Some(how), None) => output.note_always(&format!("{how}; no half file is left")),
        (None, _) => {}
    }
    // A job that stops at a failure leaves uploads behind as an interrupted one does; without any this returns at once.
    let settled = context.client.settle(SETTLE_WITHIN).await;
    let unfinished = context.client.unfinished_uploads();
    unfinished.iter().for_each(|upload| output.failure(&Failure::unfinished(upload)));
    if let Err(error) = settled
        && unfinished.is_empty()
    {
        output.failure(&error.into());
    }
    exit
}

async fn run(context: &Context<'_>, command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Ls(arguments) => ls::run(context, arguments).await,
        Command::Diff(arguments) => diff::run(context, arguments).await,
        Command::Du(arguments) => du::run(context, arguments).await,
        Command::Tree(arguments) => tree::run(context, arguments).await,
        Command::Find(arguments) => find::run(context, arguments).await,
        Command::Cp(arguments) => cp::run(context, arguments).await,
        Command::Mv(arguments) => mv::run(context, arguments).await,
        Command::Sync(arguments) => sync::run(context, arguments).await,
        Command::Pipe(arguments) => pipe::run(context, arguments).await,
        Command::Cat(arguments) => cat::run(context, arguments).await,
        Command::Rm(arguments) => rm::run(context, arguments).await,
        Command::Stat(arguments) => stat::run(context, arguments).await,
        Command::Presign(arguments) => presign::run(context, arguments).await,
        Command::Uploads(arguments) => uploads::run(context, arguments).await,
        Command::Run(arguments) => run::run(context, arguments).await,
        Command::Plan(arguments) => plan::run(context, arguments).await,
        Command::RunShard(arguments) => run_shard::run(context, arguments).await,
        Command::Mb(arguments) => mb::run(context, arguments).await,
        Command::Rb(arguments) => rb::run(context, arguments).await,
        Command::Bench(arguments) => bench::run(context, arguments).await,
        Command::Completions(arguments) => completions::run(context.output, arguments),
        Command::Manual(arguments) => manual::run(context.output, arguments),
    }
}

/// As many workers as cores; on one core the work stays on the thread that waits for it, with no hand-over.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut builder = if cores == 1 {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    builder.worker_threads(cores).enable_all().build()
}

fn cannot(what: &str, source: std::io::Error) -> Failure {
    Failure::Local { what: format!("cannot {what}"), source }
}

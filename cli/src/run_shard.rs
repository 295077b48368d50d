//! `wirespeed run-shard`: what `wirespeed plan` cut, done here. One JSON line a shard says what came of it.

use std::io::Read as _;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use wirespeed::Progress;
use wirespeed_bulk::{ShardSpec, run_shard};

use crate::context::Context;
use crate::failure::{Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  wirespeed run-shard shard.json
  wirespeed plan s3://bucket/photos /shared/photos | head -1 | wirespeed run-shard -
  sed -n 7p shards | ssh host7 wirespeed run-shard - >result7.json

A shard that is run twice, or again after it was killed, comes to the same as one that is run once. Credentials are
those of the machine; endpoint and region are the plan's unless flags say otherwise.";

/// Run shards that `wirespeed plan` made
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// File with a shard a line; - reads them from standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

impl Arguments {
    /// Whether the shards come by standard input.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.file.as_os_str() == "-"
    }
}

/// Runs `run-shard`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let mut text = String::new();
    let read = match arguments.reads_stdin() {
        true => std::io::stdin().read_to_string(&mut text),
        false => std::fs::File::open(&arguments.file).and_then(|mut file| file.read_to_string(&mut text)),
    };
    read.map_err(|source| Failure::local("read", &arguments.file, source))?;
    // All are read before the first is run: what makes no sense is said before anything is done.
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let specs: Vec<ShardSpec> = lines.map(ShardSpec::from_json).collect::<Result<_, _>>().map_err(usage)?;
    if specs.is_empty() {
        return Err(Failure::Usage("there is no shard to run; give a line of what `wirespeed plan` printed".into()));
    }
    let mut exit = Exit::Done;
    for spec in specs {
        let client = context.client_from(spec.client_builder().map_err(usage)?)?;
        let result = run_shard(&spec, &client, Progress::default(), &mut ()).await.map_err(usage)?;
        context.output.record(&result)?;
        context.output.flush()?;
        for failed in &result.failures {
            context.output.note_always(&failed.message);
        }
        if let Some(why) = &result.stopped {
            context.output.note_always(&format!("shard {}: {why}", result.shard));
            exit = Exit::Failed;
        } else if !result.is_success() && exit == Exit::Done {
            exit = Exit::Partial;
        }
    }
    Ok(exit)
}

/// What keeps a job from being cut, or a shard from being begun: one that makes no sense is the command line's fault.
pub(crate) fn usage(failure: wirespeed_bulk::Failure) -> Failure {
    use wirespeed_bulk::Failure as Bulk;
    match failure {
        Bulk::Refused(why) => Failure::Usage(why),
        Bulk::Engine(error) => error.into(),
        Bulk::Local { doing, path, source } => Failure::local(doing, &path, source),
        other => Failure::Lost(other.to_string()),
    }
}

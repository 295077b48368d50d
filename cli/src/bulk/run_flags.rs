//! Flags about how a job runs and what it tells, on `cp`, `mv`, `rm` and `sync`, and those about how trees are moved.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

/// How a job runs.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Options for the run")]
pub(crate) struct RunFlags {
    /// Print what would be done, and do nothing
    #[arg(long, visible_alias = "dry-run")]
    pub(crate) dryrun: bool,
    /// End at the first failure instead of going on with the rest
    #[arg(long)]
    pub(crate) fail_fast: bool,
    /// Write what failed to this file, as commands that `wirespeed run` takes
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) failures: Option<PathBuf>,
    /// Hold this file while it runs; a second run that names it ends at once with 4
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) lock: Option<PathBuf>,
    /// Most bytes a second, up and down together, as in 10MiB
    #[arg(long, value_name = "RATE")]
    pub(crate) bwlimit: Option<String>,
    /// At the end, print a table of the requests: how many, how long, with what status
    #[arg(long)]
    pub(crate) stat: bool,
    /// Tell of the progress also where standard error is no terminal: a line every few seconds
    #[arg(long, overrides_with = "no_progress")]
    progress: bool,
    /// Never draw the progress bar
    #[arg(long, overrides_with = "progress")]
    no_progress: bool,
}

impl RunFlags {
    /// Whether progress is to be told: always, never, or where there is a terminal.
    pub(crate) fn progress(&self) -> Option<bool> {
        match (self.progress, self.no_progress) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }

    /// The settings of the engine that they stand for.
    pub(crate) fn settings(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.bwlimit.as_deref().map(|rate| ("bandwidth_limit", rate)).into_iter()
    }
}

/// How trees are moved, on `cp`, `mv` and `sync`.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Options for trees")]
pub(crate) struct TreeFlags {
    /// Only what this file names, one a line: keys or s3:// addresses below the source, or paths below its folder; an
    /// inventory or JSON lines will do too; - is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) from_file: Option<PathBuf>,
    /// Keep in this file what is done, so that the same command goes on where an earlier one stopped
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) state: Option<PathBuf>,
    /// Keep time and mode of files, as metadata of the objects; a download gives them back
    #[arg(long)]
    pub(crate) preserve: bool,
    /// Leave symbolic links out [default: they are followed]
    #[arg(long, overrides_with = "follow_symlinks")]
    no_follow_symlinks: bool,
    /// Follow symbolic links
    #[arg(long, overrides_with = "no_follow_symlinks")]
    follow_symlinks: bool,
    #[command(flatten)]
    pub(crate) source: SourceFlags,
}

impl TreeFlags {
    /// Whether standard input holds the names.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.from_file.as_deref() == Some(Path::new("-"))
    }

    /// Whether symbolic links are followed.
    pub(crate) fn follows_links(&self) -> bool {
        !self.no_follow_symlinks
    }
}

/// S3 to S3: another service, region or account that the source is at. The bytes then pass through this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Options for S3 to S3")]
pub(crate) struct SourceFlags {
    /// Address of the service that the source is at; the bytes then pass through this machine
    #[arg(long, value_name = "URL")]
    pub(crate) source_endpoint_url: Option<String>,
    /// Region that the source is in
    #[arg(long, value_name = "REGION")]
    pub(crate) source_region: Option<String>,
    /// Profile that opens the source
    #[arg(long, value_name = "NAME")]
    pub(crate) source_profile: Option<String>,
}

impl SourceFlags {
    /// Whether the source is spoken to by a client of its own.
    pub(crate) fn given(&self) -> bool {
        *self != SourceFlags::default()
    }

    /// The settings in which that client differs.
    pub(crate) fn settings(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            ("endpoint_url", self.source_endpoint_url.as_deref()),
            ("region", self.source_region.as_deref()),
            ("profile", self.source_profile.as_deref()),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }

    /// The flags again, as words of a command.
    pub(crate) fn words(&self) -> Vec<String> {
        self.settings().map(|(name, value)| format!("--source-{}={value}", name.replace('_', "-"))).collect()
    }
}

//! `wirespeed plan`: a job of many objects cut into shards for many machines, one JSON line each.
//!
//! Owns how flags become the plain data of a spec. Refuses what a spec cannot hold: secrets, and conditions on one object.

use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use wirespeed_bulk::{BulkSpec, NamedItem, Verb, plan, plan_names};

use crate::access::Access;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::filter_flags::FilterFlags;
use crate::run_shard::usage;
use crate::uri::Location;
use crate::write_flags::WriteFlags;

const EXAMPLES: &str = "\
Examples:
  wirespeed plan s3://bucket/photos /shared/photos --shards 64 > shards
  wirespeed plan --verb cp s3://bucket/logs s3://archive/logs --storage-class GLACIER_IR
  wirespeed plan ./photos s3://bucket/photos --delete --exclude '*.tmp'
  wirespeed plan s3://bucket/photos /shared/photos --from-file names.txt
  wirespeed plan s3://bucket/photos /shared/photos | parallel --pipe -N1 wirespeed run-shard -

Each line is one shard, to be given to `wirespeed run-shard` on any machine, in any order, as often as it takes. It holds
no credentials. Folders must be there under the same path on every machine.";

/// Cut a job of many objects into shards that run on any machine
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// s3://bucket/prefix or a folder
    #[arg(value_parser = location(), value_hint = ValueHint::AnyPath)]
    source: Location,
    /// s3://bucket/prefix or a folder
    #[arg(value_parser = location(), value_hint = ValueHint::AnyPath)]
    destination: Location,
    /// What the shards do
    #[arg(long, value_enum, default_value_t = Kind::Sync)]
    verb: Kind,
    /// How many shards, at most
    #[arg(long, value_name = "NUMBER", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    shards: u32,
    /// Only the names in this file, one a line, relative to the source; - reads them from standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    from_file: Option<PathBuf>,
    /// Delete what the source has no more, each shard within its own range
    #[arg(long)]
    delete: bool,
    /// Compare by size alone
    #[arg(long, group = "compare")]
    size_only: bool,
    /// A download differs where the times do, whichever is newer
    #[arg(long, group = "compare")]
    exact_timestamps: bool,
    /// Compare by checksums, where there are any to compare
    #[arg(long, group = "compare")]
    checksum: bool,
    /// Leave alone what is at the destination
    #[arg(long, group = "compare")]
    no_clobber: bool,
    /// Keep time and mode of files, as metadata of the objects; a download gives them back
    #[arg(long)]
    preserve: bool,
    /// Leave symbolic links out
    #[arg(long)]
    no_follow_symlinks: bool,
    /// Plan shards that print what they would do, and do nothing
    #[arg(long, visible_alias = "dry-run")]
    dryrun: bool,
    #[command(flatten)]
    filter: FilterFlags,
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    write: WriteFlags,
}

/// What shards do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Copy what the destination does not have, or has otherwise
    Sync,
    /// Copy everything
    Cp,
}

fn location() -> impl clap::builder::TypedValueParser<Value = Location> {
    use clap::builder::TypedValueParser as _;
    clap::builder::OsStringValueParser::new().try_map(Location::parse)
}

/// Runs `plan`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let job = arguments.job(context)?;
    let shards = arguments.shards as usize;
    let planned = match &arguments.from_file {
        Some(file) => plan_names(job, &context.client, names(file)?, shards),
        None => plan(job, &context.client, shards).await,
    };
    for spec in planned.map_err(usage)? {
        context.output.record(&spec)?;
    }
    Ok(Exit::Done)
}

impl Arguments {
    /// Whether the names come by standard input.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.from_file.as_deref() == Some(Path::new("-"))
    }

    fn job(&self, context: &Context<'_>) -> Result<BulkSpec, Failure> {
        let verb = match self.verb {
            Kind::Sync => Verb::Sync,
            Kind::Cp => Verb::Copy,
        };
        let (from, to) = (place(&self.source)?, place(&self.destination)?);
        let mut job = BulkSpec::new(verb, from, to, &context.client);
        let compare =
            [(self.size_only, "size_only"), (self.exact_timestamps, "exact_time"), (self.checksum, "checksum")];
        let options = &mut job.options;
        self.filter.tell(options);
        options.compare = compare.into_iter().find_map(|(given, name)| given.then(|| name.to_owned()));
        options.delete = self.delete;
        options.no_clobber = self.no_clobber;
        options.preserve = self.preserve;
        options.no_follow_symlinks = self.no_follow_symlinks;
        options.dry_run = self.dryrun;
        options.request_payer = self.access.request_payer.is_some();
        options.expected_bucket_owner.clone_from(&self.access.expected_bucket_owner);
        options.write = self.write.spec()?;
        Ok(job)
    }
}

/// The place as every machine understands it.
fn place(location: &Location) -> Result<String, Failure> {
    match location {
        Location::S3(uri) => Ok(uri.to_string()),
        Location::Local(folder) => {
            let whole = std::path::absolute(folder).map_err(|source| Failure::local("find", folder, source))?;
            whole.into_os_string().into_string().map_err(|name| {
                Failure::Usage(format!("`{}` is not UTF-8; rename the folder", name.to_string_lossy().escape_debug()))
            })
        }
        Location::Standard => Err(Failure::Usage("a stream cannot be cut; name a folder or s3://bucket/prefix".into())),
    }
}

/// The names in a file, one a line.
fn names(file: &Path) -> Result<Vec<NamedItem>, Failure> {
    let cannot = |source| Failure::local("read", file, source);
    let opened: Box<dyn Read> = match file == Path::new("-") {
        true => Box::new(std::io::stdin()),
        false => Box::new(std::fs::File::open(file).map_err(cannot)?),
    };
    let mut names = Vec::new();
    for line in BufReader::new(opened).lines() {
        let key = line.map_err(cannot)?;
        if !key.is_empty() {
            names.push(NamedItem { key, ..NamedItem::default() });
        }
    }
    Ok(names)
}

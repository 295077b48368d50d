//! Jobs of many objects as the shell asks for them: what `cp`, `mv`, `rm` and `sync` have in common.
//!
//! Owns how their flags become a `Job` of the bulk crate, and what is made of what that tells: [`ends`] knows the two
//! places, [`account`] prints and counts, [`state`] keeps what is done for a later run. The verbs own what is theirs
//! alone. No byte passes here.

pub(crate) mod account;
pub(crate) mod ends;
mod failures_file;
mod lock;
mod names;
mod request_table;
pub(crate) mod run_flags;
mod state;

use std::path::PathBuf;

use wirespeed::{CopyDirective, Progress};
use wirespeed_bulk::{Job, Place};

use self::account::{Account, Verb};
use self::ends::Ends;
use self::failures_file::FailuresFile;
use self::lock::Lock;
pub(crate) use self::request_table::RequestTable;
use self::run_flags::{RunFlags, TreeFlags};
use crate::access::Access;
use crate::checksum_flags::ChecksumFlags;
use crate::context::Context;
use crate::copy_flags::CopyFlags;
use crate::failure::{Exit, Failure};
use crate::filter_flags::FilterFlags;
use crate::progress::{Bar, Expected};
use crate::uri::Location;
use crate::wildcard::Wildcards;
use crate::write_flags::WriteFlags;

/// What is asked of a job that transfers.
pub(crate) struct Asked<'a> {
    pub(crate) verb: Verb,
    pub(crate) source: &'a Location,
    pub(crate) destination: &'a Location,
    /// Whether all under the source is meant.
    pub(crate) recursive: bool,
    /// Whether what the source does not have is deleted.
    pub(crate) deletes: bool,
    /// The version of the one object that is meant.
    pub(crate) version: Option<&'a str>,
    pub(crate) wildcards: &'a Wildcards,
    pub(crate) filter: &'a FilterFlags,
    pub(crate) access: &'a Access,
    pub(crate) checksum: &'a ChecksumFlags,
    pub(crate) write: &'a WriteFlags,
    pub(crate) copy: &'a CopyFlags,
    pub(crate) tree: &'a TreeFlags,
    pub(crate) run: &'a RunFlags,
}

impl Asked<'_> {
    /// Refuses flags that the way it goes would ignore.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let usage = |message: &str| Err(Failure::Usage(message.to_owned()));
        let (source, destination) = (self.source, self.destination);
        if matches!(source, Location::S3(_)) && !matches!(destination, Location::S3(_)) && self.write.writes() {
            return usage("flags for what is written have no effect on a download; leave them out");
        }
        let within_s3 = matches!((source, destination), (Location::S3(_), Location::S3(_)));
        if self.copy.given() && !within_s3 {
            return usage(
                "--metadata-directive, --copy-props, --expected-source-bucket-owner and --sse-c-copy-source are for \
                 copies from S3 to S3",
            );
        }
        if self.tree.source.given() && !within_s3 {
            return usage("--source-endpoint-url, --source-region and --source-profile are for copies from S3 to S3");
        }
        if within_s3 && self.checksum.given() {
            return usage(
                "a copy on the server keeps the checksum of its source; leave out --checksum and --checksum-mode",
            );
        }
        if self.version.is_some() && !matches!(source, Location::S3(_)) {
            return usage("--version-id names a version of an object, and the source is none");
        }
        Ok(())
    }

    /// The flags that a command about one item needs again. Checksums are a setting of the client, and of no one line.
    fn words(&self) -> Vec<String> {
        let mut words = self.write.words();
        words.extend(self.access.words());
        words.extend(self.copy.words());
        words.extend(self.tree.source.words());
        words.extend(self.tree.preserve.then(|| "--preserve".to_owned()));
        words
    }
}

/// Copies, moves or syncs as asked; `shape` adds what the verb alone knows.
pub(crate) async fn transfer(
    context: &Context<'_>,
    asked: &Asked<'_>,
    shape: impl FnOnce(Job) -> Job,
) -> Result<Exit, Failure> {
    if asked.write.if_match.is_some() || asked.write.asks_for_another() {
        return Err(Failure::Usage(
            "an ETag is of one object; leave out what makes it many, as --recursive".to_owned(),
        ));
    }
    let Ends { from, to, alone, pattern, operation } = Ends::of(context, asked)?;
    let missing = match asked.source {
        Location::S3(uri) if pattern.is_none() => uri.with_key(&uri.folder()).to_string(),
        Location::S3(uri) => uri.to_string(),
        Location::Local(path) => path.display().to_string(),
        Location::Standard => "-".to_owned(),
    };
    let mut options = asked.write.given(asked.access)?;
    let name = alone.as_ref().map(|entry| entry.key.clone());
    let (metadata, tags) = match (&from, &to) {
        (Place::Bucket(_), Place::Bucket(_)) => asked.copy.directives(asked.write)?,
        _ => (CopyDirective::Copy, CopyDirective::Copy),
    };
    if matches!(from, Place::Folder(_))
        && let Some(media_type) = asked.write.guess(name.as_deref())
    {
        options = options.content_type(media_type);
    }
    let state = state::open(context, asked, &from, &to)?;
    let names = asked.tree.from_file.as_deref().map(|path| names::read(path, &from)).transpose()?;
    let write = asked.write.clone();
    let mut filter = asked.filter.filter();
    if let Some(pattern) = pattern {
        filter = filter.matching(pattern);
    }
    let mut job = match asked.verb {
        Verb::Move => Job::mv(from, to),
        Verb::Sync => Job::sync(from, to),
        Verb::Copy | Verb::Remove => Job::copy(from, to),
    };
    if let Some(alone) = alone {
        job = job.entries([alone]);
    }
    let mut troubles = None;
    if let Some((names, told)) = names {
        job = job.names(names);
        troubles = Some(told);
    }
    if let Some(state) = &state {
        job = job.state(state.clone());
    }
    job = job
        .filter(filter)
        .options(options)
        .content_type_by_key(move |key| write.guess(Some(key)).map(str::to_owned))
        .metadata_directive(metadata)
        .tagging_directive(tags)
        .preserve(asked.tree.preserve)
        .follow_links(asked.tree.follows_links());
    let operation = if asked.verb == Verb::Sync { Verb::Sync.name() } else { operation };
    let telling = Telling { verb: asked.verb, operation, missing: &missing, words: asked.words() };
    let exit = run(context, shape(job), asked.run, telling).await;
    if let Some(state) = &state {
        state::close(context, state);
    }
    let unread = troubles.is_some_and(|troubles| troubles.tell(context.output));
    exit.map(|exit| if unread && exit == Exit::Done { Exit::Partial } else { exit })
}

/// How a job is told of.
pub(crate) struct Telling<'a> {
    pub(crate) verb: Verb,
    /// What is done to its items.
    pub(crate) operation: &'static str,
    /// Where nothing was found, should there be nothing.
    pub(crate) missing: &'a str,
    /// Flags that a command about one item needs again.
    pub(crate) words: Vec<String>,
}

/// Runs a job as its flags say; the exit code.
pub(crate) async fn run(
    context: &Context<'_>,
    job: Job,
    flags: &RunFlags,
    telling: Telling<'_>,
) -> Result<Exit, Failure> {
    let create = |path: &PathBuf| FailuresFile::create(path, &telling.words);
    let failures = flags.failures.as_ref().map(create).transpose()?;
    let (progress, expected) = (Progress::default(), Expected::default());
    let job = job.dry_run(flags.dryrun).fail_fast(flags.fail_fast).progress(progress.clone());
    let mut account = Account::open(context.output, telling.verb, telling.operation, &expected, failures);
    let bar = (!flags.dryrun).then(|| Bar::show(context.output, &progress, &expected));
    let summary = job.run(&mut account).await;
    drop(bar);
    if let Some(requests) = context.requests.as_ref().filter(|_| flags.stat) {
        requests.print(context.output, context.client.metrics());
    }
    account.close(summary, telling.missing)
}

/// Does the work under the lock that the flags name.
pub(crate) async fn supervised(
    flags: &RunFlags,
    work: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    let _lock = flags.lock.as_deref().map(Lock::take).transpose()?;
    work.await
}

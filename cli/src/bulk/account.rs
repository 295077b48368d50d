//! What a job tells, and what is made of it: a line an item where somebody reads it, errors, the file of what failed,
//! the counts of the progress bar, and at the end the summary and the exit code.
//!
//! Owns what an item looks like in each form. Where nobody reads lines an item costs a few increments and no text.

use std::fmt::Write as _;

use serde::Serialize;
use wirespeed_bulk as bulk;
use wirespeed_bulk::{Action, Entry, Location, Outcome, Report, Summary, Withheld};

use super::failures_file::FailuresFile;
use crate::failure::{ErrorRecord, Exit, Failure, visible};
use crate::output::Output;
use crate::progress::Expected;
use crate::quoting::quoted;
use crate::tally::shown;
use crate::units::{Elapsed, Size, objects, rate, thousands};
use crate::wildcard::has_wildcards;

/// The verb whose job it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Copy,
    Move,
    Sync,
    Remove,
}

impl Verb {
    /// As it is typed.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Verb::Copy => "cp",
            Verb::Move => "mv",
            Verb::Sync => "sync",
            Verb::Remove => "rm",
        }
    }
}

/// One item as `--json` prints it.
#[derive(Serialize)]
struct ItemRecord<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    operation: &'static str,
    status: &'static str,
    source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorRecord>,
}

/// The end of a job as `--json` prints it.
#[derive(Serialize)]
struct SummaryRecord {
    #[serde(rename = "type")]
    kind: &'static str,
    operation: &'static str,
    objects: u64,
    bytes: u64,
    seconds: f64,
    bytes_per_second: f64,
    failed: u64,
    skipped: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    unchanged: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    done_before: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dryrun: bool,
}

/// The account of one job.
pub(crate) struct Account<'a> {
    output: &'a Output,
    verb: Verb,
    /// Whether each item that is done is told.
    tells_items: bool,
    /// What a summary that moves nothing is called: what the items would have been.
    operation: &'static str,
    expected: Expected,
    failures: Option<FailuresFile>,
    /// The failure that was told last, so that what ended the job is not told twice.
    told: Option<String>,
    source: String,
    destination: String,
    line: String,
}

impl<'a> Account<'a> {
    /// An account in which nothing is yet; `operation` is what most of its items are.
    pub(crate) fn open(
        output: &'a Output,
        verb: Verb,
        operation: &'static str,
        expected: &Expected,
        failures: Option<FailuresFile>,
    ) -> Account<'a> {
        let tells_items = !output.quiet() && (output.json() || output.wants_item_lines());
        Account {
            output,
            verb,
            tells_items,
            operation,
            expected: expected.clone(),
            failures,
            told: None,
            source: String::new(),
            destination: String::new(),
            line: String::new(),
        }
    }

    /// Tells how the job ended; the exit code. `missing` is what there was nothing of, for the note.
    pub(crate) fn close(mut self, mut summary: Summary, missing: &str) -> Result<Exit, Failure> {
        let seen = summary.transferred + summary.deleted + summary.unchanged + summary.done_before;
        let failed = summary.failed + summary.refused;
        let trouble = self.failures.take().and_then(FailuresFile::trouble);
        if let Some(failure) = &trouble {
            self.output.failure(failure);
        }
        let withheld = summary.withheld.map(withheld);
        if let Some(why) = &withheld {
            self.output.failure(&Failure::Refused(why.clone()));
        }
        if self.verb != Verb::Sync && summary.stopped.is_none() && seen + failed + summary.skipped == 0 {
            self.output.note(&format!("nothing found under {missing}"));
        }
        self.tell_summary(&summary);
        match summary.stopped.take().map(|failure| Failure::from(&failure)) {
            // The item that it happened to was told with it.
            Some(failure) if self.told.as_deref() == Some(failure.to_string().as_str()) => Ok(failure.exit()),
            Some(failure) => Err(failure),
            None if failed == 0 && withheld.is_none() && trouble.is_none() => Ok(Exit::Done),
            None if seen == 0 && summary.failed > 0 => Ok(Exit::Failed),
            None => Ok(Exit::Partial),
        }
    }

    fn tell_summary(&self, summary: &Summary) {
        let deletes = self.verb == Verb::Remove;
        let moved = if deletes { summary.deleted } else { summary.transferred };
        let failed = summary.failed + summary.refused;
        let speed = rate(summary.bytes, summary.elapsed);
        let syncs = |number| (self.verb == Verb::Sync).then_some(number);
        if self.output.json() {
            return self.output.report_record(&SummaryRecord {
                kind: "summary",
                operation: self.operation,
                objects: moved,
                bytes: summary.bytes,
                seconds: summary.elapsed.as_secs_f64(),
                bytes_per_second: speed,
                failed,
                skipped: summary.skipped,
                unchanged: syncs(summary.unchanged),
                deleted: syncs(summary.deleted),
                done_before: (summary.done_before > 0).then_some(summary.done_before),
                dryrun: summary.dry_run,
            });
        }
        if !self.output.wants_bar() {
            return;
        }
        let mut line = if summary.dry_run { "(dryrun) ".to_owned() } else { String::new() };
        let _ = write!(line, "{}: {}", self.operation, objects(moved));
        if !deletes && summary.dry_run {
            let _ = write!(line, ", {}", Size(summary.bytes));
        } else if !deletes {
            let (bytes, took) = (Size(summary.bytes), Elapsed(summary.elapsed));
            let _ = write!(line, ", {bytes} in {took}, {}/s", Size(speed as u64));
        }
        for (number, what) in [
            (if deletes { 0 } else { summary.deleted }, "deleted"),
            (summary.unchanged, "the same"),
            (summary.done_before, "done before"),
            (summary.skipped, "left out"),
            (failed, "failed or refused"),
        ] {
            if number > 0 {
                let _ = write!(line, ", {} {what}", thousands(number));
            }
        }
        self.output.note(&line);
    }

    fn locate(&mut self, item: &bulk::Item<'_>) {
        self.source.clear();
        self.destination.clear();
        push(&mut self.source, item.source());
        match item.action {
            Action::Discard => self.destination.push_str("/dev/null"),
            _ => push(&mut self.destination, item.destination()),
        }
    }

    /// An item that is done, or would be.
    fn tell(&mut self, item: &bulk::Item<'_>, status: &'static str) {
        self.locate(item);
        let operation = operation(item);
        let destination = Some(self.destination.as_str()).filter(|destination| !destination.is_empty());
        let version_id = item.entry.version.as_deref();
        if self.output.json() {
            return self.output.report_record(&ItemRecord {
                kind: "item",
                operation,
                status,
                source: &self.source,
                destination,
                size: item.size,
                etag: item.etag,
                version_id,
                error: None,
            });
        }
        self.line.clear();
        if status == "dryrun" {
            self.line.push_str("(dryrun) ");
        }
        self.line.push_str(operation);
        self.line.push_str(": ");
        self.line.push_str(&visible(&self.source));
        if let Some(version) = version_id {
            let _ = write!(self.line, " (version {})", visible(version));
        }
        if let Some(destination) = destination {
            self.line.push_str(" to ");
            self.line.push_str(&visible(destination));
        }
        self.output.report(&self.line);
    }

    fn tell_failure(&mut self, item: &bulk::Item<'_>, failure: &bulk::Failure) {
        self.expected.failed();
        self.locate(item);
        let failure = Failure::from(failure);
        if self.output.json() && !self.output.quiet() {
            let destination = Some(self.destination.as_str()).filter(|destination| !destination.is_empty());
            self.output.report_record(&ItemRecord {
                kind: "item",
                operation: operation(item),
                status: "failed",
                source: &self.source,
                destination,
                size: item.size,
                etag: item.etag,
                version_id: item.entry.version.as_deref(),
                error: Some(failure.record()),
            });
        }
        self.output.failure(&failure);
        let why = failure.to_string();
        if let Some(file) = &mut self.failures {
            if matches!(failure, Failure::Refused(_)) {
                file.remark(&why);
            } else {
                again(file, self.verb, item, &self.source, &self.destination, &why);
            }
        }
        self.told = Some(why);
    }
}

impl Report for Account<'_> {
    fn found(&mut self, items: u64, bytes: u64) {
        self.expected.add_many(items, bytes);
    }

    fn all_found(&mut self) {
        self.expected.complete();
    }

    fn item(&mut self, item: &bulk::Item<'_>) {
        match &item.outcome {
            Outcome::Done if self.tells_items => self.tell(item, "done"),
            Outcome::Done => {}
            Outcome::Planned if !self.output.quiet() => self.tell(item, "dryrun"),
            Outcome::Planned => {}
            Outcome::Unchanged | Outcome::DoneBefore => self.expected.same(),
            // A sync leaves the same things out every time, and tells of what changed.
            Outcome::Skipped(_) if self.verb == Verb::Sync => {}
            Outcome::Skipped(why) => {
                self.locate(item);
                self.output.note(&format!("skipped {}: {why}", self.source));
            }
            Outcome::Failed(failure) => self.tell_failure(item, failure),
        }
    }
}

/// What is done to an item, as its line begins.
fn operation(item: &bulk::Item<'_>) -> &'static str {
    match item.action {
        _ if item.moves => "move",
        Action::Discard => "download",
        action => action.as_str(),
    }
}

/// The command that does once more what failed.
fn again(file: &mut FailuresFile, verb: Verb, item: &bulk::Item<'_>, source: &str, destination: &str, why: &str) {
    let Entry { version, .. } = item.entry;
    let deletes = item.action == Action::Delete;
    let verb = match verb {
        _ if deletes => Verb::Remove.name(),
        Verb::Move => Verb::Move.name(),
        _ => Verb::Copy.name(),
    };
    if deletes && !source.starts_with("s3://") {
        return file.remark(&format!("{why}; remove it with: rm {}", quoted(source)));
    }
    let version = version.as_ref().map(|version| format!("--version-id={version}"));
    let mut words = vec![source];
    words.extend(Some(destination).filter(|destination| !destination.is_empty()));
    words.extend(version.as_deref());
    words.extend(has_wildcards(source).then_some("--raw"));
    file.command(verb, &words, why);
}

fn push(text: &mut String, location: Option<Location>) {
    match location {
        Some(Location::Object { bucket, key }) => {
            text.push_str("s3://");
            text.push_str(&bucket);
            text.push('/');
            text.push_str(&key);
        }
        Some(Location::File(path)) => text.push_str(&shown(&path)),
        None => {}
    }
}

/// Why a sync deleted nothing, or not all.
fn withheld(why: Withheld) -> String {
    match why {
        Withheld::TooMany { found, most } => format!(
            "nothing was deleted: {} would be, and --max-delete allows {}; look at them with --dryrun",
            objects(found),
            thousands(most)
        ),
        _ => "nothing was deleted: the listing is incomplete, and what is missing in it may well be there".to_owned(),
    }
}

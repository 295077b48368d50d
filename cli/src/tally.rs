//! The account of a job of many items: a line for each, a summary at the end, and the exit code that follows.
//!
//! Owns what counts as what: an item is done, failed (the engine or the file system said no), refused (we said no)
//! or skipped (nothing to do, told as a note), or only told of (a dry run). Failed and refused items make the exit code 1, or 3 when nothing at
//! all could be done. Never 2: what is wrong with an item is not wrong with the command line.

use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use crate::failure::{ErrorRecord, Exit, Failure, visible};
use crate::output::Output;
use crate::units::{Elapsed, Size, objects, rate, thousands};

/// What is done to each item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Operation {
    Download,
    Upload,
    Copy,
    Delete,
    /// Of a multipart upload.
    Abort,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Download => "download",
            Operation::Upload => "upload",
            Operation::Copy => "copy",
            Operation::Delete => "delete",
            Operation::Abort => "abort",
        }
    }
}

/// One item as it is reported.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Item {
    pub(crate) source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) destination: Option<String>,
    /// In bytes; unknown until an object of unknown size is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) etag: Option<String>,
    /// The version of the source, where one is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version_id: Option<String>,
    /// The multipart upload that is meant, and not the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upload_id: Option<String>,
}

#[derive(Serialize)]
struct ItemRecord<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    operation: Operation,
    status: &'static str,
    #[serde(flatten)]
    item: &'a Item,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorRecord>,
}

#[derive(Serialize)]
struct SummaryRecord {
    #[serde(rename = "type")]
    kind: &'static str,
    operation: Operation,
    objects: u64,
    bytes: u64,
    seconds: f64,
    bytes_per_second: f64,
    failed: u64,
    skipped: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dryrun: bool,
}

/// The account while the job runs.
pub(crate) struct Tally<'a> {
    output: &'a Output,
    operation: Operation,
    started: Instant,
    done: u64,
    would: u64,
    bytes: u64,
    failed: u64,
    refused: u64,
    skipped: u64,
}

impl<'a> Tally<'a> {
    /// Starts the account, and its clock.
    pub(crate) fn start(output: &'a Output, operation: Operation) -> Tally<'a> {
        let started = Instant::now();
        Tally { output, operation, started, done: 0, would: 0, bytes: 0, failed: 0, refused: 0, skipped: 0 }
    }

    /// An item that is done.
    pub(crate) fn done(&mut self, item: &Item) {
        self.done += 1;
        self.bytes += item.size.unwrap_or(0);
        if self.output.json() {
            self.record("done", item, None);
        } else if self.output.wants_item_lines() {
            self.output.report(&self.line(item));
        }
    }

    /// An item that a dry run would have taken on.
    pub(crate) fn would(&mut self, item: &Item) {
        self.would += 1;
        self.bytes += item.size.unwrap_or(0);
        if self.output.json() {
            self.record("dryrun", item, None);
        } else if !self.output.quiet() {
            self.output.report(&format!("(dryrun) {}", self.line(item)));
        }
    }

    fn line(&self, item: &Item) -> String {
        let mut line = format!("{}: {}", self.operation.name(), visible(&item.source));
        for (what, id) in [("version", &item.version_id), ("upload", &item.upload_id)] {
            if let Some(id) = id {
                line.push_str(&format!(" ({what} {})", visible(id)));
            }
        }
        if let Some(destination) = &item.destination {
            line.push_str(" to ");
            line.push_str(&visible(destination));
        }
        line
    }

    /// An item that failed or is refused. `Err` gives the failure back when the rest has no chance either.
    pub(crate) fn failed(&mut self, item: &Item, failure: Failure) -> Result<(), Failure> {
        if self.output.json() {
            self.record("failed", item, Some(failure.record()));
        }
        if matches!(failure, Failure::Refused(_)) {
            self.refused += 1
        } else {
            self.failed += 1
        }
        if failure.dooms_the_rest() || (self.done == 0 && failure.dooms_a_start()) {
            return Err(failure);
        }
        self.output.failure(&failure);
        Ok(())
    }

    /// The one item of the job failed, and so the job.
    pub(crate) fn failed_alone(mut self, item: &Item, failure: Failure) -> Result<Exit, Failure> {
        if self.output.json() {
            self.record("failed", item, Some(failure.record()));
        }
        self.failed += 1;
        // What no item would have survived is the command's failure, with the exit code of its own.
        if matches!(&failure, Failure::Engine(error) if error.is_about_client()) {
            return self.finish(Some(failure));
        }
        self.output.failure(&failure);
        self.finish(None)
    }

    /// Why an item counts as failed that the engine took and never answered for.
    pub(crate) fn loss_of(&self, item: &Item) -> Failure {
        let (operation, source) = (self.operation.name(), visible(&item.source));
        Failure::Lost(format!(
            "cannot {operation} {source}: the task that did it ended in a panic, a fault of wirespeed; run it again, \
             and report the fault"
        ))
    }

    /// Prints the summary and gives the exit code. `stopped` is what ended the job early.
    pub(crate) fn finish(self, stopped: Option<Failure>) -> Result<Exit, Failure> {
        let elapsed = self.started.elapsed();
        let failed = self.failed + self.refused;
        let speed = rate(self.bytes, elapsed);
        if self.output.json() {
            self.output.report_record(&SummaryRecord {
                kind: "summary",
                operation: self.operation,
                objects: self.done + self.would,
                bytes: self.bytes,
                seconds: elapsed.as_secs_f64(),
                bytes_per_second: speed,
                failed,
                skipped: self.skipped,
                dryrun: self.would > 0,
            });
        } else if self.would > 0 && self.output.wants_bar() {
            let line = format!("(dryrun) {}: {}, {}", self.operation.name(), objects(self.would), Size(self.bytes));
            self.output.note(&line);
        } else if self.output.wants_bar() {
            let mut line = format!("{}: {}", self.operation.name(), objects(self.done));
            if !matches!(self.operation, Operation::Delete | Operation::Abort) {
                line.push_str(&format!(", {} in {}, {}/s", Size(self.bytes), Elapsed(elapsed), Size(speed as u64)));
            }
            if failed > 0 {
                line.push_str(&format!(", {} failed or refused", thousands(failed)));
            }
            self.output.note(&line);
        }
        match stopped {
            Some(failure) => Err(failure),
            None if failed == 0 => Ok(Exit::Done),
            None if self.done == 0 && self.failed > 0 => Ok(Exit::Failed),
            None => Ok(Exit::Partial),
        }
    }

    fn record(&self, status: &'static str, item: &Item, error: Option<ErrorRecord>) {
        self.output.report_record(&ItemRecord { kind: "item", operation: self.operation, status, item, error });
    }
}

/// A local path as it is reported: one that is relative begins with its folder or with `./`.
pub(crate) fn shown(path: &Path) -> String {
    let bare =
        path.is_relative() && path.components().count() == 1 && !path.starts_with(".") && !path.starts_with("..");
    if bare { format!("./{}", path.display()) } else { path.display().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_paths_as_reported() {
        for (path, expected) in [("a", "./a"), ("./a", "./a"), ("d/a", "d/a"), ("/a", "/a"), ("../a", "../a")] {
            assert_eq!(shown(Path::new(path)), expected);
        }
    }

    #[test]
    fn the_exit_code_follows_the_account() {
        let output = Output::new(crate::output::Form { quiet: true, ..crate::output::Form::default() });
        let item = Item { source: "s".to_owned(), destination: None, size: Some(3), ..Item::default() };
        let io = || Failure::local("read", Path::new("x"), std::io::ErrorKind::PermissionDenied.into());
        let account = |done: u32, failed: u32, refused: u32| {
            let mut tally = Tally::start(&output, Operation::Delete);
            tally.output = &output;
            (0..done).for_each(|_| tally.done += 1);
            (0..failed).for_each(|_| tally.failed(&item, io()).unwrap());
            (0..refused).for_each(|_| tally.failed(&item, Failure::Refused("no".to_owned())).unwrap());
            tally.finish(None).unwrap()
        };
        assert_eq!(account(0, 0, 0), Exit::Done);
        assert_eq!(account(2, 1, 0), Exit::Partial);
        assert_eq!(account(2, 0, 1), Exit::Partial);
        assert_eq!(account(0, 0, 1), Exit::Partial);
        assert_eq!(account(0, 1, 0), Exit::Failed);
        assert_eq!(account(0, 1, 1), Exit::Failed);
    }
}

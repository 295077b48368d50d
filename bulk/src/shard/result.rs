//! What came of a shard, in plain data, and of all of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::spec::{ShardSpec, VERSION};
use crate::failure::Failure;
use crate::report::Item;
use crate::summary::{Summary, Withheld};

/// What came of one shard.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ShardResult {
    /// The form, the spec's.
    pub version: u32,
    /// Which of the shards it is, from 0.
    pub shard: u32,
    /// How many there are.
    pub shards: u32,
    /// Items transferred; in a dry run, those that would be.
    pub transferred: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Items deleted.
    pub deleted: u64,
    /// Items of which the other side had the same.
    pub unchanged: u64,
    /// Items left out.
    pub skipped: u64,
    /// Items that failed or were refused.
    pub failed: u64,
    /// Each of those.
    pub failures: Vec<FailedItem>,
    /// What ended the shard early, where something did.
    pub stopped: Option<String>,
    /// Why nothing was deleted, where that was asked for and not done.
    pub withheld: Option<String>,
    /// From start to end.
    pub seconds: f64,
}

/// One item that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedItem {
    /// What was to be done: `download`, `upload`, `copy` or `delete`.
    pub action: String,
    /// What it is about.
    pub source: Option<String>,
    /// Where it was to go.
    pub destination: Option<String>,
    /// The kind of failure in one word, as JSON output has it.
    pub kind: String,
    /// One line for a person.
    pub message: String,
}

impl FailedItem {
    pub(super) fn new(item: &Item<'_>, failure: &Failure) -> FailedItem {
        FailedItem {
            action: item.action.as_str().to_owned(),
            source: item.source().map(|at| at.to_string()),
            destination: item.destination().map(|at| at.to_string()),
            kind: failure.kind().to_owned(),
            message: failure.to_string(),
        }
    }
}

impl ShardResult {
    pub(super) fn new(spec: &ShardSpec, summary: Summary, failures: Vec<FailedItem>) -> ShardResult {
        let withheld = summary.withheld.map(|withheld| match withheld {
            Withheld::IncompleteListing => "a side could not be listed to its end, so nothing was deleted".to_owned(),
            Withheld::TooMany { found, most } => format!("{found} are more than the {most} that may be deleted"),
        });
        ShardResult {
            version: VERSION,
            shard: spec.shard,
            shards: spec.shards,
            transferred: summary.transferred,
            bytes: summary.bytes,
            deleted: summary.deleted,
            unchanged: summary.unchanged,
            skipped: summary.skipped,
            failed: summary.failed + summary.refused,
            failures,
            stopped: summary.stopped.map(|failure| failure.to_string()),
            withheld,
            seconds: summary.elapsed.as_secs_f64(),
        }
    }

    /// Whether all went well.
    pub fn is_success(&self) -> bool {
        self.failed == 0 && self.stopped.is_none() && self.withheld.is_none()
    }

    /// The result as one line of JSON.
    pub fn to_json(&self) -> String {
        // Texts and numbers: nothing of it can fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what [`to_json`](ShardResult::to_json) wrote.
    ///
    /// # Errors
    /// [`Failure::Refused`] where it is something else.
    pub fn from_json(text: &str) -> Result<ShardResult, Failure> {
        serde_json::from_str(text).map_err(|error| Failure::Refused(format!("this is no result of a shard ({error})")))
    }
}

/// What came of a job's shards together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MergedReport {
    /// How many shards there are.
    pub shards: u32,
    /// Those without a result.
    pub missing: Vec<u32>,
    /// Items transferred; in a dry run, those that would be.
    pub transferred: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Items deleted.
    pub deleted: u64,
    /// Items of which the other side had the same.
    pub unchanged: u64,
    /// Items left out.
    pub skipped: u64,
    /// Items that failed or were refused.
    pub failed: u64,
    /// Each of those.
    pub failures: Vec<FailedItem>,
    /// What ended shards early, by their numbers.
    pub stopped: BTreeMap<u32, String>,
    /// Why shards deleted nothing, by their numbers.
    pub withheld: BTreeMap<u32, String>,
    /// The shards' times added up.
    pub seconds: f64,
}

impl MergedReport {
    /// The report as one line of JSON.
    pub fn to_json(&self) -> String {
        // Texts and numbers: nothing of it can fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether every shard was done and all went well.
    pub fn is_success(&self) -> bool {
        self.missing.is_empty() && self.failed == 0 && self.stopped.is_empty() && self.withheld.is_empty()
    }
}

/// One report of the results, in any order, of a job's shards. Of a shard that was run more than once the last
/// result counts.
pub fn merge(results: impl IntoIterator<Item = ShardResult>) -> MergedReport {
    let results: BTreeMap<u32, ShardResult> = results.into_iter().map(|result| (result.shard, result)).collect();
    let shards = results.values().map(|result| result.shards).max().unwrap_or(0);
    let missing = (0..shards).filter(|shard| !results.contains_key(shard)).collect();
    let mut report = MergedReport { shards, missing, ..MergedReport::default() };
    for (shard, result) in results {
        report.transferred += result.transferred;
        report.bytes += result.bytes;
        report.deleted += result.deleted;
        report.unchanged += result.unchanged;
        report.skipped += result.skipped;
        report.failed += result.failed;
        report.failures.extend(result.failures);
        report.stopped.extend(result.stopped.map(|why| (shard, why)));
        report.withheld.extend(result.withheld.map(|why| (shard, why)));
        report.seconds += result.seconds;
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(shard: u32, transferred: u64) -> ShardResult {
        ShardResult { version: VERSION, shard, shards: 3, transferred, bytes: 10, ..ShardResult::default() }
    }

    #[test]
    fn a_shard_that_was_run_twice_counts_once() {
        let report = merge([result(2, 5), result(0, 7), result(0, 3), result(1, 1)]);
        assert_eq!((report.transferred, report.bytes, report.missing.len()), (9, 30, 0));
        assert!(report.is_success());
    }

    #[test]
    fn a_missing_or_stopped_shard_is_no_success() {
        let report = merge([result(0, 1), result(2, 1)]);
        assert_eq!(report.missing, [1]);
        assert!(!report.is_success());
        let stopped = ShardResult { stopped: Some("why".to_owned()), ..result(1, 0) };
        let report = merge([result(0, 1), stopped, result(2, 1)]);
        assert_eq!(report.stopped, BTreeMap::from([(1, "why".to_owned())]));
        assert!(!report.is_success());
    }
}

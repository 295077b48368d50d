//! One shard, done.

use wirespeed::{Client, Progress};

use super::result::{FailedItem, ShardResult};
use super::spec::{ShardSpec, Slice};
use crate::failure::Failure;
use crate::report::{Item, Outcome, Report};

/// Does what a shard says, inside a tokio runtime; counts in `progress` and tells `report` of each item. Dropped, it stops what is in flight
/// and leaves nothing half done; run again, it comes to the same end.
///
/// # Errors
/// [`Failure::Refused`] where the spec makes no sense here. What fails while it runs stands in the result.
pub async fn run_shard(
    spec: &ShardSpec,
    client: &Client,
    progress: Progress,
    report: &mut dyn Report,
) -> Result<ShardResult, Failure> {
    let job = spec.job.job(client)?.progress(progress);
    let job = match &spec.slice {
        Slice::Range { after, until } => job.range(after.clone(), until.clone()),
        Slice::Names(names) => job.entries(names.iter().cloned().map(Into::into)),
    };
    let mut failures = Failures { failed: Vec::new(), report };
    let summary = job.run(&mut failures).await;
    Ok(ShardResult::new(spec, summary, failures.failed))
}

/// Keeps what failed, and passes everything on.
struct Failures<'a> {
    failed: Vec<FailedItem>,
    report: &'a mut dyn Report,
}

impl Report for Failures<'_> {
    fn found(&mut self, items: u64, bytes: u64) {
        self.report.found(items, bytes);
    }

    fn all_found(&mut self) {
        self.report.all_found();
    }

    fn item(&mut self, item: &Item<'_>) {
        if let Outcome::Failed(failure) = &item.outcome {
            self.failed.push(FailedItem::new(item, failure));
        }
        self.report.item(item);
    }
}

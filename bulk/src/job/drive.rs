//! The driver: takes planned steps, hands them to the transfers and removals, and tells what comes of them.

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::call::Transferred;
use super::extra::{Extra, Reading};
use super::lane::Ended;
use super::lanes::Lanes;
use super::plan::{Planned, Step, plan};
use super::removal::Removal;
use super::way::{Way, check_read};
use super::{Job, Kind, Settings, stated};
use crate::compare::Compare;
use crate::entry::Entry;
use crate::failure::Failure;
use crate::place::Place;
use crate::report::{Action, Item, Outcome, Report};
use crate::summary::{Summary, Withheld};

/// Batches of steps that may wait.
const AHEAD: usize = 4;

/// Runs a job to its end.
pub(super) async fn run(job: Job, report: &mut dyn Report) -> Summary {
    let mut summary = Summary { dry_run: job.settings.dry_run, ..Summary::default() };
    let way = match job.kind {
        Kind::Delete => None,
        kind => match job.refuse().and_then(|()| Way::new(&job.from, &job.to, &job.settings, kind == Kind::Move)) {
            Ok(way) => Some(way),
            Err(failure) => {
                summary.stopped = Some(failure);
                return summary;
            }
        },
    };
    // A move removes at the source what was copied, a sync at the target what the source has no more.
    let removal = match job.kind {
        Kind::Sync => Removal::new(job.to.clone(), false),
        Kind::Move => Removal::new(job.from.clone(), true),
        Kind::Copy | Kind::Delete => Removal::new(job.from.clone(), false),
    };
    let (send, steps) = mpsc::channel(AHEAD);
    let driver = Driver {
        kind: job.kind,
        from: job.from.clone(),
        to: job.to.clone(),
        settings: job.settings.clone(),
        action: way.as_ref().map_or(Action::Delete, Way::action),
        lanes: way.map(Lanes::new),
        removal,
        extra: Extra::default(),
        deleting: None,
        ending: None,
        handed_to_removal: 0,
        incomplete: false,
        summary,
        report,
    };
    let planning = Planning(tokio::spawn(plan(job, send)));
    driver.run(steps, planning).await
}

/// The planning, which ends with the job.
struct Planning(JoinHandle<()>);

impl Drop for Planning {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Driver<'a> {
    kind: Kind,
    from: Place,
    to: Place,
    settings: Settings,
    /// What is done to an item that is not deleted.
    action: Action,
    lanes: Option<Lanes>,
    removal: Removal,
    /// What a sync may delete once the source is known to its end.
    extra: Extra,
    /// The same, when it is.
    deleting: Option<Reading>,
    /// Why nothing more is planned, though there may be more; what was planned is done.
    ending: Option<Failure>,
    /// Deletions that were begun.
    handed_to_removal: u64,
    /// Something of the source could not be listed.
    incomplete: bool,
    summary: Summary,
    report: &'a mut dyn Report,
}

impl Driver<'_> {
    async fn run(mut self, mut steps: mpsc::Receiver<Planned>, mut planning: Planning) -> Summary {
        let mut planned = false;
        while self.summary.stopped.is_none() {
            let transferring = self.lanes.as_ref().is_some_and(|lanes| !lanes.is_empty());
            if planned && !transferring {
                self.delete_extra();
                self.removal.flush();
                let nothing_left = self.removal.is_empty() && self.deleting.is_none();
                if nothing_left || self.summary.stopped.is_some() {
                    break;
                }
            }
            let has_room = self.lanes.as_ref().is_none_or(Lanes::has_room) && self.removal.has_room();
            tokio::select! {
                some = steps.recv(), if !planned && has_room => {
                    if let Some(steps) = some {
                        self.take(steps);
                    }
                    if self.ending.is_some() {
                        planning.0.abort();
                        steps.close();
                        while steps.try_recv().is_ok() {}
                    }
                    if steps.is_closed() && steps.is_empty() {
                        planned = true;
                        self.all_planned(&mut planning).await;
                    }
                }
                () = wait(&mut self.lanes), if transferring => {
                    let ended = self.lanes.as_mut().map(Lanes::take).unwrap_or_default();
                    ended.into_iter().for_each(|ended| self.transferred(ended));
                }
                (entry, result) = self.removal.next(), if !self.removal.is_empty() => self.removed(entry, result),
            }
        }
        if let Some(failure) = self.ending.take() {
            self.stop(failure);
        }
        self.summary.source_complete = planned && !self.incomplete && self.summary.stopped.is_none();
        self.withhold();
        stated::end(&self.settings, &self.to, &self.summary, self.incomplete).await;
        self.summary
    }

    fn take(&mut self, planned: Planned) {
        let steps = match planned {
            Planned::Steps(steps) => steps,
            Planned::Incomplete => {
                self.incomplete = true;
                return;
            }
            Planned::Stopped(failure) => {
                self.incomplete = true;
                self.ending = Some(failure);
                return;
            }
        };
        let (mut items, mut bytes) = (0, 0);
        for step in steps {
            match step {
                Step::Transfer(transfer) => {
                    items += 1;
                    bytes += transfer.0.size.unwrap_or(0);
                    match &mut self.lanes {
                        Some(lanes) if !self.settings.dry_run => {
                            if let Err(failure) = lanes.add(transfer) {
                                return self.stop(failure);
                            }
                        }
                        _ => self.settle(&transfer.0, self.action, Outcome::Planned),
                    }
                }
                Step::Delete(entry) if self.kind == Kind::Sync => self.extra.add(&entry),
                Step::Delete(entry) => {
                    items += 1;
                    self.delete(entry);
                }
                Step::Settled(entry, outcome) => self.settle(&entry, self.action, outcome),
            }
            if self.summary.stopped.is_some() || self.ending.is_some() {
                return;
            }
        }
        if items > 0 {
            self.report.found(items, bytes);
        }
    }

    async fn all_planned(&mut self, planning: &mut Planning) {
        self.report.all_found();
        if let Some(lanes) = &mut self.lanes {
            lanes.close();
        }
        if let Err(error) = (&mut planning.0).await
            && error.is_panic()
        {
            let why = "the planning ended in a panic, a fault of wirespeed; run it again, and report the fault";
            self.stop(Failure::Lost(why.to_owned()));
        }
    }

    fn delete(&mut self, entry: Entry) {
        let most = self.settings.max_delete.filter(|_| self.kind == Kind::Delete);
        if most == Some(self.handed_to_removal) {
            let most = self.handed_to_removal;
            self.summary.withheld = Some(Withheld::TooMany { found: most + 1, most });
            let why = format!("there is more than the {most} that may be deleted; the rest stays");
            self.ending = Some(Failure::Refused(why));
            return;
        }
        self.handed_to_removal += 1;
        if self.settings.dry_run {
            self.settle(&entry, Action::Delete, Outcome::Planned);
        } else {
            self.removal.add(entry);
        }
    }

    /// Deletes what a sync's source has no more, now that all is known; as much of it as may be under way.
    fn delete_extra(&mut self) {
        let found = self.extra.len();
        if found > 0 && self.deleting.is_none() {
            let extra = std::mem::take(&mut self.extra);
            let too_many = self.settings.max_delete.filter(|most| found > *most);
            self.summary.withheld = match too_many {
                _ if self.incomplete => Some(Withheld::IncompleteListing),
                Some(most) => Some(Withheld::TooMany { found, most }),
                None => None,
            };
            if self.summary.withheld.is_some() {
                return;
            }
            match extra.read() {
                Ok(reading) => self.deleting = Some(reading),
                Err(source) => return self.unreadable(source),
            }
        }
        while self.removal.has_room()
            && let Some(reading) = &mut self.deleting
        {
            match reading.next() {
                Ok(Some(entry)) => self.delete(entry),
                Ok(None) => self.deleting = None,
                Err(source) => return self.unreadable(source),
            }
        }
    }

    fn unreadable(&mut self, source: std::io::Error) {
        let path = std::env::temp_dir();
        self.stop(Failure::Local { doing: "read back what is to be deleted, kept in", path, source });
    }

    fn transferred(&mut self, (entry, result): Ended) {
        match result {
            Ok(transferred) if self.kind == Kind::Move => match self.check_moved(&entry, &transferred) {
                Ok(()) => self.removal.add(entry),
                Err(failure) => self.settle(&entry, self.action, Outcome::Failed(failure)),
            },
            Ok(Transferred { size, etag }) => {
                let size = size.or(entry.size);
                self.tell(&entry, self.action, size, etag.as_deref(), Outcome::Done);
            }
            Err(failure) if failure.is_precondition() && self.settings.compare == Some(Compare::Absent) => {
                self.settle(&entry, self.action, Outcome::Skipped("it is there already"));
            }
            Err(failure) => self.settle(&entry, self.action, Outcome::Failed(failure)),
        }
    }

    /// Checks that what a move brought to this machine is what it is about to remove. What goes to S3 is confirmed by the
    /// engine, and what passes through this machine when it is read.
    fn check_moved(&self, entry: &Entry, Transferred { size, etag }: &Transferred) -> Result<(), Failure> {
        match (&self.from, &self.to) {
            (Place::Bucket(from), Place::Folder(_)) => check_read(from, entry, *size, etag.as_deref()),
            _ => Ok(()),
        }
    }

    fn removed(&mut self, entry: Entry, result: Result<(), Failure>) {
        let action = if self.kind == Kind::Move { self.action } else { Action::Delete };
        self.settle(&entry, action, result.map_or_else(Outcome::Failed, |()| Outcome::Done));
    }

    fn settle(&mut self, entry: &Entry, action: Action, outcome: Outcome) {
        self.tell(entry, action, entry.size, None, outcome);
    }

    /// Tells of an item, and counts it. What fails once the job is stopped does so for the reason that stopped it.
    fn tell(&mut self, entry: &Entry, action: Action, size: Option<u64>, etag: Option<&str>, outcome: Outcome) {
        if self.summary.stopped.is_some() && matches!(outcome, Outcome::Failed(_)) {
            return;
        }
        let at_target = action == Action::Delete && self.kind == Kind::Sync;
        let item = Item {
            action,
            moves: self.kind == Kind::Move,
            entry,
            size,
            etag,
            outcome,
            from: if at_target { &self.to } else { &self.from },
            to: &self.to,
        };
        stated::tell(&self.settings, &item);
        self.report.item(&item);
        let is_start = self.summary.is_start();
        self.summary.count(&item);
        if let Outcome::Failed(failure) = item.outcome
            && (self.settings.fail_fast || failure.dooms_the_rest() || (is_start && failure.dooms_a_start()))
        {
            self.stop(failure);
        }
    }

    fn stop(&mut self, failure: Failure) {
        self.summary.stopped.get_or_insert(failure);
    }

    /// A sync that was stopped has deleted nothing, and says so.
    fn withhold(&mut self) {
        let deletes = self.kind == Kind::Sync && self.settings.delete_extra;
        if deletes && (self.incomplete || self.summary.stopped.is_some()) && self.summary.deleted == 0 {
            self.summary.withheld.get_or_insert(Withheld::IncompleteListing);
        }
    }
}

async fn wait(lanes: &mut Option<Lanes>) {
    match lanes {
        Some(lanes) => lanes.wait().await,
        None => std::future::pending().await,
    }
}

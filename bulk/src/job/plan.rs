//! From what was found to what is to be done: filter, compare, map to the other side.
//!
//! Runs in a task of its own, ahead of the transfers by a few batches. A copy takes what its source hands it, in any
//! order; where both sides are compared, their ordered streams are joined name by name. What takes a question to compare
//! (its metadata, its checksum) is asked many at a time, behind what takes none.

use std::path::PathBuf;

use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::sync::mpsc;

use super::judge::Judge;
use super::landing::Landing;
use super::lane::Transfer;
use super::{Job, Kind, Names, Settings, look};
use crate::compare::{Compare, Verdict};
use crate::entry::Entry;
use crate::failure::Failure;
use crate::join::{Join, Pair, Side};
use crate::place::Place;
use crate::report::Outcome;
use crate::source::{Looking, Source, Trouble};

/// Answers that are handed on together.
const ANSWERS: usize = 256;

/// What is to be done about one item.
#[derive(Debug)]
pub(super) enum Step {
    /// It is to be transferred.
    Transfer(Transfer),
    /// It is to be deleted: of a sync, from the target.
    Delete(Entry),
    /// There is nothing to be done, or nothing that can be done.
    Settled(Entry, Outcome),
}

/// What the planning tells the transfers.
pub(super) enum Planned {
    Steps(Vec<Step>),
    /// Something of the source could not be listed; the rest goes on.
    Incomplete,
    /// What ended the planning early.
    Stopped(Failure),
}

type Send = mpsc::Sender<Planned>;

/// Why the planning ended early.
enum Ended {
    Failed(Failure),
    /// Nobody listens any more.
    Unheard,
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Ended {
        Ended::Failed(failure)
    }
}

pub(super) struct Planner {
    kind: Kind,
    from: Place,
    to: Place,
    settings: Settings,
    landing: Option<Landing>,
    send: Send,
}

/// Plans a job to its end, or until nobody listens.
pub(super) async fn plan(job: Job, send: Send) {
    let Job { kind, from, to, names, settings } = job;
    let compare = match kind {
        Kind::Delete => None,
        Kind::Sync => Some(settings.compare.unwrap_or_default()),
        Kind::Copy | Kind::Move => settings.compare.filter(|compare| *compare != Compare::Always),
    };
    let judge = compare.map(|compare| Judge::new(compare, settings.preserve, &from, &to));
    let landing = match (&from, &to, kind) {
        (_, _, Kind::Delete) => None,
        (Place::Bucket(_), Place::Folder(folder), _) => Some(Landing::new(folder, !settings.dry_run)),
        _ => None,
    };
    let mut planner = Planner { kind, from, to, settings, landing, send };
    let ended = match (names, judge) {
        (Some(names), judge) => planner.named(names, judge).await,
        (None, Some(judge)) => planner.joined(judge).await,
        (None, None) => planner.found().await,
    };
    if let Err(Ended::Failed(failure)) = ended {
        let _ = planner.send.send(Planned::Stopped(failure)).await;
    }
}

impl Planner {
    /// All that the source has.
    async fn found(&mut self) -> Result<(), Ended> {
        let mut source = Source::of(&self.from, self.looking(Side::Source, false));
        while let Some(batch) = source.next().await {
            let batch = batch?;
            let mut steps = Vec::with_capacity(batch.entries.len());
            for (entry, trouble) in batch.troubles {
                self.trouble(Side::Source, entry, trouble, &mut steps).await?;
            }
            let wanted = batch.entries.into_iter().filter(|entry| self.settings.filter.wants_entry(entry)).collect();
            self.take(wanted, &mut steps).await;
            self.tell(steps).await?;
        }
        Ok(())
    }

    /// What somebody names, in any order: what is not known of each is asked.
    async fn named(&mut self, mut names: Names, judge: Option<Judge>) -> Result<(), Ended> {
        let at_a_time = self.at_a_time();
        while let Some(entries) = names.next().await {
            let mut steps = Vec::with_capacity(entries.len());
            let looks = entries.into_iter().map(|entry| self.look(entry, judge.as_ref()));
            let looked: Vec<_> = stream::iter(looks).buffered(at_a_time).collect().await;
            let mut wanted = Vec::with_capacity(looked.len());
            for (entry, outcome) in looked {
                match outcome {
                    Some(outcome) => steps.push(Step::Settled(entry, outcome)),
                    None if self.settings.filter.wants_entry(&entry) => wanted.push(entry),
                    None => {}
                }
            }
            self.take(wanted, &mut steps).await;
            self.tell(steps).await?;
        }
        Ok(())
    }

    /// Asks what has to be known of a named entry; an outcome where there is nothing more to be done.
    async fn look(&self, entry: Entry, judge: Option<&Judge>) -> (Entry, Option<Outcome>) {
        let is_known = entry.size.is_some() && entry.modified.is_some();
        // A file is looked at in any case: what is read must be what was found.
        let details = judge.is_some() || self.settings.filter.needs_details() || matches!(self.from, Place::Folder(_));
        let mut entry = entry;
        if details && !is_known && self.kind != Kind::Delete {
            match look::at(&self.from, &entry).await {
                Ok(Some(found)) => entry = Entry { target: entry.target, version: entry.version, ..found },
                Ok(None) => {
                    let at = self.from.locate(&entry.key).map(|at| at.to_string()).unwrap_or_default();
                    let failure = Failure::Refused(format!("{at} does not exist"));
                    return (entry, Some(Outcome::Failed(failure)));
                }
                Err(failure) => return (entry, Some(Outcome::Failed(failure))),
            }
        }
        let Some(judge) = judge.filter(|_| self.settings.filter.wants_entry(&entry)) else { return (entry, None) };
        let same = match look::at(&self.to, &Entry::named(entry.target())).await {
            Ok(Some(there)) => match judge.at_once(&entry, &there) {
                Verdict::Same => Ok(true),
                Verdict::Different => Ok(false),
                Verdict::Ask => judge.ask(&entry, &there).await,
            },
            Ok(None) => Ok(false),
            Err(failure) => Err(failure),
        };
        let outcome = match same {
            Ok(true) => Some(unchanged(judge)),
            Ok(false) => None,
            Err(failure) => Some(Outcome::Failed(failure)),
        };
        (entry, outcome)
    }

    /// What the two sides have, name by name.
    async fn joined(&mut self, judge: Judge) -> Result<(), Ended> {
        let (source, target) = (self.looking(Side::Source, true), self.looking(Side::Target, true));
        let mut join = Join::new(Source::of(&self.from, source), Source::of(&self.to, target));
        loop {
            let joined = match join.next().await {
                Ok(Some(joined)) => joined,
                Ok(None) => return Ok(()),
                Err(failure) => return Err(Ended::Failed(failure)),
            };
            let mut steps = Vec::with_capacity(joined.pairs.len());
            for (side, entry, trouble) in joined.troubles {
                self.trouble(side, entry, trouble, &mut steps).await?;
            }
            let (mut wanted, mut questions) = (Vec::new(), Vec::new());
            for pair in joined.pairs {
                match pair {
                    Pair::Source(source) if self.settings.filter.wants_entry(&source) => wanted.push(source),
                    Pair::Both(source, target) if self.settings.filter.wants_entry(&source) => {
                        match judge.at_once(&source, &target) {
                            Verdict::Same => steps.push(Step::Settled(source, unchanged(&judge))),
                            Verdict::Different => wanted.push(source),
                            Verdict::Ask => questions.push((source, target)),
                        }
                    }
                    Pair::Target(target) if self.deletes(&target) => steps.push(Step::Delete(target)),
                    // One side has it, and it is not wanted.
                    Pair::Source(_) | Pair::Target(_) | Pair::Both(..) => {}
                }
            }
            self.take(wanted, &mut steps).await;
            self.tell(steps).await?;
            self.ask(&judge, questions).await?;
        }
    }

    /// Transfers of these what turns out to differ.
    async fn ask(&mut self, judge: &Judge, questions: Vec<(Entry, Entry)>) -> Result<(), Ended> {
        let asked = questions.into_iter().map(|(source, target)| async move {
            let answer = judge.ask(&source, &target).await;
            (source, answer)
        });
        let mut answers = stream::iter(asked).buffer_unordered(self.at_a_time()).ready_chunks(ANSWERS);
        while let Some(answered) = answers.next().await {
            let (mut steps, mut wanted) = (Vec::with_capacity(answered.len()), Vec::new());
            for (source, answer) in answered {
                match answer {
                    Ok(true) => steps.push(Step::Settled(source, unchanged(judge))),
                    Ok(false) => wanted.push(source),
                    Err(failure) => steps.push(Step::Settled(source, Outcome::Failed(failure))),
                }
            }
            self.take(wanted, &mut steps).await;
            self.tell(steps).await?;
        }
        Ok(())
    }

    /// Plans what is wanted: each is deleted, or transferred if it can be.
    async fn take(&mut self, wanted: Vec<Entry>, steps: &mut Vec<Step>) {
        if self.kind == Kind::Delete {
            steps.extend(wanted.into_iter().map(Step::Delete));
            return;
        }
        let mut transfers = Vec::with_capacity(wanted.len());
        for entry in wanted {
            let done_before = self.settings.state.as_ref().is_some_and(|state| state.is_finished(&entry));
            match self.refusal(&entry) {
                Some(outcome) => steps.push(Step::Settled(entry, outcome)),
                None if done_before => steps.push(Step::Settled(entry, Outcome::DoneBefore)),
                None => transfers.push(entry),
            }
        }
        match &mut self.landing {
            None => steps.extend(transfers.into_iter().map(|entry| Step::Transfer((entry, None)))),
            Some(landing) => {
                for (entry, path) in landing.map(transfers).await {
                    steps.push(self.landed(entry, path));
                }
            }
        }
    }

    fn landed(&self, entry: Entry, path: Result<PathBuf, String>) -> Step {
        match path {
            Ok(path) => Step::Transfer((entry, Some(path))),
            Err(why) => {
                let at = self.from.locate(&entry.key).map(|at| at.to_string()).unwrap_or_default();
                let why = format!("refused {at}: {why}; copy it alone, under a name of your choice");
                Step::Settled(entry, Outcome::Failed(Failure::Refused(why)))
            }
        }
    }

    /// Why something is not transferred, though it is wanted.
    fn refusal(&self, entry: &Entry) -> Option<Outcome> {
        let Place::Bucket(from) = &self.from else { return None };
        if entry.is_folder_marker() {
            return Some(Outcome::Skipped("an empty object that stands for a folder"));
        }
        if let (Kind::Move, Place::Bucket(to)) = (self.kind, &self.to)
            && from.may_be(to)
            && from.key_of(&entry.key) == to.key_of(entry.target())
        {
            let why = format!("refused s3://{}/{}: it would be moved onto itself", from.name, from.key_of(&entry.key));
            return Some(Outcome::Failed(Failure::Refused(why)));
        }
        None
    }

    /// Whether a sync deletes this of the target. What only stands for a folder stays, as it is never copied.
    fn deletes(&self, target: &Entry) -> bool {
        let is_marker = matches!(self.to, Place::Bucket(_)) && target.is_folder_marker();
        let may = self.kind == Kind::Sync && self.settings.delete_extra;
        may && !is_marker && self.settings.filter.wants_entry(target)
    }

    async fn trouble(&self, side: Side, entry: Entry, trouble: Trouble, steps: &mut Vec<Step>) -> Result<(), Ended> {
        match (side, trouble) {
            (Side::Target, Trouble::Skipped(_)) => {}
            (Side::Source, Trouble::Skipped(why)) => steps.push(Step::Settled(entry, Outcome::Skipped(why))),
            (side, Trouble::Failed(failure)) => {
                steps.push(Step::Settled(entry, Outcome::Failed(failure)));
                if side == Side::Source {
                    self.send.send(Planned::Incomplete).await.map_err(|_| Ended::Unheard)?;
                }
            }
        }
        Ok(())
    }

    async fn tell(&self, steps: Vec<Step>) -> Result<(), Ended> {
        if steps.is_empty() {
            return Ok(());
        }
        self.send.send(Planned::Steps(steps)).await.map_err(|_| Ended::Unheard)
    }

    fn looking(&self, side: Side, in_order: bool) -> Looking {
        Looking {
            in_order,
            // Nothing is written through a link at the target, and nothing deleted: it may lead anywhere.
            follow_links: self.settings.follow_links && side == Side::Source,
            all_versions: self.settings.all_versions && self.kind == Kind::Delete,
            prefix: self.settings.filter.fixed_prefix().to_owned(),
            may_be_missing: side == Side::Target,
            range: self.settings.range.clone(),
        }
    }

    /// Questions at a time.
    fn at_a_time(&self) -> usize {
        [&self.from, &self.to]
            .into_iter()
            .filter_map(|place| match place {
                Place::Bucket(bucket) => Some(bucket.client.config().concurrency),
                _ => None,
            })
            .max()
            .unwrap_or(1)
    }
}

/// What is told of something that stays as it is.
fn unchanged(judge: &Judge) -> Outcome {
    match judge.compare() {
        Compare::Absent => Outcome::Skipped("it is there already"),
        _ => Outcome::Unchanged,
    }
}

//! Who lists which stretch of the keys, and what may be handed out: the plan of a listing in parallel. No IO, no
//! clock.
//!
//! The keys are cut into ranges, `after` < key <= `until`, which together are all keys. A range is listed page by
//! page; its last page reaches beyond its end, and is cut there. [`Plan::next`] says what to ask, [`Plan::arrived`]
//! takes the answer, [`Plan::take`] hands pages out.
//!
//! **Nothing is lost or doubled**, whatever the server's order is. A key is only handed out by the range that it
//! lies in, and only if it comes after all that this range has handed out, so none comes twice. And what is listed
//! of two neighbours is one piece of the server's own listing: the key that ended the left one, the first behind
//! the cut, must be the key that the right one began with. Such a seam is checked at every cut, from pages that
//! were asked for anyway. Where it does not hold, the keys are asked for once more, since they may just have been
//! written or deleted; where it still does not, or keys don't ascend, the order is not to be trusted, and
//! [`Plan::remainder`] says what is left to be listed serially.
//!
//! **Who is idle cuts.** The number of listers grows with each page that brought keys. Whenever there are more than
//! ranges, the range that has most before it is cut ([`KeySpace`] says where). A cut behind which there was nothing
//! is a miss; where there were too many for the pages that came, no more are made. In order, only ranges near the
//! front are listed, as far as the memory for what waits its turn will reach, and each is cut to what its lister can
//! do until the front has come.

use std::collections::VecDeque;
use std::fmt;

use super::Start;
use super::keyspace::KeySpace;
use super::page::Listed;
use super::serial::{Entry, Remainder, Run};
use crate::transfer::pages::Marker;

/// In no order, a range with fewer pages before it is left to its lister.
pub(super) const LEAST_WORTH_CUTTING: f64 = 3.0;

/// Cuts that may find nothing from the start, and one more for so many pages.
pub(super) const FREE_MISSES: f64 = 1.5;
pub(super) const PAGES_A_MISS: f64 = 10.0;

/// One more for so many pages where all listers are idle.
pub(super) const IDLE_PAGES_A_MISS: f64 = 4.0;

/// How many times the pages that came an estimate may reach, where every second cut is a miss.
pub(super) const LOOK_AHEAD: f64 = 2.0;

/// In order, how many times longer than usual a part must be to be cut again; how many times longer than there is
/// time for until the front has come; and from how many pages on that is worth it. No part is made shorter than the
/// last of these.
pub(super) const LONG: f64 = 2.0;
pub(super) const LATE: f64 = 1.1;
pub(super) const LEAST_LATE: f64 = 2.5;
pub(super) const SHORTEST: f64 = 2.0;

/// In order, pages that all listers' parts may have together, for each that may wait. Parts that are begun one
/// after the other wait for half of their pages on average.
pub(super) const PIPELINE: f64 = 1.6;

/// In order, the share of the memory that is meant to be filled, the rest being for what is nearest to the front;
/// and how many pages ahead of the front are begun for each that there is memory for.
pub(super) const FILLED: f64 = 0.8;
pub(super) const MOVES_ON: f64 = 5.0;

/// How many of its last pages say how close the keys of a range lie, and how many times closer the last alone may
/// say that they do.
const RECENT: usize = 4;
pub(super) const CLOSER: f64 = 4.0;

/// How fast what became of older estimates is forgotten, and the most that one counts for, in pages.
pub(super) const FORGETTING: f64 = 0.95;
pub(super) const MOST_WRONG: f64 = 32.0;

/// The most that one estimate counts as off by, in pages, since a part that is off by more is cut well nowhere; how
/// far off, squared and for each page, the first are taken to be; and how many times as far parts are cut short.
pub(super) const MOST_OFF: f64 = 0.4;
pub(super) const FIRST_VARIANCE: f64 = 0.005;
pub(super) const SAFETY: f64 = 1.3;

/// Probes made of one range at once.
pub(super) const PROBES: usize = 2;

/// After so many pages the number of listers grows twice as fast.
pub(super) const SHORT: u64 = 3;

/// How often a seam is looked at again before the server's order is given up.
const DOUBTS: u32 = 4;

/// Empty pages in a row that say there is more, before the listing is said to turn in circles.
const MOST_EMPTY: u32 = 1000;

/// What a page is taken to need before one has come.
pub(super) const FIRST_PAGE_BYTES: u64 = 200_000;

/// What a listing in parallel is to list, and how.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    pub(super) prefix: String,
    /// Only keys after this.
    pub(super) after: String,
    /// Only keys up to and including this.
    pub(super) until: Option<String>,
    pub(super) in_order: bool,
    /// Most requests in flight.
    pub(super) listers: usize,
    /// Memory for pages that nobody has taken yet.
    pub(super) read_ahead: u64,
    pub(super) page_size: u32,
}

impl Scope {
    pub(super) fn contains(&self, key: &str) -> bool {
        let is_before_end = self.until.as_deref().is_none_or(|until| key <= until);
        is_before_end && key > self.after.as_str() && key.starts_with(&self.prefix)
    }
}

/// One page to be asked for.
#[derive(Debug, Clone)]
pub(super) struct Errand {
    range: u64,
    pub(super) start: Start,
    /// All keys of the answer come after this.
    pub(super) floor: String,
    /// Where the range ended when the page was asked for.
    until: Option<String>,
    /// The rest of the versions of `floor` may come first.
    pub(super) may_repeat_floor: bool,
    /// Entries wanted.
    pub(super) entries: u32,
    /// Only the first key is wanted, to look at a seam again.
    probe: bool,
}

impl fmt::Display for Errand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.floor.as_str() {
            "" => f.write_str("keys from the first on")?,
            floor => write!(f, "keys after {}", floor.escape_debug())?,
        }
        match &self.until {
            Some(until) => write!(f, " up to {}", until.escape_debug()),
            None => Ok(()),
        }
    }
}

/// Why a listing does not go on in parallel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The server's order or its start-after is not to be trusted.
    Distrust,
    /// The server sends the same page again and again.
    Circles,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    Asked,
    Done,
}

pub(super) struct Range<P> {
    pub(super) id: u64,
    pub(super) until: Option<String>,
    pub(super) state: State,
    /// Where its next page begins.
    pub(super) start: Start,
    /// All its keys up to this have come.
    pub(super) floor: String,
    /// The first key that the server showed for it, within its end or behind; `None` inside where there was none.
    pub(super) head: Option<Option<String>>,
    /// The first key behind its end, once it is done; `None` where there was none.
    pub(super) beyond: Option<String>,
    /// What was handed out of it, and of those that it took in.
    pub(super) run: Option<Run>,
    /// The first key of each of its last pages, and how many it had, for the estimate.
    pub(super) recent: VecDeque<(String, u64)>,
    pub(super) keys: u64,
    pub(super) answered: bool,
    /// Pages that are taken to be before it; `None` where nobody knows.
    pub(super) expected: Option<f64>,
    /// The same when it was cut, as long as it has not been cut again.
    pub(super) planned: Option<f64>,
    /// Nothing was found to cut it at, the last time.
    pub(super) whole: bool,
    /// It begins where no key is known to: it is not cut before one of its pages came.
    pub(super) is_guess: bool,
    pub(super) doubts: u32,
    pub(super) empty: u32,
    pub(super) probe: Probe,
    /// Pages that wait for their turn.
    pub(super) queue: VecDeque<P>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probe {
    None,
    Due,
    Asked,
}

impl<P> Range<P> {
    pub(super) fn new(id: u64, after: &str, until: Option<String>, expected: Option<f64>) -> Range<P> {
        Range {
            id,
            until,
            state: State::Ready,
            start: Start::after(after),
            floor: after.to_owned(),
            head: None,
            beyond: None,
            run: None,
            recent: VecDeque::new(),
            keys: 0,
            answered: false,
            expected,
            planned: expected,
            whole: false,
            is_guess: false,
            doubts: 0,
            empty: 0,
            probe: Probe::None,
            queue: VecDeque::new(),
        }
    }

    /// Nothing was asked of it yet.
    pub(super) fn is_untouched(&self) -> bool {
        self.state == State::Ready && !self.answered && self.head.is_none()
    }
}

/// The plan of one listing.
pub(super) struct Plan<P> {
    pub(super) scope: Scope,
    pub(super) space: KeySpace,
    /// In the order of the keys. Those that are done are taken in by the next, once their seam held.
    pub(super) ranges: Vec<Range<P>>,
    pub(super) next_id: u64,
    /// Pages to be handed out, where order does not matter.
    pub(super) ready: VecDeque<P>,
    /// Bytes of pages that nobody has taken.
    pub(super) held: u64,
    pub(super) active: usize,
    pub(super) target: usize,
    /// Answers, and what they weighed.
    pub(super) pages: u64,
    pub(super) bytes: u64,
    /// Cuts whose first page has not come; cuts behind which there was nothing; all that were answered.
    pub(super) pending: u32,
    pub(super) misses: u32,
    pub(super) resolved: u32,
    /// Once the server was overrun the number of listers grows by one a round; what is left of this one.
    pub(super) cautious: bool,
    /// Pages that ranges were estimated at, and that they had, the latest weighing most.
    pub(super) estimated: f64,
    pub(super) turned_out: f64,
    /// How far off they were, squared, and what they were estimated at in the end.
    pub(super) wrong: f64,
    pub(super) guessed: f64,
    pub(super) round: usize,
}

impl<P: Listed> Plan<P> {
    pub(super) fn new(scope: Scope) -> Plan<P> {
        let ranges = vec![Range::new(0, &scope.after, scope.until.clone(), None)];
        Plan {
            space: KeySpace::new(&scope.prefix),
            scope,
            ranges,
            next_id: 1,
            ready: VecDeque::new(),
            held: 0,
            active: 0,
            target: 1,
            pages: 0,
            bytes: 0,
            pending: 0,
            misses: 0,
            resolved: 0,
            cautious: false,
            estimated: 0.0,
            turned_out: 0.0,
            wrong: 0.0,
            guessed: 0.0,
            round: 0,
        }
    }

    /// Whether everything was listed.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.ranges.as_slice(), [last] if last.state == State::Done)
    }

    /// The next page to hand out, if there is one.
    pub(super) fn take(&mut self) -> Option<P> {
        let page = match self.scope.in_order {
            true => self.ranges.first_mut()?.queue.pop_front(),
            false => self.ready.pop_front(),
        }?;
        self.held -= page.bytes();
        Some(page)
    }

    /// Whether [`take`](Plan::take) has a page.
    pub(super) fn has_page(&self) -> bool {
        match self.scope.in_order {
            true => self.ranges.first().is_some_and(|front| !front.queue.is_empty()),
            false => !self.ready.is_empty(),
        }
    }

    /// The server asked for fewer requests.
    pub(super) fn slow_down(&mut self) {
        // What was in flight when it said so says it too.
        if self.cautious && self.round > 0 {
            return;
        }
        self.target = (self.target / 2).max(1);
        self.cautious = true;
        self.round = self.target;
    }

    /// The next page to ask for; `None` where there is none now.
    pub(super) fn next(&mut self) -> Option<Errand> {
        if self.active < self.target
            && let Some(errand) = self.next_probe()
        {
            return Some(errand);
        }
        while self.active < self.target {
            let index = match self.next_ready() {
                // What is too long for one lister is cut before it is begun: no page of it is on its way.
                Some(index) if !self.is_long(index) => index,
                None if self.is_full() => return None,
                _ if self.cut() => continue,
                Some(index) => index,
                None => self.next_far()?,
            };
            let range = &mut self.ranges[index];
            range.state = State::Asked;
            self.active += 1;
            return Some(Errand {
                range: range.id,
                start: range.start.clone(),
                floor: range.floor.clone(),
                until: range.until.clone(),
                may_repeat_floor: P::REPEATS && matches!(range.start, Start::At(_)),
                entries: self.scope.page_size,
                probe: false,
            });
        }
        None
    }

    fn next_probe(&mut self) -> Option<Errand> {
        let index = self.ranges.iter().position(|range| range.probe == Probe::Due)?;
        let seam = self.ranges.get(index.checked_sub(1)?)?.until.clone()?;
        self.ranges[index].probe = Probe::Asked;
        self.active += 1;
        Some(Errand {
            range: self.ranges[index].id,
            start: Start::after(&seam),
            floor: seam,
            until: self.ranges[index].until.clone(),
            may_repeat_floor: false,
            entries: 1,
            probe: true,
        })
    }

    /// Takes the answer to an errand: its page, whose keys were found to ascend, and where the next begins.
    pub(super) fn arrived(&mut self, errand: &Errand, page: P, next: Option<Marker>) -> Result<(), Stop> {
        self.active -= 1;
        let Some(index) = self.ranges.iter().position(|range| range.id == errand.range) else { return Ok(()) };
        if errand.probe {
            let range = &mut self.ranges[index];
            range.probe = Probe::None;
            range.head = Some((page.len() > 0).then(|| page.key(0).to_owned()));
            return self.check_seams(index);
        }
        if let (Start::At(asked), Some(next)) = (&errand.start, &next)
            && asked == next
        {
            return Err(Stop::Circles);
        }
        if [0, page.len().saturating_sub(1)]
            .iter()
            .any(|at| *at < page.len() && !page.key(*at).starts_with(&self.scope.prefix))
        {
            return Err(Stop::Distrust);
        }
        self.pages += 1;
        self.bytes += page.bytes();
        self.space.learn(page.len(), |entry| page.key(entry));
        let range = &mut self.ranges[index];
        range.empty = if page.len() == 0 { range.empty + 1 } else { 0 };
        if range.empty > MOST_EMPTY {
            return Err(Stop::Circles);
        }
        if range.head.is_none() && range.probe == Probe::None {
            range.head = Some((page.len() > 0).then(|| page.key(0).to_owned()));
        }
        let kept = self.reach(index, &page, next.is_none());
        let is_first = !std::mem::replace(&mut self.ranges[index].answered, true);
        if is_first && errand.range > 0 {
            self.pending = self.pending.saturating_sub(1);
            self.resolved += 1;
            if kept == 0 && (page.len() > 0 || next.is_none()) {
                self.misses += 1;
                if let Some(left) = index.checked_sub(1).map(|left| &self.ranges[left]) {
                    self.space.missed(&left.floor, &errand.floor);
                }
            }
        }
        if kept > 0 {
            self.grow();
        }
        self.keep(index, page, kept, next);
        self.check_seams(index)
    }

    /// How many entries of a page belong to its range. Where it reaches beyond, it takes in what nobody has begun.
    fn reach(&mut self, index: usize, page: &P, is_last: bool) -> usize {
        loop {
            let kept = page.up_to(self.ranges[index].until.as_deref());
            let is_done = kept < page.len() || is_last;
            let neighbour = self.ranges.get(index + 1);
            if !is_done
                || !neighbour.is_some_and(|neighbour| neighbour.is_untouched() && neighbour.probe == Probe::None)
            {
                return kept;
            }
            let taken = self.ranges.remove(index + 1);
            self.pending = self.pending.saturating_sub(1);
            let range = &mut self.ranges[index];
            range.until = taken.until;
            range.expected = taken.expected;
            range.planned = None;
        }
    }

    /// Keeps the first entries of a page for handing out, and notes how far its range is.
    fn keep(&mut self, index: usize, mut page: P, kept: usize, next: Option<Marker>) {
        let is_last_range = index + 1 == self.ranges.len();
        let range = &mut self.ranges[index];
        range.beyond = (kept < page.len()).then(|| page.key(kept).to_owned());
        // More versions of the last key may follow.
        let at_end = !P::REPEATS && is_last_range && kept > 0 && range.until.as_deref() == Some(page.key(kept - 1));
        let is_done = kept < page.len() || next.is_none() || at_end;
        if kept > 0 {
            let (first, last) = (Entry::of(&page, 0), Entry::of(&page, kept - 1));
            if range.recent.len() == RECENT {
                range.recent.pop_front();
            }
            range.recent.push_back((first.key.clone(), kept as u64));
            range.floor.clone_from(&last.key);
            range.keys += kept as u64;
            match &mut range.run {
                Some(run) => run.last = last,
                None => range.run = Some(Run { first, last }),
            }
            page.keep_first(kept);
            self.held += page.bytes();
            match self.scope.in_order {
                true => range.queue.push_back(page),
                false => self.ready.push_back(page),
            }
        }
        let range = &mut self.ranges[index];
        match next {
            Some(marker) if !is_done => {
                range.start = Start::At(marker);
                range.state = State::Ready;
            }
            _ => range.state = State::Done,
        }
        range.whole = false;
        if range.state == State::Done
            && let Some(planned) = range.planned.take()
        {
            let keys = range.keys;
            self.calibrate(planned, keys);
        }
        self.estimate(index);
    }

    /// Checks the seams of a range whose head or end has become known.
    fn check_seams(&mut self, index: usize) -> Result<(), Stop> {
        // The right one first: its left side then is in its place still.
        self.check_seam(index)?;
        match index.checked_sub(1) {
            Some(left) => self.check_seam(left),
            None => Ok(()),
        }
    }

    /// Checks the seam between a range and the next; where it holds, they become one.
    fn check_seam(&mut self, index: usize) -> Result<(), Stop> {
        let Some([left, right]) = self.ranges.get_mut(index..index + 2) else { return Ok(()) };
        let is_settled = left.probe == Probe::None && right.probe == Probe::None && left.head.is_some();
        let Some(head) = right.head.as_ref().filter(|_| left.state == State::Done && is_settled) else { return Ok(()) };
        if left.beyond == *head {
            right.head = left.head.take();
            right.run = match (left.run.take(), right.run.take()) {
                (Some(Run { first, .. }), Some(Run { last, .. })) => Some(Run { first, last }),
                (left, right) => left.or(right),
            };
            left.queue.append(&mut right.queue);
            right.queue = std::mem::take(&mut left.queue);
            self.ranges.remove(index);
            return Ok(());
        }
        left.doubts += 1;
        if left.doubts > DOUBTS {
            return Err(Stop::Distrust);
        }
        left.state = State::Ready;
        left.start = Start::after(&left.floor);
        right.head = None;
        right.probe = Probe::Due;
        Ok(())
    }

    /// What is left to be listed serially, once the order is not trusted any more. What was handed out, or is
    /// about to be, is not listed again.
    pub(super) fn remainder(&mut self) -> Remainder {
        let from_the_front = |front: &Range<P>| front.state != State::Done && !matches!(front.start, Start::After(_));
        let front = self.ranges.first().filter(|front| from_the_front(front));
        let start = front.map_or_else(|| Start::after(&self.scope.after), |front| front.start.clone());
        let begun = match (front, self.scope.in_order) {
            (Some(_), true) => 0..0,
            (Some(_), false) => 1..self.ranges.len(),
            (None, true) => 0..1,
            (None, false) => 0..self.ranges.len(),
        };
        let runs = self.ranges[begun].iter().filter_map(|range| range.run.clone()).collect();
        Remainder::new(&self.scope, start, runs)
    }
}

#[cfg(test)]
#[path = "ranges_tests.rs"]
mod tests;

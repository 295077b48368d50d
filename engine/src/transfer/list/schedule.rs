//! Which range is listed next, and which is cut when there are more listers than ranges: the second half of the
//! [`Plan`].

use super::page::Listed;
use super::ranges::{
    CLOSER, FILLED, FIRST_PAGE_BYTES, FIRST_VARIANCE, FORGETTING, FREE_MISSES, IDLE_PAGES_A_MISS, LATE, LEAST_LATE,
    LEAST_WORTH_CUTTING, LONG, LOOK_AHEAD, MOST_OFF, MOST_WRONG, MOVES_ON, PAGES_A_MISS, PIPELINE, PROBES, Plan, Probe,
    Range, SAFETY, SHORT, SHORTEST, State,
};

/// A range that may be listed.
struct Ahead {
    index: usize,
    /// How many pages from its first on.
    reach: f64,
    /// How many pages its parts should have.
    part: f64,
    /// From how many pages on it is cut into such.
    long: f64,
}

impl<P: Listed> Plan<P> {
    /// Pages wait to be taken, and there is no memory for more.
    pub(super) fn is_full(&self) -> bool {
        self.held > self.scope.read_ahead
    }

    /// A page brought keys: there may be work for more listers.
    pub(super) fn grow(&mut self) {
        if self.cautious {
            self.round = self.round.saturating_sub(1);
            if self.round > 0 {
                return;
            }
        }
        // Most listings are short: the first pages say little.
        let more = if self.cautious || self.pages <= SHORT { 1 } else { 2 };
        self.target = (self.target + more).min(self.scope.listers);
        self.round = self.target;
    }

    /// The range whose next page is asked for.
    pub(super) fn next_ready(&self) -> Option<usize> {
        let ready = |index: &usize| self.ranges[*index].state == State::Ready;
        if self.is_full() {
            // The front must come, for what waits behind it.
            return (self.scope.in_order && !self.has_page()).then_some(0).filter(ready);
        }
        self.ahead().map(|ahead| ahead.index).find(ready)
    }

    /// A range beyond the reach, where there is memory to spare and nothing nearer to do.
    pub(super) fn next_far(&self) -> Option<usize> {
        let is_spare = self.held < self.scope.read_ahead / 4;
        is_spare.then(|| self.ranges.iter().position(|range| range.state == State::Ready)).flatten()
    }

    /// The ranges that may be listed.
    ///
    /// In order, what is listed before its turn waits in memory. When all before a range is through, listers have
    /// brought as many pages as there are before it; the rest of them must fit. So it has as many rounds as its
    /// listers need for what waits and is to be listed before it, and for what there is memory for beyond. If all
    /// ranges keep to that, memory never fills up for want of the front.
    fn ahead(&self) -> impl Iterator<Item = Ahead> {
        let calibration = self.calibration();
        let memory = self.memory();
        let held = memory * (self.held as f64 / self.scope.read_ahead.max(1) as f64);
        let free = FILLED * memory - held;
        let (mut reach, mut through) = match self.scope.in_order {
            true => ((MOVES_ON * (free - self.active as f64)).max((1.0 - FILLED) * memory), free.max(0.0)),
            false => (f64::INFINITY, f64::INFINITY),
        };
        let usual = self.part();
        self.ranges.iter().enumerate().map_while(move |(index, range)| {
            let unknown = 4.0 * (range.keys as f64 / f64::from(self.scope.page_size) + 1.0);
            let pages = match range.state {
                State::Done => 0.0,
                _ => range.expected.map_or(unknown, |pages| pages * calibration),
            };
            let due = through / self.scope.listers as f64;
            let ahead = Ahead {
                index,
                reach,
                part: due.clamp(SHORTEST, usual),
                long: (LATE * due).min(LONG * usual).max(LEAST_LATE),
            };
            reach -= pages;
            through += pages + range.queue.len() as f64;
            (ahead.reach > 0.0 || index == 0).then_some(ahead)
        })
    }

    /// How many pages may wait for their turn.
    fn memory(&self) -> f64 {
        let page = self.bytes.checked_div(self.pages).unwrap_or(FIRST_PAGE_BYTES).max(1);
        self.scope.read_ahead as f64 / page as f64
    }

    /// How many pages a part should have, in order: as many as there are for each lister, and at most so many that
    /// what waits fits into memory.
    fn part(&self) -> f64 {
        let calibration = self.calibration();
        let pages = |range: &Range<P>| if range.state == State::Done { 0.0 } else { range.expected.unwrap_or(0.0) };
        let all = self.ranges.iter().map(pages).sum::<f64>() * calibration;
        let most = PIPELINE * self.memory() / self.scope.listers as f64;
        (all / self.scope.listers as f64).min(most).max(SHORTEST)
    }

    /// Whether a range that nobody has begun is better cut before it is.
    pub(super) fn is_long(&self, index: usize) -> bool {
        let range = &self.ranges[index];
        if !self.scope.in_order || !range.is_untouched() || range.whole || range.is_guess {
            return false;
        }
        let pages = range.expected.map_or(0.0, |pages| pages * self.calibration());
        self.ahead().find(|ahead| ahead.index == index).is_some_and(|ahead| pages >= ahead.long)
    }

    /// How many pages there turned out to be for each that was estimated.
    fn calibration(&self) -> f64 {
        ((self.turned_out + 4.0) / (self.estimated + 4.0)).clamp(0.4, 2.5)
    }

    /// Notes what became of an estimate.
    pub(super) fn calibrate(&mut self, planned: f64, keys: u64) {
        let pages = keys as f64 / f64::from(self.scope.page_size);
        let likely = planned * self.calibration();
        let wrong = (pages - likely).clamp(-MOST_OFF, MOST_OFF);
        self.wrong = self.wrong * FORGETTING + wrong * wrong;
        self.guessed = self.guessed * FORGETTING + likely.max(1.0);
        self.estimated = self.estimated * FORGETTING + planned.min(MOST_WRONG);
        self.turned_out = self.turned_out * FORGETTING + pages.min(MOST_WRONG);
    }

    /// By how much a range of so many pages is to be cut short of the last one's end, so that it seldom needs one
    /// more for the rest.
    fn margin(&self, pages: f64) -> f64 {
        let variance = (self.wrong + FIRST_VARIANCE * 4.0) / (self.guessed + 4.0);
        (SAFETY * (variance * pages).sqrt()).clamp(0.01, 0.5)
    }

    /// How many pages are before a range, from its own that came; or that nobody knows.
    pub(super) fn estimate(&mut self, index: usize) {
        let range = &self.ranges[index];
        let until = range.until.as_deref();
        let expected = match (range.recent.back(), range.state) {
            (_, State::Done) => Some(0.0),
            (Some((last, _)), _) if self.space.probes(&range.floor, until, 1).is_empty() => {
                let listed: u64 = range.recent.iter().map(|(_, keys)| keys).sum();
                let listed = listed as f64 / f64::from(self.scope.page_size);
                let first = range.recent.front().map_or(last, |(first, _)| first);
                let recent = self.space.ratio(first, &range.floor, until).map(|ratio| ratio * listed);
                match (recent, self.space.ratio(last, &range.floor, until)) {
                    // Keys may lie closer here than they did.
                    (Some(recent), Some(now)) => Some(now.clamp(recent, CLOSER * recent)),
                    (recent, _) => recent,
                }
            }
            (Some(_), _) => None,
            (None, _) => range.expected,
        };
        self.ranges[index].expected = expected;
    }

    /// Cuts the range with most before it, for those who have nothing to list. Says whether it did.
    pub(super) fn cut(&mut self) -> bool {
        // As many cuts as the misses that are to be expected of them allow.
        let risk = f64::from(self.misses + 1) / f64::from(self.resolved + 2);
        let idle = self.target - self.active;
        let share = PAGES_A_MISS.recip() + idle as f64 / self.target as f64 * IDLE_PAGES_A_MISS.recip();
        let allowed = FREE_MISSES + self.pages as f64 * share - f64::from(self.misses);
        let most = (allowed / risk).floor() - f64::from(self.pending);
        if most < 1.0 {
            return false;
        }
        let idle = idle.min(most as usize);
        let calibration = self.calibration();
        // An estimate reaches as far as cuts made by such have proved right.
        let trusted = LOOK_AHEAD * self.pages as f64 / risk;
        let (mut chosen, mut all) = (None::<(usize, f64, f64)>, 0.0);
        for Ahead { index, reach, part, long } in self.ahead() {
            let least = if self.scope.in_order { long } else { LEAST_WORTH_CUTTING };
            let range = &self.ranges[index];
            let is_known =
                range.answered || (range.state == State::Ready && range.expected.is_some() && !range.is_guess);
            let is_probed = self.ranges.get(index + 1).is_some_and(|next| !next.answered);
            if range.state == State::Done || range.whole || !is_known || range.probe != Probe::None {
                continue;
            }
            let weight = match range.expected.map(|pages| pages * calibration) {
                Some(pages) if pages < least => continue,
                Some(pages) if self.scope.in_order => pages.min(reach.max(LONG * part)),
                Some(pages) => pages.min(trusted),
                None if is_probed => continue,
                None => f64::MAX,
            };
            all += weight;
            if chosen.is_none_or(|(_, most, _)| weight > most) {
                chosen = Some((index, weight, part));
            }
            // In order, what is nearest to the front is waited for first.
            if self.scope.in_order {
                break;
            }
        }
        let Some((index, reach, part)) = chosen else { return false };
        // What was learned since changes the measure.
        self.estimate(index);
        let range = &self.ranges[index];
        let until = range.until.as_deref();
        let (mut first, mut is_guess) = (None, false);
        let cuts = match range.expected.map(|pages| pages * calibration) {
            None => {
                self.space.probes(&range.floor, until, idle.min(PROBES)).into_iter().map(|cut| (cut, None)).collect()
            }
            Some(pages) if pages < LEAST_LATE => return self.cut(),
            Some(pages) => {
                let reach = reach.min(pages);
                // The page on its way is the range's own.
                let own = if range.state == State::Asked { 1.0 } else { 0.0 };
                let part = match self.scope.in_order {
                    true => part,
                    false => {
                        let parts = (idle as f64 * reach / all).round() + 1.0;
                        (reach - own) / parts.clamp(2.0, (reach / 2.0).max(2.0)).floor()
                    }
                };
                let ends = self.ends(pages, reach, own, part, idle);
                let (cuts, guess) = self.space.cuts(&range.floor, until, ends.iter().map(|end| end / pages));
                let next = cuts.iter().skip(1).map(|(_, share)| *share).chain([1.0]);
                is_guess = guess;
                first = cuts.first().map(|(_, share)| share * pages / calibration);
                let expected: Vec<_> = cuts
                    .iter()
                    .zip(next)
                    .map(|((_, share), next)| Some((next - share) * pages / calibration))
                    .collect();
                cuts.into_iter().map(|(cut, _)| cut).zip(expected).collect::<Vec<_>>()
            }
        };
        if cuts.is_empty() {
            self.ranges[index].whole = true;
            return true;
        }
        let last = index + cuts.len();
        self.insert(index, cuts);
        self.ranges[last].is_guess = is_guess;
        let range = &mut self.ranges[index];
        range.planned = None;
        if range.answered {
            self.estimate(index);
        } else if first.is_some() {
            range.expected = first;
            range.planned = first;
        }
        true
    }

    /// Where a range of so many pages is to be cut, up to `reach`, into parts of about `part` pages behind its `own`.
    /// Each ends a little before a page does, for the rest of a page costs a whole request.
    fn ends(&self, pages: f64, reach: f64, own: f64, part: f64, most: usize) -> Vec<f64> {
        let parts = ((reach - own) / part).round().max(if reach < pages { 1.0 } else { 2.0 });
        let each = (reach - own) / parts;
        let mut ends = Vec::new();
        let mut end = 0.0;
        while ends.len() < most {
            let wanted = own + each * (ends.len() + 1) as f64 - end;
            let whole = wanted.round().max(1.0);
            end += whole - self.margin(whole);
            if end > (reach + 0.5 * each).min(pages - 0.5 * each) {
                break;
            }
            ends.push(end);
        }
        ends
    }

    /// Puts new ranges behind one, each beginning at a cut.
    fn insert(&mut self, index: usize, cuts: Vec<(String, Option<f64>)>) {
        let mut until = self.ranges[index].until.clone();
        let mut made = Vec::with_capacity(cuts.len());
        for (cut, expected) in cuts.into_iter().rev() {
            made.push(Range::new(self.next_id, &cut, until.replace(cut.clone()), expected));
            self.next_id += 1;
            self.pending += 1;
        }
        self.ranges[index].until = until;
        made.reverse();
        self.ranges.splice(index + 1..index + 1, made);
    }
}

//! Where a range of keys is cut: pure guesses about keys that nobody has seen yet, from those that were.
//!
//! A cut is a text that a new range starts after. It need not be a key, and a bad one costs a request, never a
//! key. What is learned is which characters stand at each place behind the listing's prefix. Characters are
//! compared as numbers, which is the byte order of UTF-8.
//!
//! Two kinds of cut are made:
//!
//! * A **probe**, as long as nobody knows how far the keys reach. `logs/2024/01/05/...` was seen, and every key so
//!   far has the same `2024/0`. Whether there is more is asked behind one of these places (`logs/2025`): in the
//!   middle first, so that it takes the logarithm of their number.
//! * A **share** of the space between two texts, where it is known which characters vary. A key is read as a
//!   number whose digits are the characters of its places, each with a weight: 1 where the character was seen behind
//!   the one before it, less where it only belongs to the same class as one that was (a digit, a letter), the less
//!   the oftener the place was passed through without it.

use std::cmp::Ordering;
use std::collections::HashMap;

/// No key is longer, in bytes.
const LONGEST_KEY: usize = 1024;

/// Characters remembered of a place; where there are more, the first few stand for all.
const MOST_SYMBOLS: usize = 128;

/// Keys of a page that are learned from: enough for the variety of a page, and little beside parsing it.
const SAMPLES: usize = 24;

/// Characters whose followers are remembered, over all places.
const MOST_CONTEXTS: usize = 16_384;

/// Cuts made at once at characters that were not seen in their place.
const GUESSES: usize = 8;

/// What is left, after a miss, of the trust in what follows other characters, and what is won back with each page.
const LOST: f64 = 0.85;
const REGAINED: f64 = 1.01;
const LEAST_TRUST: f64 = 0.02;

/// No other character's followers.
const NOWHERE: (&[char], f64) = (&[], 0.0);

/// Below this a share is narrower than the numbers can tell.
const NARROWEST: f64 = 1e-12;

/// What is known of the characters at one place.
#[derive(Debug, Clone, Default)]
struct Place {
    /// Those that were seen, ascending.
    seen: Vec<char>,
    /// How often the place has begun anew since it last showed a new one.
    wraps: u32,
    /// Those that may come, ascending, with the weight of all up to and including each.
    weights: Vec<(char, f64)>,
}

impl Place {
    /// Says whether the character is new. `elsewhere` are those that were seen at this place behind any other.
    fn learn(&mut self, symbol: char, elsewhere: (&[char], f64)) -> bool {
        let Err(at) = self.seen.binary_search(&symbol) else { return false };
        if self.seen.len() >= MOST_SYMBOLS {
            return false;
        }
        self.seen.insert(at, symbol);
        self.wraps = 0;
        self.weigh(elsewhere);
        true
    }

    fn wrapped(&mut self, elsewhere: (&[char], f64)) {
        self.wraps = self.wraps.saturating_add(1);
        // Later ones change next to nothing.
        if self.wraps < 16 {
            self.weigh(elsewhere);
        }
    }

    fn weigh(&mut self, (elsewhere, trust): (&[char], f64)) {
        let missing = f64::from(self.wraps.saturating_add(1)).powi(-3);
        let mut symbols: Vec<(char, f64)> = self.seen.iter().map(|&symbol| (symbol, 1.0)).collect();
        for &symbol in elsewhere {
            if let Err(at) = symbols.binary_search_by(|(known, _)| known.cmp(&symbol)) {
                symbols.insert(at, (symbol, trust * missing));
            }
        }
        let known = symbols.len();
        for class in classes(&self.seen) {
            for symbol in class {
                if let Err(at) = symbols.binary_search_by(|(known, _)| known.cmp(&symbol)) {
                    symbols.insert(at, (symbol, 0.0));
                }
            }
        }
        // All that were not seen weigh no more than all that were.
        let share = (self.seen.len() as f64 / (symbols.len() - known).max(1) as f64).min(1.0);
        let unseen = share * missing;
        for (_, weight) in &mut symbols {
            if *weight == 0.0 {
                *weight = unseen;
            }
        }
        let mut sum = 0.0;
        for (_, weight) in &mut symbols {
            sum += *weight;
            *weight = sum;
        }
        self.weights = symbols;
    }

    fn total(&self) -> f64 {
        self.weights.last().map_or(0.0, |(_, sum)| *sum)
    }

    /// The weight of what comes before a character, and its own.
    fn weight(&self, symbol: char) -> (f64, f64) {
        let at = self.weights.partition_point(|(known, _)| *known < symbol);
        let before = at.checked_sub(1).map_or(0.0, |before| self.weights[before].1);
        match self.weights.get(at) {
            Some((known, sum)) if *known == symbol => (before, sum - before),
            _ => (before, 0.0),
        }
    }

    /// The weight of what comes after a character.
    fn weight_after(&self, symbol: char) -> f64 {
        let (before, own) = self.weight(symbol);
        (self.total() - before - own).max(0.0)
    }

    /// The character that a share of the whole weight falls on, with what comes before it and its own.
    fn at(&self, share: f64) -> Option<(char, f64, f64)> {
        let wanted = share * self.total();
        let at = self.weights.partition_point(|(_, sum)| *sum <= wanted).min(self.weights.len().checked_sub(1)?);
        let (symbol, sum) = self.weights[at];
        let before = at.checked_sub(1).map_or(0.0, |before| self.weights[before].1);
        Some((symbol, before, sum - before))
    }
}

/// The characters that go with those that were seen.
fn classes(seen: &[char]) -> impl Iterator<Item = std::ops::RangeInclusive<char>> {
    let any = |from: char, to: char| seen.iter().any(|symbol| (from..=to).contains(symbol));
    let digits = any('0', '9');
    let letters = |first: char, sixth: char, last: char| {
        let hexadecimal = digits && !any(char::from_u32(u32::from(sixth) + 1).unwrap_or(last), last);
        any(first, last).then_some(if hexadecimal { first..=sixth } else { first..=last })
    };
    [digits.then_some('0'..='9'), letters('A', 'F', 'Z'), letters('a', 'f', 'z')].into_iter().flatten()
}

/// What was learned of the keys under a prefix.
#[derive(Debug)]
pub(super) struct KeySpace {
    prefix: String,
    places: Vec<Place>,
    /// The same for those that follow a certain character.
    contexts: Vec<HashMap<char, Place>>,
    /// How many those are.
    followed: usize,
    /// How much is given on what follows other characters, from 1 on less with each cut behind which there was
    /// nothing: in short folders it says nothing.
    trust: f64,
    /// The first place at which keys differ; those before it were the same in all.
    varied: Option<usize>,
}

/// The upper end of a stretch of keys.
#[derive(Debug, Clone, PartialEq)]
enum Upper {
    Text(Vec<char>),
    /// All that begins as the lower end does up to the shared place.
    Open,
}

/// The part of two texts that decides about what lies between them.
struct Stretch {
    lower: Vec<char>,
    upper: Upper,
    /// The first place that counts.
    shared: usize,
}

impl KeySpace {
    pub(super) fn new(prefix: &str) -> KeySpace {
        KeySpace {
            prefix: prefix.to_owned(),
            places: Vec::new(),
            contexts: Vec::new(),
            followed: 0,
            trust: 1.0,
            varied: None,
        }
    }

    /// Learns from the keys of a page: those at `count` places, ascending.
    pub(super) fn learn<'k>(&mut self, count: usize, key: impl Fn(usize) -> &'k str) {
        self.trust = (self.trust * REGAINED).min(1.0);
        let step = (count / SAMPLES).max(1);
        let mut before: Vec<char> = Vec::new();
        let mut symbols: Vec<char> = Vec::new();
        let sampled = (0..count).step_by(step).chain(count.checked_sub(1).filter(|last| last % step != 0));
        for index in sampled {
            let Some(key) = key(index).strip_prefix(self.prefix.as_str()) else { continue };
            symbols.clear();
            symbols.extend(key.chars());
            let shared = before.iter().zip(&symbols).take_while(|(a, b)| a == b).count();
            // What is shared was learned from the one before.
            for at in shared..symbols.len() {
                self.learn_symbol(at, at.checked_sub(1).map(|before| symbols[before]), symbols[at]);
            }
            for at in shared + 1..before.len() {
                self.places[at].wrapped(NOWHERE);
                if let Some(context) = self.contexts[at].get_mut(&before[at - 1]) {
                    context.wrapped((&self.places[at].seen, self.trust));
                }
            }
            std::mem::swap(&mut before, &mut symbols);
        }
    }

    fn learn_symbol(&mut self, at: usize, before: Option<char>, symbol: char) {
        if at == self.places.len() {
            self.places.push(Place::default());
            self.contexts.push(HashMap::new());
        }
        let (place, contexts) = (&mut self.places[at], &mut self.contexts[at]);
        if place.learn(symbol, NOWHERE) {
            for context in contexts.values_mut() {
                context.weigh((&place.seen, self.trust));
            }
        }
        if place.seen.len() > 1 && self.varied.is_none_or(|varied| at < varied) {
            self.varied = Some(at);
        }
        let Some(before) = before else { return };
        if let Some(context) = contexts.get_mut(&before) {
            context.learn(symbol, (&place.seen, self.trust));
        } else if self.followed < MOST_CONTEXTS {
            self.followed += 1;
            contexts.entry(before).or_default().learn(symbol, (&place.seen, self.trust));
        }
    }

    /// Learns that there was nothing between a cut and the end of the range that it was made in, from `lower` on.
    pub(super) fn missed(&mut self, lower: &str, cut: &str) {
        self.trust = (self.trust * LOST).max(LEAST_TRUST);
        let behind_prefix =
            |text: &str| text.strip_prefix(self.prefix.as_str()).map(|text| text.chars().collect::<Vec<_>>());
        let (Some(lower), Some(cut)) = (behind_prefix(lower), behind_prefix(cut)) else { return };
        let at = lower.iter().zip(&cut).take_while(|(a, b)| a == b).count();
        let Some(&symbol) = cut.get(at) else { return };
        let Some(place) = self.places.get_mut(at) else { return };
        if let Some(context) = at.checked_sub(1).and_then(|before| self.contexts[at].get_mut(&cut[before]))
            && context.seen.last().is_some_and(|last| *last < symbol)
        {
            context.wrapped((&place.seen, self.trust));
        }
        if place.seen.last().is_some_and(|last| *last < symbol) {
            place.wrapped(NOWHERE);
        }
    }

    /// What may stand at a place of a text.
    fn place(&self, text: &[char], at: usize) -> Option<&Place> {
        let context = at.checked_sub(1).and_then(|before| self.contexts.get(at)?.get(text.get(before)?));
        context.or_else(|| self.places.get(at))
    }

    /// Up to `most` texts between `lower` and `upper`, each behind a place that was the same in all keys so far;
    /// none where that is known of all of them. Without `upper` to the end of the prefix.
    pub(super) fn probes(&self, lower: &str, upper: Option<&str>, most: usize) -> Vec<String> {
        let Some((lower, upper)) = self.relative(lower, upper) else { return Vec::new() };
        let length = lower.iter().map(|symbol| symbol.len_utf8()).sum::<usize>() + self.prefix.len();
        if length + 4 > LONGEST_KEY {
            return Vec::new();
        }
        let varied = self.varied.unwrap_or(lower.len());
        let behind = |at: usize| {
            let symbol = *lower.get(at)?;
            match at == varied {
                true => following(self.places.get(at)?.weights.last()?.0.max(symbol)),
                false => following(symbol),
            }
        };
        // Above the place where the ends part nothing is between them.
        let first = match &upper {
            Upper::Open => 0,
            Upper::Text(upper) => {
                let parted = lower.iter().zip(upper).take_while(|(a, b)| a == b).count();
                let is_inside = behind(parted).is_some_and(|symbol| {
                    upper
                        .get(parted)
                        .is_some_and(|above| symbol < *above || symbol == *above && upper.len() > parted + 1)
                });
                if is_inside { parted } else { parted + 1 }
            }
        };
        let places = first..lower.len().min(varied + 1);
        let most = most.min(places.len());
        // From the last place to the first the texts ascend.
        let chosen = (0..most).rev().map(|index| places.start + (2 * index + 1) * places.len() / (2 * most));
        let text = |at: usize| {
            let mut text: Vec<char> = lower[..at].to_vec();
            text.push(behind(at)?);
            Some(self.text(&text))
        };
        chosen.filter_map(text).collect()
    }

    /// The texts that cut what lies between two others at these shares of it, ascending and inside, each with its
    /// share; and whether the last has a character that was not seen in its place.
    pub(super) fn cuts(
        &self,
        lower: &str,
        upper: Option<&str>,
        shares: impl Iterator<Item = f64>,
    ) -> (Vec<(String, f64)>, bool) {
        let nothing = (Vec::new(), false);
        let Some(stretch) = self.stretch(lower, upper) else { return nothing };
        let (from, to) = (self.number(&stretch.lower, stretch.shared), self.upper_number(&stretch));
        if to - from < NARROWEST {
            return nothing;
        }
        let mut cuts = Vec::new();
        let mut before = lower.to_owned();
        let (mut last, mut guessed, mut is_last_guessed) = (0.0, 0, false);
        for share in shares {
            let precision = (to - from) * (share - last).abs().max(1e-4) / 256.0;
            last = share;
            let Some((cut, is_guessed)) = self.numbered(&stretch, from + (to - from) * share, precision) else {
                continue;
            };
            let is_inside = cut.as_str() > before.as_str() && upper.is_none_or(|upper| cut.as_str() < upper);
            if is_inside && cut.len() <= LONGEST_KEY && (!is_guessed || guessed < GUESSES) {
                guessed += usize::from(is_guessed);
                is_last_guessed = is_guessed;
                before.clone_from(&cut);
                cuts.push((cut, share));
            }
        }
        (cuts, is_last_guessed)
    }

    /// How much more lies between `at` and `upper` than between `lower` and `at`.
    pub(super) fn ratio(&self, lower: &str, at: &str, upper: Option<&str>) -> Option<f64> {
        let stretch = self.stretch(lower, upper)?;
        let at = self.relative(at, None)?.0;
        let number = match at.get(..stretch.shared)?.cmp(&stretch.lower[..stretch.shared]) {
            Ordering::Equal => self.number(&at, stretch.shared),
            _ => return None,
        };
        let done = number - self.number(&stretch.lower, stretch.shared);
        let left = self.upper_number(&stretch) - number;
        (done > NARROWEST).then(|| left.max(0.0) / done)
    }

    /// Both ends behind the prefix. `None` where they don't lie under it.
    fn relative(&self, lower: &str, upper: Option<&str>) -> Option<(Vec<char>, Upper)> {
        let lower = match lower.strip_prefix(self.prefix.as_str()) {
            Some(lower) => lower.chars().collect(),
            None if lower < self.prefix.as_str() => Vec::new(),
            None => return None,
        };
        let upper = match upper {
            None => Upper::Open,
            Some(upper) => match upper.strip_prefix(self.prefix.as_str()) {
                Some(upper) => Upper::Text(upper.chars().collect()),
                None if upper > self.prefix.as_str() => Upper::Open,
                None => return None,
            },
        };
        Some((lower, upper))
    }

    fn stretch(&self, lower: &str, upper: Option<&str>) -> Option<Stretch> {
        let (lower, mut upper) = self.relative(lower, upper)?;
        let mut shared = 0;
        while let Some(&symbol) = lower.get(shared) {
            let Some(place) = self.place(&lower, shared) else { break };
            match &upper {
                Upper::Open if place.weight_after(symbol) > 0.0 => break,
                Upper::Open => {}
                Upper::Text(text) => match text.get(shared) {
                    Some(&above) if above == symbol => {}
                    Some(&above) if text.len() == shared + 1 => {
                        let (before_above, _) = place.weight(above);
                        let (before, own) = place.weight(symbol);
                        if before_above - before - own > 0.0 {
                            break;
                        }
                        upper = Upper::Open;
                    }
                    _ => break,
                },
            }
            shared += 1;
        }
        Some(Stretch { lower, upper, shared })
    }

    /// A text as a number from 0 to 1, from a place on.
    fn number(&self, text: &[char], shared: usize) -> f64 {
        let (mut number, mut scale) = (0.0, 1.0);
        for (at, &symbol) in text.iter().enumerate().skip(shared) {
            let Some(place) = self.place(text, at) else { break };
            let (before, own) = place.weight(symbol);
            number += scale * before / place.total();
            scale *= own / place.total();
            if scale < NARROWEST {
                break;
            }
        }
        number
    }

    fn upper_number(&self, stretch: &Stretch) -> f64 {
        match &stretch.upper {
            Upper::Text(upper) => self.number(upper, stretch.shared),
            Upper::Open => 1.0,
        }
    }

    /// The shortest text whose number is near this one, and whether it has a character that was not seen there.
    fn numbered(&self, stretch: &Stretch, mut number: f64, precision: f64) -> Option<(String, bool)> {
        let mut text: Vec<char> = stretch.lower[..stretch.shared].to_vec();
        let (mut scale, mut is_guessed) = (1.0, false);
        while let Some(place) = self.place(&text, text.len()) {
            let (symbol, before, own) = place.at(number)?;
            let total = place.total();
            is_guessed |= self.places.get(text.len()).is_some_and(|place| place.seen.binary_search(&symbol).is_err());
            text.push(symbol);
            number = ((number - before / total) / (own / total)).clamp(0.0, 1.0);
            scale *= own / total;
            if scale < precision || scale < NARROWEST {
                break;
            }
        }
        (text.len() > stretch.shared).then(|| (self.text(&text), is_guessed))
    }

    fn text(&self, symbols: &[char]) -> String {
        let mut text = self.prefix.clone();
        text.extend(symbols);
        text
    }
}

/// The next character, where there is one.
fn following(symbol: char) -> Option<char> {
    match u32::from(symbol) + 1 {
        // The surrogates are no characters.
        0xD800 => Some('\u{E000}'),
        next => char::from_u32(next),
    }
}

#[cfg(test)]
#[path = "keyspace_tests.rs"]
mod tests;

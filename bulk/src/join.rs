//! Two ordered streams of entries, name by name: what one side has, what the other, what both.
//!
//! Holds no more than a batch of each. Refuses a stream that is not in order: its neighbour would be compared with
//! something else, and deleted.

use std::vec::IntoIter;

use crate::entry::Entry;
use crate::failure::Failure;
use crate::source::{Source, Trouble};

/// One name, and who has it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pair {
    /// The source alone.
    Source(Entry),
    /// The target alone.
    Target(Entry),
    /// Both: the source's, the target's.
    Both(Entry, Entry),
}

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Source,
    Target,
}

/// What came of the two streams at once.
#[derive(Debug, Default)]
pub(crate) struct Joined {
    pub(crate) pairs: Vec<Pair>,
    pub(crate) troubles: Vec<(Side, Entry, Trouble)>,
}

pub(crate) struct Join {
    source: Stream,
    target: Stream,
}

struct Stream {
    side: Side,
    batches: Source,
    entries: IntoIter<Entry>,
    ended: bool,
    /// The last name that came.
    last: Option<String>,
}

impl Join {
    pub(crate) fn new(source: Source, target: Source) -> Join {
        let stream =
            |side, batches| Stream { side, batches, entries: Vec::new().into_iter(), ended: false, last: None };
        Join { source: stream(Side::Source, source), target: stream(Side::Target, target) }
    }

    /// The next names; `None` when both sides have ended.
    ///
    /// # Errors
    /// Why one side could not be listed to its end. Nothing may be concluded from what it lacks.
    pub(crate) async fn next(&mut self) -> Result<Option<Joined>, Failure> {
        let mut joined = Joined::default();
        loop {
            for stream in [&mut self.source, &mut self.target] {
                stream.fill(&mut joined.troubles).await?;
            }
            if self.source.has_ended() && self.target.has_ended() {
                let empty = joined.pairs.is_empty() && joined.troubles.is_empty();
                return Ok((!empty).then_some(joined));
            }
            merge(&mut self.source.entries, &mut self.target.entries, &mut joined.pairs);
            if self.source.ended {
                joined.pairs.extend(self.target.entries.by_ref().map(Pair::Target));
            }
            if self.target.ended {
                joined.pairs.extend(self.source.entries.by_ref().map(Pair::Source));
            }
            if !joined.pairs.is_empty() {
                return Ok(Some(joined));
            }
        }
    }
}

impl Stream {
    fn has_ended(&self) -> bool {
        self.ended && self.entries.as_slice().is_empty()
    }

    /// Sees that there is an entry, or none left.
    async fn fill(&mut self, troubles: &mut Vec<(Side, Entry, Trouble)>) -> Result<(), Failure> {
        while !self.ended && self.entries.as_slice().is_empty() {
            match self.batches.next().await {
                Some(Ok(batch)) => {
                    troubles.extend(batch.troubles.into_iter().map(|(entry, trouble)| (self.side, entry, trouble)));
                    self.check_order(&batch.entries)?;
                    self.entries = batch.entries.into_iter();
                }
                Some(Err(failure)) => return Err(failure),
                None => self.ended = true,
            }
        }
        Ok(())
    }

    fn check_order(&mut self, entries: &[Entry]) -> Result<(), Failure> {
        let Some(last) = entries.last() else { return Ok(()) };
        let first = self.last.as_deref().into_iter().chain(entries.iter().map(|entry| entry.key.as_str()));
        if !first.is_sorted_by(|a, b| a < b) {
            let side = match self.side {
                Side::Source => "source",
                Side::Target => "target",
            };
            return Err(Failure::Refused(format!(
                "the listing of the {side} is not in the order of the keys' bytes, so nothing can be compared by it; \
                 copy instead of syncing"
            )));
        }
        self.last = Some(last.key.clone());
        Ok(())
    }
}

/// Takes from both for as long as both have something.
fn merge(source: &mut IntoIter<Entry>, target: &mut IntoIter<Entry>, pairs: &mut Vec<Pair>) {
    while let (Some(a), Some(b)) = (source.as_slice().first(), target.as_slice().first()) {
        let order = a.key.cmp(&b.key);
        let a = if order.is_le() { source.next() } else { None };
        let b = if order.is_ge() { target.next() } else { None };
        pairs.extend(match (a, b) {
            (Some(a), Some(b)) => Some(Pair::Both(a, b)),
            (Some(a), None) => Some(Pair::Source(a)),
            (None, b) => b.map(Pair::Target),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Batch;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// A source of these keys, in batches of these lengths; an empty one is a page that had nothing.
    fn source(keys: &[String], batches: &[usize]) -> Source {
        let mut keys = keys.iter().map(Entry::named);
        let mut all = Vec::new();
        for length in batches.iter().copied().chain([usize::MAX]) {
            all.push(Ok(Batch { entries: keys.by_ref().take(length).collect(), troubles: Vec::new() }));
        }
        Source::given(all)
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    async fn all(mut join: Join) -> Result<Vec<Pair>, Failure> {
        let mut pairs = Vec::new();
        while let Some(joined) = join.next().await? {
            pairs.extend(joined.pairs);
        }
        Ok(pairs)
    }

    proptest! {
        #[test]
        fn every_name_comes_once_with_whoever_has_it(
            source_keys in prop::collection::btree_set("[ab/é]{1,3}", 0..30),
            target_keys in prop::collection::btree_set("[ab/é]{1,3}", 0..30),
            source_batches in prop::collection::vec(0usize..6, 0..8),
            target_batches in prop::collection::vec(0usize..6, 0..8),
        ) {
            let mut model: BTreeMap<String, (bool, bool)> = BTreeMap::new();
            source_keys.iter().for_each(|key| model.entry(key.clone()).or_default().0 = true);
            target_keys.iter().for_each(|key| model.entry(key.clone()).or_default().1 = true);
            let (source_keys, target_keys): (Vec<_>, Vec<_>) =
                (source_keys.into_iter().collect(), target_keys.into_iter().collect());
            let pairs = run(all(Join::new(
                source(&source_keys, &source_batches),
                source(&target_keys, &target_batches),
            )));
            let expected = model.into_iter().map(|(key, has)| match has {
                (true, true) => Pair::Both(Entry::named(&key), Entry::named(&key)),
                (true, false) => Pair::Source(Entry::named(&key)),
                (false, _) => Pair::Target(Entry::named(&key)),
            });
            prop_assert_eq!(pairs.unwrap(), expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_side_that_is_out_of_order_is_refused() {
        let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        let fine = || source(&keys(&["a", "b"]), &[1]);
        for (wrong, batches) in [(["b", "a"], 2), (["b", "a"], 1), (["a", "a"], 1)] {
            let wrong = || source(&keys(&wrong), &[batches]);
            assert!(run(all(Join::new(wrong(), fine()))).unwrap_err().to_string().contains("the source"));
            assert!(run(all(Join::new(fine(), wrong()))).unwrap_err().to_string().contains("the target"));
        }
    }

    #[test]
    fn a_side_that_fails_ends_the_join() {
        let failing = Source::given(vec![
            Ok(Batch { entries: vec![Entry::named("a")], troubles: Vec::new() }),
            Err(Failure::Refused("no more".to_owned())),
        ]);
        let mut join = Join::new(failing, source(&["a".to_owned(), "z".to_owned()], &[]));
        assert_eq!(run(join.next()).unwrap().unwrap().pairs, [Pair::Both(Entry::named("a"), Entry::named("a"))]);
        assert_eq!(run(join.next()).unwrap_err().to_string(), "no more", "nothing is said of `z`");
    }
}

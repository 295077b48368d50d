//! What two trees differ in, found without moving them.
//!
//! Both sides are listed in the order of their names and merged ([`join`](crate::join)). What both have, in one size, is
//! compared by checksums (`contents`), a bounded number at a time, and told in the order of names. Memory does not grow with
//! the trees. A side that cannot be listed to its end is an error: nothing may be concluded from what it lacks.

mod contents;

use std::pin::pin;

use futures_util::{StreamExt as _, stream};

use crate::entry::Entry;
use crate::failure::Failure;
use crate::filter::Filter;
use crate::join::{Join, Joined, Pair, Side};
use crate::place::Place;
use crate::source::{Looking, Source, Trouble};

pub(crate) use self::contents::{Comparing, Contents};

/// Comparisons under way at once: each is a request or two, or a wait for one of a few readers of files.
const AT_ONCE: usize = 64;

/// A comparison of two places that has not begun.
#[derive(Debug)]
#[must_use = "nothing is compared until it is run"]
pub struct Differences {
    left: Place,
    right: Place,
    filter: Filter,
    size_only: bool,
    download: bool,
    follow_links: bool,
}

/// What was found of one name.
#[derive(Debug)]
#[non_exhaustive]
pub enum Finding {
    /// The left place alone has it.
    OnlyLeft(Entry),
    /// The right place alone has it.
    OnlyRight(Entry),
    /// Both have it in different sizes.
    Size(Entry, Entry),
    /// Both have it, and the bytes are different.
    Contents(Entry, Entry),
    /// Both have it in one size, and what is told does not say more, for this reason.
    Unknown(Entry, Entry, &'static str),
    /// Both have the same.
    Same(Entry, Entry),
    /// It is nothing that could be compared, for this reason.
    Skipped(Entry, &'static str),
    /// It could not be compared.
    Failed(Entry, Failure),
}

/// How many names were found to be what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Found {
    /// In the left place alone.
    pub only_left: u64,
    /// In the right place alone.
    pub only_right: u64,
    /// In both, and different.
    pub different: u64,
    /// In both and of one size; more is not told.
    pub unknown: u64,
    /// In both, and the same.
    pub same: u64,
    /// Those that could not be compared.
    pub failed: u64,
}

impl Found {
    /// Whether the two places are known to have the same.
    pub fn is_same(&self) -> bool {
        let Found { only_left, only_right, different, unknown, failed, same: _ } = *self;
        only_left + only_right + different + unknown + failed == 0
    }

    fn count(&mut self, finding: &Finding) {
        let counter = match finding {
            Finding::OnlyLeft(_) => &mut self.only_left,
            Finding::OnlyRight(_) => &mut self.only_right,
            Finding::Size(..) | Finding::Contents(..) => &mut self.different,
            Finding::Unknown(..) => &mut self.unknown,
            Finding::Same(..) => &mut self.same,
            Finding::Failed(..) => &mut self.failed,
            Finding::Skipped(..) => return,
        };
        *counter += 1;
    }
}

impl Differences {
    /// Between two folders, two prefixes, or one of each.
    pub fn between(left: Place, right: Place) -> Differences {
        Differences { left, right, filter: Filter::new(), size_only: false, download: false, follow_links: true }
    }

    /// Only of names that the filter wants. One that goes by size or time asks each side for its own.
    pub fn filter(mut self, filter: Filter) -> Differences {
        self.filter = filter;
        self
    }

    /// Takes what has one name and one size for the same.
    pub fn size_only(mut self) -> Differences {
        self.size_only = true;
        self
    }

    /// Reads what cannot be told otherwise: bytes are downloaded, compared and dropped.
    pub fn download(mut self) -> Differences {
        self.download = true;
        self
    }

    /// Whether symbolic links in folders are followed, as they are unless told.
    pub fn follow_links(mut self, follow: bool) -> Differences {
        self.follow_links = follow;
        self
    }

    /// Compares, and tells of every name in the order of names, those that are the same too. Must run inside the runtime.
    ///
    /// # Errors
    /// A place that cannot be listed to its end. Dropping the future stops the comparison.
    pub async fn run(self, mut tell: impl FnMut(Finding)) -> Result<Found, Failure> {
        let looking = Looking { in_order: true, follow_links: self.follow_links, ..Looking::default() };
        let sources = [&self.left, &self.right].map(|place| Source::of(place, looking.clone()));
        let [left, right] = sources;
        let join = Join::new(left, right);
        let comparing = Comparing::new(&self.left, &self.right, self.download);
        let size_only = self.size_only;
        let filter = &self.filter;
        let found = stream::unfold(Some(join), |join| async {
            let mut join = join?;
            match join.next().await {
                Ok(Some(joined)) => Some((Ok(wanted(joined, filter)), Some(join))),
                Ok(None) => None,
                Err(failure) => Some((Err(failure), None)),
            }
        });
        let findings = found
            .flat_map(|found| match found {
                Ok(questions) => stream::iter(questions.into_iter().map(Ok).collect::<Vec<_>>()),
                Err(failure) => stream::iter(vec![Err(failure)]),
            })
            .map(|question| async {
                match question? {
                    Question::Settled(finding) => Ok::<Finding, Failure>(finding),
                    Question::Both(left, right) => Ok(judge(&comparing, size_only, left, right).await),
                }
            })
            .buffered(AT_ONCE);
        let mut findings = pin!(findings);
        let mut counts = Found::default();
        while let Some(finding) = findings.next().await {
            let finding = finding?;
            counts.count(&finding);
            tell(finding);
        }
        Ok(counts)
    }
}

/// A name that is to be judged.
enum Question {
    Settled(Finding),
    Both(Entry, Entry),
}

/// What the filter wants of what was found. Objects that stand for folders are no content.
fn wanted(joined: Joined, filter: &Filter) -> Vec<Question> {
    let wants = |entry: &Entry| !entry.is_folder_marker() && filter.wants_entry(entry);
    let troubles = joined.troubles.into_iter().map(|(_, entry, trouble): (Side, Entry, Trouble)| {
        Question::Settled(match trouble {
            Trouble::Skipped(why) => Finding::Skipped(entry, why),
            Trouble::Failed(failure) => Finding::Failed(entry, failure),
        })
    });
    let pairs = joined.pairs.into_iter().filter_map(|pair| match pair {
        Pair::Source(left) => wants(&left).then_some(Question::Settled(Finding::OnlyLeft(left))),
        Pair::Target(right) => wants(&right).then_some(Question::Settled(Finding::OnlyRight(right))),
        Pair::Both(left, right) => match (wants(&left), wants(&right)) {
            (false, false) => None,
            // By its size or time one of them is not meant, but the name is there on both sides.
            _ => Some(Question::Both(left, right)),
        },
    });
    troubles.chain(pairs).collect()
}

async fn judge(comparing: &Comparing, size_only: bool, left: Entry, right: Entry) -> Finding {
    if left.size != right.size {
        return Finding::Size(left, right);
    }
    if size_only {
        return Finding::Same(left, right);
    }
    match comparing.compare(&left, &right).await {
        Ok(Contents::Same) => Finding::Same(left, right),
        Ok(Contents::Different) => Finding::Contents(left, right),
        Ok(Contents::Unknown(why)) => Finding::Unknown(left, right, why),
        Err(failure) => Finding::Failed(left, failure),
    }
}

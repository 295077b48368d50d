//! What is asked for, item by item, and where it is to go.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::errors;
use crate::location::{Location, Wanted};
use crate::memory::{Lending, Lent, NewBytes};
use crate::options::ReadOptions;

/// Longer results are not made before it is known how long they are.
const MOST_AHEAD: u64 = 64 << 20;

pub(super) struct Item {
    pub(super) bucket: String,
    pub(super) key: String,
    pub(super) wanted: Wanted,
}

impl Item {
    /// The most bytes that it can bring, where that is known.
    fn most(&self) -> Option<u64> {
        match self.wanted {
            Wanted::Range(start, Some(stop)) => Some(stop - start),
            Wanted::Suffix(length) => Some(length),
            Wanted::All | Wanted::Range(_, None) => None,
        }
    }

    fn engine(self) -> wirespeed::GetItem {
        let item = wirespeed::GetItem::new(self.key);
        match self.wanted {
            Wanted::All => item,
            Wanted::Range(start, None) => item.range(start..),
            Wanted::Range(start, Some(stop)) => item.range(start..stop),
            Wanted::Suffix(length) => item.suffix(length),
        }
    }
}

/// Room for so many items is made before they are there: what a `len` says is not to be trusted.
const MOST_ROOM: usize = 4096;

/// How much room to make for what is iterated over.
pub(crate) fn hint(items: &Bound<'_, PyAny>) -> usize {
    items.len().unwrap_or(0).min(MOST_ROOM)
}

/// Lets signal handlers run every some thousand items: whoever gives items without end can interrupt it.
pub(crate) fn interruptible(py: Python<'_>, seen: usize) -> PyResult<()> {
    if seen.is_multiple_of(4096) { py.check_signals() } else { Ok(()) }
}

/// Reads the items of a call.
pub(super) fn parse(items: &Bound<'_, PyAny>, bucket: Option<&str>) -> PyResult<Vec<Item>> {
    if items.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(
            "items is an iterable of locations, and a str is one location: write [location]",
        ));
    }
    let mut parsed = Vec::with_capacity(hint(items));
    for item in items.try_iter()? {
        interruptible(items.py(), parsed.len())?;
        let item = item?;
        let (location, wanted) = match item.cast::<PyTuple>() {
            Ok(pair) if pair.len() == 2 => {
                (Location::object(&pair.get_item(0)?, bucket)?, Wanted::parse(Some(&pair.get_item(1)?))?)
            }
            Ok(other) => {
                return Err(PyTypeError::new_err(format!(
                    "an item is a location or a pair (location, range), not {other}"
                )));
            }
            Err(_) => (Location::object(&item, bucket)?, Wanted::All),
        };
        let Location { bucket, key } = location;
        parsed.push(Item { bucket, key, wanted });
    }
    Ok(parsed)
}

/// Where the bytes go.
pub(super) enum Kind {
    Buffers,
    Bytes,
    Into(Vec<Lent>, Lending),
}

impl Kind {
    pub(super) fn of(
        count: usize,
        into: Option<&Bound<'_, PyAny>>,
        as_bytes: bool,
        max_gap: Option<u64>,
    ) -> PyResult<Kind> {
        let Some(into) = into else { return Ok(if as_bytes { Kind::Bytes } else { Kind::Buffers }) };
        if as_bytes {
            return Err(errors::config(
                "into= says where the bytes go and as_bytes asks for new ones: choose one of the two",
            ));
        }
        if max_gap.is_some() {
            return Err(errors::config("joined ranges land in memory of their own: leave out max_gap, or into"));
        }
        let lending = Lending::default();
        let mut lent = Vec::new();
        for destination in into.try_iter()? {
            interruptible(into.py(), lent.len())?;
            lent.push(Lent::within(&destination?, &lending)?);
        }
        if lent.len() != count {
            return Err(errors::config(format!("into= has {} destinations for {count} items", lent.len())));
        }
        refuse_overlaps(&mut lent)?;
        Ok(Kind::Into(lent, lending))
    }

    /// What the caller has lent.
    pub(super) fn lending(&self) -> Option<Lending> {
        match self {
            Kind::Into(_, lending) => Some(lending.clone()),
            Kind::Buffers | Kind::Bytes => None,
        }
    }
}

/// Two objects that land in the same memory would be torn.
fn refuse_overlaps(lent: &mut [Lent]) -> PyResult<()> {
    let places = lent.iter_mut().enumerate().map(|(index, lent)| (lent.as_mut().as_ptr_range(), index));
    let mut places: Vec<_> = places.filter(|(range, _)| !range.is_empty()).collect();
    places.sort_unstable_by_key(|(range, _)| range.start);
    for neighbours in places.windows(2) {
        if let [(before, one), (after, other)] = neighbours
            && after.start < before.end
        {
            return Err(errors::config(format!(
                "the destinations of items {one} and {other} overlap: each needs memory of its own"
            )));
        }
    }
    Ok(())
}

/// A call as it was asked for.
pub(super) struct Request {
    pub(super) items: Vec<Item>,
    pub(super) kind: Kind,
    pub(super) max_gap: Option<u64>,
    pub(super) verify: Option<bool>,
    pub(super) options: ReadOptions,
}

/// What the items of one bucket ask for.
pub(super) enum Asked {
    Buffers(Vec<wirespeed::GetItem>),
    Bytes(Vec<(wirespeed::GetItem, NewBytes)>),
    Into(Vec<(wirespeed::GetItem, Lent)>),
    Joined(u64, Vec<(String, std::ops::Range<u64>)>),
}

/// The items of one bucket, and which of the call's they are.
pub(super) struct Group {
    pub(super) bucket: String,
    pub(super) indices: Vec<usize>,
    pub(super) asked: Asked,
}

/// A call that is ready to be begun.
pub(super) struct Prepared {
    pub(super) groups: Vec<Group>,
    pub(super) verify: Option<bool>,
    pub(super) options: ReadOptions,
}

impl Request {
    pub(super) fn wants_bytes(&self) -> bool {
        matches!(self.kind, Kind::Bytes)
    }

    /// Whether the results must be copied out of the engine's memory: `bytes` of a length that nobody
    /// knows before they are there, that share a request with others, or that ask for more together than
    /// the client's memory, which most of them may turn out not to fill.
    pub(super) fn copies(&self, memory: u64) -> bool {
        let add = |total: u64, item: &Item| {
            let most = item.most().filter(|most| *most <= MOST_AHEAD)?;
            Some(total.saturating_add(most)).filter(|total| *total <= memory)
        };
        self.wants_bytes() && (self.max_gap.is_some() || self.items.iter().try_fold(0, add).is_none())
    }

    /// Groups the items by bucket, and makes their `bytes` where it is asked to.
    pub(super) fn prepare(self, py: Python<'_>, makes_bytes: bool) -> PyResult<Prepared> {
        let Request { items, kind, max_gap, verify, options } = self;
        let mut lent = match kind {
            Kind::Into(lent, _) => Some(lent.into_iter()),
            _ => None,
        };
        let mut groups: Vec<Group> = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            let range = match item.wanted {
                Wanted::Range(start, Some(stop)) => max_gap.map(|gap| (gap, start..stop)),
                _ => None,
            };
            let like = |asked: &Asked| matches!(asked, Asked::Joined(..)) == range.is_some();
            let known = groups.iter().rposition(|group| group.bucket == item.bucket && like(&group.asked));
            let place = match known {
                Some(place) => place,
                None => {
                    let asked = match (&range, makes_bytes, &lent) {
                        (Some((gap, _)), _, _) => Asked::Joined(*gap, Vec::new()),
                        (None, true, _) => Asked::Bytes(Vec::new()),
                        (None, false, Some(_)) => Asked::Into(Vec::new()),
                        (None, false, None) => Asked::Buffers(Vec::new()),
                    };
                    groups.push(Group { bucket: item.bucket.clone(), indices: Vec::new(), asked });
                    groups.len() - 1
                }
            };
            let Some(group) = groups.get_mut(place) else { continue };
            group.indices.push(index);
            match (&mut group.asked, range) {
                (Asked::Joined(_, ranges), Some((_, range))) => ranges.push((item.key, range)),
                (Asked::Bytes(asked), _) => {
                    let most = usize::try_from(item.most().unwrap_or(0)).unwrap_or(usize::MAX);
                    asked.push((item.engine(), NewBytes::new(py, most)?));
                }
                (Asked::Into(asked), _) => {
                    if let Some(lent) = lent.as_mut().and_then(Iterator::next) {
                        asked.push((item.engine(), lent));
                    }
                }
                (Asked::Buffers(asked), _) => asked.push(item.engine()),
                (Asked::Joined(..), None) => {}
            }
        }
        Ok(Prepared { groups, verify, options })
    }
}

//! A bucket to test the plan against: keys in some server's order, and what it answers.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::page::Listed;
use super::ranges::{Errand, Plan, Scope, Stop};
use super::{ListedObject, ListedVersion, Page, Start, VersionPage};
use crate::error::{Error, ErrorKind};
use crate::transfer::pages::Marker;

/// How a server orders keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Bytes,
    /// As Java compares strings: what needs two units comes before the last of what needs one.
    Utf16,
    IgnoringCase,
    /// By a hash.
    None,
}

impl Order {
    pub(super) fn compare(self, a: &str, b: &str) -> Ordering {
        match self {
            Order::Bytes => a.cmp(b),
            Order::Utf16 => a.encode_utf16().cmp(b.encode_utf16()),
            Order::IgnoringCase => a.to_lowercase().cmp(&b.to_lowercase()).then_with(|| a.cmp(b)),
            Order::None => hash(a).cmp(&hash(b)).then_with(|| a.cmp(b)),
        }
    }
}

fn hash(text: &str) -> u32 {
    text.bytes().fold(2_166_136_261, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619))
}

/// A bucket.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    keys: Vec<String>,
    pub(super) order: Order,
    pub(super) ignores_start_after: bool,
    /// Every so many requests it asks for fewer of them.
    pub(super) throttles: Option<u64>,
    /// The request, counted from 1, that fails for good.
    pub(super) fails: Option<u64>,
    pub(super) asked: u64,
}

impl Bucket {
    pub(super) fn new(keys: impl IntoIterator<Item = String>, order: Order) -> Bucket {
        let mut keys: Vec<String> = keys.into_iter().collect();
        keys.sort_by(|a, b| order.compare(a, b));
        keys.dedup();
        Bucket { keys, order, ignores_start_after: false, throttles: None, fails: None, asked: 0 }
    }

    pub(super) fn insert(&mut self, key: String) {
        if let Err(at) = self.keys.binary_search_by(|known| self.order.compare(known, &key)) {
            self.keys.insert(at, key);
        }
    }

    pub(super) fn remove(&mut self, key: &str) {
        if let Ok(at) = self.keys.binary_search_by(|known| self.order.compare(known, key)) {
            self.keys.remove(at);
        }
    }

    /// The keys of a scope, ascending.
    pub(super) fn within(&self, scope: &Scope) -> Vec<String> {
        let mut keys: Vec<String> = self.keys.iter().filter(|key| scope.contains(key)).cloned().collect();
        keys.sort();
        keys
    }

    pub(super) fn page(&mut self, prefix: &str, start: &Start, entries: u32) -> (Page, Option<Marker>) {
        self.asked += 1;
        let first = match start {
            Start::Beginning => 0,
            Start::After(_) if self.ignores_start_after => 0,
            Start::After(key) | Start::At((key, _)) => {
                self.keys.partition_point(|known| self.order.compare(known, key) != Ordering::Greater)
            }
        };
        let mut found = self.keys[first..].iter().filter(|key| key.starts_with(prefix));
        let keys: Vec<&String> = if self.order == Order::Bytes {
            // Seeks past what is not under the prefix.
            let first = first.max(self.keys.partition_point(|key| key.as_str() < prefix));
            self.keys[first..].iter().take_while(|key| key.starts_with(prefix)).take(entries as usize + 1).collect()
        } else {
            found.by_ref().take(entries as usize + 1).collect()
        };
        let objects: Vec<ListedObject> = keys.iter().take(entries as usize).map(|key| object(key)).collect();
        let next = (keys.len() > entries as usize)
            .then(|| objects.last().map(|last| (last.key.clone(), String::new())))
            .flatten();
        (Page { objects, prefixes: Vec::new() }, next)
    }
}

fn version(key: &str, id: &str) -> ListedVersion {
    ListedVersion {
        key: key.to_owned(),
        version_id: id.to_owned(),
        is_latest: false,
        is_delete_marker: false,
        size: 1,
        etag: None,
        last_modified: None,
        storage_class: None,
    }
}

fn object(key: &str) -> ListedObject {
    ListedObject { key: key.to_owned(), size: 1, etag: None, last_modified: None, storage_class: None }
}

/// What a listing came to.
#[derive(Debug, Default)]
pub(super) struct Came {
    /// In the order in which they were handed out.
    pub(super) keys: Vec<String>,
    /// Times that a request takes.
    pub(super) rounds: u64,
    pub(super) requests: u64,
    /// Most pages that waited at once, in bytes.
    pub(super) held: u64,
    pub(super) is_serial: bool,
}

/// Lists all versions of a scope, of which each key has so many, with answers in any sequence.
pub(super) fn list_versions(
    versions: &BTreeMap<String, u32>,
    scope: &Scope,
    mut latency: impl FnMut() -> u64,
) -> Result<Vec<(String, String)>, Stop> {
    let all: Vec<(&str, String)> = versions
        .iter()
        .filter(|(key, _)| key.starts_with(&scope.prefix))
        .flat_map(|(key, count)| (0..*count).map(|version| (key.as_str(), format!("{version:04}"))))
        .collect();
    let mut plan: Plan<VersionPage> = Plan::new(scope.clone());
    let mut in_flight: BTreeMap<(u64, u64), Errand> = BTreeMap::new();
    let mut found = Vec::new();
    let (mut now, mut sent) = (0, 0);
    loop {
        while let Some(page) = plan.take() {
            found.extend(page.versions.into_iter().map(|version| (version.key, version.version_id)));
        }
        while let Some(errand) = plan.next() {
            sent += 1;
            in_flight.insert((now + latency(), sent), errand);
        }
        if plan.has_page() {
            continue;
        }
        let Some(((at, _), errand)) = in_flight.pop_first() else { break };
        now = at;
        let first = match &errand.start {
            Start::Beginning => 0,
            Start::After(after) => all.partition_point(|(key, _)| *key <= after.as_str()),
            Start::At((after, version)) => {
                all.partition_point(|(key, id)| (*key, id.as_str()) <= (after.as_str(), version.as_str()))
            }
        };
        let end = all.len().min(first + errand.entries as usize);
        let versions: Vec<ListedVersion> = all[first..end].iter().map(|(key, id)| version(key, id)).collect();
        let next = versions.last().filter(|_| end < all.len()).map(|last| (last.key.clone(), last.version_id.clone()));
        let page = VersionPage { versions, prefixes: Vec::new() };
        assert!(page.ascends_from(&errand.floor, errand.may_repeat_floor), "{errand}");
        plan.arrived(&errand, page, next)?;
    }
    assert!(plan.is_complete(), "the plan stopped before its end");
    Ok(found)
}

/// Lists a scope of a bucket: every request takes as long as `latency` says, 1,000 is one round. `meanwhile` is
/// called before each answer.
pub(super) fn list(
    bucket: &mut Bucket,
    scope: &Scope,
    mut latency: impl FnMut() -> u64,
    mut meanwhile: impl FnMut(&mut Bucket),
) -> Result<Came, Error> {
    let mut plan: Plan<Page> = Plan::new(scope.clone());
    let mut came = Came::default();
    let mut in_flight: BTreeMap<(u64, u64), Errand> = BTreeMap::new();
    let (mut now, mut sent) = (0, 0);
    let keep = |came: &mut Came, page: Page| came.keys.extend(page.objects.into_iter().map(|object| object.key));
    loop {
        while let Some(errand) = plan.next() {
            sent += 1;
            in_flight.insert((now + latency(), sent), errand);
        }
        came.held = came.held.max(plan.held);
        assert!(in_flight.len() <= scope.listers, "{} requests in flight", in_flight.len());
        while let Some(page) = plan.take() {
            keep(&mut came, page);
        }
        if let Some(errand) = plan.next() {
            sent += 1;
            in_flight.insert((now + latency(), sent), errand);
            continue;
        }
        let Some(((at, _), errand)) = in_flight.pop_first() else { break };
        now = at;
        meanwhile(bucket);
        let (page, next) = bucket.page(&scope.prefix, &errand.start, errand.entries);
        came.requests += 1;
        if bucket.fails == Some(bucket.asked) {
            return Err(Error::new(ErrorKind::Protocol, "fails for good").with_part(|| errand.to_string()));
        }
        if bucket.throttles.is_some_and(|every| bucket.asked.is_multiple_of(every)) {
            plan.slow_down();
        }
        let taken = match page.ascends_from(&errand.floor, errand.may_repeat_floor) {
            true => plan.arrived(&errand, page, next),
            false => Err(Stop::Distrust),
        };
        match taken {
            Ok(()) => {}
            Err(Stop::Circles) => return Err(Error::new(ErrorKind::Protocol, "circles")),
            Err(Stop::Distrust) => {
                came.is_serial = true;
                let mut remainder = plan.remainder();
                while let Some(page) = plan.take() {
                    keep(&mut came, page);
                }
                let mut start = remainder.start.clone();
                loop {
                    meanwhile(bucket);
                    let (mut page, next) = bucket.page(&scope.prefix, &start, scope.page_size);
                    came.requests += 1;
                    remainder.strip(&mut page);
                    keep(&mut came, page);
                    match next {
                        Some(marker) => start = Start::At(marker),
                        None => break,
                    }
                }
                remainder.end()?;
                return Ok(came);
            }
        }
    }
    came.rounds = now.div_ceil(1000);
    assert!(plan.is_complete(), "the plan stopped before its end");
    Ok(came)
}

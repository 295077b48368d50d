//! A listing in parallel: the plan's errands as requests, its pages as a stream.
//!
//! One task holds the [`Plan`]. Each page is asked for by a task of its own, which also reads it and checks that
//! its keys ascend, so that this work spreads over the threads. The holder only cuts pages at the ends of ranges
//! and passes them on; it asks for more whether or not the last page was taken, as far as memory for it reaches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::Instrument;

use super::page::Listed;
use super::ranges::{Errand, Plan, Scope, Stop};
use super::serial::Remainder;
use super::{List, Start, VersionPage};
use crate::error::{Error, ErrorKind, Result};
use crate::net::is_directory_bucket;
use crate::transfer::options::Sending;
use crate::transfer::pages::{Marker, Pages};
use crate::transfer::workers::lost;

/// Memory for pages that were listed before their turn, where nothing else is said. A page of 1,000 short keys takes
/// 0.2 MB, so that this is enough for 128 listers to have some five pages each before the front has come.
const READ_AHEAD: u64 = 128 << 20;

/// Pages that wait for the caller beside those that the plan holds.
const HANDED_OUT: usize = 2;

/// A page, and where the next begins.
type PageAnd<P> = (P, Option<Marker>);

/// Asks a list for one page of so many entries, counting how often it was throttled.
type Fetch<P> = fn(Arc<List>, Start, u32, Arc<AtomicU64>) -> Sending<PageAnd<P>>;

/// Asks for one page of so many entries.
pub(super) type AskPage<P> = Arc<dyn Fn(Start, u32) -> Sending<PageAnd<P>> + Send + Sync>;

/// A listing with many requests in flight; made by [`List::in_parallel`].
#[must_use = "nothing is sent until `pages` or `versions` is called"]
#[derive(Clone)]
pub struct ParallelList {
    list: List,
    in_order: bool,
    listers: usize,
    read_ahead: u64,
}

impl ParallelList {
    pub(super) fn new(list: List) -> ParallelList {
        let listers = list.engine.config.concurrency;
        ParallelList { list, in_order: false, listers, read_ahead: READ_AHEAD }
    }

    /// Pages come in the order of their keys. Without this they come as they arrive, and only the keys within a
    /// page are in order.
    pub fn in_order(mut self) -> ParallelList {
        self.in_order = true;
        self
    }

    /// The most requests in flight, at least 1; the client's `concurrency` unless told. A listing begins with one
    /// and takes more as it proves long.
    pub fn listers(mut self, most: usize) -> ParallelList {
        self.listers = most.max(1);
        self
    }

    /// Memory in bytes for pages that nobody has taken yet; 128 MiB unless told. In order, it bounds how far ahead
    /// of the page that is due others are listed, and so how many listers have work.
    pub fn read_ahead(mut self, bytes: u64) -> ParallelList {
        self.read_ahead = bytes;
        self
    }

    /// The pages. Nothing is sent before the first is asked for.
    ///
    /// # Errors
    /// A page that can't be had is an error of the whole listing, which says between which keys, and the stream
    /// ends: a listing is complete or it fails.
    pub fn pages(self) -> Pages {
        match self.is_serial() {
            true => self.list.pages(),
            false => self.start("list", |list, start, entries, throttled| {
                Box::pin(async move { list.objects_from(start, entries, &throttled).await })
            }),
        }
    }

    /// All versions and delete markers of the keys instead of the newest alone. Those of one key always come
    /// together, the newest first.
    ///
    /// # Errors
    /// As of [`pages`](ParallelList::pages).
    pub fn versions(self) -> Pages<VersionPage> {
        match self.is_serial() {
            true => self.list.versions(),
            false => self.start("list versions", |list, start, entries, throttled| {
                Box::pin(async move { list.versions_from(start, entries, &throttled).await })
            }),
        }
    }

    /// Common prefixes are found by the server, which must see all keys; a directory bucket has no order.
    fn is_serial(&self) -> bool {
        !self.list.delimiter.is_empty() || is_directory_bucket(&self.list.bucket)
    }

    fn start<P: Listed>(self, operation: &'static str, fetch: Fetch<P>) -> Pages<P> {
        let scope = Scope {
            prefix: self.list.prefix.clone(),
            after: self.list.start_after.clone(),
            until: self.list.until.clone(),
            in_order: self.in_order,
            listers: self.listers,
            read_ahead: self.read_ahead,
            page_size: self.list.page_size,
        };
        let bucket = self.list.bucket.clone();
        let throttled = Arc::new(AtomicU64::new(0));
        let (list, counter) = (Arc::new(self.list), Arc::clone(&throttled));
        let ask: AskPage<P> =
            Arc::new(move |start, entries| fetch(Arc::clone(&list), start, entries, Arc::clone(&counter)));
        pages(operation, bucket, scope, ask, throttled)
    }
}

/// The pages of a listing in parallel whose requests go through `ask`, which counts how often it was throttled.
pub(super) fn pages<P: Listed>(
    operation: &'static str,
    bucket: String,
    scope: Scope,
    ask: AskPage<P>,
    throttled: Arc<AtomicU64>,
) -> Pages<P> {
    Pages::from_task(HANDED_OUT, move |out| {
        let listing = Listing { operation, bucket, ask, throttled, out };
        async move {
            let out = listing.out.clone();
            if let Err(error) = listing.run(Plan::new(scope)).await {
                // A caller who is gone needs no error.
                let _ = out.send(Err(error)).await;
            }
        }
    })
}

struct Listing<P> {
    operation: &'static str,
    bucket: String,
    ask: AskPage<P>,
    throttled: Arc<AtomicU64>,
    out: mpsc::Sender<Result<P>>,
}

/// An errand that is done.
struct Answer<P> {
    errand: Errand,
    page: P,
    next: Option<Marker>,
    ascends: bool,
}

impl<P: Listed> Listing<P> {
    async fn run(self, mut plan: Plan<P>) -> Result<()> {
        let mut asked = JoinSet::new();
        let mut throttled = 0;
        loop {
            while let Some(errand) = plan.next() {
                asked.spawn(answer((self.ask)(errand.start.clone(), errand.entries), errand).in_current_span());
            }
            if !plan.has_page() && asked.is_empty() {
                break;
            }
            let answer = tokio::select! {
                biased;
                place = self.out.reserve(), if plan.has_page() => {
                    let Ok(place) = place else { return Ok(()) };
                    if let Some(page) = plan.take() {
                        place.send(Ok(page));
                    }
                    continue;
                }
                Some(answer) = asked.join_next() => answer,
                () = self.out.closed() => return Ok(()),
            };
            let seen = self.throttled.load(Ordering::Relaxed);
            if seen > std::mem::replace(&mut throttled, seen) {
                plan.slow_down();
            }
            let answer: Answer<P> = answer.map_err(lost)??;
            let taken = match answer.ascends {
                true => plan.arrived(&answer.errand, answer.page, answer.next),
                false => Err(Stop::Distrust),
            };
            match taken {
                Ok(()) => {}
                Err(Stop::Circles) => {
                    return Err(
                        self.explain("the listing does not move on: the server sends the same page again and again")
                    );
                }
                Err(Stop::Distrust) => {
                    asked.shutdown().await;
                    return self.go_on_serially(plan).await;
                }
            }
        }
        match plan.is_complete() {
            true => Ok(()),
            false => Err(self.explain("the listing stopped before its end")),
        }
    }

    /// Hands out what the plan has ready, and lists the rest in the server's own order.
    async fn go_on_serially(self, mut plan: Plan<P>) -> Result<()> {
        tracing::debug!(bucket = self.bucket, "the server does not list in byte order: listing serially");
        let mut remainder = plan.remainder();
        while let Some(page) = plan.take() {
            if self.out.send(Ok(page)).await.is_err() {
                return Ok(());
            }
        }
        drop(plan);
        let mut pages = self.rest(&remainder);
        while let Some(page) = pages.next().await {
            let mut page = page?;
            remainder.strip(&mut page);
            if page.len() > 0 && self.out.send(Ok(page)).await.is_err() {
                return Ok(());
            }
        }
        remainder.end().map_err(|error| error.with_context(self.operation, &self.bucket, ""))
    }

    fn rest(&self, remainder: &Remainder) -> Pages<P> {
        let (ask, start, entries) = (Arc::clone(&self.ask), remainder.start.clone(), remainder.entries);
        let ask = move |marker: Option<Marker>| ask(marker.map_or_else(|| start.clone(), Start::At), entries);
        Pages::new(self.operation, self.bucket.clone(), Box::new(ask))
    }

    fn explain(&self, message: &'static str) -> Error {
        Error::new(ErrorKind::Protocol, message).with_context(self.operation, &self.bucket, "")
    }
}

/// Waits for a page and looks through it.
async fn answer<P: Listed>(asked: Sending<PageAnd<P>>, errand: Errand) -> Result<Answer<P>> {
    let (page, next) = asked.await.map_err(|error| error.with_part(|| errand.to_string()))?;
    let ascends = page.ascends_from(&errand.floor, errand.may_repeat_floor);
    Ok(Answer { errand, page, next, ascends })
}

//! LIST: the keys under a prefix, or all their versions: page after page in the server's order, or many pages at
//! once.
//!
//! [`List`] says what is listed and asks for a page of it; `pages` and `versions` follow the server's tokens. In
//! [`parallel`], a plan cuts the keys into [`ranges`] at texts from their [`keyspace`], and a [`schedule`] says which
//! is listed next. Where the server's order is not to be trusted, [`serial`] lists what is left.

mod keyspace;
#[cfg(test)]
mod model;
mod page;
pub(crate) mod parallel;
mod ranges;
mod schedule;
mod serial;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Engine;
use super::options::{Access, Sending, access_methods};
use super::pages::{Marker, Pages};
use super::refusal::Failure;
use super::request::{Call, Subject};
use crate::error::{Error, ErrorKind, Result};
use crate::net::is_directory_bucket;
use crate::pace::Retry;
use crate::wire::request::Method;
use crate::wire::xml::{parse_list_objects_v2, parse_list_versions};

use page::Listed;
pub use parallel::ParallelList;

pub use crate::wire::xml::{ListedObject, ListedVersion, StorageClass};

/// A page of 1,000 keys of 1,024 bytes, every byte percent-encoded, and its tags stay under this.
pub(crate) const PAGE_BYTES: usize = 8 << 20;

/// One page of a listing.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Page {
    /// Objects, in the server's order.
    pub objects: Vec<ListedObject>,
    /// Prefixes up to the delimiter, where one was given.
    pub prefixes: Vec<String>,
}

/// One page of a listing of versions.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct VersionPage {
    /// Versions and delete markers, in the server's order: by key, the newest first.
    pub versions: Vec<ListedVersion>,
    /// Prefixes up to the delimiter, where one was given.
    pub prefixes: Vec<String>,
}

/// A listing that has not been sent; made by [`Client::list`](crate::Client::list).
#[must_use = "nothing is sent until `pages` or `versions` is called"]
#[derive(Clone)]
pub struct List {
    engine: Arc<Engine>,
    bucket: String,
    prefix: String,
    delimiter: String,
    start_after: String,
    until: Option<String>,
    page_size: u32,
    access: Access,
}

/// Where a page begins.
#[derive(Debug, Clone)]
enum Start {
    Beginning,
    After(String),
    At(Marker),
}

impl Start {
    fn after(key: &str) -> Start {
        match key {
            "" => Start::Beginning,
            key => Start::After(key.to_owned()),
        }
    }
}

access_methods!(List, this => this.access);

impl List {
    pub(crate) fn new(engine: Arc<Engine>, bucket: String) -> List {
        List {
            engine,
            bucket,
            prefix: String::new(),
            delimiter: String::new(),
            start_after: String::new(),
            until: None,
            page_size: 1000,
            access: Access::default(),
        }
    }

    /// Only keys that begin with this.
    pub fn prefix(mut self, prefix: impl Into<String>) -> List {
        self.prefix = prefix.into();
        self
    }

    /// Keys that hold this after the prefix are rolled up into [`Page::prefixes`].
    pub fn delimiter(mut self, delimiter: impl Into<String>) -> List {
        self.delimiter = delimiter.into();
        self
    }

    /// Only keys that come after this one in byte order.
    pub fn start_after(mut self, key: impl Into<String>) -> List {
        self.start_after = key.into();
        self
    }

    /// Only keys up to and including this one in byte order. S3 itself knows no such end: what lies behind it in
    /// the last page is dropped.
    pub fn until(mut self, key: impl Into<String>) -> List {
        self.until = Some(key.into());
        self
    }

    /// Keys a page, 1 to 1,000; the server may send fewer.
    pub fn page_size(mut self, keys: u32) -> List {
        self.page_size = keys.clamp(1, 1000);
        self
    }

    /// The same listing with many pages asked for at once, which needs no delimiter and no hint: the keys are cut
    /// into ranges wherever they prove to be many. With a delimiter, in a directory bucket, and where the server
    /// turns out not to list in byte order, it is listed page after page all the same.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client) -> wirespeed::Result<()> {
    /// let mut pages = client.list("bucket").prefix("logs/").in_parallel().in_order().pages();
    /// while let Some(page) = pages.next().await {
    ///     for object in page?.objects {
    ///         println!("{} {}", object.size, object.key);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_parallel(self) -> ParallelList {
        ParallelList::new(self)
    }

    /// The pages, fetched one ahead. Nothing is sent before the first is asked for.
    ///
    /// S3's keys have at most 1,024 bytes. Those of other stores may be longer; one of more than 4,096 bytes is an error of
    /// kind [`Protocol`](ErrorKind::Protocol), and so is any other text of a page that no store sends.
    pub fn pages(self) -> Pages {
        let (bucket, list) = (self.bucket.clone(), Arc::new(self));
        let ask = move |marker| -> Sending<_> { Box::pin(Arc::clone(&list).page(marker)) };
        Pages::new("list", bucket, Box::new(ask))
    }

    /// The first page alone, for those who ask whether there is anything: one request, and none ahead.
    ///
    /// # Errors
    /// As the first of [`pages`](List::pages).
    pub async fn first_page(self) -> Result<Page> {
        Ok(Arc::new(self).page(None).await?.0)
    }

    /// All versions and delete markers of the keys instead of the newest alone, in pages that are
    /// fetched one ahead. Nothing is sent before the first is asked for.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client) -> wirespeed::Result<()> {
    /// let mut pages = client.list("bucket").prefix("logs/").versions();
    /// while let Some(page) = pages.next().await {
    ///     for version in page?.versions.iter().filter(|version| !version.is_latest) {
    ///         client.delete("bucket", &version.key).version(&version.version_id).await?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn versions(self) -> Pages<VersionPage> {
        let (bucket, list) = (self.bucket.clone(), Arc::new(self));
        let ask = move |marker| -> Sending<_> { Box::pin(Arc::clone(&list).version_page(marker)) };
        Pages::new("list versions", bucket, Box::new(ask))
    }

    /// Where the listing begins, or goes on.
    fn start(&self, marker: Option<Marker>) -> Start {
        marker.map_or_else(|| Start::after(&self.start_after), Start::At)
    }

    async fn page(self: Arc<Self>, marker: Option<Marker>) -> Result<(Page, Option<Marker>)> {
        let start = self.start(marker);
        let (mut page, next) = self.objects_from(start, self.page_size, &AtomicU64::new(0)).await?;
        let Some(until) = &self.until else { return Ok((page, next)) };
        page.prefixes.retain(|prefix| prefix <= until);
        Ok(self.ended_at(until, page, next))
    }

    async fn version_page(self: Arc<Self>, marker: Option<Marker>) -> Result<(VersionPage, Option<Marker>)> {
        let start = self.start(marker);
        let (mut page, next) = self.versions_from(start, self.page_size, &AtomicU64::new(0)).await?;
        let Some(until) = &self.until else { return Ok((page, next)) };
        page.prefixes.retain(|prefix| prefix <= until);
        Ok(self.ended_at(until, page, next))
    }

    /// A page without what lies behind the end of the listing, which is over there if keys ascend.
    fn ended_at<P: Listed>(&self, until: &str, mut page: P, next: Option<Marker>) -> (P, Option<Marker>) {
        let is_over = page.len().checked_sub(1).is_some_and(|last| page.key(last) >= until)
            && !is_directory_bucket(&self.bucket)
            && page.ascends_from("", true);
        // The versions of one key may fill several pages.
        let is_over = is_over && (!P::REPEATS || page.key(page.len() - 1) > until);
        page.retain(|key, _| key <= until);
        (page, next.filter(|_| !is_over))
    }

    fn subject(&self, operation: &'static str) -> Result<Subject> {
        self.engine.keep_house();
        Ok(Subject::bucket(&self.engine, operation, &self.bucket)?.with(self.access.clone().attached()))
    }

    /// One page of objects of at most so many entries, counting how often the server asked for fewer requests.
    async fn objects_from(&self, start: Start, entries: u32, throttled: &AtomicU64) -> Result<(Page, Option<Marker>)> {
        let subject = self.subject("list")?;
        if !self.start_after.is_empty() && is_directory_bucket(&self.bucket) {
            let message = "a directory bucket lists in no order, so it has no start-after";
            let error = Error::new(ErrorKind::Config, message).with_hint("list a prefix, and choose from what comes");
            return Err(subject.explain(error));
        }
        let entries = entries.to_string();
        let mut query = vec![("list-type", "2")];
        self.say_what(&mut query, &entries);
        match &start {
            Start::Beginning => {}
            Start::After(key) => query.push(("start-after", key)),
            Start::At((token, _)) => query.push(("continuation-token", token)),
        }
        let call = Call { query: &query, ..Call::new(Method::Get) };
        let parse = |document: Vec<u8>, ()| parse_list_objects_v2(&document);
        let count = |failure: &Failure| count_throttled(failure, throttled);
        let page = self.engine.ask_in_doubt(&subject, &call, PAGE_BYTES, |_| (), parse, count).await?;
        let next = page.next_continuation_token.filter(|_| page.is_truncated).map(|token| (token, String::new()));
        Ok((Page { objects: page.objects, prefixes: page.prefixes }, next))
    }

    /// The same of versions.
    async fn versions_from(
        &self,
        start: Start,
        entries: u32,
        throttled: &AtomicU64,
    ) -> Result<(VersionPage, Option<Marker>)> {
        let subject = self.subject("list versions")?;
        let entries = entries.to_string();
        let mut query = vec![("versions", "")];
        self.say_what(&mut query, &entries);
        match &start {
            Start::Beginning => {}
            // A key alone is where the listing goes on after: all of its own versions are left out.
            Start::After(key) => query.push(("key-marker", key)),
            Start::At((key, version)) => {
                query.push(("key-marker", key));
                if !version.is_empty() {
                    query.push(("version-id-marker", version));
                }
            }
        }
        let call = Call { query: &query, ..Call::new(Method::Get) };
        let parse = |document: Vec<u8>, ()| parse_list_versions(&document);
        let count = |failure: &Failure| count_throttled(failure, throttled);
        let page = self.engine.ask_in_doubt(&subject, &call, PAGE_BYTES, |_| (), parse, count).await?;
        Ok((VersionPage { versions: page.versions, prefixes: page.prefixes }, page.next))
    }

    /// What both listings say of what is listed.
    fn say_what<'a>(&'a self, query: &mut Vec<(&'a str, &'a str)>, entries: &'a str) {
        query.extend([("encoding-type", "url"), ("max-keys", entries), ("prefix", self.prefix.as_str())]);
        if !self.delimiter.is_empty() {
            query.push(("delimiter", &self.delimiter));
        }
    }
}

fn count_throttled<T>(failure: &Failure, throttled: &AtomicU64) -> Option<T> {
    if matches!(failure.retry, Retry::Throttled(throttle) if !throttle.is_late) {
        throttled.fetch_add(1, Ordering::Relaxed);
    }
    None
}

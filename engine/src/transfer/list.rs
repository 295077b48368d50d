//! LIST: the keys under a prefix, or all their versions, page after page, in the server's order.

use std::sync::Arc;

use super::Engine;
use super::options::{Access, access_methods};
use super::pages::{Marker, Pages};
use super::request::{Call, Subject};
use crate::error::{Error, ErrorKind, Result};
use crate::net::is_directory_bucket;
use crate::wire::request::Method;
use crate::wire::xml::{parse_list_objects_v2, parse_list_versions};

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
    page_size: u32,
    access: Access,
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

    /// Keys a page, 1 to 1,000; the server may send fewer.
    pub fn page_size(mut self, keys: u32) -> List {
        self.page_size = keys.clamp(1, 1000);
        self
    }

    /// The pages, fetched one ahead. Nothing is sent before the first is asked for.
    pub fn pages(self) -> Pages {
        let (bucket, list) = (self.bucket.clone(), Arc::new(self));
        Pages::new("list", bucket, Box::new(move |marker| Box::pin(Arc::clone(&list).page(marker))))
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
        Pages::new("list versions", bucket, Box::new(move |marker| Box::pin(Arc::clone(&list).version_page(marker))))
    }

    fn subject(&self, operation: &'static str) -> Result<Subject> {
        self.engine.keep_house();
        Ok(Subject::bucket(&self.engine, operation, &self.bucket)?.with(self.access.clone().attached()))
    }

    async fn page(self: Arc<Self>, marker: Option<Marker>) -> Result<(Page, Option<Marker>)> {
        let subject = self.subject("list")?;
        if !self.start_after.is_empty() && is_directory_bucket(&self.bucket) {
            let message = "a directory bucket lists in no order, so it has no start-after";
            let error = Error::new(ErrorKind::Config, message).with_hint("list a prefix, and choose from what comes");
            return Err(subject.explain(error));
        }
        let page_size = self.page_size.to_string();
        let mut query = vec![
            ("list-type", "2"),
            ("encoding-type", "url"),
            ("max-keys", page_size.as_str()),
            ("prefix", self.prefix.as_str()),
        ];
        if !self.delimiter.is_empty() {
            query.push(("delimiter", &self.delimiter));
        }
        match &marker {
            Some((token, _)) => query.push(("continuation-token", token)),
            None if !self.start_after.is_empty() => query.push(("start-after", &self.start_after)),
            None => {}
        }
        let call = Call { query: &query, ..Call::new(Method::Get) };
        let parse = |document: Vec<u8>, ()| parse_list_objects_v2(&document);
        let page = self.engine.ask(&subject, &call, PAGE_BYTES, |_| (), parse).await?;
        let next = page.next_continuation_token.filter(|_| page.is_truncated).map(|token| (token, String::new()));
        Ok((Page { objects: page.objects, prefixes: page.prefixes }, next))
    }

    async fn version_page(self: Arc<Self>, marker: Option<Marker>) -> Result<(VersionPage, Option<Marker>)> {
        let subject = self.subject("list versions")?;
        let page_size = self.page_size.to_string();
        let mut query = vec![
            ("versions", ""),
            ("encoding-type", "url"),
            ("max-keys", page_size.as_str()),
            ("prefix", self.prefix.as_str()),
        ];
        if !self.delimiter.is_empty() {
            query.push(("delimiter", &self.delimiter));
        }
        match &marker {
            Some((key, version)) => {
                query.push(("key-marker", key));
                if !version.is_empty() {
                    query.push(("version-id-marker", version));
                }
            }
            // A key alone is where the listing goes on after: all of its own versions are left out.
            None if !self.start_after.is_empty() => query.push(("key-marker", &self.start_after)),
            None => {}
        }
        let call = Call { query: &query, ..Call::new(Method::Get) };
        let parse = |document: Vec<u8>, ()| parse_list_versions(&document);
        let page = self.engine.ask(&subject, &call, PAGE_BYTES, |_| (), parse).await?;
        Ok((VersionPage { versions: page.versions, prefixes: page.prefixes }, page.next))
    }
}

//! LIST: the keys under a prefix, page after page, in the server's order.
//!
//! The next page is asked for as soon as a page has arrived, so that the server works while the
//! caller does. A listing ends when the server says so, never on a count; an error is an error, not
//! a shorter list.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::task::JoinHandle;

use super::Engine;
use super::request::{Call, Subject};
use super::workers::lost;
use crate::error::{Error, ErrorKind, Result};
use crate::net::is_directory_bucket;
use crate::wire::request::Method;
use crate::wire::xml::{ListPage, parse_list_objects_v2};

pub use crate::wire::xml::{ListedObject, StorageClass};

/// A page of 1,000 keys of 1,024 bytes, every byte percent-encoded, and its tags stay under this.
const PAGE_BYTES: usize = 8 << 20;

/// One page of a listing.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Page {
    /// Objects, in the server's order.
    pub objects: Vec<ListedObject>,
    /// Prefixes up to the delimiter, where one was given.
    pub prefixes: Vec<String>,
}

/// A listing that has not been sent; made by [`Client::list`](crate::Client::list).
#[must_use = "nothing is sent until `pages` is called"]
pub struct List {
    engine: Arc<Engine>,
    bucket: String,
    prefix: String,
    delimiter: String,
    start_after: String,
    page_size: u32,
}

impl List {
    pub(crate) fn new(engine: Arc<Engine>, bucket: String) -> List {
        List {
            engine,
            bucket,
            prefix: String::new(),
            delimiter: String::new(),
            start_after: String::new(),
            page_size: 1000,
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
        Pages { list: Arc::new(self), state: State::Start, tokens: HashSet::new() }
    }

    fn turns_in_circles(&self) -> Error {
        let message = "the listing does not move on: the server sent the same continuation token twice";
        Error::new(ErrorKind::Protocol, message).with_context("list", &self.bucket, "")
    }

    async fn page(self: Arc<Self>, token: Option<String>) -> Result<ListPage> {
        let engine = &self.engine;
        engine.keep_house();
        let subject = Subject::bucket(engine, "list", &self.bucket)?;
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
        match &token {
            Some(token) => query.push(("continuation-token", token)),
            None if !self.start_after.is_empty() => query.push(("start-after", &self.start_after)),
            None => {}
        }
        let call = Call { query: &query, ..Call::new(Method::Get) };
        engine.ask(&subject, &call, PAGE_BYTES, |_| (), |document, ()| parse_list_objects_v2(&document)).await
    }
}

/// The pages of a listing: a [`Stream`], or call [`Pages::next`]. After an error it ends.
pub struct Pages {
    list: Arc<List>,
    state: State,
    /// Hashes of the tokens that have come: a listing that returns to one would never end.
    tokens: HashSet<u64>,
}

enum State {
    Start,
    Asked(Asked),
    End,
}

/// A page that is on its way; no longer wanted when dropped.
struct Asked(JoinHandle<Result<ListPage>>);

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Pages {
    /// The next page; `None` after the last.
    pub async fn next(&mut self) -> Option<Result<Page>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    fn ask(&self, token: Option<String>) -> State {
        State::Asked(Asked(tokio::spawn(Arc::clone(&self.list).page(token))))
    }
}

impl Stream for Pages {
    type Item = Result<Page>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if matches!(self.state, State::Start) {
            self.state = self.ask(None);
        }
        let State::Asked(asked) = &mut self.state else { return Poll::Ready(None) };
        let arrived = ready!(Pin::new(&mut asked.0).poll(cx));
        let page = match arrived.unwrap_or_else(|error| Err(lost(error))) {
            Ok(page) => page,
            Err(error) => {
                self.state = State::End;
                return Poll::Ready(Some(Err(error)));
            }
        };
        self.state = match page.next_continuation_token {
            Some(token) if page.is_truncated => {
                if !self.tokens.insert(BuildHasherDefault::<DefaultHasher>::default().hash_one(&token)) {
                    self.state = State::End;
                    return Poll::Ready(Some(Err(self.list.turns_in_circles())));
                }
                self.ask(Some(token))
            }
            _ => State::End,
        };
        Poll::Ready(Some(Ok(Page { objects: page.objects, prefixes: page.prefixes })))
    }
}

//! COPY of many objects within the server in one call.

use std::sync::Arc;

use futures_core::Stream;

use super::Engine;
use super::copy::{Copy, CopyDirective, CopyOutcome};
use super::many::{Items, Outcomes, Worker, start};
use super::options::SseCustomerKey;
use super::put_options::{PutOptions, put_methods};
use super::request::Subject;
use crate::error::Result;
use crate::metrics::Progress;
use crate::pace::MemoryPermit;

/// An object to copy, and the key of the copy; see [`CopyMany::items_from`].
///
/// ```
/// use wirespeed::CopyItem;
///
/// let item = CopyItem::new("source", "a", "b").size(4096).if_match("\"9b2cf535f27731c974343645a3985328\"");
/// # assert_eq!(item.key(), "b");
/// ```
#[derive(Debug, Clone)]
pub struct CopyItem {
    pub(super) source_bucket: Arc<str>,
    pub(super) source_key: String,
    pub(super) key: String,
    pub(super) version: Option<String>,
    pub(super) size: Option<u64>,
    pub(super) if_match: Option<String>,
}

impl CopyItem {
    /// The newest version of an object, to this key.
    pub fn new(source_bucket: impl Into<Arc<str>>, source_key: impl Into<String>, key: impl Into<String>) -> CopyItem {
        CopyItem {
            source_bucket: source_bucket.into(),
            source_key: source_key.into(),
            key: key.into(),
            version: None,
            size: None,
            if_match: None,
        }
    }

    /// The source's size in bytes, as a listing tells it: saves the HEAD that asks for it.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> CopyItem {
        self.size = Some(bytes);
        self
    }

    /// Only while the source has this entity tag, as a listing tells it, so that what was listed is what is copied;
    /// otherwise an error of kind [`Precondition`](crate::ErrorKind::Precondition). A weak tag counts for nothing,
    /// since no server compares by it.
    #[must_use]
    pub fn if_match(mut self, etag: impl Into<String>) -> CopyItem {
        self.if_match = Some(etag.into()).filter(|etag| !etag.starts_with("W/"));
        self
    }

    /// This version of the source, not the newest.
    #[must_use]
    pub fn version(mut self, id: impl Into<String>) -> CopyItem {
        self.version = Some(id.into());
        self
    }

    /// The source's key.
    pub fn source_key(&self) -> &str {
        &self.source_key
    }

    /// The copy's key.
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// Copies that have not been sent; made by [`Client::copy_many`](crate::Client::copy_many).
#[must_use = "nothing is copied until the items are given"]
pub struct CopyMany {
    /// One of them, but for what an item says.
    copy: Copy,
}

put_methods!(CopyMany, this => this.copy.options);

impl CopyMany {
    pub(crate) fn new(engine: Arc<Engine>, bucket: String) -> CopyMany {
        CopyMany { copy: Copy::new(engine, Default::default(), (bucket, String::new())) }
    }

    /// All options of the copies at once, in the place of those that were set so far.
    pub fn options(self, options: PutOptions) -> CopyMany {
        CopyMany { copy: self.copy.options(options) }
    }

    /// The customer's own key that the sources were encrypted with (SSE-C). The copies' is
    /// [`CopyMany::sse_customer_key`].
    pub fn source_sse_customer_key(self, key: SseCustomerKey) -> CopyMany {
        CopyMany { copy: self.copy.source_sse_customer_key(key) }
    }

    /// Refuses source buckets that do not belong to this account, an id of 12 digits.
    pub fn source_expected_owner(self, account: impl Into<String>) -> CopyMany {
        CopyMany { copy: self.copy.source_expected_owner(account) }
    }

    /// As [`Copy::metadata_directive`].
    pub fn metadata_directive(self, directive: CopyDirective) -> CopyMany {
        CopyMany { copy: self.copy.metadata_directive(directive) }
    }

    /// As [`Copy::tagging_directive`].
    pub fn tagging_directive(self, directive: CopyDirective) -> CopyMany {
        CopyMany { copy: self.copy.tagging_directive(directive) }
    }

    /// As [`Copy::multipart_threshold`].
    pub fn multipart_threshold(self, bytes: u64) -> CopyMany {
        CopyMany { copy: self.copy.multipart_threshold(bytes) }
    }

    /// As [`Copy::part_size`].
    pub fn part_size(self, bytes: u64) -> CopyMany {
        CopyMany { copy: self.copy.part_size(bytes) }
    }

    /// Counts bytes and objects as the server says that they are copied.
    pub fn progress(self, progress: Progress) -> CopyMany {
        CopyMany { copy: self.copy.progress(progress) }
    }

    /// Each object as it is found. Of the stream no more is taken than can be in flight: it may be as long as it likes.
    ///
    /// # Errors
    /// At once, where the bucket's name cannot exist. Each object's own are in the stream; one object's failure does
    /// not stop the others.
    pub fn items_from(self, items: impl Stream<Item = CopyItem> + Send + 'static) -> Result<Outcomes<CopyOutcome>> {
        let engine = Arc::clone(self.copy.engine());
        Subject::bucket(&engine, "copy", self.copy.bucket())?;
        let copy = Arc::new(self.copy);
        let workers = engine.pace.workers(usize::MAX);
        Ok(start(Items::found(items), workers, || Copier(Arc::clone(&copy))).into())
    }
}

struct Copier(Arc<Copy>);

impl Worker<CopyItem, CopyOutcome> for Copier {
    async fn work(&mut self, item: CopyItem) -> (Result<CopyOutcome>, Option<MemoryPermit>) {
        (self.0.of(item).await, None)
    }

    fn retire(self) {}
}

//! Multipart uploads that were begun and not ended: found, and aborted.

use std::sync::Arc;

use super::Engine;
use super::list::PAGE_BYTES;
use super::options::{Access, access_methods, sent_by_await};
use super::pages::{Marker, Pages};
use super::request::{Call, Subject, without_document};
use crate::error::Result;
use crate::wire::request::Method;
use crate::wire::xml::parse_list_uploads;

pub use crate::wire::xml::ListedUpload;

/// One page of a listing of uploads.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct UploadPage {
    /// Uploads, in the server's order: by key, the oldest first.
    pub uploads: Vec<ListedUpload>,
    /// Prefixes up to the delimiter, where one was given.
    pub prefixes: Vec<String>,
}

/// A listing of uploads that has not been sent; made by
/// [`Client::list_uploads`](crate::Client::list_uploads).
#[must_use = "nothing is sent until `pages` is called"]
pub struct ListUploads {
    engine: Arc<Engine>,
    bucket: String,
    prefix: String,
    delimiter: String,
    page_size: u32,
    access: Access,
}

access_methods!(ListUploads, this => this.access);

impl ListUploads {
    pub(crate) fn new(engine: Arc<Engine>, bucket: String) -> ListUploads {
        ListUploads {
            engine,
            bucket,
            prefix: String::new(),
            delimiter: String::new(),
            page_size: 1000,
            access: Access::default(),
        }
    }

    /// Only uploads of keys that begin with this.
    pub fn prefix(mut self, prefix: impl Into<String>) -> ListUploads {
        self.prefix = prefix.into();
        self
    }

    /// Uploads of keys that hold this after the prefix are rolled up into [`UploadPage::prefixes`].
    pub fn delimiter(mut self, delimiter: impl Into<String>) -> ListUploads {
        self.delimiter = delimiter.into();
        self
    }

    /// Uploads a page, 1 to 1,000; the server may send fewer.
    pub fn page_size(mut self, uploads: u32) -> ListUploads {
        self.page_size = uploads.clamp(1, 1000);
        self
    }

    /// The pages, fetched one ahead. Nothing is sent before the first is asked for.
    pub fn pages(self) -> Pages<UploadPage> {
        let (bucket, list) = (self.bucket.clone(), Arc::new(self));
        Pages::new("list uploads", bucket, Box::new(move |marker| Box::pin(Arc::clone(&list).page(marker))))
    }

    async fn page(self: Arc<Self>, marker: Option<Marker>) -> Result<(UploadPage, Option<Marker>)> {
        let engine = &self.engine;
        engine.keep_house();
        let subject = Subject::bucket(engine, "list uploads", &self.bucket)?.with(self.access.clone().attached());
        let page_size = self.page_size.to_string();
        let mut query = vec![("uploads", ""), ("encoding-type", "url"), ("max-uploads", page_size.as_str())];
        for (name, value) in [("prefix", &self.prefix), ("delimiter", &self.delimiter)] {
            if !value.is_empty() {
                query.push((name, value));
            }
        }
        if let Some((key, upload_id)) = &marker {
            query.push(("key-marker", key));
            if !upload_id.is_empty() {
                query.push(("upload-id-marker", upload_id));
            }
        }
        let call = Call { query: &query, ..Call::new(Method::Get) };
        let parse = |document: Vec<u8>, ()| parse_list_uploads(&document);
        let page = engine.ask(&subject, &call, PAGE_BYTES, |_| (), parse).await?;
        Ok((UploadPage { uploads: page.uploads, prefixes: page.prefixes }, page.next))
    }
}

/// An abort that has not been sent; made by [`Client::abort_upload`](crate::Client::abort_upload),
/// sent by `await`.
#[must_use = "nothing is aborted until it is awaited"]
pub struct AbortUpload {
    engine: Arc<Engine>,
    bucket: String,
    key: String,
    upload_id: String,
    access: Access,
}

access_methods!(AbortUpload, this => this.access);
sent_by_await!(AbortUpload, ());

impl AbortUpload {
    pub(crate) fn new(engine: Arc<Engine>, bucket: String, key: String, upload_id: String) -> AbortUpload {
        AbortUpload { engine, bucket, key, upload_id, access: Access::default() }
    }

    async fn send(self) -> Result<()> {
        let AbortUpload { engine, bucket, key, upload_id, access } = self;
        engine.keep_house();
        let subject = Subject::key(&engine, "abort upload", &bucket, &key)?.with(access.attached());
        abort(&engine, &subject, &upload_id).await
    }
}

/// Aborts an upload: its parts are stored no longer.
pub(crate) async fn abort(engine: &Arc<Engine>, subject: &Subject, upload_id: &str) -> Result<()> {
    let call = Call { query: &[("uploadId", upload_id)], ..Call::new(Method::Delete) };
    engine.ask(subject, &call, super::upload::ANSWER_BYTES, |_| (), without_document).await
}

//! The parts that a multipart upload has so far: what an upload that was broken off need not send again.

use std::sync::Arc;

use super::Engine;
use super::list::PAGE_BYTES;
use super::options::{Access, Attached, SseCustomerKey, access_methods};
use super::pages::{Marker, Pages};
use super::request::{Call, Subject};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::MAX_PARTS;
use crate::wire::request::Method;
use crate::wire::xml::{PartList, parse_list_parts};

pub use crate::wire::xml::ListedPart;

/// The most parts of one page.
const MOST: u32 = 1000;

/// One page of a listing of parts.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PartPage {
    /// Parts, by their numbers. Some may be missing in between: they have not arrived.
    pub parts: Vec<ListedPart>,
}

/// A listing of parts that has not been sent; made by [`Client::list_parts`](crate::Client::list_parts).
#[must_use = "nothing is sent until `pages` is called"]
pub struct ListParts {
    engine: Arc<Engine>,
    bucket: String,
    key: String,
    upload_id: String,
    page_size: u32,
    access: Access,
    customer_key: Option<SseCustomerKey>,
}

access_methods!(ListParts, this => this.access);

impl ListParts {
    pub(crate) fn new(engine: Arc<Engine>, bucket: String, key: String, upload_id: String) -> ListParts {
        let access = Access::default();
        ListParts { engine, bucket, key, upload_id, page_size: MOST, access, customer_key: None }
    }

    /// The key that the upload was begun with, where that was the customer's own (SSE-C): without it the server
    /// leaves the parts' checksums out.
    pub fn sse_customer_key(mut self, key: SseCustomerKey) -> ListParts {
        self.customer_key = Some(key);
        self
    }

    /// Parts a page, 1 to 1,000; the server may send fewer.
    pub fn page_size(mut self, parts: u32) -> ListParts {
        self.page_size = parts.clamp(1, MOST);
        self
    }

    /// The pages, fetched one ahead. Nothing is sent before the first is asked for. Of an upload that is complete or
    /// aborted there is none: an error of kind [`NotFound`](crate::ErrorKind::NotFound).
    pub fn pages(self) -> Pages<PartPage> {
        let (bucket, list) = (self.bucket.clone(), Arc::new(self));
        Pages::new("list parts", bucket, Box::new(move |marker| Box::pin(Arc::clone(&list).page(marker))))
    }

    async fn page(self: Arc<Self>, marker: Option<Marker>) -> Result<(PartPage, Option<Marker>)> {
        let engine = &self.engine;
        engine.keep_house();
        let attached =
            Attached { access: self.access.clone(), customer_key: self.customer_key.clone(), version_id: None };
        let subject = Subject::key(engine, "list parts", &self.bucket, &self.key)?.with(attached.shared());
        let after = marker.and_then(|(number, _)| number.parse().ok());
        let page = ask(engine, &subject, &self.upload_id, self.page_size, after).await?;
        let next = page.next.map(|number| (number.to_string(), String::new()));
        Ok((PartPage { parts: page.parts }, next))
    }
}

/// Every part of an upload, by their numbers.
pub(super) async fn all(engine: &Arc<Engine>, subject: &Subject, upload_id: &str) -> Result<Vec<ListedPart>> {
    let mut parts = Vec::new();
    let mut after = None;
    loop {
        let page = ask(engine, subject, upload_id, MOST, after).await?;
        parts.extend(page.parts);
        after = page.next;
        // No part has a higher number: a server that goes on and on is not believed.
        if after.is_none_or(|number| number >= MAX_PARTS) {
            return Ok(parts);
        }
    }
}

async fn ask(
    engine: &Arc<Engine>,
    subject: &Subject,
    upload_id: &str,
    page_size: u32,
    marker: Option<u32>,
) -> Result<PartList> {
    let page_size = page_size.to_string();
    let after = marker.map(|number| number.to_string());
    let mut query = vec![("uploadId", upload_id), ("max-parts", page_size.as_str())];
    query.extend(after.as_deref().map(|number| ("part-number-marker", number)));
    let call = Call { query: &query, ..Call::new(Method::Get) };
    let parse = |document: Vec<u8>, ()| parse_list_parts(&document);
    let page = engine.ask(subject, &call, PAGE_BYTES, |_| (), parse).await?;
    if page.next.is_some_and(|next| next <= marker.unwrap_or(0)) {
        let message = "the listing of parts made no progress: the server goes on after a part that came before";
        return Err(subject.explain(Error::new(ErrorKind::Protocol, message)));
    }
    Ok(page)
}

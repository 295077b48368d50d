//! Buckets: made, removed, listed.

use std::sync::Arc;

use super::Engine;
use super::lost_answer::LostAnswer;
use super::options::sent_by_await;
use super::pages::{Marker, Pages};
use super::place::Place;
use super::refusal::Failure;
use super::request::{Call, Subject, sha256, without_document};
use crate::error::{Error, ErrorKind, Result};
use crate::net::is_directory_bucket;
use crate::wire::request::Method;
use crate::wire::xml::{parse_list_buckets, write_create_bucket};

pub use crate::wire::xml::ListedBucket;

/// A page of buckets; AWS sends at most 10,000 of them.
const ANSWER_BYTES: usize = 8 << 20;

pub(crate) async fn create(engine: &Arc<Engine>, bucket: &str) -> Result<()> {
    engine.keep_house();
    let subject = itself(engine, "create bucket", bucket).await?;
    let mut body = Vec::new();
    write_create_bucket(&mut body, &engine.region().await.map_err(|error| subject.explain(error))?);
    let call = Call { body: &body, payload: sha256(&body), ..Call::new(Method::Put) };
    let done = done_before("BucketAlreadyOwnedByYou");
    engine.ask_in_doubt(&subject, &call, ANSWER_BYTES, |_| (), without_document, done).await
}

pub(crate) async fn delete(engine: &Arc<Engine>, bucket: &str) -> Result<()> {
    engine.keep_house();
    let subject = itself(engine, "delete bucket", bucket).await?;
    let call = Call::new(Method::Delete);
    let done = done_before("NoSuchBucket");
    engine.ask_in_doubt(&subject, &call, ANSWER_BYTES, |_| (), without_document, done).await
}

/// What a refusal with this code means after an attempt whose answer was lost: that one had worked.
fn done_before(code: &str) -> impl FnMut(&Failure) -> Option<()> {
    let mut lost = LostAnswer::default();
    move |failure| {
        let done = lost.happened() && failure.error.code() == Some(code);
        lost.note(failure);
        done.then_some(())
    }
}

/// The bucket as a thing to be made or removed. AWS keeps directory buckets and access points behind
/// another endpoint with requests of its own.
async fn itself(engine: &Arc<Engine>, operation: &'static str, bucket: &str) -> Result<Subject> {
    let subject = Subject::bucket(engine, operation, bucket)?;
    let refuse = |message| Err(subject.explain(Error::new(ErrorKind::Config, message)));
    if bucket.starts_with("arn:") {
        return refuse("an access point is not made or removed as a bucket is: use the AWS console or `aws s3control`");
    }
    if !is_directory_bucket(bucket) {
        return Ok(subject);
    }
    if engine.is_aws().await.map_err(|error| subject.explain(error))? {
        return refuse(
            "AWS makes and removes directory buckets at another endpoint, which this client does not speak to: \
             use the AWS console or `aws s3api`",
        );
    }
    Ok(Subject::at(operation, &Place::without_sessions(bucket)))
}

/// A listing of buckets that has not been sent; made by
/// [`Client::list_buckets`](crate::Client::list_buckets), sent by `await`, or page by page.
#[must_use = "nothing is sent until it is awaited"]
pub struct ListBuckets {
    engine: Arc<Engine>,
    prefix: String,
    page_size: Option<u32>,
}

sent_by_await!(ListBuckets, Vec<ListedBucket>);

impl ListBuckets {
    pub(crate) fn new(engine: Arc<Engine>) -> ListBuckets {
        ListBuckets { engine, prefix: String::new(), page_size: None }
    }

    /// Only buckets whose names begin with this. Servers that do not know it send all; those are
    /// sorted out here.
    pub fn prefix(mut self, prefix: impl Into<String>) -> ListBuckets {
        self.prefix = prefix.into();
        self
    }

    /// Buckets a page, 1 to 10,000; AWS demands it of accounts that may have more buckets than that.
    /// Servers that do not know it send all at once.
    pub fn page_size(mut self, buckets: u32) -> ListBuckets {
        self.page_size = Some(buckets.clamp(1, 10_000));
        self
    }

    /// The pages, fetched one ahead. Nothing is sent before the first is asked for.
    pub fn pages(self) -> Pages<Vec<ListedBucket>> {
        let list = Arc::new(self);
        Pages::new("list buckets", String::new(), Box::new(move |marker| Box::pin(Arc::clone(&list).page(marker))))
    }

    async fn send(self) -> Result<Vec<ListedBucket>> {
        let mut pages = self.pages();
        let mut buckets = Vec::new();
        while let Some(page) = pages.next().await {
            buckets.extend(page?);
        }
        Ok(buckets)
    }

    async fn page(self: Arc<Self>, marker: Option<Marker>) -> Result<(Vec<ListedBucket>, Option<Marker>)> {
        self.engine.keep_house();
        let subject = Subject::service(&self.engine, "list buckets");
        let page_size = self.page_size.map(|buckets| buckets.to_string());
        let mut query = Vec::new();
        if let Some(page_size) = &page_size {
            query.push(("max-buckets", page_size.as_str()));
        }
        if !self.prefix.is_empty() {
            query.push(("prefix", &self.prefix));
        }
        if let Some((token, _)) = &marker {
            query.push(("continuation-token", token));
        }
        let call = Call { query: &query, ..Call::new(Method::Get) };
        let parse = |answer: Vec<u8>, ()| parse_list_buckets(&answer);
        let mut page = self.engine.ask(&subject, &call, ANSWER_BYTES, |_| (), parse).await?;
        page.buckets.retain(|bucket| bucket.name.starts_with(&self.prefix));
        Ok((page.buckets, page.continuation_token.map(|token| (token, String::new()))))
    }
}

//! Buckets: made, removed, listed.

use std::sync::Arc;

use super::Engine;
use super::request::{Call, Subject, sha256};
use crate::error::{Error, ErrorKind, Result};
use crate::wire::request::Method;
use crate::wire::xml::{parse_list_buckets, write_create_bucket};

pub use crate::wire::xml::ListedBucket;

/// A page of buckets; AWS sends at most 10,000 of them.
const ANSWER_BYTES: usize = 8 << 20;

pub(crate) async fn create(engine: &Arc<Engine>, bucket: &str) -> Result<()> {
    engine.keep_house();
    let subject = Subject::bucket(engine, "create bucket", bucket)?;
    let mut body = Vec::new();
    write_create_bucket(&mut body, &engine.config.region);
    let call = Call { body: &body, payload: sha256(&body), ..Call::new(Method::Put) };
    engine.ask(&subject, &call, ANSWER_BYTES, |_| ()).await?;
    Ok(())
}

pub(crate) async fn delete(engine: &Arc<Engine>, bucket: &str) -> Result<()> {
    engine.keep_house();
    let subject = Subject::bucket(engine, "delete bucket", bucket)?;
    engine.ask(&subject, &Call::new(Method::Delete), ANSWER_BYTES, |_| ()).await?;
    Ok(())
}

pub(crate) async fn list(engine: &Arc<Engine>) -> Result<Vec<ListedBucket>> {
    engine.keep_house();
    let subject = Subject::service(engine, "list buckets");
    let mut buckets = Vec::new();
    let mut token: Option<String> = None;
    loop {
        let query = token.as_deref().map(|token| [("continuation-token", token)]);
        let call = Call { query: query.as_ref().map_or(&[], |query| &query[..]), ..Call::new(Method::Get) };
        let (answer, ()) = engine.ask(&subject, &call, ANSWER_BYTES, |_| ()).await?;
        let page = parse_list_buckets(&answer).map_err(|error| {
            subject.explain(Error::new(ErrorKind::Protocol, "the list cannot be read").with_source(error))
        })?;
        buckets.extend(page.buckets);
        match page.continuation_token {
            Some(next) if token.as_deref() != Some(&next) => token = Some(next),
            _ => return Ok(buckets),
        }
    }
}

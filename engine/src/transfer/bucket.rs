//! Buckets: made, removed, listed.

use std::collections::HashSet;
use std::sync::Arc;

use super::Engine;
use super::place::Place;
use super::request::{Call, Subject, head_only, sha256};
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
    engine.ask(&subject, &call, ANSWER_BYTES, |_| (), head_only).await
}

pub(crate) async fn delete(engine: &Arc<Engine>, bucket: &str) -> Result<()> {
    engine.keep_house();
    let subject = itself(engine, "delete bucket", bucket).await?;
    engine.ask(&subject, &Call::new(Method::Delete), ANSWER_BYTES, |_| (), head_only).await
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

pub(crate) async fn list(engine: &Arc<Engine>) -> Result<Vec<ListedBucket>> {
    engine.keep_house();
    let subject = Subject::service(engine, "list buckets");
    let mut buckets = Vec::new();
    let mut token: Option<String> = None;
    let mut tokens = HashSet::new();
    loop {
        let query = token.as_deref().map(|token| [("continuation-token", token)]);
        let call = Call { query: query.as_ref().map_or(&[], |query| &query[..]), ..Call::new(Method::Get) };
        let page = engine.ask(&subject, &call, ANSWER_BYTES, |_| (), |answer, ()| parse_list_buckets(&answer)).await?;
        buckets.extend(page.buckets);
        match page.continuation_token {
            Some(next) if tokens.insert(next.clone()) => token = Some(next),
            Some(_) => {
                let message = "the server sent the same continuation token twice";
                return Err(subject.explain(Error::new(ErrorKind::Protocol, message)));
            }
            None => return Ok(buckets),
        }
    }
}

//! Conditions on reads and writes.

use wirespeed::{Method, Raw};

use crate::case::{Case, Checked, Cost, Finding, case, ensure, refused, same};
use crate::store::Store;

/// Long before any object.
const LONG_AGO: &str = "Sat, 01 Jan 2000 00:00:00 GMT";
const OTHER: &str = "\"00000000000000000000000000000000\"";

pub(super) fn cases() -> Vec<Case> {
    let read = Cost::new(1, 5, 0);
    vec![
        case("conditions/if-match", read, |s| Box::pin(if_match(s))),
        case("conditions/if-match-on-a-range", read, |s| Box::pin(if_match_on_a_range(s))),
        case("conditions/if-none-match", read, |s| Box::pin(if_none_match(s))),
        case("conditions/if-modified-since", read, |s| Box::pin(if_modified_since(s))),
        case("conditions/if-unmodified-since", read, |s| Box::pin(if_unmodified_since(s))),
        case("conditions/on-head", read, |s| Box::pin(on_head(s))),
        case("conditions/of-a-missing-object", Cost::new(0, 2, 0), |s| Box::pin(of_a_missing_object(s))),
        case("conditions/create-only", Cost::new(2, 1, 0), |s| Box::pin(create_only(s))),
        case("conditions/replace-only-what-was-read", Cost::new(4, 1, 0), |s| Box::pin(replace_only(s))),
        case("conditions/replace-nothing", Cost::new(1, 1, 0), |s| Box::pin(replace_nothing(s))),
        case("conditions/create-only-in-parts", Cost::new(4, 1, 1), |s| Box::pin(create_only_in_parts(s))),
    ]
}

fn get(s: &Store, header: &str, value: &str) -> Raw {
    s.raw(Method::Get, "key").header(header, value)
}

/// Writes the object and gives its ETag.
async fn stored(s: &Store) -> Result<String, Finding> {
    let etag = s.put("key", "content").await?.etag;
    etag.ok_or_else(|| Finding::Differs("a PUT answered without an ETag".to_owned()))
}

async fn if_match(s: &Store) -> Checked {
    let etag = stored(s).await?;
    get(s, "if-match", &etag).send().await?;
    get(s, "if-match", "*").send().await?;
    refused("If-Match with another ETag", get(s, "if-match", OTHER).send().await, &[412])?;
    Ok(())
}

/// What every range of a download but the first is asked with.
async fn if_match_on_a_range(s: &Store) -> Checked {
    let etag = stored(s).await?;
    let answer = get(s, "if-match", &etag).header("range", "bytes=2-4").send().await?;
    same("the status", answer.status, 206)?;
    same("the body", &*answer.body, b"nte")?;
    let other = get(s, "if-match", OTHER).header("range", "bytes=2-4").send().await;
    refused("If-Match with another ETag", other, &[412])?;
    Ok(())
}

async fn if_none_match(s: &Store) -> Checked {
    let etag = stored(s).await?;
    refused("If-None-Match with the ETag", get(s, "if-none-match", &etag).send().await, &[304])?;
    refused("If-None-Match: *", get(s, "if-none-match", "*").send().await, &[304])?;
    let answer = get(s, "if-none-match", OTHER).send().await?;
    same("the body", &*answer.body, b"content")
}

/// The time of the last change as the server writes it.
async fn last_modified(s: &Store) -> Result<String, Finding> {
    let head = s.raw(Method::Head, "key").send().await?;
    let at = head.header("last-modified").map(str::to_owned);
    at.ok_or_else(|| Finding::Differs("HEAD has no Last-Modified".to_owned()))
}

async fn if_modified_since(s: &Store) -> Checked {
    stored(s).await?;
    let at = last_modified(s).await?;
    get(s, "if-modified-since", LONG_AGO).send().await?;
    refused("If-Modified-Since its own time", get(s, "if-modified-since", &at).send().await, &[304])?;
    Ok(())
}

async fn if_unmodified_since(s: &Store) -> Checked {
    stored(s).await?;
    let at = last_modified(s).await?;
    get(s, "if-unmodified-since", &at).send().await?;
    let long_ago = get(s, "if-unmodified-since", LONG_AGO).send().await;
    refused("If-Unmodified-Since long ago", long_ago, &[412])?;
    Ok(())
}

async fn on_head(s: &Store) -> Checked {
    let etag = stored(s).await?;
    let head = |name: &str, value: &str| s.raw(Method::Head, "key").header(name, value).send();
    head("if-match", &etag).await?;
    refused("If-Match with another ETag", head("if-match", OTHER).await, &[412])?;
    refused("If-None-Match with the ETag", head("if-none-match", &etag).await, &[304])?;
    head("if-none-match", OTHER).await?;
    Ok(())
}

async fn of_a_missing_object(s: &Store) -> Checked {
    refused("If-Match", get(s, "if-match", OTHER).send().await, &[404])?;
    refused("If-None-Match", get(s, "if-none-match", OTHER).send().await, &[404])?;
    Ok(())
}

fn put(s: &Store, header: &str, value: &str, body: &'static str) -> Raw {
    s.raw(Method::Put, "key").header(header, value).body(body)
}

async fn create_only(s: &Store) -> Checked {
    put(s, "if-none-match", "*", "first").send().await?;
    refused("a second If-None-Match: *", put(s, "if-none-match", "*", "second").send().await, &[412])?;
    ensure!(*s.get("key").await?.body == *b"first", "the refused PUT replaced the object");
    Ok(())
}

async fn replace_only(s: &Store) -> Checked {
    let first = stored(s).await?;
    put(s, "if-match", &first, "second").send().await?;
    refused("If-Match with the ETag before", put(s, "if-match", &first, "third").send().await, &[412])?;
    refused("If-Match with another ETag", put(s, "if-match", OTHER, "fourth").send().await, &[412])?;
    ensure!(*s.get("key").await?.body == *b"second", "a refused PUT replaced the object");
    Ok(())
}

async fn replace_nothing(s: &Store) -> Checked {
    let put = put(s, "if-match", OTHER, "content").send().await;
    refused("If-Match where there is no object", put, &[404, 412])?;
    refused("GET", s.get("key").await, &[404])?;
    Ok(())
}

async fn create_only_in_parts(s: &Store) -> Checked {
    stored(s).await?;
    let upload = super::multipart::Uploading::start(s, "key", &[]).await?;
    let etag = upload.part(1, "replaced").await?;
    let completed = upload.complete(&[(1, &etag)], &[("if-none-match", "*")]).await;
    refused("completing with If-None-Match: *", completed, &[412])?;
    ensure!(*s.get("key").await?.body == *b"content", "the refused upload replaced the object");
    upload.abort().await?;
    Ok(())
}

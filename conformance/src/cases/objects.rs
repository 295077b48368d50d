//! Objects: written, read, replaced and removed.

use md5::{Digest, Md5};
use wirespeed::{ErrorKind, Method};

use crate::case::{Case, Checked, Cost, case, ensure, refused, same};
use crate::store::{PART, Store, base64, content};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("objects/put-get-head-delete", Cost::new(1, 4, 1), |s| Box::pin(there_and_back(s))),
        case("objects/empty", Cost::new(1, 2, 0), |s| Box::pin(empty(s))),
        case("objects/replaced", Cost::new(2, 3, 0), |s| Box::pin(replaced(s))),
        case("objects/missing", Cost::new(0, 2, 1), |s| Box::pin(missing(s))),
        case("objects/missing-bucket", Cost::new(2, 1, 0), |s| Box::pin(missing_bucket(s))),
        case("objects/etag-is-the-same-everywhere", Cost::new(2, 2, 0), |s| Box::pin(one_etag(s))),
        case("objects/etag-is-the-md5", Cost::new(1, 0, 0), |s| Box::pin(etag_is_md5(s))),
        case("objects/wrong-content-md5", Cost::new(2, 1, 0), |s| Box::pin(wrong_md5(s))),
        case("objects/last-modified", Cost::new(2, 1, 0), |s| Box::pin(last_modified(s))),
        case("objects/large-by-the-engine", Cost::new(6, 8, 0).and_bytes(4 * PART as u64, 4 * PART as u64), |s| {
            Box::pin(large(s))
        }),
        case("buckets/listed", Cost::new(1, 1, 0), |s| Box::pin(bucket_listed(s))).in_own_bucket(),
        case("buckets/not-removed-while-full", Cost::new(1, 1, 1), |s| Box::pin(full_bucket(s))).in_own_bucket(),
    ]
}

async fn there_and_back(s: &Store) -> Checked {
    let body = content(10_000, 1);
    s.put("key", body.clone()).await?;
    let object = s.get("key").await?;
    ensure!(object.body == *body, "other bytes came back");
    same("the size", object.info.size, body.len() as u64)?;
    same("the size by HEAD", s.head("key").await?.size, body.len() as u64)?;
    s.delete("key").await?;
    refused("GET of what was deleted", s.get("key").await, &[404])?;
    refused("HEAD of what was deleted", s.head("key").await, &[404])?;
    Ok(())
}

async fn empty(s: &Store) -> Checked {
    s.put("key", Vec::new()).await?;
    let object = s.get("key").await?;
    same("the length", object.body.len(), 0)?;
    same("the size by HEAD", s.head("key").await?.size, 0u64)
}

async fn replaced(s: &Store) -> Checked {
    s.put("key", content(5_000, 1)).await?;
    let first = s.head("key").await?;
    let body = content(300, 2);
    s.put("key", body.clone()).await?;
    ensure!(s.get("key").await?.body == *body, "the old bytes are still there");
    let second = s.head("key").await?;
    same("the size", second.size, 300u64)?;
    ensure!(first.etag != second.etag, "other bytes have the same ETag {:?}", first.etag);
    Ok(())
}

async fn missing(s: &Store) -> Checked {
    let code = refused("GET", s.get("none").await, &[404])?;
    same("the code", code.as_deref(), Some("NoSuchKey"))?;
    refused("HEAD", s.head("none").await, &[404])?;
    s.delete("none").await?;
    Ok(())
}

async fn missing_bucket(s: &Store) -> Checked {
    let bucket = format!("conformance-none-{:016x}", fastrand::u64(..));
    let got = s.client.get(&bucket, "key").buffer().await;
    let code = refused("GET", got, &[404])?;
    same("the code", code.as_deref(), Some("NoSuchBucket"))?;
    refused("PUT", s.client.put(&bucket, "key").bytes("x").await, &[404])?;
    let listed = s.client.list(&bucket).pages().next().await;
    let error = listed.and_then(Result::err).map(|error| error.kind());
    same("the listing's error", error, Some(ErrorKind::NotFound))
}

async fn one_etag(s: &Store) -> Checked {
    let put = s.put("key", "content").await?.etag;
    ensure!(put.as_deref().is_some_and(|etag| etag.starts_with('"')), "the ETag {put:?} has no quotes");
    same("the ETag by GET", s.get("key").await?.info.etag.as_ref(), put.as_ref())?;
    same("the ETag by HEAD", s.head("key").await?.etag.as_ref(), put.as_ref())?;
    let page = s.list("").pages().next().await.transpose()?.unwrap_or_default();
    same("the ETag in the listing", page.objects.first().and_then(|object| object.etag.clone()), put)
}

async fn etag_is_md5(s: &Store) -> Checked {
    let body = content(1000, 7);
    let sum: String = Md5::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect();
    same("the ETag", s.put("key", body).await?.etag, Some(format!("\"{sum}\"")))
}

async fn wrong_md5(s: &Store) -> Checked {
    let right = base64(&Md5::digest("content"));
    s.raw(Method::Put, "right").header("content-md5", right).body("content").send().await?;
    let wrong = base64(&Md5::digest("another"));
    let put = s.raw(Method::Put, "wrong").header("content-md5", wrong).body("content").send().await;
    let code = refused("a PUT with a wrong Content-MD5", put, &[400])?;
    refused("GET of what was refused", s.get("wrong").await, &[404])?;
    same("the code", code.as_deref(), Some("BadDigest"))
}

async fn last_modified(s: &Store) -> Checked {
    s.put("key", "content").await?;
    let head = s.head("key").await?.last_modified;
    ensure!(head.is_some(), "HEAD has no Last-Modified");
    let page = s.list("").pages().next().await.transpose()?.unwrap_or_default();
    let listed = page.objects.first().and_then(|object| object.last_modified);
    // Listings may show fractions of the second.
    same("the second in the listing", listed.map(|at| at.as_second()), head.map(|at| at.as_second()))
}

async fn large(s: &Store) -> Checked {
    let body = content(4 * PART, 3);
    let outcome = s.put("key", body.clone()).await?;
    same("the requests with data", outcome.parts > 1, true)?;
    ensure!(s.get("key").await?.body == *body, "other bytes came back");
    Ok(())
}

async fn bucket_listed(s: &Store) -> Checked {
    let buckets = s.client.list_buckets().await?;
    ensure!(buckets.iter().any(|bucket| bucket.name == s.bucket), "{} is not among the buckets", s.bucket);
    let made = s.client.create_bucket(&s.bucket).await;
    // us-east-1 alone answers 200 to who owns it.
    if made.is_err() {
        refused("making it again", made, &[409])?;
    }
    Ok(())
}

async fn full_bucket(s: &Store) -> Checked {
    s.put("key", "content").await?;
    let code = refused("removing a bucket with an object", s.client.delete_bucket(&s.bucket).await, &[409])?;
    same("the code", code.as_deref(), Some("BucketNotEmpty"))?;
    s.head("key").await?;
    Ok(())
}

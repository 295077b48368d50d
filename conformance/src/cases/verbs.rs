//! What the engine's own verbs make of a store, where other cases ask request by request.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use wirespeed::{ChecksumAlgorithm, Method, Raw};

use super::multipart::Uploading;
use crate::case::{Case, Checked, Cost, case, ensure, refused, same};
use crate::store::{PART, Store, content, texts};

const OTHER: &str = "\"00000000000000000000000000000000\"";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![
        case("presigned/get", Cost::new(1, 1, 0), |s| Box::pin(presigned_get(s))),
        case("presigned/put", Cost::new(1, 1, 0), |s| Box::pin(presigned_put(s))),
        case("presigned/head-and-delete", Cost::new(1, 2, 1), |s| Box::pin(presigned_others(s))),
        case("presigned/for-another-key", Cost::new(2, 1, 0), |s| Box::pin(presigned_for_another(s))),
        case("presigned/expired", Cost::new(1, 1, 0), |s| Box::pin(presigned_expired(s))),
        case("presigned/with-a-header-that-is-not-signed", Cost::new(1, 1, 0), |s| Box::pin(presigned_and_more(s))),
        case("verbs/suffix", Cost::new(1, 3, 0), |s| Box::pin(suffix(s))),
        case("verbs/ranges-of-an-empty-object", Cost::new(1, 4, 0), |s| Box::pin(of_an_empty_object(s))),
        case("verbs/conditional-get", Cost::new(1, 5, 0), |s| Box::pin(conditional_get(s))),
        case("verbs/conditional-put", Cost::new(5, 1, 0), |s| Box::pin(conditional_put(s))),
        case("verbs/put-of-unknown-length", Cost::new(5, 4, 0).and_bytes(3 * PART as u64, 3 * PART as u64), |s| {
            Box::pin(stream(s))
        }),
        case("verbs/put-with-metadata", Cost::new(1, 1, 0), |s| Box::pin(metadata(s))),
        case("verbs/put-with-tags", Cost::new(1, 1, 0), |s| Box::pin(tags(s))),
        case("verbs/copy", Cost::new(2, 3, 0), |s| Box::pin(copy(s))),
        case("verbs/uploads-listed-and-aborted", Cost::new(3, 0, 2), |s| Box::pin(uploads(s))),
        case("verbs/versions", Cost::new(5, 1, 2), |s| Box::pin(versions(s))).in_own_bucket(),
    ];
    let algorithms = [
        ("crc64nvme", ChecksumAlgorithm::Crc64Nvme),
        ("crc32", ChecksumAlgorithm::Crc32),
        ("crc32c", ChecksumAlgorithm::Crc32c),
        ("sha256", ChecksumAlgorithm::Sha256),
    ];
    for (name, algorithm) in algorithms {
        cases.push(case(format!("verbs/put-with-{name}"), Cost::new(1, 2, 0), move |s| Box::pin(sum(s, algorithm))));
    }
    cases
}

/// The request that the URL stands for, sent without a signature of its own.
fn by_url(s: &Store, method: Method, name: &str, url: &str) -> Raw {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let mut raw = s.anonymous.raw(method, &s.bucket, s.key(name));
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        raw = raw.query(decode(name), decode(value));
    }
    raw
}

const NAME: &str = "a b+c%2F\u{e9}/d";

async fn presigned_get(s: &Store) -> Checked {
    s.put(NAME, "content").await?;
    let url = s.client.presign(&s.bucket, s.key(NAME)).get().await?;
    let answer = by_url(s, Method::Get, NAME, &url).send().await?;
    same("the body", &*answer.body, b"content")
}

async fn presigned_put(s: &Store) -> Checked {
    let url = s.client.presign(&s.bucket, s.key(NAME)).put().await?;
    by_url(s, Method::Put, NAME, &url).body("content").send().await?;
    same("the object", &*s.get(NAME).await?.body, b"content")
}

async fn presigned_others(s: &Store) -> Checked {
    s.put(NAME, "content").await?;
    let url = s.client.presign(&s.bucket, s.key(NAME)).head().await?;
    let answer = by_url(s, Method::Head, NAME, &url).send().await?;
    same("Content-Length", answer.header("content-length"), Some("7"))?;
    let url = s.client.presign(&s.bucket, s.key(NAME)).delete().await?;
    by_url(s, Method::Delete, NAME, &url).send().await?;
    refused("HEAD of what was deleted", s.head(NAME).await, &[404])?;
    Ok(())
}

async fn presigned_for_another(s: &Store) -> Checked {
    s.put("mine", "content").await?;
    s.put("yours", "content").await?;
    let url = s.client.presign(&s.bucket, s.key("mine")).get().await?;
    refused("another key", by_url(s, Method::Get, "yours", &url).send().await, &[403])?;
    Ok(())
}

async fn presigned_expired(s: &Store) -> Checked {
    s.put("key", "content").await?;
    let url = s.client.presign(&s.bucket, s.key("key")).expires_in(Duration::from_secs(1)).get().await?;
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    refused("a URL that has expired", by_url(s, Method::Get, "key", &url).send().await, &[403])?;
    Ok(())
}

/// A header that the signature does not cover could be the invention of whoever holds the URL.
async fn presigned_and_more(s: &Store) -> Checked {
    let url = s.client.presign(&s.bucket, s.key("key")).put().await?;
    let put = by_url(s, Method::Put, "key", &url).header("x-amz-meta-role", "admin").body("content").send().await;
    refused("x-amz-meta-role beside the signature", put, &[403])?;
    refused("GET of what was refused", s.get("key").await, &[404])?;
    Ok(())
}

async fn suffix(s: &Store) -> Checked {
    s.put("key", "content").await?;
    for (length, expected) in [(3, "ent"), (7, "content"), (100, "content")] {
        let object = s.client.get(&s.bucket, s.key("key")).suffix(length).buffer().await?;
        same(&format!("the last {length}"), &*object.body, expected.as_bytes())?;
        same("the size of the object", object.info.size, 7u64)?;
    }
    Ok(())
}

/// Whatever the store says of ranges of nothing, what is read is nothing; and nothing is read beyond the end.
async fn of_an_empty_object(s: &Store) -> Checked {
    s.put("key", Vec::new()).await?;
    let get = || s.client.get(&s.bucket, s.key("key"));
    same("the whole", get().buffer().await?.body.len(), 0)?;
    same("the last 9 bytes", get().suffix(9).buffer().await?.body.len(), 0)?;
    refused("from byte 5", get().range(5..).buffer().await, &[416])?;
    Ok(())
}

async fn conditional_get(s: &Store) -> Checked {
    let etag = s.put("key", "content").await?.etag.unwrap_or_default();
    let get = || s.client.get(&s.bucket, s.key("key"));
    get().if_match(&etag).buffer().await?;
    refused("If-Match with another ETag", get().if_match(OTHER).buffer().await, &[412])?;
    get().if_none_match(OTHER).buffer().await?;
    refused("If-None-Match with the ETag", get().if_none_match(&etag).buffer().await, &[304])?;
    refused("HEAD", s.client.head(&s.bucket, s.key("key")).if_match(OTHER).await, &[412])?;
    Ok(())
}

async fn conditional_put(s: &Store) -> Checked {
    let put = || s.client.put(&s.bucket, s.key("key"));
    let etag = put().if_none_match_any().bytes("first").await?.etag.unwrap_or_default();
    refused("creating it again", put().if_none_match_any().bytes("second").await, &[412])?;
    put().if_match(&etag).bytes("third").await?;
    refused("replacing what has changed", put().if_match(&etag).bytes("fourth").await, &[412])?;
    same("the object", &*s.get("key").await?.body, b"third")
}

async fn stream(s: &Store) -> Checked {
    let body = content(2 * PART + 1_000, 51);
    let pieces: Vec<_> = body.chunks(300_000).map(|piece| Ok(bytes::Bytes::copy_from_slice(piece))).collect();
    s.client.put(&s.bucket, s.key("key")).stream(futures_util::stream::iter(pieces)).await?;
    ensure!(s.get("key").await?.body == *body, "other bytes came back");
    Ok(())
}

async fn metadata(s: &Store) -> Checked {
    let put = s.client.put(&s.bucket, s.key("key")).content_type("text/x-conformance").metadata("colour", "blue");
    put.bytes("content").await?;
    let info = s.head("key").await?;
    same("the type", info.content_type.as_deref(), Some("text/x-conformance"))?;
    same("the metadata", info.metadata, [("colour".to_owned(), "blue".to_owned())])
}

async fn tags(s: &Store) -> Checked {
    s.client.put(&s.bucket, s.key("key")).tag("two words", "a+b").bytes("content").await?;
    let answer = s.raw(Method::Get, "key").query("tagging", "").send().await?;
    same("the name", texts(&answer.body, "Key")?, ["two words"])?;
    same("the value", texts(&answer.body, "Value")?, ["a+b"])
}

async fn copy(s: &Store) -> Checked {
    s.put(NAME, "content").await?;
    s.client.copy(&s.bucket, s.key(NAME), &s.bucket, s.key("copy")).source_size(7).await?;
    same("the copy", &*s.get("copy").await?.body, b"content")?;
    same("the source", &*s.get(NAME).await?.body, b"content")
}

async fn uploads(s: &Store) -> Checked {
    let upload = Uploading::start(s, NAME, &[]).await?;
    let result = listed_and_aborted(s).await;
    if result.is_err() {
        // A store that does not list it gives the cleaning up nothing to find it by.
        let _ = upload.abort().await;
    }
    result
}

async fn listed_and_aborted(s: &Store) -> Checked {
    let list = || s.client.list_uploads(&s.bucket).prefix(s.key("")).pages();
    let page = list().next().await.transpose()?.unwrap_or_default();
    same("the keys", page.uploads.iter().map(|upload| s.name(&upload.key)).collect::<Vec<_>>(), [NAME])?;
    for upload in page.uploads {
        s.client.abort_upload(&s.bucket, upload.key, upload.upload_id).await?;
    }
    let page = list().next().await.transpose()?.unwrap_or_default();
    same("the uploads left", page.uploads.len(), 0)
}

async fn versions(s: &Store) -> Checked {
    super::versions::enable(s).await?;
    let first = s.put("key", "first").await?.version_id.unwrap_or_default();
    s.put("key", "second").await?;
    let object = s.client.get(&s.bucket, s.key("key")).version(&first).buffer().await?;
    same("the first version", &*object.body, b"first")?;
    s.delete("key").await?;
    let page = s.list("").versions().next().await.transpose()?.unwrap_or_default();
    let found: Vec<_> =
        page.versions.iter().map(|one| (s.name(&one.key), one.is_latest, one.is_delete_marker, one.size)).collect();
    same("the versions", found, [("key", true, true, 0), ("key", false, false, 6), ("key", false, false, 5)])?;
    same("the id of the oldest", page.versions.last().map(|one| one.version_id.as_str()), Some(first.as_str()))
}

/// The engine computes it, the store keeps it, and the engine checks the download by it.
async fn sum(s: &Store, algorithm: ChecksumAlgorithm) -> Checked {
    s.client.put(&s.bucket, s.key("key")).checksum(algorithm).bytes("content").await?;
    let head = s.raw(Method::Head, "key").header("x-amz-checksum-mode", "ENABLED").send().await?;
    ensure!(head.header(algorithm.header()).is_some(), "{} is not told", algorithm.header());
    same("the object", &*s.get("key").await?.body, b"content")
}

//! What is kept beside the bytes: metadata, headers, tags, storage class.

use wirespeed::Method;

use crate::case::{Case, Checked, Cost, case, ensure, refused, same};
use crate::store::{Store, texts};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("metadata/of-the-user", Cost::new(1, 1, 0), |s| Box::pin(of_the_user(s))),
        case("metadata/gone-when-replaced", Cost::new(2, 1, 0), |s| Box::pin(gone(s))),
        case("metadata/content-headers", Cost::new(1, 2, 0), |s| Box::pin(headers(s))),
        case("metadata/overridden-in-the-answer", Cost::new(1, 1, 0), |s| Box::pin(overridden(s))),
        case("metadata/too-much", Cost::new(1, 0, 0), |s| Box::pin(too_much(s))),
        case("metadata/storage-class", Cost::new(2, 0, 0), |s| Box::pin(storage_class(s))),
        case("metadata/unknown-storage-class", Cost::new(1, 0, 0), |s| Box::pin(unknown_class(s))),
        case("tags/with-the-object", Cost::new(1, 2, 0), |s| Box::pin(tags_with_object(s))),
        case("tags/set-and-removed", Cost::new(2, 3, 1), |s| Box::pin(tags_set(s))),
    ]
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

async fn of_the_user(s: &Store) -> Checked {
    let put = s.raw(Method::Put, "key").header("x-amz-meta-plain", "value");
    let put = put.header("x-amz-meta-with-dash", "two words; and = signs").header("x-amz-meta-n1", "%20+");
    put.body("content").send().await?;
    let mut metadata = s.head("key").await?.metadata;
    metadata.sort();
    same(
        "the metadata",
        metadata,
        [pair("n1", "%20+"), pair("plain", "value"), pair("with-dash", "two words; and = signs")],
    )
}

async fn gone(s: &Store) -> Checked {
    s.raw(Method::Put, "key").header("x-amz-meta-colour", "blue").body("content").send().await?;
    s.put("key", "content").await?;
    same("the metadata", s.head("key").await?.metadata, [])
}

const HEADERS: [(&str, &str); 6] = [
    ("cache-control", "max-age=17"),
    ("content-disposition", "attachment; filename=\"a b.txt\""),
    ("content-encoding", "x-conformance"),
    ("content-language", "de"),
    ("content-type", "text/x-conformance; charset=utf-8"),
    ("expires", "Thu, 01 Dec 2044 16:00:00 GMT"),
];

async fn headers(s: &Store) -> Checked {
    let mut put = s.raw(Method::Put, "key");
    for (name, value) in HEADERS {
        put = put.header(name, value);
    }
    put.body("content").send().await?;
    for method in [Method::Head, Method::Get] {
        let answer = s.raw(method, "key").send().await?;
        for (name, value) in HEADERS {
            same(&format!("{name} by {method:?}"), answer.header(name), Some(value))?;
        }
    }
    Ok(())
}

async fn overridden(s: &Store) -> Checked {
    s.put("key", "content").await?;
    let get = s.raw(Method::Get, "key").query("response-content-type", "text/x-other");
    let answer = get.query("response-cache-control", "no-store").send().await?;
    same("content-type", answer.header("content-type"), Some("text/x-other"))?;
    same("cache-control", answer.header("cache-control"), Some("no-store"))
}

/// S3 keeps at most 2 KiB of a user's metadata.
async fn too_much(s: &Store) -> Checked {
    let put = s.raw(Method::Put, "key").header("x-amz-meta-long", "v".repeat(2_500));
    refused("2,500 bytes of metadata", put.body("content").send().await, &[400])?;
    Ok(())
}

async fn storage_class(s: &Store) -> Checked {
    s.raw(Method::Put, "key").header("x-amz-storage-class", "STANDARD").body("content").send().await?;
    let page = s.list("").pages().next().await.transpose()?.unwrap_or_default();
    let class = page.objects.first().and_then(|object| object.storage_class.clone());
    same("the class in the listing", class.as_ref().map(wirespeed::StorageClass::as_str), Some("STANDARD"))
}

async fn unknown_class(s: &Store) -> Checked {
    let put = s.raw(Method::Put, "key").header("x-amz-storage-class", "CONFORMANCE").body("content").send().await;
    let code = refused("an unknown storage class", put, &[400])?;
    same("the code", code.as_deref(), Some("InvalidStorageClass"))
}

async fn tags_with_object(s: &Store) -> Checked {
    let put = s.raw(Method::Put, "key").header("x-amz-tagging", "colour=blue&two%20words=a%2Bb");
    put.body("content").send().await?;
    let answer = s.raw(Method::Get, "key").query("tagging", "").send().await?;
    let mut tags: Vec<_> = texts(&answer.body, "Key")?.into_iter().zip(texts(&answer.body, "Value")?).collect();
    tags.sort();
    same("the tags", tags, [pair("colour", "blue"), pair("two words", "a+b")])?;
    let answer = s.raw(Method::Get, "key").send().await?;
    same("x-amz-tagging-count", answer.header("x-amz-tagging-count"), Some("2"))
}

async fn tags_set(s: &Store) -> Checked {
    s.put("key", "content").await?;
    let tags = || s.raw(Method::Get, "key").query("tagging", "").send();
    same("the tags at first", texts(&tags().await?.body, "Key")?, [""; 0])?;
    let document = "<Tagging><TagSet><Tag><Key>colour</Key><Value>blue</Value></Tag></TagSet></Tagging>";
    let md5 = crate::store::base64(&<md5::Md5 as md5::Digest>::digest(document));
    s.raw(Method::Put, "key").query("tagging", "").header("content-md5", md5).body(document).send().await?;
    let answer = tags().await?;
    same("the name", texts(&answer.body, "Key")?, ["colour"])?;
    same("the value", texts(&answer.body, "Value")?, ["blue"])?;
    s.raw(Method::Delete, "key").query("tagging", "").send().await?;
    let left = texts(&tags().await?.body, "Key")?;
    ensure!(left.is_empty(), "left after removing: {left:?}");
    Ok(())
}

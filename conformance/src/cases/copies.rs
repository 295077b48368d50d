//! Copies within the store.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use wirespeed::{Method, Raw};

use super::multipart::{Uploading, named};
use crate::case::{Case, Checked, Cost, Finding, case, ensure, refused, same};
use crate::store::{PART, Store, content, text};

/// What stands in a path as it is.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("copies/within-the-bucket", Cost::new(2, 2, 0), |s| Box::pin(within(s))),
        case("copies/awkward-keys", Cost::new(10, 5, 0), |s| Box::pin(awkward(s))),
        case("copies/metadata-kept", Cost::new(2, 1, 0), |s| Box::pin(kept(s))),
        case("copies/metadata-replaced", Cost::new(2, 1, 0), |s| Box::pin(replaced(s))),
        case("copies/onto-itself-with-other-metadata", Cost::new(2, 2, 0), |s| Box::pin(onto_itself(s))),
        case("copies/onto-itself-unchanged", Cost::new(2, 1, 0), |s| Box::pin(unchanged(s))),
        case("copies/of-nothing", Cost::new(1, 1, 0), |s| Box::pin(of_nothing(s))),
        case("copies/if-match", Cost::new(4, 1, 0), |s| Box::pin(if_match(s))),
        case("copies/if-none-match", Cost::new(3, 1, 0), |s| Box::pin(if_none_match(s))),
        case("copies/by-parts", Cost::new(5, 3, 0).and_bytes(2 * PART as u64, PART as u64), |s| Box::pin(by_parts(s))),
    ]
}

fn copy(s: &Store, from: &str, to: &str) -> Raw {
    s.raw(Method::Put, to).header("x-amz-copy-source", source(s, from))
}

fn source(s: &Store, from: &str) -> String {
    format!("/{}/{}", s.bucket, utf8_percent_encode(&s.key(from), PATH))
}

/// Writes the source with metadata of its own; gives its ETag.
async fn stored(s: &Store) -> Result<String, Finding> {
    let put = s.raw(Method::Put, "from").header("content-type", "text/x-from").header("x-amz-meta-colour", "blue");
    let answer = put.body("content").send().await?;
    Ok(answer.header("etag").unwrap_or_default().to_owned())
}

async fn within(s: &Store) -> Checked {
    let body = content(50_000, 41);
    let etag = s.put("from", body.clone()).await?.etag;
    let answer = copy(s, "from", "to").send().await?;
    let said = text(&answer.body, "ETag")?;
    same("the ETag in the answer", said.trim_matches('"'), etag.unwrap_or_default().trim_matches('"'))?;
    ensure!(s.get("to").await?.body == *body, "other bytes came back");
    same("the source", s.head("from").await?.size, 50_000u64)
}

async fn awkward(s: &Store) -> Checked {
    for name in ["a b", "c+d", "100%", "e%2Ff", "\u{e9}\u{1f980}?x&y"] {
        s.put(name, name).await?;
        let to = format!("copy of {name}");
        copy(s, name, &to).send().await?;
        ensure!(*s.get(&to).await?.body == *name.as_bytes(), "other bytes came back for {name:?}");
    }
    Ok(())
}

async fn kept(s: &Store) -> Checked {
    stored(s).await?;
    copy(s, "from", "to").send().await?;
    let info = s.head("to").await?;
    same("the type", info.content_type.as_deref(), Some("text/x-from"))?;
    same("the metadata", info.metadata, [("colour".to_owned(), "blue".to_owned())])
}

async fn replaced(s: &Store) -> Checked {
    stored(s).await?;
    let replacing = copy(s, "from", "to").header("x-amz-metadata-directive", "REPLACE");
    replacing.header("content-type", "text/x-to").header("x-amz-meta-size", "large").send().await?;
    let info = s.head("to").await?;
    same("the type", info.content_type.as_deref(), Some("text/x-to"))?;
    same("the metadata", info.metadata, [("size".to_owned(), "large".to_owned())])
}

async fn onto_itself(s: &Store) -> Checked {
    stored(s).await?;
    let replacing = copy(s, "from", "from").header("x-amz-metadata-directive", "REPLACE");
    replacing.header("x-amz-meta-size", "large").send().await?;
    same("the metadata", s.head("from").await?.metadata, [("size".to_owned(), "large".to_owned())])?;
    same("the object", &*s.get("from").await?.body, b"content")
}

async fn unchanged(s: &Store) -> Checked {
    stored(s).await?;
    let code = refused("copying onto itself", copy(s, "from", "from").send().await, &[400])?;
    same("the code", code.as_deref(), Some("InvalidRequest"))?;
    same("the object", &*s.get("from").await?.body, b"content")
}

async fn of_nothing(s: &Store) -> Checked {
    let code = refused("copying what does not exist", copy(s, "none", "to").send().await, &[404])?;
    same("the code", code.as_deref(), Some("NoSuchKey"))?;
    refused("GET", s.get("to").await, &[404])?;
    Ok(())
}

async fn if_match(s: &Store) -> Checked {
    let etag = stored(s).await?;
    copy(s, "from", "to").header("x-amz-copy-source-if-match", etag).send().await?;
    let other = copy(s, "from", "to-2").header("x-amz-copy-source-if-match", "\"0123\"").send().await;
    refused("x-amz-copy-source-if-match with another ETag", other, &[412])?;
    refused("GET", s.get("to-2").await, &[404])?;
    Ok(())
}

async fn if_none_match(s: &Store) -> Checked {
    let etag = stored(s).await?;
    let same = copy(s, "from", "to").header("x-amz-copy-source-if-none-match", etag).send().await;
    refused("x-amz-copy-source-if-none-match with the ETag", same, &[412])?;
    refused("GET", s.get("to").await, &[404])?;
    Ok(())
}

async fn by_parts(s: &Store) -> Checked {
    let body = content(PART + 5_000, 42);
    s.put("from", body.clone()).await?;
    let upload = Uploading::start(s, "to", &[]).await?;
    let mut parts = String::new();
    for (number, range) in [(1, 0..PART), (2, PART..body.len())] {
        let range = format!("bytes={}-{}", range.start, range.end - 1);
        let from = source(s, "from");
        let headers = [("x-amz-copy-source", from.as_str()), ("x-amz-copy-source-range", range.as_str())];
        let answer = upload.part_with(number, "", &headers).await?;
        parts.push_str(&named(number, &text(&answer.body, "ETag")?, ""));
    }
    upload.complete_with(&parts, &[]).await?;
    ensure!(s.get("to").await?.body == *body, "other bytes came back");
    Ok(())
}

//! Versions of an object, in a bucket of the case's own.

use wirespeed::{Method, RawAnswer};

use crate::case::{Case, Checked, Cost, Finding, case, ensure, refused, same};
use crate::store::{Store, text, texts};

pub(super) fn cases() -> Vec<Case> {
    let versioned = |name: &str, cost: Cost, run: fn(&Store) -> crate::case::Running<'_>| {
        case(format!("versions/{name}"), cost + Cost::new(1, 0, 4), run).in_own_bucket()
    };
    vec![
        versioned("enabled", Cost::new(0, 1, 0), |s| Box::pin(enabled(s))),
        versioned("read-by-id", Cost::new(2, 4, 0), |s| Box::pin(read_by_id(s))),
        versioned("listed-newest-first", Cost::new(5, 0, 0), |s| Box::pin(listed(s))),
        versioned("deleting-leaves-a-marker", Cost::new(3, 4, 1), |s| Box::pin(marker(s))),
        versioned("removing-the-marker-restores", Cost::new(2, 1, 2), |s| Box::pin(restored(s))),
        versioned("one-removed-for-good", Cost::new(3, 3, 1), |s| Box::pin(removed(s))),
        versioned("copied-by-id", Cost::new(3, 1, 0), |s| Box::pin(copied(s))),
        versioned("unknown-id", Cost::new(1, 1, 0), |s| Box::pin(unknown(s))),
        case("versions/none-by-default", Cost::new(1, 1, 0), |s| Box::pin(none(s))).in_own_bucket(),
    ]
}

pub(super) async fn enable(s: &Store) -> Checked {
    let document = "<VersioningConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
                    <Status>Enabled</Status></VersioningConfiguration>";
    s.raw_bucket(Method::Put).query("versioning", "").body(document).send().await?;
    Ok(())
}

/// Writes a version and gives its id.
async fn write(s: &Store, body: &'static str) -> Result<String, Finding> {
    let id = s.put("key", body).await?.version_id;
    id.ok_or_else(|| Finding::Differs("a PUT answered without x-amz-version-id".to_owned()))
}

async fn read(s: &Store, id: &str) -> wirespeed::Result<RawAnswer> {
    s.raw(Method::Get, "key").query("versionId", id).send().await
}

async fn list(s: &Store) -> wirespeed::Result<RawAnswer> {
    s.raw_bucket(Method::Get).query("versions", "").send().await
}

async fn enabled(s: &Store) -> Checked {
    enable(s).await?;
    let answer = s.raw_bucket(Method::Get).query("versioning", "").send().await?;
    same("the status", text(&answer.body, "Status")?, "Enabled")
}

async fn read_by_id(s: &Store) -> Checked {
    enable(s).await?;
    let (first, second) = (write(s, "first").await?, write(s, "second").await?);
    ensure!(first != second, "two versions have the id {first}");
    same("the first", &*read(s, &first).await?.body, b"first")?;
    same("the second", &*read(s, &second).await?.body, b"second")?;
    let object = s.get("key").await?;
    same("the current", &*object.body, b"second")?;
    same("its id", object.info.version_id, Some(second))?;
    let head = s.raw(Method::Head, "key").query("versionId", &first).send().await?;
    same("the first's size", head.header("content-length"), Some("5"))
}

async fn listed(s: &Store) -> Checked {
    enable(s).await?;
    let mut ids = Vec::new();
    for body in ["first", "second", "third"] {
        ids.push(write(s, body).await?);
    }
    ids.reverse();
    let answer = list(s).await?;
    same("the ids", texts(&answer.body, "VersionId")?, ids)?;
    same("which is the latest", texts(&answer.body, "IsLatest")?, ["true", "false", "false"])?;
    same("the keys", texts(&answer.body, "Key")?, ["key"; 3])
}

async fn marker(s: &Store) -> Checked {
    enable(s).await?;
    let id = write(s, "content").await?;
    s.delete("key").await?;
    let code = refused("GET of what was deleted", s.get("key").await, &[404])?;
    same("the code", code.as_deref(), Some("NoSuchKey"))?;
    refused("HEAD of what was deleted", s.head("key").await, &[404])?;
    same("the version", &*read(s, &id).await?.body, b"content")?;
    let answer = list(s).await?;
    same("the markers", answer.body.windows(14).filter(|seen| seen == b"<DeleteMarker>").count(), 1)?;
    same("the listing", s.names().await?, [""; 0])
}

async fn restored(s: &Store) -> Checked {
    enable(s).await?;
    write(s, "content").await?;
    let answer = s.raw(Method::Delete, "key").send().await?;
    same("x-amz-delete-marker", answer.header("x-amz-delete-marker"), Some("true"))?;
    let marker = answer.header("x-amz-version-id").unwrap_or_default().to_owned();
    ensure!(!marker.is_empty(), "the marker has no id");
    s.raw(Method::Delete, "key").query("versionId", marker).send().await?;
    same("the object", &*s.get("key").await?.body, b"content")?;
    Ok(())
}

async fn removed(s: &Store) -> Checked {
    enable(s).await?;
    let (first, second) = (write(s, "first").await?, write(s, "second").await?);
    s.raw(Method::Delete, "key").query("versionId", &second).send().await?;
    same("the current", &*s.get("key").await?.body, b"first")?;
    let code = refused("GET of what is gone", read(s, &second).await, &[404])?;
    same("the code", code.as_deref(), Some("NoSuchVersion"))?;
    same("the ids", texts(&list(s).await?.body, "VersionId")?, [first])
}

async fn copied(s: &Store) -> Checked {
    enable(s).await?;
    let first = write(s, "first").await?;
    write(s, "second").await?;
    let source = format!("{}/{}?versionId={first}", s.bucket, s.key("key"));
    s.raw(Method::Put, "copy").header("x-amz-copy-source", source).send().await?;
    same("the copy", &*s.get("copy").await?.body, b"first")
}

async fn unknown(s: &Store) -> Checked {
    enable(s).await?;
    write(s, "content").await?;
    refused("GET", read(s, "3HL4kqtJvjVBH40Nrjfkd2a8QzX0aBcd").await, &[400, 404])?;
    Ok(())
}

async fn none(s: &Store) -> Checked {
    same("the id", s.put("key", "content").await?.version_id, None)?;
    same("the id by HEAD", s.head("key").await?.version_id, None)
}

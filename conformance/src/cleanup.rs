//! Leaves nothing behind: uploads, objects, versions and delete markers under a prefix, and buckets.

use std::result::Result;

use wirespeed::{Client, Method};

use crate::store::texts;

/// Pages of a listing that still show something after so many rounds will go on doing so.
const ROUNDS: usize = 20;

/// The most keys that are named of those that are left.
const NAMED: usize = 10;

/// Removes everything under the prefix, which is all of the bucket when it is empty.
///
/// # Errors
/// The names of what is left in spite of that, with the reason where a request was refused.
pub(crate) async fn prefix(client: &Client, bucket: &str, prefix: &str) -> Result<(), String> {
    let removed = remove(client, bucket, prefix).await;
    let why = removed.err().map(|error| format!(": {error}")).unwrap_or_default();
    let listed = client.list(bucket).prefix(prefix).pages().next().await.transpose();
    let objects = match listed {
        Ok(page) => page.map(|page| page.objects).unwrap_or_default(),
        Err(error) if why.is_empty() => return Err(format!("what is in {bucket}/{prefix}: {error}")),
        Err(_) => return Err(format!("what is in {bucket}/{prefix}{why}")),
    };
    if objects.is_empty() {
        return Ok(());
    }
    let named: Vec<_> = objects.iter().take(NAMED).map(|object| format!("{bucket}/{}", object.key)).collect();
    let more = if objects.len() > NAMED { " and more" } else { "" };
    Err(format!("{}{more}{why}", named.join(", ")))
}

async fn remove(client: &Client, bucket: &str, prefix: &str) -> wirespeed::Result<()> {
    uploads(client, bucket, prefix).await;
    let mut keys = Vec::new();
    let mut pages = client.list(bucket).prefix(prefix).pages();
    while let Some(page) = pages.next().await {
        keys.extend(page?.objects.into_iter().map(|object| object.key));
    }
    let mut kept = Ok(());
    if !keys.is_empty() {
        let failed = match client.delete_many(bucket, keys.clone()).await {
            Ok(failures) => failures.into_iter().map(|failure| failure.key).collect(),
            Err(_) => keys,
        };
        for key in failed {
            kept = kept.and(client.delete(bucket, key).await.map(drop));
        }
    }
    versions(client, bucket, prefix).await;
    kept
}

/// Removes a bucket of the suite with all that is in it.
///
/// # Errors
/// As [`prefix`].
pub(crate) async fn bucket(client: &Client, bucket: &str) -> Result<(), String> {
    match client.delete_bucket(bucket).await {
        Err(error) if error.kind() == wirespeed::ErrorKind::Conflict => {}
        Err(error) if error.kind() == wirespeed::ErrorKind::NotFound => return Ok(()),
        other => return other.map_err(|error| format!("the bucket {bucket}: {error}")),
    }
    prefix(client, bucket, "").await?;
    client.delete_bucket(bucket).await.map_err(|error| format!("the bucket {bucket}: {error}"))
}

/// Aborts what is under way. Servers that cannot list uploads are left alone: each case that starts
/// one ends it, unless it fails.
async fn uploads(client: &Client, bucket: &str, prefix: &str) {
    let list = client.raw(Method::Get, bucket, "").query("uploads", "").query("prefix", prefix).send();
    let Ok(answer) = list.await else { return };
    let (Ok(keys), Ok(ids)) = (texts(&answer.body, "Key"), texts(&answer.body, "UploadId")) else { return };
    for (key, id) in keys.into_iter().zip(ids) {
        let _ = client.raw(Method::Delete, bucket, key).query("uploadId", id).send().await;
    }
}

/// Removes versions and markers for good, where the bucket keeps them.
async fn versions(client: &Client, bucket: &str, prefix: &str) {
    for _ in 0..ROUNDS {
        let list = client.raw(Method::Get, bucket, "").query("versions", "").query("prefix", prefix).send();
        let Ok(answer) = list.await else { return };
        let (Ok(keys), Ok(ids)) = (texts(&answer.body, "Key"), texts(&answer.body, "VersionId")) else { return };
        if keys.is_empty() || keys.len() != ids.len() {
            return;
        }
        for (key, id) in keys.into_iter().zip(ids) {
            let _ = client.raw(Method::Delete, bucket, key).query("versionId", id).send().await;
        }
    }
}

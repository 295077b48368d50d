//! Leaves nothing behind: uploads, objects, versions and delete markers under a prefix, and buckets.

use std::result::Result;

use wirespeed::{Client, Method};

use crate::store::texts;

/// Pages of a listing that still show something after so many rounds will go on doing so.
const ROUNDS: usize = 20;

/// Removes everything under the prefix, which is all of the bucket when it is empty. Says what is
/// left in spite of that.
pub(crate) async fn prefix(client: &Client, bucket: &str, prefix: &str) -> Result<(), String> {
    remove(client, bucket, prefix).await.map_err(|error| error.to_string())?;
    let left = client.list(bucket).prefix(prefix).pages().next().await;
    match left.transpose().map_err(|error| error.to_string())?.and_then(|page| page.objects.into_iter().next()) {
        Some(object) => Err(format!("{bucket}/{} cannot be removed", object.key)),
        None => Ok(()),
    }
}

async fn remove(client: &Client, bucket: &str, prefix: &str) -> wirespeed::Result<()> {
    uploads(client, bucket, prefix).await;
    let mut keys = Vec::new();
    let mut pages = client.list(bucket).prefix(prefix).pages();
    while let Some(page) = pages.next().await {
        keys.extend(page?.objects.into_iter().map(|object| object.key));
    }
    if !keys.is_empty() {
        for failure in client.delete_many(bucket, keys).await? {
            client.delete(bucket, failure.key).await?;
        }
    }
    versions(client, bucket, prefix).await;
    Ok(())
}

/// Removes a bucket of ours with all that is in it.
pub(crate) async fn bucket(client: &Client, bucket: &str) -> Result<(), String> {
    match client.delete_bucket(bucket).await {
        Err(error) if error.kind() == wirespeed::ErrorKind::Conflict => {}
        Err(error) if error.kind() == wirespeed::ErrorKind::NotFound => return Ok(()),
        other => return other.map_err(|error| error.to_string()),
    }
    prefix(client, bucket, "").await?;
    client.delete_bucket(bucket).await.map_err(|error| error.to_string())
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

//! Buckets that keep versions.

use wirespeed_origin::{Origin, Running, Series};

use super::client::{Answer, get, put, query, send};

async fn server() -> Running {
    let server = Origin::builder().anonymous(true).bucket("bucket").start().await.unwrap();
    put(&server, "/bucket/key", b"before").await;
    set(&server, "Enabled").await;
    server
}

async fn set(server: &Running, status: &str) {
    let body = format!("<VersioningConfiguration><Status>{status}</Status></VersioningConfiguration>");
    assert_eq!(send(server, "PUT", "/bucket?versioning", &[], body.as_bytes()).await.status, 200);
    assert_eq!(get(server, "/bucket?versioning", &[]).await.one("Status").as_deref(), Some(status));
}

fn version(answer: &Answer) -> String {
    answer.header("x-amz-version-id").unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

#[tokio::test]
async fn every_version_stays_until_it_is_removed() {
    let server = server().await;
    let one = version(&put(&server, "/bucket/key", b"one").await);
    let two = version(&put(&server, "/bucket/key", b"two").await);
    let read = async |id: &str| get(&server, &format!("/bucket/key?versionId={id}"), &[]).await;
    let latest = get(&server, "/bucket/key", &[]).await;
    assert_eq!((latest.body.as_slice(), version(&latest)), (b"two".as_slice(), two.clone()));
    for (id, body) in [("null", "before"), (&one, "one"), (&two, "two")] {
        let answer = read(id).await;
        assert_eq!((answer.text(), version(&answer)), (body, id.to_owned()));
    }
    assert_eq!(read("none").await.code(), "NoSuchVersion");
    // A deletion hides them all.
    let deleted = send(&server, "DELETE", "/bucket/key", &[], b"").await;
    let marker = version(&deleted);
    assert_eq!((deleted.status, deleted.header("x-amz-delete-marker")), (204, Some("true")));
    let gone = get(&server, "/bucket/key", &[]).await;
    assert_eq!((gone.status, &*gone.code(), version(&gone)), (404, "NoSuchKey", marker.clone()));
    assert_eq!(gone.header("x-amz-delete-marker"), Some("true"));
    assert_eq!((read(&marker).await.status, read(&one).await.body), (405, b"one".to_vec()));
    assert!(get(&server, "/bucket", &[]).await.all("Key").is_empty());
    assert_eq!(send(&server, "DELETE", "/bucket", &[], b"").await.code(), "BucketNotEmpty");
    // Without the marker the latest shows again, and without that the one before.
    let remove = async |id: &str| send(&server, "DELETE", &format!("/bucket/key?versionId={id}"), &[], b"").await;
    let removed = remove(&marker).await;
    assert_eq!((removed.status, removed.header("x-amz-delete-marker")), (204, Some("true")));
    assert_eq!(get(&server, "/bucket/key", &[]).await.body, b"two");
    assert_eq!(remove(&two).await.status, 204);
    assert_eq!(get(&server, "/bucket/key", &[]).await.body, b"one");
    for id in [&*one, "null"] {
        remove(id).await;
    }
    assert_eq!(send(&server, "DELETE", "/bucket", &[], b"").await.status, 204);
}

#[tokio::test]
async fn a_suspended_bucket_keeps_one_null_version() {
    let server = server().await;
    let one = version(&put(&server, "/bucket/key", b"one").await);
    set(&server, "Suspended").await;
    assert_eq!(version(&put(&server, "/bucket/key", b"two").await), "null");
    assert_eq!(version(&put(&server, "/bucket/key", b"three").await), "null");
    let listed = get(&server, "/bucket?versions", &[]).await;
    assert_eq!(listed.all("VersionId"), ["null", &one]);
    assert_eq!(listed.all("IsLatest"), ["true", "false"]);
    assert_eq!(get(&server, "/bucket/key?versionId=null", &[]).await.body, b"three");
    assert_eq!(version(&send(&server, "DELETE", "/bucket/key", &[], b"").await), "null");
    assert_eq!(get(&server, "/bucket/key?versionId=null", &[]).await.status, 405);
}

#[tokio::test]
async fn versions_are_listed_page_by_page() {
    let server = server().await;
    for key in ["a/1", "a/2", "b c", "key"] {
        for body in ["1", "2"] {
            put(&server, &super::client::path("bucket", key), body.as_bytes()).await;
        }
    }
    send(&server, "DELETE", "/bucket/a/1", &[], b"").await;
    let whole = get(&server, "/bucket?versions", &[]).await;
    let ids = |answer: &Answer| -> Vec<(String, String)> {
        answer.all("Key").into_iter().zip(answer.all("VersionId")).collect()
    };
    assert_eq!(whole.all("Key").len(), 10);
    assert_eq!(whole.text().matches("<DeleteMarker>").count(), 1);
    for limit in 1..=4 {
        let (mut found, mut key, mut id) = (Vec::new(), String::new(), String::new());
        loop {
            let limit = limit.to_string();
            let mut pairs = vec![("versions", ""), ("encoding-type", "url"), ("max-keys", &*limit)];
            if !key.is_empty() {
                pairs.extend([("key-marker", &*key), ("version-id-marker", &*id)]);
            }
            let page = get(&server, &format!("/bucket{}", query(&pairs)), &[]).await;
            found.extend(ids(&page));
            if page.one("IsTruncated").as_deref() != Some("true") {
                break;
            }
            (key, id) = (page.one("NextKeyMarker").unwrap(), page.one("NextVersionIdMarker").unwrap());
        }
        found.sort();
        let mut all = ids(&whole);
        all.sort();
        assert_eq!(found, all, "in pages of {limit}");
    }
    let folders = get(&server, "/bucket?versions&delimiter=/", &[]).await;
    assert_eq!(folders.all("Key"), ["b c", "b c", "key", "key", "key"]);
    assert!(folders.text().contains("<CommonPrefixes><Prefix>a/</Prefix></CommonPrefixes>"));
    assert_eq!(get(&server, "/bucket?versions&prefix=a/2", &[]).await.all("Key"), ["a/2", "a/2"]);
    let after = get(&server, "/bucket?versions&key-marker=b%20c", &[]).await;
    assert_eq!(after.all("Key"), ["key", "key", "key"]);
}

#[tokio::test]
async fn a_bucket_without_versions_lists_null_ones() {
    let builder = Origin::builder().anonymous(true).bucket("bucket").synthetic("data", Series::numbered("", 3, 10));
    let server = builder.start().await.unwrap();
    put(&server, "/bucket/key", b"x").await;
    assert_eq!(get(&server, "/bucket?versioning", &[]).await.one("Status"), None);
    for bucket in ["bucket", "data"] {
        let listed = get(&server, &format!("/{bucket}?versions"), &[]).await;
        assert!(listed.all("VersionId").iter().all(|id| id == "null"), "{}", listed.text());
    }
    assert_eq!(get(&server, "/data?versions", &[]).await.all("Key").len(), 3);
    assert_eq!(get(&server, "/bucket/key?versionId=null", &[]).await.body, b"x");
    assert_eq!(get(&server, "/bucket/key?versionId=other", &[]).await.code(), "NoSuchVersion");
}

#[tokio::test]
async fn copies_and_deletions_name_versions() {
    let server = server().await;
    let one = version(&put(&server, "/bucket/key", b"one").await);
    put(&server, "/bucket/key", b"two").await;
    let source = format!("bucket/key?versionId={one}");
    let copied = send(&server, "PUT", "/bucket/copy", &[("x-amz-copy-source", &source)], b"").await;
    assert_eq!((copied.status, copied.header("x-amz-copy-source-version-id")), (200, Some(&*one)));
    assert_eq!(get(&server, "/bucket/copy", &[]).await.body, b"one");
    let objects = format!(
        "<Delete><Object><Key>key</Key><VersionId>{one}</VersionId></Object><Object><Key>copy</Key></Object></Delete>"
    );
    let deleted = send(&server, "POST", "/bucket?delete", &[], objects.as_bytes()).await;
    assert_eq!((deleted.all("Key"), deleted.all("VersionId")), (vec!["key".into(), "copy".into()], vec![one.clone()]));
    assert_eq!(deleted.all("DeleteMarker"), ["true"]);
    assert_eq!(get(&server, &format!("/bucket/key?versionId={one}"), &[]).await.code(), "NoSuchVersion");
}

#[tokio::test]
async fn a_directory_keeps_versions_until_it_is_left_and_the_latest_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let start = || Origin::builder().anonymous(true).bucket("bucket").directory(folder.path()).start();
    let server = start().await.unwrap();
    put(&server, "/bucket/key", b"before").await;
    set(&server, "Enabled").await;
    let one = version(&put(&server, "/bucket/key", b"one").await);
    let two = version(&put(&server, "/bucket/key", b"two").await);
    put(&server, "/bucket/gone", b"x").await;
    send(&server, "DELETE", "/bucket/gone", &[], b"").await;
    let marker = version(&send(&server, "DELETE", "/bucket/key", &[], b"").await);
    assert_eq!(get(&server, "/bucket/key", &[]).await.status, 404);
    for (id, body) in [("null", "before"), (&*one, "one"), (&*two, "two")] {
        assert_eq!(get(&server, &format!("/bucket/key?versionId={id}"), &[]).await.text(), body);
    }
    for id in [&marker, &two] {
        send(&server, "DELETE", &format!("/bucket/key?versionId={id}"), &[], b"").await;
    }
    assert_eq!(get(&server, "/bucket/key", &[]).await.body, b"one");
    assert_eq!(get(&server, &format!("/bucket/key?versionId={one}"), &[]).await.body, b"one");
    set(&server, "Suspended").await;
    put(&server, "/bucket/key", b"null and last").await;
    server.stop().await;
    let server = start().await.unwrap();
    assert_eq!(get(&server, "/bucket", &[]).await.all("Key"), ["key"]);
    assert_eq!(get(&server, "/bucket/key", &[]).await.body, b"null and last");
    let files = std::fs::read_dir(folder.path().join("buckets/bucket/data")).unwrap().count();
    assert_eq!(files, 1, "what no record names is removed");
}

//! The directory store.

use std::path::Path;

use wirespeed_origin::{Origin, Running};

use super::client::{get, path, put, send};

async fn server(directory: &Path) -> Running {
    Origin::builder().anonymous(true).bucket("bucket").directory(directory).least_part(1).start().await.unwrap()
}

/// Every file below a folder.
fn files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
}

#[tokio::test]
async fn objects_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let long = "long/".repeat(200);
    let keys = ["plain", "../../escape", "/etc/passwd", "a//b", "emoji-😀", &long];
    let large: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    let first = server(folder.path()).await;
    for key in keys {
        let headers = [("content-type", "text/x-test"), ("x-amz-meta-a", "b"), ("x-amz-checksum-crc32", "NhCmhg==")];
        assert_eq!(send(&first, "PUT", &path("bucket", key), &headers, b"hello").await.status, 200, "{key}");
    }
    put(&first, "/bucket/large", &large).await;
    let before = send(&first, "HEAD", "/bucket/plain", &[], b"").await;
    first.stop().await;

    let second = server(folder.path()).await;
    assert_eq!(get(&second, "/bucket?encoding-type=url", &[]).await.all("Key").len(), keys.len() + 1);
    for key in keys {
        let answer = get(&second, &path("bucket", key), &[("x-amz-checksum-mode", "ENABLED")]).await;
        assert_eq!(answer.body, b"hello", "{key}");
        assert_eq!(answer.header("x-amz-checksum-crc32"), Some("NhCmhg=="), "{key}");
        for name in ["etag", "last-modified", "content-type", "x-amz-meta-a"] {
            assert_eq!(answer.header(name), before.header(name), "{key} {name}");
        }
    }
    assert_eq!(get(&second, "/bucket/large", &[]).await.body, large);
    let middle = get(&second, "/bucket/large", &[("range", "bytes=1048570-2097160")]).await;
    assert_eq!(middle.body, large[1_048_570..=2_097_160]);
    assert!(!folder.path().parent().unwrap().join("escape").exists());
}

#[tokio::test]
async fn what_is_replaced_deleted_or_unfinished_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let first = server(folder.path()).await;
    for body in [b"one".as_slice(), b"two"] {
        put(&first, "/bucket/key", body).await;
        put(&first, "/bucket/gone", body).await;
    }
    send(&first, "PUT", "/bucket/key", &[("if-none-match", "*")], b"refused").await;
    send(&first, "DELETE", "/bucket/gone", &[], b"").await;
    assert_eq!(files(folder.path()), 2, "a record and its bytes");
    let id = send(&first, "POST", "/bucket/parts?uploads", &[], b"").await.one("UploadId").unwrap();
    let mut etags = Vec::new();
    for number in 1..=3 {
        let path = format!("/bucket/parts?partNumber={number}&uploadId={id}");
        etags.push(put(&first, &path, format!("part {number};").as_bytes()).await.header("etag").unwrap().to_owned());
    }
    let parts = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{}</ETag></Part><Part><PartNumber>3</PartNumber>\
         <ETag>{}</ETag></Part></CompleteMultipartUpload>",
        etags[0], etags[2]
    );
    let done = send(&first, "POST", &format!("/bucket/parts?uploadId={id}"), &[], parts.as_bytes()).await;
    assert_eq!(done.status, 200, "{}", done.text());
    assert_eq!(files(folder.path()), 5, "two records, one file and two parts");
    send(&first, "POST", "/bucket/never?uploads", &[], b"").await;
    first.stop().await;

    let second = server(folder.path()).await;
    assert_eq!(get(&second, "/bucket/key", &[]).await.body, b"two");
    let parts = get(&second, "/bucket/parts", &[]).await;
    assert_eq!(
        (parts.body.as_slice(), parts.header("etag")),
        (b"part 1;part 3;".as_slice(), done_etag(&done).as_deref())
    );
    assert_eq!(get(&second, "/bucket/parts", &[("range", "bytes=5-8")]).await.body, b"1;pa");
    assert_eq!(get(&second, "/bucket?uploads", &[]).await.all("UploadId").len(), 0);
}

fn done_etag(done: &super::client::Answer) -> Option<String> {
    done.one("ETag").map(|etag| etag.replace("&quot;", "\""))
}

#[tokio::test]
async fn a_directory_that_cant_be_used_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = Origin::builder().directory(file.path()).start().await.unwrap_err();
    assert!(error.to_string().contains(&*file.path().to_string_lossy()), "{error}");
}

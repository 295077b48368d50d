//! What an object has besides its bytes: tags, class, encryption, checksums, an owner.

use wirespeed_origin::{Origin, Running, Series, synthetic_bytes};

use super::client::{Answer, get, put, send};

async fn server() -> Running {
    Origin::builder().anonymous(true).bucket("bucket").start().await.unwrap()
}

async fn put_with(server: &Running, path: &str, headers: &[(&str, &str)]) -> Answer {
    send(server, "PUT", path, headers, b"hello").await
}

#[tokio::test]
async fn tags_come_with_an_upload_and_are_replaced_and_removed() {
    let server = server().await;
    put_with(&server, "/bucket/key", &[("x-amz-tagging", "team=storage&path=a%2Fb+c")]).await;
    let tags = async |key: &str| {
        let answer = get(&server, &format!("/bucket/{key}?tagging"), &[]).await;
        (answer.all("Key"), answer.all("Value"))
    };
    assert_eq!(tags("key").await, (vec!["path".into(), "team".into()], vec!["a/b c".into(), "storage".into()]));
    for method in ["GET", "HEAD"] {
        assert_eq!(send(&server, method, "/bucket/key", &[], b"").await.header("x-amz-tagging-count"), Some("2"));
    }
    let source = ("x-amz-copy-source", "bucket/key");
    send(&server, "PUT", "/bucket/same", &[source], b"").await;
    assert_eq!(tags("same").await.0, ["path", "team"]);
    let replaced = [source, ("x-amz-tagging-directive", "REPLACE"), ("x-amz-tagging", "new=1")];
    send(&server, "PUT", "/bucket/other", &replaced, b"").await;
    assert_eq!(tags("other").await.0, ["new"]);
    let body = b"<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>";
    assert_eq!(send(&server, "PUT", "/bucket/key?tagging", &[], body).await.status, 200);
    assert_eq!(tags("key").await, (vec!["k".into()], vec!["v".into()]));
    assert_eq!(get(&server, "/bucket/key", &[]).await.body, b"hello");
    assert_eq!(send(&server, "DELETE", "/bucket/key?tagging", &[], b"").await.status, 204);
    assert!(tags("key").await.0.is_empty());
    assert_eq!(put_with(&server, "/bucket/bad", &[("x-amz-tagging", "a=1&a=2")]).await.code(), "InvalidTag");
}

#[tokio::test]
async fn a_storage_class_is_kept_and_listed() {
    let server = server().await;
    put_with(&server, "/bucket/key", &[("x-amz-storage-class", "STANDARD_IA"), ("x-amz-acl", "private")]).await;
    put(&server, "/bucket/plain", b"x").await;
    assert_eq!(get(&server, "/bucket/key", &[]).await.header("x-amz-storage-class"), Some("STANDARD_IA"));
    assert_eq!(get(&server, "/bucket", &[]).await.all("StorageClass"), ["STANDARD_IA", "STANDARD"]);
    let unknown = put_with(&server, "/bucket/x", &[("x-amz-storage-class", "ATTIC")]).await;
    assert_eq!((unknown.status, &*unknown.code()), (400, "InvalidStorageClass"));
    let large = put_with(&server, "/bucket/x", &[("x-amz-meta-large", &*"x".repeat(2048))]).await;
    assert_eq!((large.status, &*large.code()), (400, "MetadataTooLarge"));
    // A copy has the class that it asks for, and the standard one unless it asks.
    send(&server, "PUT", "/bucket/copy", &[("x-amz-copy-source", "bucket/key")], b"").await;
    assert_eq!(get(&server, "/bucket/copy", &[]).await.header("x-amz-storage-class"), None);
}

const SSE_C: &str = "x-amz-server-side-encryption-customer-algorithm";
const SSE_C_KEY: &str = "x-amz-server-side-encryption-customer-key";
const SSE_C_MD5: &str = "x-amz-server-side-encryption-customer-key-md5";
/// 32 bytes of zeros, and of ones, with their MD5s.
const ZEROS: [(&str, &str); 3] = [
    (SSE_C, "AES256"),
    (SSE_C_KEY, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
    (SSE_C_MD5, "cLyPS3KoaSFGi/joRB3OUQ=="),
];

#[tokio::test]
async fn an_object_put_with_a_key_is_read_with_that_key() {
    let server = server().await;
    let answer = put_with(&server, "/bucket/key", &ZEROS).await;
    assert_eq!(
        (answer.status, answer.header(SSE_C), answer.header(SSE_C_MD5)),
        (200, Some("AES256"), Some(ZEROS[2].1))
    );
    assert_eq!(get(&server, "/bucket/key", &ZEROS).await.body, b"hello");
    assert_eq!(get(&server, "/bucket/key", &[]).await.code(), "InvalidRequest");
    assert_eq!(send(&server, "HEAD", "/bucket/key", &[], b"").await.status, 400);
    let wrong_md5 = [ZEROS[0], ZEROS[1], (SSE_C_MD5, "AAAAAAAAAAAAAAAAAAAAAA==")];
    assert_eq!(get(&server, "/bucket/key", &wrong_md5).await.code(), "InvalidArgument");
    assert_eq!(put_with(&server, "/bucket/x", &ZEROS[..2]).await.code(), "InvalidArgument");
    put(&server, "/bucket/plain", b"x").await;
    assert_eq!(get(&server, "/bucket/plain", &ZEROS).await.code(), "InvalidRequest");
    // A copy reads with the source's key; the copy has none.
    let copy = [
        ("x-amz-copy-source", "bucket/key"),
        ("x-amz-copy-source-server-side-encryption-customer-algorithm", "AES256"),
        ("x-amz-copy-source-server-side-encryption-customer-key", ZEROS[1].1),
        ("x-amz-copy-source-server-side-encryption-customer-key-md5", ZEROS[2].1),
    ];
    assert_eq!(send(&server, "PUT", "/bucket/copy", &copy[..1], b"").await.code(), "InvalidRequest");
    assert_eq!(send(&server, "PUT", "/bucket/copy", &copy, b"").await.status, 200);
    assert_eq!(get(&server, "/bucket/copy", &[]).await.body, b"hello");
    // Every part of an upload brings the key.
    let begun = send(&server, "POST", "/bucket/large?uploads", &ZEROS, b"").await;
    let part = format!("/bucket/large?partNumber=1&uploadId={}", begun.one("UploadId").unwrap());
    assert_eq!(put_with(&server, &part, &[]).await.code(), "InvalidRequest");
    assert_eq!(put_with(&server, &part, &ZEROS).await.header(SSE_C), Some("AES256"));
}

#[tokio::test]
async fn managed_encryption_is_echoed() {
    let server = server().await;
    let sse = "x-amz-server-side-encryption";
    let kms = "x-amz-server-side-encryption-aws-kms-key-id";
    let answer = put_with(&server, "/bucket/s3", &[(sse, "AES256")]).await;
    assert_eq!(answer.header(sse), Some("AES256"));
    let answer = put_with(&server, "/bucket/kms", &[(sse, "aws:kms"), (kms, "my-key")]).await;
    assert_eq!((answer.header(sse), answer.header(kms)), (Some("aws:kms"), Some("my-key")));
    let read = get(&server, "/bucket/kms", &[]).await;
    assert_eq!((read.header(sse), read.header(kms)), (Some("aws:kms"), Some("my-key")));
    assert_eq!(put_with(&server, "/bucket/x", &[(sse, "rot13")]).await.code(), "InvalidArgument");
}

#[tokio::test]
async fn another_owner_than_expected_is_refused_and_a_requester_may_pay() {
    let server = server().await;
    let owner = "x-amz-expected-bucket-owner";
    assert_eq!(put_with(&server, "/bucket/key", &[(owner, "123456789012")]).await.status, 200);
    let refused = get(&server, "/bucket/key", &[(owner, "210987654321")]).await;
    assert_eq!((refused.status, &*refused.code()), (403, "AccessDenied"));
    let paid = get(&server, "/bucket/key", &[("x-amz-request-payer", "requester")]).await;
    assert_eq!(paid.header("x-amz-request-charged"), Some("requester"));
    assert_eq!(get(&server, "/bucket/key", &[]).await.header("x-amz-request-charged"), None);
}

#[tokio::test]
async fn every_checksum_is_verified_and_shown_for_the_whole_object_only() {
    let server = server().await;
    let checksums = [
        ("x-amz-checksum-crc32", "NhCmhg=="),
        ("x-amz-checksum-crc32c", "mnG7TA=="),
        ("x-amz-checksum-crc64nvme", "M3eFcAZSQlc="),
        ("x-amz-checksum-sha1", "qvTGHdzF6KLavt4PO0gs2a6pQ00="),
        ("x-amz-checksum-sha256", "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="),
    ];
    let mode = ("x-amz-checksum-mode", "ENABLED");
    for (name, value) in checksums {
        let stored = put_with(&server, "/bucket/key", &[(name, value)]).await;
        assert_eq!((stored.status, stored.header(name)), (200, Some(value)), "{}", stored.text());
        let wrong = send(&server, "PUT", "/bucket/key", &[(name, value)], b"hullo").await;
        assert_eq!((wrong.status, &*wrong.code()), (400, "BadDigest"));
        for method in ["GET", "HEAD"] {
            let whole = send(&server, method, "/bucket/key", &[mode], b"").await;
            assert_eq!((whole.header(name), whole.header("x-amz-checksum-type")), (Some(value), Some("FULL_OBJECT")));
            assert_eq!(send(&server, method, "/bucket/key", &[], b"").await.header(name), None);
            let covering = send(&server, method, "/bucket/key", &[mode, ("range", "bytes=0-4")], b"").await;
            assert_eq!((covering.status, covering.header(name)), (206, None), "{method} {covering:?}");
        }
    }
}

#[tokio::test]
async fn a_server_may_compute_checksums_by_itself_and_show_them_with_ranges() {
    let builder = Origin::builder().anonymous(true).bucket("bucket").default_checksum(true);
    let builder =
        builder.synthetic("data", Series::one("small", 1000)).synthetic("data", Series::one("large", 7_654_321));
    let server = builder.checksum_on_covering_range(true).start().await.unwrap();
    let header = "x-amz-checksum-crc64nvme";
    let stored = put_with(&server, "/bucket/key", &[]).await;
    assert_eq!(stored.header(header), Some("M3eFcAZSQlc="));
    let mode = ("x-amz-checksum-mode", "ENABLED");
    let covering = get(&server, "/bucket/key", &[mode, ("range", "bytes=0-")]).await;
    assert_eq!((covering.status, covering.header(header)), (206, Some("M3eFcAZSQlc=")));
    assert_eq!(get(&server, "/bucket/key", &[mode, ("range", "bytes=0-3")]).await.header(header), None);
    // Those of computed objects are reckoned, not read.
    for (key, size) in [("small", 1000), ("large", 7_654_321)] {
        let bytes = synthetic_bytes(0, key, 0, size);
        let copied = send(&server, "PUT", "/bucket/copy", &[], &bytes).await;
        let head = send(&server, "HEAD", &format!("/data/{key}"), &[mode], b"").await;
        assert_eq!(head.header(header), copied.header(header), "{key}");
    }
    // An upload by parts has one for the whole.
    let begun = send(&server, "POST", "/bucket/large?uploads", &[], b"").await;
    let id = begun.one("UploadId").unwrap();
    let part = put_with(&server, &format!("/bucket/large?partNumber=1&uploadId={id}"), &[]).await;
    let body = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{}</ETag></Part></CompleteMultipartUpload>",
        part.header("etag").unwrap()
    );
    let done = send(&server, "POST", &format!("/bucket/large?uploadId={id}"), &[], body.as_bytes()).await;
    assert_eq!(done.one("ChecksumCRC64NVME").as_deref(), Some("M3eFcAZSQlc="), "{}", done.text());
    assert_eq!(done.one("ChecksumType").as_deref(), Some("FULL_OBJECT"));
}

#[tokio::test]
async fn a_read_may_rename_its_headers() {
    let server = server().await;
    put(&server, "/bucket/key", b"x").await;
    let read = get(&server, "/bucket/key?response-content-type=text%2Fx&response-cache-control=none", &[]).await;
    assert_eq!((read.header("content-type"), read.header("cache-control")), (Some("text/x"), Some("none")));
}

//! Putting, reading, copying and deleting objects.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wirespeed_origin::{Action, EtagKind, Fault, Origin, Running, Verb};

use super::client::{Answer, get, path, put, send};

async fn server() -> Running {
    Origin::builder().anonymous(true).bucket("bucket").start().await.unwrap()
}

const AWKWARD: [&str; 16] = [
    "a//b",
    "c/./d",
    "../e",
    "/lead",
    "trail/",
    "sp ace",
    "pl+us",
    "per%cent",
    "%2F",
    "emoji-😀",
    "q?x",
    "h#y",
    "a&b=c",
    "é",
    "*'()!",
    "~",
];

#[tokio::test]
async fn awkward_keys_survive_put_list_get_copy_delete() {
    let server = server().await;
    for key in AWKWARD {
        assert_eq!(put(&server, &path("bucket", key), key.as_bytes()).await.status, 200, "{key}");
    }
    let mut sorted = AWKWARD.to_vec();
    sorted.sort_by_key(|key| key.as_bytes());
    let listed = get(&server, "/bucket?list-type=2&encoding-type=url", &[]).await;
    assert_eq!(listed.all("Key"), sorted);
    for key in AWKWARD {
        assert_eq!(get(&server, &path("bucket", key), &[]).await.body, key.as_bytes(), "{key}");
        let copy = format!("copy of {key}");
        let source = path("bucket", key);
        let copied = send(&server, "PUT", &path("bucket", &copy), &[("x-amz-copy-source", &source)], b"").await;
        assert_eq!(copied.status, 200, "{key}: {}", copied.text());
        assert_eq!(get(&server, &path("bucket", &copy), &[]).await.body, key.as_bytes(), "{key}");
        assert_eq!(send(&server, "DELETE", &path("bucket", key), &[], b"").await.status, 204, "{key}");
        assert_eq!(get(&server, &path("bucket", key), &[]).await.code(), "NoSuchKey", "{key}");
    }
}

#[tokio::test]
async fn ranges_are_what_http_says() {
    let server = server().await;
    let bytes: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8).collect();
    put(&server, "/bucket/key", &bytes).await;
    let size = bytes.len();
    let cases = [
        ("bytes=0-9", Some((0, 9))),
        ("bytes=100-100", Some((100, 100))),
        ("bytes=65530-131080", Some((65_530, 131_080))),
        ("bytes=199990-", Some((199_990, 199_999))),
        ("bytes=-7", Some((199_993, 199_999))),
        ("bytes=-999999", Some((0, 199_999))),
        ("bytes=199999-400000", Some((199_999, 199_999))),
        ("bytes=200000-", None),
        ("bytes=-0", None),
    ];
    for (range, expected) in cases {
        let answer = get(&server, "/bucket/key", &[("range", range)]).await;
        match expected {
            Some((first, last)) => {
                assert_eq!(answer.status, 206, "{range}");
                assert_eq!(answer.header("content-range"), Some(&*format!("bytes {first}-{last}/{size}")), "{range}");
                assert_eq!(answer.header("content-length"), Some(&*(last - first + 1).to_string()), "{range}");
                assert_eq!(answer.body, bytes[first..=last], "{range}");
            }
            None => {
                assert_eq!((answer.status, &*answer.code()), (416, "InvalidRange"), "{range}");
                assert_eq!(answer.header("content-range"), Some("bytes */200000"), "{range}");
                let told = (answer.one("RangeRequested"), answer.one("ActualObjectSize"));
                assert_eq!(told, (Some(range.to_owned()), Some("200000".to_owned())), "{range}");
            }
        }
    }
}

#[tokio::test]
async fn a_range_of_an_empty_object_is_told_that_it_is_empty() {
    let server = server().await;
    put(&server, "/bucket/empty", b"").await;
    let answer = get(&server, "/bucket/empty", &[("range", "bytes=0-8388607")]).await;
    assert_eq!((answer.status, &*answer.code()), (416, "InvalidRange"));
    assert_eq!(answer.one("ActualObjectSize").as_deref(), Some("0"));
    assert_eq!(answer.one("RangeRequested").as_deref(), Some("bytes=0-8388607"));
    assert_eq!(answer.header("content-range"), Some("bytes */0"));
    let head = send(&server, "HEAD", "/bucket/empty", &[("range", "bytes=0-8388607")], b"").await;
    assert_eq!((head.status, head.body.len()), (416, 0));
}

#[tokio::test]
async fn a_range_that_is_none_is_ignored() {
    let server = server().await;
    put(&server, "/bucket/key", b"0123456789").await;
    for range in ["bytes=5-2", "bytes=1-2,4-5", "lines=1-2", "bytes=x-"] {
        let answer = get(&server, "/bucket/key", &[("range", range)]).await;
        assert_eq!((answer.status, answer.body.len()), (200, 10), "{range}");
    }
}

#[tokio::test]
async fn a_bucket_can_be_named_by_the_host() {
    let server = Origin::builder().anonymous(true).bucket("dotted.bucket").domain("s3.test").start().await.unwrap();
    server.inject(Fault::new(Action::NoEtag).verb(Verb::Get).bucket("dotted.bucket").key("a/b"));
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let host = format!("dotted.bucket.s3.test:{}", server.address().port());
    let request = format!("PUT /a/b HTTP/1.1\r\nhost: {host}\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(server.stats().count(Verb::Put), 1);
    let read = get(&server, "/dotted.bucket/a/b", &[]).await;
    assert_eq!((read.body.as_slice(), read.header("etag")), (b"hello".as_slice(), None));
}

#[tokio::test]
async fn an_empty_object_has_no_range() {
    let server = server().await;
    put(&server, "/bucket/empty", b"").await;
    let whole = get(&server, "/bucket/empty", &[]).await;
    assert_eq!((whole.status, whole.header("content-length")), (200, Some("0")));
    let first = get(&server, "/bucket/empty", &[("range", "bytes=0-99")]).await;
    assert_eq!((first.status, first.header("content-range")), (416, Some("bytes */0")));
}

#[tokio::test]
async fn what_an_uploader_says_comes_back() {
    let server = server().await;
    let given = [
        ("content-type", "text/x-test"),
        ("content-encoding", "gzip"),
        ("content-language", "de"),
        ("content-disposition", "attachment"),
        ("cache-control", "no-store"),
        ("x-amz-meta-colour", "blue"),
    ];
    let stored = send(&server, "PUT", "/bucket/key", &given, b"hello").await;
    assert_eq!(stored.header("etag"), Some("\"5d41402abc4b2a76b9719d911017c592\""));
    for method in ["GET", "HEAD"] {
        let answer = send(&server, method, "/bucket/key", &[], b"").await;
        for (name, value) in given {
            assert_eq!(answer.header(name), Some(value), "{method} {name}");
        }
        assert_eq!(answer.header("etag"), stored.header("etag"), "{method}");
        assert!(answer.header("last-modified").is_some_and(|time| time.ends_with(" GMT")), "{method}");
        assert_eq!(answer.header("content-length"), Some("5"), "{method}");
        assert!(answer.header("x-amz-request-id").is_some(), "{method}");
    }
    // A copy takes them along, or takes others where told to.
    let source = [("x-amz-copy-source", "/bucket/key")];
    send(&server, "PUT", "/bucket/copy", &source, b"").await;
    assert_eq!(get(&server, "/bucket/copy", &[]).await.header("x-amz-meta-colour"), Some("blue"));
    let replaced = [source[0], ("x-amz-metadata-directive", "REPLACE"), ("x-amz-meta-colour", "red")];
    send(&server, "PUT", "/bucket/copy", &replaced, b"").await;
    let answer = get(&server, "/bucket/copy", &[]).await;
    assert_eq!((answer.header("x-amz-meta-colour"), answer.header("cache-control")), (Some("red"), None));
}

#[tokio::test]
async fn checksums_are_checked_kept_and_shown() {
    let server = server().await;
    // CRC-32 of "hello" is 0x3610a686, as zlib has it.
    let crc32 = ("x-amz-checksum-crc32", "NhCmhg==");
    assert_eq!(send(&server, "PUT", "/bucket/key", &[crc32], b"hello").await.header(crc32.0), Some(crc32.1));
    let wrong = send(&server, "PUT", "/bucket/key", &[crc32], b"hullo").await;
    assert_eq!((wrong.status, &*wrong.code()), (400, "BadDigest"));
    let wrong = send(&server, "PUT", "/bucket/key", &[("content-md5", "XUFAKrxLKna5cZ2REBfFkg==")], b"hullo").await;
    assert_eq!(wrong.code(), "BadDigest");
    let enabled = [("x-amz-checksum-mode", "ENABLED")];
    let answer = get(&server, "/bucket/key", &enabled).await;
    assert_eq!((answer.body.as_slice(), answer.header(crc32.0)), (b"hello".as_slice(), Some(crc32.1)));
    assert_eq!(answer.header("x-amz-checksum-type"), Some("FULL_OBJECT"));
    assert_eq!(get(&server, "/bucket/key", &[]).await.header(crc32.0), None);
    let part = get(&server, "/bucket/key", &[enabled[0], ("range", "bytes=0-1")]).await;
    assert_eq!(part.header(crc32.0), None);
}

#[tokio::test]
async fn a_fast_etag_tells_contents_apart_and_is_no_md5() {
    let server = Origin::builder().anonymous(true).bucket("bucket").etag(EtagKind::Fast).start().await.unwrap();
    let etag = |answer: Answer| answer.header("etag").unwrap().to_owned();
    let one = etag(put(&server, "/bucket/key", b"one").await);
    let two = etag(put(&server, "/bucket/key", b"two").await);
    let again = etag(put(&server, "/bucket/other", b"one").await);
    assert_ne!(one, two);
    assert_eq!(one, again);
    assert!(one.starts_with("\"crc64-"), "{one}");
}

#[tokio::test]
async fn many_are_deleted_at_once() {
    let server = server().await;
    for key in ["a", "b", "c"] {
        put(&server, &path("bucket", key), b"x").await;
    }
    let ask = |quiet: bool, keys: &[&str]| {
        let keys: String = keys.iter().map(|key| format!("<Object><Key>{key}</Key></Object>")).collect();
        format!("<Delete><Quiet>{quiet}</Quiet>{keys}</Delete>")
    };
    let answer = send(&server, "POST", "/bucket?delete", &[], ask(false, &["a", "never"]).as_bytes()).await;
    assert_eq!(answer.all("Key"), ["a", "never"]);
    let answer = send(&server, "POST", "/bucket?delete", &[], ask(true, &["b"]).as_bytes()).await;
    assert_eq!((answer.status, answer.all("Key").len()), (200, 0));
    assert_eq!(get(&server, "/bucket", &[]).await.all("Key"), ["c"]);
}

#[tokio::test]
async fn buckets_come_and_go() {
    let server = server().await;
    assert_eq!(send(&server, "PUT", "/new-one", &[], b"").await.status, 200);
    let again = send(&server, "PUT", "/new-one", &[], b"").await;
    assert_eq!((again.status, &*again.code()), (409, "BucketAlreadyOwnedByYou"));
    assert_eq!(get(&server, "/", &[]).await.all("Name"), ["bucket", "new-one"]);
    assert_eq!(send(&server, "HEAD", "/new-one", &[], b"").await.status, 200);
    put(&server, "/new-one/key", b"x").await;
    let full = send(&server, "DELETE", "/new-one", &[], b"").await;
    assert_eq!((full.status, &*full.code()), (409, "BucketNotEmpty"));
    send(&server, "DELETE", "/new-one/key", &[], b"").await;
    assert_eq!(send(&server, "DELETE", "/new-one", &[], b"").await.status, 204);
    assert_eq!(send(&server, "DELETE", "/new-one", &[], b"").await.code(), "NoSuchBucket");
    assert_eq!(send(&server, "HEAD", "/new-one", &[], b"").await.status, 404);
    assert_eq!(get(&server, "/new-one/key", &[]).await.code(), "NoSuchBucket");
    assert_eq!(send(&server, "PUT", "/UPPER", &[], b"").await.code(), "InvalidBucketName");
    assert!(get(&server, "/bucket?location", &[]).await.text().contains("LocationConstraint"));
}

#[tokio::test]
async fn buckets_are_listed_page_by_page() {
    let server = Origin::builder().anonymous(true).bucket("one").bucket("two").bucket("three").start().await.unwrap();
    let first = get(&server, "/?max-buckets=2", &[]).await;
    assert_eq!(first.all("Name"), ["one", "three"]);
    let token = first.one("ContinuationToken").unwrap();
    let rest = get(&server, &format!("/?max-buckets=2&continuation-token={token}"), &[]).await;
    assert_eq!((rest.all("Name"), rest.one("ContinuationToken")), (vec!["two".to_owned()], None));
    assert_eq!(get(&server, "/?prefix=t", &[]).await.all("Name"), ["three", "two"]);
}

#[tokio::test]
async fn a_refused_upload_is_answered_not_reset() {
    let server = server().await;
    let large = vec![7; 20 << 20];
    let answer = put(&server, "/no-such-bucket/key", &large).await;
    assert_eq!((answer.status, &*answer.code()), (404, "NoSuchBucket"));
}

#[tokio::test]
async fn a_discarding_bucket_counts_and_hashes_and_keeps_nothing() {
    let server = Origin::builder().anonymous(true).discarding_bucket("sink").start().await.unwrap();
    let stored = put(&server, "/sink/key", b"hello").await;
    assert_eq!(stored.header("etag"), Some("\"5d41402abc4b2a76b9719d911017c592\""));
    let head = send(&server, "HEAD", "/sink/key", &[], b"").await;
    assert_eq!(head.header("content-length"), Some("5"));
    assert_eq!(get(&server, "/sink/key", &[]).await.status, 500);
    assert_eq!(server.stats().count(Verb::Put), 1);
}

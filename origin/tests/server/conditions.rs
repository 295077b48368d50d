//! Conditional requests.

use wirespeed_origin::{Origin, Running};

use super::client::{get, put, send};

const ETAG: &str = "\"5d41402abc4b2a76b9719d911017c592\"";
const OTHER: &str = "\"00000000000000000000000000000000\"";
const PAST: &str = "Wed, 21 Oct 2015 07:28:00 GMT";
const FUTURE: &str = "Wed, 21 Oct 2099 07:28:00 GMT";

async fn server() -> Running {
    let server = Origin::builder().anonymous(true).bucket("bucket").start().await.unwrap();
    put(&server, "/bucket/key", b"hello").await;
    server
}

#[tokio::test]
async fn reads() {
    let server = server().await;
    let cases: [(&[(&str, &str)], u16); 13] = [
        (&[("if-match", ETAG)], 200),
        (&[("if-match", "*")], 200),
        (&[("if-match", OTHER)], 412),
        (&[("if-none-match", ETAG)], 304),
        (&[("if-none-match", "*")], 304),
        (&[("if-none-match", OTHER)], 200),
        (&[("if-modified-since", PAST)], 200),
        (&[("if-modified-since", FUTURE)], 304),
        (&[("if-unmodified-since", PAST)], 412),
        (&[("if-unmodified-since", FUTURE)], 200),
        // An ETag outranks a time.
        (&[("if-match", ETAG), ("if-unmodified-since", PAST)], 200),
        (&[("if-none-match", ETAG), ("if-modified-since", PAST)], 304),
        (&[("if-none-match", OTHER), ("if-modified-since", FUTURE)], 200),
    ];
    for (headers, status) in cases {
        for method in ["GET", "HEAD"] {
            let answer = send(&server, method, "/bucket/key", headers, b"").await;
            assert_eq!(answer.status, status, "{method} {headers:?}");
            if status == 304 {
                assert_eq!((answer.header("etag"), answer.body.len()), (Some(ETAG), 0), "{method} {headers:?}");
            }
        }
    }
}

#[tokio::test]
async fn writes() {
    let server = server().await;
    let cases: [(&str, &str, &str, u16); 6] = [
        ("key", "if-none-match", "*", 412),
        ("key", "if-match", OTHER, 412),
        ("new", "if-match", ETAG, 404),
        ("new", "if-none-match", "*", 200),
        ("key", "if-match", ETAG, 200),
        ("key", "if-none-match", ETAG, 501),
    ];
    for (key, name, value, status) in cases {
        let answer = send(&server, "PUT", &format!("/bucket/{key}"), &[(name, value)], b"other").await;
        assert_eq!(answer.status, status, "{key} {name}: {value}");
    }
    assert_eq!(get(&server, "/bucket/key", &[]).await.body, b"other");
}

#[tokio::test]
async fn copies() {
    let server = server().await;
    let source = ("x-amz-copy-source", "bucket/key");
    for (name, value, status) in [
        ("x-amz-copy-source-if-match", ETAG, 200),
        ("x-amz-copy-source-if-match", OTHER, 412),
        ("x-amz-copy-source-if-none-match", ETAG, 412),
    ] {
        let answer = send(&server, "PUT", "/bucket/copy", &[source, (name, value)], b"").await;
        assert_eq!(answer.status, status, "{name}: {value}");
    }
}

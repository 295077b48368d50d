//! Signatures: a signer of its own, straight from the specification's text.

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use wirespeed_origin::{Origin, Running};

use super::client::{Answer, get, send};

fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// Sends a request signed with these keys, whose payload hash is said to be `payload`.
async fn signed(server: &Running, method: &str, path: &str, keys: (&str, &str), payload: &str, body: &[u8]) -> Answer {
    signed_with(server, method, path, keys, payload, body, &[]).await
}

/// The same, with headers that are not signed.
async fn signed_with(
    server: &Running,
    method: &str,
    path: &str,
    keys: (&str, &str),
    payload: &str,
    body: &[u8],
    more: &[(&str, &str)],
) -> Answer {
    let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let scope = format!("{}/eu-central-1/s3/aws4_request", &time[..8]);
    let names = "host;x-amz-content-sha256;x-amz-date";
    let headers = format!("host:{}\nx-amz-content-sha256:{payload}\nx-amz-date:{time}\n", server.address());
    let canonical = format!("{method}\n{path}\n\n{headers}\n{names}\n{payload}");
    let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(Sha256::digest(canonical)));
    let key = format!("AWS4{}", keys.1).into_bytes();
    let key = scope.split('/').fold(key, |key, part| hmac(&key, part));
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={}",
        keys.0,
        hex(hmac(&key, &to_sign))
    );
    let headers = [("authorization", &*authorization), ("x-amz-content-sha256", payload), ("x-amz-date", &time)];
    send(server, method, path, &[&headers, more].concat(), body).await
}

const KEYS: (&str, &str) = ("access", "very secret");

#[tokio::test]
async fn only_right_signatures_are_let_in() {
    let server = Origin::builder().keys(KEYS.0, KEYS.1).bucket("bucket").start().await.unwrap();
    let hash = hex(Sha256::digest(b"hello"));
    let unsigned = "UNSIGNED-PAYLOAD";
    assert_eq!(signed(&server, "PUT", "/bucket/a%20b", KEYS, &hash, b"hello").await.status, 200);
    assert_eq!(signed(&server, "PUT", "/bucket/c", KEYS, unsigned, b"hello").await.status, 200);
    assert_eq!(signed(&server, "GET", "/bucket/a%20b", KEYS, unsigned, b"").await.body, b"hello");
    let changed = signed(&server, "PUT", "/bucket/c", KEYS, &hash, b"hullo").await;
    assert_eq!((changed.status, &*changed.code()), (400, "XAmzContentSHA256Mismatch"));
    assert_eq!(signed(&server, "GET", "/bucket/c", KEYS, unsigned, b"").await.body, b"hello");
    let wrong = signed(&server, "GET", "/bucket/c", (KEYS.0, "guessed"), unsigned, b"").await;
    assert_eq!((wrong.status, &*wrong.code()), (403, "SignatureDoesNotMatch"));
    let unknown = signed(&server, "GET", "/bucket/c", ("nobody", KEYS.1), unsigned, b"").await;
    assert_eq!((unknown.status, &*unknown.code()), (403, "InvalidAccessKeyId"));
    let nobody = get(&server, "/bucket/c", &[]).await;
    assert_eq!((nobody.status, &*nobody.code()), (403, "AccessDenied"));
}

#[tokio::test]
async fn anonymous_is_not_careless() {
    let server = Origin::builder().keys(KEYS.0, KEYS.1).anonymous(true).bucket("bucket").start().await.unwrap();
    assert_eq!(get(&server, "/bucket", &[]).await.status, 200);
    let wrong = signed(&server, "GET", "/bucket", (KEYS.0, "guessed"), "UNSIGNED-PAYLOAD", b"").await;
    assert_eq!(wrong.status, 403);
    // The framing of an aws-chunked body would be kept as content.
    let framed =
        [("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"), ("x-amz-trailer", "x-amz-checksum-crc32")];
    assert_eq!(send(&server, "PUT", "/bucket/key", &framed, b"5\r\nhello\r\n0\r\n\r\n").await.status, 501);
}

#[tokio::test]
async fn a_framed_body_is_taken_apart_and_its_trailer_checked() {
    let server = Origin::builder().keys(KEYS.0, KEYS.1).bucket("bucket").start().await.unwrap();
    let framing = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
    let headers = [
        ("content-encoding", "aws-chunked"),
        ("x-amz-decoded-content-length", "5"),
        ("x-amz-trailer", "x-amz-checksum-crc32"),
    ];
    let right = b"2\r\nhe\r\n3\r\nllo\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n";
    let stored = signed_with(&server, "PUT", "/bucket/key", KEYS, framing, right, &headers).await;
    assert_eq!((stored.status, stored.header("x-amz-checksum-crc32")), (200, Some("NhCmhg==")), "{}", stored.text());
    let read = signed(&server, "GET", "/bucket/key", KEYS, "UNSIGNED-PAYLOAD", b"").await;
    assert_eq!((read.body.as_slice(), read.header("content-encoding")), (b"hello".as_slice(), None));
    let wrong = b"5\r\nhullo\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n";
    let refused = signed_with(&server, "PUT", "/bucket/key", KEYS, framing, wrong, &headers).await;
    assert_eq!((refused.status, &*refused.code()), (400, "BadDigest"));
}

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

/// The same, with more headers under the signature.
async fn signed_with(
    server: &Running,
    method: &str,
    path: &str,
    keys: (&str, &str),
    payload: &str,
    body: &[u8],
    more: &[(&str, &str)],
) -> Answer {
    signed_for("s3", server, method, path, keys, payload, body, more).await
}

/// The same, for another service.
#[allow(clippy::too_many_arguments)]
async fn signed_for(
    service: &str,
    server: &Running,
    method: &str,
    path: &str,
    keys: (&str, &str),
    payload: &str,
    body: &[u8],
    more: &[(&str, &str)],
) -> Answer {
    let scope = ("eu-central-1", service);
    let headers = authorized(scope, server, method, path, keys, payload, more);
    let headers: Vec<_> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
    send(server, method, path, &headers, body).await
}

/// The headers of a request that is signed for this region and service: these, and those of the signature.
fn authorized(
    (region, service): (&str, &str),
    server: &Running,
    method: &str,
    path: &str,
    keys: (&str, &str),
    payload: &str,
    more: &[(&str, &str)],
) -> Vec<(String, String)> {
    let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let scope = format!("{}/{region}/{service}/aws4_request", &time[..8]);
    let address = server.address().to_string();
    let mut signed = [&[("host", &*address), ("x-amz-content-sha256", payload), ("x-amz-date", &time)], more].concat();
    signed.sort_unstable();
    let names = signed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let headers: String = signed.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let (bare, query) = path.split_once('?').unwrap_or((path, ""));
    let query = if query.is_empty() || query.contains('=') { query.to_owned() } else { format!("{query}=") };
    let canonical = format!("{method}\n{bare}\n{query}\n{headers}\n{names}\n{payload}");
    let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(Sha256::digest(canonical)));
    let key = format!("AWS4{}", keys.1).into_bytes();
    let key = scope.split('/').fold(key, |key, part| hmac(&key, part));
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={}",
        keys.0,
        hex(hmac(&key, &to_sign))
    );
    let given = [("authorization", &*authorization), ("x-amz-content-sha256", payload), ("x-amz-date", &time)];
    given.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
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

/// A presigned path: signed so many seconds ago, for so long.
fn presigned(server: &Running, method: &str, path: &str, keys: (&str, &str), ago: i64, expires: u32) -> String {
    let time = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(ago);
    let time = time.strftime("%Y%m%dT%H%M%SZ").to_string();
    let scope = format!("{}/eu-central-1/s3/aws4_request", &time[..8]);
    let (path, more) = path.split_once('?').map_or((path, String::new()), |(path, name)| (path, format!("&{name}=")));
    let query = format!(
        "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={}%2F{}&X-Amz-Date={time}&X-Amz-Expires={expires}&\
         X-Amz-SignedHeaders=host{more}",
        keys.0,
        scope.replace('/', "%2F")
    );
    let canonical = format!("{method}\n{path}\n{query}\nhost:{}\n\nhost\nUNSIGNED-PAYLOAD", server.address());
    let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(Sha256::digest(canonical)));
    let key = scope.split('/').fold(format!("AWS4{}", keys.1).into_bytes(), |key, part| hmac(&key, part));
    format!("{path}?{query}&X-Amz-Signature={}", hex(hmac(&key, &to_sign)))
}

#[tokio::test]
async fn a_presigned_request_holds_until_it_expires() {
    let server = Origin::builder().keys(KEYS.0, KEYS.1).bucket("bucket").start().await.unwrap();
    let put = presigned(&server, "PUT", "/bucket/key", KEYS, 0, 60);
    assert_eq!(send(&server, "PUT", &put, &[], b"hello").await.status, 200);
    // Longer ago than a clock may be wrong.
    let read = presigned(&server, "GET", "/bucket/key", KEYS, 3000, 3600);
    assert_eq!(get(&server, &read, &[]).await.body, b"hello");
    let expired = get(&server, &presigned(&server, "GET", "/bucket/key", KEYS, 120, 60), &[]).await;
    assert_eq!((expired.status, &*expired.code()), (403, "AccessDenied"));
    let early = get(&server, &presigned(&server, "GET", "/bucket/key", KEYS, -3000, 3600), &[]).await;
    assert_eq!((early.status, &*early.code()), (403, "RequestTimeTooSkewed"));
    let forged = get(&server, &presigned(&server, "GET", "/bucket/key", (KEYS.0, "guess"), 0, 60), &[]).await;
    assert_eq!((forged.status, &*forged.code()), (403, "SignatureDoesNotMatch"));
    let other = put.replace("/bucket/key", "/bucket/other");
    assert_eq!(send(&server, "PUT", &other, &[], b"hello").await.code(), "SignatureDoesNotMatch");
}

#[tokio::test]
async fn temporary_keys_need_their_token_and_expire() {
    let server =
        Origin::builder().bucket("bucket").temporary_keys("temp", "secret", "the token").start().await.unwrap();
    let list = async |keys: (&str, &str), token: &[(&str, &str)]| {
        signed_with(&server, "GET", "/bucket", keys, "UNSIGNED-PAYLOAD", b"", token).await
    };
    let keys = ("temp", "secret");
    assert_eq!(list(keys, &[("x-amz-security-token", "the token")]).await.status, 200);
    let without = list(keys, &[]).await;
    assert_eq!((without.status, &*without.code()), (400, "InvalidToken"));
    assert_eq!(list(keys, &[("x-amz-security-token", "another")]).await.code(), "InvalidToken");
    server.expire_keys("temp");
    let expired = list(keys, &[("x-amz-security-token", "the token")]).await;
    assert_eq!((expired.status, &*expired.code()), (400, "ExpiredToken"));
    server.add_keys("fresh", "secret", None);
    assert_eq!(list(("fresh", "secret"), &[]).await.status, 200);
}

#[tokio::test]
async fn a_directory_bucket_is_used_within_a_session() {
    let bucket = "data--use1-az4--x-s3";
    let server = Origin::builder().keys(KEYS.0, KEYS.1).bucket(bucket).bucket("bucket").start().await.unwrap();
    let unsigned = "UNSIGNED-PAYLOAD";
    let open = async |bucket: &str| {
        let path = format!("/{bucket}?session");
        signed_for("s3express", &server, "GET", &path, KEYS, unsigned, b"", &[]).await
    };
    assert_eq!(open("bucket").await.status, 400, "no session with an ordinary bucket");
    let session = open(bucket).await;
    assert_eq!(session.status, 200, "{}", session.text());
    let field = |name: &str| session.one(name).unwrap();
    let (access, secret, token) = (field("AccessKeyId"), field("SecretAccessKey"), field("SessionToken"));
    let ask = async |method: &str, keys: (&str, &str), headers: &[(&str, &str)], body: &[u8]| {
        let path = format!("/{bucket}/key");
        signed_for("s3express", &server, method, &path, keys, unsigned, body, headers).await
    };
    let with_token = [("x-amz-s3session-token", &*token)];
    assert_eq!(ask("PUT", (&access, &secret), &with_token, b"hello").await.status, 200);
    assert_eq!(ask("GET", (&access, &secret), &with_token, b"").await.body, b"hello");
    assert_eq!(ask("GET", (&access, &secret), &[], b"").await.code(), "InvalidToken");
    assert_eq!(ask("GET", KEYS, &[], b"").await.code(), "AccessDenied");
    assert_eq!(
        ask("GET", (&access, "guessed"), &with_token, b"").await.status,
        501,
        "s3express is only known when right"
    );
    server.expire_sessions();
    assert_eq!(ask("GET", (&access, &secret), &with_token, b"").await.code(), "ExpiredToken");
}

#[tokio::test]
async fn headers_of_s3_that_no_signature_covers_are_refused() {
    let server = Origin::builder().keys(KEYS.0, KEYS.1).bucket("bucket").start().await.unwrap();
    server.put_object("bucket", "secret", "secret").await.unwrap();
    let loose = [("x-amz-copy-source", "/bucket/secret"), ("x-amz-meta-role", "admin")];
    let scope = ("eu-central-1", "s3");
    let mut headers = authorized(scope, &server, "PUT", "/bucket/key", KEYS, "UNSIGNED-PAYLOAD", &[]);
    headers.extend(loose.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let headers: Vec<_> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
    let by_header = send(&server, "PUT", "/bucket/key", &headers, b"hello").await;
    let url = presigned(&server, "PUT", "/bucket/key", KEYS, 0, 60);
    let by_query = send(&server, "PUT", &url, &loose, b"hello").await;
    for refused in [by_header, by_query] {
        assert_eq!((refused.status, &*refused.code()), (403, "AccessDenied"), "{}", refused.text());
        assert_eq!(refused.one("HeadersNotSigned").unwrap(), "x-amz-copy-source, x-amz-meta-role");
    }
    assert_eq!(server.object("bucket", "key").await, None);
    // Of headers that are not S3's own the signature need say nothing.
    assert_eq!(send(&server, "PUT", &url, &[("content-type", "text/plain")], b"hello").await.status, 200);
    let url = presigned(&server, "PUT", "/bucket/key", KEYS, 0, 60).replace("SignedHeaders=host", "SignedHeaders=");
    let without_host = send(&server, "PUT", &url, &[], b"hello").await;
    assert_eq!(without_host.one("HeadersNotSigned").as_deref(), Some("host"), "{}", without_host.text());
    let head = send(&server, "HEAD", &presigned(&server, "HEAD", "/bucket/key", KEYS, 0, 60), &loose, b"").await;
    assert_eq!((head.status, head.body.len()), (403, 0));
}

#[tokio::test]
async fn a_document_under_a_signature_is_checked_and_read() {
    let server = Origin::builder().keys(KEYS.0, KEYS.1).bucket("bucket").start().await.unwrap();
    let body = "<Delete><Object><Key>a<![CDATA[b]]>&#x1F600;</Key></Object></Delete>";
    let key = "ab\u{1f600}";
    let hash = hex(Sha256::digest(body));
    let put = async || server.put_object("bucket", key, "x").await.unwrap();
    let framed = format!("{:x}\r\n{body}\r\n0\r\nx-amz-checksum-crc32:{{}}\r\n\r\n", body.len());
    let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, body.as_bytes()) as u32;
    let crc = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, crc.to_be_bytes());
    let length = body.len().to_string();
    let trailer = [("x-amz-decoded-content-length", &*length), ("x-amz-trailer", "x-amz-checksum-crc32")];
    let framing = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
    let post = "/bucket?delete";
    put().await;
    for (keys, payload, sent, code) in [
        ((KEYS.0, "guessed"), &*hash, body.to_owned(), "SignatureDoesNotMatch"),
        (KEYS, &hex(Sha256::digest("other")), body.to_owned(), "XAmzContentSHA256Mismatch"),
        (KEYS, framing, framed.replace("{}", "AAAAAA=="), "BadDigest"),
    ] {
        let more = if payload == framing { &trailer[..] } else { &[] };
        let refused = signed_with(&server, "POST", post, keys, payload, sent.as_bytes(), more).await;
        assert_eq!(refused.code(), code, "{}", refused.text());
        assert!(server.object("bucket", key).await.is_some());
    }
    let nobody = send(&server, "POST", post, &[], body.as_bytes()).await;
    assert_eq!((nobody.status, &*nobody.code()), (403, "AccessDenied"));
    for (payload, sent) in
        [(&*hash, body.to_owned()), ("UNSIGNED-PAYLOAD", body.to_owned()), (framing, framed.replace("{}", &crc))]
    {
        put().await;
        let more = if payload == framing { &trailer[..] } else { &[] };
        let done = signed_with(&server, "POST", post, KEYS, payload, sent.as_bytes(), more).await;
        assert_eq!(done.status, 200, "{payload}: {}", done.text());
        assert_eq!(server.object("bucket", key).await, None, "{payload}");
    }
    put().await;
    let presigned_with = |keys| presigned(&server, "POST", post, keys, 0, 60);
    let refused = send(&server, "POST", &presigned_with((KEYS.0, "guessed")), &[], body.as_bytes()).await;
    assert_eq!(refused.code(), "SignatureDoesNotMatch");
    let done = send(&server, "POST", &presigned_with(KEYS), &[], body.as_bytes()).await;
    assert_eq!((done.status, server.object("bucket", key).await), (200, None), "{}", done.text());
}

#[tokio::test]
async fn a_signature_for_no_region_is_told_which_to_sign_for() {
    let server = Origin::builder().keys(KEYS.0, KEYS.1).region("eu-west-3").bucket("bucket").start().await.unwrap();
    for (region, status) in [("US", 400), ("EU", 400), ("", 400), ("us-east-1", 200), ("eu-west-3", 200)] {
        let headers = authorized((region, "s3"), &server, "GET", "/bucket", KEYS, "UNSIGNED-PAYLOAD", &[]);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        let answer = get(&server, "/bucket", &headers).await;
        assert_eq!(answer.status, status, "{region}: {}", answer.text());
        if status == 400 {
            assert_eq!(
                (&*answer.code(), &*answer.one("Region").unwrap()),
                ("AuthorizationHeaderMalformed", "eu-west-3")
            );
        }
    }
}

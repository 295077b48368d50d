//! The signer against AWS's published examples and against AWS's own implementation.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SessionTokenMode, SignableBody, SignableRequest, SignatureLocation,
    SigningSettings, UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use proptest::prelude::*;

use super::*;
use crate::wire::request::{Method, Payload, Request, write_request};

const KEY_ID: &str = "AKIAIOSFODNN7EXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

/// 2013-05-24T00:00:00Z, the time of the published examples.
const EXAMPLE_TIME: u64 = 1_369_353_600;

fn at(second: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(second)
}

fn example_signer() -> Signer {
    Signer::new(KEY_ID, SECRET, None, "us-east-1", "s3")
}

fn head(request: &Request<'_>, signer: &Signer, now: SystemTime) -> String {
    let mut out = Vec::new();
    write_request(&mut out, request, Some(signer), now).unwrap();
    String::from_utf8(out).unwrap()
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

fn example<'a>() -> Request<'a> {
    Request {
        method: Method::Get,
        host: "examplebucket.s3.amazonaws.com",
        path_prefix: "",
        key: "",
        query: &[],
        headers: &[],
        content_length: None,
        payload: Payload::Empty,
    }
}

/// "Signature Calculations for the Authorization Header", Amazon S3 API Reference.
#[test]
fn the_published_examples_are_reproduced() {
    let signer = example_signer();
    let check = |request: Request<'_>, names: &str, signature: &str| {
        let text = head(&request, &signer, at(EXAMPLE_TIME));
        assert_eq!(
            header(&text, "authorization").unwrap(),
            format!(
                "AWS4-HMAC-SHA256 Credential={KEY_ID}/20130524/us-east-1/s3/aws4_request, SignedHeaders={names}, Signature={signature}"
            )
        );
    };
    check(
        Request { key: "test.txt", headers: &[("range", "bytes=0-9")], ..example() },
        "host;range;x-amz-content-sha256;x-amz-date",
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
    );
    check(
        Request {
            method: Method::Put,
            key: "test$file.text",
            headers: &[("x-amz-storage-class", "REDUCED_REDUNDANCY"), ("date", "Fri, 24 May 2013 00:00:00 GMT")],
            payload: Payload::Sha256(Sha256::digest("Welcome to Amazon S3.").into()),
            ..example()
        },
        "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
    );
    check(
        Request { query: &[("lifecycle", "")], ..example() },
        "host;x-amz-content-sha256;x-amz-date",
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
    );
    check(
        Request { query: &[("prefix", "J"), ("max-keys", "2")], ..example() },
        "host;x-amz-content-sha256;x-amz-date",
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
    );
}

#[test]
fn secrets_do_not_show() {
    let signer = Signer::new(KEY_ID, SECRET, Some("the-token"), "us-east-1", "s3");
    let shown = format!("{signer:?} {signer:#?}");
    assert!(shown.contains(KEY_ID) && shown.contains("us-east-1"));
    assert!(!shown.contains(SECRET) && !shown.contains("the-token"));
}

#[test]
fn identities_that_would_break_a_head_are_refused() {
    let refused =
        |signer: &Signer| write_request(&mut Vec::new(), &example(), Some(signer), at(EXAMPLE_TIME)).unwrap_err();
    assert_eq!(refused(&Signer::new("a b", "s", None, "r", "s3")), RequestError::Identity("the access key id"));
    assert_eq!(refused(&Signer::new("a", "s", None, "r\r\nx", "s3")), RequestError::Identity("the region"));
    assert_eq!(refused(&Signer::new("a", "s", None, "", "s3")), RequestError::Identity("the region"));
    assert_eq!(refused(&Signer::new("a", "s", Some("t\n"), "r", "s3")), RequestError::Identity("the session token"));
    let signer = example_signer();
    for clock in [UNIX_EPOCH - Duration::from_secs(1), at(300_000_000_000)] {
        assert_eq!(write_request(&mut Vec::new(), &example(), Some(&signer), clock), Err(RequestError::Clock));
    }
}

/// One signer, used over seconds and days and in turn with another, signs as a fresh one does.
#[test]
fn what_is_cached_never_shows() {
    let (kept, other) = (example_signer(), Signer::new(KEY_ID, SECRET, None, "eu-west-1", "s3"));
    for second in [0, 1, 1, 86_399, 86_400, 86_401, 1, 200_000, 200_000] {
        let now = at(EXAMPLE_TIME + second);
        assert_eq!(head(&example(), &kept, now), head(&example(), &example_signer(), now));
        if second % 2 == 0 {
            assert_ne!(head(&example(), &kept, now), head(&example(), &other, now));
        }
    }
}

#[test]
fn many_threads_share_a_signer() {
    let signer = example_signer();
    let expected = head(&example(), &signer, at(EXAMPLE_TIME));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for second in 0..50 {
                    let _ = head(&example(), &signer, at(EXAMPLE_TIME + second * 50_000));
                }
                assert_eq!(head(&example(), &signer, at(EXAMPLE_TIME)), expected);
            });
        }
    });
}

/// What AWS's implementation puts into the `Authorization` header of the request that `text` holds.
fn reference(text: &str, request: &Request<'_>, identity: &Identity, now: SystemTime) -> String {
    let credentials = Credentials::new(&identity.key_id, &identity.secret, identity.token.clone(), None, "test");
    let mut settings = SigningSettings::default();
    settings.percent_encoding_mode = PercentEncodingMode::Single;
    settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    settings.signature_location = SignatureLocation::Headers;
    settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    settings.session_token_mode = SessionTokenMode::Include;
    settings.excluded_headers = None;
    let identity_of = credentials.into();
    let params = v4::SigningParams::builder()
        .identity(&identity_of)
        .region(&identity.region)
        .name("s3")
        .time(now)
        .settings(settings)
        .build()
        .unwrap()
        .into();
    // The target as it went out; the headers as the caller gave them.
    let target = text.split(' ').nth(1).unwrap();
    let uri = format!("http://{}{target}", request.host);
    let body = match request.payload {
        Payload::Empty => SignableBody::Bytes(b""),
        Payload::Unsigned => SignableBody::UnsignedPayload,
        Payload::UnsignedTrailer => SignableBody::StreamingUnsignedPayloadTrailer,
        Payload::Sha256(hash) => SignableBody::Precomputed(String::from_utf8(hex(&hash).to_vec()).unwrap()),
    };
    let headers = [("host", request.host)].into_iter().chain(request.headers.iter().copied());
    let signable = SignableRequest::new(request.method.as_str(), uri, headers, body).unwrap();
    let (instructions, _) = sign(signable, &params).unwrap().into_parts();
    let authorization = instructions.headers().find(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    authorization.unwrap().1.to_owned()
}

#[derive(Debug, Clone)]
struct Identity {
    key_id: String,
    secret: String,
    token: Option<String>,
    region: String,
}

fn identities() -> impl Strategy<Value = Identity> {
    (
        "[A-Z0-9]{1,20}",
        "[ -~]{1,100}",
        prop::option::of("[A-Za-z0-9+/=]{1,400}"),
        prop::sample::select(vec!["us-east-1", "eu-central-1", "auto", "ap-southeast-4"]),
    )
        .prop_map(|(key_id, secret, token, region)| Identity { key_id, secret, token, region: region.into() })
}

fn keys() -> impl Strategy<Value = String> {
    let awkward = prop::sample::select(vec![
        "",
        "a//b",
        "c/./d",
        "../e",
        "/lead",
        "trail/",
        "a b",
        "a+b",
        "100%",
        "%2F",
        "🚀/é",
        "a?b=c&d#e",
        "*'()!",
        "~tilde",
        "\t\n",
    ]);
    prop_oneof![awkward.prop_map(str::to_owned), any::<String>(), "[a-z/. +%]{0,40}"]
}

fn headers() -> impl Strategy<Value = Vec<(String, String)>> {
    let name = prop_oneof![
        "x-amz-meta-[a-z0-9-]{1,12}",
        prop::sample::select(vec!["range", "if-match", "content-type", "expect", "a", "z", "x-amz-acl"])
            .prop_map(str::to_owned),
    ];
    // AWS's own implementation trims spaces only, so tabs stand inside.
    let value = prop_oneof![
        "[!-~]{1,20}",
        "[ ab]{0,12}",
        " {0,3}[!-~][ -~\t]{0,20}[!-~] {0,3}",
        Just(String::new()),
        Just("  a   b  ".to_owned())
    ];
    prop::collection::btree_map(name, value, 0..20).prop_map(|map| map.into_iter().rev().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn signatures_are_those_of_aws(
        method in prop::sample::select(vec![Method::Get, Method::Head, Method::Put, Method::Post, Method::Delete]),
        host in prop::sample::select(vec!["bucket.s3.amazonaws.com", "localhost:9000", "127.0.0.1:8080", "minio"]),
        path_prefix in prop::sample::select(vec!["", "/bucket", "/b%20c/x"]),
        key in keys(),
        query in prop::collection::vec(("[a-zA-Z0-9~._-]{1,8}|[!-~]{1,8}|\\PC{1,4}", "[ -~]{0,12}|\\PC{0,6}"), 0..8),
        headers in headers(),
        payload in prop_oneof![Just(Payload::Empty), Just(Payload::Unsigned), Just(Payload::UnsignedTrailer), any::<[u8; 32]>().prop_map(Payload::Sha256)],
        identity in identities(),
        second in prop_oneof![0u64..4_000_000_000, Just(EXAMPLE_TIME), Just(1_709_164_800)],
    ) {
        let query: Vec<_> = query.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let request = Request {
            method, host, path_prefix, key: &key, query: &query, headers: &headers, content_length: Some(7), payload,
        };
        let signer = Signer::new(&identity.key_id, &identity.secret, identity.token.as_deref(), &identity.region, "s3");
        let text = head(&request, &signer, at(second));
        prop_assert_eq!(header(&text, "authorization").unwrap(), reference(&text, &request, &identity, at(second)));
        prop_assert_eq!(header(&text, "x-amz-security-token"), identity.token.as_deref());
        prop_assert!(text.ends_with("\r\n\r\n") && text.is_ascii());
        prop_assert_eq!(text.matches("\r\n\r\n").count(), 1);
    }
}

//! Presigned URLs against AWS's published example and against AWS's own implementation.

use std::time::{Duration, UNIX_EPOCH};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SessionTokenMode, SignableBody, SignableRequest, SignatureLocation,
    SigningSettings, UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use proptest::prelude::*;

use super::*;
use crate::wire::request::{Method, Payload};

const KEY_ID: &str = "AKIAIOSFODNN7EXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

fn at(second: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(second)
}

fn example<'a>() -> Request<'a> {
    Request {
        method: Method::Get,
        host: "examplebucket.s3.amazonaws.com",
        path_prefix: "",
        key: "test.txt",
        query: &[],
        headers: &[],
        content_length: None,
        payload: Payload::Empty,
    }
}

/// "Authenticating Requests: Using Query Parameters", Amazon S3 API Reference.
#[test]
fn the_published_example_is_reproduced() {
    let signer = Signer::new(KEY_ID, SECRET, None, "us-east-1", "s3");
    assert_eq!(
        presign(&example(), &signer, at(1_369_353_600), 86_400).unwrap(),
        "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
         &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
         &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    );
}

#[test]
fn what_cannot_stand_in_a_head_is_refused() {
    let signer = Signer::new(KEY_ID, SECRET, None, "us-east-1", "s3");
    let refused = |request: &Request<'_>| presign(request, &signer, at(1), 1).unwrap_err();
    assert_eq!(refused(&Request { host: "a b", ..example() }), RequestError::Host);
    let headers = [("content-type", "a\r\nb")];
    assert_eq!(refused(&Request { headers: &headers, ..example() }), RequestError::HeaderValue("content-type".into()));
    let twice = [("range", "a"), ("range", "b")];
    assert_eq!(refused(&Request { headers: &twice, ..example() }), RequestError::RepeatedHeader("range".into()));
}

/// The signature that AWS's implementation gives the same URL.
fn reference(request: &Request<'_>, token: Option<&str>, now: SystemTime, expires: u64) -> String {
    let credentials = Credentials::new(KEY_ID, SECRET, token.map(str::to_owned), None, "test");
    let mut settings = SigningSettings::default();
    settings.percent_encoding_mode = PercentEncodingMode::Single;
    settings.payload_checksum_kind = PayloadChecksumKind::NoHeader;
    settings.signature_location = SignatureLocation::QueryParams;
    settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    settings.session_token_mode = SessionTokenMode::Include;
    settings.excluded_headers = None;
    settings.expires_in = Some(Duration::from_secs(expires));
    let identity = credentials.into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region("eu-central-1")
        .name("s3")
        .time(now)
        .settings(settings)
        .build()
        .unwrap()
        .into();
    let mut target = Vec::new();
    write_path(&mut target, request).unwrap();
    if !request.query.is_empty() {
        target.push(b'?');
        uri::write_query(&mut target, request.query);
    }
    let uri = format!("http://{}{}", request.host, String::from_utf8(target).unwrap());
    let headers = [("host", request.host)].into_iter().chain(request.headers.iter().copied());
    let signable = SignableRequest::new(request.method.as_str(), uri, headers, SignableBody::UnsignedPayload).unwrap();
    let (instructions, _) = sign(signable, &params).unwrap().into_parts();
    let (_, params) = instructions.into_parts();
    params.into_iter().find(|(name, _)| *name == "X-Amz-Signature").unwrap().1.into_owned()
}

#[test]
fn a_sessions_token_has_its_own_parameter() {
    let signer = Signer::new(KEY_ID, SECRET, Some("token"), "eu-central-1", "s3express").in_session();
    let target = presign(&example(), &signer, SystemTime::UNIX_EPOCH, 60).unwrap();
    assert!(target.contains("&X-Amz-S3session-Token=token&"), "{target}");
    assert!(!target.contains("Security-Token"), "{target}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn signatures_are_those_of_aws(
        method in prop::sample::select(vec![Method::Get, Method::Head, Method::Put, Method::Delete]),
        host in prop::sample::select(vec!["bucket.s3.amazonaws.com", "localhost:9000"]),
        path_prefix in prop::sample::select(vec!["", "/bucket"]),
        key in prop_oneof![any::<String>(), "[a-z/. +%~]{0,40}"],
        query in prop::collection::btree_map("response-[a-z-]{1,9}|versionId", "[ -~]{0,12}|\\PC{0,6}", 0..4),
        content_type in prop::option::of("[!-~][ -~]{0,9}[!-~]"),
        token in prop::option::of("[A-Za-z0-9+/=]{1,400}"),
        second in 0u64..4_000_000_000,
        expires in 1u64..=604_800,
    ) {
        let query: Vec<_> = query.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let headers: Vec<_> = content_type.iter().map(|value| ("content-type", value.as_str())).collect();
        let request = Request {
            method, host, path_prefix, key: &key, query: &query, headers: &headers, content_length: None, payload: Payload::Empty,
        };
        let signer = Signer::new(KEY_ID, SECRET, token.as_deref(), "eu-central-1", "s3");
        let target = presign(&request, &signer, at(second), expires).unwrap();
        let (_, signature) = target.split_once("&X-Amz-Signature=").unwrap();
        prop_assert_eq!(signature, reference(&request, token.as_deref(), at(second), expires));
        prop_assert!(target.bytes().all(|byte| byte.is_ascii_graphic()));
        prop_assert!(!target.contains(SECRET));
    }
}

//! The documents that requests carry: however their text is written, and what is promised of them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use wirespeed_origin::Origin;

use super::client::{Answer, send};

/// A way to write text in XML.
#[derive(Clone, Copy, Debug)]
enum Way {
    Plain,
    Entities,
    Decimal,
    Hex,
    Cdata,
    Comment,
}

fn written(text: &str, way: Way) -> String {
    let each = |write: &dyn Fn(char) -> String| text.chars().map(write).collect::<String>();
    let escaped = |character: char| match character {
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '&' => "&amp;".to_owned(),
        // A parser makes a line feed of one that is written as it is.
        '\r' => "&#13;".to_owned(),
        other => other.to_string(),
    };
    match way {
        Way::Cdata if !text.contains("]]>") && !text.contains('\r') => format!("<![CDATA[{text}]]>"),
        Way::Plain | Way::Cdata => each(&escaped),
        Way::Entities => each(&|character| match character {
            '"' => "&quot;".to_owned(),
            '\'' => "&apos;".to_owned(),
            other => escaped(other),
        }),
        Way::Decimal => each(&|character| format!("&#{};", u32::from(character))),
        Way::Hex => each(&|character| format!("&#x{:X};", u32::from(character))),
        Way::Comment => format!("<!-- {} -->{}", "not of the key", each(&escaped)),
    }
}

fn piece() -> impl Strategy<Value = (String, Way)> {
    let character = prop_oneof![
        any::<char>(),
        proptest::char::range('\u{10000}', '\u{fffff}'),
        proptest::sample::select(vec!['<', '>', '&', '"', '\'', ']', ';', '#', ' ', '\t', '\n', '\r', 'é', '😀']),
    ];
    let allowed = |c: &char| matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{fffd}' | '\u{10000}'..);
    let text = proptest::collection::vec(character.prop_filter("XML has it", allowed), 1..8);
    let ways = vec![Way::Plain, Way::Entities, Way::Decimal, Way::Hex, Way::Cdata, Way::Comment];
    (text.prop_map(String::from_iter), proptest::sample::select(ways))
}

fn deleting(key: &str) -> String {
    format!("<Delete><Object><Key>{key}</Key></Object></Delete>")
}

#[test]
fn the_key_that_is_named_is_deleted_however_it_is_written() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = runtime.block_on(Origin::builder().anonymous(true).bucket("bucket").start()).unwrap();
    let config = ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(pieces in proptest::collection::vec(piece(), 1..6))| {
        let key: String = pieces.iter().map(|(text, _)| text.as_str()).collect();
        let document = pieces.iter().map(|(text, way)| written(text, *way)).collect::<String>();
        runtime.block_on(async {
            server.empty_bucket("bucket");
            // The key, and what a parser makes of it that leaves a piece out.
            let without = |left_out: usize| {
                let kept = pieces.iter().enumerate().filter(|(index, _)| *index != left_out);
                kept.map(|(_, (text, _))| text.as_str()).collect::<String>()
            };
            let others: Vec<_> = (0..pieces.len()).map(without).filter(|other| *other != key).collect();
            for name in others.iter().chain([&key]).filter(|name| !name.is_empty()) {
                server.put_object("bucket", name, "x").await.unwrap();
            }
            let answer = send(&server, "POST", "/bucket?delete", &[], deleting(&document).as_bytes()).await;
            assert_eq!((answer.status, answer.all("Deleted").len()), (200, 1), "{document}: {}", answer.text());
            assert_eq!(server.object("bucket", &key).await, None, "{document}");
            for other in others.iter().filter(|other| !other.is_empty()) {
                assert!(server.object("bucket", other).await.is_some(), "{document} deleted {other:?}");
            }
        });
    });
}

async fn post(body: &[u8]) -> Answer {
    let server = Origin::builder().anonymous(true).bucket("bucket").start().await.unwrap();
    server.put_object("bucket", "key", "x").await.unwrap();
    let answer = send(&server, "POST", "/bucket?delete", &[], body).await;
    assert!(server.object("bucket", "key").await.is_some() || answer.status == 200);
    answer
}

#[tokio::test]
async fn what_is_no_document_is_refused() {
    let documents: [&[u8]; 8] = [
        b"<Delete><Object><Key>key&#1;</Key></Object></Delete>",
        b"<Delete><Object><Key>key\x01</Key></Object></Delete>",
        b"<Delete><Object><Key>key&#xD800;</Key></Object></Delete>",
        b"<Delete><Object><Key>key&amp</Key></Object></Delete>",
        b"<!DOCTYPE d [<!ENTITY e \"key\">]><Delete><Object><Key>&e;</Key></Object></Delete>",
        b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><Delete><Object><Key>k\xc3\xa9y</Key></Object></Delete>",
        b"<Delete><Object><Key>k\xe9y</Key></Object></Delete>",
        b"<Delete><Object><Key>key</Key></Object>",
    ];
    for document in documents {
        let answer = post(document).await;
        let shown = String::from_utf8_lossy(document);
        assert_eq!((answer.status, &*answer.code()), (400, "MalformedXML"), "{shown}: {}", answer.text());
    }
    assert_eq!(
        post(b"\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?><Delete><Object><Key>key</Key></Object></Delete>")
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_document_that_is_not_what_was_promised_is_refused() {
    let server = Origin::builder().anonymous(true).bucket("bucket").start().await.unwrap();
    let document = deleting("key");
    let other = STANDARD.encode([7; 16]);
    let (short, crc) = ("AAAA", "AAAAAA==");
    let cases: [(&str, &str, &str); 3] = [
        ("content-md5", &other, "BadDigest"),
        ("content-md5", short, "InvalidDigest"),
        ("x-amz-checksum-crc32", crc, "BadDigest"),
    ];
    for (name, value, code) in cases {
        server.put_object("bucket", "key", "x").await.unwrap();
        let answer = send(&server, "POST", "/bucket?delete", &[(name, value)], document.as_bytes()).await;
        assert_eq!((answer.status, &*answer.code()), (400, code), "{name}");
        assert!(server.object("bucket", "key").await.is_some(), "{name}");
    }
}

#[tokio::test]
async fn tags_and_settings_are_read_by_the_same_parser() {
    let server = Origin::builder().anonymous(true).bucket("bucket").start().await.unwrap();
    server.put_object("bucket", "key", "x").await.unwrap();
    let tags = "<Tagging><TagSet><Tag><Key>a<![CDATA[&]]>b</Key><Value>&#x1F600;<![CDATA[<]]></Value></Tag></TagSet></Tagging>";
    assert_eq!(send(&server, "PUT", "/bucket/key?tagging", &[], tags.as_bytes()).await.status, 200);
    let read = send(&server, "GET", "/bucket/key?tagging", &[], b"").await;
    assert_eq!((read.one("Key").unwrap(), read.one("Value").unwrap()), ("a&amp;b".to_owned(), "😀&lt;".to_owned()));
    let versioning = "<VersioningConfiguration><Status><![CDATA[Enabled]]></Status></VersioningConfiguration>";
    assert_eq!(send(&server, "PUT", "/bucket?versioning", &[], versioning.as_bytes()).await.status, 200);
    assert_eq!(send(&server, "GET", "/bucket?versioning", &[], b"").await.one("Status").unwrap(), "Enabled");
}

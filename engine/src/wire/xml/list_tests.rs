use proptest::prelude::*;

use super::*;

const PAGE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name><Prefix/><KeyCount>3</KeyCount><MaxKeys>1000</MaxKeys>
<Contents><Key>a+b%2Fc%20d%2B</Key><LastModified>2009-10-12T17:50:30.123Z</LastModified><ETag>&quot;fba9dede5f27731c9771645a39863328&quot;</ETag><Size>434234</Size><StorageClass>STANDARD</StorageClass><Owner><ID>x</ID><DisplayName/></Owner></Contents>
<Contents><Key>photos/&amp;&#x20;&lt;</Key><LastModified>yesterday</LastModified><Size>0</Size><StorageClass>COLD</StorageClass></Contents>
<CommonPrefixes><Prefix>logs%2F</Prefix></CommonPrefixes>
<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=+</NextContinuationToken></ListBucketResult>
"#;

fn parse(xml: &str) -> Result<ListPage, XmlError> {
    parse_list_objects_v2(xml.as_bytes())
}

#[test]
fn a_page_is_read_whole() {
    let page = parse(PAGE).unwrap();
    assert_eq!(
        page.objects[0],
        ListedObject {
            key: "a b/c d+".into(),
            size: 434_234,
            etag: Some("\"fba9dede5f27731c9771645a39863328\"".into()),
            last_modified: Some(Timestamp::from_millisecond(1_255_369_830_123).unwrap()),
            storage_class: Some(StorageClass::Standard),
        }
    );
    assert_eq!(page.objects[1].key, "photos/& <");
    assert_eq!((page.objects[1].last_modified, &page.objects[1].etag), (None, &None));
    assert_eq!(page.objects[1].storage_class.as_ref().map(StorageClass::as_str), Some("COLD"));
    assert_eq!(page.prefixes, ["logs/"]);
    assert!(page.is_truncated);
    // The token is not url-encoded.
    assert_eq!(page.next_continuation_token.as_deref(), Some("1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=+"));
}

#[test]
fn keys_are_left_alone_when_they_are_not_encoded() {
    let page = parse(&PAGE.replace("<EncodingType>url</EncodingType>", "")).unwrap();
    assert_eq!(page.objects[0].key, "a+b%2Fc%20d%2B");
    let control = PAGE.replace("<EncodingType>url</EncodingType>", "").replace("photos/", "&#1;&#13;");
    assert_eq!(parse(&control).unwrap().objects[1].key, "\u{1}\r& <");
}

#[test]
fn a_page_that_is_cut_anywhere_is_an_error() {
    let end = PAGE.trim_end().len();
    for cut in 0..end {
        assert!(parse(&PAGE[..cut]).is_err(), "{cut}: {}", &PAGE[..cut]);
    }
    assert!(parse(&PAGE[..end]).is_ok());
}

#[test]
fn a_page_that_could_hide_objects_is_an_error() {
    let without = |text: &str| parse(&PAGE.replace(text, "")).unwrap_err();
    assert_eq!(without("<IsTruncated>true</IsTruncated>"), XmlError::Missing("IsTruncated"));
    assert_eq!(without("<Size>0</Size>"), XmlError::Missing("Size"));
    assert_eq!(without("<Key>a+b%2Fc%20d%2B</Key>"), XmlError::Missing("Key"));
    assert_eq!(without("<Prefix>logs%2F</Prefix>"), XmlError::Missing("Prefix"));
    let with = |from: &str, to: &str| parse(&PAGE.replace(from, to)).unwrap_err();
    assert_eq!(with("1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=+", ""), XmlError::Missing("NextContinuationToken"));
    assert_eq!(with(">true<", ">maybe<"), XmlError::Value("IsTruncated"));
    assert_eq!(with(">0<", ">-1<"), XmlError::Value("Size"));
    assert_eq!(with(">url<", ">base64<"), XmlError::Value("EncodingType"));
    assert!(matches!(with("a+b%2Fc", "a%zz"), XmlError::Decode("Key", _)));
    assert!(matches!(with("&amp;", "&unknown;"), XmlError::Syntax { .. }));
    assert!(matches!(with("</Owner>", "</Other>"), XmlError::Syntax { .. }));
    assert_eq!(parse("<html></html>"), Err(XmlError::Root("html".into())));
    assert!(matches!(parse(&format!("{PAGE}<a/>")), Err(XmlError::Syntax { .. })));
    assert!(matches!(parse(&format!("{PAGE}junk")), Err(XmlError::Syntax { .. })));
    let service = parse("<Error><Code>SlowDown</Code></Error>").unwrap_err();
    assert!(matches!(service, XmlError::Service(body) if body.code == "SlowDown"));
    assert_eq!(parse_list_objects_v2(b"<ListBucketResult>\xff</ListBucketResult>"), Err(XmlError::Encoding));
}

proptest! {
    #[test]
    fn arbitrary_documents_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[<>/&;#!\\[\\]?A-Ea-c \"'=-]{0,120}") {
        let _ = parse_list_objects_v2(&bytes);
        let _ = parse(&format!("<ListBucketResult>{text}</ListBucketResult>"));
        let _ = parse(&format!("<ListBucketResult><Contents><Key>{text}</Key></Contents>"));
    }

    #[test]
    fn any_key_survives(keys in prop::collection::vec("\\PC{1,30}|[ -~]{1,30}", 1..10)) {
        let mut xml = "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>".to_owned();
        for key in &keys {
            let mut encoded = Vec::new();
            crate::wire::uri::encode_path(&mut encoded, key);
            xml.push_str(&format!("<Contents><Key>{}</Key><Size>1</Size></Contents>", String::from_utf8(encoded).unwrap()));
        }
        xml.push_str("</ListBucketResult>");
        let found: Vec<_> = parse(&xml).unwrap().objects.into_iter().map(|object| object.key).collect();
        prop_assert_eq!(found, keys);
    }
}

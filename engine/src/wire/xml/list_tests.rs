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
    assert!(matches!(with("</Owner>", "<!what></Owner>"), XmlError::Syntax { .. }));
    assert_eq!(parse("<html></html>"), Err(XmlError::Root("html".into())));
    assert!(matches!(parse(&format!("{PAGE}<a/>")), Err(XmlError::Syntax { .. })));
    assert!(matches!(parse(&format!("{PAGE}junk")), Err(XmlError::Syntax { .. })));
    let service = parse("<Error><Code>SlowDown</Code></Error>").unwrap_err();
    assert!(matches!(service, XmlError::Service(body) if body.code == "SlowDown"));
    assert_eq!(parse_list_objects_v2(b"<ListBucketResult>\xff</ListBucketResult>"), Err(XmlError::Encoding));
}

/// A page read without the shortcut.
fn parse_by_events(xml: &str) -> Result<ListPage, XmlError> {
    parse_page(xml.as_bytes(), |_| None)
}

#[test]
fn the_shortcut_is_taken_where_it_can_be() {
    let object = &PAGE[PAGE.find("<Contents>").unwrap()..];
    // The first object has an owner, which nests; the second is plain.
    assert_eq!(plain::object(object), None);
    let second = &object[object.find("</Contents>").unwrap() + "</Contents>".len()..];
    let (found, length) = plain::object(second).unwrap();
    assert_eq!(found.key, "photos/& <");
    assert!(second[..length].trim().ends_with("</Contents>"));
    assert_eq!(parse(PAGE), parse_by_events(PAGE));
}

#[test]
fn times_are_read_the_same_way_by_both_readers() {
    for text in [
        "2009-10-12T17:50:30.123Z",
        "2024-02-29T00:00:00.000Z",
        "2023-02-29T00:00:00.000Z",
        "2016-12-31T23:59:60.000Z",
        "2009-10-12T24:50:30.123Z",
        "2009-13-12T17:50:30.123Z",
        "0000-01-01T00:00:00.000Z",
        "9999-12-31T23:59:59.999Z",
        "2009-10-12T17:50:3a.123Z",
        "2009-10-12 17:50:30.123Z",
    ] {
        assert_eq!(timestamp(text), text.parse().ok(), "{text}");
        let plain = utc_timestamp(text.as_bytes());
        assert!(plain.is_none() || plain == text.parse().ok(), "{text}");
    }
    assert!(utc_timestamp(b"2009-10-12T17:50:30.123Z").is_some());
}

proptest! {
    /// The shortcut changes nothing, whatever a page is made of.
    #[test]
    fn the_shortcut_reads_as_the_reader_does(pieces in prop::collection::vec(prop::sample::select(vec![
        "<Contents>", "</Contents>", "<Key>", "</Key>", "<Size>", "</Size>", "<ETag>", "</ETag>", "<Other>", "</Other>",
        "<Key>k</Key>", "<Size>12</Size>", "<Size> 1 </Size>", "<ETag>&quot;e&quot;</ETag>", "<Owner><ID>i</ID></Owner>", "<Key/>",
        "<LastModified>2009-10-12T17:50:30.000Z</LastModified>", "<StorageClass>GLACIER</StorageClass>", "<Contents/>",
        "<Contents><Key>a&amp;b</Key><Size>1</Size></Contents>", "<Contents><Key>a</Key><Size>1</Size>", "<Key a='b'>", "</Key >",
        "<x:Key>", "<Contents a='b'>", "<!--c-->", "<![CDATA[d]]>", "<?p?>", " ", "\r\n", "\r", "a", "é", "+1", "]]>", "&amp;", "&#10;",
        "&#x41;", "&#0;", "&bad;", "&", ";", ">", "<", "&quot;",
    ]), 0..14)) {
        let xml = format!("<ListBucketResult><IsTruncated>false</IsTruncated>{}</ListBucketResult>", pieces.concat());
        match (parse(&xml), parse_by_events(&xml)) {
            (Ok(quick), Ok(slow)) => prop_assert_eq!(quick, slow),
            (quick, slow) => prop_assert!(quick.is_err() && slow.is_err(), "{:?} {:?}", quick, slow),
        }
    }
}

proptest! {
    /// The same for objects that are whole but for their text, which the random ones above seldom are.
    #[test]
    fn the_shortcut_reads_text_as_the_reader_does(texts in prop::collection::vec(prop::collection::vec(prop::sample::select(vec![
        "\r", "\n", " ", "a", "é", "\"", "'", ">", "]]>", "&amp;", "&quot;", "&#10;", "&#x41;", "&#1;", "&#0;", "&bad;", "&", ";", "1", "+",
        "<!--c-->", "<![CDATA[<d>]]>", "<?p?>", "<b/>", "<b></b>",
    ]), 0..4), 5)) {
        let [key, size, etag, class, other] = [0, 1, 2, 3, 4].map(|at| texts[at].concat());
        let xml = format!(
            "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>k{key}</Key><Size>{}</Size></Contents>\
             <Contents><Size>2</Size><Key>{key}</Key><ETag>{etag}</ETag><StorageClass>{class}</StorageClass><Other>{other}</Other>\
             <ETag>&quot;{etag}&quot;</ETag></Contents></ListBucketResult>",
            if size.len() == 1 { &size } else { "1" },
        );
        match (parse(&xml), parse_by_events(&xml)) {
            (Ok(quick), Ok(slow)) => prop_assert_eq!(quick, slow),
            (quick, slow) => prop_assert!(quick.is_err() && slow.is_err(), "{:?} {:?}", quick, slow),
        }
    }
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

//! Listings from servers that answer otherwise than S3 does: bounded keys, and an end.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // That is how a test fails.

mod script;

use script::{Act, Script};
use wirespeed::ErrorKind;

/// The only page of a listing of objects, versions or uploads.
fn listing(kind: &str, entry: &str) -> Vec<Act> {
    let root = match kind {
        "list" => "ListBucketResult",
        "versions" => "ListVersionsResult",
        _ => "ListMultipartUploadsResult",
    };
    let page = format!("<{root}><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>{entry}</{root}>");
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", page.len());
    vec![Act::Send([head, page].concat().into_bytes())]
}

#[tokio::test]
async fn what_is_longer_than_any_key_is_an_error_of_the_listing() {
    let long = |length: usize| "k".repeat(length);
    for (text, is_read) in [
        (long(1024), true),
        (long(4096), true),
        ("%6B".repeat(4096), true),
        (long(4097), false),
        ("%6B".repeat(4097), false),
        ("&amp;".repeat(4097), false),
        (long(1_000_000), false),
        (format!("<![CDATA[{}]]>", long(1_000_000)), false),
    ] {
        for entry in [
            format!("<Contents><Key>{text}</Key><Size>1</Size></Contents>"),
            format!("<Contents x=\"\"><Key>{text}</Key><Size>1</Size></Contents>"),
            format!("<CommonPrefixes><Prefix>{text}</Prefix></CommonPrefixes>"),
        ] {
            let script = Script::start(move |_| listing("list", &entry));
            let client = script.client();
            judge(client.list("bucket").pages().next().await.unwrap().map(drop), is_read);
            judge(client.list("bucket").delimiter("/").pages().next().await.unwrap().map(drop), is_read);
            let parallel = client.list("bucket").in_parallel().pages().next().await;
            judge(parallel.unwrap_or(Ok(wirespeed::Page::default())).map(drop), is_read);
            assert!(
                script.asked().len() <= 2 + 16 && (is_read || script.asked().len() == 3),
                "it is not asked for again"
            );
        }
        let version = format!("<Version><Key>{text}</Key><VersionId>v</VersionId><Size>1</Size></Version>");
        let script = Script::start(move |_| listing("versions", &version));
        judge(script.client().list("bucket").versions().next().await.unwrap().map(drop), is_read);
        let upload = format!("<Upload><Key>{text}</Key><UploadId>u</UploadId></Upload>");
        let script = Script::start(move |_| listing("uploads", &upload));
        judge(script.client().list_uploads("bucket").pages().next().await.unwrap().map(drop), is_read);
    }
    // Neither is any other text that is kept.
    for field in ["ETag", "StorageClass"] {
        let text = long(1_000_000);
        let entry = format!("<Contents><Key>k</Key><Size>1</Size><{field}>{text}</{field}></Contents>");
        let script = Script::start(move |_| listing("list", &entry));
        judge(script.client().list("bucket").pages().next().await.unwrap().map(drop), false);
    }
}

#[track_caller]
fn judge(listed: wirespeed::Result<()>, is_read: bool) {
    match listed {
        Ok(()) => assert!(is_read, "it was read"),
        Err(error) => {
            assert!(!is_read && error.kind() == ErrorKind::Protocol, "{error}");
            let text = format!("{error}");
            assert!(text.contains("more than") && text.contains("bucket"), "{text}");
        }
    }
}

#[tokio::test]
async fn a_listing_of_parts_that_goes_back_is_an_error() {
    for next in [1, 3] {
        let script = Script::start(move |_| {
            let page = format!(
                "<ListPartsResult><IsTruncated>true</IsTruncated><NextPartNumberMarker>{next}</NextPartNumberMarker>\
                 </ListPartsResult>"
            );
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", page.len());
            vec![Act::Send([head, page].concat().into_bytes())]
        });
        let mut pages = script.client().list_parts("bucket", "key", "upload").pages();
        pages.next().await.unwrap().unwrap();
        let failed = pages.next().await.unwrap().unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Protocol);
        assert!(failed.to_string().contains("no progress"), "{failed}");
        assert!(pages.next().await.is_none());
    }
}

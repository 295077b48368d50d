//! Copies within the server, in one request and by parts.

use wirespeed::{CopyDirective, ErrorKind, Progress, SseCustomerKey};

use super::script::{Act, Asked, Script, error};
use super::{AWKWARD, bytes, start};

#[tokio::test]
async fn awkward_keys_are_copied_as_they_are() {
    let (_origin, client) = start().await;
    client.create_bucket("other").await.unwrap();
    for key in AWKWARD {
        client.put("bucket", key).bytes(key.as_bytes().to_vec()).await.unwrap();
        let outcome = client.copy("bucket", key, "other", key).await.unwrap();
        assert_eq!(outcome.parts, 1);
        assert_eq!(&*client.get("other", key).buffer().await.unwrap().body, key.as_bytes());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_by_parts_is_the_same_object_as_a_copy_at_once() {
    let (origin, client) = start().await;
    let content = bytes(150 << 20);
    let put = client.put("bucket", "key").content_type("text/csv").cache_control("no-store").metadata("a", "b");
    put.bytes(content.clone()).await.unwrap();
    let progress = Progress::default();
    let copy = client.copy("bucket", "key", "bucket", "parts").multipart_threshold(1 << 20);
    let outcome = copy.progress(progress.clone()).await.unwrap();
    assert_eq!(outcome.parts, 3);
    assert_eq!((progress.bytes(), progress.expected(), progress.objects()), (150 << 20, 150 << 20, 1));
    assert_eq!(client.copy("bucket", "key", "bucket", "once").await.unwrap().parts, 1);
    for key in ["parts", "once"] {
        let object = client.get("bucket", key).buffer().await.unwrap();
        assert!(object.body == *content, "{key} differs");
        assert_eq!(object.info.content_type.as_deref(), Some("text/csv"), "{key}");
        assert_eq!(object.info.cache_control.as_deref(), Some("no-store"), "{key}");
        assert_eq!(object.info.metadata, [("a".to_owned(), "b".to_owned())], "{key}");
    }
    assert_eq!(origin.open_uploads("bucket"), []);
}

#[tokio::test]
async fn what_the_copy_is_given_replaces_the_sources() {
    let (_origin, client) = start().await;
    client.put("bucket", "key").content_type("text/csv").metadata("a", "b").bytes("x").await.unwrap();
    client.copy("bucket", "key", "bucket", "key").metadata("c", "d").await.unwrap();
    let info = client.head("bucket", "key").await.unwrap();
    assert_eq!(info.metadata, [("c".to_owned(), "d".to_owned())]);
    let same = client.copy("bucket", "key", "bucket", "key").await.unwrap_err();
    assert_eq!(same.kind(), ErrorKind::Config);
    assert!(same.to_string().contains("onto itself"), "{same}");
    let both = client.copy("bucket", "key", "bucket", "k").metadata("c", "d").metadata_directive(CopyDirective::Copy);
    assert_eq!(both.await.unwrap_err().kind(), ErrorKind::Config);
}

#[tokio::test]
async fn a_missing_source_and_one_that_is_another_are_told_apart() {
    let (_origin, client) = start().await;
    let missing = client.copy("bucket", "nothing", "bucket", "key").await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    let missing = client.copy("bucket", "nothing", "bucket", "key").source_size(1).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    client.put("bucket", "key").bytes("x").await.unwrap();
    let other = client.copy("bucket", "key", "bucket", "copy").source_if_match("\"other\"").await.unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Precondition);
}

fn answer(head: &str, body: &str) -> Vec<Act> {
    vec![Act::Send(format!("HTTP/1.1 200 OK\r\n{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes())]
}

#[tokio::test]
async fn a_copy_at_once_is_one_request_that_says_all() {
    let script = Script::start(|_| {
        answer("x-amz-version-id: v2\r\n", "<CopyObjectResult><ETag>\"e\"</ETag></CopyObjectResult>")
    });
    let copy = script.client().copy("from", "a b", "into", "key").source_version("v&1").source_size(5).tag("t", "u");
    let copy = copy.source_expected_owner("1").expected_owner("2").if_none_match_any().source_if_none_match("\"x\"");
    let outcome = copy.source_sse_customer_key(SseCustomerKey::new(&[1; 32]).unwrap()).await.unwrap();
    assert_eq!((outcome.etag.as_deref(), outcome.version_id.as_deref()), (Some("\"e\""), Some("v2")));
    let asked = script.asked();
    assert_eq!((asked.len(), asked[0].method(), asked[0].target()), (1, "PUT", "/into/key"));
    for (name, value) in [
        ("x-amz-copy-source", "from/a%20b?versionId=v%261"),
        ("x-amz-source-expected-bucket-owner", "1"),
        ("x-amz-expected-bucket-owner", "2"),
        ("x-amz-copy-source-if-none-match", "\"x\""),
        ("if-none-match", "*"),
        ("x-amz-tagging", "t=u"),
        ("x-amz-tagging-directive", "REPLACE"),
        ("x-amz-copy-source-server-side-encryption-customer-algorithm", "AES256"),
    ] {
        assert_eq!(asked[0].header(name), Some(value), "{name}");
    }
    assert_eq!(asked[0].header("x-amz-metadata-directive"), None);
}

/// A source of 130 MiB with tags, copied by parts.
fn by_parts(asked: &Asked) -> Vec<Act> {
    match (asked.method(), asked.target()) {
        ("HEAD", _) => vec![Act::Send(
            b"HTTP/1.1 200 OK\r\nContent-Length: 136314880\r\nETag: \"src\"\r\nContent-Type: a/b\r\n\
              x-amz-tagging-count: 1\r\n\r\n"
                .to_vec(),
        )],
        ("GET", _) => answer("", "<Tagging><TagSet><Tag><Key>k</Key><Value>v w</Value></Tag></TagSet></Tagging>"),
        ("POST", target) if target.ends_with("?uploads=") => {
            answer("", "<InitiateMultipartUploadResult><UploadId>U1</UploadId></InitiateMultipartUploadResult>")
        }
        ("POST", _) => {
            answer("", "<CompleteMultipartUploadResult><ETag>\"e-3\"</ETag></CompleteMultipartUploadResult>")
        }
        ("DELETE", _) => vec![Act::Send(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())],
        _ => answer("", "  \n<CopyPartResult><ETag>\"p\"</ETag></CopyPartResult>"),
    }
}

#[tokio::test]
async fn parts_are_ranges_of_one_version_and_tags_come_along() {
    let script = Script::start(by_parts);
    let copy = script.client().copy("from", "key", "into", "key").multipart_threshold(1 << 20).source_version("v1");
    assert_eq!(copy.await.unwrap().parts, 3);
    let asked = script.asked();
    let start = asked.iter().find(|asked| asked.target().ends_with("?uploads=")).unwrap();
    assert_eq!((start.header("content-type"), start.header("x-amz-tagging")), (Some("a/b"), Some("k=v%20w")));
    let tags = asked.iter().find(|asked| asked.method() == "GET").unwrap();
    assert_eq!(tags.target(), "/from/key?tagging=&versionId=v1");
    let mut ranges: Vec<_> = asked
        .iter()
        .filter(|asked| asked.method() == "PUT")
        .map(|part| {
            assert_eq!(part.header("x-amz-copy-source"), Some("from/key?versionId=v1"));
            assert_eq!(part.header("x-amz-copy-source-if-match"), Some("\"src\""));
            part.header("x-amz-copy-source-range").unwrap().to_owned()
        })
        .collect();
    ranges.sort();
    assert_eq!(ranges, ["bytes=0-67108863", "bytes=134217728-136314879", "bytes=67108864-134217727"]);
}

#[tokio::test]
async fn a_copy_that_fails_inside_a_200_is_tried_again_and_then_aborted() {
    let script = Script::start(|asked| match asked.method() {
        "PUT" => answer("", "\n<Error><Code>InternalError</Code><Message>no</Message></Error>"),
        _ => by_parts(asked),
    });
    let copy = |size| script.client().copy("from", "key", "into", "key").source_size(size);
    let failed = copy(5).await.unwrap_err();
    assert_eq!((failed.kind(), failed.code(), failed.attempts()), (ErrorKind::Server, Some("InternalError"), 3));
    let failed = copy(200 << 20).multipart_threshold(1 << 20).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Server);
    let asked = script.asked();
    assert!(asked.iter().any(|asked| asked.method() == "DELETE" && asked.target().ends_with("uploadId=U1")));
}

#[tokio::test]
async fn a_source_that_changes_while_it_is_copied_is_an_error() {
    let script = Script::start(|asked| match asked.method() {
        "PUT" if asked.target().contains("partNumber=2") => error(412, "PreconditionFailed"),
        _ => by_parts(asked),
    });
    let failed = script.client().copy("from", "key", "into", "key").multipart_threshold(1 << 20).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Precondition);
    assert!(failed.to_string().contains("changed"), "{failed}");
}

#[tokio::test]
async fn a_copy_by_parts_keeps_the_conditions_on_its_source() {
    let script = Script::start(|asked| match (asked.method(), asked.header("if-none-match")) {
        ("HEAD", Some("\"src\"")) => vec![Act::Send(b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec())],
        ("HEAD", None) if asked.header("if-match") != Some("\"src\"") => {
            vec![Act::Send(b"HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n".to_vec())]
        }
        _ => by_parts(asked),
    });
    let copy = || script.client().copy("from", "key", "into", "key").multipart_threshold(1 << 20);
    for refused in [copy().source_if_none_match("\"src\""), copy().source_if_match("\"other\"")] {
        let refused = refused.await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Precondition, "{refused}");
    }
    assert!(script.asked().iter().all(|asked| asked.method() == "HEAD"), "a copy was begun");
    assert_eq!(copy().source_if_match("\"src\"").await.unwrap().parts, 3);
}

#[tokio::test]
async fn parts_of_a_source_without_a_strong_tag_are_pinned_all_the_same() {
    for (described, source, unmodified) in [
        ("ETag: W/\"src\"\r\nx-amz-version-id: v 9", "from/key?versionId=v%209", None),
        ("ETag: W/\"src\"", "from/key", Some("Wed, 21 Oct 2015 07:28:00 GMT")),
    ] {
        let script = Script::start(move |asked| match asked.method() {
            "HEAD" => vec![Act::Send(
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: 136314880\r\n{described}\r\nx-amz-tagging-count: 0\r\n\
                     Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n\r\n"
                )
                .into_bytes(),
            )],
            _ => by_parts(asked),
        });
        script.client().copy("from", "key", "into", "key").multipart_threshold(1 << 20).await.unwrap();
        for part in script.asked().iter().filter(|asked| asked.method() == "PUT") {
            assert_eq!(part.header("x-amz-copy-source"), Some(source));
            assert_eq!(part.header("x-amz-copy-source-if-unmodified-since"), unmodified);
            assert_eq!(part.header("x-amz-copy-source-if-match"), None);
        }
    }
}

#[tokio::test]
async fn what_would_take_long_in_one_request_is_copied_by_parts_unasked() {
    let script = Script::start(|asked| match asked.method() {
        "HEAD" => vec![Act::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\nETag: \"src\"\r\n\r\n".to_vec())],
        _ => by_parts(asked),
    });
    assert_eq!(script.client().copy("from", "key", "into", "key").await.unwrap().parts, 15);
}

#[tokio::test]
async fn a_conditional_copy_that_failed_inside_a_200_may_have_worked() {
    let script = Script::start(|asked| match (asked.method(), asked.index) {
        ("PUT", 0) => answer("", "<Error><Code>InternalError</Code></Error>"),
        ("PUT", _) => error(412, "PreconditionFailed"),
        _ => by_parts(asked),
    });
    let copy = script.client().copy("from", "key", "into", "key").source_size(5).if_none_match_any();
    let doubtful = copy.await.unwrap_err();
    assert_eq!(doubtful.kind(), ErrorKind::Precondition);
    assert!(doubtful.to_string().contains("cannot be told"), "{doubtful}");
}

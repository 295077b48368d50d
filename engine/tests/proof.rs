//! Answers whose status says success: what else they must say before a write, a copy or a deletion counts as done.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // That is how a test fails.

mod script;

use std::time::{Duration, Instant};

use wirespeed::{ChecksumAlgorithm, Client, ErrorKind};
use wirespeed_origin::{Origin, Verb};

use script::{Act, Asked, Script, error};

const PAGE: &str = "<!DOCTYPE html><html><head><title>Sign in</title></head><body>Welcome<br></body></html>";
const XHTML: &str = "<html><head><title>Sign in</title></head><body>Welcome</body></html>";

fn answer(status: u16, headers: &str, body: &str) -> Vec<Act> {
    let length = body.len();
    vec![Act::Send(format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{headers}\r\n{body}").into_bytes())]
}

/// A client that tries twice, with parts of 5 MiB.
fn twice(script: &Script) -> Client {
    script.builder().set("max_attempts", "2").unwrap().part_size(5 << 20).build().unwrap()
}

#[tokio::test]
async fn a_put_without_an_etag_or_with_a_page_is_no_success() {
    for (headers, body, says) in [
        ("", "", "without an ETag"),
        ("ETag:\r\n", "", "without an ETag"),
        ("Content-Type: text/html\r\n", PAGE, "cannot be read"),
        ("Content-Type: text/html\r\nETag: \"page\"\r\n", PAGE, "cannot be read"),
        ("ETag: \"page\"\r\n", XHTML, "<html>"),
        ("ETag: \"page\"\r\n", "It works!", "cannot be read"),
        ("ETag: \"e\"\r\n", "<Error><Code>InternalError</Code><Message>later</Message></Error>", "InternalError"),
    ] {
        let script = Script::start(move |_| answer(200, headers, body));
        let failed = twice(&script).put("bucket", "key").bytes(&b"content"[..]).await.unwrap_err();
        assert!(failed.to_string().contains(says), "{headers:?} {body:?}: {failed}");
        assert!(matches!(failed.kind(), ErrorKind::Protocol | ErrorKind::Server), "{failed:?}");
        assert_eq!((failed.key(), script.asked().len()), (Some("key"), 2), "it may have been a passing fault");
    }
}

#[tokio::test]
async fn a_passing_page_is_survived() {
    let script = Script::start(|asked| match asked.index {
        0 => answer(200, "", PAGE),
        _ => answer(200, "ETag: \"e\"\r\n", ""),
    });
    let outcome = twice(&script).put("bucket", "key").bytes(&b"content"[..]).await.unwrap();
    assert_eq!(outcome.etag.as_deref(), Some("\"e\""));
}

/// Plays an honest upload or copy by parts, but for the request that `at` picks out.
fn by_parts(asked: &Asked, at: &str, body: &str) -> Vec<Act> {
    let target = asked.target();
    let stage = match asked.method() {
        "HEAD" => return answer(200, "ETag: \"src\"\r\n", "").into_iter().map(large).collect(),
        "DELETE" => return answer(204, "", ""),
        "GET" => return answer(200, "", "<Tagging><TagSet/></Tagging>"),
        "POST" if target.contains("uploads=") => "create",
        "POST" => "complete",
        _ if asked.header("x-amz-copy-source").is_some() => "copy part",
        _ => "part",
    };
    let etag = if stage == at { "" } else { "ETag: \"p\"\r\n" };
    let body = match stage {
        stage if stage == at => body,
        "create" => "<InitiateMultipartUpload><UploadId>U</UploadId></InitiateMultipartUpload>",
        "complete" => "<CompleteMultipartUpload><ETag>\"o-2\"</ETag></CompleteMultipartUpload>",
        "copy part" => "<CopyPart><ETag>\"p\"</ETag></CopyPart>",
        _ => "",
    };
    answer(200, etag, body)
}

/// The same answer to a HEAD, of an object of 6 MiB.
fn large(act: Act) -> Act {
    match act {
        Act::Send(bytes) => {
            let head = String::from_utf8(bytes).unwrap().replace("Content-Length: 0", "Content-Length: 6291456");
            Act::Send(head.into_bytes())
        }
        act => act,
    }
}

#[tokio::test]
async fn no_stage_of_an_upload_or_a_copy_passes_without_what_s3_sends() {
    let empty_results = [
        ("create", "<InitiateMultipartUploadResult><Bucket>b</Bucket></InitiateMultipartUploadResult>"),
        ("part", ""),
        ("copy part", "<CopyPartResult/>"),
        ("complete", "<CompleteMultipartUploadResult><Key>key</Key></CompleteMultipartUploadResult>"),
    ];
    for (at, empty) in empty_results {
        for body in [empty, PAGE, XHTML, "<a><b>c</b></a>"] {
            let script = Script::start(move |asked| by_parts(asked, at, body));
            let client = twice(&script);
            let result = match at {
                "copy part" => {
                    let copy = client.copy("from", "a", "bucket", "key").multipart_threshold(1).part_size(5 << 20);
                    copy.await.map(|_| ())
                }
                _ => {
                    let body = vec![7; 18 << 20];
                    client.put("bucket", "key").checksum(None).bytes(body).await.map(|_| ())
                }
            };
            let failed = result.expect_err(at);
            assert_eq!(failed.kind(), ErrorKind::Protocol, "{at} {body}: {failed}");
            let aborted = script.asked().iter().any(|asked| asked.method() == "DELETE");
            assert_eq!(aborted, at != "create", "{at} {body}: the parts are not left behind");
        }
    }
}

#[tokio::test]
async fn other_names_of_root_elements_are_accepted() {
    let script = Script::start(|asked| by_parts(asked, "nowhere", ""));
    let client = twice(&script);
    let outcome = client.put("bucket", "key").checksum(None).bytes(vec![7; 18 << 20]).await.unwrap();
    assert_eq!(outcome.etag.as_deref(), Some("\"o-2\""));
    let copy = client.copy("from", "a", "bucket", "key").multipart_threshold(1).part_size(5 << 20).await.unwrap();
    assert_eq!((copy.etag.as_deref(), copy.parts), (Some("\"o-2\""), 2));

    let script = Script::start(|asked| {
        let target = asked.target();
        answer(
            200,
            "",
            match asked.method() {
                "POST" => "<DeleteObjectsOutput><Deleted><Key>a</Key></Deleted></DeleteObjectsOutput>",
                _ if target.contains("versions=") => {
                    "<ListBucketVersionsResult><IsTruncated>false</IsTruncated>\
                 <Version><Key>a</Key><VersionId>v</VersionId><Size>1</Size></Version></ListBucketVersionsResult>"
                }
                _ if target.contains("uploads=") => {
                    "<Uploads><Upload><Key>a</Key><UploadId>u</UploadId></Upload></Uploads>"
                }
                _ if target.contains("list-type") => {
                    "<ListBucket><IsTruncated>false</IsTruncated><Contents><Key>a</Key><Size>1</Size></Contents></ListBucket>"
                }
                _ => "<Buckets2><Buckets><Bucket><Name>bucket</Name></Bucket></Buckets></Buckets2>",
            },
        )
    });
    let client = twice(&script);
    assert!(client.delete_many("bucket", vec!["a".to_owned()]).await.unwrap().is_empty());
    assert_eq!(client.list("bucket").pages().next().await.unwrap().unwrap().objects[0].key, "a");
    assert_eq!(client.list("bucket").versions().next().await.unwrap().unwrap().versions[0].key, "a");
    assert_eq!(client.list_uploads("bucket").pages().next().await.unwrap().unwrap().uploads[0].key, "a");
    assert_eq!(client.list_buckets().await.unwrap()[0].name, "bucket");
}

#[tokio::test]
async fn a_page_is_no_listing() {
    for page in [PAGE, XHTML, "<page><p>Welcome</p></page>", ""] {
        let script = Script::start(move |_| answer(200, "", page));
        let client = twice(&script);
        client.list("bucket").pages().next().await.unwrap().expect_err("a page of objects");
        client.list("bucket").versions().next().await.unwrap().expect_err("a page of versions");
        client.list_uploads("bucket").pages().next().await.unwrap().expect_err("a page of uploads");
        client.list_buckets().await.expect_err("buckets");
    }
}

#[tokio::test]
async fn a_copy_without_an_etag_is_no_success() {
    for body in ["", "<CopyObjectResult/>", PAGE, XHTML, "<Error><Code>AccessDenied</Code></Error>"] {
        let script = Script::start(move |_| answer(200, "ETag: \"page\"\r\n", body));
        let failed = twice(&script).copy("from", "a", "into", "b").source_size(5).await.unwrap_err();
        assert!(matches!(failed.kind(), ErrorKind::Protocol | ErrorKind::Denied), "{body}: {failed}");
    }
}

#[tokio::test]
async fn deletions_are_named_or_not_done() {
    for (status, body, gone) in [
        (204, "", true),
        (200, "", true),
        (200, PAGE, false),
        (200, XHTML, false),
        (200, "It works!", false),
        (200, "<Error><Code>InternalError</Code></Error>", false),
    ] {
        let script = Script::start(move |_| answer(status, "", body));
        let client = twice(&script);
        assert_eq!(client.delete("bucket", "key").await.is_ok(), gone, "object: {status} {body}");
        assert_eq!(client.abort_upload("bucket", "key", "U").await.is_ok(), gone, "upload: {status} {body}");
        assert_eq!(client.delete_bucket("bucket").await.is_ok(), gone, "bucket: {status} {body}");
        assert_eq!(client.create_bucket("bucket").await.is_ok(), gone, "new bucket: {status} {body}");
    }
    let keys = ["a", "b", "a"].map(str::to_owned).to_vec();
    let deleted = |key: &str| format!("<Deleted><Key>{key}</Key></Deleted>");
    for (inside, kept, alone) in [
        (deleted("a") + &deleted("b"), vec![], 0),
        (deleted("b") + &deleted("a") + &deleted("a"), vec![], 0),
        // What is not named is deleted alone: b is not there, and a must not be deleted.
        (deleted("a"), vec![], 1),
        (String::new(), vec!["a"], 2),
        ("<Error><Key>a</Key><Code>AccessDenied</Code></Error>".to_owned(), vec!["a"], 1),
    ] {
        let body = format!("<DeleteResult>{inside}</DeleteResult>");
        let script = Script::start(move |asked| match asked.method() {
            "POST" => answer(200, "", &body),
            _ if asked.target().ends_with("/b") => error(404, "NoSuchKey"),
            _ => error(403, "AccessDenied"),
        });
        let failures = twice(&script).delete_many("bucket", keys.clone()).await.unwrap();
        assert_eq!(failures.iter().map(|failure| &*failure.key).collect::<Vec<_>>(), kept, "{inside}");
        assert_eq!(script.asked().len(), 1 + alone, "{inside}");
        let asked = &script.asked()[0];
        assert!(!String::from_utf8_lossy(&asked.body).contains("Quiet"), "each key is to be named");
    }
    for page in [PAGE, XHTML, "<page><p>Welcome</p></page>"] {
        let script = Script::start(move |_| answer(200, "", page));
        twice(&script).delete_many("bucket", keys.clone()).await.expect_err(page);
    }
}

/// Plays a server that stores what it is sent, and answers uploads with `headers` and HEADs as it likes.
fn stored(headers: &'static str, status: u16, found: &'static str) -> Script {
    Script::start(move |asked| match (asked.method(), status) {
        ("HEAD", 200) => vec![Act::Send(format!("HTTP/1.1 200 OK\r\n{found}\r\n").into_bytes())],
        ("HEAD", status) => answer(status, "", ""),
        _ if asked.header("x-amz-copy-source").is_some() => {
            answer(200, "", "<CopyObjectResult><ETag>\"e\"</ETag></CopyObjectResult>")
        }
        _ => answer(200, headers, ""),
    })
}

#[tokio::test]
async fn what_is_to_be_confirmed_is_looked_at_where_the_answer_proves_nothing() {
    for (status, found, says) in [
        (200, "ETag: \"e\"\r\nContent-Length: 7\r\n", ""),
        (200, "ETag: e\r\nContent-Length: 7\r\n", ""),
        (200, "ETag: \"e\"\r\nContent-Length: 6\r\n", "6 bytes instead of 7"),
        (200, "ETag: \"other\"\r\nContent-Length: 7\r\n", "instead of \"e\""),
        (200, "Content-Length: 7\r\n", ""),
        (200, "Content-Length: 8\r\n", "8 bytes instead of 7"),
        (404, "", "does not have the object"),
        (403, "", "a HEAD to confirm that failed"),
    ] {
        let script = stored("ETag: \"e\"\r\n", status, found);
        let client = twice(&script);
        let put = client.put("bucket", "key").confirmed().bytes(&b"content"[..]).await.map(|_| ());
        let copy = client.copy("from", "a", "bucket", "key").source_size(7).confirmed().await.map(|_| ());
        for result in [put, copy] {
            match result {
                Ok(()) => assert_eq!(says, "", "{found}"),
                Err(error) => {
                    assert!(!says.is_empty() && error.to_string().contains(says), "{found}: {error}");
                    assert_eq!((error.bucket(), error.key()), (Some("bucket"), Some("key")));
                }
            }
        }
        assert_eq!(script.asked().iter().filter(|asked| asked.method() == "HEAD").count(), 2, "one each");
    }
    // Unless it is to be confirmed, nothing is looked at.
    let script = stored("ETag: \"e\"\r\n", 404, "");
    twice(&script).put("bucket", "key").bytes(&b"content"[..]).await.unwrap();
    assert_eq!(script.asked().len(), 1);
}

#[tokio::test]
async fn the_usual_answers_are_proof_and_cost_no_request() {
    let origin = Origin::builder().keys("id", "secret").bucket("bucket").start().await.unwrap();
    let client = Client::builder()
        .endpoint_url(origin.endpoint())
        .region("us-east-1")
        .credentials(wirespeed::Credentials::new("id", "secret"))
        .part_size(5 << 20)
        .build()
        .unwrap();
    client.put("bucket", "small").confirmed().bytes(&b"content"[..]).await.unwrap();
    client.put("bucket", "large").confirmed().bytes(vec![7; 18 << 20]).await.unwrap();
    client.put("bucket", "plain").checksum(None).confirmed().bytes(vec![7; 18 << 20]).await.unwrap();
    client.put("bucket", "sha").checksum(ChecksumAlgorithm::Sha256).confirmed().bytes(vec![7; 18 << 20]).await.unwrap();
    client
        .copy("bucket", "small", "bucket", "copy")
        .source_size(7)
        .source_if_match(etag(b"content"))
        .confirmed()
        .await
        .unwrap();
    let by_parts = client
        .copy("bucket", "large", "bucket", "copy2")
        .source_size(18 << 20)
        .source_if_match(large_etag(&client).await);
    let heads = origin.stats().count(Verb::Head);
    assert_eq!(heads, 1, "the one that the test itself asked");
    by_parts.multipart_threshold(1).metadata_directive(wirespeed::CopyDirective::Replace).confirmed().await.unwrap();
    assert_eq!(origin.stats().count(Verb::Head), heads);
    // A copy in one request of an object in parts has a tag of its own.
    let large = large_etag(&client).await;
    let heads = origin.stats().count(Verb::Head);
    client
        .copy("bucket", "large", "bucket", "copy3")
        .source_size(18 << 20)
        .source_if_match(large)
        .confirmed()
        .await
        .unwrap();
    assert!(origin.stats().count(Verb::Head) <= heads + 1);
}

/// The entity tag of an object in one part.
fn etag(content: &[u8]) -> String {
    use md5::Digest as _;
    format!("\"{:x}\"", md5::Md5::digest(content))
}

async fn large_etag(client: &Client) -> String {
    client.head("bucket", "large").await.unwrap().etag.unwrap()
}

#[tokio::test]
async fn a_listed_object_is_not_read_from_an_answer_that_names_no_etag() {
    let script = Script::start(|_| answer(200, "Content-Type: text/html\r\n", PAGE));
    let item = wirespeed::GetItem::new("key").size(PAGE.len() as u64).if_match("\"listed\"");
    let mut outcomes = twice(&script).get_many("bucket").items([item]).unwrap();
    let (_, result) = outcomes.next().await.unwrap();
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Precondition);
}

#[tokio::test]
async fn what_a_server_says_commands_no_terminal() {
    let evil = "\u{1b}]0;owned\u{7}\u{9b}2J";
    let long = "x".repeat(10_000);
    let body = format!(
        "<Error><Code>Evil{evil}</Code><Message>a&#10;{evil}{long}</Message><RequestId>R{evil}</RequestId></Error>"
    );
    let xml = format!(
        "<DeleteResult><Error><Key>k</Key><Code>C{evil}</Code><Message>{evil}{long}</Message></Error></DeleteResult>"
    );
    let script = Script::start(move |asked| match asked.method() {
        "POST" => answer(200, "", &xml),
        "PUT" => answer(200, "", &format!("<a{evil}/>")),
        _ => answer(400, "", &body),
    });
    let client = twice(&script);
    let mut texts = Vec::new();
    for error in [
        client.get("bucket", "key").buffer().await.unwrap_err(),
        client.put("bucket", "key").bytes(&b"x"[..]).await.unwrap_err(),
        client.list("bucket").pages().next().await.unwrap().unwrap_err(),
    ] {
        assert!(error.to_string().len() < 8_000, "bounded: {}", error.to_string().len());
        texts.extend([error.to_string(), format!("{error:?}"), error.message().to_owned()]);
        texts.extend(error.code().map(str::to_owned));
        texts.extend(error.request_id().map(str::to_owned));
    }
    let failure = client.delete_many("bucket", vec!["k".to_owned()]).await.unwrap().remove(0);
    assert!(failure.message.len() < 2_000);
    texts.extend([failure.code, failure.message]);
    for text in texts {
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
}

/// Returns a free port. If another process takes it meanwhile, connections fail all the same.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn a_server_that_restarts_fails_no_item() {
    let port = free_port();
    let client = Client::builder()
        .endpoint_url(format!("http://127.0.0.1:{port}"))
        .region("us-east-1")
        .anonymous()
        .concurrency(64)
        .build()
        .unwrap();
    let objects = (0..300).map(|number| (format!("k{number}"), bytes::Bytes::from_static(b"x")));
    let began = Instant::now();
    let mut outcomes = client.put_many("bucket").bytes(objects).unwrap();
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    let origin =
        Origin::builder().anonymous(true).bucket("bucket").listen(([127, 0, 0, 1], port).into()).start().await.unwrap();
    let mut done = 0;
    while let Some((_, result)) = outcomes.next().await {
        result.unwrap();
        done += 1;
    }
    assert_eq!(done, 300);
    assert!(began.elapsed() < Duration::from_secs(12), "{:?}", began.elapsed());
    drop(origin);
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_is_given_up_within_seconds() {
    let port = free_port();
    let client = Client::builder().endpoint_url(format!("http://127.0.0.1:{port}")).anonymous().build().unwrap();
    let began = Instant::now();
    let failed = client.head("bucket", "key").await.unwrap_err();
    assert!((3..10).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    assert_eq!((failed.kind(), failed.attempts()), (ErrorKind::Connection, 5));
    assert!(failed.to_string().contains("check the endpoint URL and that the server is running"), "{failed}");
    // Once it is known to be gone, nobody waits for it that long again.
    let mut last = Duration::MAX;
    for _ in 0..5 {
        let began = Instant::now();
        client.head("bucket", "key").await.unwrap_err();
        last = began.elapsed();
        if last < Duration::from_secs(2) {
            break;
        }
    }
    assert!(last < Duration::from_secs(2), "{last:?}");
    let hasty = Client::builder().endpoint_url(format!("http://127.0.0.1:{port}")).anonymous();
    let began = Instant::now();
    hasty.set("max_attempts", "1").unwrap().build().unwrap().head("bucket", "key").await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(1), "one attempt is one attempt");
}

#[tokio::test]
async fn a_refusal_is_not_taken_for_an_outage() {
    let script = Script::start(|_| error(500, "InternalError"));
    let began = Instant::now();
    script.builder().set("max_attempts", "5").unwrap().build().unwrap().head("bucket", "key").await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

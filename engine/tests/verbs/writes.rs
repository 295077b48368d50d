//! Writing with options: descriptions, conditions, sources of unknown length.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use wirespeed::{ErrorKind, PutOptions, SseCustomerKey};

use super::script::{Act, Asked, Script, error};
use super::{PART, bytes, start};

/// Pieces of a length that fits nothing, then perhaps an error.
struct Pieces {
    rest: Bytes,
    piece: usize,
    fails: bool,
}

impl Stream for Pieces {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.rest.is_empty() {
            return Poll::Ready(std::mem::take(&mut self.fails).then(|| Err(io::Error::other("the pump broke"))));
        }
        let length = self.piece.min(self.rest.len());
        Poll::Ready(Some(Ok(self.rest.split_to(length))))
    }
}

fn pieces(content: &[u8], fails: bool) -> Pieces {
    Pieces { rest: Bytes::copy_from_slice(content), piece: 1_000_003, fails }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_of_unknown_length_becomes_one_request_or_parts() {
    let (origin, client) = start().await;
    for (size, is_single) in
        [(0, true), (5, true), (PART, true), ((16 << 20) - 1, true), (20 << 20, false), (9 * PART + 1, false)]
    {
        let content = bytes(size);
        let streamed = client.put("bucket", "s").content_type("a/b").stream(pieces(&content, false)).await.unwrap();
        let read = client.put("bucket", "r").content_type("a/b").reader(&content[..]).await.unwrap();
        for (key, outcome) in [("s", streamed), ("r", read)] {
            assert_eq!(outcome.parts == 1, is_single, "{size}: {outcome:?}");
            let object = client.get("bucket", key).buffer().await.unwrap();
            assert!(object.body == *content, "{size} by {key}");
            assert_eq!(client.head("bucket", key).await.unwrap().content_type.as_deref(), Some("a/b"));
        }
    }
    assert_eq!(client.metrics().memory_in_use, 0);
    assert_eq!(origin.open_uploads("bucket"), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_fails_or_hangs_leaves_nothing_behind() {
    let (origin, client) = start().await;
    for size in [10, 30 << 20] {
        let failed = client.put("bucket", "key").stream(pieces(&bytes(size), true)).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Io);
        assert!(failed.to_string().contains("the pump broke"), "{failed}");
        assert_eq!(origin.open_uploads("bucket"), []);
    }
    let (mut feed, source) = tokio::io::duplex(1 << 20);
    let upload = client.put("bucket", "key").reader(source);
    let feeding = async {
        let mut content = &bytes(30 << 20)[..];
        tokio::io::copy(&mut content, &mut feed).await.unwrap();
        std::future::pending::<()>().await;
    };
    let hung = async { tokio::join!(upload, feeding).0 };
    assert!(tokio::time::timeout(Duration::from_secs(3), hung).await.is_err());
    client.settle(Duration::from_secs(2)).await.unwrap();
    assert_eq!(origin.open_uploads("bucket"), []);
    assert_eq!(client.head("bucket", "key").await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_is_told_to_stop_has_left_nothing_when_it_ends() {
    let (origin, client) = start().await;
    for size in [10, 30 << 20] {
        let (mut feed, source) = tokio::io::duplex(1 << 20);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let upload = client.put("bucket", "key").stop_when(async { drop(stopped.await) }).reader(source);
        let feeding = async {
            let mut content = &bytes(size)[..];
            tokio::io::copy(&mut content, &mut feed).await.unwrap();
            drop(stop);
            std::future::pending::<()>().await;
        };
        let error = tokio::select! { ended = upload => ended.unwrap_err(), () = feeding => unreachable!() };
        assert_eq!((error.kind(), error.key()), (ErrorKind::Cancelled, Some("key")));
        assert_eq!(origin.open_uploads("bucket"), []);
    }
    let emptied = async {
        while client.metrics().memory_in_use > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(3), emptied).await.unwrap();
    assert_eq!(client.head("bucket", "key").await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn what_is_said_of_an_object_comes_back_with_it_however_it_was_sent() {
    let (_origin, client) = start().await;
    let options = PutOptions::new()
        .content_type("text/csv")
        .content_encoding("gzip")
        .content_disposition("attachment; filename=\"a.csv\"")
        .content_language("de-CH")
        .cache_control("max-age=60")
        .metadata("Origin", "sensor 7");
    for size in [10, 17 << 20] {
        let content = bytes(size);
        client.put("bucket", "key").options(options.clone()).bytes(content.clone()).await.unwrap();
        let info = client.head("bucket", "key").await.unwrap();
        assert_eq!(info.size, size);
        assert_eq!(info.content_type.as_deref(), Some("text/csv"));
        assert_eq!(info.content_encoding.as_deref(), Some("gzip"));
        assert_eq!(info.content_disposition.as_deref(), Some("attachment; filename=\"a.csv\""));
        assert_eq!(info.content_language.as_deref(), Some("de-CH"));
        assert_eq!(info.cache_control.as_deref(), Some("max-age=60"));
        assert_eq!(info.metadata, [("origin".to_owned(), "sensor 7".to_owned())]);
    }
}

fn answer(body: &str) -> Vec<Act> {
    vec![Act::Send(
        format!("HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes(),
    )]
}

fn multipart(asked: &Asked) -> Vec<Act> {
    match (asked.method(), asked.target()) {
        ("POST", target) if target.ends_with("?uploads=") => {
            answer("<InitiateMultipartUploadResult><UploadId>U1</UploadId></InitiateMultipartUploadResult>")
        }
        ("POST", _) => answer("<CompleteMultipartUploadResult><ETag>\"e-3\"</ETag></CompleteMultipartUploadResult>"),
        ("DELETE", _) => vec![Act::Send(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())],
        _ => answer(""),
    }
}

#[tokio::test]
async fn each_request_of_a_multipart_upload_carries_what_belongs_to_it() {
    let script = Script::start(multipart);
    let upload = script.client().put("bucket", "key").checksum(None).metadata("a", "b").tag("t", "u");
    let upload = upload.storage_class("STANDARD_IA").acl("private").sse_s3().if_none_match_any().request_payer();
    upload.sse_customer_key(SseCustomerKey::new(&[1; 32]).unwrap()).bytes(bytes(17 << 20)).await.unwrap();
    let asked = script.asked();
    let has = |asked: &Asked, name: &str| asked.header(name).is_some();
    for request in &asked {
        let starts = request.target().ends_with("?uploads=");
        let completes = request.method() == "POST" && !starts;
        for name in
            ["x-amz-meta-a", "x-amz-tagging", "x-amz-storage-class", "x-amz-acl", "x-amz-server-side-encryption"]
        {
            assert_eq!(has(request, name), starts, "{name} in {}", request.head);
        }
        assert_eq!(has(request, "if-none-match"), completes, "{}", request.head);
        assert_eq!(request.header("x-amz-request-payer"), Some("requester"));
        assert!(has(request, "x-amz-server-side-encryption-customer-key"), "{}", request.head);
    }
    assert_eq!(asked.len(), 2 + 4);
}

#[tokio::test]
async fn a_condition_that_does_not_hold_is_a_precondition_error_and_leaves_no_upload() {
    let (origin, client) = start().await;
    for size in [10, 17 << 20] {
        let key = format!("k{size}");
        let put = || client.put("bucket", &key).if_none_match_any();
        let etag = put().bytes(bytes(size)).await.unwrap().etag.unwrap();
        let there = put().bytes(bytes(size)).await.unwrap_err();
        assert_eq!((there.kind(), there.status()), (ErrorKind::Precondition, Some(412)), "{there}");
        let replaced = client.put("bucket", &key).if_match(&etag).bytes("other").await;
        assert!(replaced.is_ok(), "{replaced:?}");
        let stale = client.put("bucket", &key).if_match(&etag).bytes(bytes(size)).await.unwrap_err();
        assert_eq!(stale.kind(), ErrorKind::Precondition);
    }
    assert_eq!(origin.open_uploads("bucket"), []);
}

/// A server that does the first write, breaks before it answers, and refuses the second for what is
/// there then, with this entity tag.
fn forgetful(etag: &'static str, size: usize) -> Script {
    Script::start(move |asked| match (asked.method(), asked.index) {
        ("PUT", 0) => vec![Act::Close],
        ("PUT", _) => error(412, "PreconditionFailed"),
        _ => vec![Act::Send(
            format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nETag: \"{etag}\"\r\n\r\n").into_bytes(),
        )],
    })
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_not_taken_for_somebody_elses() {
    let put = async |script: &Script| script.client().put("bucket", "key").if_none_match_any().bytes("hello").await;
    let own = forgetful("5d41402abc4b2a76b9719d911017c592", 5);
    let outcome = put(&own).await.unwrap();
    assert_eq!(outcome.etag.as_deref(), Some("\"5d41402abc4b2a76b9719d911017c592\""));

    for another in [forgetful("5d41402abc4b2a76b9719d911017c592", 6), forgetful("00000000000000000000000000000000", 5)]
    {
        let refused = put(&another).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Precondition);
        assert!(!refused.to_string().contains("cannot be told"), "{refused}");
    }
    let opaque = put(&forgetful("an-opaque-tag", 5)).await.unwrap_err();
    assert_eq!(opaque.kind(), ErrorKind::Precondition);
    assert!(opaque.to_string().contains("cannot be told"), "{opaque}");
}

#[tokio::test]
async fn a_conflict_between_conditional_writes_is_tried_again() {
    let script = Script::start(|asked| match asked.index {
        0 => error(409, "ConditionalRequestConflict"),
        _ => answer(""),
    });
    script.client().put("bucket", "key").if_none_match_any().bytes("x").await.unwrap();
    assert_eq!(script.asked().len(), 2);
}

#[tokio::test]
async fn a_tag_that_only_looks_like_an_md5_says_nothing_of_whose_the_object_is() {
    let put = async |script: &Script, bucket: &str, own_key: bool| {
        let put = script.client().put(bucket, "key").if_none_match_any();
        let put = if own_key { put.sse_customer_key(SseCustomerKey::new(&[1; 32]).unwrap()) } else { put };
        put.bytes("hello").await.unwrap_err()
    };
    let tagged = |by: &'static str| {
        Script::start(move |asked| match (asked.method(), asked.index) {
            ("PUT", 0) => vec![Act::Close],
            ("PUT", _) => error(412, "PreconditionFailed"),
            _ => vec![Act::Send(
                format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n{by}ETag: \"{}\"\r\n\r\n", "0".repeat(32))
                    .into_bytes(),
            )],
        })
    };
    let refused = put(&tagged("x-amz-server-side-encryption: AES256\r\n"), "bucket", false).await;
    assert!(!refused.to_string().contains("cannot be told"), "{refused}");
    for (by, own_key) in [("x-amz-server-side-encryption: aws:kms:dsse\r\n", false), ("", true)] {
        let refused = put(&tagged(by), "bucket", own_key).await;
        assert_eq!(refused.kind(), ErrorKind::Precondition);
        assert!(refused.to_string().contains("cannot be told"), "{by}: {refused}");
    }
}

#[tokio::test]
async fn a_file_larger_than_what_the_budget_can_lend_goes_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("f");
    std::fs::write(&source, bytes(40 << 20)).unwrap();
    let script = Script::start(multipart);
    let builder = script.builder().memory(64 << 20).set("multipart_threshold", "1GiB").unwrap();
    assert!(builder.build().unwrap().put("bucket", "key").checksum(None).file(&source).await.unwrap().parts > 1);
    let script = Script::start(multipart);
    let builder = script.builder().memory(256 << 20).set("multipart_threshold", "1GiB").unwrap();
    let patient = builder.set("first_byte_timeout", "20s").unwrap().set("stall_timeout", "20s").unwrap();
    assert_eq!(patient.build().unwrap().put("bucket", "key").checksum(None).file(&source).await.unwrap().parts, 1);
}

fn small(origin: &wirespeed_origin::Running) -> wirespeed::Client {
    let client = wirespeed::Client::builder().endpoint_url(origin.endpoint());
    let client = client.credentials(wirespeed::Credentials::new("id", "secret")).part_size(PART).concurrency(4);
    client.memory(64 << 20).build().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sources_and_destinations_that_stand_still_hold_up_nothing_else() {
    let (origin, client) = start().await;
    let content = Bytes::from(bytes(30 << 20));
    client.put("bucket", "large").bytes(content.clone()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("f");
    let client = small(&origin);
    let mut standing = tokio::task::JoinSet::new();
    for index in 0..24 {
        let client = client.clone();
        // Some stand still at once, some within the first piece, some when parts have been sent.
        let fed = content.slice(..[0, 100_000, 17 << 20][index % 3]);
        standing.spawn(async move {
            let (mut feed, source) = tokio::io::duplex(64 << 10);
            let key = format!("standing-{index}");
            let upload = client.put("bucket", &key).reader(source);
            let feeding = async {
                tokio::io::copy(&mut &fed[..], &mut feed).await.unwrap();
                std::future::pending::<()>().await;
            };
            tokio::join!(upload, feeding).0.unwrap();
        });
    }
    for _ in 0..8 {
        let client = client.clone();
        standing.spawn(async move {
            let (unwritten, _unread) = tokio::io::duplex(64 << 10);
            client.get("bucket", "large").writer(unwritten).await.unwrap();
        });
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let others = async {
        client.get("bucket", "large").file(&target).await.unwrap();
        client.put("bucket", "again").file(&target).await.unwrap();
        client.put("bucket", "third").reader(&content[..]).await.unwrap();
    };
    tokio::time::timeout(Duration::from_secs(20), others).await.expect("they are locked");
    assert!(std::fs::read(&target).unwrap() == *content);
    assert_eq!(client.head("bucket", "third").await.unwrap().size, content.len() as u64);
    assert_eq!(standing.len(), 32);
    standing.shutdown().await;
    client.settle(Duration::from_secs(5)).await.unwrap();
    assert_eq!(origin.open_uploads("bucket"), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_piped_through_one_client_however_many_at_once() {
    let (origin, client) = start().await;
    let content = bytes(17 << 20);
    client.put("bucket", "from").bytes(content.clone()).await.unwrap();
    let client = small(&origin);
    let mut pipes = tokio::task::JoinSet::new();
    for index in 0..8 {
        let client = client.clone();
        pipes.spawn(async move {
            let (into, from) = tokio::io::duplex(64 << 10);
            let key = format!("to-{index}");
            let (read, written) =
                tokio::join!(client.get("bucket", "from").writer(into), client.put("bucket", &key).reader(from));
            read.unwrap();
            written.unwrap();
        });
    }
    let all = async { while pipes.join_next().await.transpose().unwrap().is_some() {} };
    tokio::time::timeout(Duration::from_secs(60), all).await.expect("they lock each other");
    for index in 0..8 {
        assert_eq!(client.head("bucket", format!("to-{index}")).await.unwrap().size, content.len() as u64);
    }
    assert!(client.get("bucket", "to-7").buffer().await.unwrap().body == *content);
    assert_eq!(client.metrics().memory_in_use, 0);
}

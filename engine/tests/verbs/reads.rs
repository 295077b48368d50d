//! Reading with options: suffixes, conditions, ordered streams.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use wirespeed::{ErrorKind, Progress, SseCustomerKey};

use super::script::{Act, Script, honest, object};
use super::{PART, bytes, start};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suffix_is_the_end_of_the_object_whatever_its_length() {
    let (_origin, client) = start().await;
    let folder = tempfile::tempdir().unwrap();
    for size in [0, 1, PART - 1, 3 * PART + 17] {
        let content = bytes(size);
        client.put("bucket", "key").bytes(content.clone()).await.unwrap();
        for length in [1, PART - 1, PART, PART + 1, 2 * PART + 5, 3 * PART + 17, u64::MAX] {
            let end = &content[size.saturating_sub(length) as usize..];
            let object = client.get("bucket", "key").suffix(length).buffer().await.unwrap();
            assert!(object.body == *end, "{length} of {size} in memory");
            let target = folder.path().join("target");
            client.get("bucket", "key").suffix(length).file(&target).await.unwrap();
            assert!(std::fs::read(&target).unwrap() == end, "{length} of {size} in a file");
            let mut written = Vec::new();
            client.get("bucket", "key").suffix(length).writer(&mut written).await.unwrap();
            assert!(written == end, "{length} of {size} in order");
        }
    }
    let none = client.get("bucket", "key").suffix(0).buffer().await.unwrap_err();
    assert_eq!(none.kind(), ErrorKind::Config);
    assert_eq!(client.metrics().memory_in_use, 0);
}

#[tokio::test]
async fn a_suffix_costs_no_request_beyond_its_parts() {
    let (_origin, client) = start().await;
    client.put("bucket", "key").bytes(bytes(3 * PART)).await.unwrap();
    let before = client.metrics().requests;
    client.get("bucket", "key").suffix(100).buffer().await.unwrap();
    assert_eq!(client.metrics().requests - before, 1);
    client.get("bucket", "key").suffix(2 * PART).buffer().await.unwrap();
    assert_eq!(client.metrics().requests - before, 1 + 2);
}

#[tokio::test]
async fn a_server_that_sends_another_end_is_caught() {
    let script = Script::start(|_| {
        let head = "HTTP/1.1 206 P\r\nContent-Length: 10\r\nContent-Range: bytes 80-89/100\r\nETag: \"t\"\r\n\r\n";
        vec![Act::Send([head.as_bytes(), &[0; 10]].concat())]
    });
    let error = script.client().get("bucket", "key").suffix(10).buffer().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Integrity, "{error}");
    assert_eq!(script.asked()[0].header("range"), Some("bytes=-10"));
}

#[tokio::test]
async fn conditions_hold_or_the_error_says_which_way_they_failed() {
    let (_origin, client) = start().await;
    let etag = client.put("bucket", "key").bytes("content").await.unwrap().etag.unwrap();
    assert_eq!(&*client.get("bucket", "key").if_match(&etag).buffer().await.unwrap().body, b"content");
    let other = client.get("bucket", "key").if_match("\"other\"").buffer().await.unwrap_err();
    assert_eq!((other.kind(), other.status()), (ErrorKind::Precondition, Some(412)));
    for unchanged in [
        client.get("bucket", "key").if_none_match(&etag).buffer().await.unwrap_err(),
        client.head("bucket", "key").if_none_match(&etag).await.unwrap_err(),
    ] {
        assert_eq!((unchanged.kind(), unchanged.status()), (ErrorKind::Precondition, Some(304)));
        assert!(unchanged.to_string().contains("not modified"), "{unchanged}");
    }
    let written = client.head("bucket", "key").await.unwrap().last_modified.unwrap();
    let unchanged = client.get("bucket", "key").if_modified_since(written).buffer().await.unwrap_err();
    assert_eq!(unchanged.status(), Some(304));
    assert!(client.head("bucket", "key").if_unmodified_since(written).await.is_ok());
    let mut gets = client.get_many("bucket").if_match("\"other\"").buffers(["key".to_owned()]).unwrap();
    assert_eq!(gets.next().await.unwrap().1.unwrap_err().kind(), ErrorKind::Precondition);
}

#[tokio::test]
async fn version_payer_owner_and_key_go_with_every_request_and_conditions_with_the_first() {
    let content = object(200_000);
    let script = Script::start(move |asked| honest(asked, &content));
    let key = SseCustomerKey::new(&[7; 32]).unwrap();
    let get = script.client().get("bucket", "key").version("v/1&").request_payer().expected_owner("123456789012");
    get.if_match("\"tag\"").sse_customer_key(key).verify(false).buffer().await.unwrap();
    let asked = script.asked();
    assert_eq!(asked.len(), 4);
    for request in &asked {
        assert!(request.target().ends_with("?versionId=v%2F1%26"), "{}", request.head);
        assert_eq!(request.header("x-amz-request-payer"), Some("requester"));
        assert_eq!(request.header("x-amz-expected-bucket-owner"), Some("123456789012"));
        assert_eq!(request.header("x-amz-server-side-encryption-customer-algorithm"), Some("AES256"));
        assert_eq!(request.header("if-match"), Some("\"tag\""), "the condition, and then the pin");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_brings_every_byte_in_order_within_its_window() {
    let (_origin, client) = start().await;
    for size in [0, 1, PART, 4 * PART + 12345] {
        let content = bytes(size);
        client.put("bucket", "key").bytes(content.clone()).await.unwrap();
        for window in [1, 1 << 20, 64 << 20] {
            let mut stream = client.get("bucket", "key").window(window).stream().await.unwrap();
            assert_eq!((stream.length(), stream.info().size), (size, size));
            let mut received = Vec::new();
            while let Some(part) = stream.next().await {
                received.extend_from_slice(&part.unwrap());
                let held = client.metrics().memory_in_use;
                assert!(held <= window.max(128 << 10) * 5 / 4 + (1 << 20), "{held} bytes held of a window of {window}");
            }
            assert!(received == content, "{size} through {window}");
            assert!(stream.next().await.is_none(), "it stays at its end");
        }
    }
    let content = bytes(3 * PART);
    client.put("bucket", "key").bytes(content.clone()).await.unwrap();
    let mut end = client.get("bucket", "key").suffix(2 * PART + 3).stream().await.unwrap();
    let mut received = Vec::new();
    while let Some(part) = end.next().await {
        received.extend_from_slice(&part.unwrap());
    }
    assert!(received == content[PART as usize - 3..]);
    drop(end);
    assert_eq!(client.metrics().memory_in_use, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_stream_stops_and_two_streams_do_not_lock_each_other() {
    let (_origin, client) = start().await;
    client.put("bucket", "key").bytes(bytes(6 * PART)).await.unwrap();
    let mut one = client.get("bucket", "key").stream().await.unwrap();
    let mut two = client.get("bucket", "key").stream().await.unwrap();
    let both = async {
        for _ in 0..6 {
            assert!(one.next().await.unwrap().unwrap() == two.next().await.unwrap().unwrap());
        }
    };
    tokio::time::timeout(Duration::from_secs(30), both).await.expect("one stream locked the other");
    let mut dropped = client.get("bucket", "key").stream().await.unwrap();
    dropped.next().await.unwrap().unwrap();
    drop((one, two, dropped));
    for _ in 0..100 {
        if client.metrics().memory_in_use == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{} bytes are still held", client.metrics().memory_in_use);
}

#[tokio::test]
async fn a_stream_that_fails_says_so_once_and_ends() {
    let content = object(300_000);
    let script = Script::start(move |asked| match asked.index {
        0 => honest(asked, &content),
        _ => super::script::error(403, "AccessDenied"),
    });
    let mut stream = script.client().get("bucket", "key").verify(false).stream().await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap().len(), 64 << 10);
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind(), ErrorKind::Denied);
    assert!(stream.next().await.is_none());
    let missing = script.client().get("bucket", "key").stream().await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Denied, "the first answer is waited for");
}

#[tokio::test]
async fn an_empty_object_is_flushed_and_counted_by_a_writer_too() {
    struct Flushed(bool);
    impl tokio::io::AsyncWrite for Flushed {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }
        fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
            self.0 = true;
            Poll::Ready(Ok(()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }
    let (_origin, client) = start().await;
    client.put("bucket", "empty").bytes("").await.unwrap();
    let (mut writer, progress) = (Flushed(false), Progress::default());
    client.get("bucket", "empty").progress(progress.clone()).writer(&mut writer).await.unwrap();
    assert!(writer.0, "it was not flushed");
    assert_eq!(progress.objects(), 1);
}

/// Knows nothing of ranges.
fn rangeless(size: usize) -> Script {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nETag: \"tag\"\r\n\r\n");
    let answer = [head.as_bytes(), &object(size)].concat();
    Script::start(move |_| vec![Act::Send(answer.clone())])
}

#[tokio::test]
async fn an_object_that_comes_whole_is_read_in_order_within_the_window() {
    const SIZE: usize = (4 << 20) + 17;
    for verify in ["false", "true"] {
        let script = rangeless(SIZE);
        let client = script.builder().set("verify_checksums", verify).unwrap().build().unwrap();
        let mut stream = client.get("bucket", "key").window(128 << 10).stream().await.unwrap();
        let mut read = Vec::new();
        while let Some(part) = stream.next().await {
            read.extend_from_slice(&part.unwrap());
            let held = client.metrics().memory_in_use;
            assert!(held <= 192 << 10, "{held} bytes are held");
            // A reader that has other things to do.
            if read.len() % 3 == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        assert!(read == object(SIZE));

        struct Measuring<'a>(&'a wirespeed::Client, u64, Vec<u8>);
        impl tokio::io::AsyncWrite for Measuring<'_> {
            fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
                self.1 = self.1.max(self.0.metrics().memory_in_use);
                self.2.extend_from_slice(bytes);
                Poll::Ready(Ok(bytes.len()))
            }
            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
                Poll::Ready(Ok(()))
            }
            fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
                Poll::Ready(Ok(()))
            }
        }
        let mut writer = Measuring(&client, 0, Vec::new());
        client.get("bucket", "key").writer(&mut writer).await.unwrap();
        assert!(writer.1 <= 192 << 10, "{} bytes were held", writer.1);
        assert!(writer.2 == object(SIZE));
        assert_eq!(client.metrics().memory_in_use, 0);
    }
}

#[tokio::test]
async fn readers_that_stand_still_before_a_whole_object_hold_no_place_in_flight() {
    let script = rangeless(8 << 20);
    let client = script.client();
    let mut standing = Vec::new();
    for _ in 0..8 {
        let mut stream = client.get("bucket", "key").stream().await.unwrap();
        stream.next().await.unwrap().unwrap();
        // Until the part behind it has come in.
        tokio::time::sleep(Duration::from_millis(20)).await;
        standing.push(stream);
    }
    let other = tokio::time::timeout(Duration::from_secs(5), client.get("bucket", "key").discard());
    other.await.expect("it waits for the readers").unwrap();
    assert_eq!(standing.len(), 8);
}

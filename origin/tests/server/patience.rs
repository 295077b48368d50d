//! Clients that keep their connections waiting, in a time that passes as soon as nothing else happens.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use wirespeed_origin::{Origin, Running, Series};

/// The longest that a connection may wait, by the server's documentation, and twice that.
const MINUTES: std::ops::RangeInclusive<Duration> = Duration::from_secs(60)..=Duration::from_secs(121);

async fn started() -> Running {
    let builder = Origin::builder().anonymous(true).bucket("bucket").synthetic("data", Series::one("one", 1 << 30));
    builder.start().await.unwrap()
}

async fn connected(server: &Running, sent: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(sent.as_bytes()).await.unwrap();
    stream
}

/// Returns the bytes that come before the server closes the connection, and when it closes.
async fn until_closed(mut stream: TcpStream) -> (String, Duration) {
    let (began, mut received) = (Instant::now(), Vec::new());
    // A reset is as good an end.
    let _ = timeout(Duration::from_secs(600), stream.read_to_end(&mut received)).await.unwrap();
    (String::from_utf8(received).unwrap(), began.elapsed())
}

/// One answer, an error.
async fn answered(stream: &mut TcpStream) -> String {
    let mut received = Vec::new();
    while !received.ends_with(b"</Error>") {
        assert!(stream.read_buf(&mut received).await.unwrap() > 0, "it ended early");
    }
    String::from_utf8(received).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_come_to_its_end_is_not_waited_for() {
    let server = started().await;
    for sent in ["", "GET /bucket/key HTTP/1.1\r\nhost: x\r\nx-more:"] {
        let (received, waited) = until_closed(connected(&server, sent).await).await;
        assert!(MINUTES.contains(&waited), "{sent:?}: {waited:?}");
        assert!(!received.starts_with("HTTP/1.1 2"), "{received}");
    }
    // A byte now and then is no head.
    let mut stream = connected(&server, "GET /bucket/key HTTP/1.1\r\nx-slow: ").await;
    let began = Instant::now();
    while stream.write_all(b"x").await.is_ok() && began.elapsed() < Duration::from_secs(300) {
        sleep(Duration::from_secs(7)).await;
    }
    assert!(MINUTES.contains(&began.elapsed()), "{:?}", began.elapsed());
    assert_eq!(server.stats().connections_open, 0);
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_kept_for_a_while_after_an_answer() {
    let server = started().await;
    let request = "GET /bucket/nothing HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut stream = connected(&server, "").await;
    for _ in 0..3 {
        stream.write_all(request.as_bytes()).await.unwrap();
        assert!(answered(&mut stream).await.starts_with("HTTP/1.1 404 "));
        sleep(Duration::from_secs(50)).await;
    }
    assert_eq!(server.stats().connections_open, 1);
    let (_, waited) = until_closed(stream).await;
    assert!(waited < Duration::from_secs(61), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_to_its_end_is_not_waited_for() {
    let server = started().await;
    let cases = [("PUT /bucket/key", ""), ("POST /bucket?delete", ""), ("PUT /bucket/key", "expect: 100-continue\r\n")];
    for (asked, header) in cases {
        let sent = format!("{asked} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n{header}\r\nhello");
        let (received, waited) = until_closed(connected(&server, &sent).await).await;
        assert!(received.contains("<Code>RequestTimeout</Code>"), "{asked}: {received}");
        assert!(MINUTES.contains(&waited), "{asked}: {waited:?}");
    }
    assert_eq!(server.object("bucket", "key").await, None);
    // As long as something comes the client may take its time.
    let mut slow = connected(&server, "PUT /bucket/key HTTP/1.1\r\nhost: x\r\ncontent-length: 8\r\n\r\n").await;
    for byte in b"patience" {
        sleep(Duration::from_secs(50)).await;
        slow.write_all(&[*byte]).await.unwrap();
    }
    let (received, _) = until_closed(slow).await;
    assert!(received.starts_with("HTTP/1.1 200 "), "{received}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_reads_is_not_waited_for() {
    let server = started().await;
    let unread = connected(&server, "GET /data/one HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let began = Instant::now();
    while server.stats().requests_in_flight + server.stats().requests_total == 0 {
        tokio::task::yield_now().await;
    }
    while server.stats().connections_open > 0 {
        sleep(Duration::from_secs(1)).await;
        assert!(began.elapsed() < Duration::from_secs(600), "it stays open for ever");
    }
    assert!(MINUTES.contains(&began.elapsed()), "{:?}", began.elapsed());
    drop(unread);
}

#[tokio::test]
async fn an_upload_beyond_the_limit_is_refused_before_its_body_is_read() {
    let server = started().await;
    let five = 5_u64 << 30;
    let begun = super::client::send(&server, "POST", "/bucket/key?uploads", &[], b"").await;
    let part = format!("/bucket/key?partNumber=1&uploadId={}", begun.one("UploadId").unwrap());
    let asks = [
        (format!("PUT /bucket/key HTTP/1.1\r\ncontent-length: {}", five + 1), "EntityTooLarge"),
        (format!("PUT {part} HTTP/1.1\r\ncontent-length: {}", u64::MAX - 2), "EntityTooLarge"),
        (format!("PUT /bucket/key HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: {}", five + 1), "EntityTooLarge"),
        (
            format!("PUT /bucket/key HTTP/1.1\r\ncontent-length: 9\r\nx-amz-decoded-content-length: {}", five + 1),
            "EntityTooLarge",
        ),
        (format!("POST /bucket?delete HTTP/1.1\r\ncontent-length: {}", 9 << 20), "MaxMessageLengthExceeded"),
        (format!("PUT /bucket/key?tagging HTTP/1.1\r\ncontent-length: {}", 9 << 20), "MaxMessageLengthExceeded"),
    ];
    for (ask, code) in asks {
        let mut stream = connected(&server, &format!("{ask}\r\nhost: x\r\n\r\n")).await;
        let received = timeout(Duration::from_secs(1), answered(&mut stream)).await;
        let received = received.unwrap_or_else(|_| panic!("{ask}: no answer"));
        assert!(received.starts_with("HTTP/1.1 400") && received.contains(code), "{ask}: {received}");
    }
}

//! Misbehaving on purpose.

use std::time::{Duration, Instant};

use tokio::time::timeout;
use wirespeed_origin::{Action, Fault, Origin, Running, Series, Verb};

use super::client::{get, put, send, try_send};

async fn server() -> Running {
    let server = Origin::builder()
        .anonymous(true)
        .bucket("bucket")
        .synthetic("data", Series::one("one.bin", 1 << 30))
        .start()
        .await
        .unwrap();
    put(&server, "/bucket/key", b"0123456789").await;
    server
}

#[tokio::test]
async fn the_request_that_was_meant_is_met_and_no_other() {
    let server = server().await;
    server.inject(Fault::new(Action::Status(503)).verb(Verb::Get).bucket("bucket").key("a b").nth(2).times(2));
    put(&server, "/bucket/a%20b", b"x").await;
    let mut statuses = Vec::new();
    for _ in 0..5 {
        assert_eq!(get(&server, "/bucket/key", &[]).await.status, 200);
        assert_eq!(send(&server, "HEAD", "/bucket/a%20b", &[], b"").await.status, 200);
        let answer = get(&server, "/bucket/a%20b", &[]).await;
        if answer.status == 503 {
            assert_eq!(answer.code(), "SlowDown");
        }
        statuses.push(answer.status);
    }
    assert_eq!(statuses, [200, 503, 503, 200, 200]);
    assert_eq!((server.stats().count(Verb::Get), server.stats().server_errors), (10, 2));
}

#[tokio::test]
async fn heads_that_lie() {
    let server = server().await;
    let read = async |action: Action| {
        server.clear_faults();
        server.inject(Fault::new(action).verb(Verb::Get));
        get(&server, "/bucket/key", &[("range", "bytes=2-7")]).await
    };
    let wrong = read(Action::ContentRange("bytes 3-8/10".to_owned())).await;
    assert_eq!((wrong.header("content-range"), wrong.body.as_slice()), (Some("bytes 3-8/10"), b"234567".as_slice()));
    let short = read(Action::Short(4)).await;
    assert_eq!((short.header("content-range"), short.header("content-length")), (Some("bytes 2-7/10"), Some("4")));
    assert_eq!(short.body, b"2345");
    assert!(read(Action::WeakEtag).await.header("etag").unwrap().starts_with("W/\""));
    assert_eq!(read(Action::NoEtag).await.header("etag"), None);
}

#[tokio::test]
async fn connections_that_end_or_hang() {
    let server = server().await;
    server.inject(Fault::new(Action::CloseAfter(3)).verb(Verb::Get).key("key"));
    let cut = get(&server, "/bucket/key", &[]).await;
    assert_eq!((cut.status, cut.header("content-length"), cut.body.as_slice()), (200, Some("10"), b"012".as_slice()));
    server.inject(Fault::new(Action::StallAfter(1 << 20)).verb(Verb::Get).key("one.bin"));
    let stalled = timeout(Duration::from_millis(300), get(&server, "/data/one.bin", &[])).await;
    assert!(stalled.is_err(), "it must hang");
    server.inject(Fault::new(Action::Close).verb(Verb::Put).key("never"));
    assert!(try_send(&server, "PUT", "/bucket/never", &[], b"x").await.is_err());
    assert_eq!(send(&server, "HEAD", "/bucket/never", &[], b"").await.status, 404);
    server.inject(Fault::new(Action::CloseAnswer).verb(Verb::Put).key("done"));
    assert!(try_send(&server, "PUT", "/bucket/done", &[], b"x").await.is_err());
    assert_eq!(send(&server, "HEAD", "/bucket/done", &[], b"").await.status, 200);
    let started = Instant::now();
    server.inject(Fault::new(Action::Delay(Duration::from_millis(200))).verb(Verb::Head).key("slow"));
    send(&server, "HEAD", "/bucket/slow", &[], b"").await;
    assert!(started.elapsed() >= Duration::from_millis(200));
    // Stopping does not wait for what hangs.
    let started = Instant::now();
    server.stop().await;
    assert!(started.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn an_object_replaced_between_two_ranges() {
    let server = server().await;
    server.inject(Fault::new(Action::Replace(b"9876543210".to_vec())).verb(Verb::Get).key("key").nth(2));
    let first = get(&server, "/bucket/key", &[("range", "bytes=0-4")]).await;
    let etag = first.header("etag").unwrap().to_owned();
    let second = get(&server, "/bucket/key", &[("range", "bytes=5-9"), ("if-match", &etag)]).await;
    assert_eq!(second.status, 412);
    assert_eq!(get(&server, "/bucket/key", &[]).await.body, b"9876543210");
}

#[tokio::test]
async fn an_error_under_a_200() {
    let server = server().await;
    server.inject(Fault::new(Action::ErrorInBody("InternalError".to_owned())).verb(Verb::Copy));
    let answer = send(&server, "PUT", "/bucket/copy", &[("x-amz-copy-source", "bucket/key")], b"").await;
    assert_eq!((answer.status, &*answer.code()), (200, "InternalError"));
    assert!(answer.text().starts_with(' '));
}

#[tokio::test]
async fn faults_are_written_as_text() {
    let fault: Fault = "verb=get,bucket=b,key=x,nth=2,times=3,action=close-after:1000".parse().unwrap();
    let same = Fault::new(Action::CloseAfter(1000)).verb(Verb::Get).bucket("b").key("x").nth(2).times(3);
    assert_eq!(fault, same);
    for wrong in ["", "verb=get", "action=explode", "action=close,verb=fetch", "action=short", "action=close,when=now"]
    {
        assert!(wrong.parse::<Fault>().is_err(), "{wrong}");
    }
}

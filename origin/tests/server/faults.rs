//! Misbehaving on purpose.

use std::time::{Duration, Instant};

use tokio::time::timeout;
use wirespeed_origin::{ANYWHERE, Action, BadHead, Fault, Origin, Running, Schedule, Series, Verb, synthetic_bytes};

use super::client::{get, put, raw, send, try_send};

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
    server.inject(Fault::new(Action::Stall).verb(Verb::Head).key("silent"));
    let stalled = timeout(Duration::from_millis(100), send(&server, "HEAD", "/bucket/silent", &[], b"")).await;
    assert!(stalled.is_err(), "it must hang");
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

/// A server that does only this to every GET.
async fn only(server: &Running, action: Action) {
    server.set_faults(Schedule::new(1).fault(Fault::new(action).verb(Verb::Get)));
}

fn is_reset(ended: &std::io::Result<()>) -> bool {
    ended.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
}

#[tokio::test]
async fn resets_come_before_within_and_after_a_body() {
    let server = server().await;
    let read = async || raw(&server, "GET", "/data/one.bin", &[("range", "bytes=0-99999")], b"").await;
    for action in [Action::Reset, Action::ResetAnswer] {
        only(&server, action).await;
        let (received, ended) = read().await;
        assert!(received.is_empty() && is_reset(&ended), "{ended:?}");
    }
    for (action, least, most) in [(Action::ResetAfter(1000), 1000, 2000), (Action::ResetAfter(ANYWHERE), 1, 100_000)] {
        only(&server, action).await;
        let (received, ended) = read().await;
        assert!((least..most).contains(&received.len()) && is_reset(&ended), "{} {ended:?}", received.len());
    }
    only(&server, Action::ResetEnd).await;
    let (received, ended) = read().await;
    assert!(received.ends_with(&synthetic_bytes(0, "one.bin", 0, 100_000)) && is_reset(&ended), "{ended:?}");
    server.set_faults(Schedule::new(1).fault(Fault::new(Action::ResetUpload(1000)).verb(Verb::Put)));
    let (received, ended) = raw(&server, "PUT", "/bucket/never", &[], &[1; 100_000]).await;
    assert!(received.is_empty() && ended.is_err(), "{ended:?}");
    assert_eq!(send(&server, "HEAD", "/bucket/never", &[], b"").await.status, 404);
    assert_eq!(server.stats().faults["reset-upload"], 1);
}

#[tokio::test]
async fn bodies_that_are_longer_or_corrupt_or_of_another_range() {
    let server = server().await;
    let range = [("range", "bytes=2-7")];
    only(&server, Action::Longer(5)).await;
    let longer = get(&server, "/bucket/key", &range).await;
    assert_eq!((longer.header("content-length"), longer.body.as_slice()), (Some("6"), b"234567+++++".as_slice()));
    only(&server, Action::Padded(3)).await;
    let padded = get(&server, "/bucket/key", &range).await;
    assert_eq!((padded.header("content-length"), padded.body.as_slice()), (Some("9"), b"234567\0\0\0".as_slice()));
    assert_eq!(padded.header("content-range"), Some("bytes 2-7/10"));
    only(&server, Action::ShiftRange(1)).await;
    assert_eq!(get(&server, "/bucket/key", &range).await.header("content-range"), Some("bytes 3-8/10"));
    only(&server, Action::IgnoreRange).await;
    let whole = get(&server, "/bucket/key", &range).await;
    assert_eq!((whole.status, whole.body.as_slice()), (200, b"0123456789".as_slice()));
    let checksum = [("x-amz-checksum-crc32", "NhCmhg==")];
    assert_eq!(send(&server, "PUT", "/bucket/hello", &checksum, b"hello").await.status, 200);
    only(&server, Action::Corrupt(1)).await;
    let mut places = Vec::new();
    for _ in 0..8 {
        let corrupt = get(&server, "/bucket/hello", &[("x-amz-checksum-mode", "ENABLED")]).await;
        assert_eq!((corrupt.header("x-amz-checksum-crc32"), corrupt.body.len()), (Some("NhCmhg=="), 5));
        let differing: Vec<_> = (0..5).filter(|at| corrupt.body[*at] != b"hello"[*at]).collect();
        assert_eq!(differing.len(), 1);
        places.extend(differing);
    }
    places.dedup();
    assert!(places.len() > 1, "the place must be drawn anew for each request");
}

#[tokio::test]
async fn heads_that_are_malformed_or_slow() {
    let server = server().await;
    let cases = [
        (BadHead::Version, "HTPT/1.1 200"),
        (BadHead::Status, "HTTP/1.1 2x0 OK"),
        (BadHead::Field, "this line has no colon\r\n"),
        (BadHead::Control, "a\0b"),
        (BadHead::Length, "content-length: 10x\r\n"),
        (BadHead::Lengths, "content-length: 10\r\ncontent-length: 11\r\n"),
        (BadHead::Negative, "content-length: -11\r\n"),
        (BadHead::Oversized, "x-amz-meta-large: xxxx"),
    ];
    for (kind, wrong) in cases {
        only(&server, Action::MalformedHead(kind)).await;
        let (received, _) = raw(&server, "GET", "/bucket/key", &[], b"").await;
        let text = String::from_utf8_lossy(&received);
        assert!(text.contains(wrong) && text.ends_with("0123456789"), "{kind:?}: {text}");
        assert_eq!(text.len() > 200_000, kind == BadHead::Oversized);
    }
    only(&server, Action::MalformedHead(BadHead::Cut)).await;
    let (received, _) = raw(&server, "GET", "/bucket/key", &[], b"").await;
    assert!(received.starts_with(b"HTTP/1.1 200") && !received.windows(4).any(|four| four == b"\r\n\r\n"));
    only(&server, Action::SlowHead(Duration::from_millis(160))).await;
    let started = Instant::now();
    assert_eq!(get(&server, "/bucket/key", &[]).await.body, b"0123456789");
    assert!((140..600).contains(&started.elapsed().as_millis()), "{:?}", started.elapsed());
}

#[tokio::test]
async fn errors_with_and_without_xml_and_xml_that_is_none() {
    let server = server().await;
    only(&server, Action::BareStatus(503)).await;
    let bare = get(&server, "/bucket/key", &[]).await;
    assert_eq!((bare.status, bare.header("content-type")), (503, Some("text/html")));
    only(&server, Action::Error(403, "ExpiredToken".to_owned())).await;
    let expired = get(&server, "/bucket/key", &[]).await;
    assert_eq!((expired.status, &*expired.code()), (403, "ExpiredToken"));
    only(&server, Action::ExpiredToken).await;
    let expired = get(&server, "/bucket/key", &[]).await;
    assert_eq!((expired.status, &*expired.code()), (400, "ExpiredToken"));
    server.set_faults(Schedule::new(3).fault(Fault::new(Action::MalformedXml)));
    assert_eq!(get(&server, "/bucket/key", &[]).await.body, b"0123456789", "data is no XML");
    let torn = get(&server, "/bucket?list-type=2", &[]).await;
    assert!(torn.status == 200 && torn.body.ends_with(b"<Torn & <\xff>"));
    server.set_faults(Schedule::new(3).fault(Fault::new(Action::ErrorInBody("InternalError".to_owned()))));
    let request = b"<Delete><Object><Key>key</Key></Object></Delete>";
    let answer = send(&server, "POST", "/bucket?delete", &[], request).await;
    assert_eq!((answer.status, answer.all("Key"), &*answer.code()), (200, vec!["key".to_owned()], "InternalError"));
    assert_eq!(get(&server, "/bucket/key", &[]).await.status, 200, "it was not deleted, and a GET is not met");
}

#[tokio::test]
async fn servers_that_refuse_checksums_or_trailers() {
    let server = server().await;
    let put = async |headers: &[(&str, &str)]| send(&server, "PUT", "/bucket/new", headers, b"hello").await.status;
    let (crc, trailer) = ([("x-amz-checksum-crc32", "NhCmhg==")], [("x-amz-trailer", "x-amz-checksum-crc32")]);
    server.set_faults(Schedule::new(1).fault(Fault::new(Action::RefuseTrailers)));
    assert_eq!([put(&crc).await, put(&trailer).await, put(&[]).await], [200, 501, 200]);
    server.set_faults(Schedule::new(1).fault(Fault::new(Action::RefuseChecksums)));
    assert_eq!([put(&crc).await, put(&trailer).await, put(&[]).await], [400, 400, 200]);
}

#[tokio::test]
async fn a_request_of_the_wrong_clock_s_time_is_served() {
    let server = Origin::builder().anonymous(true).bucket("bucket").start().await.unwrap();
    put(&server, "/bucket/key", b"x").await;
    server.inject(Fault::new(Action::Clock(7200)));
    let then = jiff::Timestamp::now().as_second() + 7200;
    let then = jiff::Timestamp::from_second(then).unwrap().strftime("%Y%m%dT%H%M%SZ").to_string();
    assert_eq!(get(&server, "/bucket/key", &[("x-amz-date", &then)]).await.status, 200);
}

#[tokio::test]
async fn the_server_s_own_refusals_are_left_whole() {
    let server = Origin::builder().anonymous(true).bucket("bucket").clock_skew(-3600).start().await.unwrap();
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    for action in [Action::Padded(100), Action::Short(10)] {
        server.clear_faults();
        server.inject(Fault::new(action));
        let refused = get(&server, "/bucket/key", &[("x-amz-date", &now)]).await;
        assert_eq!((refused.status, refused.code().as_str()), (403, "RequestTimeTooSkewed"));
    }
}

#[tokio::test]
async fn a_stalled_upload_is_let_go_when_its_client_hangs_up() {
    let server = server().await;
    server.inject(Fault::new(Action::Stall).verb(Verb::Put));
    let hung_up = timeout(Duration::from_millis(100), put(&server, "/bucket/large", &vec![0; 300_000])).await;
    assert!(hung_up.is_err());
    timeout(Duration::from_secs(5), async {
        while server.stats().connections_open > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn what_is_put_past_all_faults_has_the_checksum_of_an_upload() {
    let server = Origin::builder().anonymous(true).bucket("bucket").default_checksum(true).start().await.unwrap();
    server.put_object("bucket", "key", "123456789").await.unwrap();
    let head = send(&server, "HEAD", "/bucket/key", &[("x-amz-checksum-mode", "ENABLED")], b"").await;
    assert_eq!(head.header("x-amz-checksum-crc64nvme"), Some("rosUhgp5mIg="));
}

#[tokio::test]
async fn a_wrong_clock_refuses_requests_of_the_right_time() {
    let server = Origin::builder().anonymous(true).bucket("bucket").clock_skew(-3600).start().await.unwrap();
    let at = |seconds: i64| {
        let time = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
        (time.strftime("%Y%m%dT%H%M%SZ").to_string(), time.strftime("%a, %d %b %Y %H:").to_string())
    };
    let list = async |time: &str| get(&server, "/bucket", &[("x-amz-date", time)]).await;
    let refused = list(&at(0).0).await;
    assert_eq!((refused.status, &*refused.code()), (403, "RequestTimeTooSkewed"));
    let (_, hour_ago) = at(-3600);
    assert!(refused.header("date").unwrap().starts_with(&hour_ago), "{refused:?}");
    assert_eq!(list(&at(-3600).0).await.status, 200);
    // As a fault it meets whom it is to meet.
    let server = Origin::builder().anonymous(true).bucket("bucket").start().await.unwrap();
    server.set_faults(Schedule::new(1).fault(Fault::new(Action::Clock(3600)).nth(2)));
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(get(&server, "/bucket", &[("x-amz-date", &at(0).0)]).await.status);
    }
    assert_eq!(statuses, [200, 403, 200]);
}

#[tokio::test]
async fn a_bucket_in_another_region_says_so() {
    let server = server().await;
    let ask = async |method: &str, region: &str| {
        let query = format!("X-Amz-Credential=key%2F20260101%2F{region}%2Fs3%2Faws4_request");
        send(&server, method, &format!("/bucket/key?{query}"), &[], b"").await
    };
    server.set_faults(Schedule::new(1).fault(Fault::new(Action::Redirect("eu-west-3".to_owned())).bucket("bucket")));
    let elsewhere = ask("GET", "us-east-1").await;
    assert_eq!((elsewhere.status, &*elsewhere.code()), (301, "PermanentRedirect"));
    assert_eq!(elsewhere.header("x-amz-bucket-region"), Some("eu-west-3"));
    let head = ask("HEAD", "us-east-1").await;
    assert_eq!((head.status, head.header("x-amz-bucket-region"), head.body.len()), (301, Some("eu-west-3"), 0));
    assert_eq!(ask("GET", "eu-west-3").await.status, 200);
    server.set_faults(Schedule::new(1).fault(Fault::new(Action::WrongRegion("eu-west-3".to_owned())).bucket("bucket")));
    let malformed = ask("GET", "us-east-1").await;
    assert_eq!((malformed.status, &*malformed.code()), (400, "AuthorizationHeaderMalformed"));
    assert_eq!(malformed.one("Region").as_deref(), Some("eu-west-3"));
    assert_eq!(ask("HEAD", "us-east-1").await.header("x-amz-bucket-region"), Some("eu-west-3"));
    assert_eq!(ask("GET", "eu-west-3").await.status, 200);
}

#[tokio::test]
async fn what_a_seed_draws_does_not_depend_on_the_order_of_requests() {
    let server = server().await;
    let schedule = |seed| Schedule::new(seed).fault(Fault::new(Action::Status(500)).probability(0.3).times(2));
    let draw = async |seed: u64, offsets: Vec<u64>| {
        server.set_faults(schedule(seed));
        let mut statuses = std::collections::BTreeMap::<u64, Vec<u16>>::new();
        for offset in offsets {
            let range = format!("bytes={offset}-{}", offset + 9);
            let status = get(&server, "/data/one.bin", &[("range", &range)]).await.status;
            statuses.entry(offset).or_default().push(status);
        }
        statuses
    };
    let forward: Vec<u64> = (0..40).chain(0..40).chain(0..40).collect();
    let backward = forward.iter().rev().copied().collect();
    let first = draw(7, forward.clone()).await;
    assert_eq!(first, draw(7, backward).await);
    assert_ne!(first, draw(8, forward).await);
    let failed = first.values().flatten().filter(|status| **status == 500).count();
    assert!((10..40).contains(&failed), "{failed} of 80 drawn at 0.3 failed");
    assert!(first.values().all(|tries| tries[2] == 206), "the third try is past times");
}

#[tokio::test]
async fn a_schedule_is_read_from_toml_and_json_and_set_over_http() {
    let toml = "seed = 7\n[[fault]]\naction = \"close-after:anywhere\"\nverb = \"get\"\nprobability = 0.5\n\
                [[fault]]\naction = \"status:503\"\nkey = \"key\"\nnth = 2\n";
    let json = r#"{"seed": 7, "fault": [{"action": "close-after:anywhere", "verb": "get", "probability": 0.5},
                   {"action": "status:503", "key": "key", "nth": 2}]}"#;
    let schedule = Schedule::new(7)
        .fault(Fault::new(Action::CloseAfter(ANYWHERE)).verb(Verb::Get).probability(0.5))
        .fault(Fault::new(Action::Status(503)).key("key").nth(2));
    assert_eq!(toml.parse::<Schedule>().unwrap(), schedule);
    assert_eq!(json.parse::<Schedule>().unwrap(), schedule);
    for (wrong, why) in [
        ("[[fault]]\nverb = \"get\"", "fault 1: it lacks action"),
        ("[[fault]]\naction = \"close\"\nprobability = 2.0", "0 to 1"),
        ("seeds = 1", "seeds"),
        ("{", "EOF"),
    ] {
        let error = wrong.parse::<Schedule>().unwrap_err();
        assert!(error.contains(why), "{wrong}: {error}");
    }
    let server = server().await;
    let set = async |text: &str| send(&server, "POST", "/-/faults", &[], text.as_bytes()).await.status;
    assert_eq!(set(r#"{"fault": [{"action": "status:503"}]}"#).await, 200);
    assert_eq!(get(&server, "/bucket/key", &[]).await.status, 503);
    assert_eq!([set("nonsense").await, set("{}").await], [400, 200]);
    assert_eq!(get(&server, "/bucket/key", &[]).await.status, 200);
}

#[tokio::test]
async fn faults_are_written_as_text() {
    let fault: Fault = "verb=get,bucket=b,key=x,nth=2,times=3,action=close-after:1000".parse().unwrap();
    let same = Fault::new(Action::CloseAfter(1000)).verb(Verb::Get).bucket("b").key("x").nth(2).times(3);
    assert_eq!(fault, same);
    let cases = ["", "verb=get", "action=explode", "action=close,verb=fetch", "action=short", "action=close,when=now"];
    for wrong in cases.into_iter().chain(["action=status:99", "action=error:403", "action=malformed-head:x"]) {
        assert!(wrong.parse::<Fault>().is_err(), "{wrong}");
    }
}

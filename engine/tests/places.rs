//! What is put right after a refusal, once and for all requests: the region of a bucket, the clock, the
//! session of a directory bucket. Against servers that refuse as S3 does.

#![allow(clippy::unwrap_used, clippy::panic)] // What cannot happen in a test fails it.

mod script;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use script::{Act, Asked, Script, honest, object};
use wirespeed::{ClientBuilder, Credentials, ErrorKind};
use wirespeed_origin::{Origin, Verb};

const SIZE: usize = 300_000;

fn answer(status: u16, headers: &str, body: &str) -> Vec<Act> {
    let length = body.len();
    vec![Act::Send(format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{headers}\r\n{body}").into_bytes())]
}

fn ok() -> Vec<Act> {
    answer(200, "ETag: \"tag\"\r\n", "")
}

/// The region that the request was signed for.
fn region(asked: &Asked) -> &str {
    asked.header("authorization").and_then(|text| text.split('/').nth(2)).unwrap_or("none")
}

/// What S3 says to a signature for another region: a HEAD's answer has no body.
fn elsewhere(asked: &Asked, region: &str) -> Vec<Act> {
    let header = format!("x-amz-bucket-region: {region}\r\n");
    if asked.method() == "HEAD" {
        return vec![Act::Send(format!("HTTP/1.1 400 X\r\nContent-Length: 300\r\n{header}\r\n").into_bytes())];
    }
    let body = format!(
        "<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region is wrong</Message>\
         <Region>{region}</Region></Error>"
    );
    answer(400, "", &body)
}

fn signing(script: &Script) -> ClientBuilder {
    script.builder().credentials(Credentials::new("AKID", "hidden-secret"))
}

#[tokio::test]
async fn every_verb_follows_a_bucket_to_its_region_and_remembers_it() {
    let script = Script::start(|asked| match (region(asked), asked.method()) {
        ("eu-west-3", "GET") if asked.target().contains("list-type") => {
            answer(200, "", "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")
        }
        ("eu-west-3", "GET") => honest(asked, &object(SIZE)),
        ("eu-west-3", _) => ok(),
        _ => elsewhere(asked, "eu-west-3"),
    });
    // A client for each verb: it is the first request that is redirected.
    let client = signing(&script).build().unwrap();
    let got = client.get("bucket", "key").buffer().await.unwrap();
    assert_eq!(&*got.body, object(SIZE));
    let misdirected = |script: &Script| script.asked().iter().filter(|asked| region(asked) != "eu-west-3").count();
    assert_eq!(misdirected(&script), 1);
    client.put("bucket", "key").bytes("content").await.unwrap();
    assert_eq!(misdirected(&script), 1, "what was learned is kept");

    signing(&script).build().unwrap().put("bucket", "key").bytes("the body again").await.unwrap();
    let asked = script.asked();
    let bodies: Vec<_> = asked.iter().rev().take(2).map(|asked| asked.body.as_slice()).collect();
    assert_eq!(bodies, [b"the body again"; 2], "the body is sent again, whole");
    signing(&script).build().unwrap().head("bucket", "key").await.unwrap();
    signing(&script).build().unwrap().delete("bucket", "key").await.unwrap();
    signing(&script).build().unwrap().list("bucket").pages().next().await.unwrap().unwrap();
    assert_eq!(misdirected(&script), 5);
    // The connection is kept where only the signature changes.
    assert!(script.asked().iter().all(|asked| asked.header("host") == Some(&script.endpoint["http://".len()..])));
}

#[tokio::test]
async fn requests_in_flight_at_the_redirect_all_follow_it() {
    let script = Script::start(|asked| match region(asked) {
        "eu-west-3" => ok(),
        _ => elsewhere(asked, "eu-west-3"),
    });
    let client = signing(&script).concurrency(8).build().unwrap();
    let many: Vec<_> = (0..8)
        .map(|index| client.put("bucket", format!("key{index}")).bytes("x"))
        .map(|put| tokio::spawn(put))
        .collect();
    for one in many {
        one.await.unwrap().unwrap();
    }
    let followed = script.asked().iter().filter(|asked| region(asked) == "eu-west-3").count();
    assert_eq!(followed, 8);
}

#[tokio::test]
async fn a_second_redirect_is_an_error_that_names_the_region() {
    let script = Script::start(|asked| match region(asked) {
        "eu-west-3" => elsewhere(asked, "ap-east-1"),
        _ => elsewhere(asked, "eu-west-3"),
    });
    let error = signing(&script).build().unwrap().get("bucket", "key").buffer().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("the bucket is in the region ap-east-1"), "{error}");
    assert!(error.to_string().contains("--region"), "{error}");
    assert_eq!(script.asked().len(), 2);
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed_blindly() {
    let script = Script::start(|_| answer(307, "Location: http://evil.example/bucket/key\r\n", ""));
    let error = signing(&script).build().unwrap().put("bucket", "key").bytes("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert_eq!(script.asked().len(), 1);
}

/// The server's time, `ahead` of ours.
fn date(ahead: u64) -> (SystemTime, String) {
    let time = SystemTime::now() + Duration::from_secs(ahead);
    let stamp = jiff::Timestamp::try_from(time).unwrap();
    (time, stamp.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
}

/// Seconds between a request's own time and `server`.
fn off(asked: &Asked, server: SystemTime) -> u64 {
    let stamp = asked.header("x-amz-date").unwrap();
    let stamp = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%SZ", stamp).unwrap();
    let signed = SystemTime::from(stamp.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp());
    signed.duration_since(server).unwrap_or_else(|error| error.duration()).as_secs()
}

#[tokio::test]
async fn a_wrong_clock_is_corrected_once_for_all_requests() {
    for code in ["RequestTimeTooSkewed", "AccessDenied", "SignatureDoesNotMatch"] {
        let script = Script::start(move |asked| {
            let (now, date) = date(3600);
            if off(asked, now) < 900 {
                return ok();
            }
            let body = format!("<Error><Code>{code}</Code><Message>Request has expired</Message></Error>");
            answer(403, &format!("Date: {date}\r\n"), &body)
        });
        let client = signing(&script).build().unwrap();
        client.put("bucket", "a").bytes("x").await.unwrap();
        client.put("bucket", "b").bytes("x").await.unwrap();
        assert_eq!(script.asked().len(), 3, "{code}");
    }
}

#[tokio::test]
async fn a_clock_that_stays_wrong_is_said_in_minutes() {
    let script = Script::start(|_| {
        let body = "<Error><Code>RequestTimeTooSkewed</Code><Message>The difference is too large.</Message></Error>";
        answer(403, &format!("Date: {}\r\n", date(2400).1), body)
    });
    let error = signing(&script).build().unwrap().put("bucket", "key").bytes("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    let said = error.to_string();
    assert!(said.contains("clock is 40 minutes behind the server's") || said.contains("clock is 39 minutes"), "{said}");
    assert_eq!(script.asked().len(), 2);
}

#[tokio::test]
async fn a_refusal_by_a_clock_that_agrees_is_not_tried_again() {
    let script = Script::start(|_| {
        let body = "<Error><Code>SignatureDoesNotMatch</Code><Message>It does not match.</Message></Error>";
        answer(403, &format!("Date: {}\r\n", date(60).1), body)
    });
    let error = signing(&script).build().unwrap().get("bucket", "key").buffer().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.to_string().contains("secret"), "{error}");
    assert_eq!(script.asked().len(), 1);
}

#[tokio::test]
async fn a_refusal_for_other_reasons_never_shifts_the_clock() {
    // A server whose date is wrong, and which looks at no signature's time.
    let script = Script::start(|asked| match asked.method() {
        "PUT" => ok(),
        _ => {
            let body = "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>";
            answer(403, &format!("Date: {}\r\n", date(86_400).1), body)
        }
    });
    let client = signing(&script).build().unwrap();
    let error = client.get("bucket", "key").buffer().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert_eq!(script.asked().len(), 1, "it is not the clock");
    client.put("bucket", "key").bytes("x").await.unwrap();
    assert!(off(&script.asked()[1], SystemTime::now()) < 60);
}

#[tokio::test]
async fn a_correction_of_the_clock_that_does_not_help_is_dropped() {
    let script = Script::start(|asked| match asked.method() {
        "PUT" => ok(),
        _ => {
            let body = "<Error><Code>SignatureDoesNotMatch</Code><Message>It does not match.</Message></Error>";
            answer(403, &format!("Date: {}\r\n", date(86_400).1), body)
        }
    });
    let client = signing(&script).build().unwrap();
    client.get("bucket", "key").buffer().await.unwrap_err();
    assert_eq!(script.asked().len(), 2);
    client.put("bucket", "key").bytes("x").await.unwrap();
    assert!(off(&script.asked()[2], SystemTime::now()) < 60);
}

#[tokio::test]
async fn a_head_that_is_refused_without_a_word_does_not_blame_the_region_that_is_right() {
    for header in ["", "x-amz-bucket-region: us-east-1\r\n"] {
        let head = format!("HTTP/1.1 400 X\r\nContent-Length: 300\r\n{header}\r\n");
        let script = Script::start(move |_| vec![Act::Send(head.clone().into_bytes())]);
        let error = signing(&script).build().unwrap().head("bucket", "key").await.unwrap_err().to_string();
        assert!(error.contains("did not say why") && error.contains("expired") && error.contains("SSE-C"), "{error}");
        assert!(!error.contains("us-east-1"), "{error}");
        assert_eq!(script.asked().len(), 1);
    }
}

#[tokio::test]
async fn a_session_that_is_refused_says_so_with_status_and_code() {
    let script = Script::start(|_| {
        answer(403, "", "<Error><Code>AccessDenied</Code><Message>No session for you.</Message></Error>")
    });
    let client = signing(&script).set("express_sessions", "always").unwrap().build().unwrap();
    let error = client.put(DIRECTORY, "key").bytes("x").await.unwrap_err();
    assert_eq!((error.status(), error.code()), (Some(403), Some("AccessDenied")), "{error}");
    assert_eq!(error.to_string().matches("HTTP 403").count(), 1, "{error}");
}

const DIRECTORY: &str = "data--use1-az4--x-s3";

/// A server of directory buckets whose sessions last this long, and how many it opened.
fn express(life: Duration) -> (Script, Arc<AtomicUsize>) {
    let opened = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&opened);
    let script = Script::start(move |asked| {
        let signed_for = asked.header("authorization").unwrap_or_default();
        assert!(signed_for.contains("/us-east-1/s3express/aws4_request"), "{signed_for}");
        if asked.target().ends_with("?session=") {
            assert!(signed_for.contains("Credential=AKID/") && asked.header("x-amz-s3session-token").is_none());
            let number = count.fetch_add(1, Ordering::SeqCst);
            let until = jiff::Timestamp::try_from(SystemTime::now() + life).unwrap();
            let body = format!(
                "<CreateSessionResult><Credentials><AccessKeyId>SESSION{number}</AccessKeyId>\
                 <SecretAccessKey>hidden</SecretAccessKey><SessionToken>token{number}</SessionToken>\
                 <Expiration>{until}</Expiration></Credentials></CreateSessionResult>"
            );
            let mut acts = vec![Act::Wait(Duration::from_millis(200))];
            acts.extend(answer(200, "", &body));
            return acts;
        }
        let number = asked.header("x-amz-s3session-token").and_then(|token| token.strip_prefix("token"));
        let number = number.unwrap_or_else(|| panic!("no session: {}", asked.head));
        assert!(signed_for.contains(&format!("Credential=SESSION{number}/")), "{signed_for}");
        assert!(asked.header("x-amz-security-token").is_none());
        ok()
    });
    (script, opened)
}

#[tokio::test]
async fn a_directory_bucket_is_used_through_one_session() {
    let (script, opened) = express(Duration::from_secs(300));
    // With one place in flight: the session must not wait for the request that waits for it.
    let client = signing(&script).concurrency(1).set("express_sessions", "always").unwrap().build().unwrap();
    let puts: Vec<_> = (0..5)
        .map(|index| client.put(DIRECTORY, format!("key{index}")).bytes("x"))
        .map(|put| tokio::spawn(put))
        .collect();
    for put in puts {
        put.await.unwrap().unwrap();
    }
    assert_eq!(opened.load(Ordering::SeqCst), 1);
    assert_eq!(script.asked().len(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_waits_while_a_session_is_renewed() {
    let (script, opened) = express(Duration::from_secs(3));
    let client = signing(&script).set("express_sessions", "always").unwrap().build().unwrap();
    client.put(DIRECTORY, "first").bytes("x").await.unwrap();
    let started = Instant::now();
    let (mut puts, mut longest) = (0, Duration::ZERO);
    while started.elapsed() < Duration::from_secs(5) {
        let asked = Instant::now();
        client.put(DIRECTORY, "key").bytes("x").await.unwrap();
        longest = longest.max(asked.elapsed());
        puts += 1;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!((2..=4).contains(&opened.load(Ordering::SeqCst)), "{} sessions", opened.load(Ordering::SeqCst));
    assert!(puts > 100, "{puts}");
    assert!(longest < Duration::from_millis(190), "a request waited {longest:?}; a session takes 200 ms to open");
}

#[tokio::test]
async fn a_session_is_measured_by_the_servers_clock() {
    // The session lives for a second by a clock that is an hour ahead: by ours it would seem to last.
    let opened = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&opened);
    let script = Script::start(move |asked| {
        let (now, date) = date(3600);
        if off(asked, now) > 900 {
            return answer(403, &format!("Date: {date}\r\n"), "<Error><Code>RequestTimeTooSkewed</Code></Error>");
        }
        if !asked.target().ends_with("?session=") {
            return ok();
        }
        count.fetch_add(1, Ordering::SeqCst);
        let until = jiff::Timestamp::try_from(now + Duration::from_millis(1100)).unwrap();
        let body = format!(
            "<CreateSessionResult><Credentials><AccessKeyId>S</AccessKeyId><SecretAccessKey>s</SecretAccessKey>\
             <SessionToken>t</SessionToken><Expiration>{until}</Expiration></Credentials></CreateSessionResult>"
        );
        answer(200, "", &body)
    });
    let client = signing(&script).set("express_sessions", "always").unwrap().build().unwrap();
    client.put(DIRECTORY, "key").bytes("x").await.unwrap();
    assert_eq!(opened.load(Ordering::SeqCst), 1);
    // The server's date is in whole seconds.
    tokio::time::sleep(Duration::from_millis(2200)).await;
    client.put(DIRECTORY, "key").bytes("x").await.unwrap();
    assert_eq!(opened.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn what_a_directory_bucket_lacks_is_refused_by_name() {
    let (script, _) = express(Duration::from_secs(300));
    let client = signing(&script).build().unwrap();
    let error = client.list(DIRECTORY).start_after("a").pages().next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("start-after"), "{error}");
    let aws = wirespeed::Client::builder().region("us-east-1").credentials(Credentials::new("A", "s")).build().unwrap();
    let error = aws.create_bucket(DIRECTORY).await.unwrap_err();
    assert!(error.to_string().contains("s3api"), "{error}");
    let error = aws.head("arn:aws:s3::123456789012:accesspoint/a.mrap", "key").await.unwrap_err();
    assert!(error.to_string().contains("4A"), "{error}");
    assert!(script.asked().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_bucket_of_a_server_that_checks_sessions_takes_every_verb() {
    let origin = Origin::builder().keys("id", "secret").bucket(DIRECTORY).start().await.unwrap();
    let client = wirespeed::Client::builder()
        .endpoint_url(origin.endpoint())
        .credentials(Credentials::new("id", "secret"))
        .part_size(5 << 20)
        .set("express_sessions", "always")
        .unwrap()
        .build()
        .unwrap();
    let content = object(17 << 20);
    let put = client.put(DIRECTORY, "large").bytes(content.clone()).await.unwrap();
    assert!(put.parts > 1);
    assert_eq!(&*client.get(DIRECTORY, "large").buffer().await.unwrap().body, content);
    client.copy(DIRECTORY, "large", DIRECTORY, "copied").await.unwrap();
    let mut pages = client.list(DIRECTORY).pages();
    let mut keys = Vec::new();
    while let Some(page) = pages.next().await {
        keys.extend(page.unwrap().objects.into_iter().map(|object| object.key));
    }
    keys.sort();
    assert_eq!(keys, ["copied", "large"]);
    assert_eq!(origin.stats().count(Verb::CreateSession), 1);
    // The server forgets the session: one is opened anew, once.
    origin.expire_sessions();
    client.delete(DIRECTORY, "large").await.unwrap();
    client.delete(DIRECTORY, "copied").await.unwrap();
    assert_eq!(origin.stats().count(Verb::CreateSession), 2);
}

#[tokio::test]
async fn a_bucket_that_is_made_or_gone_after_a_lost_answer_is_no_failure() {
    for (method, code) in [("PUT", "BucketAlreadyOwnedByYou"), ("DELETE", "NoSuchBucket")] {
        for lost in [true, false] {
            let asked_before = AtomicUsize::new(0);
            let script = Script::start(move |_| match asked_before.fetch_add(1, Ordering::SeqCst) {
                0 if lost => answer(500, "", "<Error><Code>InternalError</Code></Error>"),
                _ => answer(409, "", &format!("<Error><Code>{code}</Code></Error>")),
            });
            let client = signing(&script).build().unwrap();
            let result = match method {
                "PUT" => client.create_bucket("bucket").await,
                _ => client.delete_bucket("bucket").await,
            };
            assert_eq!(result.is_ok(), lost, "{method} {result:?}");
        }
    }
}

#[tokio::test]
async fn a_customers_key_is_sent_over_plain_http_to_this_machine_only() {
    let script = Script::start(|_| ok());
    let key = wirespeed::SseCustomerKey::new(&[7; 32]).unwrap();
    signing(&script).build().unwrap().head("bucket", "key").sse_customer_key(key.clone()).await.unwrap();
    let far = wirespeed::Client::builder()
        .endpoint_url(format!("http://0.0.0.0:{}", script.endpoint.rsplit(':').next().unwrap()))
        .credentials(Credentials::new("AKID", "hidden-secret"))
        .build()
        .unwrap();
    let error = far.head("bucket", "key").sse_customer_key(key).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("https://"), "{error}");
    assert_eq!(script.asked().len(), 1);
}

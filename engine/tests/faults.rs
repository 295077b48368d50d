//! What breaks on the way: the right bytes or a clear error, in bounded time, and nothing left over.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // That is how a test fails.

mod script;

use std::time::{Duration, Instant};

use script::{Act, Script, error, honest, object, partial};
use wirespeed::ErrorKind;

const SIZE: usize = 300_000;

async fn read(script: &Script) -> wirespeed::Result<Vec<u8>> {
    let client = script.client();
    let read = client.get("bucket", "key").buffer().await.map(|object| object.body.to_vec());
    if read.is_err() {
        assert_eq!(client.metrics().memory_in_use, 0, "memory leaked");
    }
    read
}

#[tokio::test]
async fn parts_are_pinned_to_the_version_of_the_first() {
    let script = Script::start(|asked| honest(asked, &object(SIZE)));
    assert_eq!(read(&script).await.unwrap(), object(SIZE));
    let asked = script.asked();
    assert_eq!(asked.len(), SIZE.div_ceil(64 << 10), "one request a part, and no HEAD");
    assert_eq!(asked[0].header("if-match"), None);
    for later in &asked[1..] {
        assert_eq!(later.header("if-match"), Some("\"tag\""), "{}", later.head);
    }
}

#[tokio::test]
async fn a_broken_body_resumes_at_the_first_missing_byte() {
    for reset in [false, true] {
        let script = Script::start(move |asked| {
            let (head, body) = partial(asked, &object(SIZE), "\"tag\"").into_parts();
            if asked.index % 2 == 0 {
                let half = body.len() / 2;
                // A reset throws away what has not been read yet, so that is given time.
                let end = if reset { Act::Reset } else { Act::Close };
                return vec![
                    Act::Send([head.as_bytes(), &body[..half]].concat()),
                    Act::Wait(Duration::from_millis(if reset { 50 } else { 0 })),
                    end,
                ];
            }
            honest(asked, &object(SIZE))
        });
        assert_eq!(read(&script).await.unwrap(), object(SIZE));
        let again = script.asked().iter().filter(|asked| asked.range().0 % (64 << 10) != 0).count();
        assert!(again > 0, "every retry began at a part's beginning");
    }
}

trait IntoParts {
    fn into_parts(self) -> (String, Vec<u8>);
}

impl IntoParts for (String, &[u8]) {
    fn into_parts(self) -> (String, Vec<u8>) {
        (self.0, self.1.to_vec())
    }
}

#[tokio::test]
async fn a_stalled_body_is_given_up_and_asked_for_again() {
    let script = Script::start(|asked| {
        if asked.index == 1 {
            let (head, body) = partial(asked, &object(SIZE), "\"tag\"").into_parts();
            return vec![Act::Send([head.as_bytes(), &body[..10_000]].concat()), Act::Wait(Duration::from_secs(5))];
        }
        honest(asked, &object(SIZE))
    });
    let started = Instant::now();
    assert_eq!(read(&script).await.unwrap(), object(SIZE));
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
}

#[tokio::test]
async fn bytes_that_lie_under_the_low_water_mark_are_seen() {
    // Each piece is less than the mark, and all together take longer than a stall may: whoever waits
    // for the mark sees nothing move.
    let script = Script::start(|asked| {
        let (head, body) = partial(asked, &object(SIZE), "\"tag\"").into_parts();
        let mut acts = vec![Act::Send(head.into_bytes())];
        for piece in body.chunks(body.len().div_ceil(4)) {
            acts.push(Act::Send(piece.to_vec()));
            acts.push(Act::Wait(Duration::from_millis(300)));
        }
        acts
    });
    assert_eq!(read(&script).await.unwrap(), object(SIZE));
    assert_eq!(script.asked().len(), SIZE.div_ceil(64 << 10), "a pause was taken for a stall");
}

#[tokio::test]
async fn a_server_that_never_answers_is_a_timeout() {
    let script = Script::start(|_| vec![Act::Wait(Duration::from_secs(30))]);
    let started = Instant::now();
    let error = read(&script).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(error.attempts(), 3);
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert!(error.to_string().contains("awaiting the answer"), "{error}");
}

#[tokio::test]
async fn what_is_not_the_range_asked_for_is_refused() {
    type Lie = fn(usize, usize) -> String;
    let lies: [(&str, Lie); 6] = [
        ("another range", |first, last| format!("Content-Range: bytes {}-{}/{SIZE}", first + 1, last + 1)),
        ("a shorter range", |first, last| format!("Content-Range: bytes {first}-{}/{SIZE}", last - 1)),
        ("another size", |first, last| format!("Content-Range: bytes {first}-{last}/{}", SIZE + 1)),
        ("no size", |first, last| format!("Content-Range: bytes {first}-{last}/*")),
        ("no range", |_, _| String::from("X-Nothing: 1")),
        ("garbage", |_, _| String::from("Content-Range: bytes lots")),
    ];
    for (name, lie) in lies {
        let script = Script::start(move |asked| {
            let (head, body) = partial(asked, &object(SIZE), "\"tag\"").into_parts();
            if asked.index == 0 {
                return honest(asked, &object(SIZE));
            }
            let (first, last) = asked.range();
            let last = last.min(SIZE - 1);
            let told = format!("Content-Range: bytes {first}-{last}/{SIZE}");
            vec![Act::Send([head.replace(&told, &lie(first, last)).as_bytes(), &body].concat())]
        });
        let error = read(&script).await.expect_err(name);
        assert!(
            matches!(error.kind(), ErrorKind::Integrity | ErrorKind::Precondition | ErrorKind::Protocol),
            "{name}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_whole_object_in_place_of_a_later_range_is_refused_where_it_is_of_another_version() {
    for (size, etag) in [(SIZE, "\"other\""), (SIZE - 1, "\"tag\"")] {
        let script = Script::start(move |asked| {
            if asked.index == 0 {
                return honest(asked, &object(SIZE));
            }
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nETag: {etag}\r\n\r\n");
            vec![Act::Send([head.as_bytes(), &object(size)].concat())]
        });
        assert_eq!(read(&script).await.unwrap_err().kind(), ErrorKind::Precondition);
    }
}

#[tokio::test]
async fn a_server_without_ranges_is_read_in_one_request() {
    let script = Script::start(|_| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\nETag: \"tag\"\r\n\r\n");
        vec![Act::Send([head.as_bytes(), &object(SIZE)].concat())]
    });
    assert_eq!(read(&script).await.unwrap(), object(SIZE));
    assert_eq!(script.asked().len(), 1);
}

#[tokio::test]
async fn a_chunked_range_is_read() {
    let script = Script::start(|asked| {
        let (head, body) = partial(asked, &object(SIZE), "\"tag\"").into_parts();
        let length = format!("Content-Length: {}", body.len());
        let mut answer = head.replace(&length, "Transfer-Encoding: chunked").into_bytes();
        for chunk in body.chunks(7001) {
            answer.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            answer.extend_from_slice(chunk);
            answer.extend_from_slice(b"\r\n");
        }
        answer.extend_from_slice(b"0\r\n\r\n");
        vec![Act::Send(answer)]
    });
    assert_eq!(read(&script).await.unwrap(), object(SIZE));
}

#[tokio::test]
async fn an_object_replaced_between_ranges_is_an_error_and_never_a_mixture() {
    // A server that honours If-Match.
    let script = Script::start(|asked| match asked.index {
        0 => honest(asked, &object(SIZE)),
        _ => error(412, "PreconditionFailed"),
    });
    let failed = read(&script).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Precondition);
    assert!(failed.to_string().contains("changed while it was being read"), "{failed}");

    // One of whose new version there is not so much.
    let script = Script::start(|asked| match asked.index {
        0 => honest(asked, &object(SIZE)),
        _ => error(416, "InvalidRange"),
    });
    let failed = read(&script).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Precondition);
    assert!(failed.to_string().contains("its size is another"), "{failed}");

    // One that ignores it, and shows the new version's ETag.
    let script = Script::start(|asked| {
        let tag = if asked.index == 0 { "\"old\"" } else { "\"new\"" };
        let (head, body) = partial(asked, &object(SIZE), tag).into_parts();
        vec![Act::Send([head.as_bytes(), &body].concat())]
    });
    assert_eq!(read(&script).await.unwrap_err().kind(), ErrorKind::Precondition);
}

#[tokio::test]
async fn weak_and_absent_etags_are_pinned_by_version_or_by_time() {
    // A weak ETag cannot stand in If-Match; the version can be asked for.
    let script = Script::start(|asked| {
        let (head, body) = partial(asked, &object(SIZE), "W/\"weak\"").into_parts();
        let head = head.replace("\r\n\r\n", "\r\nx-amz-version-id: v7\r\n\r\n");
        vec![Act::Send([head.as_bytes(), &body].concat())]
    });
    assert_eq!(read(&script).await.unwrap(), object(SIZE));
    for later in &script.asked()[1..] {
        assert_eq!(later.header("if-match"), None);
        assert!(later.target().contains("versionId=v7"), "{}", later.target());
    }

    // Neither: the time of modification tells.
    let script = Script::start(|asked| {
        let (head, body) = partial(asked, &object(SIZE), "x").into_parts();
        let head = head.replace("ETag: x\r\n", "");
        let head = if asked.index == 3 { head.replace("07:28:00", "07:28:01") } else { head };
        vec![Act::Send([head.as_bytes(), &body].concat())]
    });
    let failed = read(&script).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Precondition);
    assert!(script.asked().iter().all(|asked| asked.header("if-match").is_none()));
}

#[tokio::test]
async fn passing_errors_are_tried_again_and_lasting_ones_are_not() {
    let script = Script::start(|asked| match asked.index {
        0 => error(503, "SlowDown"),
        1 => error(500, "InternalError"),
        _ => honest(asked, &object(1000)),
    });
    assert_eq!(read(&script).await.unwrap(), object(1000));

    let script = Script::start(|_| error(403, "AccessDenied"));
    let denied = read(&script).await.unwrap_err();
    assert_eq!((denied.kind(), denied.status(), denied.code()), (ErrorKind::Denied, Some(403), Some("AccessDenied")));
    assert_eq!(script.asked().len(), 1);

    let script = Script::start(|_| error(503, "SlowDown"));
    let throttled = read(&script).await.unwrap_err();
    assert_eq!((throttled.kind(), throttled.attempts()), (ErrorKind::Throttled, 3));
}

#[tokio::test]
async fn a_connection_that_the_server_closed_while_idle_costs_no_request() {
    let script = Script::start(|asked| {
        let mut acts = honest(asked, &object(1000));
        acts.push(Act::Close);
        acts
    });
    let client = script.client();
    for _ in 0..5 {
        client.get("bucket", "key").buffer().await.unwrap();
        // Long enough for the server's FIN to arrive.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(script.asked().len(), 5);
    assert_eq!(client.metrics().retries, 0);
    assert_eq!(client.metrics().requests, 5, "a request was spent on a closed connection");
}

#[tokio::test]
async fn connections_are_used_again() {
    let script = Script::start(|asked| honest(asked, &object(1000)));
    let client = script.client();
    for _ in 0..10 {
        client.get("bucket", "key").buffer().await.unwrap();
    }
    assert_eq!(script.connections(), 1);
}

#[tokio::test]
async fn garbage_is_a_clear_error() {
    for garbage in
        ["SSH-2.0-OpenSSH_9\r\n\r\n", "HTTP/1.1 2OO OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"]
    {
        let script = Script::start(move |_| vec![Act::Send(garbage.as_bytes().to_vec()), Act::Close]);
        let error = read(&script).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{garbage}: {error}");
        assert!(error.to_string().contains("endpoint URL"), "{error}");
    }
}

#[tokio::test]
async fn an_empty_object_is_empty_whichever_way_the_server_says_it() {
    let answers = [
        "HTTP/1.1 416 X\r\nContent-Range: bytes */0\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nETag: \"e\"\r\n\r\n",
    ];
    for answer in answers {
        let script = Script::start(move |_| vec![Act::Send(answer.as_bytes().to_vec())]);
        assert_eq!(read(&script).await.unwrap(), b"");
    }
    // The range began at the first byte: only an empty object has none.
    let script = Script::start(|_| error(416, "InvalidRange"));
    assert_eq!(read(&script).await.unwrap(), b"");
}

#[tokio::test]
async fn an_answer_before_the_whole_body_stops_the_upload() {
    let refuse = |_: &script::Asked| error(403, "AccessDenied");
    let script = Script::start_impatient(refuse);
    let refused = script.client().put("bucket", "key").bytes(object(12 << 20)).await.unwrap_err();
    assert_eq!((refused.kind(), refused.code()), (ErrorKind::Denied, Some("AccessDenied")));
    assert_eq!(script.connections(), 1);

    // A success cannot be an answer to what was not sent.
    let script = Script::start_impatient(|_| {
        vec![
            Act::Send(b"HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 0\r\n\r\n".to_vec()),
            Act::Wait(Duration::from_secs(2)),
        ]
    });
    let lied_to = script.client().put("bucket", "key").bytes(object(12 << 20)).await.unwrap_err();
    assert_eq!(lied_to.kind(), ErrorKind::Connection, "{lied_to}");
}

#[tokio::test]
async fn a_refusal_that_comes_with_an_interim_answer_is_seen_at_once() {
    let script = Script::start_impatient(|_| {
        let mut both = b"HTTP/1.1 100 Continue\r\n\r\n".to_vec();
        let refusal = error(403, "AccessDenied").remove(0);
        let Act::Send(refusal) = refusal else { unreachable!() };
        both.extend_from_slice(&refusal);
        vec![Act::Send(both), Act::Wait(Duration::from_secs(2))]
    });
    let client = script.builder().set("multipart_threshold", "64MiB").unwrap().build().unwrap();
    let refused = client.put("bucket", "key").bytes(object(12 << 20)).await.unwrap_err();
    assert_eq!((refused.kind(), refused.code()), (ErrorKind::Denied, Some("AccessDenied")), "{refused}");
    assert_eq!(script.asked().len(), 1);
}

#[tokio::test]
async fn a_refused_upload_is_not_tried_again() {
    let script = Script::start(|_| error(403, "AccessDenied"));
    let failed = script.client().put("bucket", "key").bytes(object(60_000)).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Denied);
    assert_eq!(script.asked().len(), 1);
}

/// Parts that were under way may arrive later than the request that aborts the upload.
fn was_aborted(script: &Script, upload_id: &str) -> bool {
    script.asked().iter().any(|asked| asked.method() == "DELETE" && asked.target().ends_with(upload_id))
}

#[tokio::test]
async fn a_failed_multipart_upload_is_aborted() {
    let script = Script::start(|asked| match (asked.method(), asked.target()) {
        ("POST", target) if target.ends_with("?uploads=") => {
            let body = "<InitiateMultipartUploadResult><Bucket>bucket</Bucket><Key>key</Key>\
                        <UploadId>U1</UploadId></InitiateMultipartUploadResult>";
            vec![Act::Send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes())]
        }
        ("PUT", target) if target.contains("partNumber=2") => error(403, "AccessDenied"),
        ("PUT", _) => vec![Act::Send(b"HTTP/1.1 200 OK\r\nETag: \"p\"\r\nContent-Length: 0\r\n\r\n".to_vec())],
        _ => vec![Act::Send(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())],
    });
    let failed = script.client().put("bucket", "key").bytes(object(17 << 20)).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Denied);
    assert!(failed.to_string().contains("part 2"), "{failed}");
    assert_eq!(failed.upload_id(), None, "the upload was aborted");
    assert!(was_aborted(&script, "U1"));
}

#[tokio::test]
async fn a_complete_that_fails_inside_a_200_is_a_failure() {
    let script = Script::start(|asked| match (asked.method(), asked.target()) {
        ("POST", target) if target.ends_with("?uploads=") => {
            let body = "<InitiateMultipartUploadResult><UploadId>U1</UploadId></InitiateMultipartUploadResult>";
            vec![Act::Send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes())]
        }
        ("POST", _) => {
            let body = "  \n<Error><Code>InternalError</Code><Message>try again</Message></Error>";
            vec![Act::Send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes())]
        }
        ("PUT", _) => vec![Act::Send(b"HTTP/1.1 200 OK\r\nETag: \"p\"\r\nContent-Length: 0\r\n\r\n".to_vec())],
        _ => vec![Act::Send(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())],
    });
    let failed = script.client().put("bucket", "key").bytes(object(17 << 20)).await.unwrap_err();
    assert_eq!((failed.kind(), failed.code(), failed.attempts()), (ErrorKind::Server, Some("InternalError"), 3));
}

/// The entity tag of four parts without a byte.
const FOUR_EMPTY_PARTS: &str = "90b83c0fe892d7b4c2bdc38deba7a3cb-4";

/// A server whose first completion is answered by `first`, and that then knows of no such upload, but of an
/// object with this entity tag.
fn forgetful(part: &'static str, whole: &'static str, first: fn() -> Vec<Act>) -> Script {
    let completions = std::sync::atomic::AtomicUsize::new(0);
    Script::start(move |asked| match (asked.method(), asked.target()) {
        ("POST", target) if target.ends_with("?uploads=") => {
            let body = "<InitiateMultipartUploadResult><UploadId>U1</UploadId></InitiateMultipartUploadResult>";
            vec![Act::Send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes())]
        }
        ("POST", _) => match completions.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => first(),
            // The document that would say NoSuchUpload is cut off.
            _ => vec![Act::Send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 99\r\n\r\n<Error>".to_vec()), Act::Close],
        },
        ("PUT", _) => {
            vec![Act::Send(format!("HTTP/1.1 200 OK\r\nETag: \"{part}\"\r\nContent-Length: 0\r\n\r\n").into_bytes())]
        }
        ("HEAD", _) => {
            let head = format!("HTTP/1.1 200 OK\r\nETag: \"{whole}\"\r\nContent-Length: {}\r\n\r\n", 17 << 20);
            vec![Act::Send(head.into_bytes())]
        }
        _ => vec![Act::Send(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())],
    })
}

#[tokio::test]
async fn a_completion_whose_answer_was_lost_is_found_out_by_the_object() {
    const EMPTY: &str = "d41d8cd98f00b204e9800998ecf8427e";
    let put = async |script: &Script| script.client().put("bucket", "key").bytes(object(17 << 20)).await;
    let inside = || {
        let body = "<Error><Code>InternalError</Code></Error>";
        vec![Act::Send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes())]
    };
    for first in [|| vec![Act::Close], inside] {
        let stored = put(&forgetful(EMPTY, FOUR_EMPTY_PARTS, first)).await.unwrap();
        assert_eq!((stored.parts, stored.etag), (4, Some(format!("\"{FOUR_EMPTY_PARTS}\""))));
    }
    // Somebody else's object, of as many parts.
    let other = put(&forgetful(EMPTY, "00000000000000000000000000000000-4", || vec![Act::Close])).await.unwrap_err();
    assert_eq!(other.kind(), ErrorKind::NotFound);
    assert!(!other.to_string().contains("cannot be told"), "{other}");
    let opaque = put(&forgetful("p", "of-all-4", || vec![Act::Close])).await.unwrap_err();
    assert_eq!(opaque.kind(), ErrorKind::NotFound);
    assert!(opaque.to_string().contains("cannot be told"), "{opaque}");
    // No answer was lost: whatever is there was not made by this upload.
    let script = forgetful(EMPTY, FOUR_EMPTY_PARTS, || error(503, "SlowDown"));
    assert_eq!(put(&script).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert!(script.asked().iter().all(|asked| asked.method() != "HEAD"));
}

#[tokio::test]
async fn what_follows_an_answer_is_not_taken_for_the_next_one() {
    let script = Script::start(|asked| {
        let mut acts = honest(asked, &object(SIZE));
        if asked.index < 3 {
            acts.push(Act::Send(b"more than was announced\r\n\r\n".to_vec()));
        }
        acts
    });
    assert_eq!(read(&script).await.unwrap(), object(SIZE));
}

#[tokio::test]
async fn a_client_that_is_gone_leaves_no_task() {
    let script = Script::start(|asked| honest(asked, &object(SIZE)));
    let client = script.client();
    client.get("bucket", "key").buffer().await.unwrap();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert_eq!(tasks(), 1, "the housekeeper");
    drop(client);
    tokio::time::timeout(Duration::from_secs(1), async {
        while tasks() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("it lives on");
}

#[tokio::test]
async fn a_dropped_download_leaves_no_file_and_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::start(|asked| {
        if asked.index == 0 {
            return honest(asked, &object(SIZE));
        }
        vec![Act::Wait(Duration::from_secs(3))]
    });
    let client = script.client();
    let target = folder.path().join("f");
    let download = client.get("bucket", "key").file(&target);
    assert!(tokio::time::timeout(Duration::from_millis(200), download).await.is_err());
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a temporary is left");
    assert_eq!(client.metrics().memory_in_use, 0);

    let held = client.get("bucket", "key").into_owned(vec![0; SIZE]);
    assert!(tokio::time::timeout(Duration::from_millis(100), held).await.is_err());
}

#[tokio::test]
async fn a_dropped_multipart_upload_is_aborted() {
    let script = Script::start(|asked| match (asked.method(), asked.target()) {
        ("POST", _) => {
            let body = "<InitiateMultipartUploadResult><UploadId>U1</UploadId></InitiateMultipartUploadResult>";
            vec![Act::Send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes())]
        }
        ("PUT", _) => vec![Act::Wait(Duration::from_secs(3))],
        _ => vec![Act::Send(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())],
    });
    let client = script.client();
    let upload = client.put("bucket", "key").bytes(object(17 << 20));
    assert!(tokio::time::timeout(Duration::from_millis(300), upload).await.is_err());
    client.settle(Duration::from_secs(1)).await.unwrap();
    assert!(was_aborted(&script, "U1"));
}

#[tokio::test]
async fn a_listing_that_does_not_move_on_is_an_error() {
    let script = Script::start(|_| {
        let body = "<ListBucketResult><IsTruncated>true</IsTruncated>\
                    <NextContinuationToken>same</NextContinuationToken></ListBucketResult>";
        vec![Act::Send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes())]
    });
    let mut pages = script.client().list("bucket").pages();
    assert!(pages.next().await.unwrap().is_ok());
    let failed = pages.next().await.unwrap().unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Protocol);
    assert!(pages.next().await.is_none(), "the listing ends after an error");
}

#[tokio::test]
async fn an_unreachable_endpoint_says_so_and_soon() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let client = wirespeed::Client::builder().endpoint_url(format!("http://{unused}")).anonymous().build().unwrap();
    let started = Instant::now();
    let error = client.head("bucket", "key").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection);
    assert!(error.to_string().contains(&unused.to_string()), "{error}");
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[tokio::test]
async fn an_answer_that_is_cut_off_every_time_is_given_up() {
    let script = Script::start(|_| {
        vec![Act::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n<ListBucketResult>".to_vec()), Act::Close]
    });
    let mut pages = script.client().list("bucket").pages();
    let failed = tokio::time::timeout(Duration::from_secs(10), pages.next()).await.expect("it ends");
    assert_eq!(failed.unwrap().unwrap_err().attempts(), 3);
    assert_eq!(script.asked().len(), 3);
}

#[tokio::test]
async fn interim_answers_do_not_stop_an_upload() {
    let script = Script::start(|_| {
        vec![
            Act::Send(b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".to_vec()),
            Act::Send(b"HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 0\r\n\r\n".to_vec()),
        ]
    });
    assert_eq!(
        script.client().put("bucket", "key").bytes(object(70_000)).await.unwrap().etag.as_deref(),
        Some("\"e\"")
    );
    let script = Script::start(|_| vec![Act::Send(b"HTTP/1.1 100 Continue\r\n\r\n".repeat(1000)), Act::Close]);
    assert_eq!(script.client().head("bucket", "key").await.unwrap_err().kind(), ErrorKind::Protocol);
}

#[tokio::test]
async fn every_upload_of_a_dropped_job_is_aborted() {
    let script = Script::start(|asked| match (asked.method(), asked.target()) {
        ("POST", _) => {
            let id = asked.index;
            let body =
                format!("<InitiateMultipartUploadResult><UploadId>U{id}</UploadId></InitiateMultipartUploadResult>");
            // The last ones are still being started when the job is dropped.
            let wait = if id > 1 { 250 } else { 0 };
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            vec![Act::Wait(Duration::from_millis(wait)), Act::Send(answer.into_bytes())]
        }
        ("PUT", _) => vec![Act::Wait(Duration::from_secs(3))],
        _ => vec![Act::Send(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())],
    });
    let client = script.builder().concurrency(16).build().unwrap();
    let objects: Vec<_> = (0..3).map(|i| (format!("k{i}"), object(17 << 20).into())).collect();
    let job = client.put_many("bucket").bytes(objects).unwrap();
    tokio::time::sleep(Duration::from_millis(150)).await;
    drop(job);
    client.settle(Duration::from_secs(2)).await.unwrap();
    let asked = script.asked();
    let count = |method: &str| asked.iter().filter(|asked| asked.method() == method).count();
    // Parts may have been on their way when the first abort arrived.
    assert_eq!((count("POST"), count("DELETE")), (3, 6));
}

//! Reads from servers that answer otherwise than S3 does: the right bytes into every destination, or a clear error,
//! and never fewer bytes with success.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // That is how a test fails.

mod script;

use std::path::Path;

use script::{Act, Asked, Script, error, object};
use wirespeed::{Client, ErrorKind, Get, GetItem};

/// Larger than three parts of the client, which have 64 KiB.
const LARGE: usize = 200_000;
/// Fits the first part.
const SMALL: usize = 7;

type Outcome = (&'static str, wirespeed::Result<Vec<u8>>);

/// Reads in every way that one GET has.
async fn every_way(client: &Client, get: impl Fn(&Client) -> Get) -> Vec<Outcome> {
    let mut outcomes = without_a_buffer_of_its_size(client, &get).await;
    let exactly = async {
        let begun = get(client).begin().await?;
        let exactly = vec![0; usize::try_from(begun.length()).unwrap()];
        begun.into_owned(exactly).await
    };
    outcomes.push(("begun, owned", exactly.await.map(|(bytes, length, _)| front(bytes, length))));
    outcomes
}

/// The same but for memory that the test would have to make.
async fn without_a_buffer_of_its_size(client: &Client, get: impl Fn(&Client) -> Get) -> Vec<Outcome> {
    let get = || get(client);
    let folder = tempfile::tempdir().unwrap();
    let mut outcomes: Vec<Outcome> = Vec::new();
    outcomes.push(("buffer", get().buffer().await.map(|object| object.body.to_vec())));
    outcomes.push(("owned", get().into_owned(vec![0; 1 << 20]).await.map(|(bytes, length, _)| front(bytes, length))));
    let path = folder.path().join("file");
    let filed = get().file(&path).await.map(|_| std::fs::read(&path).unwrap());
    outcomes.push(("file", filed));
    let mut written = Vec::new();
    outcomes.push(("writer", get().writer(&mut written).await.map(|_| written.clone())));
    outcomes.push(("stream", streamed(get()).await));
    outcomes.push(("narrow stream", streamed(get().window(128 << 10)).await));
    outcomes.push(("parts", in_parts(get()).await));
    outcomes.push(("narrow parts", in_parts(get().window(128 << 10)).await));
    let begun = async { get().begin().await?.buffer().await }.await;
    outcomes.push(("begun", begun.map(|object| object.body.to_vec())));
    let (bytes, runtime) = (get(), tokio::runtime::Handle::current());
    let borrowed = tokio::task::spawn_blocking(move || {
        let mut destination = vec![0; 1 << 20];
        let (length, _) = bytes.into_slice_blocking(&mut destination, &runtime)?;
        Ok(front(destination, length))
    });
    outcomes.push(("borrowed", borrowed.await.unwrap()));
    nothing_is_left(folder.path(), &outcomes);
    outcomes
}

/// Reads all of one object in every way that many have.
async fn every_way_of_many(client: &Client) -> Vec<Outcome> {
    let folder = tempfile::tempdir().unwrap();
    let many = || client.get_many("bucket");
    let mut outcomes: Vec<Outcome> = Vec::new();
    let (_, read) = many().buffers(["key".to_owned()]).unwrap().next().await.unwrap();
    outcomes.push(("buffers", read.map(|object| object.body.to_vec())));
    let into = [(GetItem::new("key"), vec![0; 1 << 20])];
    let (_, read) = many().into_owned(into).unwrap().next().await.unwrap();
    outcomes.push(("owned of many", read.map(|(bytes, length, _)| front(bytes, length))));
    let path = folder.path().join("file");
    let (_, read) = many().files([("key".to_owned(), path.clone())]).unwrap().next().await.unwrap();
    outcomes.push(("files", read.map(|_| std::fs::read(&path).unwrap())));
    nothing_is_left(folder.path(), &outcomes);
    outcomes
}

fn front(mut bytes: Vec<u8>, length: u64) -> Vec<u8> {
    bytes.truncate(usize::try_from(length).unwrap());
    bytes
}

async fn streamed(get: Get) -> wirespeed::Result<Vec<u8>> {
    let mut stream = get.stream().await?;
    let mut bytes = Vec::new();
    while let Some(part) = stream.next().await {
        bytes.extend_from_slice(&part?);
    }
    assert_eq!(bytes.len() as u64, stream.length());
    Ok(bytes)
}

async fn in_parts(get: Get) -> wirespeed::Result<Vec<u8>> {
    let mut parts = get.parts().await?;
    let mut landed = Vec::new();
    while let Some(part) = parts.next().await {
        landed.push(part?);
    }
    landed.sort_by_key(|part| part.offset);
    Ok(landed.iter().flat_map(|part| part.body.to_vec()).collect())
}

/// A file that failed leaves nothing, one that did not only itself.
fn nothing_is_left(folder: &Path, outcomes: &[Outcome]) {
    let kept = outcomes.iter().filter(|(way, read)| way.starts_with("file") && read.is_ok()).count();
    let found: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(found.len(), kept, "{found:?}");
}

#[track_caller]
fn all_read(client: &Client, outcomes: Vec<Outcome>, expected: &[u8]) {
    for (way, read) in outcomes {
        let read = read.unwrap_or_else(|error| panic!("{way}: {error}"));
        assert_eq!(read.len(), expected.len(), "{way}");
        assert!(read == expected, "{way}: other bytes");
    }
    assert_eq!(client.metrics().memory_in_use, 0, "memory leaked");
}

/// Reads all of the object, its last bytes and some in the middle in every way.
async fn all_and_some_read(client: &Client, bytes: &[u8]) {
    all_read(client, every_way(client, |client| client.get("bucket", "key")).await, bytes);
    all_read(client, every_way_of_many(client).await, bytes);
    let suffix = every_way(client, |client| client.get("bucket", "key").suffix(70_000)).await;
    all_read(client, suffix, &bytes[bytes.len().saturating_sub(70_000)..]);
    if bytes.len() > 3 {
        let middle = every_way(client, |client| client.get("bucket", "key").range(3..150_000)).await;
        all_read(client, middle, &bytes[3..bytes.len().min(150_000)]);
    }
}

#[track_caller]
fn all_fail(client: &Client, outcomes: Vec<Outcome>, kind: ErrorKind, says: &str) {
    for (way, read) in outcomes {
        let error = read.expect_err(way);
        assert_eq!(error.kind(), kind, "{way}: {error}");
        let text = error.to_string();
        assert!(text.contains(says) && text.contains("bucket/key"), "{way}: {text}");
    }
    assert_eq!(client.metrics().memory_in_use, 0, "memory leaked");
}

/// The bytes that a `Range` header asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Range {
    Between(usize, usize),
    Last(usize),
}

fn range(asked: &Asked) -> Option<Range> {
    let text = asked.header("range")?.strip_prefix("bytes=").unwrap();
    let (first, last) = text.split_once('-').unwrap();
    Some(match (first, last) {
        ("", last) => Range::Last(last.parse().unwrap()),
        (first, last) => Range::Between(first.parse().unwrap(), last.parse().unwrap()),
    })
}

const COMMON: &str = "ETag: \"tag\"\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n";

fn send(head: String, body: &[u8]) -> Vec<Act> {
    vec![Act::Send([head.as_bytes(), body].concat())]
}

/// All of it, however it was asked for.
fn whole(object: &[u8], more: &str) -> Vec<Act> {
    send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{COMMON}{more}\r\n", object.len()), object)
}

fn part(object: &[u8], first: usize, end: usize) -> Vec<Act> {
    part_with_status(206, object, first, end)
}

fn part_with_status(status: u16, object: &[u8], first: usize, end: usize) -> Vec<Act> {
    let (size, length, last) = (object.len(), end - first, end - 1);
    let head = format!(
        "HTTP/1.1 {status} P\r\nContent-Length: {length}\r\nContent-Range: bytes {first}-{last}/{size}\r\n{COMMON}\r\n"
    );
    send(head, &object[first..end])
}

/// Answers as S3 does, but for ranges that `refuses` names: those are answered so.
fn refusing(size: usize, refuses: fn(Range, usize) -> bool, refusal: fn() -> Vec<Act>) -> Script {
    Script::start(move |asked| {
        let object = object(size);
        match range(asked) {
            None => whole(&object, "Accept-Ranges: bytes\r\n"),
            Some(range) if refuses(range, size) => refusal(),
            Some(Range::Between(first, last)) => part(&object, first, (last + 1).min(size)),
            Some(Range::Last(length)) => part(&object, size.saturating_sub(length), size),
        }
    })
}

/// rclone's `serve s3` and gofakes3: they find no such suffix, and say no size.
fn as_rclone(range: Range, size: usize) -> bool {
    match range {
        Range::Between(first, _) => first >= size,
        Range::Last(length) => length > size,
    }
}

fn unexplained() -> Vec<Act> {
    vec![Act::Send(b"HTTP/1.1 416 Range\r\nContent-Length: 0\r\n\r\n".to_vec())]
}

fn invalid_range() -> Vec<Act> {
    error(416, "InvalidRange")
}

#[tokio::test]
async fn a_suffix_longer_than_the_object_is_all_of_it() {
    for (size, suffix) in [(0, 100), (SMALL, 100), (SMALL, 300_000), (SMALL, 7), (LARGE, 300_000), (LARGE, 1 << 40)] {
        for refusal in [invalid_range, unexplained] {
            let script = refusing(size, as_rclone, refusal);
            let client = script.client();
            all_read(
                &client,
                every_way(&client, |client| client.get("bucket", "key").suffix(suffix)).await,
                &object(size),
            );
            let items = [GetItem::new("key").suffix(suffix)];
            let (_, read) = client.get_many("bucket").items(items).unwrap().next().await.unwrap();
            assert_eq!(read.unwrap().body.to_vec(), object(size));
        }
    }
    let script = refusing(SMALL, as_rclone, invalid_range);
    let read = script.client().get("bucket", "key").suffix(100).buffer().await.unwrap();
    assert_eq!((read.info.size, read.info.etag.as_deref()), (SMALL as u64, Some("\"tag\"")));
    let asked = script.asked();
    assert_eq!(asked.len(), 2, "one request more, and it brings the bytes");
    assert_eq!(asked[1].header("range"), None);
}

#[tokio::test]
async fn a_suffix_is_no_empty_object_unless_the_server_says_so() {
    // Whatever comes of the second question is what is reported.
    let script = Script::start(|asked| match range(asked) {
        Some(_) => error(416, "InvalidRange"),
        None => error(403, "AccessDenied"),
    });
    let client = script.client();
    let outcomes = every_way(&client, |client| client.get("bucket", "key").suffix(100)).await;
    all_fail(&client, outcomes, ErrorKind::Denied, "AccessDenied");

    let script = Script::start(|_| {
        vec![Act::Send(b"HTTP/1.1 416 Range\r\nContent-Length: 0\r\nContent-Range: bytes */0\r\n\r\n".to_vec())]
    });
    let client = script.client();
    assert_eq!(client.get("bucket", "key").suffix(100).buffer().await.unwrap().body.len(), 0);
    assert_eq!(script.asked().len(), 1, "the size is proof enough");
}

#[tokio::test]
async fn an_empty_object_is_empty_where_the_refusal_says_nothing() {
    let script = refusing(0, |_, _| true, unexplained);
    let client = script.client();
    all_read(&client, every_way(&client, |client| client.get("bucket", "key")).await, b"");
    all_read(&client, every_way(&client, |client| client.get("bucket", "key").range(..10)).await, b"");
    all_read(&client, every_way_of_many(&client).await, b"");
    let before = script.asked().len();
    let read = client.get("bucket", "key").buffer().await.unwrap();
    assert_eq!(read.info.etag.as_deref(), Some("\"tag\""));
    let asked = &script.asked()[before..];
    assert_eq!(asked.iter().map(range).collect::<Vec<_>>(), [Some(Range::Between(0, 65_535)), None]);
}

#[tokio::test]
async fn a_range_that_a_server_refuses_is_asked_for_within_the_object() {
    // Some refuse a range that ends beyond the object, some every suffix.
    fn strict(range: Range, size: usize) -> bool {
        match range {
            Range::Between(_, last) => last >= size,
            Range::Last(_) => true,
        }
    }
    for size in [SMALL, LARGE] {
        for refusal in [invalid_range, unexplained] {
            let (script, bytes) = (refusing(size, strict, refusal), object(size));
            let client = script.client();
            let end = size as u64;
            let outcomes = every_way(&client, |client| client.get("bucket", "key").range(2..end + 100)).await;
            all_read(&client, outcomes, &bytes[2..]);
            all_read(
                &client,
                every_way(&client, |client| client.get("bucket", "key").suffix(3)).await,
                &bytes[size - 3..],
            );
            let beyond = every_way(&client, |client| client.get("bucket", "key").range(end..end + 10)).await;
            all_fail(&client, beyond, ErrorKind::Config, "beyond the end of the object");
            let ranges = vec![("key".to_owned(), 2..end + 100)];
            let (_, read) = client.get_ranges("bucket").buffers(ranges).unwrap().next().await.unwrap();
            assert_eq!(read.unwrap().body.to_vec(), bytes[2..]);
        }
    }
    // One that refuses them all is asked three times and no more.
    let script = refusing(SMALL, |_, _| true, invalid_range);
    let failed = script.client().get("bucket", "key").range(2..5).buffer().await.unwrap_err();
    assert_eq!(failed.status(), Some(416));
    assert_eq!(script.asked().len(), 3);
}

#[tokio::test]
async fn a_server_that_ignores_ranges_is_read_into_every_destination() {
    for size in [0, SMALL, LARGE] {
        // What it says that it does is no proof that it does it.
        for more in ["", "Accept-Ranges: none\r\n", "Accept-Ranges: bytes\r\n"] {
            let bytes = object(size);
            let script = Script::start(move |_| whole(&object(size), more));
            let client = script.client();
            all_and_some_read(&client, &bytes).await;
            if size > 0 {
                let ranges = vec![("key".to_owned(), 3..6), ("key".to_owned(), 5..7)];
                let mut read = client.get_ranges("bucket").buffers(ranges).unwrap();
                while let Some((index, read)) = read.next().await {
                    assert_eq!(read.unwrap().body.to_vec(), [&bytes[3..6], &bytes[5..7]][index]);
                }
            }
            let end = size as u64;
            let beyond = every_way(&client, |client| client.get("bucket", "key").range(end + 1..end + 10)).await;
            all_fail(&client, beyond, ErrorKind::Config, "beyond the end of the object");
        }
    }
}

/// gofakes3, and so `rclone serve s3`, answers a range with its bytes and 200.
#[tokio::test]
async fn a_part_with_the_status_of_a_whole_object_is_a_part() {
    for size in [SMALL, LARGE] {
        let bytes = object(size);
        let script = Script::start(move |asked| {
            let object = object(size);
            match range(asked) {
                None => whole(&object, ""),
                Some(Range::Between(first, last)) => part_with_status(200, &object, first, (last + 1).min(size)),
                Some(Range::Last(length)) => part_with_status(200, &object, size.saturating_sub(length), size),
            }
        });
        let client = script.client();
        all_and_some_read(&client, &bytes).await;
        let suffix = every_way(&client, |client| client.get("bucket", "key").suffix(5)).await;
        all_read(&client, suffix, &bytes[size - 5..]);
    }
}

/// MinIO's Content-Range counts from 0 to the byte before the first.
#[tokio::test]
async fn the_last_bytes_of_an_empty_object_are_none() {
    let script = Script::start(|_| {
        send(format!("HTTP/1.1 206 P\r\nContent-Length: 0\r\nContent-Range: bytes 0--1/0\r\n{COMMON}\r\n"), b"")
    });
    let client = script.client();
    all_read(&client, every_way(&client, |client| client.get("bucket", "key").suffix(5)).await, b"");
}

#[tokio::test]
async fn a_whole_object_is_received_no_oftener_than_there_are_workers() {
    const HUGE: usize = 40 * (64 << 10);
    let script = Script::start(|asked| match asked.index {
        // Only the first answer looks as if ranges were known.
        0 => part(&object(HUGE), 0, 64 << 10),
        _ => whole(&object(HUGE), ""),
    });
    // A request that is given up on a busy machine would count too.
    let patient = ["stall_timeout", "first_byte_timeout"];
    let builder = patient.into_iter().fold(script.builder(), |builder, name| builder.set(name, "30s").unwrap());
    let client = builder.build().unwrap();
    let read = client.get("bucket", "key").into_owned(vec![0; HUGE]).await.unwrap().0;
    assert!(read == object(HUGE));
    assert!(script.asked().len() <= 1 + 4, "{} requests", script.asked().len());
    let received = client.metrics().bytes_received;
    assert!(received <= 5 * HUGE as u64, "{received} bytes");
}

#[tokio::test]
async fn a_whole_object_that_breaks_off_is_gone_on_with() {
    let script = Script::start(|asked| {
        let object = object(LARGE);
        let mut acts = whole(&object, "");
        let Some(Act::Send(bytes)) = acts.first_mut() else { unreachable!() };
        if asked.index % 2 == 0 {
            bytes.truncate(bytes.len() - LARGE / 2);
            acts.push(Act::Close);
        }
        acts
    });
    let client = script.client();
    all_read(&client, every_way(&client, |client| client.get("bucket", "key")).await, &object(LARGE));
}

/// The end of a body whose length the server does not announce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Chunked,
    Close,
}

/// Answers every GET with all of the object and no length, and a HEAD with this one.
fn unmeasured(size: usize, end: End, announced: Option<usize>, cut: usize) -> Script {
    Script::start(move |asked| {
        let bytes = object(size);
        if asked.method() == "HEAD" {
            let length = announced.map(|length| format!("Content-Length: {length}\r\n")).unwrap_or_default();
            return send(format!("HTTP/1.1 200 OK\r\n{length}{COMMON}\r\n"), b"");
        }
        let bytes = &bytes[..size - cut];
        match end {
            End::Close => {
                let mut acts = send(format!("HTTP/1.1 200 OK\r\n{COMMON}\r\n"), bytes);
                acts.push(Act::Close);
                acts
            }
            End::Chunked => {
                let mut body = Vec::new();
                for chunk in bytes.chunks(7001) {
                    body.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                    body.extend_from_slice(chunk);
                    body.extend_from_slice(b"\r\n");
                }
                let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{COMMON}\r\n");
                if cut > 0 {
                    let mut acts = send(head, &body);
                    acts.push(Act::Close);
                    return acts;
                }
                body.extend_from_slice(b"0\r\n\r\n");
                send(head, &body)
            }
        }
    })
}

#[tokio::test]
async fn an_object_of_unknown_length_is_read_into_every_destination() {
    for size in [0, SMALL, LARGE] {
        for (end, announced) in [
            (End::Chunked, Some(size)),
            (End::Chunked, None),
            // As servers do that do not know it.
            (End::Chunked, Some(0)),
            (End::Close, Some(size)),
        ] {
            let script = unmeasured(size, end, announced, 0);
            let client = script.client();
            let bytes = object(size);
            all_and_some_read(&client, &bytes).await;
        }
    }
}

#[tokio::test]
async fn an_end_that_nobody_marks_is_no_proof() {
    let script = unmeasured(SMALL, End::Close, None, 0);
    let client = script.client();
    let outcomes = every_way(&client, |client| client.get("bucket", "key")).await;
    all_fail(&client, outcomes, ErrorKind::Integrity, "does not say how long the object is");
}

#[tokio::test]
async fn a_body_of_unknown_length_that_is_cut_is_an_error() {
    for end in [End::Chunked, End::Close] {
        let script = unmeasured(1000, end, Some(1000), 1);
        let client = script.client();
        for (way, read) in every_way(&client, |client| client.get("bucket", "key")).await {
            let failed = read.expect_err(way);
            assert!(matches!(failed.kind(), ErrorKind::Integrity | ErrorKind::Connection), "{way}: {failed}");
        }
        // Longer than announced is as wrong.
        let script = unmeasured(1000, end, Some(999), 0);
        let client = script.client();
        let outcomes = every_way(&client, |client| client.get("bucket", "key")).await;
        all_fail(&client, outcomes, ErrorKind::Integrity, "longer than the server said");
    }
}

#[tokio::test]
async fn a_head_without_a_length_is_no_empty_object() {
    // How long it is stands in the answer to a read.
    for size in [0, SMALL, LARGE] {
        let script = Script::start(move |asked| {
            let object = object(size);
            match (asked.method(), range(asked)) {
                ("HEAD", _) => send(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{COMMON}\r\n"), b""),
                (_, Some(Range::Between(first, last))) if first < size => part(&object, first, (last + 1).min(size)),
                (_, Some(_)) => {
                    send(format!("HTTP/1.1 416 R\r\nContent-Range: bytes */{size}\r\nContent-Length: 0\r\n\r\n"), b"")
                }
                (_, None) => whole(&object, ""),
            }
        });
        let info = script.client().head("bucket", "key").await.unwrap();
        assert_eq!((info.size, info.etag.as_deref()), (size as u64, Some("\"tag\"")));
        let asked = script.asked();
        assert_eq!(asked.len(), 2);
        assert_eq!(asked[1].header("if-match"), Some("\"tag\""));
        // A checksum that comes with such a head counts all the same.
        let read = script.builder().set("verify_checksums", "true").unwrap().build().unwrap();
        let read = read.get("bucket", "key").buffer().await.unwrap();
        assert_eq!(read.body.len(), size);
    }
    let script = unmeasured(SMALL, End::Chunked, None, 0);
    let failed = script.client().head("bucket", "key").await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Integrity);
    assert!(failed.to_string().contains("does not say how long the object is"), "{failed}");
}

#[tokio::test]
async fn a_size_that_no_memory_has_is_an_error() {
    for size in [1 << 50, u64::MAX - 1, u64::MAX] {
        let script = Script::start(move |asked| match range(asked) {
            Some(Range::Between(0, last)) => {
                let (length, size) = (last + 1, size);
                let head = format!("Content-Length: {length}\r\nContent-Range: bytes 0-{last}/{size}\r\n{COMMON}\r\n");
                send(format!("HTTP/1.1 206 P\r\n{head}"), &object(length))
            }
            // Asked for what cannot be, or for all of it.
            _ => error(403, "AccessDenied"),
        });
        let client = script.client();
        for (way, read) in without_a_buffer_of_its_size(&client, |client| client.get("bucket", "key")).await {
            let failed = read.expect_err(way);
            assert!(
                matches!(failed.kind(), ErrorKind::Io | ErrorKind::Denied | ErrorKind::Config | ErrorKind::Protocol),
                "{way}: {failed}"
            );
        }
        assert_eq!(client.metrics().memory_in_use, 0, "memory leaked");
    }
}

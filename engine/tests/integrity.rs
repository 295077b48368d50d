//! Checksums: of uploads, in each of the ways in which they can go; of downloads, whatever the
//! destination, the algorithm and the order of arrival; and servers that do not take part.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // That is how a test fails.

#[path = "script/mod.rs"]
mod script;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use script::{Act, Asked, Script, error, object};
use wirespeed::{ChecksumAlgorithm, Client, Credentials, ErrorKind, Unverified, Verified};
use wirespeed_origin::{Action, Fault, Origin, Running, Verb};

const PART: usize = 64 << 10;

/// A checksum by the libraries themselves.
fn checksum(algorithm: ChecksumAlgorithm, bytes: &[u8]) -> String {
    use crc_fast::CrcAlgorithm as Fast;
    use sha2::Digest as _;
    match algorithm {
        ChecksumAlgorithm::Crc64Nvme => STANDARD.encode(crc_fast::checksum(Fast::Crc64Nvme, bytes).to_be_bytes()),
        ChecksumAlgorithm::Crc32 => {
            STANDARD.encode((crc_fast::checksum(Fast::Crc32IsoHdlc, bytes) as u32).to_be_bytes())
        }
        ChecksumAlgorithm::Crc32c => {
            STANDARD.encode((crc_fast::checksum(Fast::Crc32Iscsi, bytes) as u32).to_be_bytes())
        }
        _ => STANDARD.encode(sha2::Sha256::digest(bytes)),
    }
}

/// An honest store of one object, whose checksum is told where S3 tells it. `sent` is what it sends of it.
fn store(content: Vec<u8>, sent: Vec<u8>, told: String) -> Script {
    Script::start(move |asked| answer(asked, &content, &sent, &told))
}

fn answer(asked: &Asked, content: &[u8], sent: &[u8], told: &str) -> Vec<Act> {
    let told = match asked.header("x-amz-checksum-mode") {
        Some("ENABLED") if asked.header("range").is_none() => told,
        _ => "",
    };
    let common = format!("ETag: \"tag\"\r\nAccept-Ranges: bytes\r\n{told}");
    let (status, range, length) = match (asked.method(), asked.header("range")) {
        ("GET", Some(_)) => {
            let (first, last) = asked.range();
            let last = last.min(content.len() - 1);
            let head = format!("Content-Range: bytes {first}-{last}/{}\r\n", content.len());
            (format!("206 P\r\n{head}"), first..last + 1, last + 1 - first)
        }
        ("GET", None) => ("200 OK\r\n".to_owned(), 0..sent.len(), sent.len()),
        _ => ("200 OK\r\n".to_owned(), 0..0, content.len()),
    };
    let head = format!("HTTP/1.1 {status}Content-Length: {length}\r\n{common}\r\n");
    vec![Act::Send([head.as_bytes(), &sent[range]].concat())]
}

fn told(algorithm: ChecksumAlgorithm, content: &[u8]) -> String {
    format!("{}: {}\r\nx-amz-checksum-type: FULL_OBJECT\r\n", algorithm.header(), checksum(algorithm, content))
}

fn reader(script: &Script) -> Client {
    script.builder().set("verify_checksums", "true").unwrap().build().unwrap()
}

const CRCS: [ChecksumAlgorithm; 3] =
    [ChecksumAlgorithm::Crc64Nvme, ChecksumAlgorithm::Crc32, ChecksumAlgorithm::Crc32c];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_object_is_verified_with_one_head_wherever_it_goes() {
    let content = object(7 * PART + 123);
    let folder = tempfile::tempdir().unwrap();
    for algorithm in CRCS {
        let script = store(content.clone(), content.clone(), told(algorithm, &content));
        let client = reader(&script);
        let read = client.get("bkt", "k").buffer().await.unwrap();
        assert!(read.body == *content);
        assert_eq!(read.info.verified, Verified::FullObject(algorithm));
        assert_eq!(read.info.checksum.unwrap().value, checksum(algorithm, &content));
        assert_eq!(client.metrics().checksum_heads, 1);
        assert_eq!(client.metrics().requests, 9, "eight parts and a HEAD");
        let head = script.asked().into_iter().find(|asked| asked.method() == "HEAD").unwrap();
        assert_eq!(head.header("if-match"), Some("\"tag\""));

        let whole = Verified::FullObject(algorithm);
        let target = folder.path().join("f");
        assert_eq!(client.get("bkt", "k").file(&target).await.unwrap().verified, whole);
        assert!(std::fs::read(&target).unwrap() == content);
        let mut written = Vec::new();
        assert_eq!(client.get("bkt", "k").writer(&mut written).await.unwrap().verified, whole);
        assert!(written == content);
        assert_eq!(client.get("bkt", "k").discard().await.unwrap().verified, whole);
        let (_, _, info) = client.get("bkt", "k").into_owned(vec![0; content.len()]).await.unwrap();
        assert_eq!(info.verified, whole);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_flipped_bit_is_caught_on_every_way_and_nothing_is_left() {
    for size in [100, 7 * PART + 123] {
        let content = object(size);
        for at in [0, size / 2, size - 1] {
            let mut sent = content.clone();
            sent[at] ^= 4;
            let script = store(content.clone(), sent, told(ChecksumAlgorithm::Crc64Nvme, &content));
            let client = reader(&script);
            let folder = tempfile::tempdir().unwrap();
            let target = folder.path().join("f");
            let mut written = Vec::new();
            let mut many = client.get_many("bkt").buffers(["k".to_owned()]).unwrap();
            let mut parts = client.get("bkt", "k").parts().await.unwrap();
            let in_parts = loop {
                if let Err(error) = parts.next().await.expect("the difference was not said") {
                    break error;
                }
            };
            let mut files = client.get_many("bkt").files([("k".to_owned(), target.clone())]).unwrap();
            let failures = [
                client.get("bkt", "k").buffer().await.unwrap_err(),
                client.get("bkt", "k").file(&target).await.unwrap_err(),
                client.get("bkt", "k").writer(&mut written).await.unwrap_err(),
                client.get("bkt", "k").discard().await.unwrap_err(),
                client.get("bkt", "k").into_owned(vec![0; size]).await.unwrap_err(),
                many.next().await.unwrap().1.unwrap_err(),
                files.next().await.unwrap().1.unwrap_err(),
                in_parts,
            ];
            for failure in failures {
                assert_eq!(failure.kind(), ErrorKind::Integrity, "{failure}");
                let text = failure.to_string();
                assert!(text.contains("CRC64NVME") && text.contains("read it again"), "{text}");
                assert!(text.contains(&checksum(ChecksumAlgorithm::Crc64Nvme, &content)), "{text}");
            }
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a file of other bytes was left");
            assert_eq!(written.len(), size, "a stream fails at its end");
            assert!(client.get("bkt", "k").verify(false).buffer().await.is_ok());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_is_late_delays_no_range() {
    let content = object(7 * PART);
    let ranges = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ranges);
    let whole = told(ChecksumAlgorithm::Crc32c, &content);
    let sent = content.clone();
    let script = Script::start(move |asked| {
        if asked.method() == "HEAD" {
            std::thread::sleep(Duration::from_millis(300));
            assert_eq!(counted.load(Ordering::SeqCst), 7, "a range waited for the HEAD");
        } else {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        answer(asked, &sent, &sent, &whole)
    });
    let client = reader(&script);
    let read = client.get("bkt", "k").buffer().await.unwrap();
    assert_eq!(read.info.verified, Verified::FullObject(ChecksumAlgorithm::Crc32c));
    assert_eq!(ranges.load(Ordering::SeqCst), 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_download_that_cannot_be_verified_succeeds_and_says_why() {
    let content = object(3 * PART);
    let crc = checksum(ChecksumAlgorithm::Crc64Nvme, &content);
    for (told, why) in [
        (String::new(), Unverified::NoChecksum),
        ("x-amz-checksum-sha1: 2jmj7l5rSw0yVb/vlWAYkK/YBwk=\r\n".to_owned(), Unverified::NoChecksum),
        ("x-amz-checksum-crc32: AAAAAA==-3\r\n".to_owned(), Unverified::Composite),
        (format!("x-amz-checksum-crc64nvme: {crc}\r\nx-amz-checksum-type: COMPOSITE\r\n"), Unverified::Composite),
        (told(ChecksumAlgorithm::Sha256, &content), Unverified::NotCombinable),
        // As moto sends it where it lacks awscrt.
        ("x-amz-checksum-crc64nvme: AAAAAA==\r\n".to_owned(), Unverified::Malformed),
        ("x-amz-checksum-crc32: AAAAAAAAAAA=\r\n".to_owned(), Unverified::Malformed),
        ("x-amz-checksum-crc32: not base64\r\n".to_owned(), Unverified::Malformed),
        // Another version's checksum proves nothing.
        (format!("x-amz-version-id: other\r\nx-amz-checksum-crc64nvme: {crc}\r\n"), Unverified::NotTold),
    ] {
        let script = Script::start({
            let content = content.clone();
            let told = told.clone();
            move |asked| {
                let mut acts = answer(asked, &content, &content, &told);
                if let ("GET", [Act::Send(bytes)]) = (asked.method(), &mut acts[..]) {
                    let end = bytes.windows(2).position(|two| two == b"\r\n").unwrap() + 2;
                    bytes.splice(end..end, *b"x-amz-version-id: one\r\n");
                }
                acts
            }
        });
        let read = reader(&script).get("bkt", "k").buffer().await.unwrap();
        assert_eq!(read.info.verified, Verified::Not(why), "{told}");
        if why == Unverified::Malformed {
            assert_eq!(read.info.checksum, None, "nothing to compare anything with");
        }
    }

    let forbidden = content.clone();
    let script = Script::start(move |asked| match asked.method() {
        "HEAD" => vec![Act::Send(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 99\r\n\r\n".to_vec())],
        _ => answer(asked, &forbidden, &forbidden, ""),
    });
    let client = reader(&script);
    let read = client.get("bkt", "k").buffer().await.unwrap();
    assert_eq!(read.info.verified, Verified::Not(Unverified::NotTold));
    let part = client.get("bkt", "k").range(1..).buffer().await.unwrap();
    assert_eq!(part.info.verified, Verified::Not(Unverified::Range));
    let heads = client.metrics().checksum_heads;
    let off = client.get("bkt", "k").verify(false).buffer().await.unwrap();
    assert_eq!(off.info.verified, Verified::Not(Unverified::TurnedOff));
    assert_eq!(client.metrics().checksum_heads, heads, "nobody asks for what nobody compares");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_objects_of_many_are_verified_in_one_request_each() {
    for algorithm in ChecksumAlgorithm::ALL {
        let content = object(1000);
        let script = store(content.clone(), content.clone(), told(algorithm, &content));
        let client = reader(&script);
        let keys = (0..20).map(|n| format!("k{n}"));
        let mut many = client.get_many("bkt").buffers(keys).unwrap();
        while let Some((_, read)) = many.next().await {
            let read = read.unwrap();
            assert!(read.body == *content);
            assert_eq!(read.info.verified, Verified::FullObject(algorithm));
        }
        assert_eq!(client.metrics().requests, 20);
        assert!(script.asked().iter().all(|asked| asked.header("range").is_none()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_small_object_costs_a_head_until_it_is_expected() {
    for algorithm in ChecksumAlgorithm::ALL {
        let content = object(PART);
        let script = store(content.clone(), content.clone(), told(algorithm, &content));
        let client = reader(&script);
        for requests in [2, 3, 4] {
            let read = client.get("bkt", "k").buffer().await.unwrap();
            assert_eq!(read.info.verified, Verified::FullObject(algorithm));
            assert_eq!(client.metrics().requests, requests);
        }
        assert_eq!(client.metrics().checksum_heads, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_is_larger_than_expected_is_read_in_ranges_all_the_same() {
    let content = object(5 * PART + 77);
    let script = store(content.clone(), content.clone(), told(ChecksumAlgorithm::Crc32, &content));
    let client = reader(&script);
    let folder = tempfile::tempdir().unwrap();
    let targets: Vec<_> = (0..9).map(|n| (format!("k{n}"), folder.path().join(n.to_string()))).collect();
    let mut many = client.get_many("bkt").files(targets.clone()).unwrap();
    while let Some((_, read)) = many.next().await {
        assert_eq!(read.unwrap().verified, Verified::FullObject(ChecksumAlgorithm::Crc32));
    }
    for (_, target) in targets {
        assert!(std::fs::read(target).unwrap() == content);
    }
    let asked = script.asked();
    let gets = || asked.iter().filter(|asked| asked.method() == "GET");
    let whole: Vec<_> = gets().filter(|asked| asked.header("range").is_none()).map(Asked::target).collect();
    assert!((1..9).contains(&whole.len()), "{} of nine large objects were asked for whole", whole.len());
    for asked in gets().filter(|asked| asked.header("range").is_some() && whole.contains(&asked.target())) {
        assert!(asked.range().0 >= PART, "the first part of {} was asked for twice", asked.target());
    }
}

/// Uploads to a server of which `judge` says what it refuses; it repeats the checksum that it was sent.
fn takes(judge: impl Fn(&Asked) -> Option<Vec<Act>> + Send + Sync + 'static) -> Script {
    Script::start(move |asked| {
        judge(asked).unwrap_or_else(|| {
            let found = asked.head.lines().find(|line| line.starts_with("x-amz-checksum-"));
            let mut echo = found.map(|line| format!("{line}\r\n")).unwrap_or_default();
            if let Some(name) = asked.header("x-amz-trailer") {
                let text = String::from_utf8_lossy(&asked.body[asked.body.len().saturating_sub(200)..]);
                let (_, value) = text.rsplit_once(&format!("{name}:")).unwrap();
                echo = format!("{name}: {}\r\n", value.trim());
            }
            let head = format!("HTTP/1.1 200 OK\r\nETag: \"e\"\r\n{echo}Content-Length: 0\r\n\r\n");
            vec![Act::Send(head.into_bytes())]
        })
    })
}

fn writer(script: &Script) -> wirespeed::ClientBuilder {
    let builder = script.builder().credentials(Credentials::new("id", "secret")).part_size(16 << 20);
    // The scripts take their time over large bodies where a machine is busy.
    let patient = [("stall_timeout", "20s"), ("first_byte_timeout", "20s"), ("multipart_threshold", "64MiB")];
    let builder = patient.into_iter().fold(builder, |builder, (name, value)| builder.set(name, value).unwrap());
    builder.set("payload_signing", "unsigned").unwrap()
}

/// The content of an `aws-chunked` body.
fn unframed(mut body: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    loop {
        let end = body.windows(2).position(|two| two == b"\r\n").unwrap();
        let length = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        if length == 0 {
            return content;
        }
        content.extend_from_slice(&body[end + 2..end + 2 + length]);
        body = &body[end + 2 + length + 2..];
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checksum_goes_in_a_header_when_it_is_known_before_the_body() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("f");
    for (signing, size) in [("signed", 3 << 20), ("signed", 100), ("unsigned", 3 << 20), ("unsigned", 0)] {
        let content = object(size);
        std::fs::write(&source, &content).unwrap();
        for algorithm in ChecksumAlgorithm::ALL {
            let script = takes(|_| None);
            let client = writer(&script).set("payload_signing", signing).unwrap().build().unwrap();
            let done = client.put("bkt", "k").checksum(algorithm).bytes(content.clone()).await.unwrap();
            assert_eq!(done.checksum.unwrap().value, checksum(algorithm, &content));
            client.put("bkt", "k").checksum(algorithm).file(&source).await.unwrap();
            for asked in script.asked() {
                assert_eq!(asked.header(algorithm.header()), Some(&*checksum(algorithm, &content)));
                assert!(asked.header("x-amz-trailer").is_none());
                assert!(asked.body == content);
                let hash = asked.header("x-amz-content-sha256").unwrap();
                assert_eq!(hash == "UNSIGNED-PAYLOAD", signing == "unsigned");
            }
        }
        let script = takes(|_| None);
        let client = writer(&script).set("checksum_algorithm", "none").unwrap().build().unwrap();
        assert_eq!(client.put("bkt", "k").bytes(content.clone()).await.unwrap().checksum, None);
        assert!(!script.asked()[0].head.contains("x-amz-checksum"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_unsigned_body_is_followed_by_its_checksum() {
    for algorithm in ChecksumAlgorithm::ALL {
        for size in [(16 << 20) + 1, 17 << 20] {
            let content = object(size);
            let script = takes(|_| None);
            let client = writer(&script).build().unwrap();
            let done = client.put("bkt", "k").checksum(algorithm).bytes(content.clone()).await.unwrap();
            assert_eq!(done.checksum.unwrap().value, checksum(algorithm, &content));
            let asked = script.asked().remove(0);
            assert_eq!(asked.header("x-amz-content-sha256"), Some("STREAMING-UNSIGNED-PAYLOAD-TRAILER"));
            assert_eq!(asked.header("content-encoding"), Some("aws-chunked"));
            assert_eq!(asked.header("x-amz-decoded-content-length"), Some(&*size.to_string()));
            assert!(unframed(&asked.body) == content);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_refuses_is_left_out_at_once_and_remembered() {
    let no_trailers: fn(&Asked) -> Option<Vec<Act>> =
        |asked| asked.header("x-amz-trailer").map(|_| error(501, "NotImplemented"));
    let no_chunks: fn(&Asked) -> Option<Vec<Act>> = |asked| {
        let body = "<Error><Code>InvalidArgument</Code><Message>x-amz-content-sha256 must be UNSIGNED-PAYLOAD or a \
                    hash</Message></Error>";
        let head = format!("HTTP/1.1 400 B\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        asked.header("x-amz-trailer").map(|_| vec![Act::Send(head.into_bytes())])
    };
    // Takes the framing for content, and says nothing of it.
    let ignorant: fn(&Asked) -> Option<Vec<Act>> = |asked| {
        asked
            .header("x-amz-trailer")
            .map(|_| vec![Act::Send(b"HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 0\r\n\r\n".to_vec())])
    };
    let content = object((16 << 20) + 5);
    for judge in [no_trailers, no_chunks, ignorant] {
        let script = takes(judge);
        let client = writer(&script).build().unwrap();
        for requests in [2, 3] {
            client.put("bkt", "k").bytes(content.clone()).await.unwrap();
            let asked = script.asked();
            assert_eq!(asked.len(), requests, "the server's refusal was not remembered");
            let last = asked.last().unwrap();
            assert!(last.body == content);
            let value = checksum(ChecksumAlgorithm::Crc64Nvme, &content);
            assert_eq!(last.header("x-amz-checksum-crc64nvme"), Some(&*value));
        }
    }

    let none_at_all = |asked: &Asked| asked.head.contains("x-amz-checksum-").then(|| error(501, "NotImplemented"));
    let script = takes(none_at_all);
    let client = writer(&script).build().unwrap();
    for requests in [3, 4] {
        assert_eq!(client.put("bkt", "k").bytes(content.clone()).await.unwrap().checksum, None);
        let asked = script.asked();
        assert_eq!(asked.len(), requests);
        assert!(asked.last().unwrap().body == content);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_bytes_are_not_taken_for_a_refused_checksum() {
    let script = takes(|_| Some(error(400, "BadDigest")));
    let client = writer(&script).set("max_attempts", "2").unwrap().build().unwrap();
    let failure = client.put("bkt", "k").bytes(object(100)).await.unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::Integrity);
    assert!(script.asked().iter().all(|asked| asked.head.contains("x-amz-checksum-crc64nvme")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stored_other_bytes_is_found_out() {
    let other = "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nx-amz-checksum-crc64nvme: AAAAAAAAAAA=\r\nContent-Length: 0\r\n\r\n";
    let script = takes(|_| Some(vec![Act::Send(other.as_bytes().to_vec())]));
    let client = writer(&script).set("max_attempts", "2").unwrap().build().unwrap();
    for size in [100, 17 << 20] {
        let failure = client.put("bkt", "k").bytes(object(size)).await.unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Integrity);
        assert!(failure.to_string().contains("the server stored other bytes"), "{failure}");
    }
}

#[tokio::test]
async fn a_checksum_that_cannot_be_one_is_no_damage_and_is_warned_of_once() {
    let content = object(3 * PART);
    let short = "x-amz-checksum-crc64nvme: AAAAAA==\r\n";
    let script = store(content.clone(), content.clone(), short.to_owned());
    let client = reader(&script);
    let warnings = Warnings::default();
    let _listening = tracing::subscriber::set_default(warnings.clone());
    for key in ["k", "other"] {
        let object = client.get("bkt", key).buffer().await.unwrap();
        assert!(object.body == *content);
        assert_eq!(object.info.verified, Verified::Not(Unverified::Malformed));
        let mut stream = client.get("bkt", key).stream().await.unwrap();
        while let Some(part) = stream.next().await {
            part.unwrap();
        }
        assert_eq!(stream.info().verified, Verified::Not(Unverified::Malformed));
        assert_eq!(client.head("bkt", key).checksum().await.unwrap().checksum, None);
    }
    assert_eq!(warnings.0.load(Ordering::SeqCst), 1);

    // Nor do the bytes of an upload differ from such a one.
    let stored = "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nx-amz-checksum-crc64nvme: AAAAAA==\r\nContent-Length: 0\r\n\r\n";
    let script = takes(move |_| Some(vec![Act::Send(stored.as_bytes().to_vec())]));
    let client = writer(&script).build().unwrap();
    client.put("bkt", "k").bytes(object(100)).await.unwrap();
    client.put("bkt", "k").bytes(object(100)).await.unwrap();
    assert_eq!(warnings.0.load(Ordering::SeqCst), 2, "once for each client");
}

/// Counts the warnings that one thread logs.
#[derive(Clone, Default)]
struct Warnings(Arc<AtomicUsize>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

async fn start(signing: &str) -> (Running, Client) {
    let origin = Origin::builder().keys("id", "secret").bucket("bucket").start().await.unwrap();
    let builder = Client::builder().endpoint_url(origin.endpoint()).credentials(Credentials::new("id", "secret"));
    let builder = builder.part_size(20 << 20).concurrency(4).set("payload_signing", signing).unwrap();
    let client = builder.set("multipart_threshold", "24MiB").unwrap().build().unwrap();
    (origin, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_up_with_a_checksum_comes_down_with_it() {
    for signing in ["signed", "unsigned"] {
        let (origin, client) = start(signing).await;
        for size in [1, 17 << 20, 25 << 20] {
            let content = object(size);
            for algorithm in ChecksumAlgorithm::ALL {
                let put = client.put("bucket", "key").checksum(algorithm).bytes(content.clone()).await.unwrap();
                let read = client.get("bucket", "key").buffer().await.unwrap();
                assert!(read.body == *content);
                if algorithm == ChecksumAlgorithm::Sha256 && put.parts > 1 {
                    assert_eq!(read.info.verified, Verified::Not(Unverified::Composite));
                    continue;
                }
                assert_eq!(put.checksum.unwrap().value, checksum(algorithm, &content));
                assert_eq!(read.info.checksum.unwrap().value, checksum(algorithm, &content));
                assert_eq!(read.info.verified, Verified::FullObject(algorithm), "{signing} {size}");
            }
        }
        assert_eq!(client.metrics().retries, 0, "something was refused");
        origin.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_a_server_corrupts_are_never_handed_out() {
    let (origin, client) = start("signed").await;
    let folder = tempfile::tempdir().unwrap();
    for (key, size) in [("small", 70_000), ("large", 17 << 20)] {
        let content = object(size);
        client.put("bucket", key).bytes(content.clone()).await.unwrap();
        origin.inject(Fault::new(Action::Corrupt(1)).verb(Verb::Get));
        let target = folder.path().join(key);
        for failure in [
            client.get("bucket", key).buffer().await.unwrap_err(),
            client.get("bucket", key).file(&target).await.unwrap_err(),
            client.get("bucket", key).writer(tokio::io::sink()).await.unwrap_err(),
        ] {
            assert_eq!(failure.kind(), ErrorKind::Integrity, "{failure}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        origin.clear_faults();
        assert!(client.get("bucket", key).buffer().await.unwrap().body == *content);
    }
    assert_eq!(client.metrics().memory_in_use, 0);
    origin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_upload_arrives_whatever_the_server_refuses() {
    for action in [Action::RefuseTrailers, Action::RefuseChecksums] {
        let (origin, client) = start("unsigned").await;
        origin.inject(Fault::new(action.clone()));
        for (key, size) in [("first", 17 << 20), ("parts", 25 << 20), ("second", 17 << 20)] {
            let content = object(size);
            let done = client.put("bucket", key).bytes(content.clone()).await.unwrap();
            assert_eq!(done.checksum.is_some(), matches!(action, Action::RefuseTrailers), "{key} after {action:?}");
            let read = client.get("bucket", key).buffer().await.unwrap();
            assert!(read.body == *content, "{key} after {action:?}");
        }
        origin.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conditional_upload_is_not_sent_in_a_framing_that_nobody_may_confirm() {
    // Takes the framing for content, and refuses what comes after it: the condition does not hold any more.
    let script = takes(|asked| match (asked.header("x-amz-trailer"), asked.index) {
        (Some(_), _) => Some(vec![Act::Send(b"HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 0\r\n\r\n".to_vec())]),
        (None, 0) => None,
        (None, _) => Some(error(412, "PreconditionFailed")),
    });
    let content = object((16 << 20) + 5);
    let client = writer(&script).build().unwrap();
    client.put("bkt", "k").if_none_match_any().bytes(content.clone()).await.unwrap();
    let asked = script.asked();
    assert_eq!(asked.len(), 1);
    let value = checksum(ChecksumAlgorithm::Crc64Nvme, &content);
    assert_eq!(asked[0].header("x-amz-checksum-crc64nvme"), Some(&*value));
}

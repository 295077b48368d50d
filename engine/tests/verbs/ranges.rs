//! Many ranges in one call: what is fetched together, what comes of each, and that all are of one version.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use wirespeed::{Client, Error, ErrorKind, Object, Outcomes, Progress, Unverified, Verified};

use super::script::{Act, Script, honest, object, partial};
use super::{PART, bytes, start};

async fn all(mut outcomes: Outcomes<Object>) -> BTreeMap<usize, Result<Object, Error>> {
    let mut all = BTreeMap::new();
    while let Some((index, outcome)) = outcomes.next().await {
        assert!(all.insert(index, outcome).is_none(), "{index} came twice");
    }
    all
}

fn of(key: &str, ranges: impl IntoIterator<Item = Range<u64>>) -> Vec<(String, Range<u64>)> {
    ranges.into_iter().map(|range| (key.to_owned(), range)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranges_in_any_order_bring_their_bytes_whatever_is_fetched_with_them() {
    let (_origin, client) = start().await;
    let size = 3 * PART + 1000;
    let content = bytes(size);
    client.put("bucket", "large").bytes(content.clone()).await.unwrap();
    client.put("bucket", "small").bytes(bytes(100)).await.unwrap();
    let mut ranges = of(
        "large",
        [
            2 * PART..2 * PART + 10,
            0..10,
            5..20,
            5..20,
            7..7,
            0..size,
            PART - 5..PART + 5,
            size - 7..u64::MAX,
            100..100 + PART,
        ],
    );
    ranges.extend(of("small", [0..100, 50..60, 99..200]));
    for max_gap in [0, 60, 1 << 20, u64::MAX] {
        let progress = Progress::default();
        let get = client.get_ranges("bucket").max_gap(max_gap).progress(progress.clone());
        let read = all(get.buffers(ranges.clone()).unwrap()).await;
        assert_eq!(read.len(), ranges.len());
        let mut asked = 0;
        for (index, outcome) in read {
            let (key, range) = &ranges[index];
            let content = if key == "large" { &content[..] } else { &bytes(100)[..] };
            let end = (content.len() as u64).min(range.end);
            let object = outcome.unwrap();
            assert!(object.body == content[range.start as usize..end as usize], "{key} {range:?} at {max_gap}");
            if !range.is_empty() {
                assert_eq!(object.info.size, content.len() as u64);
                assert_eq!(object.info.verified, Verified::Not(Unverified::Range));
            }
            asked += end - range.start;
        }
        assert_eq!((progress.bytes(), progress.expected()), (asked, asked), "what was asked for, and no gap");
        assert_eq!(progress.objects(), ranges.len() as u64);
    }
    assert_eq!(client.metrics().memory_in_use, 0);
}

/// How many requests some ranges of one object cost, and how many bytes they moved.
async fn cost(client: &Client, max_gap: u64, ranges: Vec<(String, Range<u64>)>) -> (u64, u64) {
    let before = client.metrics();
    for outcome in all(client.get_ranges("bucket").max_gap(max_gap).buffers(ranges).unwrap()).await.into_values() {
        outcome.unwrap();
    }
    let after = client.metrics();
    (after.requests - before.requests, after.bytes_received - before.bytes_received)
}

#[tokio::test]
async fn near_ranges_are_one_request_up_to_the_length_of_a_part() {
    let (_origin, client) = start().await;
    client.put("bucket", "key").bytes(bytes(4 * PART)).await.unwrap();
    let scattered = || of("key", (0..100).rev().map(|i| i * 1000..i * 1000 + 100));
    assert_eq!(cost(&client, 0, scattered()).await, (100, 100 * 100));
    assert_eq!(cost(&client, 899, scattered()).await, (100, 100 * 100));
    assert_eq!(cost(&client, 900, scattered()).await, (1, 99 * 1000 + 100));
    let touching = || of("key", (0..256).map(|i| i * (PART / 64)..(i + 1) * (PART / 64)));
    assert_eq!(cost(&client, 0, touching()).await, (4, 4 * PART));
    assert_eq!(cost(&client, 0, of("key", [5..5, 9..9])).await, (0, 0), "no bytes, no request");
    let whole = of("key", [0..4 * PART, PART..PART + 5, 7..8]);
    assert_eq!(cost(&client, 0, whole).await, (4, 4 * PART), "one that is larger is cut, and has the others in it");
    assert_eq!(cost(&client, 0, of("none", [5..5, 0..0])).await, (0, 0));
}

#[tokio::test]
async fn a_failure_is_that_of_what_was_fetched_together_and_of_nothing_else() {
    let (_origin, client) = start().await;
    client.put("bucket", "key").bytes(bytes(1000)).await.unwrap();
    let mut ranges = of("key", [990..1010, 1005..1007, 5000..5010, 0..10]);
    ranges.extend(of("missing", [0..10, 10..20]));
    for max_gap in [0, 20, 1 << 20] {
        let mut read = all(client.get_ranges("bucket").max_gap(max_gap).buffers(ranges.clone()).unwrap()).await;
        assert!(read.remove(&0).unwrap().unwrap().body == bytes(1000)[990..]);
        assert!(read.remove(&3).unwrap().unwrap().body == bytes(10)[..]);
        for (index, outcome) in read {
            let error = outcome.unwrap_err();
            assert_eq!((error.operation(), error.bucket()), (Some("get"), Some("bucket")));
            match index {
                1 | 2 => {
                    assert_eq!((error.kind(), error.status(), error.key()), (ErrorKind::Config, Some(416), Some("key")))
                }
                _ => assert_eq!((error.kind(), error.key()), (ErrorKind::NotFound, Some("missing"))),
            }
        }
    }
    let empty = client.put("bucket", "empty").bytes("").await.map(|_| of("empty", [0..10, 10..20])).unwrap();
    let mut read = all(client.get_ranges("bucket").buffers(empty).unwrap()).await;
    assert!(read.remove(&0).unwrap().unwrap().body.is_empty());
    assert_eq!(read.remove(&1).unwrap().unwrap_err().status(), Some(416));
}

#[tokio::test]
async fn all_ranges_of_a_key_are_of_one_version() {
    const SIZE: usize = 10_000;
    for ignores_conditions in [false, true] {
        // The object is replaced after three requests, by one of the same size.
        let answered = AtomicUsize::new(0);
        let script = Script::start(move |asked| {
            let etag = if answered.fetch_add(1, Ordering::SeqCst) < 3 { "\"one\"" } else { "\"two\"" };
            match asked.header("if-match") {
                Some(pinned) if pinned != etag && !ignores_conditions => {
                    super::script::error(412, "PreconditionFailed")
                }
                _ => {
                    let content = object(SIZE);
                    let (head, body) = partial(asked, &content, etag);
                    vec![Act::Send([head.as_bytes(), body].concat())]
                }
            }
        });
        let client = script.builder().concurrency(1).build().unwrap();
        let ranges = of("key", (0..6).map(|i| i * 1000..i * 1000 + 10));
        let read = all(client.get_ranges("bucket").buffers(ranges).unwrap()).await;
        for (index, outcome) in read {
            match outcome {
                Ok(object) => assert!(index < 3 && object.info.etag.as_deref() == Some("\"one\"")),
                Err(error) => {
                    assert!(index >= 3, "{index}: {error}");
                    assert_eq!((error.kind(), error.key()), (ErrorKind::Precondition, Some("key")));
                    assert!(error.to_string().contains("changed while it was being read"), "{error}");
                }
            }
        }
        assert!(script.asked()[1..].iter().all(|asked| asked.header("if-match") == Some("\"one\"")));
    }
}

#[tokio::test]
async fn each_key_has_a_version_of_its_own_and_options_go_with_every_request() {
    let script = Script::start(|asked| {
        let etag = if asked.target().contains("/a") { "\"a\"" } else { "\"b\"" };
        let content = object(1000);
        let (head, body) = partial(asked, &content, etag);
        vec![Act::Send([head.as_bytes(), body].concat())]
    });
    let mut ranges = of("a", [0..10, 500..510]);
    ranges.extend(of("b", [0..10, 500..510]));
    let client = script.builder().concurrency(1).build().unwrap();
    let get = client.get_ranges("bucket").request_payer().version("v");
    for (index, outcome) in all(get.buffers(ranges).unwrap()).await {
        assert_eq!(outcome.unwrap().info.etag.unwrap(), if index < 2 { "\"a\"" } else { "\"b\"" });
    }
    let asked = script.asked();
    assert_eq!(asked.len(), 4);
    assert!(asked.iter().all(|asked| asked.target().ends_with("?versionId=v")));
    assert!(asked.iter().all(|asked| asked.header("x-amz-request-payer").is_some()));

    // The caller's own condition goes out in the place of the version that was met.
    let script = Script::start(|asked| honest(asked, &object(1000)));
    let client = script.builder().concurrency(1).build().unwrap();
    let get = client.get_ranges("bucket").if_match("\"tag\", \"other\"");
    for outcome in all(get.buffers(of("a", [0..10, 500..510])).unwrap()).await.into_values() {
        outcome.unwrap();
    }
    assert!(script.asked().iter().all(|asked| asked.header("if-match") == Some("\"tag\", \"other\"")));
}

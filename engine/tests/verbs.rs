//! Every verb against the embedded server: the bytes, the requests sent, and nothing left over.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // That is how a test fails.

mod script;

#[path = "verbs/copies.rs"]
mod copies;
#[path = "verbs/housekeeping.rs"]
mod housekeeping;
#[path = "verbs/items.rs"]
mod items;
#[path = "verbs/listing.rs"]
mod listing;
#[path = "verbs/many.rs"]
mod many;
#[path = "verbs/parts.rs"]
mod parts;
#[path = "verbs/ranges.rs"]
mod ranges;
#[path = "verbs/reads.rs"]
mod reads;
#[path = "verbs/versions.rs"]
mod versions;
#[path = "verbs/writes.rs"]
mod writes;

use std::collections::BTreeSet;

use wirespeed::{Client, Credentials, ErrorKind, Progress};
use wirespeed_origin::{Origin, Running};

const PART: u64 = 5 << 20;

/// Keys that clients and servers like to trip over.
const AWKWARD: [&str; 16] = [
    "plain",
    "a//b",
    "c/./d",
    "../e",
    "/lead",
    "trail/",
    "with space",
    "plus+sign",
    "per%cent",
    "per%25cent",
    "emoji-\u{1f980}",
    "quote\"'<>&",
    "q?x=1&y",
    "#hash",
    "tab\tand\nline",
    "~tilde*star(paren)!",
];

async fn start() -> (Running, Client) {
    let origin = Origin::builder().keys("id", "secret").bucket("bucket").start().await.unwrap();
    let client = client(&origin);
    (origin, client)
}

fn client(origin: &Running) -> Client {
    Client::builder()
        .endpoint_url(origin.endpoint())
        .credentials(Credentials::new("id", "secret"))
        .part_size(PART)
        .concurrency(4)
        .build()
        .unwrap()
}

fn bytes(size: u64) -> Vec<u8> {
    (0..size).map(|i| (i ^ (i >> 8) ^ (i >> 16).wrapping_mul(31)) as u8).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_size_survives_every_way_up_and_down() {
    let (origin, client) = start().await;
    let folder = tempfile::tempdir().unwrap();
    let sizes = [0, 1, PART - 1, PART, PART + 1, 4 * PART, 4 * PART + 12345];
    for size in sizes {
        let content = bytes(size);
        let source = folder.path().join("source");
        std::fs::write(&source, &content).unwrap();
        client.put("bucket", "memory").bytes(content.clone()).await.unwrap();
        let outcome = client.put("bucket", "file").file(&source).await.unwrap();
        assert_eq!(outcome.parts == 1, size <= 16 << 20, "{size}: {outcome:?}");
        for key in ["memory", "file"] {
            let object = client.get("bucket", key).buffer().await.unwrap();
            assert!(object.body == *content, "{key} of {size} differs");
            assert_eq!(object.info.size, size);

            let mut larger = vec![7; size as usize + 3];
            let (mine, length, _) = client.get("bucket", key).into_owned(std::mem::take(&mut larger)).await.unwrap();
            assert_eq!(length, size);
            assert!(mine[..size as usize] == content && mine[size as usize..] == [7; 3]);

            let target = folder.path().join("target");
            client.get("bucket", key).file(&target).await.unwrap();
            assert!(std::fs::read(&target).unwrap() == content);

            let mut written = Vec::new();
            client.get("bucket", key).writer(&mut written).await.unwrap();
            assert!(written == content, "the ordered stream of {size} differs");

            assert_eq!(client.get("bucket", key).discard().await.unwrap().size, size);
        }
    }
    assert_eq!(client.metrics().memory_in_use, 0);
    assert_eq!(client.metrics().retries, 0);
    origin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn borrowed_memory_is_filled_from_a_plain_thread() {
    let (_origin, client) = start().await;
    let content = bytes(3 * PART + 7);
    client.put("bucket", "key").bytes(content.clone()).await.unwrap();
    let runtime = tokio::runtime::Handle::current();
    let read = std::thread::spawn(move || {
        let mut destination = vec![0; content.len()];
        let (length, _) = client.get("bucket", "key").into_slice_blocking(&mut destination, &runtime).unwrap();
        assert_eq!(length as usize, destination.len());
        assert!(destination == content);
        let short = client.get("bucket", "key").into_slice_blocking(&mut destination[..9], &runtime);
        assert_eq!(short.unwrap_err().kind(), ErrorKind::Config);
    });
    tokio::task::spawn_blocking(move || read.join().unwrap()).await.unwrap();
}

#[tokio::test]
async fn ranges_are_cut_at_the_end_and_refused_beyond_it() {
    let (_origin, client) = start().await;
    let content = bytes(2 * PART + 100);
    client.put("bucket", "key").bytes(content.clone()).await.unwrap();
    let size = content.len();
    let near_end = size as u64 - 10;
    for (start, end) in [(0, 1), (5, 17), (PART - 1, PART + 1), (3, 2 * PART + 50), (near_end, u64::MAX)] {
        let object = client.get("bucket", "key").range(start..end).buffer().await.unwrap();
        assert!(object.body == content[start as usize..size.min(end as usize)], "{start}..{end}");
        assert_eq!(object.info.size as usize, size);
    }
    let beyond = client.get("bucket", "key").range(size as u64..).buffer().await.unwrap_err();
    assert_eq!(beyond.status(), Some(416));
    #[allow(clippy::reversed_empty_ranges)]
    let empty = client.get("bucket", "key").range(5..5).buffer().await.unwrap_err();
    assert_eq!(empty.kind(), ErrorKind::Config);
}

#[tokio::test]
async fn no_request_is_sent_that_need_not_be() {
    let (origin, client) = start().await;
    client.put("bucket", "small").bytes(bytes(1000)).await.unwrap();
    client.put("bucket", "large").bytes(bytes(3 * PART)).await.unwrap();
    let requests = |client: &Client| client.metrics().requests;
    let before = requests(&client);
    client.get("bucket", "large").buffer().await.unwrap();
    assert_eq!(requests(&client) - before, 3 + 1, "a large object is one a part, and a HEAD for its checksum");
    client.get("bucket", "large").verify(false).buffer().await.unwrap();
    assert_eq!(requests(&client) - before, 4 + 3, "which nobody needs who does not verify");
    let mut many = client.get_many("bucket").buffers(["small".to_owned(), "small".to_owned()]).unwrap();
    while let Some((_, read)) = many.next().await {
        read.unwrap();
    }
    assert_eq!(requests(&client) - before, 7 + 2, "a small one of many is one request");
    for _ in 0..8 {
        client.get("bucket", "small").buffer().await.unwrap();
    }
    let heads = client.metrics().checksum_heads;
    assert_eq!(requests(&client) - before, 9 + 8 + heads - 1, "and so is a single one");
    assert!(heads <= 4, "but for the first few after large ones: {heads}");
    assert!(client.metrics().connections_opened <= 6);
    origin.stop().await;
}

#[tokio::test]
async fn awkward_keys_survive_every_verb() {
    let (_origin, client) = start().await;
    for key in AWKWARD {
        client.put("bucket", key).bytes(key.as_bytes().to_vec()).await.unwrap();
    }
    for key in AWKWARD {
        let object = client.get("bucket", key).buffer().await.unwrap();
        assert_eq!(&*object.body, key.as_bytes());
        assert_eq!(client.head("bucket", key).await.unwrap().size, key.len() as u64);
    }
    let mut pages = client.list("bucket").page_size(3).pages();
    let mut listed = Vec::new();
    while let Some(page) = pages.next().await {
        listed.extend(page.unwrap().objects.into_iter().map(|object| object.key));
    }
    let mut expected = AWKWARD.map(str::to_owned);
    expected.sort();
    assert_eq!(listed, expected, "in byte order, each once");
    client.delete("bucket", AWKWARD[1]).await.unwrap();
    let rest = AWKWARD.iter().map(|key| key.to_string()).collect();
    assert!(client.delete_many("bucket", rest).await.unwrap().is_empty());
    let mut pages = client.list("bucket").pages();
    assert!(pages.next().await.unwrap().unwrap().objects.is_empty());
}

#[tokio::test]
async fn listings_roll_up_and_start_after() {
    let (_origin, client) = start().await;
    let keys = ["a/1", "a/2", "b", "c/x/1", "c/y"].map(str::to_owned);
    let objects: Vec<_> = keys.iter().map(|key| (key.clone(), bytes::Bytes::from_static(b"x"))).collect();
    let mut puts = client.put_many("bucket").bytes(objects).unwrap();
    while let Some((_, outcome)) = puts.next().await {
        outcome.unwrap();
    }
    let mut pages = client.list("bucket").delimiter("/").pages();
    let page = pages.next().await.unwrap().unwrap();
    assert_eq!(page.prefixes, ["a/", "c/"]);
    assert_eq!(page.objects.iter().map(|o| o.key.as_str()).collect::<Vec<_>>(), ["b"]);
    assert!(page.objects[0].etag.is_some() && page.objects[0].last_modified.is_some());
    assert!(pages.next().await.is_none());
    let mut pages = client.list("bucket").prefix("c/").start_after("c/x/1").pages();
    let page = pages.next().await.unwrap().unwrap();
    assert_eq!(page.objects.iter().map(|o| o.key.as_str()).collect::<Vec<_>>(), ["c/y"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_objects_in_one_call() {
    let (_origin, client) = start().await;
    let sizes: Vec<u64> = (0..60).map(|i| if i % 20 == 7 { 3 * PART } else { i * 100 }).collect();
    let objects: Vec<_> = sizes.iter().enumerate().map(|(i, &size)| (format!("k/{i}"), bytes(size).into())).collect();
    let progress = Progress::default();
    let mut puts = client.put_many("bucket").progress(progress.clone()).bytes(objects).unwrap();
    while let Some((_, outcome)) = puts.next().await {
        outcome.unwrap();
    }
    assert_eq!((progress.objects(), progress.bytes()), (60, sizes.iter().sum::<u64>()));

    // One that is missing stops none of the others.
    let mut keys: Vec<_> = (0..60).map(|i| format!("k/{i}")).collect();
    keys.push("k/missing".to_owned());
    let mut gets = client.get_many("bucket").buffers(keys.clone()).unwrap();
    let mut seen = BTreeSet::new();
    while let Some((index, object)) = gets.next().await {
        assert!(seen.insert(index));
        match object {
            Ok(object) => assert!(object.body == *bytes(sizes[index]), "{index} differs"),
            Err(error) => {
                assert_eq!((index, error.kind(), error.key()), (60, ErrorKind::NotFound, Some("k/missing")));
            }
        }
    }
    assert_eq!(seen.len(), 61);

    let folder = tempfile::tempdir().unwrap();
    let targets: Vec<_> = keys[..60].iter().map(|key| (key.clone(), folder.path().join(key))).collect();
    let mut gets = client.get_many("bucket").files(targets.clone()).unwrap();
    while let Some((_, outcome)) = gets.next().await {
        outcome.unwrap();
    }
    for (index, (_, path)) in targets.iter().enumerate() {
        assert!(std::fs::read(path).unwrap() == bytes(sizes[index]));
    }
    assert_eq!(client.metrics().memory_in_use, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_budget_still_moves_everything() {
    let (origin, _) = start().await;
    let client = Client::builder()
        .endpoint_url(origin.endpoint())
        .credentials(Credentials::new("id", "secret"))
        .part_size(PART)
        .concurrency(8)
        .memory(4 << 20)
        .build()
        .unwrap();
    let sizes = [100, 3 * PART, PART, 2 * PART + 1, 17, 4 * PART, PART - 1, 3 * PART, 3 * PART];
    let folder = tempfile::tempdir().unwrap();
    for (i, &size) in sizes.iter().enumerate() {
        let source = folder.path().join("source");
        std::fs::write(&source, bytes(size)).unwrap();
        client.put("bucket", format!("k{i}")).file(&source).await.unwrap();
    }
    let keys: Vec<_> = (0..sizes.len()).map(|i| format!("k{i}")).collect();
    let all = async {
        let mut gets = client.get_many("bucket").buffers(keys.clone()).unwrap();
        while let Some((index, object)) = gets.next().await {
            assert!(object.unwrap().body == *bytes(sizes[index]));
        }
        // Files beside buffers, both wanting memory and places.
        let targets: Vec<_> = keys.iter().map(|key| (key.clone(), folder.path().join(key))).collect();
        let mut files = client.get_many("bucket").files(targets).unwrap();
        let mut gets = client.get_many("bucket").buffers(keys.clone()).unwrap();
        loop {
            tokio::select! {
                Some((_, outcome)) = files.next() => { outcome.unwrap(); }
                Some((index, object)) = gets.next() => { assert!(object.unwrap().body == *bytes(sizes[index])); }
                else => break,
            }
        }
        let mut written = Vec::new();
        client.get("bucket", "k5").writer(&mut written).await.unwrap();
        assert!(written == bytes(sizes[5]));
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), all).await.expect("the budget locked itself");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_may_upload_before_it_takes_the_next_object() {
    let (origin, client) = start().await;
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    std::fs::write(&source, bytes(PART)).unwrap();
    let objects: Vec<_> = (0..24).map(|i| (format!("k{i}"), bytes(1 << 20).into())).collect();
    let keys: Vec<_> = objects.iter().map(|(key, _): &(String, bytes::Bytes)| key.clone()).collect();
    let mut puts = client.put_many("bucket").bytes(objects).unwrap();
    while let Some((_, outcome)) = puts.next().await {
        outcome.unwrap();
    }
    let tight = Client::builder()
        .endpoint_url(origin.endpoint())
        .credentials(Credentials::new("id", "secret"))
        .memory(4 << 20)
        .build()
        .unwrap();
    let both = async {
        let mut gets = tight.get_many("bucket").buffers(keys).unwrap();
        while let Some((_, object)) = gets.next().await {
            object.unwrap();
            tight.put("bucket", "copy").file(&source).await.unwrap();
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), both).await.expect("the caller locked itself");
}

#[tokio::test]
async fn thousands_are_deleted_in_batches() {
    let (_origin, client) = start().await;
    let objects: Vec<_> = (0..1500).map(|i| (format!("{i:05}"), bytes::Bytes::new())).collect();
    let keys: Vec<_> = objects.iter().map(|(key, _)| key.clone()).collect();
    let mut puts = client.put_many("bucket").bytes(objects).unwrap();
    while let Some((_, outcome)) = puts.next().await {
        outcome.unwrap();
    }
    let before = client.metrics().requests;
    assert!(client.delete_many("bucket", keys).await.unwrap().is_empty());
    assert_eq!(client.metrics().requests - before, 2);
    client.delete_bucket("bucket").await.unwrap();
}

#[tokio::test]
async fn buckets_are_made_listed_and_removed() {
    let (_origin, client) = start().await;
    client.create_bucket("another").await.unwrap();
    let names: Vec<_> = client.list_buckets().await.unwrap().into_iter().map(|bucket| bucket.name).collect();
    assert_eq!(names, ["another", "bucket"]);
    assert_eq!(client.create_bucket("another").await.unwrap_err().kind(), ErrorKind::Conflict);
    client.put("another", "key").bytes("x").await.unwrap();
    let full = client.delete_bucket("another").await.unwrap_err();
    assert_eq!((full.kind(), full.code()), (ErrorKind::Conflict, Some("BucketNotEmpty")));
    client.delete("another", "key").await.unwrap();
    client.delete_bucket("another").await.unwrap();
    assert_eq!(client.delete_bucket("another").await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(client.get("another", "key").buffer().await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_wrong_secret_is_said_and_not_shown() {
    let (origin, _) = start().await;
    let client = Client::builder()
        .endpoint_url(origin.endpoint())
        .credentials(Credentials::new("id", "not-the-secret"))
        .build()
        .unwrap();
    let error = client.head("bucket", "key").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    let error = client.get("bucket", "key").buffer().await.unwrap_err();
    assert_eq!(error.code(), Some("SignatureDoesNotMatch"));
    assert!(!format!("{error} {error:?} {client:?}").contains("not-the-secret"));
}

#[tokio::test]
async fn a_source_that_changes_while_it_is_sent_is_refused() {
    let (_origin, client) = start().await;
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    let file = std::fs::File::create(&source).unwrap();
    file.set_len(20 * PART).unwrap();
    let upload = client.put("bucket", "key").file(&source);
    let shrink = async {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        file.set_len(PART).unwrap();
    };
    let (outcome, ()) = tokio::join!(upload, shrink);
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Integrity, "{error}");
    assert!(error.to_string().contains("changed while it was being uploaded"), "{error}");
    assert_eq!(client.head("bucket", "key").await.unwrap_err().kind(), ErrorKind::NotFound);
}

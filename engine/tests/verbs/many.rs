//! Many objects in one call: ranges and versions of each, the caller's memory, batches; and one in two steps.

use std::collections::BTreeSet;
use std::time::Duration;

use wirespeed::{Client, ErrorKind, GetItem, Progress};

use super::script::{Script, honest, object};
use super::{PART, bytes, start};

async fn fill(client: &Client, sizes: &[u64]) -> Vec<String> {
    let objects: Vec<_> = sizes.iter().enumerate().map(|(i, &size)| (format!("k{i:03}"), bytes(size).into())).collect();
    let keys = objects.iter().map(|(key, _): &(String, bytes::Bytes)| key.clone()).collect();
    let mut puts = client.put_many("bucket").bytes(objects).unwrap();
    while let Some((_, outcome)) = puts.next().await {
        outcome.unwrap();
    }
    keys
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_many_may_be_a_range_or_a_suffix() {
    let (_origin, client) = start().await;
    let size = 3 * PART + 17;
    let keys = fill(&client, &[size, 1000]).await;
    let content = bytes(size);
    let all = size as usize;
    let large = || GetItem::new(&keys[0]);
    let cases = [
        (large(), 0..all),
        (large().range(5..), 5..all),
        (large().range(..=9), 0..10),
        (large().range(PART - 1..2 * PART + 2), PART as usize - 1..2 * PART as usize + 2),
        (large().range(size - 3..u64::MAX), all - 3..all),
        (large().suffix(7), all - 7..all),
        (large().suffix(2 * PART), all - 2 * PART as usize..all),
        (large().suffix(u64::MAX), 0..all),
    ];
    let progress = Progress::default();
    let items: Vec<_> = cases.iter().map(|(item, _)| item.clone()).collect();
    let mut gets = client.get_many("bucket").progress(progress.clone()).items(items).unwrap();
    let mut seen = 0;
    while let Some((index, object)) = gets.next().await {
        let object = object.unwrap();
        assert!(object.body == content[cases[index].1.clone()], "{:?}", cases[index]);
        assert_eq!(object.info.size, size);
        seen += 1;
    }
    assert_eq!(seen, cases.len());
    let wanted: u64 = cases.iter().map(|(_, range)| range.len() as u64).sum();
    assert_eq!((progress.bytes(), progress.expected(), progress.objects()), (wanted, wanted, 8));

    // What cannot be read is an error of its own, and stops none of the others.
    let items = [large().range(size..), large().suffix(0), GetItem::from("k001").range(990..2000), "k002".into()];
    let mut gets = client.get_many("bucket").items(items).unwrap();
    while let Some((index, object)) = gets.next().await {
        match (index, object) {
            (0, Err(error)) => assert_eq!(error.status(), Some(416)),
            (1, Err(error)) => assert_eq!((error.kind(), error.key()), (ErrorKind::Config, Some("k000"))),
            (2, Ok(object)) => assert!(object.body == bytes(1000)[990..]),
            (3, Err(error)) => assert_eq!(error.kind(), ErrorKind::NotFound),
            (index, other) => panic!("{index}: {other:?}"),
        }
    }
    drop(gets);
    assert_eq!(client.metrics().memory_in_use, 0);
}

#[tokio::test]
async fn each_of_many_may_be_a_version_of_its_own() {
    let script = Script::start(|asked| honest(asked, &object(100)));
    let items = [GetItem::new("a").version("v1").range(0..10), GetItem::new("b").range(0..10)];
    let client = script.builder().concurrency(1).build().unwrap();
    let mut gets = client.get_many("bucket").request_payer().items(items).unwrap();
    while let Some((_, object)) = gets.next().await {
        object.unwrap();
    }
    let asked = script.asked();
    assert!(asked[0].target().ends_with("/a?versionId=v1"), "{}", asked[0].head);
    assert!(asked[1].target().ends_with("/b"), "{}", asked[1].head);
    assert!(asked.iter().all(|asked| asked.header("x-amz-request-payer").is_some()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_land_in_the_callers_own_memory() {
    let (_origin, client) = start().await;
    let sizes = [0, 1, 1000, PART, 2 * PART + 5, 1000, 2 * PART];
    let keys = fill(&client, &sizes).await;
    let before = client.metrics().requests;
    let small = (0..20).map(|_| (GetItem::new("k002"), vec![7; 1000])).collect::<Vec<_>>();
    let mut gets = client.get_many("bucket").into_owned(small).unwrap();
    while let Some((_, outcome)) = gets.next().await {
        let (memory, length, info) = outcome.unwrap();
        assert!(memory == bytes(1000) && length == 1000 && info.size == 1000);
    }
    assert_eq!(client.metrics().requests - before, 20, "a small one is one request");

    // More room than is needed stays as it was; less is an error of that one.
    let rooms: Vec<u64> = vec![4, 1, 1003, PART, 2 * PART + 5, 999, 2 * PART - 1];
    let items = keys.iter().zip(&rooms).map(|(key, &room)| (GetItem::new(key), vec![7; room as usize]));
    let mut gets = client.get_many("bucket").into_owned(items.collect::<Vec<_>>()).unwrap();
    let mut seen = BTreeSet::new();
    while let Some((index, outcome)) = gets.next().await {
        seen.insert(index);
        if rooms[index] < sizes[index] {
            let error = outcome.unwrap_err();
            assert_eq!((error.kind(), error.key()), (ErrorKind::Config, Some(&*keys[index])));
            continue;
        }
        let (memory, length, _) = outcome.unwrap();
        assert_eq!((length, memory.len() as u64), (sizes[index], rooms[index]));
        let (front, rest) = memory.split_at(length as usize);
        assert!(front == bytes(length) && rest.iter().all(|&byte| byte == 7), "{index}");
    }
    assert_eq!(seen.len(), 7);

    let range = [(GetItem::new("k004").range(PART - 2..PART + 2), Box::<[u8]>::from([0; 4]))];
    let (memory, ..) = client.get_many("bucket").into_owned(range).unwrap().next().await.unwrap().1.unwrap();
    assert!(*memory == bytes(PART + 2)[PART as usize - 2..]);
}

#[tokio::test]
async fn a_download_in_two_steps_tells_its_length_first_and_costs_no_request_more() {
    let (_origin, client) = start().await;
    for size in [0, 1, 1000, PART, 2 * PART + 5] {
        let content = bytes(size);
        client.put("bucket", "key").bytes(content.clone()).await.unwrap();
        let before = client.metrics().requests;
        client.get("bucket", "key").verify(false).buffer().await.unwrap();
        let at_once = client.metrics().requests - before;

        let begun = client.get("bucket", "key").verify(false).begin().await.unwrap();
        assert_eq!((begun.length(), begun.info().size), (size, size));
        let (memory, length, info) = begun.into_owned(vec![0; size as usize]).await.unwrap();
        assert!(memory == content && length == size && info.size == size);
        assert_eq!(client.metrics().requests - before, 2 * at_once);

        let object = client.get("bucket", "key").begin().await.unwrap().buffer().await.unwrap();
        assert!(object.body == *content);
        assert!(size == 0 || matches!(object.info.verified, wirespeed::Verified::FullObject(_)), "{:?}", object.info);
    }
    let begun = client.get("bucket", "key").range(PART..u64::MAX).begin().await.unwrap();
    assert_eq!(begun.length(), PART + 5);
    let error = begun.into_owned(vec![0; 5]).await.unwrap_err();
    assert_eq!((error.kind(), error.operation(), error.key()), (ErrorKind::Config, Some("get"), Some("key")));
    assert_eq!(client.get("bucket", "none").begin().await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(client.metrics().memory_in_use, 0);
}

#[tokio::test]
async fn downloads_that_have_begun_hold_no_place_in_flight_and_may_be_dropped() {
    let (_origin, client) = start().await;
    client.put("bucket", "key").bytes(bytes(2 * PART)).await.unwrap();
    let mut begun = Vec::new();
    let both = async {
        for _ in 0..8 {
            begun.push(client.get("bucket", "key").begin().await.unwrap());
        }
        client.get("bucket", "key").discard().await.unwrap();
    };
    tokio::time::timeout(Duration::from_secs(20), both).await.expect("what has begun holds the places");
    let last = begun.pop().unwrap();
    drop(begun);
    assert!(last.buffer().await.unwrap().body == *bytes(2 * PART));
    let whole = tokio::time::timeout(Duration::from_secs(20), client.get("bucket", "key").buffer()).await;
    whole.expect("a dropped one kept something").unwrap();
}

#[tokio::test]
async fn batches_bring_every_outcome_once_and_are_more_than_one_at_a_time() {
    let (_origin, client) = start().await;
    let mut keys = fill(&client, &[100; 300]).await;
    keys.push("missing".to_owned());
    let mut gets = client.get_many("bucket").buffers(keys.clone()).unwrap();
    let (mut batch, mut seen, mut batches) = (Vec::new(), BTreeSet::new(), 0);
    loop {
        let count = gets.next_batch(&mut batch).await;
        assert_eq!(count, batch.len());
        if count == 0 {
            break;
        }
        batches += 1;
        for (index, object) in batch.drain(..) {
            assert!(seen.insert(index), "{index} came twice");
            assert_eq!(object.is_ok(), index < 300);
        }
    }
    assert_eq!(seen.len(), 301);
    assert!(batches < 301, "every batch was a single object");
    assert_eq!(gets.next_batch(&mut batch).await, 0, "it stays at its end");

    // What was there stays there, also when the wait is given up.
    let mut gets = client.get_many("bucket").buffers(keys[..100].to_vec()).unwrap();
    let (mut all, mut waits) = (Vec::new(), 0);
    loop {
        let before = all.len();
        match tokio::time::timeout(Duration::from_micros(200), gets.next_batch(&mut all)).await {
            Ok(0) => break,
            Ok(count) => assert_eq!(all.len(), before + count),
            Err(_) => waits += 1,
        }
        assert!(waits < 100_000);
    }
    let mut indexes: Vec<_> = all.into_iter().map(|(index, object)| (index, object.unwrap()).0).collect();
    indexes.sort_unstable();
    assert!(indexes.into_iter().eq(0..100), "an object was lost or came twice");
}

//! Objects whose bytes are taken as they land.

use std::time::Duration;

use wirespeed::{Client, Error, ErrorKind, ObjectParts, Part, Progress, Verified};

use super::script::{Act, Script, honest, object, partial};
use super::{PART, bytes, start};

/// Puts the parts where they belong, and sees that no byte comes twice.
async fn gather(mut parts: ObjectParts, origin: u64) -> Result<Vec<u8>, Error> {
    let mut gathered = vec![None; parts.length() as usize];
    let mut place = |part: Part| {
        let from = (part.offset - origin) as usize;
        for (to, &byte) in gathered[from..from + part.body.len()].iter_mut().zip(&*part.body) {
            assert_eq!(to.replace(byte), None, "a byte came twice");
        }
    };
    while let Some(part) = parts.next().await {
        place(part?);
        while let Some(part) = parts.try_next() {
            place(part);
        }
    }
    assert!(parts.next().await.is_none() && parts.try_next().is_none(), "it stays at its end");
    Ok(gathered.into_iter().map(|byte| byte.expect("a byte is missing")).collect())
}

async fn nothing_held(client: &Client) {
    for _ in 0..100 {
        if client.metrics().memory_in_use == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{} bytes are still held", client.metrics().memory_in_use);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_byte_lands_once_whatever_the_size_and_the_window() {
    let (_origin, client) = start().await;
    for size in [0, 1, PART, 4 * PART + 12345] {
        let content = bytes(size);
        client.put("bucket", "key").bytes(content.clone()).await.unwrap();
        for window in [1, 1 << 20, 64 << 20] {
            let progress = Progress::default();
            let get = client.get("bucket", "key").window(window).progress(progress.clone());
            let parts = get.parts().await.unwrap();
            assert_eq!((parts.length(), parts.info().size), (size, size));
            assert!(gather(parts, 0).await.unwrap() == content, "{size} through {window}");
            assert_eq!((progress.bytes(), progress.expected(), progress.objects()), (size, size, 1));
        }
    }
    let content = bytes(3 * PART);
    client.put("bucket", "key").bytes(content.clone()).await.unwrap();
    let (end, middle) = (PART - 3, PART + 1);
    let parts = client.get("bucket", "key").suffix(2 * PART + 3).parts().await.unwrap();
    assert!(gather(parts, end).await.unwrap() == content[end as usize..]);
    let parts = client.get("bucket", "key").range(middle..2 * PART + 9).parts().await.unwrap();
    assert!(gather(parts, middle).await.unwrap() == content[middle as usize..2 * PART as usize + 9]);
    let missing = client.get("bucket", "none").parts().await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    nothing_held(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_cost_the_requests_of_a_whole_read_and_are_verified_like_one() {
    let (_origin, client) = start().await;
    client.put("bucket", "key").bytes(bytes(5 * PART)).await.unwrap();
    let before = client.metrics().requests;
    let mut parts = client.get("bucket", "key").parts().await.unwrap();
    let (mut pieces, mut received) = (0, 0);
    while let Some(part) = parts.next().await {
        pieces += 1;
        received += part.unwrap().body.len() as u64;
    }
    assert_eq!((client.metrics().requests - before, received), (5 + 1, 5 * PART), "five parts and a HEAD");
    assert!(pieces <= 5 * 10, "{pieces} pieces are too small to be worth a hand-over each");
    assert!(matches!(parts.info().verified, Verified::FullObject(_)), "{:?}", parts.info());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_that_drops_them_needs_little_memory() {
    let (_origin, client) = start().await;
    client.put("bucket", "key").bytes(bytes(8 * PART)).await.unwrap();
    let mut parts = client.get("bucket", "key").parts().await.unwrap();
    while let Some(part) = parts.next().await {
        drop(part.unwrap());
        let held = client.metrics().memory_in_use;
        assert!(held <= 16 << 20, "{held} bytes are held");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_that_stands_still_holds_its_window_and_nobody_up() {
    let (_origin, client) = start().await;
    client.put("bucket", "key").bytes(bytes(8 * PART)).await.unwrap();
    let window = 3 * PART;
    let mut standing = Vec::new();
    for _ in 0..6 {
        let mut parts = client.get("bucket", "key").window(window).parts().await.unwrap();
        parts.next().await.unwrap().unwrap();
        standing.push(parts);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let held = client.metrics().memory_in_use;
    assert!(held <= 6 * window, "{held} bytes are held");
    let other = tokio::time::timeout(Duration::from_secs(20), client.get("bucket", "key").buffer());
    assert!(other.await.expect("it waits for the consumers").unwrap().body == *bytes(8 * PART));
    for parts in standing {
        let rest: u64 = {
            let (mut parts, mut rest) = (parts, 0);
            while let Some(part) = parts.next().await {
                rest += part.unwrap().body.len() as u64;
            }
            rest
        };
        assert!((7 * PART..8 * PART).contains(&rest), "{rest}");
    }
    nothing_held(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_of_them_taken_in_turn_do_not_lock_each_other_and_dropped_ones_stop() {
    let (origin, _) = start().await;
    let client = Client::builder()
        .endpoint_url(origin.endpoint())
        .credentials(wirespeed::Credentials::new("id", "secret"))
        .part_size(PART)
        .memory(4 << 20)
        .build()
        .unwrap();
    client.put("bucket", "key").bytes(bytes(6 * PART)).await.unwrap();
    let mut one = client.get("bucket", "key").parts().await.unwrap();
    let mut two = client.get("bucket", "key").parts().await.unwrap();
    let both = async {
        loop {
            let (a, b) = (one.next().await, two.next().await);
            if a.is_none() && b.is_none() {
                break;
            }
            a.into_iter().chain(b).for_each(|part| drop(part.unwrap()));
        }
    };
    tokio::time::timeout(Duration::from_secs(30), both).await.expect("one locked the other");
    let before = client.metrics().requests;
    let mut dropped = client.get("bucket", "key").parts().await.unwrap();
    dropped.next().await.unwrap().unwrap();
    drop((one, two, dropped));
    nothing_held(&client).await;
    // What the other thread was sending meanwhile is counted when that has ended.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let requests = client.metrics().requests;
    assert!(requests - before < 6, "a dropped one asked for all: {} requests", requests - before);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(client.metrics().requests, requests, "a dropped one goes on asking");
}

#[tokio::test]
async fn a_body_that_breaks_goes_on_at_its_first_missing_byte() {
    const SIZE: usize = 300_000;
    let content = object(SIZE);
    let sent = content.clone();
    // Each range breaks once in its middle, at different bytes.
    let script = Script::start(move |asked| {
        let (head, body) = partial(asked, &sent, "\"tag\"");
        match body.len() > 20_000 {
            true => vec![Act::Send([head.as_bytes(), &body[..body.len() / 3]].concat()), Act::Close],
            false => vec![Act::Send([head.as_bytes(), body].concat())],
        }
    });
    let parts = script.client().get("bucket", "key").parts().await.unwrap();
    assert!(gather(parts, 0).await.unwrap() == content);
}

#[tokio::test]
async fn a_failure_is_said_once_and_ends_them() {
    let content = object(300_000);
    let script = Script::start(move |asked| match asked.index {
        0 => honest(asked, &content),
        _ => super::script::error(403, "AccessDenied"),
    });
    let mut parts = script.client().get("bucket", "key").parts().await.unwrap();
    let failed = loop {
        match parts.next().await {
            Some(Ok(part)) => assert_eq!((part.offset, part.body.len()), (0, 64 << 10)),
            Some(Err(error)) => break error,
            None => panic!("the failure was not said"),
        }
    };
    assert_eq!((failed.kind(), failed.key()), (ErrorKind::Denied, Some("key")));
    assert!(parts.next().await.is_none() && parts.try_next().is_none());
}

#[tokio::test]
async fn an_object_that_comes_whole_lands_within_the_window() {
    const SIZE: usize = (4 << 20) + 17;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\nETag: \"tag\"\r\n\r\n");
    let answer = [head.as_bytes(), &object(SIZE)].concat();
    let script = Script::start(move |_| vec![Act::Send(answer.clone())]);
    let client = script.builder().set("verify_checksums", "true").unwrap().build().unwrap();
    let mut parts = client.get("bucket", "key").window(128 << 10).parts().await.unwrap();
    let mut gathered = vec![0; SIZE];
    let mut taken = 0;
    while let Some(part) = parts.next().await {
        let part = part.unwrap();
        let held = client.metrics().memory_in_use;
        assert!(held <= 192 << 10, "{held} bytes are held");
        let from = part.offset as usize;
        gathered[from..from + part.body.len()].copy_from_slice(&part.body);
        taken += part.body.len();
        if taken % 3 == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    assert!(taken == SIZE && gathered == object(SIZE));
}

//! Servers that ask for fewer requests, and a limit in bytes a second.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // That is how a test fails.

use std::time::{Duration, Instant};

use wirespeed::{Client, ClientBuilder, Credentials, ErrorKind};
use wirespeed_origin::{Builder, Model, Origin, PrefixLimits, Running};

async fn start(origin: Builder) -> (Running, ClientBuilder) {
    let origin = origin.keys("id", "secret").bucket("bucket").start().await.unwrap();
    let client = Client::builder().endpoint_url(origin.endpoint()).credentials(Credentials::new("id", "secret"));
    (origin, client)
}

async fn fill(origin: &Running, count: u64) -> Vec<String> {
    let keys: Vec<_> = (0..count).map(|number| format!("a/{number}")).collect();
    for key in &keys {
        origin.put_object("bucket", key, key.clone()).await.unwrap();
    }
    keys
}

/// Reads every key; how many could not be.
async fn read(client: &Client, keys: Vec<String>) -> usize {
    let mut reading = client.get_many("bucket").discard(keys).unwrap();
    let mut failed = 0;
    while let Some((_, outcome)) = reading.next().await {
        if let Err(error) = outcome {
            assert_eq!(error.kind(), ErrorKind::Throttled, "{error}");
            failed += 1;
        }
    }
    failed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prefix_that_takes_few_requests_is_read_whole_with_few_in_vain() {
    const OBJECTS: u64 = 600;
    // Far fewer than a near server is asked for by 128 at once: at first nearly all are refused.
    let limits = PrefixLimits { reads: 200.0, writes: 1e6, burst_seconds: 0.1 };
    let (origin, client) = start(Origin::builder().model(Model::default().prefix(limits))).await;
    let keys = fill(&origin, OBJECTS).await;
    let client = client.build().unwrap();
    assert_eq!(read(&client, keys).await, 0);
    let stats = origin.stats();
    assert!(stats.throttled < OBJECTS / 2, "{} refusals for {OBJECTS} objects", stats.throttled);
    assert_eq!(stats.requests_total, OBJECTS + stats.throttled);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_that_refuses_everybody_at_once_fails_nobody() {
    let (origin, client) = start(Origin::builder()).await;
    let keys = fill(&origin, 300).await;
    // One round of all 128 and some of the next: what the quota of retries would not pay for one by one.
    origin.inject("action=status:503,verb=get,nth=1,times=150".parse().unwrap());
    let client = client.build().unwrap();
    assert_eq!(read(&client, keys).await, 0);
    assert_eq!(client.metrics().requests, 300 + 150);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_refuses_everything_is_given_up() {
    let (origin, client) = start(Origin::builder()).await;
    let keys = fill(&origin, 40).await;
    origin.inject("action=status:503,verb=get".parse().unwrap());
    let client = client.set("max_attempts", "2").unwrap().build().unwrap();
    assert_eq!(read(&client, keys).await, 40);
    assert!(client.metrics().requests <= 80);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_are_no_faster_than_the_limit_in_either_direction() {
    const RATE: u64 = 1 << 20;
    const SIZE: usize = 400_000;
    let (origin, client) = start(Origin::builder()).await;
    // Parts share the limit, and so do clones of the client.
    let client = client.bandwidth_limit(RATE).part_size(64 << 10).build().unwrap();
    let least = Duration::from_secs_f64(SIZE as f64 / RATE as f64) - Duration::from_millis(60);
    let began = Instant::now();
    client.put("bucket", "key").bytes(vec![7; SIZE]).await.unwrap();
    assert!(began.elapsed() >= least, "up in {:?}", began.elapsed());
    let began = Instant::now();
    let object = client.get("bucket", "key").buffer().await.unwrap();
    assert!(began.elapsed() >= least, "down in {:?}", began.elapsed());
    assert!(object.body[..] == [7; SIZE]);
    let folder = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let first = folder.path().join("f");
    let both = tokio::join!(
        client.clone().get("bucket", "key").file(&first),
        client.put("bucket", "other").bytes(vec![8; SIZE]),
    );
    both.0.unwrap();
    both.1.unwrap();
    assert!(began.elapsed() >= 2 * least, "both in {:?}", began.elapsed());
    assert_eq!(client.metrics().retries, 0);
    drop(origin);
}

//! Synthetic buckets.

use std::time::Instant;

use wirespeed_origin::{Origin, PERIOD, Running, Series, synthetic_bytes};

use super::client::{get, put, send};

async fn server() -> Running {
    Origin::builder()
        .anonymous(true)
        .synthetic("bucket", Series::numbered("data/", 10_000_000, 65_536))
        .synthetic("bucket", Series::one("one.bin", 30 << 30).seed(7))
        .start()
        .await
        .unwrap()
}

#[tokio::test]
async fn bytes_are_the_formulas() {
    // The first bytes of the object "one.bin" of seed 0, by a Python program that has only the formula.
    assert_eq!(synthetic_bytes(0, "one.bin", 0, 8), [230, 211, 196, 26, 108, 129, 132, 146]);
    let server = server().await;
    let ranges = [("data/00000000", 0, 0_u64, 65_536_usize), ("data/09999999", 0, 1000, 64_000)];
    let far = [("one.bin", 7, (29 << 30) + 777, 5 << 20), ("one.bin", 7, PERIOD - 3, 7)];
    for (key, seed, offset, length) in ranges.into_iter().chain(far) {
        let range = format!("bytes={offset}-{}", offset + length as u64 - 1);
        let answer = get(&server, &format!("/bucket/{key}"), &[("range", &range)]).await;
        assert_eq!(answer.status, 206);
        assert!(answer.body == synthetic_bytes(seed, key, offset, length), "{key} {range}");
    }
    let head = send(&server, "HEAD", "/bucket/one.bin", &[], b"").await;
    assert_eq!(head.header("content-length"), Some("32212254720"));
    assert_eq!(head.header("etag"), send(&server, "HEAD", "/bucket/one.bin", &[], b"").await.header("etag"));
}

#[tokio::test]
async fn a_misplaced_range_or_another_object_has_other_bytes() {
    let at = |key: &str, offset| synthetic_bytes(0, key, offset, 4096);
    for part in 1..64 {
        assert_ne!(at("key", 0), at("key", part * (8 << 20)));
        assert_ne!(at("key", 0), at(&format!("key{part}"), 0));
    }
}

#[tokio::test]
async fn ten_million_keys_are_listed_from_anywhere() {
    let server = server().await;
    let started = Instant::now();
    let answer = get(&server, "/bucket?list-type=2&start-after=data/05000000&max-keys=2", &[]).await;
    assert_eq!(answer.all("Key"), ["data/05000001", "data/05000002"]);
    let answer = get(&server, "/bucket?list-type=2&start-after=data/09999998", &[]).await;
    assert_eq!(answer.all("Key"), ["data/09999999", "one.bin"]);
    let answer = get(&server, "/bucket?list-type=2&delimiter=/", &[]).await;
    assert_eq!(answer.all("Key"), ["one.bin"]);
    assert!(answer.text().contains("<CommonPrefixes><Prefix>data/</Prefix></CommonPrefixes>"));
    let answer = get(&server, "/bucket?list-type=2&prefix=data/0123456", &[]).await;
    assert_eq!(answer.all("Key").len(), 10);
    assert!(started.elapsed().as_secs() < 5, "a listing looks at more than its page");
}

#[tokio::test]
async fn nothing_else_is_there_and_nothing_can_be_put() {
    let server = server().await;
    for key in ["data/10000000", "data/1", "data/0000000x", "two.bin"] {
        assert_eq!(get(&server, &format!("/bucket/{key}"), &[]).await.code(), "NoSuchKey", "{key}");
    }
    assert_eq!(put(&server, "/bucket/key", b"x").await.code(), "AccessDenied");
    assert_eq!(send(&server, "DELETE", "/bucket/one.bin", &[], b"").await.code(), "AccessDenied");
}

//! A server that is claimed to be slow, and is as slow as claimed.

use std::time::{Duration, Instant};

use wirespeed_origin::{FirstByte, Model, Nic, Origin, PrefixLimits, Rate, Running, Series, Tls, Verb};

use super::client::{get, put, send};

const MB: f64 = 1e6;

async fn server(model: Model) -> Running {
    let builder = Origin::builder().anonymous(true).bucket("bucket").discarding_bucket("sink");
    builder.synthetic("data", Series::one("one.bin", 1 << 30)).model(model).start().await.unwrap()
}

async fn read(server: &Running, bytes: usize) {
    let answer = get(server, "/data/one.bin", &[("range", &format!("bytes=0-{}", bytes - 1))]).await;
    assert_eq!(answer.body.len(), bytes);
}

/// Checks that this takes so many seconds: never less, and on the best of a few tries, the machine being busy, not much
/// more.
async fn takes(seconds: f64, mut what: impl AsyncFnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let started = Instant::now();
        what().await;
        let took = started.elapsed().as_secs_f64();
        assert!(took > seconds * 0.95, "{took} s instead of {seconds} s");
        best = best.min(took);
        if best < seconds * 1.1 {
            return;
        }
    }
    assert!(best < seconds * 2.0 + 0.2, "{best} s instead of {seconds} s, at best");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_sends_at_its_rate_and_two_at_twice_that() {
    let server = server(Model::new().connection_down(40.0 * MB)).await;
    takes(0.2, async || read(&server, 8_000_000).await).await;
    let two = async || {
        tokio::join!(read(&server, 8_000_000), read(&server, 8_000_000));
    };
    takes(0.2, two).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_takes_at_its_rate() {
    let server = server(Model::new().connection_up(40.0 * MB)).await;
    let bytes = vec![1; 8_000_000];
    takes(0.2, async || assert_eq!(put(&server, "/sink/key", &bytes).await.status, 200)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_connections_share_the_interface() {
    let nic = Nic { baseline: 40.0 * MB, burst: 40.0 * MB, credit: 0.0 };
    let server = server(Model::new().nic(nic)).await;
    let quarter = async || read(&server, 2_000_000).await;
    let all = async || {
        tokio::join!(quarter(), quarter(), quarter(), quarter());
    };
    takes(0.2, all).await;
    let bytes = vec![1; 4_000_000];
    let half = async |path: &str| assert_eq!(put(&server, path, &bytes).await.status, 200);
    let both = async || {
        tokio::join!(half("/sink/a"), half("/sink/b"));
    };
    takes(0.2, both).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credit_is_spent_on_a_burst_and_then_the_baseline_is_left() {
    let nic = Nic { baseline: 20.0 * MB, burst: 80.0 * MB, credit: 6.0 * MB };
    // 8 MB at the burst rate are 6 MB beyond the baseline: 0.1 s; the other 4 MB take 0.2 s.
    let both = async || {
        let server = server(Model::new().nic(nic)).await;
        read(&server, 8_000_000).await;
        read(&server, 4_000_000).await;
    };
    takes(0.3, both).await;
    // Filled up before each, a read of 8 MB is at the burst rate every time.
    let server = server(Model::new().nic(nic)).await;
    let filled = async || {
        assert_eq!(send(&server, "POST", "/-/refill", &[], b"").await.status, 200);
        read(&server, 8_000_000).await;
    };
    takes(0.1, filled).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_byte_takes_its_time_on_every_verb() {
    let wait = Duration::from_millis(50);
    let server = server(Model::new().first_byte(FirstByte::Constant(wait))).await;
    takes(0.05, async || read(&server, 1000).await).await;
    takes(0.05, async || drop(put(&server, "/bucket/key", b"x").await)).await;
    takes(0.05, async || drop(get(&server, "/bucket", &[]).await)).await;
}

#[tokio::test]
async fn a_prefix_with_too_many_requests_is_told_to_slow_down() {
    let limits = PrefixLimits { reads: 20.0, writes: 10.0, burst_seconds: 0.5 };
    let server = server(Model::new().prefix(limits)).await;
    let mut statuses = Vec::new();
    for _ in 0..30 {
        let answer = get(&server, "/bucket/one/key", &[]).await;
        if answer.status == 503 {
            assert_eq!(answer.code(), "SlowDown");
        }
        statuses.push(answer.status);
    }
    let refused = statuses.iter().filter(|status| **status == 503).count();
    assert!((5..=19).contains(&refused), "{statuses:?}");
    assert_eq!(server.stats().throttled, refused as u64);
    assert_eq!(get(&server, "/bucket/two/key", &[]).await.status, 404, "another prefix has room");
    assert_eq!(put(&server, "/bucket/one/key", b"x").await.status, 200, "and so have writes");
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(get(&server, "/bucket/one/key", &[]).await.status, 200, "room comes back");
    assert_eq!(server.stats().count(Verb::Get), 32);
}

#[tokio::test]
async fn a_rate_holds_under_tls_too() {
    let builder = Origin::builder().anonymous(true).synthetic("data", Series::one("one.bin", 4_000_000));
    let server = builder.tls(Tls::generated()).model(Model::new().connection_down(20.0 * MB)).start().await.unwrap();
    let config = super::tls::trusting(server.ca_pem().unwrap());
    let read = async || {
        let answer = super::tls::read(&server, &config, "localhost", "/data/one.bin").await.unwrap();
        assert_eq!(answer.body.len(), 4_000_000);
    };
    takes(0.2, read).await;
}

#[test]
fn a_model_is_read_from_toml() {
    let text = r#"
        seed = 7
        [first_byte]
        p50_ms = 27
        p95_ms = 75
        [connection]
        down = "90 MB/s"
        up = 70000000
        [nic]
        baseline = "10 Gbit/s"
        burst = "25Gbit/s"
        credit = "64 GiB"
        [prefix]
        reads = 100
    "#;
    let millis = Duration::from_millis;
    let nic = Nic { baseline: 1.25e9, burst: 3.125e9, credit: 64.0 * 1024.0 * 1024.0 * 1024.0 };
    let model = Model::new()
        .seed(7)
        .first_byte(FirstByte::LogNormal { p50: millis(27), p95: millis(75) })
        .connection_down(90.0 * MB)
        .connection_up(70.0 * MB)
        .nic(nic)
        .prefix(PrefixLimits { reads: 100.0, ..PrefixLimits::default() });
    assert_eq!(text.parse::<Model>().unwrap(), model);
    assert_eq!("27ms..75ms".parse::<FirstByte>().unwrap(), FirstByte::LogNormal { p50: millis(27), p95: millis(75) });
    assert_eq!("30ms".parse::<FirstByte>().unwrap(), FirstByte::Constant(millis(30)));
    for wrong in [
        "[first_byte]",
        "[first_byte]\nconstant_ms = -1",
        "[first_byte]\np50_ms = 30\np95_ms = 20",
        "[first_byte]\npercentiles = [[50, 10], [40, 20]]",
        "[connection]\ndown = \"fast\"",
        "[connection]\ndown = 0",
        "[prefix]\nreads = 0",
        "[nic]\nburst = 1",
        "speed = 1",
    ] {
        assert!(wrong.parse::<Model>().is_err(), "{wrong}");
    }
    for wrong in ["", "-1MB", "1 XB", "infGB"] {
        assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
    }
}

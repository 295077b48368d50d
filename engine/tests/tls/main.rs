//! TLS: against the embedded server, and against one that speaks it record by record as a test says.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // That is how a test fails.

mod proxy;
mod records;

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proxy::Proxy;
use records::{Say, Server};
use tempfile::TempDir;
use wirespeed::{Client, ClientBuilder, Credentials, ErrorKind};
use wirespeed_origin::{Action, Fault, Origin, Running, Tls, TlsFault, TlsVersions, Verb};

const PART: u64 = 5 << 20;

struct Site {
    origin: Running,
    folder: TempDir,
}

impl Site {
    async fn start(tls: Tls) -> Site {
        let origin = Origin::builder().keys("id", "secret").bucket("bucket").tls(tls).start().await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), origin.ca_pem().unwrap()).unwrap();
        Site { origin, folder }
    }

    fn client(&self) -> ClientBuilder {
        Client::builder()
            .endpoint_url(self.origin.endpoint())
            .credentials(Credentials::new("id", "secret"))
            .ca_bundle(self.folder.path().join("ca.pem"))
            .part_size(PART)
            .concurrency(4)
    }
}

fn bytes(size: u64) -> Vec<u8> {
    (0..size).map(|i| (i ^ (i >> 8) ^ (i >> 16).wrapping_mul(31)) as u8).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_size_survives_every_way_up_and_down() {
    for versions in [TlsVersions::Tls13, TlsVersions::Tls12] {
        let site = Site::start(Tls::generated().versions(versions)).await;
        let client = site.client().build().unwrap();
        let source = site.folder.path().join("source");
        for size in [0, 1, 16_384, 16_385, PART - 1, PART, PART + 1, 4 * PART + 12_345] {
            let content = bytes(size);
            std::fs::write(&source, &content).unwrap();
            client.put("bucket", "memory").bytes(content.clone()).await.unwrap();
            client.put("bucket", "file").file(&source).await.unwrap();
            for key in ["memory", "file"] {
                let object = client.get("bucket", key).buffer().await.unwrap();
                assert!(object.body == *content, "{key} of {size} differs ({versions:?})");
                let (mine, length, _) = client.get("bucket", key).into_owned(vec![7; size as usize + 3]).await.unwrap();
                assert_eq!(length, size);
                assert!(mine[..size as usize] == content && mine[size as usize..] == [7; 3]);
                let target = site.folder.path().join("target");
                client.get("bucket", key).file(&target).await.unwrap();
                assert!(std::fs::read(&target).unwrap() == content);
                let mut written = Vec::new();
                client.get("bucket", key).writer(&mut written).await.unwrap();
                assert!(written == content, "the ordered stream of {size} differs");
            }
        }
        assert_eq!(client.metrics().memory_in_use, 0);
        assert_eq!(client.metrics().retries, 0);
        site.origin.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_objects_go_over_few_connections() {
    let site = Site::start(Tls::generated()).await;
    let client = site.client().build().unwrap();
    let content = bytes(70_000);
    let keys: Vec<String> = (0..100).map(|index| format!("key-{index}")).collect();
    for key in &keys {
        client.put("bucket", key).bytes(content.clone()).await.unwrap();
    }
    let mut objects = client.get_many("bucket").buffers(keys).unwrap();
    while let Some((_, object)) = objects.next().await {
        assert!(object.unwrap().body == *content);
    }
    drop(objects);
    let stats = site.origin.stats();
    assert!(stats.connections_accepted <= 5, "{} connections", stats.connections_accepted);
}

#[tokio::test]
async fn a_session_is_resumed_on_the_next_connection() {
    for versions in [TlsVersions::Tls13, TlsVersions::Tls12] {
        let site = Site::start(Tls::generated().versions(versions)).await;
        // One connection at a time: the HEAD for a checksum would need another.
        let client = site.client().concurrency(1).set("verify_checksums", "false").unwrap().build().unwrap();
        client.put("bucket", "key").bytes("content").await.unwrap();
        for _ in 0..4 {
            site.origin.inject(Fault::new(Action::Close).verb(Verb::Get).times(1));
            let object = client.get("bucket", "key").buffer().await.unwrap();
            assert_eq!(&*object.body, b"content");
        }
        let stats = site.origin.stats();
        assert_eq!((stats.tls_handshakes_full, stats.tls_handshakes_resumed), (1, 4), "{versions:?}");
    }
}

#[tokio::test]
async fn a_certificate_that_proves_nothing_is_refused_at_once() {
    let expected = [
        (TlsFault::WrongName, "it is for another name", "check the endpoint URL"),
        (TlsFault::Expired, "it has expired", "clock"),
        (TlsFault::SelfSigned, "it is self-signed, or signed by", "AWS_CA_BUNDLE"),
    ];
    for (fault, meaning, advice) in expected {
        let site = Site::start(Tls::generated().fault(fault)).await;
        let error = site.client().build().unwrap().get("bucket", "key").buffer().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connection);
        assert!(error.attempts() <= 1, "a certificate does not get better by asking again");
        let shown = error.to_string();
        assert!(shown.contains(meaning) && shown.contains(advice), "{fault:?}: {shown}");

        let unverified = site.client().verify_tls(false).build().unwrap();
        unverified.put("bucket", "key").bytes("content").await.unwrap();
    }
}

#[tokio::test]
async fn without_the_authority_nobody_is_trusted() {
    let site = Site::start(Tls::generated()).await;
    let other = Site::start(Tls::generated()).await;
    let stranger = site.client().ca_bundle(other.folder.path().join("ca.pem")).build().unwrap();
    let shown = stranger.head("bucket", "key").await.unwrap_err().to_string();
    assert!(shown.contains("an authority that is not trusted") && shown.contains("AWS_CA_BUNDLE"), "{shown}");

    for (content, why) in [(None, "cannot be read"), (Some("nothing"), "holds no certificate")] {
        let path = site.folder.path().join("other.pem");
        let _ = std::fs::remove_file(&path);
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        let error = site.client().ca_bundle(&path).build().unwrap().head("bucket", "key").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains(why) && error.to_string().contains("other.pem"), "{error}");
    }
}

#[tokio::test]
async fn plain_http_and_tls_do_not_mistake_each_other_for_long() {
    let plain = Origin::builder().keys("id", "secret").bucket("bucket").start().await.unwrap();
    let secure = Site::start(Tls::generated()).await;
    let as_https = plain.endpoint().replace("http://", "https://");
    let error = secure.client().endpoint_url(as_https).build().unwrap().head("bucket", "key").await.unwrap_err();
    assert!(error.to_string().contains("http://"), "{error}");
    let as_http = secure.origin.endpoint().replace("https://", "http://");
    let error = secure.client().endpoint_url(as_http).build().unwrap().head("bucket", "key").await.unwrap_err();
    assert_ne!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[tokio::test]
async fn a_server_that_never_shakes_hands_is_given_up() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("https://{}", listener.local_addr().unwrap());
    let client = Client::builder()
        .endpoint_url(endpoint)
        .credentials(Credentials::new("id", "secret"))
        .verify_tls(false)
        .set("connect_timeout", "200ms")
        .and_then(|builder| builder.set("max_attempts", "2"))
        .unwrap()
        .build()
        .unwrap();
    let started = Instant::now();
    let error = client.head("bucket", "key").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.to_string().contains("TLS handshake"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn a_refusal_is_read_even_when_it_comes_before_the_body_has_gone() {
    let site = Site::start(Tls::generated()).await;
    let client = site.client().build().unwrap();
    let error = client.put("no-such-bucket", "key").bytes(bytes(12 << 20)).await.unwrap_err();
    assert_eq!(error.code(), Some("NoSuchBucket"), "{error}");
}

fn head(length: usize, more: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: {length}\r\n{more}\r\n").into_bytes()
}

#[test]
fn new_keys_and_tickets_may_come_between_any_two_records() {
    let config = ProptestConfig { cases: 24, ..ProptestConfig::default() };
    let says = proptest::collection::vec(
        prop_oneof![
            4 => (1..200_000usize).prop_map(Say::Content),
            2 => Just(Say::NewKeys),
            1 => Just(Say::Pause),
        ],
        1..12,
    );
    proptest!(config, |(says in says, fragment in 64..16_384usize, tls12 in any::<bool>())| {
        let says: Vec<Say> = says.into_iter().filter(|say| !(tls12 && matches!(say, Say::NewKeys))).collect();
        let length = says.iter().map(|say| if let Say::Content(count) = say { *count } else { 0 }).sum();
        prop_assume!(length > 0);
        let content = bytes(length as u64);
        let server = Server::start(tls12, fragment, head(length, ""), content.clone(), says);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let object = runtime.block_on(async {
            let client = server.client();
            let object = client.get("bucket", "key").buffer().await.unwrap();
            // The keys of the way up were asked to change as well: the next request uses them.
            client.get("bucket", "key").buffer().await.unwrap();
            object
        });
        prop_assert!(object.body == *content);
    });
}

#[test]
fn a_connection_cut_without_a_farewell_is_not_the_end_of_a_document() {
    let listing = b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>".to_vec();
    let open_ended = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
    for (last, whole) in [(Say::Farewell, true), (Say::Cut, false)] {
        let says = vec![Say::Content(listing.len()), last];
        let server = Server::start(false, 16_384, open_ended.clone(), listing.clone(), says);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let page = runtime.block_on(async { server.client().list("bucket").pages().next().await.unwrap() });
        assert_eq!(page.is_ok(), whole, "{page:?}");
        if let Err(error) = page {
            assert!(error.to_string().contains("close_notify"), "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_is_gone_through_and_sees_no_request() {
    let site = Site::start(Tls::generated()).await;
    let proxy = Proxy::start("HTTP/1.1 200 Connection established\r\n\r\n");
    let client = |url: &str, exceptions: &str| {
        let builder = site.client().set("https_proxy", url).unwrap();
        builder.set("no_proxy", exceptions).unwrap().build().unwrap()
    };
    let through = client(&proxy.url.replace("http://", "http://user:hidden@"), "");
    let content = bytes(3 * PART);
    through.put("bucket", "key").bytes(content.clone()).await.unwrap();
    assert!(through.get("bucket", "key").buffer().await.unwrap().body == *content);
    let asked = proxy.asked();
    let address = site.origin.address();
    assert!(!asked.is_empty());
    for head in &asked {
        assert!(head.starts_with(&format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n")), "{head}");
        // user:hidden in base64.
        assert!(head.contains("Proxy-Authorization: Basic dXNlcjpoaWRkZW4=\r\n"), "{head}");
    }
    assert!(!format!("{:?} {:?}", through, through.config().entries().collect::<Vec<_>>()).contains("hidden"));

    client(&proxy.url, "localhost,127.0.0.0/8").head("bucket", "key").await.unwrap();
    assert_eq!(proxy.asked().len(), asked.len(), "an exception went through the proxy");
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_with_its_reason() {
    let site = Site::start(Tls::generated()).await;
    let refusals = [
        ("HTTP/1.1 403 Forbidden\r\n\r\n", "it refused the tunnel (HTTP 403)"),
        ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "user name and password"),
        ("220 mail.example.com ESMTP\r\n", "its answer is not HTTP"),
    ];
    for (answer, meaning) in refusals {
        let proxy = Proxy::start(answer);
        let client = site.client().set("https_proxy", &proxy.url).unwrap().build().unwrap();
        let error = client.head("bucket", "key").await.unwrap_err();
        let shown = error.to_string();
        assert!(shown.contains(meaning) && shown.contains("NO_PROXY") && shown.contains(&proxy.url[7..]), "{shown}");
        assert_eq!(proxy.asked().len(), 1, "a refusal is not asked for again");
    }
    for url in [
        "https://user:hidden@proxy",
        "socks5://user:hidden@proxy",
        "http://user:hidden@",
        "http://us er@p",
        "http://user:hidden@proxy:99999",
        "proxy:x",
        "[::1]:99999",
    ] {
        let error = Client::builder().set("https_proxy", url).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(!format!("{error} {error:?}").contains("hidden"), "{error}");
    }
}

#[tokio::test]
async fn a_proxy_that_fails_for_a_moment_is_asked_again() {
    let site = Site::start(Tls::generated()).await;
    let failures = [("HTTP/1.1 503 Service Unavailable\r\n\r\n", "HTTP 503"), ("", "instead of answering")];
    for (answer, meaning) in failures {
        let proxy = Proxy::start(answer);
        let client = site.client().set("https_proxy", &proxy.url).unwrap().set("max_attempts", "2").unwrap();
        let shown = client.build().unwrap().head("bucket", "key").await.unwrap_err().to_string();
        assert!(shown.contains(meaning) && shown.contains("NO_PROXY"), "{shown}");
        assert_eq!(proxy.asked().len(), 2, "{answer}");
    }
    for url in ["proxy", "proxy:3128", "http://user:word@proxy", "http://user:word@proxy:3128", "http://[::1]:3128"] {
        Client::builder().set("https_proxy", url).unwrap();
    }
}

#[test]
fn a_server_that_is_not_trusted_is_told_why() {
    let (said, heard) = std::sync::mpsc::channel();
    let (endpoint, server) = records::refused();
    std::thread::spawn(move || said.send(server()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = Client::builder().endpoint_url(endpoint).credentials(Credentials::new("id", "secret"));
    let folder = tempfile::tempdir().unwrap();
    let other = rcgen::generate_simple_self_signed(vec!["other".to_owned()]).unwrap();
    std::fs::write(folder.path().join("ca.pem"), other.cert.pem()).unwrap();
    let client = client.ca_bundle(folder.path().join("ca.pem")).build().unwrap();
    runtime.block_on(client.head("bucket", "key").into_future()).unwrap_err();
    let heard = heard.recv_timeout(Duration::from_secs(5)).unwrap();
    assert!(heard.contains("AlertReceived"), "{heard}");
}

#[test]
fn demands_for_new_keys_without_end_leave_the_connection_usable() {
    let content = bytes(70_000);
    let mut says = vec![Say::NewKeys; 300];
    says.push(Say::Content(content.len()));
    let server = Server::start(false, 4096, head(content.len(), ""), content.clone(), says);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = server.client();
        for _ in 0..3 {
            assert!(client.get("bucket", "key").verify(false).buffer().await.unwrap().body == *content);
        }
        assert_eq!(client.metrics().connections_opened, 1);
    });
}

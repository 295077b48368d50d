//! The binary and the control endpoints.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wirespeed_origin::{FirstByte, Model, Origin, Series, Verb};

use super::client::{get, put, send};

#[tokio::test]
async fn what_was_done_is_counted() {
    let server = Origin::builder().anonymous(true).bucket("bucket").start().await.unwrap();
    put(&server, "/bucket/key", &[0; 100_000]).await;
    get(&server, "/bucket/key", &[]).await;
    get(&server, "/bucket/nothing", &[]).await;
    get(&server, "/bucket?list-type=2", &[]).await;
    let stats = server.stats();
    assert_eq!((stats.count(Verb::Put), stats.count(Verb::Get), stats.count(Verb::List)), (1, 2, 1));
    assert_eq!((stats.requests_total, stats.client_errors, stats.connections_accepted), (4, 1, 4));
    assert!(stats.bytes_in > 100_000 && stats.bytes_out > 100_000, "{stats:?}");
    let shown: serde_json::Value = serde_json::from_slice(&get(&server, "/-/stats", &[]).await.body).unwrap();
    assert_eq!((&shown["requests"]["get"], &shown["requests_total"]), (&2.into(), &4.into()));
    assert_eq!(send(&server, "POST", "/-/reset", &[], b"").await.status, 200);
    assert_eq!(server.stats().requests_total, 0);
}

#[tokio::test]
async fn the_most_requests_in_flight_at_once_are_counted() {
    let wait = Duration::from_millis(200);
    let builder =
        Origin::builder().anonymous(true).bucket("bucket").model(Model::new().first_byte(FirstByte::Constant(wait)));
    let server = builder.start().await.unwrap();
    let ask = async || assert_eq!(get(&server, "/bucket/nothing", &[]).await.status, 404);
    tokio::join!(ask(), ask(), ask());
    let stats = server.stats();
    assert_eq!((stats.requests_in_flight, stats.requests_in_flight_peak), (0, 3), "{stats:?}");
    assert_eq!((stats.connections_open_peak, stats.connections_used), (3, 3), "{stats:?}");
    // The peaks begin anew, and the requests that ask for them are not among them.
    assert_eq!(send(&server, "POST", "/-/reset", &[], b"").await.status, 200);
    get(&server, "/-/stats", &[]).await;
    let stats = server.stats();
    assert_eq!((stats.requests_in_flight_peak, stats.connections_used), (0, 0), "{stats:?}");
    ask().await;
    let stats = server.stats();
    assert_eq!((stats.requests_in_flight_peak, stats.connections_used), (1, 1), "{stats:?}");
}

#[tokio::test]
async fn a_crowd_that_connects_at_once_is_let_in() {
    let server = Origin::builder().start().await.unwrap();
    // Nothing is accepted meanwhile: the server has this thread alone.
    let connect = |_| std::net::TcpStream::connect_timeout(&server.address(), Duration::from_millis(900));
    let crowd: Result<Vec<_>, _> = (0..300).map(connect).collect();
    assert_eq!(crowd.unwrap().len(), 300);
}

#[tokio::test]
async fn a_request_is_in_flight_until_its_answer_is_sent_or_given_up() {
    let model = Model::new().connection_down(1e6);
    let builder = Origin::builder().anonymous(true).synthetic("data", Series::one("one.bin", 1 << 40)).model(model);
    let server = builder.start().await.unwrap();
    let mut stream = tokio::net::TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(b"GET /data/one.bin HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    stream.read_exact(&mut [0; 100_000]).await.unwrap();
    assert_eq!(server.stats().requests_in_flight, 1);
    server.reset_stats();
    assert_eq!(server.stats().requests_in_flight_peak, 1);
    drop(stream);
    while server.stats().requests_in_flight > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_test_looks_behind_the_protocol() {
    let server = Origin::builder().anonymous(true).bucket("bucket").start().await.unwrap();
    server.put_object("bucket", "key", "hello").await.unwrap();
    assert!(server.put_object("nowhere", "key", "hello").await.is_err());
    assert_eq!(get(&server, "/bucket/key", &[]).await.body, b"hello");
    put(&server, "/bucket/other", b"there").await;
    assert_eq!(server.object("bucket", "other").await.unwrap(), b"there");
    assert_eq!(server.object("bucket", "nothing").await, None);
    let begun = send(&server, "POST", "/bucket/large?uploads", &[], b"").await;
    assert_eq!(server.open_uploads("bucket"), [("large".to_owned(), begun.one("UploadId").unwrap())]);
    server.empty_bucket("bucket");
    assert_eq!((server.open_uploads("bucket").len(), server.object("bucket", "key").await), (0, None));
}

#[test]
fn the_binary_serves_and_stops() {
    let folder = tempfile::tempdir().unwrap();
    let port_file = folder.path().join("port");
    let mut child = Command::new(env!("CARGO_BIN_EXE_wirespeed-origin"))
        .args(["--anonymous", "--bucket", "bucket", "--threads", "1", "--synthetic", "syn=objects:10,size:1KiB"])
        .arg("--port-file")
        .arg(&port_file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port: u16 = std::fs::read_to_string(&port_file).unwrap().trim().parse().unwrap();
    assert_eq!(line, format!("wirespeed-origin listening on http://127.0.0.1:{port}\n"));
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    std::io::Write::write_all(&mut stream, b"GET /syn/00000009 HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut status = String::new();
    BufReader::new(stream).read_line(&mut status).unwrap();
    assert_eq!(status, "HTTP/1.1 200 OK\r\n");
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_binary_serves_tls_and_writes_what_to_trust() {
    let folder = tempfile::tempdir().unwrap();
    let ca_file = folder.path().join("ca.pem");
    let mut child = Command::new(env!("CARGO_BIN_EXE_wirespeed-origin"))
        .args(["--tls", "--tls-versions", "1.2", "--tls-ca-file"])
        .arg(&ca_file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.starts_with("wirespeed-origin listening on https://127.0.0.1:"), "{line}");
    assert!(std::fs::read_to_string(&ca_file).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
}

#[test]
fn nonsense_on_the_command_line_is_explained() {
    let cases: [(&[&str], &str); 11] = [
        (&["--synthetic", "syn=objects:10"], "it lacks size:SIZE"),
        (&["--synthetic", "syn=objects:10,size:1XB"], "is not a size"),
        (&["--synthetic", "syn=object:a,objects:3,size:1"], "one of object:KEY and objects:COUNT"),
        (&["--fault", "action=explode"], "no such action"),
        (&["--bucket", "UPPER"], "no bucket can be called"),
        (&["--listen", "nowhere"], "--listen"),
        (&["--tls", "--tls-fault", "rusty"], "wrong-name, expired, self-signed"),
        (&["--tls", "--tls-versions", "1.1"], "1.2, 1.3 and 1.2,1.3"),
        (&["--tls-ca-file", "x"], "--tls"),
        (&["--tls", "--tls-cert", "/nowhere/x", "--tls-key", "/nowhere/y"], "can't read /nowhere/x"),
        (&["--bucket", "same", "--discard", "same"], "two buckets are called same"),
    ];
    for (arguments, explanation) in cases {
        let output = Command::new(env!("CARGO_BIN_EXE_wirespeed-origin")).args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(explanation), "{arguments:?}: {text}");
    }
}

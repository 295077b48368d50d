//! A client of a few lines: one request a connection, everything read until the server closes.

use std::io;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wirespeed_origin::Running;

const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');
const QUERY: &AsciiSet = &PATH.add(b'/');

/// What came back before the connection ended.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The text of every element of that name, percent-decoded.
    pub(crate) fn all(&self, element: &str) -> Vec<String> {
        let (open, close) = (format!("<{element}>"), format!("</{element}>"));
        let mut found = Vec::new();
        let mut rest = self.text();
        while let Some((_, after)) = rest.split_once(&open) {
            let (text, after) = after.split_once(&close).unwrap();
            found.push(percent_decode_str(text).decode_utf8().unwrap().into_owned());
            rest = after;
        }
        found
    }

    pub(crate) fn one(&self, element: &str) -> Option<String> {
        self.all(element).into_iter().next()
    }

    /// The S3 error code.
    pub(crate) fn code(&self) -> String {
        self.one("Code").unwrap_or_else(|| panic!("no error code in {}: {}", self.status, self.text()))
    }
}

/// The path of a key.
pub(crate) fn path(bucket: &str, key: &str) -> String {
    format!("/{bucket}/{}", utf8_percent_encode(key, PATH))
}

/// A query string of these pairs.
pub(crate) fn query(pairs: &[(&str, &str)]) -> String {
    let pairs = pairs.iter().map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, QUERY)));
    format!("?{}", pairs.collect::<Vec<_>>().join("&"))
}

/// Sends one request; what came back, and how the connection ended.
pub(crate) async fn raw(
    server: &Running,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> (Vec<u8>, io::Result<()>) {
    let mut received = Vec::new();
    let ended = exchange(server, method, path, headers, body, &mut received).await;
    (received, ended)
}

async fn exchange(
    server: &Running,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
    received: &mut Vec<u8>,
) -> io::Result<()> {
    let mut stream = TcpStream::connect(server.address()).await?;
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", server.address());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() || matches!(method, "PUT" | "POST") {
        head.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await?;
    stream.read_to_end(received).await.map(drop)
}

/// Sends one request; an error where the connection ended before a head came.
pub(crate) async fn try_send(
    server: &Running,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<Answer> {
    let (received, ended) = raw(server, method, path, headers, body).await;
    ended?;
    let cut = received.windows(4).position(|window| window == b"\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let head = std::str::from_utf8(&received[..cut]).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.map(|line| line.split_once(": ").unwrap()).map(|(n, v)| (n.to_lowercase(), v.to_owned()));
    Ok(Answer { status, headers: headers.collect(), body: received[cut + 4..].to_vec() })
}

/// Sends one request that must be answered.
pub(crate) async fn send(server: &Running, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    try_send(server, method, path, headers, body).await.unwrap()
}

pub(crate) async fn get(server: &Running, path: &str, headers: &[(&str, &str)]) -> Answer {
    send(server, "GET", path, headers, b"").await
}

pub(crate) async fn put(server: &Running, path: &str, body: &[u8]) -> Answer {
    send(server, "PUT", path, &[], body).await
}

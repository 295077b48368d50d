//! Raw paging and one pass of a pull parser: the least that a listing can cost when its pages are read by
//! quick-xml and key, size and ETag of every object are copied out. One blocking socket, one page after
//! another, unsigned.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result, bail};
use clap::Parser;
use protocol::{Moved, Steps};
use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::Event;
use serde_json::json;

/// A listing, page by page.
#[derive(Parser, Debug)]
struct Options {
    /// Server, as `http://HOST:PORT`
    #[arg(long)]
    endpoint: String,
    /// Bucket to list
    #[arg(long)]
    bucket: String,
    /// Only keys that begin with this
    #[arg(long, default_value = "")]
    keys_prefix: String,
    /// Rounds in this process
    #[arg(long, default_value_t = 1)]
    rounds: u32,
    /// Print `ready`, then run one round for each `go` on standard input
    #[arg(long)]
    step: bool,
}

/// What a page says of one object.
#[derive(Default)]
struct Entry {
    key: String,
    size: u64,
    etag: String,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let address = options.endpoint.strip_prefix("http://").context("the endpoint must be http://HOST:PORT")?;
    let mut server = TcpStream::connect(address).with_context(|| format!("connect to {address}"))?;
    server.set_nodelay(true)?;
    let (mut body, mut entries) = (Vec::new(), Vec::new());
    let head = json!({ "operation": "list", "config": { "client": "raw paging + quick-xml" } });
    Steps { step: options.step, rounds: options.rounds }.run(head, || {
        let mut moved = Moved { bytes: 0, objects: 0, requests: 0, reconnects: 0 };
        let mut token = None;
        loop {
            ask(&mut server, address, &options, token.as_deref(), &mut body)?;
            token = read_page(&body, &mut entries)?;
            moved.requests += 1;
            moved.objects += std::hint::black_box(&entries).len() as u64;
            if token.is_none() {
                return Ok(moved);
            }
        }
    })
}

/// Asks for one page and leaves its XML in `body`.
fn ask(server: &mut TcpStream, host: &str, options: &Options, token: Option<&str>, body: &mut Vec<u8>) -> Result<()> {
    let Options { bucket, keys_prefix, .. } = options;
    let mut head = format!("GET /{bucket}?list-type=2&max-keys=1000&encoding-type=url&prefix={}", escaped(keys_prefix));
    if let Some(token) = token {
        head.push_str("&continuation-token=");
        head.push_str(&escaped(token));
    }
    head.push_str(&format!(" HTTP/1.1\r\nhost: {host}\r\n\r\n"));
    server.write_all(head.as_bytes())?;
    let mut buffer = vec![0; 256 << 10];
    let mut filled = 0;
    let (head_length, length) = loop {
        let read = server.read(&mut buffer[filled..])?;
        if read == 0 {
            bail!("the server closed the connection within a head");
        }
        filled += read;
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut answer = httparse::Response::new(&mut headers);
        if let httparse::Status::Complete(head_length) = answer.parse(&buffer[..filled])? {
            if answer.code != Some(200) {
                bail!("the server answered {:?}", answer.code);
            }
            let length = answer.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
            let length: usize = std::str::from_utf8(length.context("no Content-Length")?.value)?.parse()?;
            break (head_length, length);
        }
    };
    body.clear();
    body.extend_from_slice(&buffer[head_length..filled]);
    let arrived = body.len();
    body.resize(length, 0);
    server.read_exact(&mut body[arrived..])?;
    Ok(())
}

/// Percent-encodes what is neither a letter, a digit nor one of `-._~`.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

/// Copies the entries out of a page. The token of the next, if there is one.
fn read_page(page: &[u8], entries: &mut Vec<Entry>) -> Result<Option<String>> {
    entries.clear();
    let mut reader = Reader::from_reader(page);
    let (mut token, mut inside, mut name) = (None, false, String::new());
    loop {
        match reader.read_event()? {
            Event::Start(start) => {
                name.clear();
                name.push_str(start.name().as_ref());
                if name == "Contents" {
                    inside = true;
                    entries.push(Entry::default());
                }
            }
            Event::Text(text) => match (entries.last_mut(), name.as_str()) {
                (Some(entry), "Key") if inside => entry.key.push_str(&text),
                (Some(entry), "Size") if inside => entry.size = text.parse()?,
                (Some(entry), "ETag") if inside => entry.etag.push_str(&text),
                (_, "NextContinuationToken") => token = Some(text.to_string()),
                _ => {}
            },
            // quick-xml hands out each reference by itself; those of ETags are quotation marks.
            Event::GeneralRef(reference) => {
                if let (Some(entry), "ETag") = (entries.last_mut(), name.as_str()) {
                    entry.etag.push_str(&unescape(&format!("&{};", &*reference))?);
                }
            }
            Event::End(end) => {
                inside &= end.name().as_ref() != "Contents";
                name.clear();
            }
            Event::Eof => return Ok(token),
            _ => {}
        }
    }
}

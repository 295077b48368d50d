//! A server that answers as a test tells it to: for what no honest one can be made to say.

#![allow(dead_code, reason = "each test file uses its own share of it")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A request: `PUT /bucket/key?query`, its headers, and its `Range` if it has one.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) line: String,
    /// The whole head, as it came.
    pub(crate) head: String,
    pub(crate) range: Option<(usize, usize)>,
}

impl Asked {
    /// The length of a `Range` that counts from the end.
    pub(crate) fn suffix(&self) -> Option<usize> {
        let head = self.head.to_ascii_lowercase();
        head.split_once("range: bytes=-")?.1.lines().next()?.trim().parse().ok()
    }
}

/// What is sent back: a status, further heads, a body; and how long to wait before the second half of the body.
pub(crate) struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
    pause: Duration,
    /// In chunks, and without a length.
    is_chunked: bool,
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Answer {
        // S3 names the entity tag of whatever it stores and sends.
        Answer {
            status,
            head: "etag: \"e\"\r\n".to_owned(),
            body: body.into(),
            pause: Duration::ZERO,
            is_chunked: false,
        }
    }

    /// An answer that names no entity tag.
    pub(crate) fn bare(status: u16, body: impl Into<Vec<u8>>) -> Answer {
        Answer { head: String::new(), ..Answer::new(status, body) }
    }

    /// The page of something that is not an S3 server.
    pub(crate) fn page() -> Answer {
        let body = b"<!DOCTYPE html><html><body>Sign in</body></html>".to_vec();
        Answer {
            status: 200,
            head: "content-type: text/html\r\n".to_owned(),
            body,
            pause: Duration::ZERO,
            is_chunked: false,
        }
    }

    /// A refusal with an error code.
    pub(crate) fn refusal(status: u16, code: &str) -> Answer {
        Answer::new(status, format!("<Error><Code>{code}</Code><Message>because of {code}</Message></Error>"))
    }

    /// The part of the object that was asked for.
    pub(crate) fn part(object: &[u8], asked: &Asked) -> Answer {
        let last = object.len() - 1;
        let (first, last) = asked.range.map_or((0, last), |(first, end)| (first, end.min(last)));
        let head = format!("etag: \"e\"\r\ncontent-range: bytes {first}-{last}/{}\r\n", object.len());
        Answer { head, ..Answer::new(206, &object[first..=last]) }
    }

    pub(crate) fn head(self, head: &str) -> Answer {
        Answer { head: head.to_owned(), ..self }
    }

    pub(crate) fn chunked(self) -> Answer {
        Answer { is_chunked: true, ..self }
    }

    pub(crate) fn pause(self, pause: Duration) -> Answer {
        Answer { pause, ..self }
    }
}

pub(crate) struct Server {
    pub(crate) endpoint: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// `None` leaves the request without an answer, and its connection open.
    pub(crate) fn start(answer: impl Fn(&Asked) -> Option<Answer> + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (Arc::clone(&asked), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                thread::spawn(move || serve(stream.unwrap(), &seen, &*answer));
            }
        });
        Server { endpoint, asked }
    }

    /// The requests so far, in the order in which they came.
    pub(crate) fn lines(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.iter().map(|asked| asked.line.clone()).collect()
    }

    /// The head of the first request that begins so.
    pub(crate) fn head(&self, beginning: &str) -> String {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.iter().find(|asked| asked.line.starts_with(beginning)).unwrap().head.clone()
    }

    /// How many requests begin so.
    pub(crate) fn count(&self, beginning: &str) -> usize {
        self.lines().iter().filter(|line| line.starts_with(beginning)).count()
    }

    /// Waits for the first request that begins so.
    pub(crate) fn wait_for(&self, beginning: &str) {
        let started = Instant::now();
        while self.count(beginning) == 0 {
            assert!(started.elapsed() < Duration::from_secs(20), "no {beginning} in {:?}", self.lines());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<Asked>>, answer: &(dyn Fn(&Asked) -> Option<Answer> + Send + Sync)) {
    let mut input = Vec::new();
    while let Some(asked) = read(&mut stream, &mut input) {
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(asked.clone());
        let Some(answer) = answer(&asked) else {
            // Until the client leaves.
            while stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
            return;
        };
        if write(&mut stream, &answer, asked.line.starts_with("HEAD ")).is_err() {
            return;
        }
    }
}

/// The next request, with its body left out.
fn read(stream: &mut TcpStream, input: &mut Vec<u8>) -> Option<Asked> {
    let end = loop {
        if let Some(end) = input.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        more(stream, input)?;
    };
    let head = String::from_utf8(input[..end].to_vec()).unwrap();
    let header = |name: &str| {
        head.lines().find_map(|line| {
            line.split_once(':').filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
        })
    };
    let length: usize = header("content-length").map_or(0, |length| length.parse().unwrap());
    while input.len() < end + length {
        more(stream, input)?;
    }
    input.drain(..end + length);
    let range = header("range").and_then(|range| {
        let (first, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        Some((first.parse().ok()?, last.parse().unwrap()))
    });
    let line = head.split(" HTTP/").next().unwrap().to_owned();
    Some(Asked { line, head: head.clone(), range })
}

fn more(stream: &mut TcpStream, input: &mut Vec<u8>) -> Option<()> {
    let mut bytes = [0; 64 << 10];
    let count = stream.read(&mut bytes).ok().filter(|count| *count > 0)?;
    input.extend_from_slice(&bytes[..count]);
    Some(())
}

fn write(stream: &mut TcpStream, answer: &Answer, head_only: bool) -> std::io::Result<()> {
    let length = match answer.is_chunked {
        true => "transfer-encoding: chunked".to_owned(),
        false => format!("content-length: {}", answer.body.len()),
    };
    let head = format!("HTTP/1.1 {} Said\r\n{length}\r\n{}\r\n", answer.status, answer.head);
    stream.write_all(head.as_bytes())?;
    if head_only {
        return Ok(());
    }
    if answer.is_chunked {
        for chunk in answer.body.chunks(50_000) {
            write!(stream, "{:x}\r\n", chunk.len())?;
            stream.write_all(chunk)?;
            stream.write_all(b"\r\n")?;
        }
        return stream.write_all(b"0\r\n\r\n");
    }
    let (first, second) = answer.body.split_at(answer.body.len() / 2);
    stream.write_all(first)?;
    thread::sleep(answer.pause);
    stream.write_all(second)
}

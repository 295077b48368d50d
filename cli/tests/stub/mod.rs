//! A small HTTP server for services around S3: metadata, tokens, credentials. It keeps what it was asked.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// One request as it came in.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// `GET /path?query`
    pub(crate) line: String,
    head: String,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.head.lines().filter_map(|line| line.split_once(':'));
        found.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next().unwrap_or("")
    }

    /// The access key that signed it.
    pub(crate) fn key(&self) -> &str {
        let credential = self.header("authorization").split_once("Credential=").map_or("", |(_, rest)| rest);
        credential.split('/').next().unwrap_or("")
    }
}

pub(crate) struct Stub {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Stub {
    /// Answers with a status and a body; `None` is silence.
    pub(crate) fn start(answer: impl Fn(&Asked) -> Option<(u16, String)> + Send + Sync + 'static) -> Stub {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (Arc::clone(&asked), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                thread::spawn(move || serve(stream.unwrap(), &seen, &*answer));
            }
        });
        Stub { url, asked }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }

    /// The access keys of the requests, in their order.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.asked().iter().map(|asked| asked.key().to_owned()).collect()
    }
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<Asked>>, answer: &dyn Fn(&Asked) -> Option<(u16, String)>) {
    let mut input = Vec::new();
    while let Some(asked) = read(&mut stream, &mut input) {
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(asked.clone());
        let Some((status, body)) = answer(&asked) else {
            // Keeps the connection open until the client gives up.
            let _ = stream.read(&mut [0; 1]);
            return;
        };
        let head = format!("HTTP/1.1 {status} Said\r\ncontent-length: {}\r\n", body.len());
        // The metadata service says how long its token lives.
        let life = if status == 200 { "x-aws-ec2-metadata-token-ttl-seconds: 21600\r\n" } else { "" };
        let head = format!("{head}{life}\r\n");
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).is_err() {
            return;
        }
    }
}

fn read(stream: &mut TcpStream, input: &mut Vec<u8>) -> Option<Asked> {
    let end = loop {
        if let Some(end) = input.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        more(stream, input)?;
    };
    let head = String::from_utf8(input[..end].to_vec()).ok()?;
    let line = head.split(" HTTP/").next()?.to_owned();
    let mut asked = Asked { line, head, body: String::new() };
    let length: usize = asked.header("content-length").parse().unwrap_or(0);
    while input.len() < end + length {
        more(stream, input)?;
    }
    asked.body = String::from_utf8_lossy(&input[end..end + length]).into_owned();
    input.drain(..end + length);
    Some(asked)
}

fn more(stream: &mut TcpStream, input: &mut Vec<u8>) -> Option<()> {
    let mut bytes = [0; 16 << 10];
    let count = stream.read(&mut bytes).ok().filter(|count| *count > 0)?;
    input.extend_from_slice(&bytes[..count]);
    Some(())
}

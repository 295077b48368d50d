//! A server that says exactly what a test tells it to, byte by byte: for the faults that no honest
//! server can be made to show. Everything else is tested against real ones.

#![allow(dead_code, unreachable_pub)] // Each test file uses its own share of it.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A script that fails is a test that fails.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One request as it came in.
#[derive(Debug, Clone)]
pub struct Asked {
    /// How many requests came before it, over all connections.
    pub index: usize,
    /// Which connection it came on, counted from 0.
    pub connection: usize,
    pub head: String,
    pub body: Vec<u8>,
}

impl Asked {
    pub fn method(&self) -> &str {
        self.head.split(' ').next().unwrap()
    }

    pub fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The first and last byte of a `Range: bytes=a-b`.
    pub fn range(&self) -> (usize, usize) {
        let range = self.header("range").expect("a range").strip_prefix("bytes=").unwrap();
        let (first, last) = range.split_once('-').unwrap();
        (first.parse().unwrap(), last.parse().unwrap())
    }
}

pub enum Act {
    Send(Vec<u8>),
    Wait(Duration),
    /// Closes in order.
    Close,
    /// Closes with a reset.
    Reset,
}

pub struct Script {
    pub endpoint: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    connections: Arc<AtomicUsize>,
}

impl Script {
    pub fn start(play: impl Fn(&Asked) -> Vec<Act> + Send + Sync + 'static) -> Script {
        Script::serve(true, play)
    }

    /// Answers each request by its head, and reads no byte of any body.
    pub fn start_impatient(play: impl Fn(&Asked) -> Vec<Act> + Send + Sync + 'static) -> Script {
        Script::serve(false, play)
    }

    fn serve(reads_bodies: bool, play: impl Fn(&Asked) -> Vec<Act> + Send + Sync + 'static) -> Script {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let play = Arc::new(play);
        {
            let (asked, connections) = (Arc::clone(&asked), Arc::clone(&connections));
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    let connection = connections.fetch_add(1, Ordering::SeqCst);
                    let (asked, play) = (Arc::clone(&asked), Arc::clone(&play));
                    std::thread::spawn(move || serve(stream.unwrap(), connection, reads_bodies, &asked, &*play));
                }
            });
        }
        Script { endpoint, asked, connections }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// A client with short timeouts and small parts.
    pub fn client(&self) -> wirespeed::Client {
        self.builder().build().unwrap()
    }

    pub fn builder(&self) -> wirespeed::ClientBuilder {
        let builder =
            wirespeed::Client::builder().endpoint_url(&self.endpoint).anonymous().concurrency(4).part_size(64 << 10);
        // Tests of verification turn it on: elsewhere its HEADs are requests that the scripts do not know.
        [
            ("stall_timeout", "400ms"),
            ("first_byte_timeout", "400ms"),
            ("max_attempts", "3"),
            ("verify_checksums", "false"),
        ]
        .into_iter()
        .fold(builder, |builder, (name, value)| builder.set(name, value).unwrap())
    }
}

fn serve(
    mut stream: TcpStream,
    connection: usize,
    reads_bodies: bool,
    asked: &Mutex<Vec<Asked>>,
    play: &(dyn Fn(&Asked) -> Vec<Act> + Send + Sync),
) {
    let mut input = Vec::new();
    let mut read = [0; 64 << 10];
    loop {
        let end = loop {
            if let Some(end) = input.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            match stream.read(&mut read) {
                Ok(0) | Err(_) => return,
                Ok(count) => input.extend_from_slice(&read[..count]),
            }
        };
        let head = String::from_utf8(input[..end].to_vec()).unwrap();
        let mut request = Asked { index: 0, connection, head, body: Vec::new() };
        let announced = request.header("content-length").filter(|_| reads_bodies);
        let length: usize = announced.map_or(0, |text| text.parse().unwrap());
        while input.len() < end + length {
            match stream.read(&mut read) {
                Ok(0) | Err(_) => return,
                Ok(count) => input.extend_from_slice(&read[..count]),
            }
        }
        request.body = input[end..end + length].to_vec();
        input.drain(..end + length);
        {
            let mut asked = asked.lock().unwrap();
            request.index = asked.len();
            asked.push(request.clone());
        }
        for act in play(&request) {
            match act {
                Act::Send(bytes) => {
                    if stream.write_all(&bytes).is_err() {
                        return;
                    }
                }
                Act::Wait(time) => std::thread::sleep(time),
                Act::Close => {
                    let _ = stream.shutdown(Shutdown::Both);
                    return;
                }
                Act::Reset => {
                    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
                    return;
                }
            }
        }
    }
}

/// The bytes of an object of `size`: no two ranges of it are alike.
pub fn object(size: usize) -> Vec<u8> {
    (0..size).map(|i| (i ^ (i >> 8) ^ (i >> 16).wrapping_mul(31)) as u8).collect()
}

/// The head of a 206 for `asked`, cut at the object's end; and the range's bytes.
pub fn partial<'a>(asked: &Asked, object: &'a [u8], etag: &str) -> (String, &'a [u8]) {
    let (first, last) = asked.range();
    let last = last.min(object.len() - 1);
    let body = &object[first..=last];
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\nContent-Range: bytes {first}-{last}/{}\r\n\
         ETag: {etag}\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n\r\n",
        body.len(),
        object.len(),
    );
    (head, body)
}

/// A whole, honest answer to a ranged read.
pub fn honest(asked: &Asked, object: &[u8]) -> Vec<Act> {
    let (head, body) = partial(asked, object, "\"tag\"");
    vec![Act::Send([head.as_bytes(), body].concat())]
}

pub fn error(status: u16, code: &str) -> Vec<Act> {
    let body = format!("<Error><Code>{code}</Code><Message>said {code}</Message><RequestId>R</RequestId></Error>");
    vec![Act::Send(format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes())]
}

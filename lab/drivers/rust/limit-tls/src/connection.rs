//! One connection: a verified handshake, then one request at a time.
//!
//! Receiving: ciphertext comes into the scratch that all connections share, behind what this one kept of a
//! record's beginning. The content of a head's records goes to a side buffer, that of a body's to its place.
//! Only a record that would write past the end of a body goes to the side and is copied (once a body).

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use nix::sys::socket::{setsockopt, sockopt};
use nix::{setsockopt_impl, sockopt_impl};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use crate::Mode;
use crate::record::{ALERT, DATA, Direction, FULL, HANDSHAKE, OVERHEAD, first_record, inner_len};
use crate::work::{Request, Work};

sockopt_impl!(
    /// The bytes that must have arrived before a reader wakes.
    RcvLowat, SetOnly, libc::SOL_SOCKET, libc::SO_RCVLOWAT, libc::c_int
);

/// The longest head, in bytes.
const LONGEST_HEAD: usize = 32 << 10;
/// RFC 8446, section 4: the one message after the handshake that asks for no answer.
const NEW_SESSION_TICKET: u8 = 4;

/// Where to connect, and how.
pub struct Target {
    pub address: SocketAddr,
    pub name: ServerName<'static>,
    pub tls: Arc<ClientConfig>,
    pub rcvlowat: usize,
    pub rcvbuf: usize,
    pub sndbuf: usize,
    pub seal: usize,
}

/// What all connections share: the ciphertext just received, and content that has no place of its own.
pub struct Buffers {
    pub scratch: Vec<u8>,
    pub side: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Idle,
    Sending,
    Head,
    Body,
}

/// What a look at a connection ended with.
#[derive(PartialEq, Eq, Debug)]
pub enum Progress {
    /// The kernel has no more, or no room, for now.
    Blocked,
    /// The answer was received to its last byte; whether the server will close.
    Answered { close: bool },
    /// The server closed before it answered anything on a connection used before.
    Stale,
}

pub struct Connection {
    pub stream: TcpStream,
    opening: Direction,
    sealing: Direction,
    phase: Phase,
    fresh: bool,
    close: bool,
    /// The low-water mark as last set.
    mark: usize,
    /// Ciphertext of a record that is not whole yet.
    partial: Vec<u8>,
    /// Content of a head that is not whole yet.
    head: Vec<u8>,
    /// Bytes of the body that the head announced, and that have come.
    length: usize,
    got: usize,
    /// Sealed records on their way: what of them has gone, and what there is.
    sealed: Vec<u8>,
    gone: usize,
    filled: usize,
    /// Content of the request that has been sealed.
    taken: usize,
}

impl Connection {
    pub fn open(target: &Target) -> Result<Connection> {
        let mut stream =
            TcpStream::connect(target.address).with_context(|| format!("connect to {}", target.address))?;
        stream.set_nodelay(true)?;
        if target.sndbuf > 0 {
            setsockopt(&stream, sockopt::SndBuf, &target.sndbuf).context("SO_SNDBUF")?;
        }
        if target.rcvbuf > 0 {
            setsockopt(&stream, sockopt::RcvBuf, &target.rcvbuf).context("SO_RCVBUF")?;
        }
        let mut handshake = ClientConnection::new(Arc::clone(&target.tls), target.name.clone())?;
        handshake.complete_io(&mut stream).context("TLS handshake")?;
        // The server sends nothing between its Finished and the client's, so that nothing lies in rustls's buffer.
        let keys = handshake.dangerous_extract_secrets()?;
        stream.set_nonblocking(true)?;
        let records = target.seal.div_ceil(FULL) + 1;
        Ok(Connection {
            stream,
            opening: Direction::new(keys.rx)?,
            sealing: Direction::new(keys.tx)?,
            phase: Phase::Idle,
            fresh: true,
            close: false,
            mark: 1,
            partial: Vec::with_capacity(FULL + OVERHEAD),
            head: Vec::new(),
            length: 0,
            got: 0,
            sealed: vec![0; target.seal + records * OVERHEAD],
            gone: 0,
            filled: 0,
            taken: 0,
        })
    }

    /// Begins a request.
    pub fn start(&mut self) {
        self.phase = Phase::Sending;
        self.head.clear();
        (self.length, self.got, self.gone, self.filled, self.taken) = (0, 0, 0, 0, 0);
    }

    /// Seals and sends until the request has gone or the socket is full.
    pub fn send(&mut self, work: &Work, request: &Request) -> Result<Progress> {
        let body = if work.mode == Mode::Put { &work.memory[request.place.clone()] } else { &[] };
        while self.phase == Phase::Sending {
            if self.gone == self.filled {
                self.seal_some(&request.head, body)?;
                if self.filled == 0 {
                    self.phase = Phase::Head;
                    break;
                }
            }
            match self.stream.write(&self.sealed[self.gone..self.filled]) {
                Ok(count) => self.gone += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                    // The server may have answered before it closed: what it said comes with the next event.
                    self.phase = Phase::Head;
                }
                Err(error) => return Err(error).context("send"),
            }
        }
        Ok(Progress::Blocked)
    }

    fn seal_some(&mut self, head: &[u8], body: &[u8]) -> Result<()> {
        (self.gone, self.filled) = (0, 0);
        let room = self.sealed.len();
        loop {
            let content = head.get(self.taken..).unwrap_or_default();
            let content = if content.is_empty() { &body[self.taken - head.len()..] } else { content };
            let content = &content[..content.len().min(FULL)];
            if content.is_empty() || self.filled + content.len() + OVERHEAD > room {
                return Ok(());
            }
            self.filled += self.sealing.seal(content, &mut self.sealed[self.filled..])?;
            self.taken += content.len();
        }
    }

    /// Receives until the answer is whole or the socket is empty.
    pub fn receive(&mut self, target: &Target, buffers: &mut Buffers, work: &mut Work, at: usize) -> Result<Progress> {
        if self.phase == Phase::Idle {
            return Ok(Progress::Blocked);
        }
        let Buffers { scratch, side } = buffers;
        loop {
            let kept = self.partial.len();
            scratch[..kept].copy_from_slice(&self.partial);
            let count = match self.stream.read(&mut scratch[kept..]) {
                Ok(0) => return self.ended(),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Progress::Blocked),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return self.ended(),
                Err(error) => return Err(error).context("recv"),
            };
            let drained = count < scratch.len() - kept;
            let mut received = &scratch[..kept + count];
            while let Some(record) = first_record(received)? {
                received = &received[record.len()..];
                self.take(record, side, work, at)?;
            }
            self.partial.clear();
            self.partial.extend_from_slice(received);
            if self.phase == Phase::Body && self.got == self.length {
                ensure!(received.is_empty(), "{} bytes follow the answer", received.len());
                self.set_mark(target, 1)?;
                self.phase = Phase::Idle;
                self.fresh = false;
                return Ok(Progress::Answered { close: self.close });
            }
            if self.phase == Phase::Body {
                // What is still to come is at least the content that is missing and not held as ciphertext.
                self.set_mark(target, (self.length - self.got).saturating_sub(self.partial.len()))?;
            }
            if drained {
                return Ok(Progress::Blocked);
            }
        }
    }

    /// Opens one record and puts its content where it belongs.
    fn take(&mut self, record: &[u8], side: &mut [u8], work: &mut Work, at: usize) -> Result<()> {
        let request = &work.requests[at];
        let left = self.length - self.got;
        if self.phase == Phase::Body && !work.discard && inner_len(record) <= left {
            let start = request.place.start + self.got;
            let (kind, count) = self.opening.open(record, &mut work.memory[start..start + left])?;
            if kind == DATA {
                self.got += count;
                return Ok(());
            }
            // It lies where content is still to come.
            return heed(kind, &work.memory[start..start + count]);
        }
        let (kind, count) = self.opening.open(record, side)?;
        let mut content = &side[..count];
        if kind != DATA {
            return heed(kind, content);
        }
        if self.phase != Phase::Body {
            let before = self.head.len();
            self.head.extend_from_slice(content);
            // A server may refuse before it has the whole request.
            self.phase = Phase::Head;
            let Some(end) = self.head.windows(4).position(|four| four == b"\r\n\r\n") else {
                ensure!(self.head.len() < LONGEST_HEAD, "not an HTTP response");
                return Ok(());
            };
            self.accept(work, request, end + 4)?;
            content = &content[end + 4 - before..];
        }
        ensure!(content.len() <= self.length - self.got, "the answer is longer than its content-length");
        if !work.discard {
            let start = request.place.start + self.got;
            work.memory[start..start + content.len()].copy_from_slice(content);
        }
        self.got += content.len();
        Ok(())
    }

    /// Reads the head, which ends at `end` of what has come.
    fn accept(&mut self, work: &Work, request: &Request, end: usize) -> Result<()> {
        let text = String::from_utf8_lossy(&self.head[..end]);
        let status = text.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok());
        let field = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
        };
        let length = field("content-length").and_then(|value| value.parse::<usize>().ok());
        let (Some(status), Some(length)) = (status, length) else {
            bail!("not a response with a content-length: {text}");
        };
        let wanted = if work.mode == Mode::Get { request.place.len() } else { 0 };
        if (status, length) != (request.status, wanted) {
            // The text of a refusal says why.
            let all = String::from_utf8_lossy(&self.head);
            let (asked, shown) = (String::from_utf8_lossy(&request.head), if status < 300 { &text } else { &all });
            bail!(
                "wanted status {} and {wanted} bytes, got {status} and {length}, to the request:\n{asked}{shown}",
                request.status
            );
        }
        self.close = field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        self.length = length;
        self.phase = Phase::Body;
        Ok(())
    }

    fn ended(&self) -> Result<Progress> {
        if self.phase == Phase::Body {
            bail!("the connection ended after {} of {} body bytes", self.got, self.length);
        }
        if self.fresh || !self.head.is_empty() {
            bail!("the server closed the connection before it answered");
        }
        Ok(Progress::Stale)
    }

    fn set_mark(&mut self, target: &Target, left: usize) -> Result<()> {
        let mark = left.min(target.rcvlowat).max(1);
        if target.rcvlowat > 0 && mark != self.mark {
            setsockopt(&self.stream, RcvLowat, &libc::c_int::try_from(mark)?).context("SO_RCVLOWAT")?;
            self.mark = mark;
        }
        Ok(())
    }
}

/// What the server says beside content: tickets are dropped, anything else is an end.
fn heed(kind: u8, said: &[u8]) -> Result<()> {
    match (kind, said) {
        (HANDSHAKE, [NEW_SESSION_TICKET, ..]) => Ok(()),
        // close_notify: the end of the stream follows, and says what it means.
        (ALERT, [_, 0]) => Ok(()),
        (ALERT, [_, alert]) => bail!("the server sent TLS alert {alert}"),
        _ => bail!("a record of type {kind} has no place here"),
    }
}

//! The stream after the handshake: content in, content out, and what TLS says between.
//!
//! Receiving: ciphertext goes into the thread's scratch, behind what this connection held of a
//! record's beginning; every whole record is opened into the room it was asked to fill; what is left
//! is held. Content that found no room (a head's record brings the beginning of its body) is spilled
//! and handed out first the next time. Sending: content is sealed into the scratch and written at
//! once; what the kernel had no room for waits in the connection, and nothing more is sealed until it
//! has gone.
//!
//! The end of the stream is the server's close_notify. A connection that just ends is broken: anybody
//! on the way could have cut it.

use std::cell::Cell;
use std::io::{self, IoSlice, Read};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::handshake::{Agreed, shake_hands};
use super::record::{
    ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, GROWTH, HANDSHAKE, MOST_CONTENT, MOST_RECORD, Opened, RecordError,
    RecordKeys, sealed_length, whole_record,
};
use super::trust::Trust;
use crate::net::failure::NetFailure;

/// How much ciphertext is received, or sealed, before the other side of the work has its turn: little
/// enough to stay in the cache between the two.
const SCRATCH: usize = 1 << 20;

/// Sealed at once. A near socket holds 512 KiB; what it does not take has to be copied.
const SEAL_AT_ONCE: usize = 8 * MOST_CONTENT;

/// AES-GCM's keys serve 2^24.5 records (RFC 8446, section 5.5). Long before that the connection is
/// not used for another request: this many records are at most 128 GiB.
const WORN: u64 = 1 << 23;

/// RFC 8446, section 6.1: not an error, and followed by the alert that matters, if any.
const USER_CANCELED: u8 = 90;

/// RFC 8446, section 4: the handshake messages that may follow the handshake.
const NEW_SESSION_TICKET: u8 = 4;
const KEY_UPDATE: u8 = 24;
const MESSAGE_HEADER: usize = 4;
/// Tickets are a few hundred bytes.
const MOST_MESSAGE: usize = 64 << 10;

pub(in crate::net) struct TlsStream {
    stream: TcpStream,
    opening: RecordKeys,
    sealing: RecordKeys,
    kernel: KernelConnection<ClientConnectionData>,
    /// Ciphertext that was received and not opened yet.
    held: Vec<u8>,
    /// Content that was opened and had no room.
    spilled: Vec<u8>,
    spilled_from: usize,
    /// The beginning of a handshake message.
    message: Vec<u8>,
    /// Sealed records that the kernel had no room for.
    unsent: Vec<u8>,
    unsent_from: usize,
    /// Among them is the answer to a demand for new keys.
    answering: bool,
    /// The server has said that nothing more comes.
    ended: bool,
    /// What was met behind content, or while nobody received: it is told when the content has been.
    failed: Option<io::Error>,
}

impl TlsStream {
    /// Makes the handshake. The caller bounds its time.
    pub(in crate::net) async fn connect(
        trust: &Trust,
        host: &str,
        mut stream: TcpStream,
    ) -> Result<TlsStream, NetFailure> {
        let config = trust.config().await?;
        let Agreed { secrets, kernel, received } = shake_hands(config, host, &mut stream).await?;
        let version = kernel.protocol_version();
        let keys = |secrets| {
            let refused = |error: RecordError| rustls::Error::General(error.to_string());
            RecordKeys::new(version, secrets)
                .map_err(|error| NetFailure::Tls { host: host.to_owned(), error: refused(error) })
        };
        Ok(TlsStream {
            opening: keys(secrets.rx)?,
            sealing: keys(secrets.tx)?,
            stream,
            kernel,
            held: received,
            spilled: Vec::new(),
            spilled_from: 0,
            message: Vec::new(),
            unsent: Vec::new(),
            unsent_from: 0,
            answering: false,
            ended: false,
            failed: None,
        })
    }

    pub(in crate::net) fn socket(&self) -> &TcpStream {
        &self.stream
    }

    /// Whether the keys have served for long enough, or the server has said what nobody asked for.
    pub(in crate::net) fn is_worn(&self) -> bool {
        self.has_content() || self.opening.used().max(self.sealing.used()) >= WORN
    }

    /// Bytes of the server's that are no longer in the socket.
    pub(in crate::net) fn taken_in(&self) -> usize {
        self.held.len() + self.spilled.len() - self.spilled_from
    }

    /// Whether sealed records wait for room in the socket.
    pub(in crate::net) fn has_unsent(&self) -> bool {
        self.unsent_from < self.unsent.len()
    }

    /// Receives content into `room`; 0 is its end.
    pub(in crate::net) fn poll_receive(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        let spilled = &self.spilled[self.spilled_from..];
        if !spilled.is_empty() {
            let count = spilled.len().min(room.len());
            room[..count].copy_from_slice(&spilled[..count]);
            self.spilled_from += count;
            if self.spilled_from == self.spilled.len() {
                self.spilled.clear();
                self.spilled_from = 0;
            }
            return Poll::Ready(Ok(count));
        }
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Err(error));
        }
        if self.ended {
            return Poll::Ready(Ok(0));
        }
        with_scratch(|scratch| self.receive(cx, scratch, room))
    }

    /// Ready when there is content, or the end, or an error: after whatever else the server said has
    /// been dealt with.
    pub(in crate::net) fn poll_spoken(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.has_content() {
            return Poll::Ready(());
        }
        match with_scratch(|scratch| self.receive(cx, scratch, &mut [])) {
            Poll::Ready(Ok(_)) => Poll::Ready(()),
            Poll::Ready(Err(error)) => {
                self.failed = Some(error);
                Poll::Ready(())
            }
            Poll::Pending => Poll::Pending,
        }
    }

    /// Ready when there may be something to receive.
    pub(in crate::net) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.has_content() || !matches!(whole_record(&self.held), Ok(None)) {
            return Poll::Ready(Ok(()));
        }
        self.stream.poll_read_ready(cx)
    }

    /// Whether the server has said nothing of consequence while the connection was idle. Asks the
    /// kernel, since the runtime may not have looked.
    pub(in crate::net) fn is_quiet(&mut self) -> bool {
        if self.has_content() {
            return false;
        }
        with_scratch(|scratch| {
            loop {
                let have = self.unhold(scratch);
                let read = (&*socket2::SockRef::from(&self.stream)).read(&mut scratch[have..]);
                let (quiet, read) = match read {
                    Ok(0) => return false,
                    Ok(read) => (false, read),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => (true, 0),
                    Err(_) => return false,
                };
                let (opened, _) = self.open_all(&mut scratch[..have + read], &mut []);
                self.held.extend_from_slice(&scratch[opened..have + read]);
                if self.has_content() {
                    return false;
                }
                if quiet {
                    return true;
                }
            }
        })
    }

    fn has_content(&self) -> bool {
        self.ended || self.failed.is_some() || self.spilled_from < self.spilled.len()
    }

    /// Moves what is held to the front of the scratch; its length.
    fn unhold(&mut self, scratch: &mut [u8]) -> usize {
        let have = self.held.len();
        scratch[..have].copy_from_slice(&self.held);
        self.held.clear();
        have
    }

    fn receive(&mut self, cx: &mut Context<'_>, scratch: &mut [u8], room: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut have = self.unhold(scratch);
        loop {
            let (opened, filled) = self.open_all(&mut scratch[..have], room);
            if filled > 0 || self.has_content() {
                self.held.extend_from_slice(&scratch[opened..have]);
                return Poll::Ready(match self.failed.take_if(|_| filled == 0 && self.spilled.is_empty()) {
                    Some(error) => Err(error),
                    None => Ok(filled),
                });
            }
            scratch.copy_within(opened..have, 0);
            have -= opened;
            // Not more than there is room for: the rest would have to be copied. At least a record,
            // and `have` is less than one.
            let most = sealed_length(room.len()).clamp(MOST_RECORD, scratch.len());
            let mut into = ReadBuf::new(&mut scratch[have..most]);
            match Pin::new(&mut self.stream).poll_read(cx, &mut into) {
                Poll::Ready(Ok(())) if into.filled().is_empty() => {
                    return Poll::Ready(Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the connection ended without TLS's close_notify",
                    )));
                }
                Poll::Ready(Ok(())) => have += into.filled().len(),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.held.extend_from_slice(&scratch[..have]);
                    return Poll::Pending;
                }
            }
        }
    }

    /// Opens whole records until the room is full, content had to be spilled, or there are no more.
    /// How much ciphertext was used, and how much of the room. What cannot be opened is remembered: the
    /// content before it counts.
    fn open_all(&mut self, received: &mut [u8], room: &mut [u8]) -> (usize, usize) {
        let (mut used, mut filled) = (0, 0);
        if let Err(error) = self.open_each(received, room, &mut used, &mut filled) {
            self.failed = Some(error);
        }
        (used, filled)
    }

    fn open_each(
        &mut self,
        received: &mut [u8],
        room: &mut [u8],
        used: &mut usize,
        filled: &mut usize,
    ) -> io::Result<()> {
        while !self.ended && self.spilled.is_empty() && (*filled == 0 || *filled < room.len()) {
            let Some(length) = whole_record(&received[*used..])? else { break };
            let record = &mut received[*used..*used + length];
            *used += length;
            if record[0] == CHANGE_CIPHER_SPEC {
                // RFC 8446, section 5: sent for the sake of old middleboxes, and dropped.
                continue;
            }
            let (kind, opened) = self.opening.open(record, &mut room[*filled..])?;
            match (kind, opened) {
                (APPLICATION_DATA, Opened::Room(count)) => *filled += count,
                (APPLICATION_DATA, Opened::Record(range)) => {
                    let content = &record[range];
                    let fits = content.len().min(room.len() - *filled);
                    room[*filled..*filled + fits].copy_from_slice(&content[..fits]);
                    *filled += fits;
                    self.spilled.extend_from_slice(&content[fits..]);
                }
                (kind, opened) => {
                    let said = match opened {
                        Opened::Room(count) => room[*filled..*filled + count].to_vec(),
                        Opened::Record(range) => record[range].to_vec(),
                    };
                    self.heed(kind, &said)?;
                }
            }
        }
        Ok(())
    }

    /// What the server says beside content.
    fn heed(&mut self, kind: u8, said: &[u8]) -> io::Result<()> {
        match (kind, said) {
            // RFC 8446, section 6: a level that means nothing, and the description.
            (ALERT, [_, 0]) => {
                self.ended = true;
                Ok(())
            }
            (ALERT, [_, USER_CANCELED]) => Ok(()),
            (ALERT, [_, description]) => {
                let alert = rustls::AlertDescription::from(*description);
                Err(io::Error::new(io::ErrorKind::ConnectionAborted, format!("the server sent a TLS alert: {alert:?}")))
            }
            (HANDSHAKE, part) => self.heed_handshake(part),
            (kind, _) => Err(RecordError::Unexpected(kind).into()),
        }
    }

    fn heed_handshake(&mut self, part: &[u8]) -> io::Result<()> {
        let refused = |error: rustls::Error| io::Error::new(io::ErrorKind::InvalidData, error);
        if self.message.len() + part.len() > MOST_MESSAGE {
            return Err(RecordError::TooLong.into());
        }
        self.message.extend_from_slice(part);
        while let Some(&[kind, a, b, c]) = self.message.first_chunk::<MESSAGE_HEADER>() {
            let end = MESSAGE_HEADER + u32::from_be_bytes([0, a, b, c]) as usize;
            let Some(message) = self.message.get(MESSAGE_HEADER..end) else { break };
            match (kind, message) {
                (NEW_SESSION_TICKET, ticket) => self.kernel.handle_new_session_ticket(ticket).map_err(refused)?,
                (KEY_UPDATE, &[asked]) => {
                    let version = self.kernel.protocol_version();
                    let secrets = self.kernel.update_rx_secret().map_err(refused)?;
                    self.opening = RecordKeys::new(version, secrets)?;
                    // One answer is enough for all that ask before it has gone: a server that asks without
                    // end and receives nothing gets no memory of ours for it.
                    if asked == 1 && !self.answering {
                        self.update_sealing()?;
                    }
                }
                _ => return Err(RecordError::Unexpected(HANDSHAKE).into()),
            }
            self.message.drain(..end);
        }
        Ok(())
    }

    /// RFC 8446, section 4.6.3: the answer to a key update that asked for one, under the old key. It goes
    /// before what is sent next, which is all that is asked: servers refuse many of them in a row.
    fn update_sealing(&mut self) -> io::Result<()> {
        let update = [KEY_UPDATE, 0, 0, 1, 0];
        let start = self.unsent.len();
        self.unsent.resize(start + update.len() + GROWTH, 0);
        let length = self.sealing.seal(HANDSHAKE, &update, &mut self.unsent[start..])?;
        self.unsent.truncate(start + length);
        let refused = |error: rustls::Error| io::Error::new(io::ErrorKind::InvalidData, error);
        let secrets = self.kernel.update_tx_secret().map_err(refused)?;
        self.sealing = RecordKeys::new(self.kernel.protocol_version(), secrets)?;
        self.answering = true;
        Ok(())
    }

    /// Takes some of the content over, sealed; how much. 0 once there is none and everything has gone.
    pub(in crate::net) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        while self.has_unsent() {
            let waiting = &self.unsent[self.unsent_from..];
            let count = ready!(Pin::new(&mut self.stream).poll_write(cx, waiting))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.unsent_from += count;
        }
        self.unsent.clear();
        self.unsent_from = 0;
        self.answering = false;
        if pieces.iter().all(|piece| piece.is_empty()) {
            return Poll::Ready(Ok(0));
        }
        // Nothing is sealed for a socket without room: it would only be copied.
        ready!(self.stream.poll_write_ready(cx))?;
        with_scratch(|scratch| {
            let (mut sealed, mut taken) = (0, 0);
            for piece in pieces {
                let piece = &piece[..piece.len().min(SEAL_AT_ONCE - taken)];
                for content in piece.chunks(MOST_CONTENT) {
                    sealed += self.sealing.seal(APPLICATION_DATA, content, &mut scratch[sealed..])?;
                }
                taken += piece.len();
            }
            let sent = match self.stream.try_write(&scratch[..sealed]) {
                Ok(sent) => sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                Err(error) => return Poll::Ready(Err(error)),
            };
            self.unsent.extend_from_slice(&scratch[sent..sealed]);
            Poll::Ready(Ok(taken))
        })
    }
}

/// Lends the thread's scratch. Within one call it is never lent twice; a thread that is being torn
/// down gets one of its own.
fn with_scratch<T>(use_it: impl FnOnce(&mut [u8]) -> T) -> T {
    thread_local! {
        static SCRATCH_OF_THREAD: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }
    let mut scratch = SCRATCH_OF_THREAD.try_with(Cell::take).unwrap_or_default();
    if scratch.is_empty() {
        scratch = vec![0; SCRATCH + MOST_RECORD];
    }
    let result = use_it(&mut scratch);
    let _ = SCRATCH_OF_THREAD.try_with(|kept| kept.set(scratch));
    result
}

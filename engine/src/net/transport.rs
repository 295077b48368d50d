//! The stream under a connection: plain TCP, or TLS over it.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::BufMut;
use tokio::io::{AsyncReadExt, AsyncWrite, Interest};
use tokio::net::TcpStream;

use super::socket;
use super::tls::TlsStream;
use crate::buffer::Slot;

pub(super) enum Transport {
    Plain(TcpStream),
    Tls(Box<TlsStream>),
}

/// Where what is received goes: at most so many bytes of it.
pub(super) enum Room<'a> {
    /// The final place of a body.
    Slot(&'a mut Slot, usize),
    /// The end of the connection's own input.
    Input(&'a mut Vec<u8>, usize),
}

impl Transport {
    fn socket(&self) -> &TcpStream {
        match self {
            Transport::Plain(stream) => stream,
            Transport::Tls(stream) => stream.socket(),
        }
    }

    /// Receives into the room; 0 is the end of the stream.
    pub(super) fn poll_receive(&mut self, cx: &mut Context<'_>, room: Room<'_>) -> Poll<io::Result<usize>> {
        match (self, room) {
            // Without a byte of the room being written first.
            (Transport::Plain(stream), Room::Slot(slot, most)) => receive_plain(stream, cx, slot.limit(most)),
            (Transport::Plain(stream), Room::Input(input, most)) => receive_plain(stream, cx, input.limit(most)),
            (Transport::Tls(stream), Room::Slot(slot, most)) => {
                let room = slot.unfilled();
                let most = most.min(room.len());
                let received = ready!(stream.poll_receive(cx, &mut room[..most]))?;
                slot.advance(received);
                Poll::Ready(Ok(received))
            }
            (Transport::Tls(stream), Room::Input(input, most)) => {
                let start = input.len();
                input.resize(start + most, 0);
                let received = stream.poll_receive(cx, &mut input[start..]);
                let count = if let Poll::Ready(Ok(count)) = &received { *count } else { 0 };
                input.truncate(start + count);
                received
            }
        }
    }

    /// Takes some of the pieces over; how much. 0 once there is nothing more to send.
    pub(super) fn poll_send(&mut self, cx: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match self {
            Transport::Plain(stream) => match pieces {
                [piece] => Pin::new(stream).poll_write(cx, piece),
                pieces => Pin::new(stream).poll_write_vectored(cx, pieces),
            },
            Transport::Tls(stream) => stream.poll_send(cx, pieces),
        }
    }

    /// Whether something that was taken over has not been given to the kernel yet.
    pub(super) fn has_unsent(&self) -> bool {
        match self {
            Transport::Plain(_) => false,
            Transport::Tls(stream) => stream.has_unsent(),
        }
    }

    /// Ready when the server has sent something or closed. Asks the kernel as well: what the runtime
    /// remembers of a socket may have been read since.
    pub(super) fn poll_spoken(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let stream = match self {
            Transport::Plain(stream) => stream,
            Transport::Tls(stream) => return stream.poll_spoken(cx),
        };
        loop {
            if let Err(_closed) = ready!(stream.poll_read_ready(cx)) {
                return Poll::Ready(());
            }
            let mut byte = [MaybeUninit::uninit()];
            let peeked = stream.try_io(Interest::READABLE, || socket2::SockRef::from(&*stream).peek(&mut byte));
            match peeked {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(_) | Err(_) => return Poll::Ready(()),
            }
        }
    }

    /// Everything that was sent has been received, so nothing more is to be read until the server is
    /// asked for it. The runtime only learns that from a read that finds nothing; this spares the read.
    /// That the server has closed the connection is remembered apart, and is not forgotten. (Session
    /// tickets may lie in a TLS socket all the same: they are read with the answer behind them.)
    pub(super) fn expect_nothing_yet(&self) {
        let nothing: io::Result<()> =
            self.socket().try_io(Interest::READABLE, || Err(io::ErrorKind::WouldBlock.into()));
        debug_assert!(nothing.is_err());
    }

    /// Ready when there may be something to receive.
    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Transport::Plain(stream) => stream.poll_read_ready(cx),
            Transport::Tls(stream) => stream.poll_readable(cx),
        }
    }

    pub(super) fn set_low_water_mark(&self, bytes: i32) -> io::Result<()> {
        socket::set_low_water_mark(self.socket(), bytes)
    }

    /// Bytes of the server's that have left the socket and have not been received: they do not come
    /// again. Under TLS as ciphertext or content, so never less than the content they hold.
    pub(super) fn taken_in(&self) -> usize {
        match self {
            Transport::Plain(_) => 0,
            Transport::Tls(stream) => stream.taken_in(),
        }
    }

    /// Whether another request may be sent: the keys of a TLS connection wear out.
    pub(super) fn is_worn(&self) -> bool {
        match self {
            Transport::Plain(_) => false,
            Transport::Tls(stream) => stream.is_worn(),
        }
    }

    /// What the kernel may hold for this connection, both ways together, in bytes.
    pub(super) fn buffer_sizes(&self) -> u64 {
        let socket = socket2::SockRef::from(self.socket());
        let sizes = [socket.recv_buffer_size(), socket.send_buffer_size()];
        sizes.into_iter().map(|size| size.unwrap_or(0) as u64).sum()
    }

    /// Whether the server has neither closed this idle connection nor sent anything unasked. Asks the
    /// kernel, since the runtime may not have looked at the socket since the server closed it.
    pub(super) fn is_quiet(&mut self) -> bool {
        match self {
            Transport::Plain(stream) => {
                let mut byte = [MaybeUninit::uninit()];
                matches!(
                    socket2::SockRef::from(&*stream).peek(&mut byte),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock
                )
            }
            Transport::Tls(stream) => stream.is_quiet(),
        }
    }
}

fn receive_plain(stream: &mut TcpStream, cx: &mut Context<'_>, mut into: impl BufMut) -> Poll<io::Result<usize>> {
    let receive = pin!(stream.read_buf(&mut into));
    std::future::Future::poll(receive, cx)
}

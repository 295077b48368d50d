//! The stream under a connection: plain TCP here; TLS takes its place beside it.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::BufMut;
use tokio::io::{AsyncReadExt, AsyncWrite, Interest};
use tokio::net::TcpStream;

use super::socket;

pub(super) enum Transport {
    Plain(TcpStream),
}

impl Transport {
    /// Receives into the spare room of `into`, without a byte of it being written first.
    pub(super) fn poll_receive(&mut self, cx: &mut Context<'_>, mut into: impl BufMut) -> Poll<io::Result<usize>> {
        match self {
            Transport::Plain(stream) => {
                let receive = pin!(stream.read_buf(&mut into));
                std::future::Future::poll(receive, cx)
            }
        }
    }

    pub(super) fn poll_send(&mut self, cx: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match self {
            Transport::Plain(stream) => match pieces {
                [piece] => Pin::new(stream).poll_write(cx, piece),
                pieces => Pin::new(stream).poll_write_vectored(cx, pieces),
            },
        }
    }

    /// Ready when the server has sent something or closed. Asks the kernel as well: what the runtime
    /// remembers of a socket may have been read since.
    pub(super) fn poll_spoken(&self, cx: &mut Context<'_>) -> Poll<()> {
        let Transport::Plain(stream) = self;
        loop {
            if let Err(_closed) = ready!(stream.poll_read_ready(cx)) {
                return Poll::Ready(());
            }
            let mut byte = [MaybeUninit::uninit()];
            let peeked = stream.try_io(Interest::READABLE, || socket2::SockRef::from(stream).peek(&mut byte));
            match peeked {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(_) | Err(_) => return Poll::Ready(()),
            }
        }
    }

    /// Everything that was sent has been received, so nothing more is to be read until the server is
    /// asked for it. The runtime only learns that from a read that finds nothing; this spares the read.
    /// That the server has closed the connection is remembered apart, and is not forgotten.
    pub(super) fn expect_nothing_yet(&self) {
        let Transport::Plain(stream) = self;
        let nothing: io::Result<()> = stream.try_io(Interest::READABLE, || Err(io::ErrorKind::WouldBlock.into()));
        debug_assert!(nothing.is_err());
    }

    /// Ready when there may be something to receive.
    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Transport::Plain(stream) => stream.poll_read_ready(cx),
        }
    }

    pub(super) fn set_low_water_mark(&self, bytes: i32) -> io::Result<()> {
        match self {
            Transport::Plain(stream) => socket::set_low_water_mark(stream, bytes),
        }
    }

    /// What the kernel may hold for this connection, both ways together, in bytes.
    pub(super) fn buffer_sizes(&self) -> u64 {
        let Transport::Plain(stream) = self;
        let socket = socket2::SockRef::from(stream);
        let sizes = [socket.recv_buffer_size(), socket.send_buffer_size()];
        sizes.into_iter().map(|size| size.unwrap_or(0) as u64).sum()
    }

    /// Whether the server has neither closed this idle connection nor sent anything unasked. Asks the
    /// kernel, since the runtime may not have looked at the socket since the server closed it.
    pub(super) fn is_quiet(&self) -> bool {
        match self {
            Transport::Plain(stream) => {
                let mut byte = [MaybeUninit::uninit()];
                matches!(
                    socket2::SockRef::from(stream).peek(&mut byte),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock
                )
            }
        }
    }
}

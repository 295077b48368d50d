//! The stream under a connection: plain TCP here; TLS takes its place beside it.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::BufMut;
use tokio::io::{AsyncReadExt, AsyncWrite};
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
            Transport::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
        }
    }

    /// Ready when the server has sent something or closed.
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

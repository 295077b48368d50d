//! The socket of one connection: paced where a model says so, reset where a fault does.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::model::line::Line;
use crate::model::rate::Paces;
use crate::patience::Patience;

/// The most slices of one paced write.
const SLICES: usize = 64;

/// A socket under TLS, or under HTTP where there is none.
pub(crate) struct Socket {
    stream: TcpStream,
    line: Arc<Line>,
    paces: Option<Box<Paces>>,
    /// With a client that does not read what it asked for.
    patience: Patience,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, line: Arc<Line>, paces: Option<Paces>) -> Self {
        Self { stream, line, paces: paces.map(Box::new), patience: Patience::default() }
    }

    /// Ends a write that the client has kept waiting for too long.
    fn patient(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.patience.moved();
            return written;
        }
        ready!(self.patience.poll_expired(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.line.is_reset() {
            // It fails where the client has gone already.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let Some(paces) = &mut this.paces else { return Pin::new(&mut this.stream).poll_read(cx, buffer) };
        let piece = ready!(paces.up.poll_ready(cx)).min(buffer.remaining());
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(piece));
        ready!(Pin::new(&mut this.stream).poll_read(cx, &mut part))?;
        let filled = part.filled().len();
        buffer.advance(filled);
        paces.up.received(filled);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let granted = match &mut this.paces {
            Some(paces) => ready!(paces.down.poll_grant(cx, bytes.len())),
            None => bytes.len(),
        };
        let written = Pin::new(&mut this.stream).poll_write(cx, &bytes[..granted]);
        let written = ready!(this.patient(cx, written))?;
        if let Some(paces) = &mut this.paces {
            paces.down.sent(written);
        }
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let Some(paces) = &mut this.paces else {
            let written = Pin::new(&mut this.stream).poll_write_vectored(cx, slices);
            return this.patient(cx, written);
        };
        let total = slices.iter().take(SLICES).map(|slice| slice.len()).sum();
        let mut left = ready!(paces.down.poll_grant(cx, total));
        let mut part = [io::IoSlice::new(&[]); SLICES];
        let mut count = 0;
        for slice in slices.iter().take(SLICES) {
            part[count] = io::IoSlice::new(&slice[..slice.len().min(left)]);
            left -= part[count].len();
            count += 1;
            if left == 0 {
                break;
            }
        }
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, &part[..count]);
        let written = ready!(this.patient(cx, written))?;
        if let Some(paces) = &mut this.paces {
            paces.down.sent(written);
        }
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

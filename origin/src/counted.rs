//! The stream that hyper reads and writes: counted, and shaped where a fault says so.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::model::line::{Line, Shaping};
use crate::stats::Counters;

/// A connection counted as open for as long as this is kept.
pub(crate) struct Open(Arc<Counters>);

impl Open {
    pub(crate) fn new(counters: Arc<Counters>) -> Self {
        counters.opened();
        Self(counters)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.closed();
    }
}

/// A stream whose bytes are counted, those of HTTP, whatever TLS makes of them; and shaped, where a fault says so.
pub(crate) struct Counted<S> {
    stream: S,
    open: Open,
    line: Arc<Line>,
    shaping: Option<Box<Shaping>>,
}

impl<S> Counted<S> {
    pub(crate) fn new(stream: S, open: Open, line: Arc<Line>) -> Self {
        Self { stream, open, line, shaping: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.open.0.received(buffer.filled().len() - before);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_shaped() {
            ready!(self.poll_shaping(cx))?;
            if let Some(shaping) = &mut self.shaping {
                shaping.take(bytes);
                // What it could not write now it writes when flushed, or before it takes more.
                if let Poll::Ready(Err(error)) = self.poll_shaping(cx) {
                    return Poll::Ready(Err(error));
                }
                return self.sent(Poll::Ready(Ok(bytes.len())));
            }
        }
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.sent(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_shaped() {
            let first = slices.iter().find(|slice| !slice.is_empty());
            return self.poll_write(cx, first.map_or(&[], |slice| slice));
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.sent(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_shaping(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_shaping(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S: AsyncWrite + Unpin> Counted<S> {
    fn is_shaped(&self) -> bool {
        self.shaping.is_some() || self.line.is_planned()
    }

    /// Writes what a shaping holds back, until it is done with it.
    fn poll_shaping(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.shaping.is_none() {
            self.shaping = self.line.shaping();
        }
        if let Some(shaping) = &mut self.shaping {
            ready!(shaping.poll_write(cx, Pin::new(&mut self.stream), &self.line))?;
            if shaping.is_done() {
                self.shaping = None;
            }
        }
        Poll::Ready(Ok(()))
    }

    fn sent(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &written {
            self.open.0.sent(*bytes);
        }
        written
    }
}

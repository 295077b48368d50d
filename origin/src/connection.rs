//! One client connection: a counted socket under hyper's HTTP/1.1, until either side ends it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::service::Service;
use crate::stats::Counters;

/// The most bytes hyper reads into one buffer, or gathers before it writes: 1 MiB. Fewer, larger system calls on
/// both sides, and frames large enough to be kept as they are.
const BUFFER: usize = 1 << 20;

/// Serves one connection until it ends, or until `stop` says so and the answer under way has been sent.
pub(crate) async fn serve(stream: TcpStream, service: Service, mut stop: watch::Receiver<bool>) {
    // An answer's tail must not wait for the client's acknowledgement. Failing is harmless, and happens when the
    // client has gone already.
    let _ = stream.set_nodelay(true);
    let counters = service.counters();
    counters.opened();
    let io = TokioIo::new(Counted { stream, counters: counters.clone() });
    let connection = http1::Builder::new().max_buf_size(BUFFER).serve_connection(io, service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = told(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended early");
    }
}

/// Waits until a stop is asked for, or nobody is left to ask.
pub(crate) async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// A socket whose bytes are counted; leaving it counts the connection as closed.
struct Counted {
    stream: TcpStream,
    counters: Arc<Counters>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.counters.closed();
    }
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.counters.received(buffer.filled().len() - before);
        read
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.sent(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.sent(written)
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

impl Counted {
    fn sent(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &written {
            self.counters.sent(*bytes);
        }
        written
    }
}

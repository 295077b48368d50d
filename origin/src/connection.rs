//! One client connection: a counted socket, or TLS over it, under hyper's HTTP/1.1, until either side ends it.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::{HandshakeKind, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::counted::{Counted, Open};
use crate::model::rate::Rates;
use crate::patience;
use crate::service::Service;
use crate::socket::Socket;

/// The most bytes hyper reads into one buffer, or gathers before it writes: 1 MiB. Fewer, larger system calls on
/// both sides, and frames large enough to be kept as they are.
const BUFFER: usize = 1 << 20;

/// The most ciphertext gathered before it is written, in bytes: some sixteen records a system call, and still in the
/// cache that they were encrypted into.
const RECORDS: usize = 256 << 10;

/// The longest that a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Serves one connection, over TLS where there is a configuration for it, until it ends, or until `stop` says so and
/// the answer under way has been sent.
pub(crate) async fn serve(
    stream: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    service: Service,
    mut stop: watch::Receiver<bool>,
) {
    // An answer's tail must not wait for the client's acknowledgement. Failing is harmless, and happens when the
    // client has gone already.
    let _ = stream.set_nodelay(true);
    let counters = service.counters();
    let open = Open::new(counters.clone());
    let paces = service.shared.rates.as_ref().map(Rates::connection);
    let stream = Socket::new(stream, service.line.clone(), paces);
    let Some(tls) = tls else { return http(stream, open, service, stop).await };
    let handshake = TlsAcceptor::from(tls).accept_with(stream, |session| session.set_buffer_limit(Some(RECORDS)));
    let shaken = tokio::select! {
        shaken = tokio::time::timeout(HANDSHAKE, handshake) => shaken,
        () = told(&mut stop) => return,
    };
    match shaken {
        Ok(Ok(stream)) => {
            let resumed = stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed);
            counters.shook_hands(resumed);
            http(stream, open, service, stop).await;
        }
        Ok(Err(error)) => {
            counters.handshake_failed();
            tracing::debug!(%error, "TLS handshake failed");
        }
        Err(_) => counters.handshake_failed(),
    }
}

/// Speaks HTTP over what may be a socket or TLS.
async fn http<S>(stream: S, open: Open, service: Service, mut stop: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let io = TokioIo::new(Counted::new(stream, open, service.line.clone()));
    let connection = http1::Builder::new()
        .max_buf_size(BUFFER)
        .timer(TokioTimer::new())
        .header_read_timeout(patience::LONGEST)
        .serve_connection(io, service);
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

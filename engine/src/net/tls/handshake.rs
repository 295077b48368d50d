//! The handshake, by rustls; what is left of it are keys and whatever the server sent after it.

use std::io;
use std::sync::Arc;

use bytes::BufMut;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::kernel::KernelConnection;
use rustls::pki_types::ServerName;
use rustls::unbuffered::{ConnectionState, EncodeError, InsufficientSizeError, UnbufferedStatus};
use rustls::{ClientConfig, ExtractedSecrets};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::net::failure::NetFailure;

const DURING: &str = "making the TLS handshake";

/// More than any honest handshake: certificates are a few KiB.
const MOST_HANDSHAKE: usize = 256 << 10;

/// How much is asked for at once.
const READ: usize = 16 << 10;

/// What a finished handshake leaves.
pub(super) struct Agreed {
    pub(super) secrets: ExtractedSecrets,
    /// Makes later keys, and keeps tickets.
    pub(super) kernel: KernelConnection<ClientConnectionData>,
    /// Ciphertext that came after the handshake's own.
    pub(super) received: Vec<u8>,
}

/// Makes the handshake with the server that is to prove that it is `host`.
pub(super) async fn shake_hands(
    config: Arc<ClientConfig>,
    host: &str,
    stream: &mut TcpStream,
) -> Result<Agreed, NetFailure> {
    let refused = |error: rustls::Error| NetFailure::Tls { host: host.to_owned(), error };
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| refused(rustls::Error::General("it is neither a name nor an address".to_owned())))?;
    let mut connection = UnbufferedClientConnection::new(config, name).map_err(refused)?;
    let mut received = Vec::with_capacity(8 << 10);
    let mut outgoing = Vec::new();
    loop {
        let UnbufferedStatus { discard, state } = connection.process_tls_records(&mut received);
        let step = match state {
            Ok(state) => step(state, &mut outgoing),
            Err(error) => {
                // The alert that says why, as a courtesy to the server's log.
                received.drain(..discard);
                let after = connection.process_tls_records(&mut received);
                if let Ok(state @ ConnectionState::EncodeTlsData(_)) = after.state
                    && step(state, &mut outgoing).is_ok()
                {
                    let _ = stream.write_all(&outgoing).await;
                }
                return Err(refused(error));
            }
        };
        received.drain(..discard);
        match step.map_err(refused)? {
            Step::Again => {}
            Step::Transmit => {
                stream.write_all(&outgoing).await.map_err(|error| NetFailure::broken(DURING, error))?;
                outgoing.clear();
            }
            Step::Receive if received.len() > MOST_HANDSHAKE => {
                return Err(refused(rustls::Error::General("the server's handshake has no end".to_owned())));
            }
            Step::Receive => {
                let count = stream
                    .read_buf(&mut (&mut received).limit(READ))
                    .await
                    .map_err(|error| NetFailure::broken(DURING, error))?;
                if count == 0 {
                    let error = io::Error::from(io::ErrorKind::UnexpectedEof);
                    return Err(NetFailure::broken(DURING, error));
                }
            }
            Step::Done => break,
        }
    }
    let (secrets, kernel) = connection.dangerous_into_kernel_connection().map_err(refused)?;
    Ok(Agreed { secrets, kernel, received })
}

enum Step {
    Again,
    Transmit,
    Receive,
    Done,
}

fn step(state: ConnectionState<'_, '_, ClientConnectionData>, outgoing: &mut Vec<u8>) -> Result<Step, rustls::Error> {
    match state {
        ConnectionState::EncodeTlsData(mut record) => {
            let start = outgoing.len();
            let mut room = 1 << 10;
            loop {
                outgoing.resize(start + room, 0);
                match record.encode(&mut outgoing[start..]) {
                    Ok(length) => {
                        outgoing.truncate(start + length);
                        return Ok(Step::Again);
                    }
                    Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) => room = required_size,
                    Err(EncodeError::AlreadyEncoded) => {
                        return Err(rustls::Error::General("a handshake record was encoded twice".to_owned()));
                    }
                }
            }
        }
        ConnectionState::TransmitTlsData(transmit) => {
            // Said before it is done: the caller transmits before it asks for the next step.
            transmit.done();
            Ok(Step::Transmit)
        }
        ConnectionState::BlockedHandshake => Ok(Step::Receive),
        ConnectionState::WriteTraffic(_) => Ok(Step::Done),
        _ => Err(rustls::Error::General("the server closed the connection during the handshake".to_owned())),
    }
}

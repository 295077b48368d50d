//! TLS: whom to trust, the handshake, and the stream after it.
//!
//! rustls makes the handshake and keeps the session tickets; its interface for kernel TLS then hands
//! over the keys, and [`record`] opens each record straight into the slot that its content is meant
//! for. Ciphertext passes through one scratch a thread, so that whatever connection is served, the
//! same few pages stay in the processor's cache; between two reads a connection holds no more than
//! the beginning of a record. docs/adr/0011 has the measurements.

mod handshake;
mod record;
mod stream;
mod trust;

pub(super) use stream::TlsStream;
pub(super) use trust::{TlsSettings, Trust};

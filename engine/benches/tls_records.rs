//! What it costs to open TLS records into their final place, in three ways: decrypted from where they
//! were received straight into the destination; decrypted where they are and copied; and by rustls's own
//! record layer, whose content is copied as well. docs/adr/0011 rests on it.
//!
//!     cargo bench -p wirespeed --bench tls_records

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A bench that fails has no figure.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::client::UnbufferedClientConnection;
use rustls::crypto::{CryptoProvider, aws_lc_rs as provider};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use rustls::{ClientConfig, ConnectionTrafficSecrets, RootCertStore, ServerConfig, ServerConnection};

/// Content opened a round.
const CONTENT: usize = 64 << 20;
/// Received at once, as the engine does: what follows finds it in the cache.
const SCRATCH: usize = 1 << 20;
const ROUNDS: usize = 15;

fn main() {
    let mut destination = vec![1u8; CONTENT];
    let mut taken = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for (way, times) in [straight, in_place_and_copied, by_rustls].iter().zip(&mut taken) {
            times.push(way(&mut destination));
            assert!(destination.iter().step_by(4099).all(|&byte| byte == 7), "wrong content");
            destination.fill(1);
        }
    }
    for (name, mut times) in
        ["straight into the destination", "in place, then copied", "by rustls, then copied"].into_iter().zip(taken)
    {
        times.sort();
        let per_gib = |time: Duration| time.as_secs_f64() * ((1u64 << 30) as f64 / CONTENT as f64);
        let (least, median) = (per_gib(times[0]), per_gib(times[ROUNDS / 2]));
        println!("{name:32} {median:.4} s/GiB (least {least:.4})");
    }
}

/// A client's session after the handshake, and the records that its server sent then.
fn session() -> (UnbufferedClientConnection, ServerConnection) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate: CertificateDer<'static> = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let suites = vec![provider::cipher_suite::TLS13_AES_128_GCM_SHA256];
    let provider = Arc::new(CryptoProvider { cipher_suites: suites, ..provider::default_provider() });
    let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    server.enable_secret_extraction = true;
    server.send_tls13_tickets = 0;
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.enable_secret_extraction = true;
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = UnbufferedClientConnection::new(Arc::new(client), name).unwrap();
    let mut server = ServerConnection::new(Arc::new(server)).unwrap();
    server.set_buffer_limit(None);
    let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
    loop {
        let UnbufferedStatus { discard, state } = client.process_tls_records(&mut to_client);
        let done = match state.unwrap() {
            ConnectionState::EncodeTlsData(mut record) => {
                let start = to_server.len();
                to_server.resize(start + 16_384, 0);
                let length = record.encode(&mut to_server[start..]).unwrap();
                to_server.truncate(start + length);
                false
            }
            ConnectionState::TransmitTlsData(transmit) => {
                transmit.done();
                server.read_tls(&mut &to_server[..]).unwrap();
                to_server.clear();
                server.process_new_packets().unwrap();
                false
            }
            ConnectionState::BlockedHandshake => {
                while server.wants_write() {
                    server.write_tls(&mut to_client).unwrap();
                }
                false
            }
            ConnectionState::WriteTraffic(_) => true,
            _ => panic!("the handshake went astray"),
        };
        to_client.drain(..discard);
        if done {
            return (client, server);
        }
    }
}

fn records(server: &mut ServerConnection) -> Vec<u8> {
    let mut records = Vec::with_capacity(CONTENT + (CONTENT >> 8));
    for _ in 0..CONTENT / SCRATCH {
        server.writer().write_all(&vec![7; SCRATCH]).unwrap();
        while server.wants_write() {
            server.write_tls(&mut records).unwrap();
        }
    }
    records
}

struct Keys {
    key: LessSafeKey,
    iv: [u8; 12],
    sequence: u64,
}

impl Keys {
    fn new(client: UnbufferedClientConnection) -> Keys {
        let (secrets, _kernel) = client.dangerous_into_kernel_connection().unwrap();
        let (sequence, ConnectionTrafficSecrets::Aes128Gcm { key, iv }) = secrets.rx else { panic!("another cipher") };
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, key.as_ref()).unwrap());
        Keys { key, iv: iv.as_ref().try_into().unwrap(), sequence }
    }

    fn nonce(&mut self) -> Nonce {
        let mut nonce = self.iv;
        for (byte, count) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= count;
        }
        self.sequence += 1;
        Nonce::assume_unique_for_key(nonce)
    }
}

/// Cuts what was received into pieces as the socket would bring them, and each into records.
fn each_record(records: &[u8], mut open: impl FnMut(&mut [u8])) -> Duration {
    let mut scratch = vec![0; SCRATCH + 20_000];
    let mut rest = records;
    let started = Instant::now();
    while !rest.is_empty() {
        let mut length = 0;
        while let Some(header) = rest.get(length..length + 5) {
            let record = 5 + usize::from(u16::from_be_bytes([header[3], header[4]]));
            if length + record > SCRATCH {
                break;
            }
            length += record;
        }
        let (piece, later) = rest.split_at(length);
        rest = later;
        // The kernel's copy.
        scratch[..length].copy_from_slice(piece);
        let mut at = 0;
        while at < length {
            let record = 5 + usize::from(u16::from_be_bytes([scratch[at + 3], scratch[at + 4]]));
            open(&mut scratch[at..at + record]);
            at += record;
        }
    }
    started.elapsed()
}

fn straight(destination: &mut [u8]) -> Duration {
    let (client, mut server) = session();
    let records = records(&mut server);
    let mut keys = Keys::new(client);
    let mut at = 0;
    each_record(&records, |record| {
        let (header, payload) = record.split_at(5);
        let (sealed, tag) = payload.split_at(payload.len() - 16);
        let nonce = keys.nonce();
        let content = sealed.len() - 1;
        if at + sealed.len() <= destination.len() {
            let into = &mut destination[at..at + sealed.len()];
            keys.key.open_separate_gather(nonce, Aad::from(header), sealed, tag, into).unwrap();
        } else {
            // The last: its type has no room.
            let mut whole = vec![0; sealed.len()];
            keys.key.open_separate_gather(nonce, Aad::from(header), sealed, tag, &mut whole).unwrap();
            destination[at..].copy_from_slice(&whole[..content]);
        }
        at += content;
    })
}

fn in_place_and_copied(destination: &mut [u8]) -> Duration {
    let (client, mut server) = session();
    let records = records(&mut server);
    let mut keys = Keys::new(client);
    let mut at = 0;
    each_record(&records, |record| {
        let (header, payload) = record.split_at_mut(5);
        let nonce = keys.nonce();
        let plain = keys.key.open_in_place(nonce, Aad::from(&*header), payload).unwrap();
        let content = plain.len() - 1;
        destination[at..at + content].copy_from_slice(&plain[..content]);
        at += content;
    })
}

fn by_rustls(destination: &mut [u8]) -> Duration {
    let (mut client, mut server) = session();
    let records = records(&mut server);
    let mut at = 0;
    each_record(&records, |record| {
        let status = client.process_tls_records(record);
        let ConnectionState::ReadTraffic(mut traffic) = status.state.unwrap() else { panic!("no content") };
        while let Some(content) = traffic.next_record() {
            let content = content.unwrap().payload;
            destination[at..at + content.len()].copy_from_slice(content);
            at += content.len();
        }
    })
}

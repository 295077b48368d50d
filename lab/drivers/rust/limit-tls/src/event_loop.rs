//! The connections of a round and the one thread that serves them.

use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use crate::Options;
use crate::connection::{Buffers, Connection, Progress, Target};
use crate::record::{FULL, OVERHEAD};
use crate::work::Work;

/// How long nothing may happen before every socket is looked at: bytes can lie under a mark that the
/// window can't grow to.
const QUIET: u16 = 200;

/// What a round moved.
#[derive(Default)]
pub struct Tally {
    pub bytes: u64,
    pub requests: u64,
    pub reconnects: u64,
}

pub struct EventLoop {
    target: Target,
    epoll: Epoll,
    connections: Vec<Option<Connection>>,
    /// The request that each connection carries.
    carried: Vec<Option<usize>>,
    buffers: Buffers,
    patience: Duration,
}

impl EventLoop {
    pub fn open(options: &Options, work: &Work) -> Result<EventLoop> {
        let resolved = (work.host.as_str(), work.port).to_socket_addrs();
        let address = resolved.ok().and_then(|mut found| found.next());
        let target = Target {
            address: address.with_context(|| format!("can't resolve {}", work.host))?,
            name: ServerName::try_from(work.host.clone())?,
            tls: Arc::new(configure(options)?),
            rcvlowat: usize::try_from(options.rcvlowat)?,
            rcvbuf: usize::try_from(options.rcvbuf)?,
            sndbuf: usize::try_from(options.sndbuf)?,
            seal: usize::try_from(options.seal)?,
        };
        let count = usize::from(options.connections);
        Ok(EventLoop {
            target,
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            connections: (0..count).map(|_| None).collect(),
            carried: vec![None; count],
            buffers: Buffers { scratch: vec![0; usize::try_from(options.scratch)?], side: vec![0; FULL + OVERHEAD] },
            patience: Duration::from_secs(options.timeout),
        })
    }

    /// Sends every request once and receives every answer.
    pub fn round(&mut self, work: &mut Work) -> Result<Tally> {
        let mut tally = Tally::default();
        let mut next = 0;
        for slot in 0..self.connections.len() {
            self.carry_next(slot, &mut next, work)?;
        }
        let mut events = [EpollEvent::empty(); 64];
        let mut moved = Instant::now();
        while self.carried.iter().any(Option::is_some) {
            let ready = match self.epoll.wait(&mut events, QUIET) {
                Err(Errno::EINTR) => 0,
                ready => ready.context("epoll_wait")?,
            };
            for event in &events[..ready] {
                let slot = usize::try_from(event.data())?;
                self.serve(slot, event.events(), &mut next, work, &mut tally)?;
            }
            if ready > 0 {
                moved = Instant::now();
                continue;
            }
            if moved.elapsed() > self.patience {
                bail!("nothing came for {} s", self.patience.as_secs());
            }
            for slot in 0..self.connections.len() {
                self.serve(slot, EpollFlags::EPOLLIN, &mut next, work, &mut tally)?;
            }
        }
        Ok(tally)
    }

    fn serve(
        &mut self,
        slot: usize,
        events: EpollFlags,
        next: &mut usize,
        work: &mut Work,
        tally: &mut Tally,
    ) -> Result<()> {
        let (Some(connection), Some(at)) = (&mut self.connections[slot], self.carried[slot]) else { return Ok(()) };
        if events.contains(EpollFlags::EPOLLOUT) {
            connection.send(work, &work.requests[at])?;
        }
        if !events.intersects(!EpollFlags::EPOLLOUT) {
            return Ok(());
        }
        match connection.receive(&self.target, &mut self.buffers, work, at)? {
            Progress::Blocked => Ok(()),
            Progress::Stale => {
                tally.reconnects += 1;
                self.connections[slot] = None;
                self.carry(slot, at, work)
            }
            Progress::Answered { close } => {
                tally.requests += 1;
                tally.bytes += work.requests[at].place.len() as u64;
                if close {
                    self.connections[slot] = None;
                }
                self.carry_next(slot, next, work)
            }
        }
    }

    fn carry_next(&mut self, slot: usize, next: &mut usize, work: &Work) -> Result<()> {
        self.carried[slot] = None;
        if *next == work.requests.len() {
            return Ok(());
        }
        *next += 1;
        self.carry(slot, *next - 1, work)
    }

    fn carry(&mut self, slot: usize, at: usize, work: &Work) -> Result<()> {
        let connection = match &mut self.connections[slot] {
            Some(connection) => connection,
            none => {
                let opened = Connection::open(&self.target)?;
                let wanted = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
                self.epoll.add(&opened.stream, EpollEvent::new(wanted, slot as u64)).context("epoll_ctl")?;
                none.insert(opened)
            }
        };
        self.carried[slot] = Some(at);
        connection.start();
        connection.send(work, &work.requests[at])?;
        Ok(())
    }
}

/// TLS 1.3 with AES-128-GCM and nothing else: the cipher that the engine prefers.
fn configure(options: &Options) -> Result<ClientConfig> {
    let suites = vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256];
    let provider = CryptoProvider { cipher_suites: suites, ..aws_lc_rs::default_provider() };
    let path = options.ca.display();
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(&options.ca).with_context(|| format!("can't read {path}"))? {
        roots.add(certificate.with_context(|| format!("a certificate in {path}"))?)?;
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.enable_secret_extraction = true;
    Ok(config)
}

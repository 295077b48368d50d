//! Connections kept between requests.
//!
//! The last one returned is the first one taken, so that a shrinking load lets the others grow old
//! and be closed. A connection is asked whether it is still open before it is handed out; one that
//! has been idle for longer than servers keep them is not asked but closed.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpStream;

use super::address::AddressBook;
use super::connection::{Connection, IDLE_FOR, Timeouts};
use super::endpoint::Authority;
use super::failure::NetFailure;
use super::proxy::Proxies;
use super::socket;
use super::tls::{TlsSettings, TlsStream, Trust};
use super::transport::Transport;
use crate::config::{Config, ProxyUrl};
use crate::pace::Bandwidth;

/// The least that one of several addresses is given to answer.
const LEAST_PATIENCE: Duration = Duration::from_secs(1);

/// Below this round trip the server is near, and a small send buffer holds all that is in flight.
const NEAR: Duration = Duration::from_millis(3);

/// The send buffer towards a near server. The kernel's own tuning grows it to megabytes a connection,
/// which pushes what is being sent out of the processor's cache: one GiB up on loopback took 0.20
/// core-seconds with it and 0.17 with this. A server far away needs the kernel's tuning: this much a
/// round trip would be its top speed.
const NEAR_SEND_BUFFER: usize = 512 << 10;

/// The receive buffer from a near server, or twice the low-water mark where that is more (the kernel
/// lowers a mark that is above half the buffer). It bounds what the kernel holds beside the process's
/// own memory: its own tuning goes up to `tcp_rmem`'s maximum. One GiB to a file on tmpfs took 0.46
/// core-seconds with it, 0.53 with 2 MiB and 0.57 with the kernel's tuning; to memory all are alike.
const NEAR_RECEIVE_BUFFER: usize = 4 << 20;

pub(crate) struct ConnectionPool {
    timeouts: Timeouts,
    trust: Trust,
    proxies: Proxies,
    low_water: u64,
    /// Idle connections kept for one authority.
    keep: usize,
    addresses: AddressBook,
    idle: Mutex<HashMap<Authority, Vec<Connection>>>,
    opened: AtomicU64,
    socket_memory: Arc<AtomicU64>,
    /// What the system allows a receive buffer to be set to; asking for more would get less than its
    /// own tuning gives.
    largest_receive_buffer: usize,
    bandwidth: Option<Arc<Bandwidth>>,
    /// Of sockets while bodies are limited, in bytes.
    limited_buffer: usize,
}

impl ConnectionPool {
    pub(crate) fn new(config: &Config) -> ConnectionPool {
        let tls = TlsSettings { ca_bundle: config.ca_bundle.clone(), verify: config.verify_tls };
        let https_proxy = config.https_proxy.as_ref().map(ProxyUrl::expose);
        ConnectionPool {
            timeouts: Timeouts {
                connect: config.connect_timeout,
                first_byte: config.first_byte_timeout,
                stall: config.stall_timeout,
            },
            trust: Trust::new(tls),
            proxies: Proxies::new(https_proxy, config.no_proxy.as_deref()),
            low_water: config.receive_low_water,
            keep: config.concurrency,
            addresses: AddressBook::default(),
            idle: Mutex::new(HashMap::new()),
            opened: AtomicU64::new(0),
            socket_memory: Arc::default(),
            largest_receive_buffer: socket::largest_receive_buffer(),
            bandwidth: config.bandwidth_limit.map(Bandwidth::new).map(Arc::new),
            limited_buffer: Bandwidth::socket_buffer(config.bandwidth_limit.unwrap_or(u64::MAX), config.concurrency),
        }
    }

    /// Trusts the authorities in this file, which a profile names, where nobody named others.
    pub(crate) fn fill_bundle(&self, path: &std::path::Path) {
        self.trust.fill_bundle(path);
    }

    /// How many connections have been made.
    pub(crate) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// What the kernel may hold for the open connections in both directions, in bytes, as it was when
    /// each was last made or returned.
    pub(crate) fn socket_memory(&self) -> u64 {
        self.socket_memory.load(Ordering::Relaxed)
    }

    /// How many connections are idle.
    pub(crate) fn idle(&self) -> usize {
        self.lock().values().map(Vec::len).sum()
    }

    /// An open connection: an idle one, or else a new one.
    pub(crate) async fn take(&self, authority: &Arc<Authority>) -> Result<Connection, NetFailure> {
        while let Some(mut connection) = self.pop(authority) {
            if connection.is_open() {
                return Ok(connection);
            }
        }
        // Boxed: most requests need no new connection, and should not carry the making of one.
        Box::pin(self.connect(authority)).await
    }

    /// A new connection, whatever is idle: for what a stale one could not do.
    pub(crate) async fn connect(&self, authority: &Arc<Authority>) -> Result<Connection, NetFailure> {
        let stream = match self.proxies.to(authority) {
            None => self.reach(authority).await?,
            Some(proxy) => {
                let mut stream = self.reach(&proxy.authority).await?;
                self.in_time("asking the proxy for a tunnel", proxy.tunnel(authority, &mut stream)).await?;
                stream
            }
        };
        self.opened.fetch_add(1, Ordering::Relaxed);
        let transport = if authority.secure { self.secure(authority, stream).await? } else { Transport::Plain(stream) };
        let share = SocketShare::new(Arc::clone(&self.socket_memory));
        let (low_water, bandwidth) = match &self.bandwidth {
            // Its turns are shorter than any mark worth setting.
            Some(bandwidth) => (0, Some(Arc::clone(bandwidth))),
            None => (self.low_water, None),
        };
        Ok(Connection::new(Arc::clone(authority), transport, self.timeouts, low_water, share, bandwidth))
    }

    /// Keeps the connection for another request, if another may follow on it.
    pub(crate) fn put_back(&self, mut connection: Connection) {
        if !connection.is_reusable() {
            return;
        }
        connection.count_socket_memory();
        let mut idle = self.lock();
        let kept = match idle.get_mut(&**connection.authority()) {
            Some(kept) => kept,
            None => idle.entry(Authority::clone(connection.authority())).or_default(),
        };
        if kept.len() < self.keep {
            kept.push(connection);
        }
    }

    /// Closes what has been idle for too long.
    pub(crate) fn close_idle(&self) {
        let mut idle = self.lock();
        for kept in idle.values_mut() {
            kept.retain(|connection| connection.idle_for() < IDLE_FOR);
        }
        idle.retain(|_, kept| !kept.is_empty());
    }

    fn pop(&self, authority: &Authority) -> Option<Connection> {
        self.lock().get_mut(authority)?.pop()
    }

    async fn secure(&self, authority: &Authority, stream: TcpStream) -> Result<Transport, NetFailure> {
        let connecting = TlsStream::connect(&self.trust, &authority.host, stream);
        Ok(Transport::Tls(Box::new(self.in_time("making the TLS handshake", connecting).await?)))
    }

    async fn in_time<T>(
        &self,
        during: &'static str,
        step: impl Future<Output = Result<T, NetFailure>>,
    ) -> Result<T, NetFailure> {
        let after = self.timeouts.connect;
        tokio::time::timeout(after, step).await.unwrap_or(Err(NetFailure::TimedOut { during, after }))
    }

    /// Connects to one of the name's addresses; when none can be reached, the name is asked for again
    /// the next time.
    async fn reach(&self, authority: &Authority) -> Result<TcpStream, NetFailure> {
        let reached = self.try_addresses(authority).await;
        if reached.is_err() {
            self.addresses.forget(authority);
        }
        reached
    }

    async fn try_addresses(&self, authority: &Authority) -> Result<TcpStream, NetFailure> {
        let addresses = self.in_time("looking up the name", self.addresses.addresses(authority)).await?;
        let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
        // One address that swallows packets must not use up the time of the others.
        let patience = (self.timeouts.connect / count).max(LEAST_PATIENCE.min(self.timeouts.connect));
        let mut last =
            NetFailure::Resolve { host: authority.host.clone(), source: io::Error::from(io::ErrorKind::NotFound) };
        for address in addresses {
            let connected = tokio::time::timeout(patience, TcpStream::connect(address)).await;
            match connected {
                Ok(Ok(stream)) => match self.prepare(&stream) {
                    Ok(()) => return Ok(stream),
                    Err(source) => last = NetFailure::Connect { address: address.to_string(), source },
                },
                Ok(Err(source)) => last = NetFailure::Connect { address: address.to_string(), source },
                Err(_) => last = NetFailure::TimedOut { during: "connecting", after: patience },
            }
        }
        Err(last)
    }

    fn prepare(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        if self.bandwidth.is_some() {
            let socket = socket2::SockRef::from(stream);
            socket.set_send_buffer_size(self.limited_buffer)?;
            return socket.set_recv_buffer_size(self.limited_buffer);
        }
        if socket::round_trip(stream).is_none_or(|round_trip| round_trip > NEAR) {
            return Ok(());
        }
        let socket = socket2::SockRef::from(stream);
        socket.set_send_buffer_size(NEAR_SEND_BUFFER)?;
        let receive = NEAR_RECEIVE_BUFFER.max(usize::try_from(self.low_water).unwrap_or(0) * 2);
        if receive <= self.largest_receive_buffer {
            socket.set_recv_buffer_size(receive)?;
        }
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Authority, Vec<Connection>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection's part in the count of socket memory; given back when the connection goes.
pub(super) struct SocketShare {
    total: Arc<AtomicU64>,
    bytes: u64,
}

impl SocketShare {
    fn new(total: Arc<AtomicU64>) -> SocketShare {
        SocketShare { total, bytes: 0 }
    }

    pub(super) fn set(&mut self, bytes: u64) {
        self.total.fetch_add(bytes, Ordering::Relaxed);
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for SocketShare {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

//! A server that is serving: what a test asks of it and does to it, and stopping it.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::connection;
use crate::model::fault::{Fault, Faults, Schedule};
use crate::model::line::Line;
use crate::protocol::Protocol;
use crate::service::{Service, Shared};
use crate::stats::{Counters, Stats};
use crate::store::Store;
use crate::store::bucket::Kind;

/// How long a stopping server lets answers under way come to their end.
const GRACE: Duration = Duration::from_secs(1);

/// The most connections at a time. Those beyond wait to be accepted until others end.
const MOST_CONNECTIONS: usize = 10_000;

/// A server that is serving. Dropping it stops it at once.
pub struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) ca_pem: Option<String>,
    pub(crate) protocol: Protocol,
    pub(crate) store: Arc<Store>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) accepting: Option<JoinHandle<()>>,
}

impl fmt::Debug for Running {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Running").field("endpoint", &self.endpoint()).finish_non_exhaustive()
    }
}

impl Running {
    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL, such as `http://127.0.0.1:9000`; `https://` where it serves TLS.
    pub fn endpoint(&self) -> String {
        let scheme = if self.ca_pem.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// What clients are to trust, in PEM: the authority that signed a generated certificate, or the given chain.
    /// Nothing where it serves plain HTTP.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        self.counters.read()
    }

    /// Sets its counts back to nothing.
    pub fn reset_stats(&self) {
        self.counters.reset();
    }

    /// Misbehaves so from now on, besides what it was already told.
    pub fn inject(&self, fault: Fault) {
        self.faults.arm(fault);
    }

    /// Misbehaves so from now on, and in no other way; what earlier faults counted is forgotten. Cheap: a test may
    /// run thousands of schedules on one server.
    pub fn set_faults(&self, schedule: Schedule) {
        self.faults.set(schedule);
    }

    /// Behaves again.
    pub fn clear_faults(&self) {
        self.faults.set(Schedule::default());
    }

    /// More keys that requests may be signed with; and a token that must come with them, where one is given.
    pub fn add_keys(&self, access_key: impl Into<String>, secret_key: impl Into<String>, token: Option<&str>) {
        self.protocol.keys.add(access_key.into(), secret_key.into(), token.map(str::to_owned));
    }

    /// Lets keys expire: requests signed with them are answered `ExpiredToken`.
    pub fn expire_keys(&self, access_key: &str) {
        self.protocol.keys.expire(access_key);
    }

    /// Lets every session of S3 Express expire.
    pub fn expire_sessions(&self) {
        self.protocol.keys.expire_sessions();
    }

    /// The bytes of an object as they are kept, past all faults. Nothing where there is no such object, or its bytes were
    /// dropped on arrival.
    pub async fn object(&self, bucket: &str, key: &str) -> Option<Vec<u8>> {
        let object = self.store.bucket(bucket)?.find(key)?;
        let mut reader = object.content.read(0..object.size).ok()?;
        let mut bytes = Vec::new();
        while let Some(frame) = reader.next().await {
            bytes.extend_from_slice(&frame.ok()?);
        }
        Some(bytes)
    }

    /// Puts an object, past all faults.
    ///
    /// # Errors
    /// A bucket that is not there or can't be written to.
    pub async fn put_object(&self, bucket: &str, key: &str, bytes: impl Into<Bytes>) -> io::Result<()> {
        self.protocol.store_bytes(bucket, key, bytes.into()).await
    }

    /// The multipart uploads that are neither completed nor aborted: their keys and ids.
    pub fn open_uploads(&self, bucket: &str) -> Vec<(String, String)> {
        let bucket = self.store.bucket(bucket);
        let Some(Kind::Stored(stored)) = bucket.as_ref().map(|bucket| &bucket.kind) else { return Vec::new() };
        stored.uploads.lock().after("", None).map(|(names, _)| names.clone()).collect()
    }

    /// Empties a bucket of its objects, versions and uploads; a synthetic one stays as it is.
    pub fn empty_bucket(&self, bucket: &str) {
        if let Some(Kind::Stored(stored)) = self.store.bucket(bucket).as_ref().map(|bucket| &bucket.kind) {
            stored.clear();
        }
    }

    /// Stops: accepts nothing more, lets answers under way finish for up to a second, then closes every connection.
    pub async fn stop(mut self) {
        let _ = self.stop.send(true);
        if let Some(accepting) = self.accepting.take() {
            // It ends by itself; that it panicked would have been reported where it did.
            let _ = accepting.await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(accepting) = &self.accepting {
            accepting.abort();
        }
    }
}

/// Takes connections until it is told to stop.
pub(crate) struct Accepting {
    pub(crate) listener: TcpListener,
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) control: bool,
    pub(crate) stopped: watch::Receiver<bool>,
}

impl Accepting {
    pub(crate) async fn run(mut self) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < MOST_CONNECTIONS => match accepted {
                    Ok((stream, peer)) => {
                        let control = self.control || peer.ip().is_loopback();
                        let service = Service { shared: self.shared.clone(), line: Arc::new(Line::default()), control };
                        connections.spawn(connection::serve(stream, self.tls.clone(), service, self.stopped.clone()));
                    }
                    Err(error) => {
                        // Out of file descriptors, most likely: others will be given back.
                        tracing::warn!(%error, "could not accept a connection");
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                },
                Some(_) = connections.join_next() => {}
                () = connection::told(&mut self.stopped) => break,
            }
        }
        drop(self.listener);
        let drained = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, drained).await.is_err() {
            connections.shutdown().await;
        }
    }
}

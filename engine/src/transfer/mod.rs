//! The verbs: each drives a plan through `pace` and `net`.
//!
//! One file a verb. [`Engine`] is what they share: where requests go and who signs them ([`place`]), the
//! connections, the memory and the budget. A verb is a builder; what it runs is plain async code over
//! [`request`], which sends one request and judges its answer. Bytes pass from the socket into
//! the slot that a part was given ([`part`]), and nowhere else.

pub(crate) mod begun_get;
mod body;
pub(crate) mod bucket;
pub(crate) mod checksum;
pub(crate) mod cleanup;
mod confirm;
pub(crate) mod copy;
pub(crate) mod copy_many;
mod crew;
pub(crate) mod delete;
mod discover;
pub(crate) mod file;
pub(crate) mod file_item;
pub(crate) mod get;
pub(crate) mod get_item;
pub(crate) mod get_many;
pub(crate) mod get_ranges;
mod getter;
pub(crate) mod head;
pub(crate) mod head_many;
pub(crate) mod list;
pub(crate) mod list_parts;
mod lost_answer;
pub(crate) mod many;
mod multipart;
mod oddities;
mod opening;
pub(crate) mod options;
mod ordered;
pub(crate) mod pages;
mod part;
pub(crate) mod parts;
mod place;
pub(crate) mod presign;
pub(crate) mod put;
pub(crate) mod put_many;
pub(crate) mod put_options;
mod put_stream;
pub(crate) mod raw;
mod read_options;
mod refusal;
mod remedy;
mod request;
pub(crate) mod resume;
pub(crate) mod stream;
mod upload;
pub(crate) mod upload_item;
pub(crate) mod uploads;
mod version;
mod workers;

use std::sync::{Arc, Weak};
use std::time::Duration;

use checksum::{Acceptance, Sizes};
use cleanup::Cleanups;
use file::FileThreads;
use oddities::Oddities;
pub(crate) use place::Places;

use crate::buffer;
use crate::config::Config;
use crate::credentials::{Clock, Identity};
use crate::error::Result;
use crate::metrics::{Counters, Metrics, Observer};
use crate::net::ConnectionPool;
use crate::pace::Pace;

/// How often idle connections and memory are looked through.
const TICK: Duration = Duration::from_secs(5);

/// What all verbs of one client share.
pub(crate) struct Engine {
    pub(crate) config: Config,
    pub(crate) places: Places,
    pub(crate) identity: Arc<Identity>,
    pub(crate) clock: Clock,
    pub(crate) connections: ConnectionPool,
    pub(crate) memory: buffer::Pool,
    pub(crate) files: FileThreads,
    pub(crate) pace: Pace,
    pub(crate) counters: Counters,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) cleanups: Cleanups,
    pub(crate) acceptance: Acceptance,
    pub(crate) oddities: Oddities,
    pub(crate) sizes: Sizes,
    ticking: std::sync::atomic::AtomicBool,
    housekeeping: std::sync::Mutex<Option<tokio::task::AbortHandle>>,
}

/// The housekeeper sleeps most of the time, and would be found by whoever looks for tasks that a client left behind.
impl Drop for Engine {
    fn drop(&mut self) {
        let housekeeping = self.housekeeping.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(task) = housekeeping.take() {
            task.abort();
        }
    }
}

impl Engine {
    pub(crate) fn new(
        config: Config,
        places: Places,
        identity: Identity,
        connections: ConnectionPool,
        memory: buffer::Pool,
        observer: Option<Arc<dyn Observer>>,
    ) -> Engine {
        Engine {
            pace: Pace::new(&config),
            config,
            places,
            identity: Arc::new(identity),
            clock: Clock::default(),
            connections,
            memory,
            files: FileThreads::default(),
            counters: Counters::default(),
            observer,
            cleanups: Cleanups::default(),
            acceptance: Acceptance::default(),
            oddities: Oddities::default(),
            sizes: Sizes::unknown(),
            ticking: std::sync::atomic::AtomicBool::new(false),
            housekeeping: std::sync::Mutex::default(),
        }
    }

    pub(crate) fn metrics(&self) -> Metrics {
        let memory = self.memory.stats();
        Metrics {
            connections_opened: self.connections.opened(),
            connections_idle: self.connections.idle() as u64,
            socket_memory: self.connections.socket_memory(),
            memory_in_use: memory.in_use as u64,
            memory_idle: memory.idle as u64,
            ..self.counters.snapshot()
        }
    }

    /// Starts the task that closes idle connections and gives back idle memory, once; it ends with
    /// the client.
    pub(crate) fn keep_house(self: &Arc<Engine>) {
        use std::sync::atomic::Ordering;
        if self.ticking.load(Ordering::Relaxed) || self.ticking.swap(true, Ordering::Relaxed) {
            return;
        }
        let housekeeper = Housekeeper(Arc::downgrade(self));
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(TICK).await;
                let Some(engine) = housekeeper.0.upgrade() else { return };
                engine.connections.close_idle();
                engine.memory.trim();
            }
        });
        let mut housekeeping = self.housekeeping.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *housekeeping = Some(task.abort_handle());
    }

    /// Waits for what is being cleaned up, for at most `patience`.
    pub(crate) async fn settle(&self, patience: Duration) -> Result<()> {
        use crate::error::{Error, ErrorKind};
        tokio::time::timeout(patience, self.cleanups.settled()).await.map_err(|_| {
            Error::new(ErrorKind::Timeout, format!("cleaning up took longer than {} ms", patience.as_millis()))
                .with_hint("multipart uploads may still be stored")
        })
    }
}

/// Lets another be started when its runtime ends before the client does.
struct Housekeeper(Weak<Engine>);

impl Drop for Housekeeper {
    fn drop(&mut self) {
        if let Some(engine) = self.0.upgrade() {
            engine.ticking.store(false, std::sync::atomic::Ordering::Relaxed);
        }
    }
}

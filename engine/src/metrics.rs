//! What the engine counts, and what it tells those who watch.
//!
//! Counters are relaxed atomics bumped once a request; an [`Observer`] is called once a request, and
//! costs nothing when there is none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counters of a client since it was made. Subtract two snapshots for an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Requests sent, retries included.
    pub requests: u64,
    /// Requests that were a second or later attempt.
    pub retries: u64,
    /// HEADs sent beside a download, for the checksum of its object; they are in `requests` too.
    pub checksum_heads: u64,
    /// Connections made.
    pub connections_opened: u64,
    /// Connections open and waiting for a request.
    pub connections_idle: u64,
    /// Bytes that the kernel may hold for the open connections, in both directions: not part of the
    /// process's resident size. As each connection was when it was made or last returned.
    pub socket_memory: u64,
    /// Bytes of bodies received into destinations.
    pub bytes_received: u64,
    /// Bytes of bodies sent.
    pub bytes_sent: u64,
    /// Bytes of pooled memory in use.
    pub memory_in_use: u64,
    /// Bytes of pooled memory kept for reuse.
    pub memory_idle: u64,
}

/// One finished request.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct RequestEvent {
    /// The verb that made it: `get`, `put`, `list`, …
    pub operation: &'static str,
    /// The HTTP status of the answer.
    pub status: u16,
    /// From the start of sending to the head of the answer.
    pub time_to_first_byte: Duration,
    /// From the start of sending to the last byte of the answer.
    pub total: Duration,
    /// Bytes of the body that moved.
    pub bytes: u64,
}

/// Is told of every request when it has finished. Called on the path of the data: be quick.
pub trait Observer: Send + Sync {
    /// One request has finished.
    fn request(&self, event: &RequestEvent);
}

/// A shared count of what has been done so far; cheap to clone, to be polled by a progress bar.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<ProgressCounts>);

#[derive(Debug, Default)]
struct ProgressCounts {
    bytes: AtomicU64,
    objects: AtomicU64,
    expected: AtomicU64,
}

impl Progress {
    /// Bytes that have reached their destination.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Objects that are complete.
    pub fn objects(&self) -> u64 {
        self.0.objects.load(Ordering::Relaxed)
    }

    /// Bytes that are known to be on their way or there: grows as sizes become known.
    pub fn expected(&self) -> u64 {
        self.0.expected.load(Ordering::Relaxed)
    }

    pub(crate) fn expect(&self, bytes: u64) {
        self.0.expected.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_object(&self) {
        self.0.objects.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) requests: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) checksum_heads: AtomicU64,
    pub(crate) bytes_received: AtomicU64,
    pub(crate) bytes_sent: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> Metrics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Metrics {
            requests: read(&self.requests),
            retries: read(&self.retries),
            checksum_heads: read(&self.checksum_heads),
            bytes_received: read(&self.bytes_received),
            bytes_sent: read(&self.bytes_sent),
            ..Metrics::default()
        }
    }
}

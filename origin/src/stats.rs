//! What the server has done so far, in numbers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::StatusCode;
use parking_lot::Mutex;
use serde::Serialize;

use crate::verb::Verb;

/// Running counts; shared by every connection.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    requests: [AtomicU64; Verb::ALL.len()],
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    client_errors: AtomicU64,
    server_errors: AtomicU64,
    throttled: AtomicU64,
    accepted: AtomicU64,
    open: AtomicU64,
    open_peak: AtomicU64,
    /// Connections with a request since the last reset, and how often there was one: each connection notes the reset
    /// that it was last counted after.
    used: AtomicU64,
    resets: AtomicU64,
    in_flight: AtomicU64,
    in_flight_peak: AtomicU64,
    handshakes_full: AtomicU64,
    handshakes_resumed: AtomicU64,
    handshakes_failed: AtomicU64,
    faults: Mutex<BTreeMap<&'static str, u64>>,
}

/// What the server has done since it started, or since its counts were last reset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// Requests by verb, those with a fault included; verbs that were never asked for are left out.
    pub requests: BTreeMap<&'static str, u64>,
    /// All requests, those to the control endpoints left out.
    pub requests_total: u64,
    /// Bytes of HTTP received from clients, heads included.
    pub bytes_in: u64,
    /// Bytes of HTTP sent to clients, heads included.
    pub bytes_out: u64,
    /// Answers with a status of 400 to 499.
    pub client_errors: u64,
    /// Answers with a status of 500 to 599.
    pub server_errors: u64,
    /// Requests answered 503 because their prefix had too many.
    pub throttled: u64,
    /// Connections accepted.
    pub connections_accepted: u64,
    /// Connections open now: a reset leaves this one as it is.
    pub connections_open: u64,
    /// The most connections that were open at once.
    pub connections_open_peak: u64,
    /// Connections that a request came on, whenever they were opened.
    pub connections_used: u64,
    /// Requests in flight now, from a request's head until the last of its answer is given to be sent: a reset leaves
    /// this one as it is. Those to the control endpoints are left out.
    pub requests_in_flight: u64,
    /// The most requests that were in flight at once.
    pub requests_in_flight_peak: u64,
    /// TLS handshakes with a certificate and a key exchange.
    pub tls_handshakes_full: u64,
    /// TLS handshakes that took up an earlier session.
    pub tls_handshakes_resumed: u64,
    /// TLS handshakes that came to nothing: most often a client that does not trust the certificate.
    pub tls_handshakes_failed: u64,
    /// Faults that met a request, by the name of their action.
    pub faults: BTreeMap<&'static str, u64>,
}

impl Stats {
    /// Requests of one verb.
    pub fn count(&self, verb: Verb) -> u64 {
        self.requests.get(verb.name()).copied().unwrap_or(0)
    }
}

impl Counters {
    pub(crate) fn request(&self, verb: Verb) {
        self.requests[verb as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn answered(&self, status: StatusCode) {
        if status.is_client_error() {
            self.client_errors.fetch_add(1, Relaxed);
        } else if status.is_server_error() {
            self.server_errors.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn throttled(&self) {
        self.throttled.fetch_add(1, Relaxed);
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.bytes_in.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.bytes_out.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn opened(&self) {
        self.accepted.fetch_add(1, Relaxed);
        up(&self.open, &self.open_peak);
    }

    /// A request came on a connection, which keeps `counted` for as long as it is open.
    pub(crate) fn used(&self, counted: &AtomicU64) {
        let now = self.resets.load(Relaxed) + 1;
        if counted.swap(now, Relaxed) != now {
            self.used.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn closed(&self) {
        self.open.fetch_sub(1, Relaxed);
    }

    pub(crate) fn took_off(&self) {
        up(&self.in_flight, &self.in_flight_peak);
    }

    pub(crate) fn landed(&self) {
        self.in_flight.fetch_sub(1, Relaxed);
    }

    pub(crate) fn shook_hands(&self, resumed: bool) {
        let count = if resumed { &self.handshakes_resumed } else { &self.handshakes_full };
        count.fetch_add(1, Relaxed);
    }

    pub(crate) fn handshake_failed(&self) {
        self.handshakes_failed.fetch_add(1, Relaxed);
    }

    pub(crate) fn fault(&self, name: &'static str) {
        *self.faults.lock().entry(name).or_default() += 1;
    }

    pub(crate) fn read(&self) -> Stats {
        let counts = Verb::ALL.iter().zip(&self.requests).map(|(verb, count)| (verb.name(), count.load(Relaxed)));
        let requests: BTreeMap<_, _> = counts.filter(|(_, count)| *count > 0).collect();
        Stats {
            requests_total: requests.values().sum(),
            requests,
            bytes_in: self.bytes_in.load(Relaxed),
            bytes_out: self.bytes_out.load(Relaxed),
            client_errors: self.client_errors.load(Relaxed),
            server_errors: self.server_errors.load(Relaxed),
            throttled: self.throttled.load(Relaxed),
            connections_accepted: self.accepted.load(Relaxed),
            connections_open: self.open.load(Relaxed),
            connections_open_peak: self.open_peak.load(Relaxed),
            connections_used: self.used.load(Relaxed),
            requests_in_flight: self.in_flight.load(Relaxed),
            requests_in_flight_peak: self.in_flight_peak.load(Relaxed),
            tls_handshakes_full: self.handshakes_full.load(Relaxed),
            tls_handshakes_resumed: self.handshakes_resumed.load(Relaxed),
            tls_handshakes_failed: self.handshakes_failed.load(Relaxed),
            faults: self.faults.lock().clone(),
        }
    }

    pub(crate) fn reset(&self) {
        let counts = [
            &self.bytes_in,
            &self.bytes_out,
            &self.client_errors,
            &self.server_errors,
            &self.throttled,
            &self.accepted,
            &self.used,
            &self.handshakes_full,
            &self.handshakes_resumed,
            &self.handshakes_failed,
        ];
        for count in counts.into_iter().chain(&self.requests) {
            count.store(0, Relaxed);
        }
        self.resets.fetch_add(1, Relaxed);
        // What is open or in flight goes on, and is the most since.
        self.open_peak.store(self.open.load(Relaxed), Relaxed);
        self.in_flight_peak.store(self.in_flight.load(Relaxed), Relaxed);
        self.faults.lock().clear();
    }
}

/// Counts one more, and the most that there were.
fn up(count: &AtomicU64, peak: &AtomicU64) {
    peak.fetch_max(count.fetch_add(1, Relaxed) + 1, Relaxed);
}

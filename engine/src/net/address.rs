//! Names to addresses: all of them, each connection starting at the next one.
//!
//! A name is looked up by one task at a time; whoever else wants it meanwhile waits for that answer. What
//! has not been asked for in a while is forgotten when something new is learned: with a host name for
//! every bucket there is one entry for every bucket.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::endpoint::Authority;
use super::failure::NetFailure;

/// S3 renews the addresses behind a name every few seconds; asking once a connection would put the
/// resolver on the path of every one of them.
const FRESH_FOR: Duration = Duration::from_secs(5);

/// What is older is dropped. Until then a name keeps its turn among the addresses.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// The addresses of the names in use.
#[derive(Default)]
pub(super) struct AddressBook(Mutex<HashMap<Authority, Entry>>);

struct Entry {
    addresses: Vec<SocketAddr>,
    next: usize,
    /// `None` before the first answer, and after a failed connection.
    resolved: Option<Instant>,
    /// Held by whoever looks the name up.
    looking_up: Arc<tokio::sync::Mutex<()>>,
    /// When somebody last wanted it.
    wanted: Instant,
}

impl Entry {
    fn new() -> Entry {
        Entry { addresses: Vec::new(), next: 0, resolved: None, looking_up: Arc::default(), wanted: Instant::now() }
    }

    /// The addresses, beginning with the one whose turn it is, while they are fresh.
    fn take_turn(&mut self) -> Option<Vec<SocketAddr>> {
        self.wanted = Instant::now();
        if self.addresses.is_empty() || self.resolved.is_none_or(|at| at.elapsed() > FRESH_FOR) {
            return None;
        }
        let mut addresses = self.addresses.clone();
        let start = self.next % addresses.len();
        self.next = self.next.wrapping_add(1);
        addresses.rotate_left(start);
        Some(addresses)
    }
}

impl AddressBook {
    /// Every address of the name, rotated so that connections spread over them. The caller bounds its time.
    pub(super) async fn addresses(&self, authority: &Authority) -> Result<Vec<SocketAddr>, NetFailure> {
        let look_up = async || {
            let found = tokio::net::lookup_host((authority.host.as_str(), authority.port)).await?;
            Ok(found.collect())
        };
        self.addresses_by(authority, look_up).await
    }

    async fn addresses_by(
        &self,
        authority: &Authority,
        look_up: impl AsyncFnOnce() -> io::Result<Vec<SocketAddr>>,
    ) -> Result<Vec<SocketAddr>, NetFailure> {
        let looking_up = match self.known(authority) {
            Ok(known) => return Ok(known),
            Err(looking_up) => looking_up,
        };
        let _turn = looking_up.lock().await;
        // Whoever had the turn before may have found it.
        if let Ok(known) = self.known(authority) {
            return Ok(known);
        }
        let fail = |source| NetFailure::Resolve { host: authority.host.clone(), source };
        let found = look_up().await.map_err(fail)?;
        if found.is_empty() {
            return Err(fail(io::Error::new(io::ErrorKind::NotFound, "it has no address")));
        }
        self.learn(authority, found.clone());
        Ok(self.known(authority).unwrap_or(found))
    }

    /// After a failed connection the name is asked for again.
    pub(super) fn forget(&self, authority: &Authority) {
        if let Some(entry) = self.lock().get_mut(authority) {
            entry.resolved = None;
        }
    }

    /// The addresses, or else the turn to look them up.
    fn known(&self, authority: &Authority) -> Result<Vec<SocketAddr>, Arc<tokio::sync::Mutex<()>>> {
        let mut book = self.lock();
        let entry = match book.get_mut(authority) {
            Some(entry) => entry,
            None => book.entry(authority.clone()).or_insert_with(Entry::new),
        };
        entry.take_turn().ok_or_else(|| Arc::clone(&entry.looking_up))
    }

    fn learn(&self, authority: &Authority, addresses: Vec<SocketAddr>) {
        let mut book = self.lock();
        book.retain(|name, entry| name == authority || entry.wanted.elapsed() < KEPT_FOR);
        let entry = book.entry(authority.clone()).or_insert_with(Entry::new);
        entry.addresses = addresses;
        entry.resolved = Some(Instant::now());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Authority, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn name(host: &str) -> Authority {
        Authority { host: host.to_owned(), port: 443, secure: true }
    }

    fn three() -> Vec<SocketAddr> {
        (1..=3).map(|last| SocketAddr::from(([10, 0, 0, last], 443))).collect()
    }

    fn book(age: Duration) -> (AddressBook, Authority) {
        let (book, name) = (AddressBook::default(), name("bucket.example"));
        let before = Instant::now().checked_sub(age).unwrap();
        let entry = Entry { addresses: three(), resolved: Some(before), wanted: before, ..Entry::new() };
        book.lock().insert(name.clone(), entry);
        (book, name)
    }

    #[tokio::test]
    async fn connections_begin_at_each_address_in_turn_and_know_them_all() {
        let (book, name) = book(Duration::ZERO);
        let mut firsts = Vec::new();
        for _ in 0..6 {
            let addresses = book.addresses(&name).await.unwrap();
            assert_eq!(addresses.len(), 3, "the others are for when the first is down");
            firsts.push(addresses[0].ip().to_string());
        }
        assert_eq!(firsts, ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.1", "10.0.0.2", "10.0.0.3"]);
    }

    #[tokio::test]
    async fn a_cold_start_looks_a_name_up_once_and_still_spreads() {
        let (book, name) = (AddressBook::default(), name("bucket.example"));
        let lookups = Cell::new(0);
        let look_up = async || {
            lookups.set(lookups.get() + 1);
            tokio::task::yield_now().await;
            Ok(three())
        };
        let find = async || book.addresses_by(&name, look_up).await.unwrap()[0].to_string();
        let (a, b, c, d, e, f) = tokio::join!(find(), find(), find(), find(), find(), find());
        let mut firsts = [a, b, c, d, e, f];
        firsts.sort();
        assert_eq!(lookups.get(), 1);
        let each = ["10.0.0.1:443", "10.0.0.2:443", "10.0.0.3:443"];
        assert_eq!(firsts.to_vec(), each.iter().flat_map(|address| [*address; 2]).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_name_that_is_looked_up_anew_keeps_its_turn() {
        let (book, name) = book(FRESH_FOR + Duration::from_millis(1));
        book.lock().get_mut(&name).unwrap().next = 1;
        let found = book.addresses_by(&name, async || Ok(three())).await.unwrap();
        assert_eq!(found[0].ip().to_string(), "10.0.0.2");
    }

    #[tokio::test]
    async fn names_that_nobody_wants_any_more_are_dropped() {
        let (book, old) = book(KEPT_FOR + Duration::from_millis(1));
        book.addresses_by(&name("other.example"), async || Ok(three())).await.unwrap();
        assert!(!book.lock().contains_key(&old));
        assert_eq!(book.lock().len(), 1);
    }

    #[test]
    fn addresses_grow_old_and_are_forgotten_after_a_failure() {
        let (old, name) = book(FRESH_FOR + Duration::from_millis(1));
        assert!(old.known(&name).is_err());
        let (fresh, name) = book(Duration::ZERO);
        assert!(fresh.known(&name).is_ok());
        fresh.forget(&name);
        assert!(fresh.known(&name).is_err());
    }
}

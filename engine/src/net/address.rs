//! Names to addresses: all of them, each connection starting at the next one.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::endpoint::Authority;
use super::failure::NetFailure;

/// S3 renews the addresses behind a name every few seconds; asking once a connection would put the
/// resolver on the path of every one of them.
const FRESH_FOR: Duration = Duration::from_secs(5);

/// The addresses of the names in use.
#[derive(Default)]
pub(super) struct AddressBook(Mutex<HashMap<Authority, Entry>>);

struct Entry {
    addresses: Vec<SocketAddr>,
    next: usize,
    resolved: Instant,
}

impl AddressBook {
    /// Every address of the name, rotated so that connections spread over them.
    pub(super) async fn addresses(&self, authority: &Authority) -> Result<Vec<SocketAddr>, NetFailure> {
        if let Some(known) = self.known(authority) {
            return Ok(known);
        }
        let fail = |source| NetFailure::Resolve { host: authority.host.clone(), source };
        let found: Vec<SocketAddr> =
            tokio::net::lookup_host((authority.host.as_str(), authority.port)).await.map_err(fail)?.collect();
        if found.is_empty() {
            return Err(fail(io::Error::new(io::ErrorKind::NotFound, "it has no address")));
        }
        let entry = Entry { addresses: found.clone(), next: 1, resolved: Instant::now() };
        self.lock().insert(authority.clone(), entry);
        Ok(found)
    }

    /// After a failed connection the name is asked for again.
    pub(super) fn forget(&self, authority: &Authority) {
        self.lock().remove(authority);
    }

    fn known(&self, authority: &Authority) -> Option<Vec<SocketAddr>> {
        let mut book = self.lock();
        let entry = book.get_mut(authority)?;
        if entry.resolved.elapsed() > FRESH_FOR {
            return None;
        }
        let mut addresses = entry.addresses.clone();
        let start = entry.next % addresses.len();
        entry.next = entry.next.wrapping_add(1);
        addresses.rotate_left(start);
        Some(addresses)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Authority, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(age: Duration) -> (AddressBook, Authority) {
        let book = AddressBook::default();
        let name = Authority { host: "bucket.example".to_owned(), port: 443, secure: true };
        let addresses = (1..=3).map(|last| SocketAddr::from(([10, 0, 0, last], 443))).collect();
        let resolved = Instant::now().checked_sub(age).unwrap();
        book.lock().insert(name.clone(), Entry { addresses, next: 0, resolved });
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

    #[test]
    fn addresses_grow_old_and_are_forgotten_after_a_failure() {
        let (old, name) = book(FRESH_FOR + Duration::from_millis(1));
        assert!(old.known(&name).is_none());
        let (fresh, name) = book(Duration::ZERO);
        assert!(fresh.known(&name).is_some());
        fresh.forget(&name);
        assert!(fresh.known(&name).is_none());
    }
}

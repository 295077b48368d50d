//! The pool of memory, and the destinations made of it.

use std::time::Duration;

use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread;

use crate::buffer::{Pool, PoolConfig, lend_blocking};
use crate::{Check, Orders};

const SMALL: usize = 4 << 10;
const LARGE: usize = 4 << 20;
/// No order takes so long.
const NEVER: Duration = Duration::from_secs(24 * 3600);

pub(crate) const CHECKS: &[Check] = &[
    Check { name: "pieces of a slab are nobody else's and all come back", orders: Orders::All, body: pieces },
    Check { name: "blocks are used again or unmapped, and counted", orders: Orders::All, body: blocks },
    Check { name: "what is trimmed meanwhile is in nobody's hands", orders: Orders::Random, body: trimmed },
    Check { name: "a target freezes whole or not at all", orders: Orders::All, body: freezing },
    Check { name: "lending ends after the last slot", orders: Orders::All, body: lending },
];

fn pool(retain_bytes: usize, idle: Duration) -> Pool {
    Pool::new(PoolConfig { retain_bytes, idle, huge_pages: false })
}

/// Takes memory, marks its first bytes, and sees them unchanged when others have had their turns.
fn use_some(pool: &Pool, length: usize, mark: u8) {
    let mut target = pool.reserve(length).expect("memory");
    let mut slot = target.whole();
    let mut rest = slot.split_to(64);
    assert_eq!(rest.put_slice(&[mark; 64]), 64);
    thread::yield_now();
    assert_eq!(rest.filled(), [mark; 64], "somebody else wrote here");
    drop((rest, slot));
    assert!(target.freeze().is_err(), "bytes that nobody wrote were handed out");
}

fn in_two_threads(pool: &Pool, length: usize) {
    let others = pool.clone();
    let other = thread::spawn(move || use_some(&others, length, 2));
    use_some(pool, length, 1);
    other.join().expect("the other thread");
}

fn pieces() {
    let pool = pool(usize::MAX, NEVER);
    in_two_threads(&pool, SMALL);
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.idle), (0, stats.mapped), "memory is missing");
    assert!(stats.mapped > 0);
}

fn blocks() {
    // Room for one of the two: the other goes back at once.
    let pool = pool(LARGE, NEVER);
    in_two_threads(&pool, LARGE);
    let stats = pool.stats();
    assert_eq!(stats.in_use, 0);
    assert!(stats.mapped <= LARGE, "{stats:?}");
    assert_eq!(stats.idle, stats.mapped);
}

fn trimmed() {
    let pool = pool(usize::MAX, Duration::ZERO);
    let users = [SMALL, LARGE, SMALL].map(|length| {
        let pool = pool.clone();
        thread::spawn(move || {
            use_some(&pool, length, length as u8);
            use_some(&pool, length, 7);
        })
    });
    pool.trim();
    pool.trim();
    for user in users {
        user.join().expect("a user");
    }
    pool.trim();
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.mapped), (0, 0), "{stats:?}");
}

fn freezing() {
    let pool = pool(usize::MAX, NEVER);
    let mut target = pool.reserve(128).expect("memory");
    let mut second = target.whole();
    let mut first = second.split_to(64);
    let filler = thread::spawn(move || {
        assert_eq!(first.put_slice(&[1; 64]), 64);
        drop(first);
    });
    assert_eq!(second.put_slice(&[2; 64]), 64);
    drop(second);
    if let Ok(buffer) = target.freeze() {
        assert_eq!(buffer[..64], [1; 64]);
        assert_eq!(buffer[64..], [2; 64]);
    }
    filler.join().expect("the filler");
}

fn lending() {
    let done = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&done);
    let mut memory = [0u8; 8];
    lend_blocking(&mut memory, |mut slot| {
        thread::spawn(move || {
            assert_eq!(slot.put_slice(&[9; 8]), 8);
            seen.store(true, Ordering::SeqCst);
            drop(slot);
        });
    });
    assert!(done.load(Ordering::SeqCst), "the memory came back while it could still be written");
    assert_eq!(memory, [9; 8]);
}

//! The pool against what it promises: reuse, giving back, and no byte in two hands.

use super::class;
use super::*;
use proptest::prelude::*;
use std::io;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(3_600);

fn pool(retain_bytes: usize, idle: Duration) -> Pool {
    Pool::new(PoolConfig { retain_bytes, idle, huge_pages: true })
}

/// The whole slot, filled with `stamp`.
fn stamped(target: &mut Target, stamp: u8) -> Slot {
    let mut slot = target.whole();
    while !slot.is_full() {
        assert!(slot.put_slice(&[stamp; 4_096]) > 0);
    }
    slot
}

fn is_all(bytes: &[u8], stamp: u8) -> bool {
    let page = [stamp; 4_096];
    bytes.chunks(page.len()).all(|chunk| chunk == &page[..chunk.len()])
}

#[test]
fn memory_is_used_again() {
    let pool = pool(256 << 20, LONG);
    for len in [4 << 10, 64 << 10, 1 << 20, (8 << 20) - 5, 33 << 20] {
        let mut target = pool.reserve(len).unwrap();
        let mut slot = target.whole();
        assert_eq!(slot.put_slice(b"here"), 4);
        let address = slot.filled().as_ptr();
        drop((slot, target));
        let before = pool.stats();
        assert_eq!((before.in_use, before.idle), (0, before.mapped));
        let mut again = pool.reserve(len - 3).unwrap();
        assert_eq!(again.whole().filled().as_ptr(), address);
        let after = pool.stats();
        assert_eq!(after.mapped, before.mapped);
        assert!(after.in_use >= len && after.in_use + after.idle == after.mapped);
    }
}

#[test]
fn a_larger_block_serves_within_bounds_and_the_best_one_first() {
    let pool = pool(1 << 30, LONG);
    let [mut small, mut large] = [40 << 20, 48 << 20].map(|len| pool.reserve(len).unwrap());
    let (small_at, large_at) = (small.whole().filled().as_ptr(), large.whole().filled().as_ptr());
    drop((small, large));
    let mut first = pool.reserve(39 << 20).unwrap();
    assert_eq!(first.whole().filled().as_ptr(), small_at);
    let mut second = pool.reserve(39 << 20).unwrap();
    assert_eq!(second.whole().filled().as_ptr(), large_at);
    drop((first, second));
    let mapped = pool.stats().mapped;
    // A tenth of a block is no use of it: the rest could serve nobody.
    let _tenth = pool.reserve(4 << 20).unwrap();
    assert_eq!(pool.stats().mapped, mapped + (4 << 20));
}

#[test]
fn full_slabs_give_nothing_more() {
    let pool = pool(1 << 30, LONG);
    for len in [5_000, 100_000, 1 << 20] {
        let class = class::of(len);
        let pieces = class::slab(class) / class::size(class);
        // Twice: fresh pieces, and ones that came back.
        for _ in 0..2 {
            let mut held: Vec<_> = (0..2 * pieces + 1).map(|_| pool.reserve(len).unwrap()).collect();
            let mut starts: Vec<_> = held.iter_mut().map(|target| target.whole().filled().as_ptr().addr()).collect();
            starts.sort_unstable();
            assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= len));
            assert_eq!(pool.stats().mapped, 3 * class::slab(class));
        }
        pool.trim_at(Instant::now() + LONG);
    }
}

#[test]
fn going_back_and_forth_keeps_one_slab_and_one_block() {
    let pool = pool(32 << 20, LONG);
    for _ in 0..50 {
        drop((pool.reserve(100_000).unwrap(), pool.reserve(8 << 20).unwrap()));
        assert_eq!(pool.stats().idle, 24 << 20);
    }
}

#[test]
fn tiny_and_empty_lengths_map_nothing() {
    let pool = pool(1 << 30, LONG);
    let mut held = [0, 1, class::TINY_MAX].map(|len| pool.reserve(len).unwrap());
    for target in &mut held {
        let len = target.len();
        assert_eq!(stamped(target, 1).filled(), vec![1; len]);
    }
    assert_eq!(pool.stats().mapped, 0);
}

#[test]
fn what_is_beyond_the_bound_goes_back_at_once() {
    let pool = pool(20 << 20, LONG);
    let held: Vec<_> = (0..4).map(|_| pool.reserve(8 << 20).unwrap()).collect();
    assert_eq!(pool.stats().in_use, 32 << 20);
    drop(held);
    assert_eq!((pool.stats().in_use, pool.stats().idle), (0, 16 << 20));
    // Larger than the bound alone: it leaves the others in place.
    drop(pool.reserve(24 << 20).unwrap());
    assert_eq!(pool.stats().idle, 16 << 20);
    // The oldest blocks make room for what came back last.
    drop(pool.reserve(14 << 20).unwrap());
    assert_eq!(pool.stats().idle, 14 << 20);
    let slabs: Vec<_> = (0..24).map(|_| pool.reserve(1 << 20).unwrap()).collect();
    drop(slabs);
    assert!(pool.stats().idle <= 20 << 20, "{:?}", pool.stats());
}

#[test]
fn trimming_gives_back_what_is_idle_and_nothing_else() {
    let pool = pool(1 << 30, LONG);
    let mut kept = pool.reserve(100_000).unwrap();
    let slot = stamped(&mut kept, 7);
    let begin = Instant::now();
    drop([5_000, 100_000, 9 << 20].map(|len| pool.reserve(len).unwrap()));
    let full = pool.stats();
    pool.trim_at(begin + LONG - Duration::from_millis(1));
    assert_eq!(pool.stats(), full, "not idle for long enough");
    pool.trim_at(Instant::now() + LONG);
    // The slab that holds the one in use stays, whole.
    let slab = class::slab(class::of(100_000));
    assert_eq!(pool.stats().mapped, slab);
    assert!(is_all(slot.filled(), 7));
    drop((slot, kept));
    pool.trim_at(Instant::now() + LONG);
    assert_eq!(pool.stats().mapped, 0);
}

#[test]
fn memory_that_comes_back_takes_the_old_along() {
    let pool = pool(1 << 30, Duration::from_millis(5));
    drop(pool.reserve(100_000).unwrap());
    drop(pool.reserve(9 << 20).unwrap());
    std::thread::sleep(Duration::from_millis(12));
    drop(pool.reserve(5_000).unwrap());
    assert_eq!(pool.stats().mapped, class::slab(class::of(5_000)));
}

#[test]
fn refusal_is_an_error_with_the_size() {
    let pool = pool(1 << 30, LONG);
    drop(pool.reserve(8 << 20).unwrap());
    for len in [usize::MAX, isize::MAX as usize, 1 << 46] {
        if cfg!(miri) && len == 1 << 46 {
            continue;
        }
        let error = pool.reserve(len).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        assert!(error.to_string().contains(&len.to_string()), "{error}");
    }
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.mapped), (0, 0), "all idle memory was tried");
    assert!(pool.reserve(8 << 20).is_ok());
}

#[test]
fn memory_outlives_the_pool_handle() {
    let pool = pool(1 << 30, LONG);
    let mut target = pool.reserve(70_000).unwrap();
    drop(pool);
    drop(stamped(&mut target, 4));
    assert!(is_all(&target.freeze().unwrap(), 4));
}

#[test]
fn threads_share_a_pool_without_sharing_memory() {
    let pool = pool(32 << 20, Duration::ZERO);
    let rounds = if cfg!(miri) { 6 } else { 3_000 };
    std::thread::scope(|threads| {
        for id in 0..4u8 {
            let pool = pool.clone();
            threads.spawn(move || {
                let mut held = std::collections::VecDeque::new();
                for round in 0..rounds {
                    let len = [3_000, 9_000, 70_000, 3 << 20][(round + usize::from(id)) % 4];
                    let mut target = pool.reserve(len).unwrap();
                    let mut slot = target.whole();
                    let mark = [id; 3_000];
                    assert_eq!(slot.put_slice(&mark), mark.len());
                    held.push_back((target, slot));
                    if held.len() > 5 {
                        let (_, slot) = held.pop_front().unwrap();
                        assert_eq!(slot.filled(), mark);
                    }
                    if round % 64 == 0 {
                        pool.trim();
                    }
                }
            });
        }
    });
    let stats = pool.stats();
    assert_eq!(stats.in_use, 0);
    std::thread::sleep(Duration::from_millis(1));
    pool.trim();
    assert_eq!(pool.stats().mapped, 0);
}

#[derive(Debug, Clone)]
enum Step {
    Reserve(usize),
    /// Fill the pending target that this picks, and freeze it.
    Freeze(usize),
    /// Drop the pending target or the buffer that this picks.
    Release(usize),
    Trim,
}

fn step() -> impl Strategy<Value = Step> {
    let largest = if cfg!(miri) { 12_000 } else { 6 << 20 };
    let len = prop_oneof![
        1 => 0..4_096usize,
        4 => 2_048..100_000usize.min(largest),
        1 => 0..largest,
    ];
    prop_oneof![
        4 => len.prop_map(Step::Reserve),
        3 => any::<usize>().prop_map(Step::Freeze),
        3 => any::<usize>().prop_map(Step::Release),
        1 => Just(Step::Trim),
    ]
}

enum Held {
    Pending(Target, Slot),
    Frozen(Buffer),
}

fn check(held: &[(u8, Held)]) {
    for (stamp, one) in held {
        let bytes = match one {
            Held::Pending(_, slot) => slot.filled(),
            Held::Frozen(buffer) => buffer,
        };
        assert!(is_all(bytes, *stamp));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 3 } else { 64 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Every buffer carries a stamp of its own over all its bytes; memory in two hands would carry
    /// the wrong one.
    #[test]
    fn no_byte_is_in_two_hands(
        steps in prop::collection::vec(step(), 0..if cfg!(miri) { 25 } else { 80 }),
        retain in prop_oneof![Just(0usize), Just(4 << 20), Just(1 << 30)],
    ) {
        let pool = pool(retain, Duration::ZERO);
        let mut held: Vec<(u8, Held)> = Vec::new();
        for (index, step) in steps.into_iter().enumerate() {
            let stamp = index as u8;
            match step {
                Step::Reserve(len) => {
                    let mut target = pool.reserve(len).unwrap();
                    let slot = stamped(&mut target, stamp);
                    held.push((stamp, Held::Pending(target, slot)));
                }
                Step::Freeze(pick) if !held.is_empty() => {
                    let pick = pick % held.len();
                    let (stamp, one) = held.swap_remove(pick);
                    let one = match one {
                        Held::Pending(target, slot) => {
                            drop(slot);
                            Held::Frozen(target.freeze().unwrap())
                        }
                        frozen => frozen,
                    };
                    held.push((stamp, one));
                }
                Step::Release(pick) if !held.is_empty() => {
                    let pick = pick % held.len();
                    held.swap_remove(pick);
                }
                Step::Trim => pool.trim(),
                _ => {}
            }
            let stats = pool.stats();
            let len: usize = held.iter().map(|(_, one)| match one {
                Held::Pending(target, _) => target.len(),
                Held::Frozen(buffer) => buffer.len(),
            }).filter(|&len| len > class::TINY_MAX).sum();
            prop_assert!(stats.in_use >= len && stats.mapped >= stats.in_use);
            check(&held);
        }
        held.clear();
        pool.trim();
        let stats = pool.stats();
        prop_assert_eq!((stats.in_use, stats.mapped), (0, 0));
    }
}

/// What the kernel says, beside what the pool says.
#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod kernel {
    use super::*;

    const PAGE: usize = 4 << 10;

    /// Bytes of a range that are in memory; an error when a part of it is not mapped.
    fn resident(start: *const u8, len: usize) -> io::Result<usize> {
        let mut pages = vec![0; len.div_ceil(PAGE)];
        // SAFETY: the kernel reads no byte of the range and writes one byte a page to `pages`.
        let result = unsafe { libc::mincore(start.cast_mut().cast(), len, pages.as_mut_ptr()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(pages.iter().filter(|&page| page & 1 == 1).count() * PAGE)
    }

    /// Whether the mapping around `address` was advised to use huge pages.
    fn advised_huge(address: *const u8) -> bool {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut inside = false;
        for line in smaps.lines() {
            let head = line.split_whitespace().next().unwrap_or_default();
            if let Some((from, to)) = head.split_once('-') {
                let bound = |text| usize::from_str_radix(text, 16).unwrap();
                inside = (bound(from)..bound(to)).contains(&address.addr());
            } else if inside && let Some(flags) = line.strip_prefix("VmFlags:") {
                return flags.split_whitespace().any(|flag| flag == "hg");
            }
        }
        false
    }

    #[test]
    fn pages_are_untouched_until_filled_and_gone_after_trimming() {
        let pool = pool(1 << 30, LONG);
        let len = 96 << 20;
        let mut target = pool.reserve(len).unwrap();
        let mut slot = target.whole();
        let address = slot.filled().as_ptr();
        assert!(address.addr().is_multiple_of(class::HUGE_PAGE));
        assert_eq!(resident(address, len).unwrap(), 0);
        let offered = std::fs::exists("/sys/kernel/mm/transparent_hugepage").unwrap();
        assert_eq!(advised_huge(address), offered);
        assert_eq!(slot.put_slice(&vec![1; 16 << 20]), 16 << 20);
        assert_eq!(resident(address, len).unwrap(), 16 << 20);
        drop((slot, target));
        assert_eq!(resident(address, len).unwrap(), 16 << 20, "kept, and not zeroed");
        pool.trim_at(Instant::now() + LONG);
        assert_eq!(pool.stats().mapped, 0);
        // Another test may map a part of the range by now, but not all of it.
        assert!(resident(address, len).is_err(), "still mapped after trimming");
    }

    #[test]
    fn without_the_wish_no_huge_pages_are_asked_for() {
        let config = PoolConfig { retain_bytes: 0, idle: LONG, huge_pages: false };
        // Neighbouring mappings with other advice are not merged, so what is found is this one's.
        let mut target = Pool::new(config).reserve(32 << 20).unwrap();
        assert!(!advised_huge(target.whole().filled().as_ptr()));
    }
}

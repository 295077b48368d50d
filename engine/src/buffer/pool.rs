//! The pool: memory that is used again instead of being asked from the kernel again.
//!
//! Small lengths are pieces of slabs, one shelf of slabs a size class, each behind its own lock; the
//! lowest slab with room is used first, so that the others fall empty and can be given back. Large
//! lengths are blocks of their own, kept idle by size and used again best fit. Nothing here touches
//! the memory itself.

use super::class;
use super::map::{Heap, Mapping, refused};
use super::target::{Memory, Origin, Target};
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

/// How a [`Pool`] keeps memory.
#[derive(Debug, Clone, Copy)]
pub struct PoolConfig {
    /// The most memory, in bytes, that may lie wholly idle; what is beyond goes back at once.
    pub retain_bytes: usize,
    /// How long memory may lie idle before it goes back.
    pub idle: Duration,
    /// Whether to ask for huge pages.
    pub huge_pages: bool,
}

/// What a [`Pool`] holds, in bytes. Lengths up to 2 KiB are the allocator's and are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolStats {
    /// Handed out, rounded up to what serves each length.
    pub in_use: usize,
    /// Mapped and not handed out; a part of it may never have been touched.
    pub idle: usize,
    /// Address space mapped.
    pub mapped: usize,
}

/// Uninitialised memory for destinations. Clones share it.
#[derive(Clone)]
pub struct Pool(Arc<Shelves>);

impl Pool {
    /// An empty pool.
    pub fn new(config: PoolConfig) -> Pool {
        Pool(Arc::new(Shelves {
            config,
            pieces: std::array::from_fn(|_| Shelf(Mutex::default())),
            blocks: Mutex::default(),
            mapped: AtomicUsize::new(0),
            spare: AtomicUsize::new(0),
            born: Instant::now(),
            trimmed_ms: AtomicU64::new(0),
        }))
    }

    /// Uninitialised memory for exactly `len` bytes; 0 is fine.
    ///
    /// # Errors
    /// [`io::ErrorKind::OutOfMemory`], with the length, when the system refuses even after all idle
    /// memory was given back.
    pub fn reserve(&self, len: usize) -> io::Result<Target> {
        let (start, origin) = if len == 0 {
            (NonNull::dangling(), Origin::Nothing)
        } else if len <= class::TINY_MAX {
            let heap = Heap::new(len, 16)?;
            (heap.start(), Origin::Heap(heap))
        } else {
            let held = match self.0.take(len) {
                Ok(held) => held,
                Err(_) => {
                    self.0.shrink(0);
                    self.0.take(len).map_err(|e| refused(len, Some(e)))?
                }
            };
            let start = held.start();
            let shelves = Arc::clone(&self.0);
            (start, Origin::Lease(Lease { shelves, held }))
        };
        // SAFETY: `len` bytes at `start` belong to `origin`, which is in no other hands until it is
        // dropped.
        Ok(Target::new(unsafe { Memory::new(start, len, origin) }))
    }

    /// Gives back what has been idle for longer than the configuration allows. Meant for a tick; the
    /// pool also does it by itself, at most once in that time, when memory comes back.
    pub fn trim(&self) {
        self.trim_at(Instant::now());
    }

    /// As if it were `now`.
    pub(super) fn trim_at(&self, now: Instant) {
        self.0.trim(now);
    }

    /// What the pool holds at the moment.
    pub fn stats(&self) -> PoolStats {
        let pieces: usize = (0..class::COUNT).map(|class| self.0.shelf(class).in_use * class::size(class)).sum();
        let in_use = pieces + self.0.blocks().in_use;
        let mapped = self.0.mapped.load(Ordering::Relaxed);
        PoolStats { in_use, idle: mapped.saturating_sub(in_use), mapped }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pool").field(&self.stats()).finish()
    }
}

/// Memory handed out. It goes back to the shelves when dropped.
pub(super) struct Lease {
    shelves: Arc<Shelves>,
    held: Held,
}

impl Drop for Lease {
    fn drop(&mut self) {
        match &mut self.held {
            Held::Piece { class, slab, piece, .. } => self.shelves.return_piece(*class, *slab, *piece),
            Held::Block(mapping) => {
                let mapping = std::mem::replace(mapping, Mapping::none());
                self.shelves.return_block(mapping);
            }
        }
    }
}

enum Held {
    Piece { start: NonNull<u8>, class: usize, slab: u32, piece: u32 },
    Block(Mapping),
}

// SAFETY: the address names memory that this value alone may use, from any thread.
unsafe impl Send for Held {}
// SAFETY: a shared `Held` gives an address and nothing else.
unsafe impl Sync for Held {}

impl Held {
    fn start(&self) -> NonNull<u8> {
        match self {
            Held::Piece { start, .. } => *start,
            Held::Block(mapping) => mapping.start(),
        }
    }
}

struct Shelves {
    config: PoolConfig,
    pieces: [Shelf; class::COUNT],
    blocks: Mutex<Blocks>,
    /// Bytes mapped.
    mapped: AtomicUsize,
    /// Bytes that could be unmapped at once: slabs with no piece out, and idle blocks. Counted before
    /// they can be taken, so that it never falls below 0.
    spare: AtomicUsize,
    born: Instant,
    /// When memory was last trimmed, in milliseconds since `born`.
    trimmed_ms: AtomicU64,
}

/// The slabs of one class, on cache lines of their own.
#[repr(align(128))]
struct Shelf(Mutex<Slabs>);

#[derive(Default)]
struct Slabs {
    all: Vec<Slab>,
    /// Slabs that are mapped and have a piece to give.
    open: BTreeSet<u32>,
    /// Places in `all` whose slab was unmapped.
    vacant: Vec<u32>,
    /// Pieces handed out.
    in_use: usize,
}

struct Slab {
    mapping: Mapping,
    /// Pieces that came back, the last one first to go: it is warm.
    returned: Vec<u32>,
    /// Pieces from this one on were never handed out.
    fresh: u32,
    in_use: u32,
    /// When the last piece came back; meaningful while `in_use` is 0.
    idle_since: Instant,
}

#[derive(Default)]
struct Blocks {
    idle: BTreeMap<usize, Vec<(Mapping, Instant)>>,
    /// Bytes handed out.
    in_use: usize,
}

impl Blocks {
    /// Takes out the idle block that came back first.
    fn remove_oldest(&mut self) -> Option<Mapping> {
        // Of one size the first is the oldest: they are pushed and popped at the end.
        let (&size, _) = self.idle.iter().min_by_key(|(_, same)| same.first().map(|(_, since)| *since))?;
        let same = self.idle.get_mut(&size)?;
        let (mapping, _) = same.remove(0);
        if same.is_empty() {
            self.idle.remove(&size);
        }
        Some(mapping)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No critical section here leaves its state half changed, whatever panicked elsewhere.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shelves {
    fn shelf(&self, class: usize) -> MutexGuard<'_, Slabs> {
        lock(&self.pieces[class].0)
    }

    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        lock(&self.blocks)
    }

    fn map(&self, len: usize) -> io::Result<Mapping> {
        let mapping = Mapping::new(len, self.config.huge_pages)?;
        self.mapped.fetch_add(len, Ordering::Relaxed);
        Ok(mapping)
    }

    /// Gives memory back to the system, with no lock held: unmapping takes its time.
    fn unmap(&self, mapping: Mapping) {
        self.mapped.fetch_sub(mapping.len(), Ordering::Relaxed);
        drop(mapping);
    }

    fn take(&self, len: usize) -> io::Result<Held> {
        if len <= class::SMALL_MAX { self.take_piece(class::of(len)) } else { self.take_block(len).map(Held::Block) }
    }

    fn take_piece(&self, class: usize) -> io::Result<Held> {
        let (size, slab_len) = (class::size(class), class::slab(class));
        let pieces = (slab_len / size) as u32;
        let mut shelf = self.shelf(class);
        let index = match shelf.open.first() {
            Some(&index) => index,
            // Under the lock, so that threads that arrive together share one slab.
            None => {
                let index = shelf.add(self.map(slab_len)?);
                self.spare.fetch_add(slab_len, Ordering::Relaxed);
                index
            }
        };
        let slab = &mut shelf.all[index as usize];
        let piece = slab.returned.pop().unwrap_or_else(|| {
            slab.fresh += 1;
            slab.fresh - 1
        });
        slab.in_use += 1;
        if slab.in_use == 1 {
            self.spare.fetch_sub(slab_len, Ordering::Relaxed);
        }
        // SAFETY: `piece < pieces`, so the piece lies inside the slab: a slab that is open has one
        // that came back or one that is fresh.
        let start = unsafe { slab.mapping.start().add(piece as usize * size) };
        if slab.in_use == pieces {
            shelf.open.remove(&index);
        }
        shelf.in_use += 1;
        Ok(Held::Piece { start, class, slab: index, piece })
    }

    fn return_piece(&self, class: usize, index: u32, piece: u32) {
        let (size, slab_len) = (class::size(class), class::slab(class));
        let pieces = (slab_len / size) as u32;
        let mut shelf = self.shelf(class);
        shelf.in_use -= 1;
        let slab = &mut shelf.all[index as usize];
        slab.returned.push(piece);
        let was_full = slab.in_use == pieces;
        slab.in_use -= 1;
        let now = (slab.in_use == 0).then(|| {
            let now = Instant::now();
            slab.idle_since = now;
            self.spare.fetch_add(slab_len, Ordering::Relaxed);
            now
        });
        if was_full {
            shelf.open.insert(index);
        }
        drop(shelf);
        if let Some(now) = now {
            self.settle(now);
        }
    }

    fn take_block(&self, len: usize) -> io::Result<Mapping> {
        let rounded = class::block(len).ok_or_else(|| refused(len, None))?;
        let mut blocks = self.blocks();
        let fits = rounded..=class::block_reuse_max(rounded);
        if let Some((&size, same)) = blocks.idle.range_mut(fits).next()
            && let Some((mapping, _)) = same.pop()
        {
            if same.is_empty() {
                blocks.idle.remove(&size);
            }
            blocks.in_use += size;
            self.spare.fetch_sub(size, Ordering::Relaxed);
            return Ok(mapping);
        }
        drop(blocks);
        let mapping = self.map(rounded)?;
        self.blocks().in_use += rounded;
        Ok(mapping)
    }

    fn return_block(&self, mapping: Mapping) {
        let (now, size) = (Instant::now(), mapping.len());
        let mut blocks = self.blocks();
        blocks.in_use -= size;
        if size > self.config.retain_bytes {
            drop(blocks);
            self.unmap(mapping);
        } else {
            self.spare.fetch_add(size, Ordering::Relaxed);
            blocks.idle.entry(size).or_default().push((mapping, now));
            drop(blocks);
        }
        self.settle(now);
    }

    /// After memory came back: keeps what lies idle within its bounds of size and of age.
    fn settle(&self, now: Instant) {
        if self.spare.load(Ordering::Relaxed) > self.config.retain_bytes {
            self.shrink(self.config.retain_bytes);
        }
        let since_born = |t: Duration| u64::try_from(t.as_millis()).unwrap_or(u64::MAX);
        let now_ms = since_born(now.saturating_duration_since(self.born));
        let last = self.trimmed_ms.load(Ordering::Relaxed);
        if now_ms.saturating_sub(last) > since_born(self.config.idle)
            && self.trimmed_ms.compare_exchange(last, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            self.trim(now);
        }
    }

    /// Unmaps idle memory, the oldest blocks first and slabs after them, until at most `keep` bytes
    /// lie idle.
    fn shrink(&self, keep: usize) {
        let over = || self.spare.load(Ordering::Relaxed) > keep;
        while over() {
            let Some(block) = self.blocks().remove_oldest() else {
                break;
            };
            self.spare.fetch_sub(block.len(), Ordering::Relaxed);
            self.unmap(block);
        }
        for class in 0..class::COUNT {
            while over() {
                let Some(slab) = self.shelf(class).remove_idle(|_| true) else {
                    break;
                };
                self.spare.fetch_sub(slab.len(), Ordering::Relaxed);
                self.unmap(slab);
            }
        }
    }

    fn trim(&self, now: Instant) {
        let idle = self.config.idle;
        let old = |since: Instant| now.saturating_duration_since(since) >= idle;
        let mut gone = Vec::new();
        {
            let mut blocks = self.blocks();
            for same in blocks.idle.values_mut() {
                let keep_from = same.partition_point(|(_, since)| old(*since));
                gone.extend(same.drain(..keep_from).map(|(mapping, _)| mapping));
            }
            blocks.idle.retain(|_, same| !same.is_empty());
        }
        for class in 0..class::COUNT {
            let mut shelf = self.shelf(class);
            while let Some(slab) = shelf.remove_idle(old) {
                gone.push(slab);
            }
        }
        for mapping in gone {
            self.spare.fetch_sub(mapping.len(), Ordering::Relaxed);
            self.unmap(mapping);
        }
    }
}

impl Slabs {
    fn add(&mut self, mapping: Mapping) -> u32 {
        let slab = Slab { mapping, returned: Vec::new(), fresh: 0, in_use: 0, idle_since: Instant::now() };
        let index = match self.vacant.pop() {
            Some(index) => {
                self.all[index as usize] = slab;
                index
            }
            None => {
                self.all.push(slab);
                (self.all.len() - 1) as u32
            }
        };
        self.open.insert(index);
        index
    }

    /// Takes out the highest slab that has no piece out and whose idle time began at an instant that
    /// `old` accepts.
    fn remove_idle(&mut self, old: impl Fn(Instant) -> bool) -> Option<Mapping> {
        let &index = self.open.iter().rev().find(|&&index| {
            let slab = &self.all[index as usize];
            slab.in_use == 0 && old(slab.idle_since)
        })?;
        self.open.remove(&index);
        self.vacant.push(index);
        let slab = &mut self.all[index as usize];
        Some(std::mem::replace(&mut slab.mapping, Mapping::none()))
    }
}

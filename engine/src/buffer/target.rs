//! Destinations: where the memory comes from, and when it may be read again.

use super::frozen::Buffer;
use super::map::Heap;
use super::pool::Lease;
use super::slot::Slot;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Condvar, Mutex, PoisonError};
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// One piece of memory, shared by its target and its slots, or by its buffers.
///
/// Its bytes are written through slots only, which never overlap, and read through the slot that
/// wrote them or, once the `Arc` was seen to have no other holder, through buffers.
pub(super) struct Memory {
    start: NonNull<u8>,
    len: usize,
    /// Bytes that dropped slots had filled.
    filled: AtomicUsize,
    /// Keeps the bytes valid; giving them back is what dropping it does.
    origin: Origin,
}

// SAFETY: the bytes are reached as the type's comment says, which is exclusive for writing, and
// every kind of origin may be dropped on any thread (the owner is `Send`).
unsafe impl Send for Memory {}
// SAFETY: a shared `Memory` gives an address, a length and an atomic counter, and never access to
// the caller's owner.
unsafe impl Sync for Memory {}
// A panic leaves no invariant broken: bytes are counted as filled only after they were written.
impl std::panic::RefUnwindSafe for Memory {}

// The fields are held for their `Drop`.
#[allow(dead_code)]
pub(super) enum Origin {
    /// No bytes at all.
    Nothing,
    /// From the allocator: tiny.
    Heap(Heap),
    /// From the pool.
    Lease(Lease),
    /// The caller's, moved in.
    Owner(Owner),
    /// The caller's, lent: the gate opens when this is dropped.
    Lent(OpenOnDrop),
}

impl Memory {
    /// # Safety
    /// While `origin` lives, the `len` bytes at `start` must be valid for reads and writes by this
    /// value alone.
    pub(super) unsafe fn new(start: NonNull<u8>, len: usize, origin: Origin) -> Memory {
        Memory { start, len, filled: AtomicUsize::new(0), origin }
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// A slot's last word: how many of its bytes it filled.
    pub(super) fn report(&self, filled: usize) {
        // Relaxed: who acts on the count has first seen the slot's `Arc` go, which orders it.
        self.filled.fetch_add(filled, Ordering::Relaxed);
    }
}

/// The memory as a slot, the first time; an empty slot after that.
fn whole(memory: &Arc<Memory>, handed_out: &mut bool) -> Slot {
    let len = if *handed_out { 0 } else { memory.len };
    *handed_out = true;
    // SAFETY: the only slot over these bytes that is not empty, as `handed_out` remembers.
    unsafe { Slot::new(Arc::clone(memory), 0, len) }
}

/// A destination in pooled memory, being filled.
pub struct Target {
    memory: Arc<Memory>,
    handed_out: bool,
}

impl Target {
    pub(super) fn new(memory: Memory) -> Target {
        Target { memory: Arc::new(memory), handed_out: false }
    }

    /// The caller's own memory as a destination: a `Vec<u8>`, a `Box<[u8]>`, a `BytesMut`, anything
    /// with bytes. It is moved in and comes back from [`OwnedTarget::recover`], at the same address.
    pub fn from_owner<B: AsMut<[u8]> + Send + 'static>(owner: B) -> OwnedTarget<B> {
        OwnedTarget::new(owner)
    }

    /// Bytes in all.
    pub fn len(&self) -> usize {
        self.memory.len
    }

    /// Whether the target has no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.memory.len == 0
    }

    /// The slot over all of it, to be cut with [`Slot::split_to`]. Once: later calls give an empty
    /// slot.
    pub fn whole(&mut self) -> Slot {
        whole(&self.memory, &mut self.handed_out)
    }

    /// The filled memory, to be read and shared.
    ///
    /// # Errors
    /// When a slot over it is still alive, or when the slots were dropped before every byte was
    /// filled. The memory then goes back to the pool as soon as no slot is left.
    pub fn freeze(mut self) -> Result<Buffer, FreezeError> {
        let len = self.memory.len;
        let Some(memory) = Arc::get_mut(&mut self.memory) else {
            return Err(FreezeError::SlotsAlive { len });
        };
        let filled = *memory.filled.get_mut();
        if filled != len {
            return Err(FreezeError::Incomplete { filled, len });
        }
        // SAFETY: we hold the only reference, so no slot is left; slots do not overlap and each
        // reported once, so that `filled == len` means that every byte was written.
        Ok(unsafe { Buffer::new(self.memory, 0, len) })
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({} bytes)", self.len())
    }
}

/// Why a target could not be frozen. Lengths are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreezeError {
    /// A slot over the target still exists, so that its bytes may still change.
    SlotsAlive {
        /// The target's length.
        len: usize,
    },
    /// Every slot is gone and some bytes were never filled.
    Incomplete {
        /// How many were.
        filled: usize,
        /// The target's length.
        len: usize,
    },
}

impl fmt::Display for FreezeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FreezeError::SlotsAlive { len } => {
                write!(f, "a buffer of {len} bytes can still be written: a transfer into it has not ended")
            }
            FreezeError::Incomplete { filled, len } => {
                write!(f, "only {filled} of a buffer's {len} bytes arrived before its transfer ended")
            }
        }
    }
}

impl std::error::Error for FreezeError {}

/// The caller's memory as a destination. Its bytes were initialised when it came, so it may be
/// recovered however much of it was filled.
pub struct OwnedTarget<B> {
    memory: Arc<Memory>,
    handed_out: bool,
    /// `memory.origin` owns a `B`. This form keeps the target `Send` and `Sync` whatever `B` is:
    /// nothing reaches the `B` through a reference to it.
    owner: PhantomData<fn() -> B>,
}

impl<B: AsMut<[u8]> + Send + 'static> OwnedTarget<B> {
    fn new(owner: B) -> OwnedTarget<B> {
        let raw = Box::into_raw(Box::new(owner));
        // First of all something that frees it, should `as_mut` panic.
        let owner = Owner(raw);
        // SAFETY: `raw` came from a box that nobody else has.
        let bytes = unsafe { (*raw).as_mut() };
        let (start, len) = (NonNull::from(&mut *bytes).cast::<u8>(), bytes.len());
        // SAFETY: from here to `recover` or its drop the owner is neither moved nor borrowed again,
        // which is as if it were leaked and `bytes` borrowed all the while.
        let memory = unsafe { Memory::new(start, len, Origin::Owner(owner)) };
        OwnedTarget { memory: Arc::new(memory), handed_out: false, owner: PhantomData }
    }

    /// Bytes in all.
    pub fn len(&self) -> usize {
        self.memory.len
    }

    /// Whether the target has no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.memory.len == 0
    }

    /// The slot over all of it, to be cut with [`Slot::split_to`]. Once: later calls give an empty
    /// slot.
    pub fn whole(&mut self) -> Slot {
        whole(&self.memory, &mut self.handed_out)
    }

    /// The caller's memory back.
    ///
    /// # Errors
    /// When a slot over it is still alive. The error holds the target, to try again.
    pub fn recover(self) -> Result<B, RecoverError<B>> {
        let OwnedTarget { memory, handed_out, .. } = self;
        let memory = match Arc::try_unwrap(memory) {
            Ok(memory) => memory,
            Err(memory) => {
                return Err(RecoverError(OwnedTarget { memory, handed_out, owner: PhantomData }));
            }
        };
        match memory.origin {
            Origin::Owner(owner) => {
                let owner = std::mem::ManuallyDrop::new(owner);
                // SAFETY: `new` made it from a `Box<B>`; the drop that would free it is disarmed; no
                // slot is left to use its bytes.
                Ok(*unsafe { Box::from_raw(owner.0.cast::<B>()) })
            }
            _ => unreachable!("an owned target has an owner"),
        }
    }
}

impl<B> fmt::Debug for OwnedTarget<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnedTarget({} bytes)", self.memory.len)
    }
}

/// A slot over the caller's memory still exists, so that it cannot be given back yet.
pub struct RecoverError<B>(OwnedTarget<B>);

impl<B> RecoverError<B> {
    /// The target, to be recovered later.
    pub fn into_target(self) -> OwnedTarget<B> {
        self.0
    }
}

impl<B> fmt::Debug for RecoverError<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecoverError({:?})", self.0)
    }
}

impl<B> fmt::Display for RecoverError<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.0.memory.len;
        write!(f, "the caller's {len} bytes can still be written: a transfer into them has not ended")
    }
}

impl<B> std::error::Error for RecoverError<B> {}

/// The caller's value behind a raw pointer: a `Box` that moved would claim its bytes for itself.
pub(super) struct Owner(*mut (dyn Any + Send));

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: it came from `Box::into_raw`, and `recover`, which also takes it, disarms this.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// Whether lent memory has come back.
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

/// Opens the gate when the last slot over lent memory has gone.
pub(super) struct OpenOnDrop(Arc<Gate>);

impl Drop for OpenOnDrop {
    fn drop(&mut self) {
        *self.0.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.opened.notify_all();
    }
}

/// Keeps its owner from going on, or from unwinding on, before the gate is open.
struct WaitOnDrop(Arc<Gate>);

impl Drop for WaitOnDrop {
    fn drop(&mut self) {
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        while !*open {
            open = self.0.opened.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Lends `memory` as one slot to `fill`, which may cut it and send the pieces to other threads.
///
/// Blocks the thread until `fill` has returned and the last slot over `memory` is gone, wherever it
/// went; also when `fill` panics. A slot that is never dropped (leaked, or returned out of `fill`)
/// blocks it for ever: that is the price of a borrow.
pub fn lend_blocking<R>(memory: &mut [u8], fill: impl FnOnce(Slot) -> R) -> R {
    let gate = Arc::new(Gate { open: Mutex::new(false), opened: Condvar::new() });
    let origin = Origin::Lent(OpenOnDrop(Arc::clone(&gate)));
    let start = NonNull::from(&mut *memory).cast::<u8>();
    // SAFETY: `memory` stays borrowed until `wait` below is dropped, which is not before `origin`
    // was; in between this function does not touch it.
    let lent = unsafe { Memory::new(start, memory.len(), origin) };
    // Declared after `memory` and before the slot, so that it waits on every way out.
    let _wait = WaitOnDrop(gate);
    let slot = whole(&Arc::new(lent), &mut false);
    fill(slot)
}

//! What a fork changes: the child has none of the engine's threads, and whatever lock one of them
//! held stays locked for ever.
//!
//! Owns: the count of forks since the module was loaded. Whatever belongs to the engine is kept in an
//! [`Inherited`], which a child neither uses nor drops: it leaks, as one does with memory that another
//! process's threads are still working on.

use std::mem::ManuallyDrop;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

static GENERATION: AtomicU64 = AtomicU64::new(0);

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Counts forks from now on.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler is a plain function that touches one atomic, which is all that may be
        // done between fork and exec. Where it cannot be registered, memory is so short that nothing
        // else works either.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// Forks between the loading of the module and this process.
pub(crate) fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// Something of the engine's, and the process that it belongs to.
pub(crate) struct Inherited<T> {
    value: ManuallyDrop<T>,
    generation: u64,
}

impl<T> Inherited<T> {
    pub(crate) fn new(value: T) -> Inherited<T> {
        Inherited { value: ManuallyDrop::new(value), generation: generation() }
    }

    /// `None` in a child of the process that made it.
    pub(crate) fn get(&self) -> Option<&T> {
        self.is_ours().then_some(&*self.value)
    }

    /// Memory that was complete before the fork may still be read: the child has its own copy.
    pub(crate) fn read_only(&self) -> &T {
        &self.value
    }

    /// Something that belongs to the same process.
    pub(crate) fn beside<U>(&self, value: U) -> Inherited<U> {
        Inherited { value: ManuallyDrop::new(value), generation: self.generation }
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.generation == generation()
    }
}

impl<T> Drop for Inherited<T> {
    fn drop(&mut self) {
        if self.is_ours() {
            // SAFETY: dropped once, here, and not used after.
            unsafe { ManuallyDrop::drop(&mut self.value) }
        }
    }
}

//! What a fork changes: the child has none of the engine's threads, and whatever lock one of them
//! held stays locked for ever.
//!
//! Owns: the count of forks since the module was loaded. Whatever belongs to the engine is kept in an
//! [`Inherited`], which a child neither uses nor drops: it leaks, as one does with memory that another
//! process's threads are still working on. What there is one of is a [`PerProcess`].

use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

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

/// One value a process, made when it is first asked for: a child leaks its parent's, in which a thread
/// may have stood, and begins with a fresh one.
pub(crate) struct PerProcess<T: 'static> {
    current: AtomicPtr<(u64, T)>,
    make: fn() -> T,
}

impl<T: Sync> PerProcess<T> {
    pub(crate) const fn new(make: fn() -> T) -> PerProcess<T> {
        PerProcess { current: AtomicPtr::new(ptr::null_mut()), make }
    }

    pub(crate) fn get(&self) -> &'static T {
        let current = self.current.load(Ordering::Acquire);
        // SAFETY: what is stored there was leaked, so it lives for as long as the process.
        if let Some((made, value)) = unsafe { current.as_ref() }
            && *made == generation()
        {
            return value;
        }
        let fresh = Box::into_raw(Box::new((generation(), (self.make)())));
        match self.current.compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: leaked just now.
            Ok(_) => unsafe { &(*fresh).1 },
            Err(_) => {
                // Another thread was quicker.
                // SAFETY: nobody else has seen this one.
                drop(unsafe { Box::from_raw(fresh) });
                self.get()
            }
        }
    }
}

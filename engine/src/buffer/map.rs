//! Memory from the kernel ([`Mapping`]) and from the allocator ([`Heap`]).
//!
//! Both are owned by exactly one value, come as zeros, and go back when it is dropped. Zeros cost a
//! mapping nothing, since the kernel gives no other pages, and the allocator little: what it gives is
//! tiny, or its own mapping.

use std::alloc::Layout;
use std::io;
use std::ptr::NonNull;

/// An allocation whose bytes only raw pointers reach: unlike a `Box`, moving it says nothing about
/// who may use them.
pub(super) struct Heap {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the allocation belongs to this value alone and the allocator lets any thread free it.
unsafe impl Send for Heap {}
// SAFETY: through a shared reference only the address and the length can be read.
unsafe impl Sync for Heap {}

impl Heap {
    /// Allocates `len` zeroed bytes, `len` above 0. Fails when the allocator has none.
    pub(super) fn new(len: usize, align: usize) -> io::Result<Heap> {
        let layout = Layout::from_size_align(len.max(1), align).map_err(|_| refused(len, None))?;
        // SAFETY: the layout's size is not 0.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        match NonNull::new(start) {
            Some(start) => Ok(Heap { start, layout }),
            None => Err(refused(len, None)),
        }
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, freed here only.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// What the caller of `reserve` reads when there is no memory.
pub(super) fn refused(len: usize, cause: Option<io::Error>) -> io::Error {
    let cause = cause.map_or_else(|| "it is more than can be had".to_owned(), |e| e.to_string());
    io::Error::new(
        io::ErrorKind::OutOfMemory,
        format!("no memory for {len} bytes: {cause}; try smaller parts, less concurrency or a lower memory budget"),
    )
}

pub(super) use backing::Mapping;

#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod backing {
    use super::super::class::HUGE_PAGE;
    use super::refused;
    use std::io;
    use std::ptr::NonNull;

    /// Pages of our own, starting at a multiple of [`HUGE_PAGE`].
    pub(in super::super) struct Mapping {
        start: NonNull<u8>,
        len: usize,
    }

    // SAFETY: the pages belong to this value alone and any thread may unmap them.
    unsafe impl Send for Mapping {}
    // SAFETY: through a shared reference only the address and the length can be read.
    unsafe impl Sync for Mapping {}

    impl Mapping {
        /// Maps `len` bytes, a multiple of [`HUGE_PAGE`]; with `huge` the kernel is asked for huge
        /// pages. Fails when the kernel refuses.
        ///
        /// No page is touched, and `MADV_POPULATE_WRITE` is left out on purpose: touching 256 MiB
        /// with it and page by page without it cost the same on huge pages (0.048 core-s/GiB each,
        /// median of 6 in turn) and 0.95 of it on small ones (0.37 and 0.39), and it would keep the
        /// first request waiting.
        pub(in super::super) fn new(len: usize, huge: bool) -> io::Result<Mapping> {
            let mut mapping = Mapping::anywhere(len)?;
            // Kernels from 6.7 on align such a mapping by themselves, older ones by chance.
            if !mapping.start.addr().get().is_multiple_of(HUGE_PAGE) {
                drop(mapping);
                mapping = Mapping::anywhere(len + HUGE_PAGE)?.aligned(len);
            }
            if huge {
                // Advice: without huge pages the memory is slower to touch and just as good, so a
                // refusal is no error.
                // SAFETY: the range is ours; this advice leaves its contents alone.
                unsafe { libc::madvise(mapping.start.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
            }
            Ok(mapping)
        }

        fn anywhere(len: usize) -> io::Result<Mapping> {
            // SAFETY: an anonymous mapping at an address of the kernel's choice replaces nothing.
            let start = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    len,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                )
            };
            if start == libc::MAP_FAILED {
                return Err(refused(len, Some(io::Error::last_os_error())));
            }
            match NonNull::new(start.cast()) {
                Some(start) => Ok(Mapping { start, len }),
                None => Err(refused(len, None)),
            }
        }

        /// Keeps the first `len` bytes from a multiple of [`HUGE_PAGE`] on and unmaps the rest.
        fn aligned(self, len: usize) -> Mapping {
            let whole = std::mem::ManuallyDrop::new(self);
            let lead = whole.start.as_ptr().align_offset(HUGE_PAGE);
            let tail = whole.len - lead - len;
            // SAFETY: `lead < HUGE_PAGE` and the mapping is `len + HUGE_PAGE` long, so all three
            // pieces lie inside it; the two that are unmapped were never handed out.
            unsafe {
                let start = whole.start.add(lead);
                if lead > 0 {
                    libc::munmap(whole.start.as_ptr().cast(), lead);
                }
                if tail > 0 {
                    libc::munmap(start.add(len).as_ptr().cast(), tail);
                }
                Mapping { start, len }
            }
        }

        /// A mapping of nothing, left behind when the real one is taken out of its place.
        pub(in super::super) fn none() -> Mapping {
            Mapping { start: NonNull::dangling(), len: 0 }
        }

        pub(in super::super) fn start(&self) -> NonNull<u8> {
            self.start
        }

        pub(in super::super) fn len(&self) -> usize {
            self.len
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            if self.len > 0 {
                // SAFETY: mapped by us and unmapped here only; whoever dropped the mapping had taken
                // back every piece of it.
                unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
            }
        }
    }
}

#[cfg(not(all(target_os = "linux", not(feature = "portable"))))]
mod backing {
    use super::super::class::HUGE_PAGE;
    use super::Heap;
    use std::io;
    use std::ptr::NonNull;

    /// The allocator's memory in the shape of a mapping.
    pub(in super::super) struct Mapping {
        heap: Option<Heap>,
        len: usize,
    }

    impl Mapping {
        /// Allocates `len` bytes at a multiple of [`HUGE_PAGE`]; huge pages are up to the system.
        pub(in super::super) fn new(len: usize, _huge: bool) -> io::Result<Mapping> {
            Heap::new(len, HUGE_PAGE).map(|heap| Mapping { heap: Some(heap), len })
        }

        /// A mapping of nothing, left behind when the real one is taken out of its place.
        pub(in super::super) fn none() -> Mapping {
            Mapping { heap: None, len: 0 }
        }

        pub(in super::super) fn start(&self) -> NonNull<u8> {
            self.heap.as_ref().map_or(NonNull::dangling(), Heap::start)
        }

        pub(in super::super) fn len(&self) -> usize {
            self.len
        }
    }
}

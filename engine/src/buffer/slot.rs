//! Slots: unique pieces of a target, filled from the front.

use super::frozen::Buffer;
use super::target::{FreezeError, Memory};
use crate::sync::Arc;
use bytes::BufMut;
use bytes::buf::UninitSlice;
use std::fmt;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;

/// A unique piece of a [`Target`](super::Target): received into from the front, never past its end.
///
/// The only way to get two slots is to cut one, so that no two overlap, and the fill of one cannot
/// disturb another. A slot may be sent to any thread. Dropping it tells the target how much of it was
/// filled. What was filled stays filled, even if the slot is not dropped in order.
pub struct Slot {
    memory: Arc<Memory>,
    /// Where in the memory it begins.
    start: usize,
    capacity: usize,
    /// The first `filled` bytes are initialised. At most `capacity`.
    filled: usize,
}

impl Slot {
    /// # Safety
    /// The range must lie inside the memory and no other slot may share a byte with it.
    pub(super) unsafe fn new(memory: Arc<Memory>, start: usize, capacity: usize) -> Slot {
        Slot { memory, start, capacity, filled: 0 }
    }

    /// Bytes it can hold in all.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The bytes filled so far.
    pub fn filled(&self) -> &[u8] {
        // SAFETY: these bytes are initialised, this slot is the only handle on them, and it is
        // borrowed as long as the slice is.
        unsafe { std::slice::from_raw_parts(self.at(0), self.filled) }
    }

    /// Bytes that can still be filled.
    pub fn remaining(&self) -> usize {
        self.capacity - self.filled
    }

    /// Whether every byte is filled. An empty slot is.
    pub fn is_full(&self) -> bool {
        self.filled == self.capacity
    }

    /// Forgets what was filled, to fill it again.
    pub fn clear(&mut self) {
        self.filled = 0;
    }

    /// Cuts off the first `at` bytes and returns them; this slot keeps the rest. Bytes already filled
    /// stay filled on the side where they lie. Beyond the capacity, all of the slot is returned and
    /// this one is left empty.
    #[must_use]
    pub fn split_to(&mut self, at: usize) -> Slot {
        let at = at.min(self.capacity);
        let front =
            Slot { memory: Arc::clone(&self.memory), start: self.start, capacity: at, filled: self.filled.min(at) };
        self.start += at;
        self.capacity -= at;
        self.filled -= front.filled;
        front
    }

    /// What was filled, to be read and shared: for a slot whose target has gone, and that was not cut.
    ///
    /// # Errors
    /// When the target or another slot over the memory is still alive.
    pub fn freeze(self) -> Result<Buffer, FreezeError> {
        let (start, filled) = (self.start, self.filled);
        let mut memory = Arc::clone(&self.memory);
        drop(self);
        if Arc::get_mut(&mut memory).is_none() {
            return Err(FreezeError::SlotsAlive { len: filled });
        }
        // SAFETY: ours is the only reference, so no slot is left and none can be made; this slot alone could
        // write to these bytes, and it had filled them.
        Ok(unsafe { Buffer::new(memory, start, filled) })
    }

    /// Copies as much of `bytes` as there is room for, and returns how many were taken.
    #[must_use]
    pub fn put_slice(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.remaining());
        BufMut::put_slice(self, &bytes[..taken]);
        taken
    }

    /// The bytes not yet filled, for a writer that needs ordinary memory, as a cipher does. What lies
    /// there is of no meaning; it counts as filled once [`Slot::advance`] says so.
    pub fn unfilled(&mut self) -> &mut [u8] {
        let length = self.remaining();
        // SAFETY: inside the memory, only this slot can reach these bytes, and it is mutably borrowed
        // as long as the slice is. They are initialised: every origin's memory is when it comes (an
        // owner's by its type, a mapping's and the heap's as zeros), and nothing un-initialises it.
        unsafe { std::slice::from_raw_parts_mut(self.at(self.filled), length) }
    }

    /// The first `count` bytes of [`Slot::unfilled`] have been written; more than there are count as
    /// all of them.
    pub fn advance(&mut self, count: usize) {
        debug_assert!(count <= self.remaining());
        self.filled += count.min(self.remaining());
    }

    /// Reads from `file` at `offset` bytes, at most `max` bytes and at most what has room, in one
    /// system call that is repeated when a signal interrupts it. Returns how many bytes came, which
    /// may be fewer than there are; 0 when `offset` is at or past the end of the file, or when no byte
    /// was asked for. Blocks on the disk.
    ///
    /// # Errors
    /// What the system says, or an offset that no file can have.
    pub fn read_at(&mut self, file: &File, offset: u64, max: usize) -> io::Result<usize> {
        let max = max.min(self.remaining());
        let read = positional::read(file, offset, &mut self.spare()[..max])?;
        self.filled += read;
        Ok(read)
    }

    /// The bytes not yet filled.
    fn spare(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: inside the memory, only this slot can reach these bytes, and it is mutably borrowed
        // as long as the slice is. That they may be uninitialised is in the type; no caller in this
        // file takes the initialised bytes of an owner back.
        unsafe { std::slice::from_raw_parts_mut(self.at(self.filled).cast(), self.remaining()) }
    }

    fn at(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset <= self.capacity);
        // SAFETY: `start + offset` is at most the end of the memory that the slot keeps alive.
        unsafe { self.memory.start().as_ptr().add(self.start + offset) }
    }
}

// SAFETY: `chunk_mut` is the whole unfilled rest, so its length is `remaining_mut`; `advance_mut`
// stays inside it. (The contract of `UninitSlice` forbids callers to un-initialise, which an owner's
// bytes rely on.)
unsafe impl BufMut for Slot {
    fn remaining_mut(&self) -> usize {
        self.remaining()
    }

    unsafe fn advance_mut(&mut self, count: usize) {
        // As the trait asks: a caller that claims more than it was given is stopped here.
        assert!(count <= self.remaining(), "advanced a slot by {count} bytes of {} remaining", self.remaining());
        self.filled += count;
    }

    fn chunk_mut(&mut self) -> &mut UninitSlice {
        UninitSlice::uninit(self.spare())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.filled > 0 {
            self.memory.report(self.filled);
        }
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot({} of {} bytes)", self.filled, self.capacity)
    }
}

/// Reads at a position into memory that may be uninitialised. What it returns is how many bytes at
/// the front of `into` are initialised now: [`Slot::read_at`] relies on it.
#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod positional {
    use std::fs::File;
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::AsRawFd;

    pub(super) fn read(file: &File, offset: u64, into: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
        let offset = i64::try_from(offset).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("no file has a byte at offset {offset}"))
        })?;
        loop {
            // SAFETY: the kernel writes at most `into.len()` bytes into memory borrowed for it.
            let read = unsafe { libc::pread64(file.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), offset) };
            match usize::try_from(read) {
                Ok(read) => return Ok(read),
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
    }
}

/// The same with what the standard library has, which reads into initialised memory only: a scratch
/// of a few pages, copied.
#[cfg(not(all(target_os = "linux", not(feature = "portable"))))]
mod positional {
    use std::fs::File;
    use std::io;
    use std::mem::MaybeUninit;

    #[cfg(unix)]
    use std::os::unix::fs::FileExt;

    pub(super) fn read(file: &File, offset: u64, into: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
        let mut scratch = [0; 16 << 10];
        let mut done = 0;
        while done < into.len() {
            let want = scratch.len().min(into.len() - done);
            let read = match once(file, offset.saturating_add(done as u64), &mut scratch[..want]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // What came before is the answer; the next call meets the error again.
                Err(_) if done > 0 => break,
                other => other?,
            };
            // A reader of the standard library's could claim more than it was given: the slice stops it.
            into[done..done + read].write_copy_of_slice(&scratch[..read]);
            done += read;
            if read < want {
                break;
            }
        }
        Ok(done)
    }

    #[cfg(unix)]
    fn once(file: &File, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        file.read_at(into, offset)
    }

    #[cfg(windows)]
    fn once(file: &File, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(file, into, offset)
    }
}

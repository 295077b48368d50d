//! Buffers: filled memory, read and shared.

use super::target::Memory;
use crate::sync::Arc;
use bytes::Bytes;
use std::fmt;
use std::ops::{Bound, Deref, RangeBounds};

/// Bytes that arrived, in the memory where they arrived.
///
/// Clones and slices share that memory. It goes back to the pool when the last of them is dropped, so
/// a small slice that is kept for long keeps all of it.
#[derive(Clone)]
pub struct Buffer {
    memory: Arc<Memory>,
    start: usize,
    len: usize,
}

impl Buffer {
    /// # Safety
    /// The `len` bytes of the memory from `start` on must be initialised and no slot over it may exist, now
    /// or later.
    pub(super) unsafe fn new(memory: Arc<Memory>, start: usize, len: usize) -> Buffer {
        Buffer { memory, start, len }
    }

    /// Part of it, without a copy.
    ///
    /// # Panics
    /// As indexing a slice does, when the range reaches beyond the end.
    #[must_use]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Buffer {
        let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
        let len = self[bounds].len();
        let skipped = match bounds.0 {
            Bound::Included(first) => first,
            Bound::Excluded(before) => before + 1,
            Bound::Unbounded => 0,
        };
        Buffer { memory: Arc::clone(&self.memory), start: self.start + skipped, len }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: inside the memory, which `self` keeps alive; initialised and never written again.
        unsafe {
            let start = self.memory.start().add(self.start);
            std::slice::from_raw_parts(start.as_ptr(), self.len)
        }
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Buffer> for Bytes {
    fn from(buffer: Buffer) -> Bytes {
        Bytes::from_owner(buffer)
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Buffer) -> bool {
        **self == **other
    }
}

impl Eq for Buffer {}

impl PartialEq<[u8]> for Buffer {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

impl fmt::Debug for Buffer {
    /// The length only: what people store is not for logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len)
    }
}

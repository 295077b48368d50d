//! The memory that bodies land in.
//!
//! Owns: destinations. A [`Target`] is one piece of memory to be filled, from the [`Pool`] or from
//! the caller ([`OwnedTarget`], [`lend_blocking`]). It is cut into [`Slot`]s, each the only handle
//! on its bytes, so many connections can receive at their final offsets at once. When all of it is
//! filled it is frozen into a [`Buffer`], which is shared, sliced and read without a copy.
//!
//! ```text
//! Pool::reserve(len) -> Target -> whole() -> Slot -> split_to(part) -> Slot … -> filled, dropped
//!                         '---------------- freeze() -> Buffer -> Bytes -> dropped -> Pool
//! ```
//!
//! Refuses: a buffer with bytes that nobody wrote, a buffer or a recovered owner while any slot over
//! it can still be written, and to panic or abort when the kernel has no memory left. It knows
//! nothing of sockets, tasks or runtimes: whoever fills a slot does so through [`bytes::BufMut`],
//! which keeps unsafe code out of every other room.
//!
//! A slot keeps its memory alive. When a transfer is cancelled, the target goes away at once and the
//! memory follows with the last slot, so a late write never lands in memory that was freed or handed
//! to somebody else.
//!
//! Pooled memory is never zeroed and, once touched, is used again: the first touch of a fresh page
//! costs several times the receive that fills it.
//!
//! All of the engine's unsafe code over memory is here. The feature `portable` replaces what asks
//! the kernel (`mmap`, `madvise`, `pread`) by the allocator, so that Miri can run every test:
//! `make miri`.

// What only tests, benchmarks and the front doors to come use counts as used.
#![cfg_attr(not(feature = "internals"), allow(dead_code, unused_imports))]

mod class;
mod frozen;
mod map;
mod pool;
mod slot;
mod target;

#[cfg(test)]
mod pool_tests;
#[cfg(test)]
mod tests;

pub use frozen::Buffer;
pub use pool::{Pool, PoolConfig, PoolStats};
pub use slot::Slot;
pub use target::{FreezeError, OwnedTarget, RecoverError, Target, lend_blocking};

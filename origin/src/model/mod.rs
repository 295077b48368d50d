//! How the server misbehaves on purpose.
//!
//! Owns the faults that tests script ([`fault`]) and what they do to an answer on its way out ([`body`]). Without
//! faults nothing here touches a byte. Latency, bandwidth and throttling are to have their rooms here too.

pub(crate) mod body;
pub(crate) mod fault;

//! What the server is like, and how it misbehaves on purpose.
//!
//! Owns the [`claims`] of a model (and [`latency`] with its [`alarm`], [`rate`], [`throttle`], which keep them) and the faults ([`fault`]: which requests they meet, [`action`]: what they are, [`effect`]: doing it) and what
//! they do to an answer on its way out ([`body`], and [`mod@line`] for heads and connections). Without a model and without
//! faults nothing here touches a byte.

pub(crate) mod action;
pub(crate) mod alarm;
pub(crate) mod body;
pub(crate) mod claims;
pub(crate) mod clock;
pub(crate) mod effect;
pub(crate) mod fault;
pub(crate) mod latency;
pub(crate) mod line;
pub(crate) mod rate;
pub(crate) mod seeded;
pub(crate) mod throttle;

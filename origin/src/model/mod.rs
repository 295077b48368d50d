//! How the server misbehaves on purpose.
//!
//! Owns the faults ([`fault`]: which requests they meet, [`action`]: what they are, [`effect`]: doing it) and what
//! they do to an answer on its way out ([`body`], and [`line`] for heads and connections). Without faults nothing here
//! touches a byte.

pub(crate) mod action;
pub(crate) mod body;
pub(crate) mod clock;
pub(crate) mod effect;
pub(crate) mod fault;
pub(crate) mod line;
pub(crate) mod seeded;

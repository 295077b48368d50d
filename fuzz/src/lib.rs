//! The engine's wire room, built from its own files: a fuzz target needs nothing else of the engine,
//! and so none of what the rest depends on.

#[path = "../../engine/src/checksum.rs"]
#[allow(missing_docs, unreachable_pub, dead_code)]
pub mod checksum;
#[path = "../../engine/src/wire/mod.rs"]
#[allow(missing_docs)]
pub mod wire;

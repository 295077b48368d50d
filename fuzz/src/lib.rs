//! The engine's wire room and the lines of resume files, built from their own files: a fuzz target needs nothing else of
//! their crates, and so none of what the rest depends on.

#[path = "../../engine/src/checksum.rs"]
#[allow(missing_docs, unreachable_pub, dead_code)]
pub mod checksum;
#[path = "../../bulk/src/state/record.rs"]
#[allow(missing_docs, unreachable_pub, dead_code)]
pub mod resume_record;
#[path = "../../engine/src/text.rs"]
mod text;
#[path = "../../engine/src/wire/mod.rs"]
#[allow(missing_docs)]
pub mod wire;

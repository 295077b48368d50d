//! One job as many: cut into shards that run anywhere, in any order, each as often as it takes.
//!
//! A [`BulkSpec`] says in plain data what is to be done between two places; [`plan()`] looks through the source once and
//! cuts it into [`ShardSpec`]s, ranges of keys that together leave nothing out and do not overlap, or [`plan_names`] cuts a
//! list. [`run_shard`] does one of them, and [`merge`] makes one report of what came of all.
//!
//! A spec is JSON and holds no credentials: who runs it brings their own. Running one twice, or after a run that was
//! killed, comes to the same as running it once: objects and files appear whole or not at all, a sync transfers what is
//! not there yet, and deletes within its own range alone, the first and the last of which are open.
//!
//! Refused are what cannot be told in plain data (keys of SSE-C) and what only the whole job could keep to (a bound on
//! deletions).

mod census;
mod plan;
mod result;
mod run;
mod spec;

pub use plan::{plan, plan_names};
pub use result::{FailedItem, MergedReport, ShardResult, merge};
pub use run::run_shard;
pub use spec::{BulkSpec, NamedItem, Rule, ShardOptions, ShardSpec, Slice, Verb, WriteSpec};

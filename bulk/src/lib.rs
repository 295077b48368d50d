//! Many objects at once, on top of the engine: copies, moves, syncs and deletions of whole trees.
//!
//! A [`Job`] takes what one [`Place`] has (a listing, a walk over a folder, or a list of names), leaves out what its
//! [`Filter`] does not want, [`Compare`]s the rest with what the other place has, and transfers or deletes what follows
//! from that. The stages run beside each other, joined by bounded queues: the first object moves while later pages are
//! still being listed, and memory does not grow with the number of objects. Nothing is asked that a listing has told.
//!
//! Every item that is done, left out or failed is told to a [`Report`]; one item's failure does not stop the others.
//!
//! ```no_run
//! # async fn example(client: wirespeed::Client) {
//! use wirespeed_bulk::{Filter, Job, Place};
//!
//! let job = Job::sync(Place::folder("photos"), Place::bucket(&client, "bucket", "photos/"))
//!     .filter(Filter::new().exclude("*.tmp"))
//!     .delete_extra(true);
//! let summary = job.run(&mut ()).await;
//! println!("{} transferred, {} deleted, {} failed", summary.transferred, summary.deleted, summary.failed);
//! # }
//! ```

mod compare;
mod differences;
mod entry;
mod failure;
mod filter;
mod fingerprint;
mod job;
mod join;
mod manifest;
mod place;
mod preserve;
mod report;
mod shard;
mod source;
mod state;
mod summary;

pub use compare::Compare;
pub use differences::{Differences, Finding, Found};
pub use entry::Entry;
pub use failure::{Failure, dooms_the_rest};
pub use filter::{Filter, Pattern};
pub use fingerprint::Fingerprint;
pub use job::Job;
pub use manifest::{Form, Manifest, ManifestError};
pub use place::{Bucket, Location, Place};
pub use report::{Action, Item, Outcome, Report};
pub use shard::{
    BulkSpec, FailedItem, MergedReport, NamedItem, Rule, ShardOptions, ShardResult, ShardSpec, Slice, Verb, WriteSpec,
    merge, plan, plan_names, run_shard,
};
pub use state::{JobName, Leftover, Resumed, State, StateError};
pub use summary::{Summary, Withheld};

//! Protocol 1 for drivers in Rust: the plan comes in, rounds are run and timed, samples go out. It holds no
//! client, and between the readings of the clock around an item it does nothing of its own.

mod body;
mod call;
mod found;
mod plan;
pub mod ranges;
mod round;
mod verbs;

pub use call::Call;
pub use plan::{Item, Operation, Plan, Sink, Source, credentials};
pub use verbs::{Skip, answer};

use std::future::Future;
use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

/// What `describe` prints: what a driver drives, and what it can do.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct About {
    /// Id of the driver.
    pub name: &'static str,
    /// The client that it drives.
    pub client: &'static str,
    /// Version of the client.
    pub version: &'static str,
    /// The libraries that matter beside the client, and their versions.
    #[serde(serialize_with = "as_map")]
    pub components: &'static [(&'static str, &'static str)],
    /// Operations that it can do.
    pub operations: &'static [Operation],
    /// Where the bytes of a get can go.
    pub sinks: &'static [Sink],
    /// Where the bytes of a put can come from.
    pub sources: &'static [Source],
    /// Settings of a plan that it applies.
    pub settings: &'static [&'static str],
    /// Whether it speaks TLS.
    pub tls: bool,
    /// What the driver does that the client has no call for.
    pub notes: &'static [&'static str],
}

fn as_map<S: serde::Serializer>(pairs: &&[(&str, &str)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().copied())
}

/// A client under the lab. Each call is one item of the plan.
pub trait Client: Sized + Send + Sync + 'static {
    /// What `describe` prints.
    const ABOUT: About;

    /// The runtime that the client runs on. As it comes: one worker for each core that the process may use, and
    /// no second thread on one core.
    ///
    /// # Errors
    /// Where a thread cannot be made.
    fn runtime() -> std::io::Result<Runtime> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut builder = if cores == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
        builder.worker_threads(cores).enable_all().build()
    }

    /// Makes the client, inside its runtime. `SSL_CERT_FILE` names the plan's `ca_file` by then, where it has one.
    ///
    /// # Errors
    /// [`Skip`] where the client cannot do this plan, anything else where it should but fails.
    fn open(plan: &Arc<Plan>) -> Result<Self>;

    /// How many items are kept in flight.
    fn in_flight(&self) -> usize;

    /// The configuration in effect, as an object with at least `concurrency` and `part_size`.
    fn effective(&self) -> Value;

    /// Reads the item into the plan's sink.
    fn get(self: &Arc<Self>, call: &mut Call<'_>) -> impl Future<Output = Result<()>> + Send;

    /// Writes the item: from `body` where there is one, otherwise from the file at [`Call::path`].
    fn put(self: &Arc<Self>, call: &mut Call<'_>, body: Option<Bytes>) -> impl Future<Output = Result<()>> + Send;

    /// Lists the item's prefix.
    fn list(self: &Arc<Self>, call: &mut Call<'_>) -> impl Future<Output = Result<()>> + Send;
}

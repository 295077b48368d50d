//! S3 at the speed of the wire.
//!
//! wirespeed receives every byte straight into its final place: the caller's memory, one
//! engine-owned buffer, or a file. It discovers sizes without asking, cuts large objects into ranges
//! that are pinned to one version and checked, retries what broke from the byte where it broke, and
//! stays within a memory budget.
//!
//! Begin with [`Client`].

mod client;
mod config;
mod credentials;
mod error;
mod metrics;
mod net;
mod pace;
mod transfer;

#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod buffer;
#[cfg(not(feature = "internals"))]
#[allow(unreachable_pub)] // Public where `internals` opens the room.
mod buffer;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod plan;
#[cfg(not(feature = "internals"))]
#[allow(unreachable_pub)]
mod plan;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod wire;
#[cfg(not(feature = "internals"))]
mod wire;

pub use buffer::Buffer;
pub use client::{Client, ClientBuilder};
pub use config::{AddressingStyle, CONFIG_KEYS, Config, ConfigKey, ExpressSessions, PayloadSigning, ProxyUrl};
pub use credentials::Credentials;
pub use error::{Error, ErrorKind, Result};
pub use metrics::{Metrics, Observer, Progress, RequestEvent};
pub use transfer::bucket::ListedBucket;
pub use transfer::checksum::{Unverified, Verified};
pub use transfer::delete::DeleteFailure;
pub use transfer::get::{Get, Object};
pub use transfer::get_many::GetMany;
pub use transfer::head::ObjectInfo;
pub use transfer::list::{List, ListedObject, Page, Pages, StorageClass};
pub use transfer::many::Outcomes;
pub use transfer::put::{Put, PutOutcome};
pub use transfer::put_many::PutMany;
pub use wire::checksum::{Checksum, ChecksumAlgorithm};

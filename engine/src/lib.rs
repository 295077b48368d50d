//! S3 at the speed of the wire.
//!
//! wirespeed receives every byte straight into its final place: the caller's memory, one
//! engine-owned buffer, or a file. It discovers sizes without asking, cuts large objects into ranges
//! that are pinned to one version and checked, retries what broke from the byte where it broke, and
//! stays within a memory budget.
//!
//! Begin with [`Client`].

mod checksum;
mod client;
mod config;
mod credentials;
mod error;
mod metrics;
mod net;
mod pace;
mod sync;
mod text;
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
pub use checksum::ChecksumAlgorithm;
pub use client::{Client, ClientBuilder};
pub use config::{AddressingStyle, CONFIG_KEYS, Config, ConfigKey, ExpressSessions, PayloadSigning, ProxyUrl};
pub use credentials::Credentials;
pub use error::{Error, ErrorKind, Result};
pub use metrics::{Metrics, Observer, Progress, RequestEvent};
pub use net::split_bucket;
pub use transfer::begun_get::BegunGet;
pub use transfer::bucket::{ListBuckets, ListedBucket};
pub use transfer::checksum::{Unverified, Verified};
pub use transfer::cleanup::UnfinishedUpload;
pub use transfer::copy::{Copy, CopyDirective, CopyOutcome};
pub use transfer::copy_many::{CopyItem, CopyMany};
pub use transfer::delete::{Delete, DeleteFailure, DeleteMany, DeleteOutcome};
pub use transfer::file::FileAttributes;
pub use transfer::file_item::FileItem;
pub use transfer::get::{Get, Object};
pub use transfer::get_item::GetItem;
pub use transfer::get_many::GetMany;
pub use transfer::get_ranges::GetRanges;
pub use transfer::head::{Head, ObjectInfo};
pub use transfer::head_many::HeadMany;
pub use transfer::list::{List, ListedObject, ListedVersion, Page, ParallelList, StorageClass, VersionPage};
pub use transfer::list_parts::{ListParts, ListedPart, PartPage};
pub use transfer::many::Outcomes;
pub use transfer::options::{Sending, SseCustomerKey};
pub use transfer::pages::Pages;
pub use transfer::parts::{ObjectParts, Part};
pub use transfer::presign::Presign;
pub use transfer::put::{Put, PutOutcome};
pub use transfer::put_many::PutMany;
pub use transfer::put_options::PutOptions;
pub use transfer::raw::{Method, Raw, RawAnswer};
pub use transfer::resume::{
    DownloadLog, DownloadResume, FileIdentity, PartialDownload, PartialUpload, UploadLog, UploadResume, UploadedPart,
};
pub use transfer::stream::ObjectStream;
pub use transfer::upload_item::UploadItem;
pub use transfer::uploads::{AbortUpload, ListUploads, ListedUpload, UploadPage};
pub use wire::checksum::Checksum;

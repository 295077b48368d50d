//! An embedded S3 server, for tests, demonstrations and benchmarks.
//!
//! It speaks enough of S3 for the ordinary verbs of every client: buckets, objects, ranges, conditional requests,
//! multipart uploads, listings, copies, versions, checksums and signatures; over HTTP or HTTPS. It is as slow as a
//! [`Model`] claims, and misbehaves as a [`Schedule`] of faults says. Objects live in memory, in a directory, or nowhere:
//! a synthetic bucket computes them (see [`synthetic_bytes`]), so that 30 GiB objects and ten million keys cost nothing
//! but the socket. It shares no code with the engine that it tests, so that it can't share its mistakes.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
//! use wirespeed_origin::{Origin, Series, Verb};
//!
//! let origin = Origin::builder()
//!     .anonymous(true)
//!     .bucket("scratch")
//!     .synthetic("data", Series::one("one.bin", 1 << 30))
//!     .start()
//!     .await?;
//! println!("{}", origin.endpoint());
//! assert_eq!(origin.stats().count(Verb::Get), 0);
//! origin.stop().await;
//! # Ok(()) }
//! ```
//!
//! How bytes pass: a [socket] paces them, TLS may wrap it, a [counted] stream counts them under hyper's HTTP/1.1, the
//! [service] counts requests, and the [protocol] (over the `s3s` crate) moves frames between them and the [store]
//! without copying large ones.
#![allow(rustdoc::private_intra_doc_links)]

mod access;
mod answer;
mod builder;
mod connection;
mod counted;
mod document;
mod express;
mod flight;
mod host;
mod linger;
mod model;
mod patience;
mod protocol;
mod refusal;
mod running;
mod service;
mod socket;
mod stats;
mod store;
mod tls;
mod verb;

pub use builder::{Builder, Origin};
pub use model::action::{ANYWHERE, Action, BadHead};
pub use model::claims::{FirstByte, Model, Nic, PrefixLimits, Rate};
pub use model::fault::{Fault, Schedule};
pub use running::Running;
pub use stats::Stats;
pub use store::intake::EtagKind;
pub use store::synthetic::{PERIOD, Series, synthetic_bytes};
pub use tls::{Tls, TlsFault, TlsVersions};
pub use verb::Verb;

//! Names to addresses, connections, and the pool that keeps them.
//!
//! This room owns every socket. A request's head is written into the connection's scratch and sent
//! together with the borrowed body in one vectored write; a body is received straight into the slot
//! it is meant for, with `SO_RCVLOWAT` set so that the reader wakes for much at once; under TLS each
//! record is opened into it. What the bytes
//! mean is `wire`'s business; when to try again is `pace`'s.
//!
//! It refuses to guess: a connection whose last exchange did not end cleanly is closed, never pooled.

mod address;
mod bucket_name;
mod connection;
mod endpoint;
mod failure;
mod pool;
mod proxy;
mod socket;
mod tls;
mod transport;
mod watchdog;

pub use bucket_name::split_bucket;
pub(crate) use bucket_name::{check_bucket, is_directory_bucket};
pub(crate) use connection::{BodyLeft, Connection};
pub(crate) use endpoint::{Authority, Endpoint, Location, check_key, region_of_host};
pub(crate) use failure::NetFailure;
pub(crate) use pool::ConnectionPool;

//! How an exchange with a server can fail, before anybody judges whether to try again.

use std::fmt;
use std::io;
use std::time::Duration;

/// A failure of the network or of the server's HTTP.
#[derive(Debug)]
pub(crate) enum NetFailure {
    /// The name has no address.
    Resolve { host: String, source: io::Error },
    /// No address of the endpoint accepted a connection.
    Connect { address: String, source: io::Error },
    /// A reused connection was closed by the server before it answered with a single byte.
    Stale,
    /// The connection broke after this exchange had begun.
    Broken { during: &'static str, source: Option<io::Error> },
    /// Nothing moved for too long.
    TimedOut { during: &'static str, after: Duration },
    /// The server's answer is not HTTP/1.1 as this engine accepts it.
    Malformed(String),
}

impl NetFailure {
    pub(crate) fn broken(during: &'static str, source: io::Error) -> NetFailure {
        NetFailure::Broken { during, source: Some(source) }
    }
}

impl fmt::Display for NetFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetFailure::Resolve { host, source } => {
                write!(f, "the name {host} could not be resolved: {source}")
            }
            NetFailure::Connect { address, source } => {
                write!(f, "no connection to {address}: {source}")
            }
            NetFailure::Stale => f.write_str("the server closed the idle connection"),
            NetFailure::Broken { during, source: Some(source) } => {
                write!(f, "the connection broke while {during}: {source}")
            }
            NetFailure::Broken { during, source: None } => {
                write!(f, "the server closed the connection while {during}")
            }
            NetFailure::TimedOut { during, after } => {
                write!(f, "timed out while {during}: nothing moved for {:.1} s", after.as_secs_f64())
            }
            NetFailure::Malformed(what) => write!(f, "the server's answer is malformed: {what}"),
        }
    }
}

impl std::error::Error for NetFailure {}

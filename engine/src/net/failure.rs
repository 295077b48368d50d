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
    /// The server did not prove who it is, or TLS with it failed.
    Tls { host: String, error: rustls::Error },
    /// The proxy on the way would not let the request through; whether it may another time.
    Proxy { proxy: String, why: String, may_pass: bool },
    /// There is nothing to check a server's certificate against.
    Trust(String),
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
            NetFailure::Tls { host, error } => write!(f, "{}", tls_meaning(host, error)),
            NetFailure::Proxy { proxy, why, .. } => write!(f, "the proxy {proxy} is in the way: {why}"),
            NetFailure::Trust(why) => f.write_str(why),
            NetFailure::Malformed(what) => write!(f, "the server's answer is malformed: {what}"),
        }
    }
}

impl NetFailure {
    /// What to try, where TLS failed.
    pub(crate) fn tls_hint(&self) -> Option<&'static str> {
        use rustls::{CertificateError as C, Error as E};
        let NetFailure::Tls { error, .. } = self else { return None };
        Some(match error {
            E::InvalidCertificate(C::NotValidForName | C::NotValidForNameContext { .. }) => {
                "check the endpoint URL; a bucket whose name has dots needs path style"
            }
            E::InvalidCertificate(
                C::Expired | C::ExpiredContext { .. } | C::NotValidYet | C::NotValidYetContext { .. },
            ) => "set this machine's clock, or have the server's certificate renewed",
            E::InvalidCertificate(_) => {
                "name the certificate authority's PEM file in AWS_CA_BUNDLE, or the server may not be whom you mean"
            }
            E::InvalidMessage(_) => "the endpoint may speak plain HTTP: try http:// in its URL",
            _ => "check that the endpoint speaks TLS 1.2 or 1.3",
        })
    }
}

fn tls_meaning(host: &str, error: &rustls::Error) -> String {
    use rustls::{CertificateError as C, Error as E};
    match error {
        E::InvalidCertificate(reason) => {
            let reason = match reason {
                C::NotValidForName | C::NotValidForNameContext { .. } => "it is for another name".to_owned(),
                C::Expired | C::ExpiredContext { .. } => "it has expired".to_owned(),
                C::NotValidYet | C::NotValidYetContext { .. } => "it is not valid yet".to_owned(),
                C::UnknownIssuer | C::BadSignature => {
                    "it is self-signed, or signed by an authority that is not trusted here".to_owned()
                }
                other => other.to_string(),
            };
            format!("the certificate of {host} is not accepted: {reason}")
        }
        E::InvalidMessage(_) => format!("{host} does not answer in TLS: {error}"),
        error => format!("TLS with {host} failed: {error}"),
    }
}

impl std::error::Error for NetFailure {}

//! Every setting of a client, in one list.
//!
//! [`CONFIG_KEYS`] is what the builder, the environment and the command line share: a setting is
//! described once, and parsed, shown and documented from there. What was set by name wins over the
//! environment, the environment over the profile (see [`PROFILE_KEYS`]), the profile over the default.

mod keys;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use keys::is_region;
pub use keys::{CONFIG_KEYS, ConfigKey};

use keys::PROFILE_KEYS;

use crate::checksum::ChecksumAlgorithm;
use crate::error::{Error, ErrorKind, Result};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// AWS's switch by which URLs of the environment and of profiles do not count.
const IGNORE_URLS: &str = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS";

/// Below this a body stands still for so long that servers give it up.
pub(crate) const LEAST_BANDWIDTH: u64 = KIB;

/// More requests in flight than any network has use for.
pub(crate) const MOST_CONCURRENCY: usize = 10_000;

/// How a bucket is named in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressingStyle {
    /// Virtual-host style for AWS, path style for a custom endpoint.
    Auto,
    /// `https://endpoint/bucket/key`.
    Path,
    /// `https://bucket.endpoint/key`.
    Virtual,
}

/// Whether the bytes of an upload are covered by the request's signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadSigning {
    /// Signed over plain HTTP, where nothing else protects them; unsigned under TLS.
    Auto,
    /// Always: one pass of SHA-256 over the body.
    Signed,
    /// Never (`UNSIGNED-PAYLOAD`).
    Unsigned,
}

/// The URL of an HTTP proxy. What stands before its host may be a password, and is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyUrl(String);

impl ProxyUrl {
    /// `http://proxy:3128`, `http://user:password@proxy:3128`, or without the scheme.
    ///
    /// # Errors
    /// Why it is no such URL, without showing it.
    pub fn new(text: &str) -> Result<ProxyUrl, String> {
        let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: http::Uri = url.parse().map_err(|_| "it is not a URL such as http://proxy:3128")?;
        match uri.scheme_str() {
            Some("http") => {}
            Some(scheme) => return Err(format!("{scheme} proxies are not supported, only http:// ones")),
            None => return Err("it is not a URL such as http://proxy:3128".to_owned()),
        }
        if uri.host().is_none_or(str::is_empty) {
            return Err("it names no host".to_owned());
        }
        let authority = uri.authority().map_or("", http::uri::Authority::as_str);
        let after_user = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        if uri.port_u16().is_none() && uri.host() != Some(after_user) {
            return Err("its port is not one".to_owned());
        }
        Ok(ProxyUrl(url))
    }

    /// With the password, if it has one.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.rsplit_once('@') {
            Some((_, host)) => write!(f, "http://{host}"),
            None => f.write_str(&self.0),
        }
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProxyUrl({self})")
    }
}

/// Whether requests to directory buckets (S3 Express One Zone) are signed with the credentials of a
/// session, which CreateSession gives out for some minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpressSessions {
    /// On AWS.
    Auto,
    /// Also on a custom endpoint, for buckets whose names end as those of directory buckets do.
    Always,
    /// Never: every request is signed with the client's own credentials, which takes longer to check.
    Never,
}

/// What is in effect for a client. Sizes are bytes.
///
/// This is what the builder and the environment say. What only the profile says is read with the first
/// request, and is not shown here.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The endpoint's URL; `None` is AWS in `region`.
    pub endpoint_url: Option<String>,
    /// The region that requests are signed for.
    pub region: String,
    /// How a bucket is named in a request.
    pub addressing_style: AddressingStyle,
    /// The profile of the AWS configuration files; `None` is `default`.
    pub profile: Option<String>,
    /// Whether AWS is reached by the names that have IPv6 addresses too.
    pub use_dualstack_endpoint: bool,
    /// Whether AWS is reached by its FIPS 140 endpoints.
    pub use_fips_endpoint: bool,
    /// Whether AWS is reached through S3 Transfer Acceleration.
    pub use_accelerate_endpoint: bool,
    /// Whether directory buckets are used with session credentials.
    pub express_sessions: ExpressSessions,
    /// Requests in flight at once, over all operations of the client.
    pub concurrency: usize,
    /// The length of one range of a download and of one part of an upload.
    pub part_size: u64,
    /// Objects of this size and above are uploaded in parts.
    pub multipart_threshold: u64,
    /// Bytes in flight and undelivered at once. The caller's own destination is not counted.
    pub memory: u64,
    /// Bytes of bodies a second, up and down together, over all operations of the client; `None` for no limit.
    pub bandwidth_limit: Option<u64>,
    /// How long one connection may take to be made.
    pub connect_timeout: Duration,
    /// How long a server may take from the end of a request to the first byte of its answer.
    pub first_byte_timeout: Duration,
    /// How long a body may stand still, in either direction.
    pub stall_timeout: Duration,
    /// Requests for one part before its failure is reported, the first included. A request that is throttled while the
    /// server serves others of the client has four retries for each that this allows; while the server does not answer
    /// at all, the waits between the attempts are longer.
    pub max_attempts: u32,
    /// Whether the bytes of an upload are covered by the request's signature.
    pub payload_signing: PayloadSigning,
    /// The checksum that uploads carry; `None` for none.
    pub checksum_algorithm: Option<ChecksumAlgorithm>,
    /// Whether whole downloads are checked against the object's own checksum.
    pub verify_checksums: bool,
    /// A PEM file of the certificate authorities to trust; `None` is the system's.
    pub ca_bundle: Option<PathBuf>,
    /// Whether a server must prove who it is. Without it TLS protects nothing.
    pub verify_tls: bool,
    /// The proxy that TLS goes through.
    pub https_proxy: Option<ProxyUrl>,
    /// What goes straight all the same: names, suffixes, addresses and networks, separated by commas.
    pub no_proxy: Option<String>,
    /// The mark for `SO_RCVLOWAT` while a body is outstanding; 0 leaves the socket alone.
    pub receive_low_water: u64,
    /// Whether pooled memory asks the kernel for huge pages.
    pub huge_pages: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            endpoint_url: None,
            region: "us-east-1".to_owned(),
            addressing_style: AddressingStyle::Auto,
            profile: None,
            use_dualstack_endpoint: false,
            use_fips_endpoint: false,
            use_accelerate_endpoint: false,
            express_sessions: ExpressSessions::Auto,
            concurrency: 128,
            part_size: 8 * MIB,
            multipart_threshold: 16 * MIB,
            memory: default_memory(),
            bandwidth_limit: None,
            connect_timeout: Duration::from_secs(5),
            first_byte_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(20),
            max_attempts: 5,
            payload_signing: PayloadSigning::Auto,
            checksum_algorithm: Some(ChecksumAlgorithm::Crc64Nvme),
            verify_checksums: true,
            ca_bundle: None,
            verify_tls: true,
            https_proxy: None,
            no_proxy: None,
            receive_low_water: MIB,
            huge_pages: true,
        }
    }
}

/// A quarter of the machine's memory, at most 1 GiB; 256 MiB where the machine will not say.
fn default_memory() -> u64 {
    installed_memory().map_or(256 * MIB, |installed| (installed / 4).min(GIB))
}

/// Bytes of memory that the machine has, where it says so.
#[cfg(all(target_os = "linux", not(feature = "portable")))]
fn installed_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    Some(line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()? * KIB)
}

#[cfg(not(all(target_os = "linux", not(feature = "portable"))))]
fn installed_memory() -> Option<u64> {
    None
}

impl Config {
    /// Every setting in effect, by name, as text that [`ClientBuilder::set`] reads back.
    ///
    /// [`ClientBuilder::set`]: crate::ClientBuilder::set
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        CONFIG_KEYS.iter().map(|key| (key.name, (key.show)(self)))
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let Some(key) = CONFIG_KEYS.iter().find(|key| key.name == name) else {
            let known: Vec<_> = CONFIG_KEYS.iter().map(|key| key.name).collect();
            return Err(Error::new(
                ErrorKind::Config,
                format!("there is no setting named {name:?}; there are {}", known.join(", ")),
            ));
        };
        key.apply(self, value, name)
    }

    /// Parts pass through half the memory, so none may be larger than that; nor may an object that is
    /// sent whole. S3 wants no part below 5 MiB.
    pub(crate) fn keep_parts_within_memory(&mut self) {
        self.part_size = self.part_size.min(self.memory / 2);
        self.multipart_threshold = self.multipart_threshold.min((self.memory / 2).max(5 * MIB));
    }

    /// Takes from the environment what was not set by name; the names of what it took.
    pub(crate) fn fill_from_environment(
        &mut self,
        is_set: impl Fn(&str) -> bool,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<&'static str>> {
        let mut taken = Vec::new();
        let ignores_urls = variable(IGNORE_URLS).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        for key in CONFIG_KEYS.iter().filter(|key| !is_set(key.name)) {
            if key.name == "endpoint_url" && ignores_urls {
                // Decided: a profile's URL is ignored as well.
                taken.push(key.name);
                continue;
            }
            let found =
                key.environment.iter().find_map(|name| Some((name, variable(name).filter(|value| !value.is_empty())?)));
            if let Some((name, value)) = found {
                key.apply(self, &value, name)?;
                taken.push(key.name);
            }
        }
        Ok(taken)
    }

    /// Takes from a profile what neither a name nor the environment decided. `property` looks a
    /// property up, by its name in the file; `source` says whose it is.
    pub(crate) fn fill_from_profile(
        &mut self,
        is_decided: impl Fn(&str) -> bool,
        property: impl Fn(&str) -> Option<String>,
        source: &str,
    ) -> Result<()> {
        for (name, properties) in PROFILE_KEYS.iter().filter(|(name, _)| !is_decided(name)) {
            let found = properties.iter().find_map(|called| Some((called, property(called)?)));
            let key = CONFIG_KEYS.iter().find(|key| key.name == *name);
            if let (Some((called, value)), Some(key)) = (found, key) {
                key.apply(self, value.trim(), &format!("{called} of {source}"))?;
            }
        }
        Ok(())
    }
}

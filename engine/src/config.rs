//! Every setting of a client, in one list.
//!
//! [`CONFIG_KEYS`] is what the builder, the environment and the command line share: a setting is
//! described once, and parsed, shown and documented from there. What was set by name wins over the
//! environment, the environment over the profile (see [`PROFILE_KEYS`]), the profile over the default.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::wire::checksum::ChecksumAlgorithm;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

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
    /// How long one connection may take to be made.
    pub connect_timeout: Duration,
    /// How long a server may take from the end of a request to the first byte of its answer.
    pub first_byte_timeout: Duration,
    /// How long a body may stand still, in either direction.
    pub stall_timeout: Duration,
    /// Requests made for one part before its failure is reported.
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
            concurrency: 32,
            part_size: 8 * MIB,
            multipart_threshold: 16 * MIB,
            memory: default_memory(),
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
        for key in CONFIG_KEYS.iter().filter(|key| !is_set(key.name)) {
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

/// The settings that a profile of the AWS configuration files can make, and its names for them:
/// `s3.x` is the property `x` indented under `s3`, and `services.s3.x` that of the profile's services
/// section.
pub(crate) const PROFILE_KEYS: &[(&str, &[&str])] = &[
    ("endpoint_url", &["services.s3.endpoint_url", "endpoint_url"]),
    ("region", &["region"]),
    ("addressing_style", &["s3.addressing_style"]),
    ("use_dualstack_endpoint", &["use_dualstack_endpoint", "s3.use_dualstack_endpoint"]),
    ("use_fips_endpoint", &["use_fips_endpoint"]),
    ("use_accelerate_endpoint", &["s3.use_accelerate_endpoint"]),
];

/// One setting: its names, its meaning, and how it is read and shown.
#[derive(Debug, Clone, Copy)]
pub struct ConfigKey {
    /// The name for [`ClientBuilder::set`](crate::ClientBuilder::set), in snake case.
    pub name: &'static str,
    /// Environment variables that set it, the first that is set winning.
    pub environment: &'static [&'static str],
    /// What it does, in one line.
    pub help: &'static str,
    read: fn(&mut Config, &str) -> Result<(), String>,
    show: fn(&Config) -> String,
}

impl ConfigKey {
    fn apply(&self, config: &mut Config, value: &str, given_as: &str) -> Result<()> {
        (self.read)(config, value).map_err(|why| {
            // What stands before an @ may be a password.
            let shown = if value.contains('@') { "what it is".to_owned() } else { format!("{value:?}") };
            Error::new(ErrorKind::Config, format!("{given_as} cannot be {shown}: {why}"))
        })
    }
}

/// Every setting there is.
pub const CONFIG_KEYS: &[ConfigKey] = &[
    ConfigKey {
        name: "endpoint_url",
        environment: &["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"],
        help: "URL of the S3 endpoint; AWS in the region where it is not given",
        read: |config, value| {
            config.endpoint_url = Some(value.to_owned());
            Ok(())
        },
        show: |config| config.endpoint_url.clone().unwrap_or_default(),
    },
    ConfigKey {
        name: "region",
        environment: &["AWS_REGION", "AWS_DEFAULT_REGION"],
        help: "region that requests are signed for",
        read: |config, value| {
            if !is_region(value) {
                return Err("a region is letters, digits and dashes, such as eu-central-1".into());
            }
            config.region = value.to_owned();
            Ok(())
        },
        show: |config| config.region.clone(),
    },
    ConfigKey {
        name: "addressing_style",
        environment: &["WIRESPEED_ADDRESSING_STYLE"],
        help: "how a bucket is named in a request: auto, path or virtual",
        read: |config, value| {
            config.addressing_style = match value {
                "auto" => AddressingStyle::Auto,
                "path" => AddressingStyle::Path,
                "virtual" => AddressingStyle::Virtual,
                _ => return Err("it is one of auto, path, virtual".into()),
            };
            Ok(())
        },
        show: |config| {
            match config.addressing_style {
                AddressingStyle::Auto => "auto",
                AddressingStyle::Path => "path",
                AddressingStyle::Virtual => "virtual",
            }
            .to_owned()
        },
    },
    ConfigKey {
        name: "profile",
        environment: &["AWS_PROFILE", "AWS_DEFAULT_PROFILE"],
        help: "profile of the AWS configuration files that settings and credentials come from",
        read: |config, value| {
            config.profile = Some(value.to_owned()).filter(|name| !name.is_empty());
            Ok(())
        },
        show: |config| config.profile.clone().unwrap_or_default(),
    },
    ConfigKey {
        name: "use_dualstack_endpoint",
        environment: &["AWS_USE_DUALSTACK_ENDPOINT"],
        help: "whether AWS is reached by names that have IPv6 addresses too: true or false",
        read: |config, value| {
            config.use_dualstack_endpoint = switch(value)?;
            Ok(())
        },
        show: |config| config.use_dualstack_endpoint.to_string(),
    },
    ConfigKey {
        name: "use_fips_endpoint",
        environment: &["AWS_USE_FIPS_ENDPOINT"],
        help: "whether AWS is reached by its FIPS endpoints: true or false",
        read: |config, value| {
            config.use_fips_endpoint = switch(value)?;
            Ok(())
        },
        show: |config| config.use_fips_endpoint.to_string(),
    },
    ConfigKey {
        name: "use_accelerate_endpoint",
        environment: &["WIRESPEED_USE_ACCELERATE_ENDPOINT"],
        help: "whether AWS is reached through S3 Transfer Acceleration: true or false",
        read: |config, value| {
            config.use_accelerate_endpoint = switch(value)?;
            Ok(())
        },
        show: |config| config.use_accelerate_endpoint.to_string(),
    },
    ConfigKey {
        name: "express_sessions",
        environment: &["WIRESPEED_EXPRESS_SESSIONS"],
        help: "whether directory buckets are used with session credentials: auto (on AWS), always, never",
        read: |config, value| {
            config.express_sessions = match value {
                "auto" => ExpressSessions::Auto,
                "always" => ExpressSessions::Always,
                "never" => ExpressSessions::Never,
                _ => return Err("it is one of auto, always, never".into()),
            };
            Ok(())
        },
        show: |config| {
            match config.express_sessions {
                ExpressSessions::Auto => "auto",
                ExpressSessions::Always => "always",
                ExpressSessions::Never => "never",
            }
            .to_owned()
        },
    },
    ConfigKey {
        name: "concurrency",
        environment: &["WIRESPEED_CONCURRENCY"],
        help: "requests in flight at once",
        read: |config, value| {
            config.concurrency = number(value, 1, MOST_CONCURRENCY as u64)? as usize;
            Ok(())
        },
        show: |config| config.concurrency.to_string(),
    },
    ConfigKey {
        name: "part_size",
        environment: &["WIRESPEED_PART_SIZE"],
        help: "length of one range of a download and of one part of an upload",
        read: |config, value| {
            config.part_size = size(value, 64 * KIB, 5 * GIB)?;
            Ok(())
        },
        show: |config| show_size(config.part_size),
    },
    ConfigKey {
        name: "multipart_threshold",
        environment: &["WIRESPEED_MULTIPART_THRESHOLD"],
        help: "objects of this size and above are uploaded in parts",
        read: |config, value| {
            config.multipart_threshold = size(value, 0, 5_000_000_000)?;
            Ok(())
        },
        show: |config| show_size(config.multipart_threshold),
    },
    ConfigKey {
        name: "memory",
        environment: &["WIRESPEED_MEMORY"],
        help: "bytes in flight and undelivered at once",
        read: |config, value| {
            config.memory = size(value, 4 * MIB, 1 << 44)?;
            Ok(())
        },
        show: |config| show_size(config.memory),
    },
    ConfigKey {
        name: "connect_timeout",
        environment: &["WIRESPEED_CONNECT_TIMEOUT"],
        help: "how long one connection may take to be made",
        read: |config, value| {
            config.connect_timeout = duration(value)?;
            Ok(())
        },
        show: |config| show_duration(config.connect_timeout),
    },
    ConfigKey {
        name: "first_byte_timeout",
        environment: &["WIRESPEED_FIRST_BYTE_TIMEOUT"],
        help: "how long a server may take until the first byte of its answer",
        read: |config, value| {
            config.first_byte_timeout = duration(value)?;
            Ok(())
        },
        show: |config| show_duration(config.first_byte_timeout),
    },
    ConfigKey {
        name: "stall_timeout",
        environment: &["WIRESPEED_STALL_TIMEOUT"],
        help: "how long a body may stand still",
        read: |config, value| {
            config.stall_timeout = duration(value)?;
            Ok(())
        },
        show: |config| show_duration(config.stall_timeout),
    },
    ConfigKey {
        name: "max_attempts",
        environment: &["AWS_MAX_ATTEMPTS"],
        help: "requests made for one part before its failure is reported",
        read: |config, value| {
            config.max_attempts = number(value, 1, 100)? as u32;
            Ok(())
        },
        show: |config| config.max_attempts.to_string(),
    },
    ConfigKey {
        name: "payload_signing",
        environment: &["WIRESPEED_PAYLOAD_SIGNING"],
        help: "whether signatures cover the bytes of uploads: auto (over plain HTTP only), signed, unsigned",
        read: |config, value| {
            config.payload_signing = match value {
                "auto" => PayloadSigning::Auto,
                "signed" => PayloadSigning::Signed,
                "unsigned" => PayloadSigning::Unsigned,
                _ => return Err("it is one of auto, signed, unsigned".into()),
            };
            Ok(())
        },
        show: |config| {
            match config.payload_signing {
                PayloadSigning::Auto => "auto",
                PayloadSigning::Signed => "signed",
                PayloadSigning::Unsigned => "unsigned",
            }
            .to_owned()
        },
    },
    ConfigKey {
        name: "checksum_algorithm",
        environment: &["WIRESPEED_CHECKSUM_ALGORITHM", "AWS_REQUEST_CHECKSUM_CALCULATION"],
        help: "checksum that uploads carry: crc64nvme, crc32, crc32c, sha256 or none",
        read: |config, value| {
            config.checksum_algorithm = match value.to_ascii_lowercase().as_str() {
                // The second variable's words: none of this client's uploads requires a checksum.
                "none" | "when_required" => None,
                "when_supported" => Some(ChecksumAlgorithm::Crc64Nvme),
                name => match ChecksumAlgorithm::named(name) {
                    Some(algorithm) => Some(algorithm),
                    None => return Err("it is one of crc64nvme, crc32, crc32c, sha256, none".into()),
                },
            };
            Ok(())
        },
        show: |config| config.checksum_algorithm.map_or("none", ChecksumAlgorithm::name).to_owned(),
    },
    ConfigKey {
        name: "verify_checksums",
        environment: &["WIRESPEED_VERIFY_CHECKSUMS", "AWS_RESPONSE_CHECKSUM_VALIDATION"],
        help: "whether whole downloads are checked against the object's checksum: true or false",
        read: |config, value| {
            config.verify_checksums = match value.to_ascii_lowercase().as_str() {
                "true" | "when_supported" => true,
                "false" | "when_required" => false,
                _ => return Err("it is true or false".into()),
            };
            Ok(())
        },
        show: |config| config.verify_checksums.to_string(),
    },
    ConfigKey {
        name: "ca_bundle",
        environment: &["AWS_CA_BUNDLE"],
        help: "PEM file of the certificate authorities to trust; the system's where it is not given",
        read: |config, value| {
            config.ca_bundle = (!value.is_empty()).then(|| value.into());
            Ok(())
        },
        show: |config| config.ca_bundle.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
    },
    ConfigKey {
        name: "verify_tls",
        environment: &["WIRESPEED_VERIFY_TLS"],
        help: "whether a server must prove who it is: true or false",
        read: |config, value| {
            config.verify_tls = value.parse().map_err(|_| "it is true or false")?;
            Ok(())
        },
        show: |config| config.verify_tls.to_string(),
    },
    ConfigKey {
        name: "https_proxy",
        environment: &["HTTPS_PROXY", "https_proxy"],
        help: "HTTP proxy that TLS goes through, by CONNECT",
        read: |config, value| {
            config.https_proxy = if value.is_empty() { None } else { Some(ProxyUrl::new(value)?) };
            Ok(())
        },
        show: |config| config.https_proxy.as_ref().map(ProxyUrl::to_string).unwrap_or_default(),
    },
    ConfigKey {
        name: "no_proxy",
        environment: &["NO_PROXY", "no_proxy"],
        help: "hosts that are reached without the proxy, separated by commas",
        read: |config, value| {
            config.no_proxy = (!value.is_empty()).then(|| value.to_owned());
            Ok(())
        },
        show: |config| config.no_proxy.clone().unwrap_or_default(),
    },
    ConfigKey {
        name: "receive_low_water",
        environment: &["WIRESPEED_RECEIVE_LOW_WATER"],
        help: "bytes that must have arrived before a body wakes its reader; 0 for any",
        read: |config, value| {
            config.receive_low_water = size(value, 0, 64 * MIB)?;
            Ok(())
        },
        show: |config| show_size(config.receive_low_water),
    },
    ConfigKey {
        name: "huge_pages",
        environment: &["WIRESPEED_HUGE_PAGES"],
        help: "whether pooled memory asks the kernel for huge pages: true or false",
        read: |config, value| {
            config.huge_pages = value.parse().map_err(|_| "it is true or false".to_owned())?;
            Ok(())
        },
        show: |config| config.huge_pages.to_string(),
    },
];

/// Whether the text can be a region's name: it stands in signatures and in the names of hosts.
pub(crate) fn is_region(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (1..=63).contains(&text.len()) && text.bytes().all(plain)
}

/// AWS's tools write `true` in any case.
fn switch(value: &str) -> Result<bool, String> {
    value.to_ascii_lowercase().parse().map_err(|_| "it is true or false".to_owned())
}

fn number(value: &str, least: u64, most: u64) -> Result<u64, String> {
    match value.parse::<u64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("it is a whole number from {least} to {most}")),
    }
}

fn size(value: &str, least: u64, most: u64) -> Result<u64, String> {
    match value.parse::<bytesize::ByteSize>() {
        Ok(size) if (least..=most).contains(&size.as_u64()) => Ok(size.as_u64()),
        _ => Err(format!(
            "it is a size from {} to {}, such as 8MiB (2^20) or 8MB (10^6)",
            show_size(least),
            show_size(most)
        )),
    }
}

/// Exact, unlike a rounded display: the largest binary unit that divides the size.
fn show_size(bytes: u64) -> String {
    for (unit, name) in [(GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{name}", bytes / unit);
        }
    }
    bytes.to_string()
}

fn duration(value: &str) -> Result<Duration, String> {
    match humantime::parse_duration(value) {
        Ok(duration) if !duration.is_zero() && duration <= Duration::from_secs(86_400) => Ok(duration),
        _ => Err("it is a time above zero and up to a day, such as 500ms or 20s".to_owned()),
    }
}

fn show_duration(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_reads_back_what_it_shows() {
        let config = Config {
            endpoint_url: Some("http://h:1".into()),
            profile: Some("p".into()),
            use_fips_endpoint: true,
            express_sessions: ExpressSessions::Always,
            ..Config::default()
        };
        let mut again = Config::default();
        for (name, value) in config.entries() {
            again.set(name, &value).unwrap();
        }
        assert_eq!(again, config);
    }

    #[test]
    fn what_was_set_wins_over_the_environment() {
        let mut config = Config::default();
        config.set("region", "eu-west-1").unwrap();
        let variable = |name: &str| match name {
            "AWS_REGION" => Some("us-west-2".to_owned()),
            "WIRESPEED_PART_SIZE" => Some("16MiB".to_owned()),
            _ => None,
        };
        config.fill_from_environment(|name| name == "region", variable).unwrap();
        assert_eq!(config.region, "eu-west-1");
        assert_eq!(config.part_size, 16 * MIB);
    }

    #[test]
    fn a_profile_decides_what_nothing_else_did() {
        let mut config = Config::default();
        let property = |name: &str| match name {
            "region" => Some("eu-south-1".to_owned()),
            "endpoint_url" => Some("http://h:1".to_owned()),
            "services.s3.endpoint_url" => Some("http://h:2".to_owned()),
            "s3.addressing_style" => Some("virtual".to_owned()),
            "use_fips_endpoint" => Some("True".to_owned()),
            _ => None,
        };
        config.fill_from_profile(|name| name == "region", property, "the profile p").unwrap();
        assert_eq!(config.region, "us-east-1");
        assert_eq!(config.endpoint_url.as_deref(), Some("http://h:2"));
        assert_eq!(config.addressing_style, AddressingStyle::Virtual);
        assert!(config.use_fips_endpoint);
        let wrong = |name: &str| (name == "s3.addressing_style").then(|| "round".to_owned());
        let error = Config::default().fill_from_profile(|_| false, wrong, "the profile p").unwrap_err().to_string();
        assert!(error.contains("s3.addressing_style of the profile p cannot be \"round\""), "{error}");
        for (name, _) in PROFILE_KEYS {
            assert!(CONFIG_KEYS.iter().any(|key| key.name == *name), "{name}");
        }
    }

    #[test]
    fn checksums_are_turned_off_in_the_words_of_other_clients() {
        let mut config = Config::default();
        let variable = |name: &str| name.starts_with("AWS_RE").then(|| "WHEN_REQUIRED".to_owned());
        config.fill_from_environment(|name| name == "region", variable).unwrap();
        assert_eq!((config.checksum_algorithm, config.verify_checksums), (None, false));
        config.set("checksum_algorithm", "SHA256").unwrap();
        assert_eq!(config.checksum_algorithm, Some(ChecksumAlgorithm::Sha256));
        assert!(config.set("checksum_algorithm", "md5").is_err());
    }

    #[test]
    fn a_bad_value_names_the_variable_and_what_it_may_be() {
        let mut config = Config::default();
        let variable = |name: &str| (name == "WIRESPEED_CONCURRENCY").then(|| "many".to_owned());
        let error = config.fill_from_environment(|_| false, variable).unwrap_err().to_string();
        assert!(error.contains("WIRESPEED_CONCURRENCY cannot be \"many\""), "{error}");
        assert!(error.contains("from 1 to 10000"), "{error}");
        assert!(config.set("part_size", "8 quarks").is_err());
        assert!(config.set("no_such", "1").unwrap_err().to_string().contains("part_size"));
    }
}

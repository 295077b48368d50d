//! The table of settings: each one's names, its meaning, and how it is read and shown.

use std::time::Duration;

use super::{
    AddressingStyle, Config, ExpressSessions, GIB, KIB, LEAST_BANDWIDTH, MIB, MOST_CONCURRENCY, PayloadSigning,
    ProxyUrl,
};
use crate::checksum::ChecksumAlgorithm;
use crate::error::{Error, ErrorKind, Result};

/// The settings that a profile of the AWS configuration files can make, and its names for them:
/// `s3.x` is the property `x` indented under `s3`, and `services.s3.x` that of the profile's services
/// section.
pub(super) const PROFILE_KEYS: &[(&str, &[&str])] = &[
    ("endpoint_url", &["services.s3.endpoint_url", "endpoint_url"]),
    ("region", &["region"]),
    ("addressing_style", &["s3.addressing_style"]),
    ("use_dualstack_endpoint", &["use_dualstack_endpoint", "s3.use_dualstack_endpoint"]),
    ("use_fips_endpoint", &["use_fips_endpoint"]),
    ("use_accelerate_endpoint", &["s3.use_accelerate_endpoint"]),
    ("ca_bundle", &["ca_bundle"]),
    ("max_attempts", &["max_attempts"]),
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
    pub(super) show: fn(&Config) -> String,
}

impl ConfigKey {
    pub(super) fn apply(&self, config: &mut Config, value: &str, given_as: &str) -> Result<()> {
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
        name: "bandwidth_limit",
        environment: &["WIRESPEED_BANDWIDTH_LIMIT"],
        help: "bytes of bodies a second, up and down together: a size such as 10MiB, or none",
        read: |config, value| {
            config.bandwidth_limit = match value {
                "none" => None,
                _ => Some(size(value, LEAST_BANDWIDTH, 1 << 44)?),
            };
            Ok(())
        },
        show: |config| config.bandwidth_limit.map_or_else(|| "none".to_owned(), show_size),
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
        help: "requests for one part, the first included; where the server throttles some and serves others, four retries \
               for each of these",
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

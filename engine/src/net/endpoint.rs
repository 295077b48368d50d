//! Where requests go: the endpoint's URL or AWS, and how a bucket is named there. Pure.
//!
//! [`Endpoint::locate`] turns a bucket's name and region into the authority to connect to, the `Host`
//! header, the path before the key, and what the signature must name. AWS's host names are those of its
//! published endpoint rules; a custom endpoint is taken as it is given.

use std::sync::Arc;

use super::bucket_name::BucketName;
use crate::config::{AddressingStyle, Config, ExpressSessions};
use crate::error::{Error, ErrorKind, Result};

/// A host and port to connect to, and whether TLS is spoken there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Authority {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) secure: bool,
}

impl std::fmt::Display for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Everything about a bucket's place that a request needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) authority: Arc<Authority>,
    /// The `Host` header: the port is left out where it is the scheme's own.
    pub(crate) host_header: String,
    /// The path before the key, already encoded: empty or `/bucket`.
    pub(crate) path_prefix: String,
    /// The region that the signature names.
    pub(crate) region: String,
    /// The service that the signature names.
    pub(crate) service: &'static str,
    /// Requests are signed with the credentials of a session (CreateSession).
    pub(crate) in_session: bool,
}

/// An endpoint, and how buckets are named on it.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    server: Server,
    region: String,
    style: AddressingStyle,
    sessions: ExpressSessions,
}

#[derive(Debug, Clone)]
enum Server {
    Custom { authority: Authority, base_path: String },
    Aws { fips: bool, dual_stack: bool, accelerate: bool },
}

impl Endpoint {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] where the URL is unusable, or settings exclude each other.
    pub(crate) fn new(config: &Config) -> Result<Endpoint> {
        let server = match config.endpoint_url.as_deref() {
            Some(url) => {
                refuse_names_of_aws(config)?;
                let (authority, base_path) = read_url(url)?;
                Server::Custom { authority, base_path }
            }
            None => {
                if config.use_accelerate_endpoint && config.use_fips_endpoint {
                    let message = "S3 Transfer Acceleration has no FIPS endpoints";
                    return Err(Error::new(ErrorKind::Config, message)
                        .with_hint("turn use_accelerate_endpoint or use_fips_endpoint off"));
                }
                Server::Aws {
                    fips: config.use_fips_endpoint,
                    dual_stack: config.use_dualstack_endpoint,
                    accelerate: config.use_accelerate_endpoint,
                }
            }
        };
        Ok(Endpoint {
            server,
            region: config.region.clone(),
            style: config.addressing_style,
            sessions: config.express_sessions,
        })
    }

    /// The region where nothing says otherwise.
    pub(crate) fn region(&self) -> &str {
        &self.region
    }

    /// Whether this is AWS, where a region is a host name.
    pub(crate) fn is_aws(&self) -> bool {
        matches!(self.server, Server::Aws { .. })
    }

    /// Where the bucket is, in `region` if that has been learned; an empty name is the service itself.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] where this endpoint cannot have such a bucket.
    pub(crate) fn locate(&self, bucket: &str, region: Option<&str>) -> Result<Location> {
        let name = if bucket.is_empty() { None } else { Some(BucketName::read(bucket)?) };
        let region = match name {
            Some(BucketName::AccessPoint { region, .. }) => region,
            _ => region.unwrap_or(&self.region),
        };
        let (authority, path_prefix) = match &self.server {
            Server::Custom { authority, base_path } => {
                let (host, bucket_path) = self.on_custom(&authority.host, bucket, name)?;
                (Authority { host, ..authority.clone() }, format!("{base_path}{bucket_path}"))
            }
            Server::Aws { fips, dual_stack, accelerate } => {
                let aws = Aws { region, fips: *fips, dual_stack: *dual_stack, accelerate: *accelerate };
                let (host, path_prefix) = aws.host(bucket, name, self.style)?;
                (Authority { host, port: 443, secure: true }, path_prefix)
            }
        };
        let shown = authority.to_string();
        let default_port = if authority.secure { ":443" } else { ":80" };
        let host_header = match shown.strip_suffix(default_port) {
            Some(bare) => bare.to_owned(),
            _ => shown,
        };
        let is_directory = matches!(name, Some(BucketName::Directory { .. }));
        let express = is_directory && (self.is_aws() || self.sessions == ExpressSessions::Always);
        Ok(Location {
            authority: Arc::new(authority),
            host_header,
            path_prefix,
            region: region.to_owned(),
            service: if express { "s3express" } else { "s3" },
            in_session: express && self.sessions != ExpressSessions::Never,
        })
    }

    /// The host and the bucket's part of the path on a custom endpoint.
    fn on_custom(&self, host: &str, bucket: &str, name: Option<BucketName<'_>>) -> Result<(String, String)> {
        let is_address = host.parse::<std::net::IpAddr>().is_ok();
        Ok(match name {
            None => (host.to_owned(), String::new()),
            Some(BucketName::AccessPoint { account, name, .. }) if !is_address => {
                (format!("{name}-{account}.{host}"), String::new())
            }
            Some(BucketName::AccessPoint { .. }) => {
                let message = format!("an access point is a name below the endpoint's, and {host} is an address");
                return Err(
                    Error::new(ErrorKind::Config, message).with_hint("leave the endpoint URL out, or name the bucket")
                );
            }
            // A custom endpoint seldom has a name for every bucket.
            Some(_) if self.style == AddressingStyle::Virtual => (format!("{bucket}.{host}"), String::new()),
            Some(_) => (host.to_owned(), format!("/{bucket}")),
        })
    }
}

/// Refuses settings that choose among AWS's host names where a URL names the host: whoever asks for FIPS
/// must not be served without it.
fn refuse_names_of_aws(config: &Config) -> Result<()> {
    let chosen = [
        ("use_fips_endpoint", config.use_fips_endpoint),
        ("use_dualstack_endpoint", config.use_dualstack_endpoint),
        ("use_accelerate_endpoint", config.use_accelerate_endpoint),
    ];
    match chosen.into_iter().find(|(_, is_set)| *is_set) {
        None => Ok(()),
        Some((name, _)) => {
            let message = format!("{name} chooses among the host names of AWS, and an endpoint URL is given");
            Err(Error::new(ErrorKind::Config, message).with_hint("turn it off, or leave the endpoint URL out"))
        }
    }
}

/// One of AWS's endpoints.
struct Aws<'a> {
    region: &'a str,
    fips: bool,
    dual_stack: bool,
    accelerate: bool,
}

impl Aws<'_> {
    /// The host, and the path before the key.
    fn host(&self, bucket: &str, name: Option<BucketName<'_>>, style: AddressingStyle) -> Result<(String, String)> {
        let region = self.region;
        let (partition, suffix) = partition(region);
        let fips = if self.fips { "-fips" } else { "" };
        let dual = if self.dual_stack { ".dualstack" } else { "" };
        if self.fips && partition == "aws-cn" {
            let message = format!("the region {region} has no FIPS endpoints");
            return Err(Error::new(ErrorKind::Config, message).with_hint("turn use_fips_endpoint off"));
        }
        let service = format!("s3{fips}{dual}.{region}.{suffix}");
        let (host, path) = match name {
            None => (service, String::new()),
            Some(BucketName::AccessPoint { partition: named, account, name, .. }) => {
                if named != partition {
                    let message = format!("{bucket:?} names the partition {named}, and {region} is in {partition}");
                    return Err(Error::new(ErrorKind::Config, message).with_hint("check the ARN"));
                }
                (format!("{name}-{account}.s3-accesspoint{fips}{dual}.{region}.{suffix}"), String::new())
            }
            Some(BucketName::Directory { name, zone }) => {
                (format!("{name}.s3express{fips}-{zone}{dual}.{region}.{suffix}"), String::new())
            }
            Some(BucketName::General(name)) => {
                if self.accelerate {
                    self.check_accelerated(name)?;
                    return Ok((format!("{name}.s3-accelerate{dual}.{suffix}"), String::new()));
                }
                let as_host = match style {
                    AddressingStyle::Path => false,
                    // AWS's certificates are for one label before the service's name.
                    AddressingStyle::Auto => is_label(name),
                    AddressingStyle::Virtual => true,
                };
                if as_host { (format!("{name}.{service}"), String::new()) } else { (service, format!("/{name}")) }
            }
        };
        if self.accelerate && name.is_some() {
            let message =
                format!("{bucket:?} cannot be reached through S3 Transfer Acceleration: it is for buckets only");
            return Err(Error::new(ErrorKind::Config, message).with_hint("turn use_accelerate_endpoint off"));
        }
        Ok((host, path))
    }

    fn check_accelerated(&self, bucket: &str) -> Result<()> {
        if is_label(bucket) {
            return Ok(());
        }
        let message =
            format!("{bucket:?} cannot be reached through S3 Transfer Acceleration: its name is no host name");
        Err(Error::new(ErrorKind::Config, message).with_hint("turn use_accelerate_endpoint off"))
    }
}

/// Whether the bucket can be one label of a host name.
fn is_label(bucket: &str) -> bool {
    let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    bucket.len() <= 63 && bucket.bytes().all(legal) && !bucket.ends_with('-')
}

/// The partition of a region, and the suffix of its host names. From AWS's partitions.json.
fn partition(region: &str) -> (&'static str, &'static str) {
    match region {
        _ if region.starts_with("cn-") => ("aws-cn", "amazonaws.com.cn"),
        _ if region.starts_with("us-gov-") => ("aws-us-gov", "amazonaws.com"),
        _ if region.starts_with("us-iso-") => ("aws-iso", "c2s.ic.gov"),
        _ if region.starts_with("us-isob-") => ("aws-iso-b", "sc2s.sgov.gov"),
        _ if region.starts_with("eu-isoe-") => ("aws-iso-e", "cloud.adc-e.uk"),
        _ if region.starts_with("us-isof-") => ("aws-iso-f", "csp.hci.ic.gov"),
        _ if region.starts_with("eusc-") => ("aws-eusc", "amazonaws.eu"),
        _ => ("aws", "amazonaws.com"),
    }
}

/// The region in the name of one of S3's hosts, such as `bucket.s3.eu-west-1.amazonaws.com`.
pub(crate) fn region_of_host(host: &str) -> Option<&str> {
    let front = host
        .strip_suffix(".amazonaws.com")
        .or_else(|| host.strip_suffix(".amazonaws.com.cn"))
        .or_else(|| host.strip_suffix(".amazonaws.eu"))?;
    let last = front.rsplit('.').next()?;
    let region = last.strip_prefix("s3-").unwrap_or(last);
    let is_region = region.split('-').count() >= 3
        && region.ends_with(|c: char| c.is_ascii_digit())
        && region.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    is_region.then_some(region)
}

fn read_url(url: &str) -> Result<(Authority, String)> {
    if url.contains('@') {
        // Not shown: what stands before the @ may be a password.
        let message = "the endpoint URL holds an @: S3 takes no user name or password in a URL";
        return Err(Error::new(ErrorKind::Config, message)
            .with_hint("give credentials through AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"));
    }
    let refuse = |why: &str| {
        Error::new(ErrorKind::Config, format!("the endpoint URL {url:?} is unusable: {why}"))
            .with_hint("it looks like https://host:port")
    };
    let uri: http::Uri = url.parse().map_err(|_| refuse("it is not a URL"))?;
    let secure = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err(refuse("it has no https:// or http:// before the host")),
    };
    let authority = uri.authority().ok_or_else(|| refuse("it names no host"))?;
    if uri.query().is_some() {
        return Err(refuse("it has a query"));
    }
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
    if host.is_empty() {
        return Err(refuse("it names no host"));
    }
    let port = match authority.port() {
        Some(port) => port.as_str().parse().map_err(|_| refuse("its port is not one"))?,
        None if authority.as_str() != authority.host() => return Err(refuse("its port is not one")),
        None if secure => 443,
        None => 80,
    };
    Ok((Authority { host, port, secure }, uri.path().trim_end_matches('/').to_owned()))
}

/// Refuses a key that S3 could not hold: empty, or over 1,024 bytes.
pub(crate) fn check_key(key: &str) -> Result<()> {
    let why = if key.is_empty() {
        "it is empty".to_owned()
    } else if key.len() > 1024 {
        format!("it has {} bytes, and S3 allows 1,024", key.len())
    } else {
        return Ok(());
    };
    let shown: String = key.chars().take(40).collect();
    Err(Error::new(ErrorKind::Config, format!("{shown:?} cannot be a key: {why}")))
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;

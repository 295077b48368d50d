//! Where requests go: the endpoint's URL, and how a bucket is named on it. Pure.

use crate::config::{AddressingStyle, Config};
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

/// Everything about a bucket's place that a request's head needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) authority: Authority,
    /// The `Host` header: the port is left out where it is the scheme's own.
    pub(crate) host_header: String,
    /// The path before the key, already encoded: empty or `/bucket`.
    pub(crate) path_prefix: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    authority: Authority,
    base_path: String,
    virtual_host: bool,
}

impl Endpoint {
    pub(crate) fn new(config: &Config) -> Result<Endpoint> {
        let Some(url) = config.endpoint_url.as_deref() else {
            return Err(Error::new(
                ErrorKind::Config,
                "no endpoint is given, and AWS itself is reached over TLS, which this version does not speak",
            )
            .with_hint("name a plain HTTP endpoint with --endpoint-url or AWS_ENDPOINT_URL"));
        };
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
            None => {
                if secure {
                    443
                } else {
                    80
                }
            }
        };
        Ok(Endpoint {
            authority: Authority { host, port, secure },
            base_path: uri.path().trim_end_matches('/').to_owned(),
            // A custom endpoint seldom has a name for every bucket.
            virtual_host: config.addressing_style == AddressingStyle::Virtual,
        })
    }

    /// Where the bucket is; an empty name is the service itself.
    pub(crate) fn locate(&self, bucket: &str) -> Location {
        let mut authority = self.authority.clone();
        let mut path_prefix = self.base_path.clone();
        if !bucket.is_empty() {
            if self.virtual_host {
                authority.host = format!("{bucket}.{}", authority.host);
            } else {
                path_prefix = format!("{path_prefix}/{bucket}");
            }
        }
        let shown = authority.to_string();
        let default_port = if authority.secure { ":443" } else { ":80" };
        let host_header = match shown.strip_suffix(default_port) {
            Some(bare) => bare.to_owned(),
            _ => shown,
        };
        Location { authority, host_header, path_prefix }
    }
}

/// Refuses a bucket name that no S3 server could hold, before anything is sent.
///
/// AWS wants 3 to 63 lower-case letters, digits, dots and dashes; older buckets and other servers
/// also have capitals, underscores and up to 255 characters, so those pass.
pub(crate) fn check_bucket(bucket: &str) -> Result<()> {
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    let why = if bucket.is_empty() {
        "it is empty"
    } else if !(3..=255).contains(&bucket.len()) {
        "it must have 3 to 63 characters"
    } else if !bucket.bytes().all(legal) {
        "it may hold letters, digits, dots and dashes only"
    } else if !bucket.as_bytes()[0].is_ascii_alphanumeric() || bucket.contains("..") {
        "it must begin with a letter or digit and hold no two dots in a row"
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::Config, format!("{bucket:?} cannot be a bucket's name: {why}")))
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
mod tests {
    use super::*;

    fn endpoint(url: &str, style: AddressingStyle) -> Result<Endpoint> {
        Endpoint::new(&Config { endpoint_url: Some(url.to_owned()), addressing_style: style, ..Config::default() })
    }

    #[test]
    fn a_bucket_is_a_path_or_a_host() {
        let path = endpoint("http://h:9000/base/", AddressingStyle::Auto).unwrap().locate("b");
        assert_eq!(path.host_header, "h:9000");
        assert_eq!(path.path_prefix, "/base/b");
        let host = endpoint("http://h", AddressingStyle::Virtual).unwrap().locate("b");
        assert_eq!(host.host_header, "b.h");
        assert_eq!(host.authority, Authority { host: "b.h".into(), port: 80, secure: false });
        assert_eq!(host.path_prefix, "");
        let six = endpoint("http://[::1]:80", AddressingStyle::Auto).unwrap().locate("");
        assert_eq!(six.host_header, "[::1]");
        assert_eq!(six.authority.host, "::1");
    }

    #[test]
    fn an_unusable_url_says_why_and_shows_no_password() {
        for url in ["h:9000", "ftp://h", "http://", "http://h:x", "http://h:99999", "http://h?x", ""] {
            let error = endpoint(url, AddressingStyle::Auto).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{url}");
        }
        for url in ["http://u:hidden@h", "https://u:hidden@h", "http://u:hid den@h", "u:hidden@h"] {
            let error = endpoint(url, AddressingStyle::Auto).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hid"), "{error}");
        }
    }

    #[test]
    fn names_that_cannot_exist_are_refused() {
        for bucket in ["", "ab", "a/b", "a b", "-ab", "a..b", "ümlaut"] {
            assert!(check_bucket(bucket).is_err(), "{bucket}");
        }
        assert!(check_bucket("my.bucket-1").is_ok());
        assert!(check_key("").is_err());
        assert!(check_key(&"k".repeat(1025)).is_err());
        assert!(check_key("../e").is_ok());
    }
}

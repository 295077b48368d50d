//! Virtual-host style: a bucket named in the Host header.

use http::HeaderMap;
use http::header::HOST;
use s3s::S3Result;
use s3s::host::{S3Host, VirtualHost};

/// The domain whose subdomains are buckets.
#[derive(Clone, Debug)]
pub(crate) struct Domain(String);

impl Domain {
    pub(crate) fn new(name: &str) -> Self {
        Self(format!(".{}", name.trim_matches('.').to_ascii_lowercase()))
    }

    /// The bucket that a request names in its Host header, if it does.
    pub(crate) fn bucket<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        self.bucket_of(headers.get(HOST)?.to_str().ok()?)
    }

    fn bucket_of<'a>(&self, host: &'a str) -> Option<&'a str> {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        name.strip_suffix(self.0.as_str()).filter(|bucket| !bucket.is_empty())
    }
}

impl S3Host for Domain {
    fn parse_host_header<'a>(&'a self, host: &'a str) -> S3Result<VirtualHost<'a>> {
        let virtual_host = VirtualHost::new(host);
        Ok(match self.bucket_of(host) {
            Some(bucket) => virtual_host.with_bucket(bucket),
            None => virtual_host,
        })
    }
}

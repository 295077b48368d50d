//! What a verb is to list: an address, its wildcards and the filter flags, made into one listing and a test of each key.

use wirespeed::{Client, List, ParallelList};
use wirespeed_bulk::{Filter, Pattern};

use crate::access::Access;
use crate::filter_flags::FilterFlags;
use crate::uri::S3Uri;
use crate::wildcard::Wildcards;

/// What an address without wildcards means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All that begins so: `s3://bucket/a` is also `a2`.
    Prefix,
    /// What lies in the folder: `s3://bucket/a` is what begins with `a/`.
    Folder,
}

/// How the pages of a listing follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// In the byte order of keys.
    ByKey,
    /// None waits for another.
    AsTheyCome,
}

/// The keys of a bucket that are meant.
pub(crate) struct Selection {
    bucket: String,
    prefix: String,
    pattern: Option<Pattern>,
    filter: Option<Filter>,
    /// Bytes of the folder that the address names, which the filter's patterns do not see.
    folder: usize,
}

impl Selection {
    /// Reads an address and the flags.
    pub(crate) fn new(uri: &S3Uri, scope: Scope, wildcards: &Wildcards, filter: &FilterFlags) -> Selection {
        let pattern = wildcards.of(uri);
        let prefix = match (&pattern, scope) {
            (Some(pattern), _) => pattern.fixed_prefix().to_owned(),
            (None, Scope::Prefix) => uri.key.clone(),
            (None, Scope::Folder) => uri.folder(),
        };
        let folder = prefix.rfind('/').map_or(0, |slash| slash + 1);
        let filter = filter.given().then(|| filter.filter());
        Selection { bucket: uri.bucket.clone(), prefix, pattern, filter, folder }
    }

    /// The listing that has all of them, and as little else as can be.
    pub(crate) fn list(&self, client: &Client, access: &Access) -> List {
        access.on(client.list(&self.bucket)).prefix(&self.prefix)
    }

    /// That listing by many listers at once.
    pub(crate) fn list_all(&self, client: &Client, access: &Access, order: Order) -> ParallelList {
        let list = self.list(client, access).in_parallel();
        match order {
            Order::ByKey => list.in_order(),
            Order::AsTheyCome => list,
        }
    }

    /// Whether the address has wildcards.
    pub(crate) fn is_pattern(&self) -> bool {
        self.pattern.is_some()
    }

    /// Whether a whole bucket is meant, which can be empty without anything being amiss.
    pub(crate) fn is_bucket(&self) -> bool {
        self.prefix.is_empty() && self.pattern.is_none() && self.filter.is_none()
    }

    /// Whether something of this name is meant.
    pub(crate) fn wants(&self, key: &str, size: u64, modified: Option<jiff::Timestamp>) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| pattern.matches(key))
            && self.filter.as_ref().is_none_or(|filter| filter.wants(self.relative(key), Some(size), modified))
    }

    /// The key from the folder on that the address names.
    pub(crate) fn relative<'k>(&self, key: &'k str) -> &'k str {
        key.get(self.folder..).unwrap_or(key)
    }

    /// That folder: empty, or with its slash.
    pub(crate) fn folder(&self) -> &str {
        &self.prefix[..self.folder]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[arg(value_parser = S3Uri::parse)]
        uri: S3Uri,
        #[command(flatten)]
        wildcards: Wildcards,
        #[command(flatten)]
        filter: FilterFlags,
    }

    fn selection(scope: Scope, words: &[&str]) -> Selection {
        let line = Line::try_parse_from([&["x"], words].concat()).unwrap();
        Selection::new(&line.uri, scope, &line.wildcards, &line.filter)
    }

    #[test]
    fn what_is_fixed_narrows_the_listing() {
        for (scope, address, prefix, folder) in [
            (Scope::Prefix, "s3://b", "", 0),
            (Scope::Prefix, "s3://b/logs/2026", "logs/2026", 5),
            (Scope::Folder, "s3://b/logs/2026", "logs/2026/", 10),
            (Scope::Folder, "s3://b/logs/2026-*/x", "logs/2026-", 5),
        ] {
            let found = selection(scope, &[address]);
            assert_eq!((found.prefix.as_str(), found.folder), (prefix, folder), "{address}");
        }
    }

    #[test]
    fn patterns_see_the_whole_key_and_filters_what_is_in_the_folder() {
        let found = selection(Scope::Prefix, &["s3://b/logs/*.gz", "--exclude", "old/*", "--larger", "9"]);
        assert!(found.wants("logs/a.gz", 10, None));
        assert!(!found.wants("logs/a.gz", 9, None) && !found.wants("logs/old/a.gz", 10, None));
        assert!(!found.wants("logs/a.txt", 10, None));
        let raw = selection(Scope::Prefix, &["s3://b/logs/*.gz", "--raw"]);
        assert_eq!(raw.prefix, "logs/*.gz");
    }
}

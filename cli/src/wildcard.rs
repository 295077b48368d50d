//! Wildcards in an address: `s3://bucket/logs/*.gz` means the keys that match.
//!
//! As in s5cmd, `*` is any text, also over `/`, and `?` one character; `[a-z]` is one of these characters. What comes
//! before the first of them narrows the listing. A key that really has one is named with `--raw`, or as `[*]`.

use clap::Args;
use wirespeed_bulk::Pattern;

use crate::uri::S3Uri;

/// Whether addresses may have wildcards.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Wildcards {
    /// Take `*`, `?` and `[` in an address as they stand
    #[arg(long)]
    raw: bool,
}

impl Wildcards {
    /// The pattern of an address; none where it names one key, or a prefix.
    pub(crate) fn of(&self, uri: &S3Uri) -> Option<Pattern> {
        if self.raw || !has_wildcards(&uri.key) {
            return None;
        }
        Some(Pattern::new(&uri.key)).filter(|pattern| !pattern.is_literal())
    }

    /// The folder that an address with wildcards names, and what the names in it have to match.
    pub(crate) fn split(&self, uri: &S3Uri) -> Option<(String, Pattern)> {
        let pattern = self.of(uri)?;
        let folder = pattern.fixed_prefix().rfind('/').map_or(0, |slash| slash + 1);
        Some((uri.key[..folder].to_owned(), Pattern::new(&uri.key[folder..])))
    }
}

/// Whether a key could be taken for a pattern, so that it has to be named with `--raw`.
pub(crate) fn has_wildcards(key: &str) -> bool {
    key.contains(['*', '?', '['])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(raw: bool, key: &str) -> Option<Pattern> {
        Wildcards { raw }.of(&S3Uri { bucket: "b".to_owned(), key: key.to_owned() })
    }

    #[test]
    fn an_address_with_wildcards_is_a_pattern() {
        for key in ["logs/*.gz", "a?", "part-[0-9]", "[*]"] {
            assert!(pattern(false, key).is_some(), "{key}");
            assert!(pattern(true, key).is_none(), "{key}");
        }
        for key in ["", "logs/", "a[b", "a]b"] {
            assert!(pattern(false, key).is_none(), "{key}");
        }
        assert_eq!(pattern(false, "logs/2026-*.gz").unwrap().fixed_prefix(), "logs/2026-");
    }

    #[test]
    fn names_are_relative_to_the_folder_before_the_first_wildcard() {
        let split =
            |key: &str| Wildcards { raw: false }.split(&S3Uri { bucket: "b".to_owned(), key: key.to_owned() }).unwrap();
        assert_eq!(split("logs/2026-*.gz"), ("logs/".to_owned(), Pattern::new("2026-*.gz")));
        assert_eq!(split("*/a"), (String::new(), Pattern::new("*/a")));
        assert_eq!(split("a/b*/c/d?"), ("a/".to_owned(), Pattern::new("b*/c/d?")));
    }
}

//! Which entries a job is about: patterns over names, bounds on age and size.
//!
//! Patterns are `aws s3`'s: shell wildcards over the whole name below the place, where `*` and `?` stand for `/` too. Rules
//! are tried in the order given and the last that matches decides; where none does, the entry is wanted.

use jiff::Timestamp;

mod pattern;

pub use pattern::Pattern;

use crate::entry::Entry;

/// What a job wants of what there is. The default wants everything.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Each with whether it includes.
    rules: Vec<(bool, Pattern)>,
    /// What every name matches besides.
    matching: Option<Pattern>,
    older_than: Option<Timestamp>,
    newer_than: Option<Timestamp>,
    larger: Option<u64>,
    smaller: Option<u64>,
}

impl Filter {
    /// Wants everything.
    pub fn new() -> Filter {
        Filter::default()
    }

    /// Names that match are wanted, whatever was said before.
    pub fn include(mut self, pattern: &str) -> Filter {
        self.rules.push((true, Pattern::new(pattern)));
        self
    }

    /// Names that match are not wanted, whatever was said before.
    pub fn exclude(mut self, pattern: &str) -> Filter {
        self.rules.push((false, Pattern::new(pattern)));
        self
    }

    /// Only names that match, whatever the rules say of them.
    pub fn matching(mut self, pattern: Pattern) -> Filter {
        self.matching = Some(pattern);
        self
    }

    /// Only what changed before this moment; what has no time is not wanted then.
    pub fn older_than(mut self, moment: Timestamp) -> Filter {
        self.older_than = Some(moment);
        self
    }

    /// Only what changed after this moment; what has no time is not wanted then.
    pub fn newer_than(mut self, moment: Timestamp) -> Filter {
        self.newer_than = Some(moment);
        self
    }

    /// Only what has more bytes than this; what has no size is not wanted then.
    pub fn larger(mut self, bytes: u64) -> Filter {
        self.larger = Some(bytes);
        self
    }

    /// Only what has fewer bytes than this; what has no size is not wanted then.
    pub fn smaller(mut self, bytes: u64) -> Filter {
        self.smaller = Some(bytes);
        self
    }

    /// Whether something of this name, relative to its place, is wanted.
    pub fn wants(&self, key: &str, size: Option<u64>, modified: Option<Timestamp>) -> bool {
        // The last rule that matches decides, so the others need not be tried.
        let rule = self.rules.iter().rev().find(|(_, pattern)| pattern.matches(key));
        rule.is_none_or(|(includes, _)| *includes)
            && self.matching.as_ref().is_none_or(|pattern| pattern.matches(key))
            && self.larger.is_none_or(|bytes| size.is_some_and(|size| size > bytes))
            && self.smaller.is_none_or(|bytes| size.is_some_and(|size| size < bytes))
            && self.older_than.is_none_or(|moment| modified.is_some_and(|modified| modified < moment))
            && self.newer_than.is_none_or(|moment| modified.is_some_and(|modified| modified > moment))
    }

    pub(crate) fn wants_entry(&self, entry: &Entry) -> bool {
        self.wants(&entry.key, entry.size, entry.modified)
    }

    /// What all names that are wanted begin with.
    pub(crate) fn fixed_prefix(&self) -> &str {
        self.matching.as_ref().map_or("", Pattern::fixed_prefix)
    }

    /// Whether sizes or times are asked for, which a list of names does not tell.
    pub(crate) fn needs_details(&self) -> bool {
        self.older_than.is_some() || self.newer_than.is_some() || self.larger.is_some() || self.smaller.is_some()
    }
}

#[cfg(test)]
#[path = "filter/tests.rs"]
mod tests;

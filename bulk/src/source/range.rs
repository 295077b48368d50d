//! A stretch of the space of keys, in the order of their bytes.

/// Keys after one and up to another, both relative to their place; without them, from the first, to the last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) after: Option<String>,
    pub(crate) until: Option<String>,
}

impl Range {
    /// Whether the key lies in it.
    pub(crate) fn holds(&self, key: &str) -> bool {
        self.after.as_deref().is_none_or(|after| key > after) && self.until.as_deref().is_none_or(|until| key <= until)
    }

    /// Whether a key that begins with `prefix`, and is longer, can lie in it.
    pub(crate) fn touches(&self, prefix: &str) -> bool {
        self.after.as_deref().is_none_or(|after| prefix > after || after.starts_with(prefix))
            && self.until.as_deref().is_none_or(|until| prefix <= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_range_touches_the_prefix_of_every_key_that_it_holds(
            after in prop::option::of("[ab/]{0,4}"),
            until in prop::option::of("[ab/]{0,4}"),
            prefix in "[ab]{1,2}/",
            rest in "[ab/]{1,3}",
        ) {
            let range = Range { after, until };
            let key = prefix.clone() + &rest;
            prop_assert!(!range.holds(&key) || range.touches(&prefix), "{} {}", key, prefix);
        }
    }

    #[test]
    fn what_lies_outside_is_not_looked_into() {
        let range = Range { after: Some("b/x".to_owned()), until: Some("d".to_owned()) };
        assert!(range.holds("b/y") && range.holds("d") && !range.holds("b/x") && !range.holds("d/a"));
        assert!(range.touches("b/") && range.touches("c/"));
        assert!(!range.touches("a/") && !range.touches("d/") && !range.touches("b/a/"));
    }
}

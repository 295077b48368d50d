//! What is known of a server: the cases that it does not pass, and why.
//!
//! One line each: `lacks` or `differs`, the case, the reason. A case that fails without a line is a
//! new failure; a line whose case passes is a deviation that vanished. Both are red, so the lists
//! stay true.

use std::collections::BTreeMap;

use crate::case::Finding;

/// The lists that come with the suite, by server.
const LISTS: [(&str, &str); 7] = [
    ("wirespeed-origin", include_str!("../known/wirespeed-origin.txt")),
    ("wirespeed-origin-dir", include_str!("../known/wirespeed-origin-dir.txt")),
    ("versitygw", include_str!("../known/versitygw.txt")),
    ("minio", include_str!("../known/minio.txt")),
    ("moto", include_str!("../known/moto.txt")),
    ("rclone", include_str!("../known/rclone.txt")),
    ("s3mock", include_str!("../known/s3mock.txt")),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Lacks,
    Differs,
}

/// What came of a case, in the light of what is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// As S3.
    Passed,
    /// Not as S3, and nobody knew.
    Failed(String),
    /// The server does not offer it.
    Lacking(String),
    /// Not as S3, as is known.
    Differing(String),
    /// Passed, although it is listed as a deviation.
    Vanished(String),
    /// Not run: it needs what was not allowed.
    Skipped(String),
}

impl Outcome {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Outcome::Passed => "pass",
            Outcome::Failed(_) => "FAIL",
            Outcome::Lacking(_) => "lacking",
            Outcome::Differing(_) => "differs",
            Outcome::Vanished(_) => "VANISHED",
            Outcome::Skipped(_) => "skipped",
        }
    }

    pub(crate) fn detail(&self) -> &str {
        match self {
            Outcome::Passed => "",
            Outcome::Failed(detail)
            | Outcome::Lacking(detail)
            | Outcome::Differing(detail)
            | Outcome::Vanished(detail)
            | Outcome::Skipped(detail) => detail,
        }
    }

    pub(crate) fn is_red(&self) -> bool {
        matches!(self, Outcome::Failed(_) | Outcome::Vanished(_))
    }
}

/// A server's list; without one, nothing is known.
#[derive(Debug, Default)]
pub(crate) struct Known(Option<BTreeMap<String, (Kind, String)>>);

impl Known {
    /// The names of the servers that there are lists for.
    pub(crate) fn servers() -> impl Iterator<Item = &'static str> {
        LISTS.iter().map(|list| list.0)
    }

    pub(crate) fn of_server(name: &str) -> Result<Known, String> {
        match LISTS.iter().find(|list| list.0 == name) {
            Some((_, text)) => Known::parse(text),
            None => Err(format!(
                "there is no list for {name:?}; there are {}",
                Known::servers().collect::<Vec<_>>().join(", ")
            )),
        }
    }

    pub(crate) fn parse(text: &str) -> Result<Known, String> {
        let mut known = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = |what: &str| format!("line {} of the list of deviations {what}: {line}", number + 1);
            let mut words = line.splitn(2, char::is_whitespace);
            let kind = match words.next() {
                Some("lacks") => Kind::Lacks,
                Some("differs") => Kind::Differs,
                _ => return Err(bad("begins with neither `lacks` nor `differs`")),
            };
            let (case, why) = match words.next().unwrap_or_default().trim_start().split_once(char::is_whitespace) {
                Some((case, why)) if !why.trim().is_empty() => (case, why.trim()),
                _ => return Err(bad("gives no reason")),
            };
            if known.insert(case.to_owned(), (kind, why.to_owned())).is_some() {
                return Err(bad("names a case again"));
            }
        }
        Ok(Known(Some(known)))
    }

    /// Listed cases that are not among `names`.
    #[cfg(test)]
    pub(crate) fn strangers<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
        self.0.iter().flat_map(BTreeMap::keys).map(String::as_str).filter(|listed| !names.contains(listed))
    }

    /// What a case's result means.
    pub(crate) fn judge(&self, name: &str, result: Result<(), Finding>) -> Outcome {
        let listed = self.0.as_ref().and_then(|known| known.get(name));
        match (result, listed) {
            (Ok(()), None) => Outcome::Passed,
            (Ok(()), Some((_, why))) => Outcome::Vanished(format!("passes now; take it off the list ({why})")),
            (Err(Finding::Lacks(_)), Some((Kind::Lacks, why))) => Outcome::Lacking(why.clone()),
            (Err(Finding::Differs(said) | Finding::Unanswered(said)), Some((Kind::Differs, why))) => {
                Outcome::Differing(format!("{why} ({said})"))
            }
            // Without a list, nobody claims that the server offers everything.
            (Err(Finding::Lacks(said)), None) if self.0.is_none() => Outcome::Lacking(said),
            (Err(Finding::Lacks(said)), _) => Outcome::Failed(format!("the server lacks it: {said}")),
            (Err(Finding::Differs(said) | Finding::Unanswered(said)), _) => Outcome::Failed(said),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn differs() -> Result<(), Finding> {
        Err(Finding::Differs("said so".to_owned()))
    }

    fn lacks() -> Result<(), Finding> {
        Err(Finding::Lacks("501".to_owned()))
    }

    #[test]
    fn a_new_failure_and_a_vanished_deviation_are_red() {
        let known = Known::parse("# a comment\n\nlacks a/b no tags here\ndiffers  c/d   another code\n").unwrap();
        assert_eq!(known.judge("a/b", lacks()), Outcome::Lacking("no tags here".to_owned()));
        assert_eq!(known.judge("c/d", differs()), Outcome::Differing("another code (said so)".to_owned()));
        assert_eq!(known.judge("e/f", Ok(())), Outcome::Passed);
        for (name, result) in
            [("a/b", Ok(())), ("e/f", differs()), ("e/f", lacks()), ("a/b", differs()), ("c/d", lacks())]
        {
            assert!(known.judge(name, result).is_red(), "{name}");
        }
    }

    #[test]
    fn without_a_list_only_failures_are_red() {
        let known = Known::default();
        assert!(!known.judge("a/b", lacks()).is_red());
        assert!(known.judge("a/b", differs()).is_red());
    }

    #[test]
    fn lists_that_say_too_little_are_refused() {
        for list in ["maybe a/b why", "lacks a/b", "lacks", "lacks a/b why\ndiffers a/b why"] {
            assert!(Known::parse(list).is_err(), "{list}");
        }
    }

    #[test]
    fn the_lists_that_come_with_the_suite_name_only_its_cases() {
        let cases = crate::cases::all();
        let names: Vec<_> = cases.iter().map(|case| case.name.as_str()).collect();
        for server in Known::servers() {
            let known = Known::of_server(server).unwrap();
            assert_eq!(known.strangers(&names).collect::<Vec<_>>(), [""; 0], "{server}");
        }
    }
}

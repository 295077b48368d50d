use super::*;
use proptest::prelude::*;

fn matches(pattern: &str, name: &str) -> bool {
    Pattern::new(pattern).matches(name)
}

#[test]
fn wildcards_as_fnmatch_reads_them() {
    for (pattern, name) in [
        ("*", ""),
        ("*", "a/b"),
        ("*.txt", "a/b.txt"),
        ("a?c", "a/c"),
        ("a*b*c", "a-bb-b-c"),
        ("[a-c]x", "bx"),
        ("[!a-c]x", "dx"),
        ("[]]", "]"),
        ("[!]]", "x"),
        ("[a-]", "-"),
        ("[-a]", "-"),
        ("[*]", "*"),
        ("[", "["),
        ("a[b", "a[b"),
        ("[!", "[!"),
        ("é?", "éü"),
        ("", ""),
    ] {
        assert!(matches(pattern, name), "{pattern} {name}");
    }
    for (pattern, name) in [
        ("*.txt", "a.txt.gz"),
        ("a", "ab"),
        ("a?", "a"),
        ("[a-c]", "d"),
        ("[!a]", "a"),
        ("[!a]", ""),
        ("[c-a]", "b"),
        ("[*]", "x"),
        ("A", "a"),
        ("", "a"),
        ("a*b", "ac"),
    ] {
        assert!(!matches(pattern, name), "{pattern} {name}");
    }
}

#[test]
fn a_pattern_of_many_stars_ends_in_time() {
    assert!(!matches(&"a*".repeat(50), &("a".repeat(5_000) + "b").replace('b', "c")[1..].replace('a', "b")));
    assert!(!matches(&("*a".repeat(30) + "b"), &"a".repeat(20_000)));
}

#[test]
fn what_all_matches_begin_with() {
    for (pattern, prefix, literal) in
        [("a/b*.txt", "a/b", false), ("*", "", false), ("[a]b", "", false), ("a/b", "a/b", true), ("", "", true)]
    {
        let pattern = Pattern::new(pattern);
        assert_eq!((pattern.fixed_prefix(), pattern.is_literal()), (prefix, literal));
    }
}

#[test]
fn the_last_rule_that_matches_decides() {
    let filter = Filter::new().exclude("*").include("*.txt").exclude("secret/*");
    let wanted = |key: &str| filter.wants(key, None, None);
    assert!(wanted("a.txt") && wanted("d/a.txt"));
    assert!(!wanted("a.bin") && !wanted("secret/a.txt"));
    assert!(Filter::new().include("*.txt").wants("a.bin", None, None), "what no rule is about is in");
}

#[test]
fn bounds_are_not_wanted_themselves_and_unknowns_never() {
    let moment = Timestamp::from_second(1_000).unwrap();
    let later = Timestamp::from_second(1_001).unwrap();
    let sizes = Filter::new().larger(10).smaller(20);
    assert!(sizes.wants("a", Some(11), None) && sizes.wants("a", Some(19), None));
    assert!(!sizes.wants("a", Some(10), None) && !sizes.wants("a", Some(20), None) && !sizes.wants("a", None, None));
    let newer = Filter::new().newer_than(moment);
    assert!(newer.wants("a", None, Some(later)));
    assert!(!newer.wants("a", None, Some(moment)) && !newer.wants("a", None, None));
    let older = Filter::new().older_than(later);
    assert!(older.wants("a", None, Some(moment)));
    assert!(!older.wants("a", None, Some(later)) && !older.wants("a", None, None));
}

/// The rules of `fnmatch`, tried in every way.
fn model(pattern: &[char], name: &[char]) -> bool {
    match pattern {
        [] => name.is_empty(),
        ['*', rest @ ..] => (0..=name.len()).any(|taken| model(rest, &name[taken..])),
        ['?', rest @ ..] => !name.is_empty() && model(rest, &name[1..]),
        [other, rest @ ..] => name.first() == Some(other) && model(rest, &name[1..]),
    }
}

proptest! {
    #[test]
    fn stars_and_question_marks_match_as_in_a_model(pattern in "[ab/*?]{0,8}", name in "[ab/]{0,10}") {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        prop_assert_eq!(matches(&pattern, &name), model(&chars(&pattern), &chars(&name)));
    }

    #[test]
    fn every_text_is_a_pattern(pattern in any::<String>(), name in any::<String>()) {
        matches(&pattern, &name);
    }

    #[test]
    fn matches_begin_with_the_fixed_prefix(pattern in "[ab*?]{0,6}", name in "[ab]{0,8}") {
        let pattern = Pattern::new(&pattern);
        prop_assert!(!pattern.matches(&name) || name.starts_with(pattern.fixed_prefix()));
    }
}

#[test]
fn what_has_to_match_matches_whatever_the_rules_say() {
    let filter = Filter::new().matching(Pattern::new("2026-*.gz")).exclude("*old*").include("x*");
    for (key, wanted) in [("2026-01.gz", true), ("2026-01.txt", false), ("2026-old.gz", false), ("x.gz", false)] {
        assert_eq!(filter.wants(key, None, None), wanted, "{key}");
    }
}

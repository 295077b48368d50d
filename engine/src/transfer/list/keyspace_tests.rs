use proptest::prelude::*;

use super::KeySpace;

/// What is known once these keys came, in pages of a few.
fn learned(prefix: &str, keys: &[String]) -> KeySpace {
    let mut space = KeySpace::new(prefix);
    for page in keys.chunks(20) {
        space.learn(page.len(), |entry| &page[entry]);
    }
    space
}

fn numbers(prefix: &str, count: u32, width: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}{n:0width$}")).collect()
}

fn cut(space: &KeySpace, lower: &str, upper: Option<&str>, share: f64) -> Option<String> {
    space.cuts(lower, upper, [share].into_iter()).0.pop().map(|(cut, _)| cut)
}

#[test]
fn the_middle_of_numbers_is_where_half_of_them_are_before() {
    let keys = numbers("", 1000, 3);
    let space = learned("", &keys);
    for (lower, upper, share) in [("000", None, 0.5), ("000", Some("400"), 0.25), ("250", Some("750"), 0.5)] {
        let found = cut(&space, lower, upper, share).unwrap();
        let (from, to) = (lower.parse::<f64>().unwrap(), upper.map_or(1000.0, |upper| upper.parse().unwrap()));
        let before = keys.iter().filter(|key| key.as_str() > lower && **key <= found).count();
        let wanted = (to - from) * share;
        assert!((before as f64 - wanted).abs() <= 2.0, "{lower} to {upper:?} at {share}: {found:?}, {before} before");
    }
}

#[test]
fn several_cuts_ascend_and_are_even() {
    let space = learned("", &numbers("", 1000, 3));
    let cuts = space.cuts("000", None, (1..10).map(|n| f64::from(n) / 10.0)).0;
    let keys = numbers("", 1000, 3);
    let before: Vec<_> = cuts.iter().map(|(cut, _)| keys.iter().filter(|key| *key <= cut).count()).collect();
    assert_eq!(before.len(), 9);
    for (part, before) in (1..).zip(before) {
        assert!((before as f64 - 100.0 * f64::from(part)).abs() <= 2.0, "{before} before part {part}");
    }
}

#[test]
fn how_much_is_left_is_told_by_where_the_last_key_lies() {
    let space = learned("k/", &numbers("k/", 1000, 3));
    for (at, upper, wanted) in [("k/249", None, 3.0), ("k/099", Some("k/500"), 4.0), ("k/500", Some("k/500"), 0.0)] {
        let ratio = space.ratio("k/000", at, upper).unwrap();
        assert!((ratio - wanted).abs() < 0.1, "{at} of {upper:?}: {ratio}");
    }
    assert_eq!(space.ratio("k/500", "k/500", None), None, "nothing was listed");
    assert_eq!(space.ratio("k/000", "elsewhere", None), None);
}

#[test]
fn without_keys_nothing_is_known() {
    let space = KeySpace::new("p/");
    assert_eq!(cut(&space, "", None, 0.5), None);
    assert_eq!(space.probes("", None, 2), Vec::<String>::new());
    assert_eq!(space.ratio("", "p/a", None), None);
}

#[test]
fn between_neighbours_nothing_is_cut() {
    let space = learned("", &numbers("", 1000, 3));
    assert_eq!(cut(&space, "499", Some("500"), 0.5), None);
    assert_eq!(cut(&space, "500", Some("500"), 0.5), None);
    // The least text behind another.
    assert_eq!(cut(&space, "500", Some("500\0"), 0.5), None);
}

#[test]
fn what_all_keys_share_is_kept_and_probed_behind() {
    let space = learned("", &numbers("logs/2024/", 100, 2));
    let half = cut(&space, "logs/2024/00", Some("logs/2024/99"), 0.5).unwrap();
    assert!(half.starts_with("logs/2024/4") || half.starts_with("logs/2024/5"), "{half}");
    let probes = space.probes("logs/2024/50", None, 2);
    assert_eq!(probes.len(), 2, "{probes:?}");
    for probe in &probes {
        assert!("logs/2024/50" < probe.as_str() && !probe.starts_with("logs/2024/5"), "{probe}");
    }
    assert!(probes.is_sorted());
    // Up to an end that shares as much there is nothing to ask for.
    assert_eq!(space.probes("logs/2024/50", Some("logs/2024/60"), 2), Vec::<String>::new());
}

#[test]
fn cuts_stay_under_the_prefix() {
    let space = learned("deep/er/", &numbers("deep/er/", 1000, 3));
    for lower in ["", "deep/er/", "deep/er/100"] {
        let cut = cut(&space, lower, None, 0.5).unwrap();
        assert!(cut.starts_with("deep/er/") && cut.as_str() > lower, "{cut}");
    }
    // Neither end under it.
    assert_eq!(cut(&space, "z", None, 0.5), None);
    assert_eq!(cut(&space, "", Some("a"), 0.5), None);
}

#[test]
fn the_first_and_last_characters_have_their_places() {
    let alphabet = ['\0', '\u{7f}', '\u{ff}', '\u{d7ff}', '\u{e000}', '\u{ffff}', '\u{10000}', '\u{10ffff}'];
    let keys: Vec<String> = alphabet.iter().flat_map(|a| alphabet.iter().map(move |b| format!("{a}{b}"))).collect();
    let space = learned("", &keys);
    let cuts = space.cuts(&keys[0], None, (1..8).map(|n| f64::from(n) / 8.0)).0;
    for (part, (cut, _)) in (1..).zip(&cuts) {
        let before = keys.iter().filter(|key| *key <= cut).count();
        assert!(before.abs_diff(8 * part) <= 1, "{before} before {cut:?}");
    }
    // Behind the last of all characters comes none, and the next after the first is no surrogate.
    assert_eq!(space.probes("\u{10ffff}", None, 1), Vec::<String>::new());
    let space = learned("", &["\u{d7ff}a".to_owned(), "\u{d7ff}b".to_owned()]);
    assert_eq!(space.probes("\u{d7ff}a", None, 2).first().map(String::as_str), Some("\u{d7ff}{"));
    assert_eq!(space.probes("\u{d7ff}a", None, 2).last().map(String::as_str), Some("\u{e000}"));
}

#[test]
fn characters_that_never_come_weigh_less_and_less() {
    let left_behind_2 = |passes: u32| {
        let keys: Vec<String> = (0..5 * passes).map(|n| format!("{:04}{}", n / 5, n % 5)).collect();
        learned("", &keys).ratio("00000", "00002", Some("0001")).unwrap()
    };
    // Only 0 to 4 come last. That 5 to 9 do not is believed the more, the oftener it was so.
    assert!(left_behind_2(1) > 2.5, "{}", left_behind_2(1));
    assert!((1.4..1.6).contains(&left_behind_2(100)), "{}", left_behind_2(100));
}

#[test]
fn what_follows_one_character_is_expected_behind_another() {
    // Behind 0 all digits came; behind 1 only the first did, since it was only begun.
    let mut keys = numbers("0", 100, 2);
    keys.push("100".to_owned());
    let space = learned("", &keys);
    let ratio = space.ratio("0", "099", Some("199")).unwrap();
    assert!(ratio > 0.7, "as much is expected behind 1 as behind 0: {ratio}");
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ab]{0,5}",
        "[0-9]{0,4}",
        "[\u{0}\u{7f}\u{80}\u{ff}\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}]{0,4}",
        "k{1018,1024}",
        any::<String>().prop_map(|text| text.chars().take(6).collect()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 200 } else { 20_000 }))]

    #[test]
    fn cuts_and_probes_lie_inside_and_ascend(
        keys in prop::collection::btree_set(text(), 0..60),
        prefix in prop_oneof![Just(String::new()), Just("a".to_owned()), Just("\u{ff}".to_owned())],
        lower in text(),
        upper in prop::option::of(text()),
        missed in prop::collection::vec((text(), text()), 0..5),
        parts in 2..20u32,
    ) {
        let keys: Vec<String> = keys.into_iter().map(|key| format!("{prefix}{key}")).collect();
        let mut space = learned(&prefix, &keys);
        for (from, cut) in &missed {
            space.missed(&format!("{prefix}{from}"), &format!("{prefix}{cut}"));
        }
        let (lower, upper) = (format!("{prefix}{lower}"), upper.map(|upper| format!("{prefix}{upper}")));
        prop_assume!(upper.as_ref().is_none_or(|upper| lower < *upper));
        let cuts = space.cuts(&lower, upper.as_deref(), (1..parts).map(|n| f64::from(n) / f64::from(parts))).0;
        let cuts: Vec<String> = cuts.into_iter().map(|(cut, _)| cut).collect();
        let probes = space.probes(&lower, upper.as_deref(), 3);
        for cuts in [cuts, probes] {
            let mut before = lower.clone();
            for cut in cuts {
                prop_assert!(before < cut, "{cut:?} is not behind {before:?}");
                prop_assert!(upper.as_ref().is_none_or(|upper| cut < *upper), "{cut:?} is not before {upper:?}");
                prop_assert!(cut.starts_with(&prefix) && cut.len() <= 1024);
                before = cut;
            }
        }
        if let Some(ratio) = space.ratio(&lower, upper.as_deref().unwrap_or(&lower), upper.as_deref()) {
            prop_assert!(ratio.is_finite() && ratio >= 0.0);
        }
    }
}

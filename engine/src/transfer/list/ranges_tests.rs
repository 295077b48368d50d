use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::Start;
use super::super::model::{Bucket, Came, Order, list, list_versions};
use super::super::page::Listed;
use super::Scope;

fn scope(prefix: &str) -> Scope {
    Scope {
        prefix: prefix.to_owned(),
        after: String::new(),
        until: None,
        in_order: false,
        listers: 96,
        read_ahead: u64::MAX,
        page_size: 100,
    }
}

fn quiet(_: &mut Bucket) {}

fn lists(bucket: &mut Bucket, scope: &Scope) -> Came {
    let came = list(bucket, scope, || 1000, quiet).unwrap();
    let mut keys = came.keys.clone();
    if scope.in_order {
        assert!(keys.is_sorted(), "out of order");
    } else {
        keys.sort();
    }
    assert!(keys == bucket.within(scope), "{} keys of {}", keys.len(), bucket.within(scope).len());
    came
}

/// A number that looks random.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (number ^ (number >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ number
}

fn names(kind: &str, count: u64) -> Vec<String> {
    (0..count)
        .map(|n| match kind {
            "sequential" => format!("obj-{n:08}"),
            "plain numbers" => format!("{n}"),
            "random" => format!("{:016x}", mixed(n)),
            "uuid" => {
                let (a, b) = (mixed(n + 3), mixed(n * 7 + 99));
                format!("{:08x}-{:04x}-4{:03x}-{:016x}", a >> 32, a >> 16 & 0xffff, a & 0xfff, b)
            }
            "dated flat" => {
                let seconds = n * 94_000_000 / count;
                let (day, second) = (seconds / 86_400, seconds % 86_400);
                format!(
                    "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}-{:06}.log",
                    2023 + day / 372,
                    day / 31 % 12 + 1,
                    day % 31 + 1,
                    second / 3600,
                    second / 60 % 60,
                    second % 60,
                    mixed(n) % 1_000_000
                )
            }
            "base64" => (0..9)
                .map(|i| {
                    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+_"
                        [(mixed(n) >> (6 * i) & 63) as usize] as char
                })
                .collect(),
            "dated" => {
                let (day, rest) = (n * 1100 / count, mixed(n) % 100_000);
                format!(
                    "logs/{:04}/{:02}/{:02}/host-{:02}-{rest:05}-{n}.gz",
                    2023 + day / 372,
                    day / 31 % 12 + 1,
                    day % 31 + 1,
                    n % 17
                )
            }
            "deep" => format!(
                "users/{:x}/{}/{}/img_{:04}.jpg",
                mixed(n / 200) % 100_000,
                ["photos", "docs", "a", "videos/raw"][(n / 50 % 4) as usize],
                2000 + mixed(n / 10) % 20,
                n
            ),
            "skewed" => match n % 100 {
                0 => format!("{}/{:08}", (b'a' + (mixed(n) % 26) as u8) as char, n),
                _ => format!("m/{:016x}", mixed(n)),
            },
            "words" => format!(
                "{}{}{}",
                ["alpha", "beta", "delta", "gamma", "kappa", "omega", "sigma", "theta"][(mixed(n) % 8) as usize],
                ["/", "-", ""][(mixed(n + 7) % 3) as usize],
                mixed(n)
            ),
            _ => unreachable!("{kind}"),
        })
        .collect()
}

const KINDS: [&str; 10] =
    ["sequential", "plain numbers", "random", "uuid", "base64", "dated", "dated flat", "deep", "skewed", "words"];

/// What a listing of so many pages comes to, in order with memory for 660 pages that wait for their turn.
fn listed(kind: &str, pages: u64, page_size: u32, in_order: bool, jitter: u64) -> Came {
    let mut bucket = Bucket::new(names(kind, pages * u64::from(page_size)), Order::Bytes);
    let page = bucket.page("", &Start::Beginning, page_size).0.bytes();
    let scope = Scope { in_order, read_ahead: 660 * page, page_size, ..scope("") };
    let mut turn = 7;
    let latency = || {
        turn = mixed(turn);
        1000 - jitter + turn % (2 * jitter + 1)
    };
    let mut came = list(&mut bucket, &scope, latency, quiet).unwrap();
    assert!(!in_order || came.keys.is_sorted(), "out of order");
    // What was in flight when it was full comes on top.
    assert!(!in_order || came.held <= (660 + 96) * page * 5 / 4, "{kind}: {} bytes waited", came.held);
    came.keys.sort_unstable();
    assert!(came.keys == bucket.within(&scope), "{kind}: {} keys", came.keys.len());
    came
}

#[test]
fn a_thousand_pages_take_thirty_times_less_than_one_after_the_other() {
    // Rounds and requests, in any order and in order. Serially it is 1,000 of each.
    for (kind, any, ordered) in [
        ("sequential", (22, 1120), (24, 1180)),
        ("uuid", (21, 1120), (23, 1170)),
        ("dated flat", (25, 1140), (30, 1200)),
    ] {
        for (in_order, (rounds, requests)) in [(false, any), (true, ordered)] {
            for jitter in [0, 200] {
                let came = listed(kind, 1000, 300, in_order, jitter);
                let told = format!("{kind}, in order {in_order}: {} rounds, {} requests", came.rounds, came.requests);
                assert!(came.rounds <= rounds && came.requests <= requests, "{told}");
            }
        }
    }
}

#[test]
fn small_pages_of_any_names_are_listed_fast() {
    for (kind, any, ordered) in [
        ("plain numbers", (30, 1200), (30, 1300)),
        ("random", (30, 1200), (33, 1300)),
        ("base64", (33, 1200), (40, 1300)),
        ("dated", (33, 1200), (45, 1300)),
        ("words", (40, 1250), (120, 1650)),
        ("skewed", (60, 1300), (60, 1300)),
        ("deep", (250, 2300), (620, 2400)),
    ] {
        for (in_order, (rounds, requests)) in [(false, any), (true, ordered)] {
            let came = listed(kind, 1000, 100, in_order, 0);
            let told = format!("{kind}, in order {in_order}: {} rounds, {} requests", came.rounds, came.requests);
            assert!(came.rounds <= rounds && came.requests <= requests, "{told}");
        }
    }
}

#[test]
fn fewer_pages_waste_few_requests() {
    for kind in ["sequential", "uuid", "dated flat", "skewed"] {
        for in_order in [false, true] {
            for (pages, requests) in [(100, 155), (10, 22)] {
                let came = listed(kind, pages, 300, in_order, 200);
                assert!(came.requests <= requests, "{kind}, in order {in_order}: {} for {pages}", came.requests);
            }
        }
    }
}

#[test]
fn a_short_listing_costs_no_more_than_two_requests_beyond() {
    for kind in KINDS {
        for pages in 1..4 {
            let mut bucket = Bucket::new(names(kind, 100 * pages - 50), Order::Bytes);
            let came = lists(&mut bucket, &scope(""));
            assert!(came.requests <= pages + 2, "{kind}: {} requests for {pages} pages", came.requests);
        }
    }
}

/// Keys that ranges, servers and alphabets trip over.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ab]{1,6}",
        "[0-9]{1,4}",
        "[a-c]/[a-c]/[0-9]{1,3}",
        "[\u{0}-\u{7f}]{1,3}",
        "[a\u{e9}\u{d7ff}\u{e000}\u{ff00}\u{ffff}\u{10000}\u{1f980}\u{10ffff}]{1,5}",
        "\u{10ffff}{1,3}",
        (0..3usize, "[a-b]{1,3}").prop_map(|(n, end)| format!("{}{end}", "k".repeat(1021 - n))),
        any::<String>()
            .prop_map(|text| text.chars().take(8).collect())
            .prop_filter("no key", |key: &String| !key.is_empty()),
    ]
}

fn keys() -> impl Strategy<Value = BTreeSet<String>> {
    prop_oneof![
        prop::collection::btree_set(key(), 0..200),
        prop::collection::btree_set("[ab]{1,9}", 0..300),
        (0..400u64).prop_map(|count| names("sequential", count).into_iter().collect()),
        (0..400u64).prop_map(|count| names("skewed", count).into_iter().collect()),
        (0..400u64).prop_map(|count| names("deep", count).into_iter().collect()),
    ]
}

fn any_scope() -> impl Strategy<Value = Scope> {
    let texts =
        prop_oneof![Just(String::new()), Just("a".to_owned()), Just("obj-000".to_owned()), Just("m".to_owned())];
    (texts, prop::option::of(key()), prop::option::of(key()), any::<bool>(), 1..20usize, 0..20_000u64, 1..12u32)
        .prop_map(|(prefix, after, until, in_order, listers, read_ahead, page_size)| Scope {
            prefix,
            after: after.unwrap_or_default(),
            until,
            in_order,
            listers,
            read_ahead,
            page_size,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 60 } else { 5_000 }))]

    #[test]
    fn every_key_comes_once(keys in keys(), scope in any_scope(), seed in any::<u64>()) {
        let mut bucket = Bucket::new(keys, Order::Bytes);
        let mut turn = seed;
        let latency = || { turn = mixed(turn); 1 + turn % 3000 };
        let came = list(&mut bucket, &scope, latency, quiet).unwrap();
        prop_assert!(!came.is_serial);
        prop_assert!(!scope.in_order || came.keys.is_sorted());
        let mut keys = came.keys;
        keys.sort();
        prop_assert_eq!(keys, bucket.within(&scope));
    }

    #[test]
    fn what_is_written_meanwhile_moves_nothing_else(keys in keys(), other in prop::collection::vec(key(), 1..40), scope in any_scope(), seed in any::<u64>()) {
        let mut bucket = Bucket::new(keys.iter().cloned(), Order::Bytes);
        let stable: BTreeSet<String> = bucket.within(&scope).into_iter().filter(|key| !other.contains(key)).collect();
        let mut turn = seed;
        let mut written = seed;
        let latency = || { turn = mixed(turn); 1 + turn % 3000 };
        let came = list(&mut bucket, &scope, latency, |bucket| {
            written = mixed(written);
            let key = &other[(written % other.len() as u64) as usize];
            match written >> 63 {
                0 => bucket.insert(key.clone()),
                _ => bucket.remove(key),
            }
        });
        // Where so much is written that the order can't be told, and what was listed is deleted, it may say so.
        let Ok(came) = came else { return Ok(()) };
        let found: BTreeSet<String> = came.keys.iter().cloned().collect();
        prop_assert_eq!(found.len(), came.keys.len(), "a key came twice");
        prop_assert!(found.is_superset(&stable), "lost {:?}", stable.difference(&found).next());
        prop_assert!(found.iter().all(|key| scope.contains(key)));
    }

    #[test]
    fn a_server_in_another_order_is_listed_all_the_same(keys in keys(), scope in any_scope(), order in prop_oneof![Just(Order::Utf16), Just(Order::IgnoringCase), Just(Order::None)], seed in any::<u64>()) {
        // Its start-after goes by its own order, so that of what comes after a key nobody could be certain.
        let scope = Scope { after: String::new(), until: None, ..scope };
        let mut bucket = Bucket::new(keys, order);
        let mut turn = seed;
        let latency = || { turn = mixed(turn); 1 + turn % 3000 };
        let came = list(&mut bucket, &scope, latency, quiet).unwrap();
        let mut found = came.keys;
        found.sort();
        prop_assert_eq!(found, bucket.within(&scope));
    }

    #[test]
    fn a_server_that_asks_for_fewer_requests_is_listed_all_the_same(keys in keys(), scope in any_scope(), every in 1..20u64, seed in any::<u64>()) {
        let mut bucket = Bucket::new(keys, Order::Bytes);
        bucket.throttles = Some(every);
        let mut turn = seed;
        let latency = || { turn = mixed(turn); 1 + turn % 3000 };
        let came = list(&mut bucket, &scope, latency, quiet).unwrap();
        let mut found = came.keys;
        prop_assert!(!scope.in_order || found.is_sorted());
        found.sort();
        prop_assert_eq!(found, bucket.within(&scope));
    }

    #[test]
    fn a_page_that_fails_for_good_fails_the_listing_and_is_named(keys in keys(), scope in any_scope(), nth in 1..40u64, seed in any::<u64>()) {
        let mut bucket = Bucket::new(keys, Order::Bytes);
        bucket.fails = Some(nth);
        let mut turn = seed;
        let latency = || { turn = mixed(turn); 1 + turn % 3000 };
        match list(&mut bucket, &scope, latency, quiet) {
            Ok(came) => {
                prop_assert!(came.requests < nth, "a listing without one of its pages is none");
                prop_assert_eq!(came.keys.len(), bucket.within(&scope).len());
            }
            Err(error) => {
                prop_assert_eq!(bucket.asked, nth);
                prop_assert!(error.part().is_some_and(|part| part.starts_with("keys ")), "{}", error);
            }
        }
    }

    #[test]
    fn every_version_comes_once(keys in prop::collection::btree_map(key(), 1..12u32, 0..120), scope in any_scope(), seed in any::<u64>()) {
        let mut turn = seed;
        let latency = || { turn = mixed(turn); 1 + turn % 3000 };
        let mut found = list_versions(&keys, &scope, latency).unwrap();
        prop_assert!(!scope.in_order || found.is_sorted());
        found.sort();
        let wanted: BTreeMap<_, _> = keys.iter().filter(|(key, _)| scope.contains(key)).collect();
        let wanted: Vec<_> = wanted
            .into_iter()
            .flat_map(|(key, count)| (0..*count).map(move |version| (key.clone(), format!("{version:04}"))))
            .collect();
        prop_assert_eq!(found, wanted);
    }

    #[test]
    fn a_server_without_start_after_is_listed_all_the_same(keys in keys(), scope in any_scope(), seed in any::<u64>()) {
        let mut bucket = Bucket::new(keys, Order::Bytes);
        bucket.ignores_start_after = true;
        let mut turn = seed;
        let latency = || { turn = mixed(turn); 1 + turn % 3000 };
        let came = list(&mut bucket, &scope, latency, quiet).unwrap();
        let mut found = came.keys;
        found.sort();
        prop_assert_eq!(found, bucket.within(&scope));
    }
}

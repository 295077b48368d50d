//! Listings, against a model of a few lines.

use std::collections::BTreeSet;

use proptest::prelude::*;
use wirespeed_origin::{Origin, Running};

use super::client::{get, path, put, query};

/// What is listed, each once: keys, and prefixes that stand for keys.
#[derive(Debug, Default, PartialEq)]
struct Listed {
    keys: Vec<String>,
    prefixes: Vec<String>,
}

/// Every key, looked at one by one.
fn model(keys: &BTreeSet<String>, prefix: &str, delimiter: &str, after: &str) -> Listed {
    let mut listed = Listed::default();
    for key in keys.iter().filter(|key| key.starts_with(prefix) && key.as_str() > after) {
        let rest = &key[prefix.len()..];
        match rest.find(delimiter).filter(|_| !delimiter.is_empty()) {
            Some(at) => {
                let common = &key[..prefix.len() + at + delimiter.len()];
                if common != after && listed.prefixes.last().is_none_or(|last| last != common) {
                    listed.prefixes.push(common.to_owned());
                }
            }
            None => listed.keys.push(key.clone()),
        }
    }
    listed
}

/// All pages of a listing in version 2, by continuation token.
async fn list_v2(server: &Running, prefix: &str, delimiter: &str, after: &str, page: usize) -> Listed {
    let mut listed = Listed::default();
    let mut token = None::<String>;
    loop {
        let page = page.to_string();
        let mut pairs = vec![("list-type", "2"), ("encoding-type", "url"), ("max-keys", &*page)];
        pairs.extend([("prefix", prefix), ("delimiter", delimiter), ("start-after", after)]);
        if let Some(token) = &token {
            pairs.push(("continuation-token", token));
        }
        let answer = get(server, &format!("/bucket{}", query(&pairs)), &[]).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let (keys, prefixes) = found(&answer);
        assert!(keys.len() + prefixes.len() <= page.parse().unwrap());
        assert_eq!(answer.one("KeyCount").unwrap(), (keys.len() + prefixes.len()).to_string());
        listed.keys.extend(keys);
        listed.prefixes.extend(prefixes);
        token = answer.one("NextContinuationToken");
        assert_eq!(answer.one("IsTruncated").unwrap(), token.is_some().to_string());
        if token.is_none() {
            return listed;
        }
    }
}

/// All pages in version 1, by marker.
async fn list_v1(server: &Running, prefix: &str, delimiter: &str, after: &str, page: usize) -> Listed {
    let mut listed = Listed::default();
    let mut marker = after.to_owned();
    loop {
        let page = page.to_string();
        let pairs = [("encoding-type", "url"), ("max-keys", &*page), ("prefix", prefix), ("delimiter", delimiter)];
        let answer =
            get(server, &format!("/bucket{}&{}", query(&pairs), &query(&[("marker", &marker)])[1..]), &[]).await;
        let (keys, prefixes) = found(&answer);
        listed.keys.extend(keys.clone());
        listed.prefixes.extend(prefixes);
        if answer.one("IsTruncated").unwrap() == "false" {
            return listed;
        }
        marker = answer.one("NextMarker").or_else(|| keys.last().cloned()).unwrap();
    }
}

/// The keys and the common prefixes of a page; the prefix that was asked for is an element of the same name.
fn found(answer: &super::client::Answer) -> (Vec<String>, Vec<String>) {
    let common = answer.text().split("<CommonPrefixes>").skip(1).map(|text| {
        let text = text.split_once("<Prefix>").unwrap().1.split_once("</Prefix>").unwrap().0;
        percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into_owned()
    });
    (answer.all("Key"), common.collect())
}

fn key() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "/", "//", "é", "😀", "+", "%2F", " ", "\u{ffff}"]), 1..5)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pages_are_what_the_model_says(
        keys in prop::collection::btree_set(key(), 0..24),
        prefix in prop_oneof![3 => Just(String::new()), 2 => key()],
        delimiter in prop::sample::select(vec!["", "/", "a", "//", "é"]),
        after in prop_oneof![2 => Just(String::new()), 2 => key()],
        page in 1_usize..6,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Origin::builder().anonymous(true).bucket("bucket").start().await.unwrap();
            for key in &keys {
                put(&server, &path("bucket", key), b"").await;
            }
            let expected = model(&keys, &prefix, delimiter, &after);
            prop_assert_eq!(&list_v2(&server, &prefix, delimiter, &after, page).await, &expected);
            prop_assert_eq!(&list_v1(&server, &prefix, delimiter, &after, page).await, &expected);
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn limits_and_nonsense() {
    let server = Origin::builder().anonymous(true).bucket("bucket").start().await.unwrap();
    for number in 0..3 {
        put(&server, &format!("/bucket/{number}"), b"").await;
    }
    let ask = async |rest: &str| get(&server, &format!("/bucket?list-type=2&{rest}"), &[]).await;
    let none = ask("max-keys=0").await;
    assert_eq!((none.all("Key").len(), none.one("IsTruncated").as_deref()), (0, Some("false")));
    assert_eq!(ask("max-keys=5000").await.one("MaxKeys").as_deref(), Some("1000"));
    assert_eq!(ask("max-keys=-1").await.code(), "InvalidArgument");
    assert_eq!(ask("continuation-token=nonsense").await.code(), "InvalidArgument");
    assert_eq!(ask("encoding-type=rot13").await.code(), "InvalidArgument");
    assert_eq!(ask("fetch-owner=true").await.all("ID").len(), 3);
    assert_eq!(get(&server, "/no-such-bucket?list-type=2", &[]).await.code(), "NoSuchBucket");
}

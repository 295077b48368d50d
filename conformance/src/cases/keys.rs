//! Awkward keys: each is written, read, listed and removed as it is.

use bytes::Bytes;

use crate::case::{Case, Checked, Cost, case, ensure, refused, same};
use crate::store::Store;

/// What to call it, and the name within the prefix.
const KEYS: [(&str, &str); 33] = [
    ("plain", "plain"),
    ("two-slashes", "a//b"),
    ("dot-folder", "c/./d"),
    ("dot-dot", "../e"),
    ("dots-inside", "f/../g"),
    ("leading-slash", "/lead"),
    ("trailing-slash", "trail/"),
    ("a-slash-alone", "/"),
    ("dot-alone", "."),
    ("dot-dot-alone", ".."),
    ("spaces", " two  spaces "),
    ("plus", "a+b"),
    ("percent", "100%"),
    ("escaped-slash", "a%2Fb"),
    ("escaped-percent", "a%252Fb"),
    ("no-escape", "a%zz"),
    ("question", "q?x=1&y"),
    ("ampersand", "a&b&amp;c"),
    ("semicolon", "a;b"),
    ("equals-and-comma", "a=b,c:d@e$f"),
    ("hash", "a#b"),
    ("quotes", "a\"b'c`d"),
    ("xml", "<a>&]]></a>"),
    ("brackets", "a[b]{c}|d^e\\f"),
    ("tilde-star-parens", "~a*b(c)!"),
    ("umlaut-composed", "\u{fc}"),
    ("umlaut-combining", "u\u{308}"),
    ("emoji", "\u{1f980}\u{1f469}\u{200d}\u{1f680}"),
    ("right-to-left", "\u{202e}abc\u{5d0}"),
    ("byte-order-mark", "\u{feff}a"),
    ("tab-and-line-feed", "a\tb\nc"),
    ("carriage-return", "a\rb"),
    ("control", "a\u{1}b\u{7f}c"),
];

/// S3's limit for a key.
const LONGEST: usize = 1024;

pub(super) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = KEYS
        .iter()
        .map(|&(label, name)| case(format!("keys/{label}"), COST, move |s| Box::pin(survives(s, name.to_owned()))))
        .collect();
    cases.push(case("keys/1024-bytes-in-folders", COST, |s| Box::pin(longest(s, 100))));
    cases.push(case("keys/1024-bytes-in-one", COST, |s| Box::pin(longest(s, LONGEST))));
    cases.push(case("keys/1025-bytes", Cost::new(1, 0, 0), |s| Box::pin(too_long(s))));
    cases.push(case("keys/composed-and-combining-differ", Cost::new(2, 2, 0), |s| Box::pin(not_normalised(s))));
    cases.push(case("keys/case-matters", Cost::new(2, 2, 0), |s| Box::pin(case_matters(s))));
    cases.push(case("keys/below-an-object", Cost::new(3, 2, 0), |s| Box::pin(below_an_object(s))));
    let each = KEYS.len() as u64;
    let many = Cost::new(each + 1, each, each);
    cases.push(case("keys/all-at-the-root-of-a-bucket", many, |s| Box::pin(at_the_root(s))).in_own_bucket());
    cases
}

const COST: Cost = Cost::new(3, 3, 2);

async fn survives(s: &Store, name: String) -> Checked {
    let result = there_and_back(s, &name).await;
    if result.is_err() {
        // A store that lists it under another name gives the cleaning up nothing to find it by.
        let _ = s.delete(&name).await;
    }
    result
}

async fn there_and_back(s: &Store, name: &str) -> Checked {
    let body = Bytes::from(format!("the content of {name}"));
    s.put(name, body.clone()).await?;
    let object = s.get(name).await?;
    ensure!(object.body == *body, "other bytes came back");
    same("the size by HEAD", s.head(name).await?.size, body.len() as u64)?;
    same("the listing", s.names().await?, [name])?;
    same("the listing of its own prefix", s.listed(s.list(name)).await?.0, [name])?;
    s.delete(name).await?;
    refused("GET of what was deleted", s.get(name).await, &[404])?;
    Ok(())
}

async fn longest(s: &Store, component: usize) -> Checked {
    let length = LONGEST - s.prefix.len();
    let mut name: String = (0..length).map(|at| if at % component == component - 1 { '/' } else { 'k' }).collect();
    if name.ends_with('/') {
        name.pop();
        name.push('k');
    }
    survives(s, name).await
}

async fn too_long(s: &Store) -> Checked {
    let name = "k".repeat(LONGEST + 1 - s.prefix.len());
    // The engine's verbs refuse it before it is sent.
    let put = s.put(&name, "x").await;
    ensure!(put.is_err(), "a key of {} bytes was accepted", LONGEST + 1);
    Ok(())
}

async fn not_normalised(s: &Store) -> Checked {
    s.put("\u{fc}", "composed").await?;
    s.put("u\u{308}", "combining").await?;
    ensure!(*s.get("\u{fc}").await?.body == *b"composed", "one name overwrote the other");
    ensure!(*s.get("u\u{308}").await?.body == *b"combining", "one name overwrote the other");
    Ok(())
}

async fn case_matters(s: &Store) -> Checked {
    s.put("Key", "upper").await?;
    s.put("key", "lower").await?;
    ensure!(*s.get("Key").await?.body == *b"upper", "one name overwrote the other");
    ensure!(*s.get("key").await?.body == *b"lower", "one name overwrote the other");
    Ok(())
}

/// Keys are no paths: one may be the beginning of another.
async fn below_an_object(s: &Store) -> Checked {
    s.put("a", "above").await?;
    s.put("a/b", "below").await?;
    ensure!(*s.get("a").await?.body == *b"above", "other bytes came back");
    ensure!(*s.get("a/b").await?.body == *b"below", "other bytes came back");
    same("the listing", s.names().await?, ["a", "a/b"])
}

async fn at_the_root(s: &Store) -> Checked {
    let mut lost = Vec::new();
    let mut kept = Vec::new();
    for (label, name) in KEYS {
        let written = s.put(name, name).await.is_ok();
        if written && s.get(name).await.is_ok_and(|object| *object.body == *name.as_bytes()) {
            kept.push(name);
        } else {
            lost.push(label);
        }
    }
    let listed = s.names().await;
    for (_, name) in KEYS {
        let _ = s.delete(name).await;
    }
    ensure!(lost.is_empty(), "did not come back: {}", lost.join(", "));
    kept.sort_unstable();
    same("the listing", listed?, kept)
}

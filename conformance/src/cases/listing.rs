//! Listings: order, pages, prefixes and delimiters.

use wirespeed::Method;

use crate::case::{Case, Checked, Cost, Finding, case, ensure, same};
use crate::store::{Store, text, texts};

/// In the byte order of UTF-8, which is not that of UTF-16 (the last two) nor that of any language.
const ORDERED: [&str; 13] = [" ", "!", "-", "0", "B", "_", "a!", "a/b", "a0", "aa", "\u{e9}", "\u{fb00}", "\u{10348}"];

pub(super) fn cases() -> Vec<Case> {
    let of = |puts: u64, lists: u64| Cost::new(puts + lists, 0, 0);
    vec![
        case("listing/byte-order", of(14, 2), |s| Box::pin(order(s))),
        case("listing/pages", of(7, 5), |s| Box::pin(pages(s))),
        case("listing/one-key-a-page", of(3, 4), |s| Box::pin(one_a_page(s))),
        case("listing/nothing", of(0, 2), |s| Box::pin(nothing(s))),
        case("listing/prefix", of(5, 4), |s| Box::pin(prefix(s))),
        case("listing/awkward-prefix", of(3, 3), |s| Box::pin(awkward_prefix(s))),
        case("listing/delimiter", of(6, 2), |s| Box::pin(delimiter(s))),
        case("listing/delimiter-of-two", of(3, 1), |s| Box::pin(delimiter_of_two(s))),
        case("listing/delimiter-in-pages", of(8, 6), |s| Box::pin(delimiter_in_pages(s))),
        case("listing/awkward-common-prefix", of(3, 1), |s| Box::pin(awkward_common_prefix(s))),
        case("listing/start-after", of(5, 4), |s| Box::pin(start_after(s))),
        case("listing/start-after-in-pages", of(6, 4), |s| Box::pin(start_after_in_pages(s))),
        case("listing/start-after-with-delimiter", of(5, 2), |s| Box::pin(start_after_with_delimiter(s))),
        case("listing/follows-changes", Cost::new(7, 0, 1), |s| Box::pin(follows_changes(s))),
        case("listing/unencoded", of(2, 2), |s| Box::pin(unencoded(s))),
        case("listing/encoded", of(2, 2), |s| Box::pin(encoded(s))),
        case("listing/key-count", of(3, 1), |s| Box::pin(key_count(s))),
        case("listing/more-than-a-page", of(1_001, 3), |s| Box::pin(thousand(s))),
        case("listing/the-first-version", of(4, 2), |s| Box::pin(first_version(s))),
    ]
}

async fn store(s: &Store, names: &[&str]) -> Checked {
    for name in names {
        s.put(name, name.to_string()).await?;
    }
    Ok(())
}

async fn order(s: &Store) -> Checked {
    let mut backwards = ORDERED;
    backwards.reverse();
    store(s, &backwards).await?;
    same("the listing", s.names().await?, ORDERED)
}

async fn pages(s: &Store) -> Checked {
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    store(s, &names).await?;
    let (listed, _, sizes) = s.listed(s.list("").page_size(3)).await?;
    same("the listing", listed, names)?;
    same("the longest page", sizes.iter().max().copied(), Some(3))
}

async fn one_a_page(s: &Store) -> Checked {
    let names = ["a/x", "b c", "d+e"];
    store(s, &names).await?;
    let (listed, _, sizes) = s.listed(s.list("").page_size(1)).await?;
    same("the listing", listed, names)?;
    same("the longest page", sizes.iter().max().copied(), Some(1))
}

async fn nothing(s: &Store) -> Checked {
    same("the listing", s.names().await?, [""; 0])?;
    let (names, prefixes, _) = s.listed(s.list("none/").delimiter("/")).await?;
    same("what there is", (names.len(), prefixes.len()), (0, 0))
}

async fn prefix(s: &Store) -> Checked {
    store(s, &["a", "ab/c", "abb", "abc", "b"]).await?;
    same("of ab", s.listed(s.list("ab")).await?.0, ["ab/c", "abb", "abc"])?;
    same("of ab/", s.listed(s.list("ab/")).await?.0, ["ab/c"])?;
    same("of a name", s.listed(s.list("abc")).await?.0, ["abc"])?;
    same("of more than a name", s.listed(s.list("abcd")).await?.0, [""; 0])
}

async fn awkward_prefix(s: &Store) -> Checked {
    store(s, &["a b+c%/x", "a b+c%20/x", "a&b;c=d?/x"]).await?;
    same("of the first", s.listed(s.list("a b+c%/")).await?.0, ["a b+c%/x"])?;
    same("of the second", s.listed(s.list("a b+c%20/")).await?.0, ["a b+c%20/x"])?;
    same("of the third", s.listed(s.list("a&b;c=d?/")).await?.0, ["a&b;c=d?/x"])
}

async fn delimiter(s: &Store) -> Checked {
    store(s, &["a/1", "a/2", "b", "c/x/1", "c/y"]).await?;
    // Some stores keep nothing in such an object.
    s.put("d/", "").await?;
    let (names, prefixes, _) = s.listed(s.list("").delimiter("/")).await?;
    same("the objects", names, ["b"])?;
    same("the prefixes", prefixes, ["a/", "c/", "d/"])?;
    let (names, prefixes, _) = s.listed(s.list("c/").delimiter("/")).await?;
    same("the objects of c/", names, ["c/y"])?;
    same("the prefixes of c/", prefixes, ["c/x/"])
}

async fn delimiter_of_two(s: &Store) -> Checked {
    store(s, &["a--1", "a-2", "b--3"]).await?;
    let (names, prefixes, _) = s.listed(s.list("").delimiter("--")).await?;
    same("the objects", names, ["a-2"])?;
    same("the prefixes", prefixes, ["a--", "b--"])
}

async fn delimiter_in_pages(s: &Store) -> Checked {
    store(s, &["a/1", "a/2", "a/3", "b", "c/1", "c/2", "d", "e/1"]).await?;
    let (names, prefixes, sizes) = s.listed(s.list("").delimiter("/").page_size(2)).await?;
    same("the objects", names, ["b", "d"])?;
    same("the prefixes, each once", prefixes, ["a/", "c/", "e/"])?;
    same("the longest page", sizes.iter().max().copied(), Some(2))
}

async fn awkward_common_prefix(s: &Store) -> Checked {
    store(s, &["a b+c%/1", "\u{1f980}&/2", "<x>/3"]).await?;
    let (_, prefixes, _) = s.listed(s.list("").delimiter("/")).await?;
    same("the prefixes", prefixes, ["<x>/", "a b+c%/", "\u{1f980}&/"])
}

async fn start_after(s: &Store) -> Checked {
    store(s, &["a", "b", "c", "d+e f", "e"]).await?;
    for (after, rest) in [("a", 1), ("bb", 2), ("d+e f", 4), ("e", 5)] {
        let listed = s.listed(s.list("").start_after(s.key(after))).await?.0;
        same(&format!("after {after:?}"), listed, &["a", "b", "c", "d+e f", "e"][rest..])?;
    }
    Ok(())
}

async fn start_after_in_pages(s: &Store) -> Checked {
    store(s, &["a", "b", "c", "d", "e", "f"]).await?;
    let (listed, _, _) = s.listed(s.list("").start_after(s.key("b")).page_size(2)).await?;
    same("the listing", listed, ["c", "d", "e", "f"])
}

async fn start_after_with_delimiter(s: &Store) -> Checked {
    store(s, &["a/1", "b/1", "b/2", "c/1", "d"]).await?;
    let (names, prefixes, _) = s.listed(s.list("").delimiter("/").start_after(s.key("b/2"))).await?;
    same("the objects", names, ["d"])?;
    same("the prefixes", prefixes, ["c/"])
}

async fn follows_changes(s: &Store) -> Checked {
    store(s, &["a", "b"]).await?;
    same("after writing", s.names().await?, ["a", "b"])?;
    s.delete("a").await?;
    same("after deleting", s.names().await?, ["b"])?;
    s.put("b", "another size").await?;
    let page = s.list("").pages().next().await.transpose()?.unwrap_or_default();
    same("the size after replacing", page.objects.first().map(|object| object.size), Some(12))
}

const ODD: [&str; 2] = ["a b+c%20&<d>", "\u{e9}\u{1f980}"];

/// Without `encoding-type`, keys stand in the XML as they are.
async fn unencoded(s: &Store) -> Checked {
    store(s, &ODD).await?;
    let answer = s.raw_bucket(Method::Get).query("list-type", "2").query("prefix", s.key("")).send().await?;
    same("the keys", texts(&answer.body, "Key")?, ODD.map(|name| s.key(name)))
}

async fn encoded(s: &Store) -> Checked {
    store(s, &ODD).await?;
    let answer = s
        .raw_bucket(Method::Get)
        .query("list-type", "2")
        .query("encoding-type", "url")
        .query("prefix", s.key(""))
        .send()
        .await?;
    same("EncodingType", text(&answer.body, "EncodingType")?, "url")?;
    let keys = texts(&answer.body, "Key")?;
    for (key, name) in keys.iter().zip(ODD) {
        ensure!(key.is_ascii() && !key.contains(' '), "{key:?} is not encoded");
        let plain = key.replace('+', " ");
        let decoded = percent_encoding::percent_decode_str(&plain).decode_utf8_lossy().into_owned();
        same("a decoded key", decoded, s.key(name))?;
    }
    same("how many there are", keys.len(), ODD.len())
}

async fn key_count(s: &Store) -> Checked {
    store(s, &["a/1", "a/2", "b"]).await?;
    let answer = s
        .raw_bucket(Method::Get)
        .query("list-type", "2")
        .query("delimiter", "/")
        .query("prefix", s.key(""))
        .send()
        .await?;
    same("KeyCount", text(&answer.body, "KeyCount")?, "2")?;
    same("IsTruncated", text(&answer.body, "IsTruncated")?, "false")
}

async fn thousand(s: &Store) -> Checked {
    let names: Vec<String> = (0..1_001).map(|number| format!("k{number:04}")).collect();
    let objects: Vec<_> = names.iter().map(|name| (s.key(name), bytes::Bytes::from_static(b"x"))).collect();
    let mut puts = s.client.put_many(&s.bucket).bytes(objects)?;
    while let Some((_, outcome)) = puts.next().await {
        outcome?;
    }
    let (listed, _, sizes) = s.listed(s.list("")).await?;
    if let Some(wrong) = listed.iter().zip(&names).position(|(found, expected)| found != expected) {
        return Err(Finding::Differs(format!("key {wrong} of the listing is {:?}", listed[wrong])));
    }
    same("the keys listed", listed.len(), names.len())?;
    same("no page above 1,000", sizes.iter().all(|size| *size <= 1_000), true)
}

/// ListObjects, which older programs use.
async fn first_version(s: &Store) -> Checked {
    store(s, &["a", "b", "c", "d/e"]).await?;
    let list = |marker: String| {
        s.raw_bucket(Method::Get).query("prefix", s.key("")).query("marker", marker).query("delimiter", "/").send()
    };
    let keys = |names: &[&str]| names.iter().map(|name| s.key(name)).collect::<Vec<_>>();
    let answer = list(String::new()).await?;
    same("the keys", texts(&answer.body, "Key")?, keys(&["a", "b", "c"]))?;
    let answer = list(s.key("b")).await?;
    same("the keys after b", texts(&answer.body, "Key")?, keys(&["c"]))
}

//! Listings in parallel: the same keys as page after page, in few requests, whatever the server is like.

use wirespeed::{Client, ErrorKind, List, Result};
use wirespeed_origin::{Action, Fault, Origin, Running, Schedule, Series, Verb};

use super::script::{Act, Script};
use super::{AWKWARD, client};

const KEYS: u64 = 20_000;

/// A bucket of 200 pages of 100, among them keys that are none too plain.
async fn long() -> (Running, Client) {
    let origin = Origin::builder()
        .keys("id", "secret")
        .bucket("bucket")
        .synthetic("long", Series::numbered("data/part-", KEYS, 10))
        .start()
        .await
        .unwrap();
    let client = client(&origin);
    (origin, client)
}

fn list(client: &Client) -> List {
    client.list("long").page_size(100)
}

async fn keys(mut pages: wirespeed::Pages) -> Result<Vec<String>> {
    let mut keys = Vec::new();
    while let Some(page) = pages.next().await {
        keys.extend(page?.objects.into_iter().map(|object| object.key));
    }
    Ok(keys)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_pages_at_once_are_the_same_keys() {
    let (origin, client) = long().await;
    let serial = keys(list(&client).pages()).await.unwrap();
    assert_eq!(serial.len() as u64, KEYS);
    let ordered = list(&client).in_parallel().listers(16).in_order().pages();
    assert!(keys(ordered).await.unwrap() == serial);

    let before = origin.stats().count(Verb::List);
    let mut found = keys(list(&client).in_parallel().listers(16).pages()).await.unwrap();
    let requests = origin.stats().count(Verb::List) - before;
    found.sort();
    assert!(found == serial);
    assert!(requests <= 300, "{requests} requests for 200 pages");

    let part = list(&client).prefix("data/part-0001").start_after("data/part-00010004").until("data/part-00011999x");
    let some = keys(part.clone().in_parallel().in_order().pages()).await.unwrap();
    assert!(some == serial[10_005..12_000]);
    assert!(keys(part.pages()).await.unwrap() == some);
    origin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_any_characters_are_cut_between() {
    let (origin, client) = long().await;
    let mut wanted: Vec<String> = AWKWARD.iter().flat_map(|key| [format!("{key}1"), format!("{key}2")]).collect();
    wanted.extend(["\u{10ffff}\u{10ffff}", "\u{1}\u{1f}", "\u{d7ff}", "\u{e000}"].map(str::to_owned));
    wanted.sort();
    for key in &wanted {
        client.put("bucket", key).bytes("x").await.unwrap();
    }
    let some = client.list("bucket").page_size(2);
    let found = keys(some.clone().in_parallel().listers(4).in_order().pages()).await.unwrap();
    assert_eq!(found, wanted);
    let mut versions = some.in_parallel().listers(4).in_order().versions();
    let mut found = Vec::new();
    while let Some(page) = versions.next().await {
        found.extend(page.unwrap().versions.into_iter().map(|version| version.key));
    }
    assert_eq!(found, wanted);
    origin.stop().await;
}

#[tokio::test]
async fn what_fits_a_page_is_one_request() {
    let (origin, client) = long().await;
    let few = client.list("long").prefix("data/part-000000").in_parallel().pages();
    assert_eq!(keys(few).await.unwrap().len(), 100);
    assert_eq!(origin.stats().count(Verb::List), 1);
    let mut folders = client.list("long").delimiter("/").in_parallel().pages();
    assert_eq!(folders.next().await.unwrap().unwrap().prefixes, ["data/"]);
    assert!(folders.next().await.is_none());
    origin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_asks_for_fewer_requests_loses_nothing() {
    let (origin, client) = long().await;
    origin.set_faults(Schedule::new(7).fault(Fault::new(Action::Status(503)).verb(Verb::List).nth(9).times(4)));
    let mut found = keys(list(&client).in_parallel().pages()).await.unwrap();
    found.sort();
    found.dedup();
    assert_eq!(found.len() as u64, KEYS);
    origin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_fails_fails_the_listing_and_says_where() {
    let (origin, client) = long().await;
    for in_order in [false, true] {
        let denied = Fault::new(Action::Error(403, "AccessDenied".to_owned())).verb(Verb::List);
        origin.set_faults(Schedule::new(7).fault(denied.nth(40)));
        let parallel = list(&client).in_parallel();
        let mut pages = if in_order { parallel.in_order().pages() } else { parallel.pages() };
        let error = loop {
            match pages.next().await.expect("the listing must not just end") {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Denied);
        assert!(error.part().is_some_and(|part| part.starts_with("keys after data/part-")), "{error}");
        assert!(pages.next().await.is_none());
    }
    origin.stop().await;
}

/// Pages of 2 out of 40 keys, from the token's number on; whatever the request says of where to start after.
fn without_start_after(target: &str) -> Vec<Act> {
    let first = target.split("continuation-token=").nth(1).map_or(0, |token| {
        let digits: String = token.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    });
    let more = match first + 2 < 40 {
        true => format!("<IsTruncated>true</IsTruncated><NextContinuationToken>{}</NextContinuationToken>", first + 2),
        false => "<IsTruncated>false</IsTruncated>".to_owned(),
    };
    let key = |n: usize| format!("<Contents><Key>key-{n:02}</Key><Size>1</Size></Contents>");
    let body = format!("<ListBucketResult>{more}{}{}</ListBucketResult>", key(first), key(first + 1));
    vec![Act::Send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes())]
}

#[tokio::test]
async fn a_server_without_start_after_is_listed_page_by_page() {
    let script = Script::start(|asked| without_start_after(asked.target()));
    for in_order in [false, true] {
        let parallel = script.client().list("bucket").page_size(2).in_parallel();
        let pages = if in_order { parallel.in_order().pages() } else { parallel.pages() };
        let mut found = keys(pages).await.unwrap();
        found.sort();
        assert_eq!(found, (0..40).map(|n| format!("key-{n:02}")).collect::<Vec<_>>());
    }
    assert!(script.asked().iter().any(|asked| asked.target().contains("start-after")), "it was tried");
}

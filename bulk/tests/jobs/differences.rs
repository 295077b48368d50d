//! What two trees differ in, told without moving them.

use wirespeed_bulk::{Compare, Differences, Filter, Finding, Found};
use wirespeed_origin::{Action, Fault, Verb};

use super::*;

/// Compares, a line a name that is not the same: `a: only left`.
async fn compare(differences: Differences) -> (Found, Vec<String>) {
    let mut lines = Vec::new();
    let found = differences.run(|finding| {
        lines.push(match finding {
            Finding::OnlyLeft(entry) => format!("{}: only left", entry.key),
            Finding::OnlyRight(entry) => format!("{}: only right", entry.key),
            Finding::Size(left, right) => format!("{}: {:?} {:?}", left.key, left.size.unwrap(), right.size.unwrap()),
            Finding::Contents(left, _) => format!("{}: contents", left.key),
            Finding::Unknown(left, _, why) => format!("{}: unknown, {why}", left.key),
            Finding::Failed(entry, failure) => format!("{}: failed, {failure}", entry.key),
            Finding::Same(..) => return,
            other => format!("{other:?}"),
        });
    });
    (found.await.unwrap(), lines)
}

const LEFT: [(&str, &str); 6] =
    [("a", "same"), ("b/c", "left!"), ("b/size", "1"), ("left", "x"), ("x.tmp", "x"), ("z", "")];
const RIGHT: [(&str, &str); 6] =
    [("a", "same"), ("b/c", "right"), ("b/size", "22"), ("right", "x"), ("y.tmp", "x"), ("z", "")];
const BETWEEN: [&str; 4] = ["b/c: contents", "b/size: 1 2", "left: only left", "right: only right"];

async fn upload(client: &Client, bucket: &str, prefix: &str, objects: &[(&str, &str)]) {
    for (key, content) in objects {
        let body = content.as_bytes().to_vec();
        client.put(bucket, format!("{prefix}{key}")).bytes(body).await.unwrap();
    }
}

#[tokio::test]
async fn a_folder_and_a_prefix_either_way_round() {
    let (origin, client) = start().await;
    let here = tempfile::tempdir().unwrap();
    write(here.path(), &LEFT);
    upload(&client, "bucket", "t/", &RIGHT).await;
    let before = origin.stats().requests.get("get").copied();
    let filter = || Filter::new().exclude("*.tmp");
    let place = || Place::bucket(&client, "bucket", "t/");
    let (found, lines) = compare(Differences::between(folder(&here), place()).filter(filter())).await;
    assert_eq!(lines, BETWEEN);
    let expected = Found { same: 2, only_left: 1, only_right: 1, different: 2, ..Found::default() };
    assert_eq!(found, expected);
    assert!(!found.is_same());
    let (_, lines) = compare(Differences::between(place(), folder(&here)).filter(filter())).await;
    assert_eq!(lines, ["b/c: contents", "b/size: 2 1", "left: only right", "right: only left"]);
    assert_eq!(origin.stats().requests.get("get").copied(), before, "nothing is downloaded");
}

#[tokio::test]
async fn two_prefixes_and_two_folders() {
    let (_origin, client) = start().await;
    upload(&client, "bucket", "l/", &LEFT[..4]).await;
    upload(&client, "other", "r/", &RIGHT[..4]).await;
    let places = [Place::bucket(&client, "bucket", "l/"), Place::bucket(&client, "other", "r/")];
    let (_, lines) = compare(Differences::between(places[0].clone(), places[1].clone())).await;
    assert_eq!(lines, BETWEEN);
    let (found, _) = compare(Differences::between(places[0].clone(), places[0].clone())).await;
    assert!(found.is_same() && found.same == 4, "{found:?}");

    let (left, right) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(left.path(), &LEFT[..4]);
    write(right.path(), &RIGHT[..4]);
    let (_, lines) = compare(Differences::between(folder(&left), folder(&right))).await;
    assert_eq!(lines, BETWEEN);
}

#[tokio::test]
async fn sizes_alone_ask_nothing() {
    let (origin, client) = start().await;
    let here = tempfile::tempdir().unwrap();
    write(here.path(), &LEFT[..2]);
    upload(&client, "bucket", "", &RIGHT[..2]).await;
    let (found, _) =
        compare(Differences::between(folder(&here), Place::bucket(&client, "bucket", "")).size_only()).await;
    assert!(found.is_same());
    assert_eq!(origin.stats().requests.get("head"), None);
}

/// Without a checksum and with an ETag that says nothing, only the bytes tell.
#[tokio::test]
async fn what_no_checksum_tells_is_downloaded_where_that_is_asked_for() {
    let (origin, client) = start().await;
    let here = tempfile::tempdir().unwrap();
    write(here.path(), &[("a", "same"), ("b", "left!")]);
    put(&origin, "bucket", &[("a", "same"), ("b", "right")]).await;
    origin.inject(Fault::new(Action::NoEtag).verb(Verb::Head).times(u64::MAX));
    origin.inject(Fault::new(Action::NoEtag).verb(Verb::Get).times(u64::MAX));
    let between = || Differences::between(folder(&here), Place::bucket(&client, "bucket", ""));
    let (found, lines) = compare(between()).await;
    assert!(found.unknown >= 1 && !found.is_same(), "{lines:?}");
    let (found, lines) = compare(between().download()).await;
    assert_eq!(lines, ["b: contents"]);
    assert_eq!((found.same, found.different), (1, 1));
}

#[tokio::test]
async fn a_failure_is_told_of_its_item_and_a_listing_that_fails_ends_it() {
    let (origin, client) = start().await;
    let here = tempfile::tempdir().unwrap();
    write(here.path(), &[("a", "left!"), ("b", "same")]);
    upload(&client, "bucket", "", &[("a", "right"), ("b", "same")]).await;
    origin.inject(Fault::new(Action::Error(403, "AccessDenied".to_owned())).verb(Verb::Head).times(u64::MAX));
    let between = || Differences::between(folder(&here), Place::bucket(&client, "bucket", ""));
    let (found, lines) = compare(between()).await;
    assert_eq!((found.failed, found.same), (1, 1), "small files that fit their ETag ask nothing: {lines:?}");
    assert!(lines[0].starts_with("a: failed"), "{lines:?}");
    origin.inject(Fault::new(Action::Error(403, "AccessDenied".to_owned())).verb(Verb::List).times(u64::MAX));
    assert!(between().run(|_| {}).await.is_err());
}

#[tokio::test]
async fn a_sync_by_checksum_moves_what_differs_whatever_its_time() {
    let (_origin, client) = start().await;
    let here = tempfile::tempdir().unwrap();
    upload(&client, "bucket", "", &[("a", "same"), ("b", "right")]).await;
    // Newer than the objects: by time both would be uploaded.
    write(here.path(), &[("a", "same"), ("b", "left!")]);
    let sync = Job::sync(folder(&here), Place::bucket(&client, "bucket", "")).compare(Compare::Checksum);
    let (summary, lines) = succeed(sync).await;
    assert_eq!(lines, ["upload a: unchanged", "upload b: done"]);
    assert_eq!(summary.transferred, 1);
}

//! Deletions of what is listed, and of what is named.

use wirespeed_bulk::{Entry, Filter, Job, Place};
use wirespeed_origin::Verb;

use super::*;

#[tokio::test]
async fn all_that_is_wanted_goes_in_batches() {
    let (origin, client) = start().await;
    let keys: Vec<String> = (0..2_300).map(|number| format!("p/{number:05}")).collect();
    for key in &keys {
        origin.put_object("bucket", key, "x").await.unwrap();
    }
    put(&origin, "bucket", &[("p/folder/", ""), ("q", "stays")]).await;
    let job = || Job::delete(Place::bucket(&client, "bucket", "p/")).filter(Filter::new().exclude("00007"));
    let (summary, _) = succeed(job().dry_run(true)).await;
    assert_eq!((summary.deleted, origin.stats().count(Verb::DeleteMany)), (2_300, 0));
    let (summary, told) = succeed(job()).await;
    assert_eq!((summary.deleted, summary.transferred), (2_300, 0));
    assert_eq!(told[0], "delete 00000: done");
    assert!(origin.stats().count(Verb::DeleteMany) <= 4, "a thousand a request");
    assert_eq!(objects(&origin, "bucket", "").await, tree(&[("p/00007", "x"), ("q", "stays")]));
}

#[tokio::test]
async fn versions_go_for_good() {
    let (origin, client) = start().await;
    put(&origin, "bucket", &[("a", "1")]).await;
    let (summary, _) = succeed(Job::delete(Place::bucket(&client, "bucket", "")).all_versions(true)).await;
    assert_eq!((summary.deleted, origin.stats().count(Verb::ListVersions)), (1, 1));
    assert!(objects(&origin, "bucket", "").await.is_empty());
}

#[tokio::test]
async fn what_the_server_keeps_is_told_of_its_key() {
    let client = canned(
        "<DeleteResult><Deleted><Key>a</Key></Deleted><Error><Key>b</Key><Code>AccessDenied</Code><Message>no</Message></Error>\
         <Error><Key>z</Key><Code>X</Code><Message>odd</Message></Error></DeleteResult>",
    )
    .await;
    let names = ["a", "b"].map(Entry::named);
    let (summary, told) = run(Job::delete(Place::bucket(&client, "bucket", "")).entries(names)).await;
    assert_eq!((summary.deleted, summary.failed), (1, 2), "{:?}", told.lines);
    assert_eq!(told.lines[0], "delete a: done");
    assert_eq!(told.lines[1], "delete b: failed, cannot delete s3://bucket/b: no (AccessDenied)");
    assert!(told.lines[2].contains("s3://bucket/z, a key that was not asked for: odd (X)"), "{:?}", told.lines);
}

#[tokio::test]
async fn a_deletion_stops_at_the_most_that_it_may_delete() {
    let (origin, client) = start().await;
    for number in 0..2_500 {
        origin.put_object("bucket", &format!("{number:05}"), "x").await.unwrap();
    }
    let job = || Job::delete(Place::bucket(&client, "bucket", ""));
    let (summary, _) = run(job().max_delete(1_300)).await;
    assert_eq!(summary.deleted, 1_300);
    assert!(summary.stopped.unwrap().to_string().contains("more than the 1300"));
    assert_eq!(objects(&origin, "bucket", "").await.len(), 1_200);
    assert_eq!(succeed(job().max_delete(1_200)).await.0.deleted, 1_200);
}

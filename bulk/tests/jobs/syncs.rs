//! Syncs: what differs is transferred, what the source has no more is deleted where that is asked for.

use std::time::{Duration, SystemTime};

use wirespeed_bulk::{Compare, Filter, Job, Place, Withheld};
use wirespeed_origin::Verb;

use super::*;

const TREE: [(&str, &str); 4] = [("a", "1"), ("a.b", "22"), ("a/c", "333"), ("z", "4")];

fn age(folder: &Path, name: &str, time: SystemTime) {
    std::fs::File::options().write(true).open(folder.join(name)).unwrap().set_modified(time).unwrap();
}

fn hour() -> Duration {
    Duration::from_secs(3600)
}

#[tokio::test]
async fn what_is_the_same_is_left_alone_each_way() {
    let (origin, client) = start().await;
    let here = tempfile::tempdir().unwrap();
    write(here.path(), &[("b.d", "22"), ("b/c", "333"), ("b", "1")][..2]);
    let up = || Job::sync(folder(&here), Place::bucket(&client, "bucket", "p/"));
    assert_eq!(succeed(up()).await.0.transferred, 2);
    let (summary, told) = succeed(up()).await;
    assert_eq!((summary.transferred, summary.unchanged), (0, 2), "{told:?}");

    let down = || Job::sync(Place::bucket(&client, "bucket", "p/"), Place::folder(here.path().join("copy")));
    assert_eq!(succeed(down()).await.0.transferred, 2);
    origin.reset_stats();
    assert_eq!(succeed(down()).await.0.unchanged, 2);
    assert_eq!((origin.stats().count(Verb::Get), origin.stats().count(Verb::Head)), (0, 0), "listings tell");

    let across = || Job::sync(Place::bucket(&client, "bucket", "p/"), Place::bucket(&client, "other", ""));
    assert_eq!(succeed(across()).await.0.transferred, 2);
    assert_eq!(succeed(across()).await.0.unchanged, 2);
}

#[tokio::test]
async fn what_differs_is_transferred() {
    let (origin, client) = start().await;
    let here = tempfile::tempdir().unwrap();
    write(here.path(), &[("newer", "1"), ("older", "2"), ("longer", "33"), ("only", "4")]);
    put(&origin, "bucket", &[("newer", "x"), ("older", "x"), ("longer", "x")]).await;
    age(here.path(), "newer", SystemTime::now() + hour());
    age(here.path(), "older", SystemTime::now() - hour());
    let up = || Job::sync(folder(&here), Place::bucket(&client, "bucket", ""));
    let plan = ["upload longer: planned", "upload newer: planned", "upload older: unchanged", "upload only: planned"];
    assert_eq!(succeed(up().dry_run(true)).await.1, plan);
    let sizes =
        ["upload longer: planned", "upload newer: unchanged", "upload older: unchanged", "upload only: planned"];
    assert_eq!(succeed(up().dry_run(true).compare(Compare::SizeOnly)).await.1, sizes);
    // A file that is newer than its object was changed here; an older one was made from it.
    let down = || Job::sync(Place::bucket(&client, "bucket", ""), folder(&here)).dry_run(true);
    let plan = ["download longer: planned", "download newer: planned", "download older: unchanged"];
    assert_eq!(succeed(down()).await.1, plan);
    let exact = ["download longer: planned", "download newer: planned", "download older: planned"];
    assert_eq!(succeed(down().compare(Compare::ExactTime)).await.1, exact);
    succeed(up()).await;
    let expected = [("newer", "1"), ("older", "x"), ("longer", "33"), ("only", "4")];
    assert_eq!(objects(&origin, "bucket", "").await, tree(&expected));
}

#[tokio::test]
async fn what_the_source_has_no_more_is_deleted_where_that_is_asked_for() {
    let (origin, client) = start().await;
    let here = tempfile::tempdir().unwrap();
    write(here.path(), &[("a", "1"), ("b/c", "2")]);
    let extra = [("a/x", "x"), ("b.x", "x"), ("c", "x"), ("keep/me", "x"), ("marker/", "")];
    put(&origin, "bucket", &extra).await;
    let up = || {
        let job = Job::sync(folder(&here), Place::bucket(&client, "bucket", ""));
        job.filter(Filter::new().exclude("keep/*"))
    };
    succeed(up()).await;
    assert_eq!(objects(&origin, "bucket", "").await.len(), 7, "nobody asked for a deletion");
    let deletions = ["delete a/x: planned", "delete b.x: planned", "delete c: planned"];
    let (summary, told) = succeed(up().delete_extra(true).dry_run(true)).await;
    assert_eq!((&told[..3], summary.deleted), (&deletions.map(str::to_owned)[..], 3));
    let (summary, _) = run(up().delete_extra(true).max_delete(2)).await;
    assert!(matches!(summary.withheld, Some(Withheld::TooMany { found: 3, most: 2, .. })), "{summary:?}");
    assert_eq!(objects(&origin, "bucket", "").await.len(), 7);
    let (summary, _) = succeed(up().delete_extra(true).max_delete(3)).await;
    assert_eq!(summary.deleted, 3);
    let left = [("a", "1"), ("b/c", "2"), ("keep/me", "x"), ("marker/", "")];
    assert_eq!(objects(&origin, "bucket", "").await, tree(&left));

    // And on this machine.
    write(here.path(), &[("mine", "x"), ("b/mine", "x")]);
    let down = Job::sync(Place::bucket(&client, "bucket", ""), folder(&here)).delete_extra(true);
    let (summary, told) = succeed(down.filter(Filter::new().exclude("keep/*"))).await;
    assert_eq!(summary.deleted, 2, "{told:?}");
    assert_eq!(files(here.path()), tree(&[("a", "1"), ("b/c", "2")]));
}

#[tokio::test]
async fn more_keys_than_a_page_are_joined_exactly() {
    let (origin, client) = start().await;
    let here = tempfile::tempdir().unwrap();
    for number in 0..3_000 {
        let key = format!("{:02}/{number:04}", number % 37);
        if number % 3 != 0 {
            write(here.path(), &[(&key, "x")]);
        }
        if number % 5 != 0 {
            origin.put_object("bucket", &key, "x").await.unwrap();
        }
    }
    let up = || Job::sync(folder(&here), Place::bucket(&client, "bucket", "")).delete_extra(true);
    let (summary, _) = succeed(up().compare(Compare::SizeOnly)).await;
    assert_eq!((summary.transferred, summary.deleted, summary.unchanged), (400, 800, 1_600));
    assert_eq!(objects(&origin, "bucket", "").await, files(here.path()));
}

#[tokio::test]
async fn kept_times_and_modes_are_what_is_compared() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_origin, client) = start().await;
    let here = tempfile::tempdir().unwrap();
    write(here.path(), &[("a", "1"), ("b", "2")]);
    let up = || Job::sync(folder(&here), Place::bucket(&client, "bucket", "")).preserve(true);
    assert_eq!(succeed(up()).await.0.transferred, 2);
    assert_eq!(succeed(up()).await.0.unchanged, 2);
    // An older file is a change too: it is not the one that was kept.
    age(here.path(), "a", SystemTime::now() - hour());
    assert_eq!(succeed(up()).await.1, ["upload a: done", "upload b: unchanged"]);
    std::fs::set_permissions(here.path().join("b"), std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(succeed(up()).await.1, ["upload a: unchanged", "upload b: done"]);
    let down = || Job::sync(Place::bucket(&client, "bucket", ""), folder(&here)).preserve(true);
    assert_eq!(succeed(down()).await.0.unchanged, 2);
}

#[tokio::test]
async fn a_folder_that_is_still_to_be_made_is_an_empty_one() {
    let (origin, client) = start().await;
    put(&origin, "bucket", &TREE[1..]).await;
    let here = tempfile::tempdir().unwrap();
    let into = here.path().join("new");
    let (summary, _) = succeed(Job::sync(Place::bucket(&client, "bucket", ""), Place::folder(&into))).await;
    assert_eq!(summary.transferred, 3);
    assert_eq!(files(&into), tree(&TREE[1..]));
}

#[tokio::test]
async fn nothing_is_deleted_through_a_link_at_the_target() {
    let (origin, client) = start().await;
    put(&origin, "bucket", &[("a", "1")]).await;
    let (here, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(elsewhere.path(), &[("precious", "x")]);
    write(here.path(), &[("extra", "x")]);
    std::os::unix::fs::symlink(elsewhere.path(), here.path().join("linked")).unwrap();
    let sync = Job::sync(Place::bucket(&client, "bucket", ""), folder(&here)).delete_extra(true);
    assert_eq!(succeed(sync).await.1, ["delete extra: done", "download a: done"]);
    assert_eq!(files(elsewhere.path()), tree(&[("precious", "x")]));
}

//! Moves: what was copied is removed, and nothing else.

use wirespeed_bulk::{Entry, Job, Place};
use wirespeed_origin::{Action, Fault, Verb};

use super::*;

#[tokio::test]
async fn a_tree_is_moved_each_way() {
    let (origin, client) = start().await;
    let all = [("a", "1"), ("b/c", "2")];
    put(&origin, "bucket", &all).await;
    let here = tempfile::tempdir().unwrap();
    let (summary, told) = succeed(Job::mv(Place::bucket(&client, "bucket", ""), folder(&here))).await;
    assert_eq!(told, ["download a: done", "download b/c: done"]);
    assert_eq!((summary.transferred, summary.deleted), (2, 0));
    assert_eq!((files(here.path()), objects(&origin, "bucket", "").await), (tree(&all), tree(&[])));
    succeed(Job::mv(folder(&here), Place::bucket(&client, "bucket", ""))).await;
    assert_eq!((files(here.path()), objects(&origin, "bucket", "").await), (tree(&[]), tree(&all)));
    succeed(Job::mv(Place::bucket(&client, "bucket", ""), Place::bucket(&client, "other", ""))).await;
    assert_eq!(objects(&origin, "bucket", "").await, tree(&[]));
    assert_eq!(objects(&origin, "other", "").await, tree(&all));
}

#[tokio::test]
async fn what_could_not_be_copied_stays() {
    let (origin, client) = start().await;
    put(&origin, "bucket", &[("a", "1"), ("b", "2"), ("c", "3")]).await;
    origin.inject(Fault::new(Action::Error(403, "AccessDenied".to_owned())).verb(Verb::Get).key("b"));
    let here = tempfile::tempdir().unwrap();
    let (summary, told) = run(Job::mv(Place::bucket(&client, "bucket", ""), folder(&here))).await;
    assert_eq!((summary.transferred, summary.failed), (2, 1));
    assert!(told.lines[1].starts_with("download b: failed") && told.lines[1].contains("AccessDenied"));
    assert_eq!(objects(&origin, "bucket", "").await, tree(&[("b", "2")]));
}

#[tokio::test]
async fn a_source_that_cannot_be_removed_is_told() {
    let (origin, client) = start().await;
    put(&origin, "bucket", &[("a", "1")]).await;
    origin.inject(Fault::new(Action::Error(403, "AccessDenied".to_owned())).verb(Verb::DeleteMany));
    let here = tempfile::tempdir().unwrap();
    let (summary, _) = run(Job::mv(Place::bucket(&client, "bucket", ""), folder(&here))).await;
    assert_eq!((summary.transferred, summary.failed), (0, 1));
    assert_eq!(files(here.path()), tree(&[("a", "1")]), "copied it is");
}

#[tokio::test]
async fn an_object_that_changed_since_it_was_listed_is_not_moved() {
    let (origin, client) = start().await;
    put(&origin, "bucket", &[("a", "new")]).await;
    let here = tempfile::tempdir().unwrap();
    let listed = Entry { etag: Some("\"0123456789abcdef0123456789abcdef\"".to_owned()), ..Entry::named("a") };
    let (summary, _) = run(Job::mv(Place::bucket(&client, "bucket", ""), folder(&here)).entries([listed])).await;
    assert_eq!((summary.transferred, summary.failed), (0, 1));
    assert_eq!(objects(&origin, "bucket", "").await, tree(&[("a", "new")]));
}

#[tokio::test]
async fn a_source_stays_where_success_is_not_proven() {
    let (origin, client) = start().await;
    let bucket = || Place::bucket(&client, "bucket", "");
    let other = || Place::bucket(&super::client(&origin), "other", "");
    put(&origin, "bucket", &[("a", "1")]).await;
    let here = tempfile::tempdir().unwrap();
    write(here.path(), &[("b", "2")]);
    for (fault, verb) in [
        (Action::BareStatus(200), Verb::Put),
        (Action::NoEtag, Verb::Put),
        (Action::NoEtag, Verb::Get),
        (Action::BareStatus(200), Verb::Get),
        (Action::BareStatus(200), Verb::Copy),
        (Action::BareStatus(200), Verb::DeleteMany),
    ] {
        origin.inject(Fault::new(fault.clone()).verb(verb));
        let away = tempfile::tempdir().unwrap();
        let jobs = match verb {
            // Through this machine too: between two clients.
            Verb::Put => vec![Job::mv(folder(&here), other()), Job::mv(bucket(), other())],
            Verb::Get => vec![Job::mv(bucket(), folder(&away)), Job::mv(bucket(), other())],
            Verb::Copy => vec![Job::mv(bucket(), Place::bucket(&client, "other", ""))],
            _ => vec![Job::mv(bucket(), folder(&away)), Job::delete(bucket())],
        };
        for job in jobs {
            let (summary, told) = run(job).await;
            assert_eq!((summary.deleted, summary.failed + summary.refused), (0, 1), "{fault:?}: {:?}", told.lines);
        }
        origin.clear_faults();
        assert_eq!(objects(&origin, "bucket", "").await, tree(&[("a", "1")]), "{fault:?} {verb}");
        assert_eq!(files(here.path()), tree(&[("b", "2")]), "{fault:?} {verb}");
    }
}

#[tokio::test]
async fn a_move_is_proven_by_the_usual_answers_without_a_request() {
    let (origin, client) = start().await;
    let bucket = |name| Place::bucket(&client, name, "");
    let here = tempfile::tempdir().unwrap();
    write(here.path(), &[("small", "1"), ("large", &"x".repeat(20 << 20))]);
    succeed(Job::mv(folder(&here), bucket("bucket"))).await;
    assert_eq!(origin.stats().count(Verb::Head), 0, "uploads");
    succeed(Job::delete(bucket("bucket"))).await;
    put(&origin, "bucket", &[("a", "1"), ("b", "2")]).await;
    succeed(Job::mv(bucket("bucket"), bucket("other"))).await;
    assert_eq!(origin.stats().count(Verb::Head), 0, "copies on the server");
    let through_here = || Place::bucket(&super::client(&origin), "bucket", "");
    succeed(Job::copy(bucket("other"), through_here())).await;
    let heads = origin.stats().count(Verb::Head);
    succeed(Job::mv(bucket("other"), through_here())).await;
    assert!(origin.stats().count(Verb::Head) <= 2 * heads, "no more than those that a read asks for checksums");
}

#[tokio::test]
async fn a_file_that_changed_while_it_was_copied_stays() {
    let (origin, client) = start().await;
    let here = tempfile::tempdir().unwrap();
    write(here.path(), &[("a", "1")]);
    let slow = Action::Delay(std::time::Duration::from_millis(300));
    origin.inject(Fault::new(slow).verb(Verb::Put));
    let moving = tokio::spawn(run(Job::mv(folder(&here), Place::bucket(&client, "bucket", ""))));
    while origin.stats().count(Verb::Put) == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    write(here.path(), &[("a", "changed")]);
    let (summary, told) = moving.await.unwrap();
    assert_eq!(summary.transferred, 0, "{:?}", told.lines);
    assert_eq!(files(here.path()), tree(&[("a", "changed")]));
}

#[tokio::test]
async fn nothing_is_moved_onto_itself() {
    let (origin, client) = start().await;
    put(&origin, "bucket", &[("a", "1")]).await;
    let again = super::client(&origin);
    for to in [Place::bucket(&client, "bucket", ""), Place::bucket(&again, "bucket", "")] {
        let (summary, told) = run(Job::mv(Place::bucket(&client, "bucket", ""), to)).await;
        assert_eq!(summary.refused, 1, "{:?}", told.lines);
        assert_eq!(objects(&origin, "bucket", "").await, tree(&[("a", "1")]));
    }
}

//! Copies: down, up, across on the server and through this machine, into nowhere.

use wirespeed_bulk::{Entry, Filter, Job, Place, Withheld};
use wirespeed_origin::Verb;

use super::*;

const TREE: [(&str, &str); 5] = [("a", "1"), ("a.b", "22"), ("b/c/d", "333"), ("b/e", ""), ("é", "ü")];

fn under(prefix: &str) -> BTreeMap<String, String> {
    tree(&TREE).into_iter().map(|(key, content)| (format!("{prefix}{key}"), content)).collect()
}

async fn put_tree(origin: &Running) {
    for (key, content) in TREE {
        put(origin, "bucket", &[(&format!("p/{key}"), content)]).await;
    }
}

#[tokio::test]
async fn a_tree_comes_down_with_its_times_and_no_question() {
    let (origin, client) = start().await;
    put_tree(&origin).await;
    put(&origin, "bucket", &[("p/folder/", ""), ("pq", "no")]).await;
    client.put("bucket", "p/a").bytes("1").await.unwrap();
    let target = tempfile::tempdir().unwrap();
    let into = target.path().join("not/there/yet");
    origin.reset_stats();
    let job = Job::copy(Place::bucket(&client, "bucket", "p/"), Place::folder(&into));
    let (summary, told) = succeed(job).await;
    assert_eq!(files(&into), tree(&TREE));
    assert_eq!((summary.transferred, summary.bytes, summary.skipped), (5, 8, 1));
    assert_eq!(told[4], "download folder/: skipped, an empty object that stands for a folder");
    assert_eq!((origin.stats().count(Verb::Get), origin.stats().count(Verb::Head)), (5, 0));
    let listed = client.list("bucket").prefix("p/a").first_page().await.unwrap().objects[0].last_modified;
    let modified = std::fs::metadata(into.join("a")).unwrap().modified().unwrap();
    assert_eq!(listed, Some(modified.try_into().unwrap()), "what a sync compares by");
}

#[tokio::test]
async fn a_tree_goes_up_and_across() {
    let (origin, client) = start().await;
    let source = tempfile::tempdir().unwrap();
    write(source.path(), &TREE);
    let (summary, _) = succeed(Job::copy(folder(&source), Place::bucket(&client, "bucket", "p/"))).await;
    assert_eq!((summary.transferred, summary.bytes), (5, 8));
    assert_eq!(objects(&origin, "bucket", "").await, under("p/"));

    origin.reset_stats();
    let across = Job::copy(Place::bucket(&client, "bucket", "p/"), Place::bucket(&client, "other", "q/"));
    succeed(across).await;
    assert_eq!(objects(&origin, "other", "").await, under("q/"));
    assert_eq!((origin.stats().count(Verb::Copy), origin.stats().count(Verb::Head)), (5, 0));
}

#[tokio::test]
async fn two_clients_copy_through_this_machine_and_keep_what_describes_an_object() {
    let (origin, client) = start().await;
    let (elsewhere, other) = start().await;
    put_tree(&origin).await;
    client.put("bucket", "p/page").content_type("text/x").metadata("by", "me").bytes("hello").await.unwrap();
    let large = vec![7; 20 << 20];
    client.put("bucket", "p/large").bytes(large.clone()).await.unwrap();
    let job = Job::copy(Place::bucket(&client, "bucket", "p/"), Place::bucket(&other, "bucket", "q/"));
    let (summary, _) = succeed(job).await;
    assert_eq!((summary.transferred, summary.bytes), (7, 13 + (20 << 20)));
    let info = other.head("bucket", "q/page").await.unwrap();
    assert_eq!(info.content_type.as_deref(), Some("text/x"));
    assert_eq!(info.metadata, [("by".to_owned(), "me".to_owned())]);
    assert!(elsewhere.object("bucket", "q/large").await.unwrap() == large);
}

#[tokio::test]
async fn what_the_server_will_not_copy_passes_through_this_machine() {
    let (origin, client) = start().await;
    put_tree(&origin).await;
    let refuses = wirespeed_origin::Action::Error(501, "NotImplemented".to_owned());
    origin.inject(wirespeed_origin::Fault::new(refuses).verb(Verb::Copy));
    succeed(Job::copy(Place::bucket(&client, "bucket", "p/"), Place::bucket(&client, "other", "q/"))).await;
    assert_eq!(objects(&origin, "other", "").await, under("q/"));
}

#[tokio::test]
async fn a_tree_is_received_and_dropped() {
    let (origin, client) = start().await;
    put_tree(&origin).await;
    let (summary, told) = succeed(Job::copy(Place::bucket(&client, "bucket", "p/"), Place::Nowhere)).await;
    assert_eq!((summary.transferred, summary.bytes), (5, 8));
    assert_eq!(told[0], "discard a: done");
}

#[tokio::test]
async fn names_are_transferred_without_a_listing() {
    let (origin, client) = start().await;
    put_tree(&origin).await;
    origin.reset_stats();
    let target = tempfile::tempdir().unwrap();
    let names = [Entry::named("a").to("x/y"), Entry::named("b/e"), Entry::named("missing")];
    let job = Job::copy(Place::bucket(&client, "bucket", "p/"), folder(&target)).entries(names);
    let (summary, told) = run(job).await;
    assert_eq!(files(target.path()), tree(&[("x/y", "1"), ("b/e", "")]));
    assert_eq!((summary.transferred, summary.failed), (2, 1));
    assert!(told.lines[2].contains("p/missing") && told.lines[2].contains("NoSuchKey"), "{:?}", told.lines);
    assert_eq!(origin.stats().count(Verb::List), 0);

    // A name is also what is compared, one by one.
    let names = || [Entry::named("a").to("x/y"), Entry::named("b/c/d")];
    let job = Job::copy(Place::bucket(&client, "bucket", "p/"), folder(&target)).entries(names()).no_clobber(true);
    let (_, told) = succeed(job).await;
    assert_eq!(told, ["download a: skipped, it is there already", "download b/c/d: done"]);
    // And may be filtered by what only a question tells.
    let filtered = Job::copy(Place::bucket(&client, "bucket", "p/"), folder(&target)).entries(names());
    let (_, told) = succeed(filtered.filter(Filter::new().larger(2))).await;
    assert_eq!(told, ["download b/c/d: done"]);
}

#[tokio::test]
async fn a_pattern_narrows_the_listing() {
    let (origin, client) = start().await;
    for number in 0..1_500 {
        origin.put_object("bucket", &format!("p/a{number:04}"), "x").await.unwrap();
    }
    put(&origin, "bucket", &[("p/log-1.gz", "1"), ("p/log-1.txt", "2"), ("p/log-2/3.gz", "3")]).await;
    origin.reset_stats();
    let filter = Filter::new().matching(wirespeed_bulk::Pattern::new("log-*.gz"));
    let job = Job::copy(Place::bucket(&client, "bucket", "p/"), Place::Nowhere).filter(filter);
    assert_eq!(succeed(job).await.1, ["discard log-1.gz: done", "discard log-2/3.gz: done"]);
    assert_eq!(origin.stats().count(Verb::List), 1, "what cannot match is not listed");
}

/// Names that trickle in while others end: no end is missed for a beginning.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_may_come_one_by_one() {
    let (origin, client) = start().await;
    put_tree(&origin).await;
    for round in 0..20 {
        let names = futures_util::stream::unfold(0, |count| async move {
            for _ in 0..count % 7 {
                tokio::task::yield_now().await;
            }
            (count < 100).then(|| (vec![Entry::named("a"), Entry::named("b/e")], count + 1))
        });
        let job = Job::copy(Place::bucket(&client, "bucket", "p/"), Place::Nowhere).names(names);
        let ended = tokio::time::timeout(std::time::Duration::from_secs(60), succeed(job));
        assert_eq!(ended.await.expect("it ends").0.transferred, 200, "round {round}");
    }
}

#[tokio::test]
async fn large_and_small_objects_all_arrive() {
    let (origin, client) = start().await;
    let large = |number: u32| vec![number as u8; (17 << 20) + number as usize];
    for number in 0..5 {
        client.put("bucket", format!("{number}-large")).bytes(large(number)).await.unwrap();
        put(&origin, "bucket", &[(&format!("{number}-small"), "x")]).await;
    }
    let here = tempfile::tempdir().unwrap();
    let (summary, told) = succeed(Job::copy(Place::bucket(&client, "bucket", ""), folder(&here))).await;
    assert_eq!((summary.transferred, told.len()), (10, 10));
    for number in 0..5 {
        assert!(std::fs::read(here.path().join(format!("{number}-large"))).unwrap() == large(number));
    }
    let up = Job::copy(folder(&here), Place::bucket(&client, "other", ""));
    assert_eq!(succeed(up).await.0.bytes, summary.bytes);
}

#[tokio::test]
async fn what_is_there_stays_where_it_must_not_be_clobbered() {
    let (origin, client) = start().await;
    put_tree(&origin).await;
    put(&origin, "other", &[("a", "mine")]).await;
    let across =
        Job::copy(Place::bucket(&client, "bucket", "p/"), Place::bucket(&client, "other", "")).no_clobber(true);
    let (summary, told) = succeed(across).await;
    assert_eq!((summary.transferred, summary.skipped), (4, 1));
    assert_eq!(told[0], "copy a: skipped, it is there already");
    assert_eq!(origin.object("other", "a").await.unwrap(), b"mine");

    let target = tempfile::tempdir().unwrap();
    write(target.path(), &[("b/e", "mine")]);
    let down = Job::copy(Place::bucket(&client, "bucket", "p/"), folder(&target)).no_clobber(true);
    let (summary, _) = succeed(down).await;
    assert_eq!((summary.transferred, summary.skipped), (4, 1));
    assert_eq!(files(target.path())["b/e"], "mine");
}

#[tokio::test]
async fn a_filter_leaves_out_and_a_dry_run_changes_nothing() {
    let (origin, client) = start().await;
    put_tree(&origin).await;
    let target = tempfile::tempdir().unwrap();
    let job = || {
        let filter = Filter::new().exclude("*").include("b/*").exclude("*/e").include("é");
        Job::copy(Place::bucket(&client, "bucket", "p/"), folder(&target)).filter(filter)
    };
    let (summary, told) = succeed(job().dry_run(true)).await;
    assert_eq!(told, ["download b/c/d: planned", "download é: planned"]);
    assert_eq!((summary.transferred, summary.bytes, summary.dry_run), (2, 5, true));
    assert!(files(target.path()).is_empty());
    let (_, told) = succeed(job()).await;
    assert_eq!(told, ["download b/c/d: done", "download é: done"]);
}

#[tokio::test]
async fn keys_that_have_no_path_of_their_own_are_told_and_the_rest_is_done() {
    let (origin, client) = start().await;
    put(&origin, "bucket", &[("a", "1"), ("a/b", "2"), ("../out", "3"), ("c//d", "4"), ("ok", "5")]).await;
    let target = tempfile::tempdir().unwrap();
    let (summary, told) = run(Job::copy(Place::bucket(&client, "bucket", ""), folder(&target))).await;
    let done = files(target.path());
    // Which of `a` and `a/b` comes first decides; the other is told.
    assert!(done == tree(&[("a", "1"), ("ok", "5")]) || done == tree(&[("a/b", "2"), ("ok", "5")]), "{done:?}");
    assert_eq!((summary.transferred, summary.failed + summary.refused), (2, 3), "{:?}", told.lines);
    assert!(!target.path().parent().unwrap().join("out").exists());
}

#[tokio::test]
async fn a_copy_into_itself_and_one_without_s3_are_refused() {
    let (origin, client) = start().await;
    put_tree(&origin).await;
    let into_itself = || Job::copy(Place::bucket(&client, "bucket", "p/"), Place::bucket(&client, "bucket", "p/q/"));
    let (summary, _) = run(into_itself()).await;
    assert!(summary.stopped.unwrap().to_string().contains("lies within"));
    succeed(into_itself().filter(Filter::new().exclude("q/*"))).await;
    assert_eq!(origin.object("bucket", "p/q/a").await.unwrap(), b"1");
    let here = tempfile::tempdir().unwrap();
    let (summary, _) = run(Job::copy(folder(&here), folder(&here))).await;
    assert!(summary.stopped.unwrap().to_string().contains("neither end is on S3"));
}

#[tokio::test]
async fn several_jobs_share_a_tree_by_ranges_of_its_keys() {
    let (origin, client) = start().await;
    put_tree(&origin).await;
    let ranges = [(None, Some("a.b")), (Some("a.b"), Some("b/d")), (Some("b/d"), None)];
    let mut each = Vec::new();
    for (after, until) in ranges {
        let target = tempfile::tempdir().unwrap();
        let range = |key: Option<&str>| key.map(str::to_owned);
        let from = Place::bucket(&client, "bucket", "p/");
        succeed(Job::copy(from, folder(&target)).range(range(after), range(until))).await;
        let up = Job::sync(folder(&target), Place::bucket(&client, "other", "")).delete_extra(true);
        succeed(up.range(range(after), range(until))).await;
        each.push(files(target.path()).into_keys().collect::<Vec<_>>());
    }
    assert_eq!(each, [vec!["a", "a.b"], vec!["b/c/d"], vec!["b/e", "é"]]);
    assert_eq!(objects(&origin, "other", "").await, tree(&TREE), "none deleted what is another's");
}

#[tokio::test]
async fn time_and_mode_are_kept_and_given_back() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_origin, client) = start().await;
    let source = tempfile::tempdir().unwrap();
    write(source.path(), &[("a", "1")]);
    let file = source.path().join("a");
    let time = std::time::UNIX_EPOCH + std::time::Duration::new(1_500_000_000, 123_456_789);
    std::fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    succeed(Job::copy(folder(&source), Place::bucket(&client, "bucket", "")).preserve(true)).await;
    let info = client.head("bucket", "a").await.unwrap();
    assert!(info.metadata.contains(&("mtime".to_owned(), "1500000000.123456789".to_owned())), "{info:?}");
    let target = tempfile::tempdir().unwrap();
    succeed(Job::copy(Place::bucket(&client, "bucket", ""), folder(&target)).preserve(true)).await;
    let got = std::fs::metadata(target.path().join("a")).unwrap();
    assert_eq!((got.modified().unwrap(), got.permissions().mode() & 0o777), (time, 0o640));
}

#[tokio::test]
async fn nothing_at_the_source_is_no_failure_and_no_bucket_is_one() {
    let (_origin, client) = start().await;
    let target = tempfile::tempdir().unwrap();
    let (summary, told) = succeed(Job::copy(Place::bucket(&client, "bucket", "no/"), folder(&target))).await;
    assert!(told.is_empty() && summary.transferred == 0 && summary.withheld.is_none());
    let (summary, _) = run(Job::copy(Place::bucket(&client, "no-bucket", ""), folder(&target))).await;
    assert!(summary.stopped.unwrap().to_string().contains("NoSuchBucket"));
    let sync = Job::sync(Place::bucket(&client, "no-bucket", ""), folder(&target)).delete_extra(true);
    assert_eq!(run(sync).await.0.withheld, Some(Withheld::IncompleteListing));
}

//! What goes wrong: told of the item that it concerns, and nothing is deleted on the strength of half a listing.

use wirespeed_bulk::{Job, Place, Withheld};
use wirespeed_origin::{Action, Fault, Verb};

use super::*;

async fn numbered(origin: &Running, bucket: &str, count: u32) {
    for number in 0..count {
        origin.put_object(bucket, &format!("{number:05}"), "x").await.unwrap();
    }
}

fn denied() -> Action {
    Action::Error(403, "AccessDenied".to_owned())
}

#[tokio::test]
async fn nothing_is_deleted_when_the_sources_listing_fails_on_a_late_page() {
    let (origin, client) = start().await;
    numbered(&origin, "bucket", 7_500).await;
    let here = tempfile::tempdir().unwrap();
    write(here.path(), &[("00000.mine", "x"), ("99999", "x")]);
    origin.inject(Fault::new(denied()).verb(Verb::List).nth(7).times(u64::MAX));
    let sync = Job::sync(Place::bucket(&client, "bucket", ""), folder(&here)).delete_extra(true);
    let (summary, told) = run(sync).await;
    assert!(summary.stopped.as_ref().unwrap().to_string().contains("AccessDenied"), "{summary:?}");
    assert_eq!((summary.withheld, summary.deleted), (Some(Withheld::IncompleteListing), 0));
    assert!(!summary.source_complete && !summary.is_success());
    assert!(told.lines.iter().all(|line| !line.starts_with("delete")));
    let left = files(here.path());
    assert!(left.contains_key("00000.mine") && left.contains_key("99999"));
    assert_eq!(left.len() as u64, 2 + summary.transferred, "what had been listed is transferred");
}

#[tokio::test]
async fn nothing_is_deleted_when_a_folder_of_the_source_cannot_be_read() {
    let (origin, client) = start().await;
    let here = tempfile::tempdir().unwrap();
    write(here.path(), &[("a", "1"), ("b/c", "2")]);
    // Unreadable for root too: a link that leads nowhere.
    std::os::unix::fs::symlink("nowhere", here.path().join("link")).unwrap();
    put(&origin, "bucket", &[("extra", "x"), ("link/below", "x")]).await;
    let (summary, told) = run(Job::sync(folder(&here), Place::bucket(&client, "bucket", "")).delete_extra(true)).await;
    assert_eq!((summary.transferred, summary.failed, summary.deleted), (2, 1, 0), "{:?}", told.lines);
    assert_eq!(summary.withheld, Some(Withheld::IncompleteListing));
    assert!(told.lines[2].starts_with("upload link: failed, cannot read"), "{:?}", told.lines);
    assert_eq!(objects(&origin, "bucket", "").await.len(), 4);
}

#[tokio::test]
async fn a_listing_out_of_order_is_refused() {
    let client = canned(
        "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>b</Key><Size>1</Size></Contents>\
         <Contents><Key>a</Key><Size>1</Size></Contents></ListBucketResult>",
    )
    .await;
    let here = tempfile::tempdir().unwrap();
    write(here.path(), &[("a", "x"), ("b", "x")]);
    let (summary, _) = run(Job::sync(folder(&here), Place::bucket(&client, "bucket", "")).delete_extra(true)).await;
    assert!(summary.stopped.unwrap().to_string().contains("order"), "what lacks must be lacking");
    assert_eq!(summary.deleted, 0);
}

#[tokio::test]
async fn one_failure_stops_the_others_only_where_that_is_asked_for() {
    let (origin, client) = start().await;
    numbered(&origin, "bucket", 50).await;
    origin.inject(Fault::new(denied()).verb(Verb::Get).key("00013"));
    let copy = || Job::copy(Place::bucket(&client, "bucket", ""), Place::Nowhere);
    let (summary, told) = run(copy()).await;
    assert_eq!((summary.transferred, summary.failed), (49, 1));
    assert!(told.lines[13].starts_with("discard 00013: failed") && summary.stopped.is_none());
    let (summary, _) = run(copy().fail_fast(true)).await;
    assert_eq!(summary.failed, 1);
    assert!(summary.stopped.unwrap().to_string().contains("00013"));
}

#[tokio::test]
async fn a_storm_of_throttling_passes() {
    let (origin, client) = start().await;
    numbered(&origin, "bucket", 300).await;
    let slow_down = Action::Error(503, "SlowDown".to_owned());
    origin.inject(Fault::new(slow_down.clone()).verb(Verb::Get).probability(0.2).times(1));
    origin.inject(Fault::new(slow_down).verb(Verb::List).times(1));
    let here = tempfile::tempdir().unwrap();
    let (summary, _) = succeed(Job::copy(Place::bucket(&client, "bucket", ""), folder(&here))).await;
    assert_eq!((summary.transferred, files(here.path()).len()), (300, 300));
}

#[tokio::test]
async fn files_that_vanish_or_cannot_be_read_are_told_and_the_rest_goes_up() {
    let (origin, client) = start().await;
    let here = tempfile::tempdir().unwrap();
    for number in 0..40 {
        write(here.path(), &[(&format!("{number:02}"), "x")]);
    }
    // Named and gone: what a walk saw, and the transfer no more.
    let names = (0..41).map(|number| wirespeed_bulk::Entry {
        size: Some(1),
        modified: Some(jiff::Timestamp::UNIX_EPOCH),
        ..wirespeed_bulk::Entry::named(format!("{number:02}"))
    });
    let (summary, told) = run(Job::copy(folder(&here), Place::bucket(&client, "bucket", "")).entries(names)).await;
    assert_eq!((summary.transferred, summary.failed), (40, 1));
    assert!(told.lines[40].starts_with("upload 40: failed"), "{:?}", told.lines);
    assert_eq!(objects(&origin, "bucket", "").await.len(), 40);
}

#[tokio::test]
async fn a_server_that_never_answers_ends_the_job() {
    let (origin, client) = start().await;
    numbered(&origin, "bucket", 3).await;
    origin.stop().await;
    let here = tempfile::tempdir().unwrap();
    let names = (0..500).map(|number| wirespeed_bulk::Entry::named(format!("{number:05}")));
    let (summary, _) = run(Job::copy(Place::bucket(&client, "bucket", ""), folder(&here)).entries(names)).await;
    assert!(summary.stopped.is_some() && summary.failed == 1, "{summary:?}");
}

#[tokio::test]
async fn a_dropped_job_leaves_nothing_half_done() {
    let (origin, client) = start().await;
    let large = vec![1; 40 << 20];
    client.put("bucket", "large").bytes(large.clone()).await.unwrap();
    let here = tempfile::tempdir().unwrap();
    origin.inject(Fault::new(Action::StallAfter(1 << 20)).verb(Verb::Get));
    let job = Job::copy(Place::bucket(&client, "bucket", ""), folder(&here));
    let stopped = tokio::time::timeout(std::time::Duration::from_millis(500), run(job)).await;
    assert!(stopped.is_err(), "it stalls");
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert!(files(here.path()).is_empty());

    origin.clear_faults();
    std::fs::write(here.path().join("up"), &large).unwrap();
    origin.inject(Fault::new(Action::Stall).verb(Verb::UploadPart));
    let job = Job::copy(folder(&here), Place::bucket(&client, "other", ""));
    let stopped = tokio::time::timeout(std::time::Duration::from_millis(500), run(job)).await;
    assert!(stopped.is_err(), "it stalls");
    for _ in 0..100 {
        if origin.open_uploads("other").is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("an upload is left behind: {:?}", origin.open_uploads("other"));
}

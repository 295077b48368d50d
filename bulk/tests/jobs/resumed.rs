//! Jobs with a resume file: what was done is not done again, and nothing is left when all is done.

use std::path::PathBuf;
use std::time::Duration;

use wirespeed_bulk::{JobName, State};
use wirespeed_origin::{Action, Fault, Verb};

use super::*;

const MIB: usize = 1 << 20;

fn state_at(folder: &tempfile::TempDir) -> (PathBuf, State) {
    let path = folder.path().join("state");
    let name = JobName { verb: "cp".to_owned(), landing: Some(folder.path().to_owned()), ..JobName::default() };
    let state = State::open(&path, &name).unwrap();
    (path, state)
}

fn denied() -> Action {
    Action::Error(403, "AccessDenied".to_owned())
}

/// Text in which no two places look alike.
fn text(bytes: usize) -> String {
    (0..bytes / 8).map(|number| format!("{number:07}\n")).collect()
}

#[tokio::test]
async fn what_was_finished_is_not_asked_for_again() {
    let (origin, client) = start().await;
    put(&origin, "bucket", &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]).await;
    origin.inject(Fault::new(denied()).verb(Verb::Get).key("c").times(1));
    let (here, beside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let copy = |state| Job::copy(Place::bucket(&client, "bucket", ""), folder(&here)).state(state);
    let (path, state) = state_at(&beside);
    let (summary, _) = run(copy(state)).await;
    assert_eq!((summary.transferred, summary.failed), (3, 1));
    assert!(path.exists(), "one failed: there is something left to do");

    std::fs::remove_file(here.path().join("a")).unwrap();
    put(&origin, "bucket", &[("b", "new")]).await;
    let (path, state) = state_at(&beside);
    assert_eq!(state.resumed().finished, 3);
    let (summary, lines) = succeed(copy(state)).await;
    assert_eq!(lines, ["download a: done before", "download b: done", "download c: done", "download d: done before"]);
    assert_eq!((summary.transferred, summary.done_before), (2, 2));
    assert!(!here.path().join("a").exists(), "what was finished is believed");
    assert_eq!(std::fs::read_to_string(here.path().join("b")).unwrap(), "new", "it was written again meanwhile");
    assert!(!path.exists(), "the job is done");
}

/// Drops a job when the server has moved some of its bytes, as a signal does.
async fn drop_in_the_middle(job: Job, origin: &Running, bytes: usize) {
    let before = moved(origin);
    tokio::select! {
        _ = run(job) => panic!("it was done before it could be dropped"),
        () = async {
            while moved(origin) - before < bytes as u64 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        } => {}
    }
    // What was dropped ends when it is polled next.
    tokio::time::sleep(Duration::from_millis(300)).await;
}

fn moved(origin: &Running) -> u64 {
    origin.stats().bytes_in + origin.stats().bytes_out
}

async fn slow() -> (Running, Client) {
    let model = "[nic]\nbaseline = \"40 MB/s\"\n";
    let origin = Origin::builder().anonymous(true).bucket("bucket").model(model.parse().unwrap());
    let origin = origin.start().await.unwrap();
    let client = Client::builder().endpoint_url(origin.endpoint()).region("us-east-1").anonymous();
    let client = client.concurrency(2).part_size(5 << 20).build().unwrap();
    (origin, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_download_goes_on_with_what_has_landed() {
    let (origin, client) = slow().await;
    let whole = text(48 * MIB);
    origin.put_object("bucket", "large", whole.as_bytes().to_vec()).await.unwrap();
    let (here, beside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let copy = |state| Job::copy(Place::bucket(&client, "bucket", ""), folder(&here)).state(state);
    let (_, state) = state_at(&beside);
    drop_in_the_middle(copy(state), &origin, 30 * MIB).await;
    assert_eq!(files(here.path()).len(), 1, "the temporary stays");

    let (path, state) = state_at(&beside);
    assert_eq!((state.resumed().half_done, state.leftovers().len()), (1, 1));
    let before = moved(&origin);
    succeed(copy(state)).await;
    assert!(moved(&origin) - before < 40 * MIB as u64, "{} moved again", moved(&origin) - before);
    assert!(files(here.path()) == BTreeMap::from([("large".to_owned(), whole)]), "it is whole, and alone");
    assert!(!path.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_upload_goes_on_with_the_parts_that_are_there() {
    let (origin, client) = slow().await;
    let (here, beside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let whole = text(48 * MIB);
    write(here.path(), &[("large", &whole)]);
    let copy = |state| Job::copy(folder(&here), Place::bucket(&client, "bucket", "to/")).state(state);
    let (_, state) = state_at(&beside);
    drop_in_the_middle(copy(state), &origin, 30 * MIB).await;

    let (path, state) = state_at(&beside);
    assert_eq!((state.resumed().half_done, state.leftovers().len()), (1, 1));
    let before = moved(&origin);
    succeed(copy(state)).await;
    assert!(moved(&origin) - before < 40 * MIB as u64, "{} moved again", moved(&origin) - before);
    assert!(origin.object("bucket", "to/large").await.unwrap() == whole.as_bytes());
    assert!(origin.open_uploads("bucket").is_empty());
    assert!(!path.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_half_done_of_items_that_are_gone_is_removed() {
    let (origin, client) = slow().await;
    let (here, beside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(here.path(), &[("large", &text(48 * MIB))]);
    let copy = |state| Job::copy(folder(&here), Place::bucket(&client, "bucket", "")).state(state);
    let (_, state) = state_at(&beside);
    drop_in_the_middle(copy(state), &origin, 20 * MIB).await;
    assert_eq!(origin.open_uploads("bucket").len(), 1);

    std::fs::remove_file(here.path().join("large")).unwrap();
    let (path, state) = state_at(&beside);
    succeed(copy(state)).await;
    assert!(origin.open_uploads("bucket").is_empty());
    assert!(!path.exists());
}

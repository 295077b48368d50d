//! Many objects of which a listing or a walk has told already, to files, from files, copied and asked about.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures_core::Stream;
use wirespeed::{
    Client, CopyDirective, CopyItem, ErrorKind, FileAttributes, FileItem, GetItem, Outcomes, Progress, PutOptions,
    Result, UploadItem,
};

use super::script::{Act, Script};
use super::{AWKWARD, PART, bytes, start};

/// Items that are found one after the other.
struct Found<I>(I);

impl<I: Iterator + Unpin> Stream for Found<I> {
    type Item = I::Item;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<I::Item>> {
        Poll::Ready(self.0.next())
    }
}

fn found<T>(items: impl IntoIterator<Item = T>) -> Found<std::vec::IntoIter<T>> {
    Found(items.into_iter().collect::<Vec<_>>().into_iter())
}

/// All outcomes, in the order of their items.
async fn all<T>(mut outcomes: Outcomes<T>) -> Vec<Result<T>> {
    let mut seen = Vec::new();
    while let Some(outcome) = outcomes.next().await {
        seen.push(outcome);
    }
    seen.sort_by_key(|(index, _)| *index);
    assert!(seen.iter().map(|(index, _)| *index).eq(0..seen.len()), "each item once");
    seen.into_iter().map(|(_, result)| result).collect()
}

/// Objects of these sizes, under keys `k0` and so on; their listing.
async fn fill(client: &Client, sizes: &[u64]) -> Vec<wirespeed::ListedObject> {
    let objects = sizes.iter().enumerate().map(|(i, &size)| (format!("k{i}"), bytes(size).into()));
    let objects: Vec<(String, bytes::Bytes)> = objects.collect();
    for outcome in all(client.put_many("bucket").bytes(objects).unwrap()).await {
        outcome.unwrap();
    }
    client.list("bucket").prefix("k").first_page().await.unwrap().objects
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listed_objects_become_files_with_their_times_without_a_question_more() {
    let (origin, client) = start().await;
    let sizes = [0, 1, 4096, PART - 1, PART, PART + 1, 3 * PART + 7];
    let listed = fill(&client, &sizes).await;
    let folder = tempfile::tempdir().unwrap();
    let path = |key: &str| folder.path().join("new").join(key);
    let items = listed.iter().map(|object| {
        let item = FileItem::new(&object.key, path(&object.key)).size(object.size);
        let item = item.if_match(object.etag.clone().unwrap()).modified(object.last_modified.unwrap());
        if object.size == 1 { item.mode(0o600) } else { item }
    });
    let progress = Progress::default();
    let before = origin.stats().requests_total;
    let files = client.get_many("bucket").verify(false).progress(progress.clone());
    for (outcome, object) in all(files.into_files(found(items)).unwrap()).await.into_iter().zip(&listed) {
        assert_eq!(outcome.unwrap().size, object.size);
        assert!(std::fs::read(path(&object.key)).unwrap() == bytes(object.size), "{}", object.key);
        let modified = std::fs::metadata(path(&object.key)).unwrap().modified().unwrap();
        assert_eq!(modified, std::time::SystemTime::from(object.last_modified.unwrap()));
    }
    let requests: u64 = sizes.iter().map(|size| size.div_ceil(PART).max(1)).sum();
    assert_eq!(origin.stats().requests_total - before, requests, "one a part and none beside");
    assert_eq!(std::fs::metadata(path("k1")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(progress.objects(), sizes.len() as u64);
    assert_eq!(names_in(&folder.path().join("new")).len(), sizes.len(), "no temporary is left");
    assert_eq!(client.metrics().memory_in_use, 0);
}

#[tokio::test]
async fn a_size_that_is_wrong_misleads_nobody() {
    let (_origin, client) = start().await;
    let sizes = [0, 1000, PART, PART + 1, 2 * PART];
    fill(&client, &sizes).await;
    let folder = tempfile::tempdir().unwrap();
    for told in [0, 1, PART, 9 * PART] {
        let key = |index| format!("k{index}");
        let files = (0..sizes.len()).map(|i| FileItem::new(key(i), folder.path().join(key(i))).size(told));
        for (outcome, size) in all(client.get_many("bucket").into_files(found(files)).unwrap()).await.iter().zip(sizes)
        {
            assert_eq!(outcome.as_ref().unwrap().size, size, "told {told}");
        }
        let items = (0..sizes.len()).map(move |i| GetItem::new(key(i)).size(told));
        for (outcome, size) in all(client.get_many("bucket").items(items.clone()).unwrap()).await.iter().zip(sizes) {
            assert!(outcome.as_ref().unwrap().body == *bytes(size), "told {told}");
        }
        for (outcome, size) in
            all(client.get_many("bucket").discard_from(found(items)).unwrap()).await.iter().zip(sizes)
        {
            assert_eq!(outcome.as_ref().unwrap().size, size, "told {told}");
        }
        for (index, size) in sizes.iter().enumerate() {
            assert!(std::fs::read(folder.path().join(key(index))).unwrap() == bytes(*size), "told {told} of {size}");
        }
    }
    assert_eq!(client.metrics().memory_in_use, 0);
}

#[tokio::test]
async fn what_was_listed_is_what_is_fetched_or_an_error() {
    let (_origin, client) = start().await;
    let listed = fill(&client, &[10, 20]).await;
    client.put("bucket", "k0").bytes("another").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let item = |index: usize| {
        let object = &listed[index];
        FileItem::new(&object.key, folder.path().join(&object.key))
            .size(object.size)
            .if_match(object.etag.clone().unwrap())
    };
    let outcomes = all(client.get_many("bucket").into_files(found([item(0), item(1)])).unwrap()).await;
    let [Err(changed), Ok(_)] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert_eq!((changed.kind(), changed.key()), (ErrorKind::Precondition, Some("k0")));
    assert!(changed.to_string().contains("since it was listed"), "{changed}");
    assert_eq!(names_in(folder.path()), ["k1"]);

    // A server that does not look at If-Match, and one that writes its tags differently in a listing.
    let script =
        Script::start(|_| vec![Act::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nETag: \"e\"\r\n\r\nabc".to_vec())]);
    for (etag, is_it) in [("\"other\"", false), ("e", true), ("\"e\"", true), ("W/\"other\"", true)] {
        let items = found([GetItem::new("k").size(3).if_match(etag)]);
        let outcome = all(script.client().get_many("bucket").discard_from(items).unwrap()).await.remove(0);
        assert_eq!(outcome.is_ok(), is_it, "{etag}: {outcome:?}");
    }
}

#[tokio::test]
async fn files_that_are_there_stay_where_that_is_asked_for() {
    let (_origin, client) = start().await;
    fill(&client, &[10, 2 * PART]).await;
    let folder = tempfile::tempdir().unwrap();
    let path = |key: &str| folder.path().join(key);
    for key in ["k0", "k1"] {
        std::fs::write(path(key), "mine").unwrap();
    }
    let items = ["k0", "k1", "new/k0"].map(|name| FileItem::new(&name[name.len() - 2..], path(name)).no_clobber());
    let outcomes = all(client.get_many("bucket").into_files(found(items)).unwrap()).await;
    let [Err(small), Err(large), Ok(_)] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert_eq!((small.kind(), large.kind()), (ErrorKind::Precondition, ErrorKind::Precondition));
    assert!(small.to_string().contains("exists"), "{small}");
    assert_eq!(std::fs::read(path("k0")).unwrap(), b"mine");
    assert_eq!(std::fs::read(path("k1")).unwrap(), b"mine");
    assert_eq!(names_in(folder.path()), ["k0", "k1", "new"]);
    assert_eq!(names_in(&path("new")), ["k0"], "one name of it, not two");
}

#[tokio::test]
async fn metadata_decides_what_a_file_gets() {
    let (_origin, client) = start().await;
    client.put("bucket", "k").metadata("mtime", "1000000000").bytes("content").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("k");
    let gets = client.get_many("bucket").attributes(|info| {
        let told = info.metadata.iter().find(|(name, _)| name == "mtime").and_then(|(_, value)| value.parse().ok());
        FileAttributes { modified: told.and_then(|told| jiff::Timestamp::from_second(told).ok()), mode: None }
    });
    let item = FileItem::new("k", &path).modified(jiff::Timestamp::UNIX_EPOCH).mode(0o640);
    all(gets.into_files(found([item])).unwrap()).await.remove(0).unwrap();
    let found = std::fs::metadata(&path).unwrap();
    let since = found.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!((since.as_secs(), found.permissions().mode() & 0o777), (1_000_000_000, 0o640));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn found_files_become_objects_each_in_its_own_way() {
    let (origin, client) = start().await;
    let folder = tempfile::tempdir().unwrap();
    let sizes = [0, 1, 4096, PART, 16 << 20, (16 << 20) + 1];
    let item = |index: usize, size: u64| {
        let path = folder.path().join(index.to_string());
        std::fs::write(&path, bytes(size)).unwrap();
        UploadItem::new(path, format!("k{index}.txt")).size(size)
    };
    let mut items: Vec<_> = sizes.iter().enumerate().map(|(index, &size)| item(index, size)).collect();
    items[1] = items[1].clone().options(PutOptions::new().metadata("own", "yes"));
    let puts = client.put_many("bucket").metadata("own", "no").content_type_by_key(|_| Some("text/plain".to_owned()));
    let outcomes = all(puts.from_files(found(items)).unwrap()).await;
    for (index, (outcome, size)) in outcomes.into_iter().zip(sizes).enumerate() {
        assert_eq!(outcome.unwrap().parts == 1, size < 16 << 20);
        let object = client.get("bucket", format!("k{index}.txt")).buffer().await.unwrap();
        assert!(object.body == *bytes(size));
        let own = if index == 1 { "yes" } else { "no" };
        let info = client.head("bucket", format!("k{index}.txt")).await.unwrap();
        assert_eq!(info.metadata, [("own".to_owned(), own.to_owned())]);
        assert_eq!(info.content_type.as_deref(), Some("text/plain"));
    }
    assert_eq!(client.metrics().memory_in_use, 0);
    assert_eq!(origin.open_uploads("bucket"), []);

    // One that must not be there, one that changed since it was found, one that is gone, one that is no file.
    std::fs::write(folder.path().join("0"), "longer").unwrap();
    let options = PutOptions::new().if_none_match_any();
    let items = [
        UploadItem::new(folder.path().join("1"), "k1.txt").size(1).options(options),
        UploadItem::new(folder.path().join("0"), "new").size(0),
        UploadItem::new(folder.path().join("5"), "new").size(sizes[5] + 1),
        UploadItem::new(folder.path().join("gone"), "new").size(5),
        UploadItem::new(folder.path(), "new").size(5),
        UploadItem::new(folder.path().join("2"), "last").size(4096),
    ];
    let outcomes = all(client.put_many("bucket").from_files(found(items)).unwrap()).await;
    let kinds: Vec<_> = outcomes.iter().map(|outcome| outcome.as_ref().err().map(|error| error.kind())).collect();
    let (changed, no_file) = (Some(ErrorKind::Integrity), Some(ErrorKind::Io));
    assert_eq!(kinds, [Some(ErrorKind::Precondition), changed, changed, no_file, no_file, None]);
    assert!(outcomes[1].as_ref().unwrap_err().to_string().contains("0 bytes when it was found, and has 6 now"));
    assert_eq!(client.head("bucket", "new").await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_are_copied_from_what_was_listed() {
    let (origin, client) = start().await;
    client.create_bucket("other").await.unwrap();
    let listed = fill(&client, &[0, 10, 3 * PART]).await;
    client.put("bucket", "k1").bytes("another").await.unwrap();
    let source: Arc<str> = "bucket".into();
    let mut items: Vec<_> = listed
        .iter()
        .map(|object| {
            let item = CopyItem::new(Arc::clone(&source), &object.key, format!("copy/{}", object.key));
            item.size(object.size).if_match(object.etag.clone().unwrap())
        })
        .collect();
    items.push(CopyItem::new("bucket", "missing", "copy/missing"));
    items.extend(AWKWARD.map(|key| CopyItem::new("bucket", "k0", key).size(0)));
    let progress = Progress::default();
    let before = origin.stats().requests_total;
    let copies = client.copy_many("other").content_type("text/plain").metadata_directive(CopyDirective::Replace);
    let copies = copies.tagging_directive(CopyDirective::Replace).multipart_threshold(PART).part_size(PART);
    let outcomes = all(copies.progress(progress.clone()).items_from(found(items)).unwrap()).await;
    let parts: Vec<_> = outcomes.iter().map(|outcome| outcome.as_ref().map(|copied| copied.parts).ok()).collect();
    assert_eq!(parts[..4], [Some(1), None, Some(3), None]);
    assert_eq!(outcomes[1].as_ref().unwrap_err().kind(), ErrorKind::Precondition, "it is not what was listed");
    assert_eq!(outcomes[3].as_ref().unwrap_err().kind(), ErrorKind::NotFound);
    assert!(parts[4..].iter().all(|parts| *parts == Some(1)));
    // Each at once is one request, that by parts has a beginning and an end; who has no size is asked for it first.
    assert_eq!(
        origin.stats().requests_total - before,
        2 + (3 + 2) + 1 + AWKWARD.len() as u64,
        "no HEAD for what is known"
    );
    assert_eq!(progress.objects(), 2 + AWKWARD.len() as u64);
    let copy = client.get("other", "copy/k2").buffer().await.unwrap();
    assert!(copy.body == *bytes(3 * PART) && copy.info.content_type.as_deref() == Some("text/plain"));
}

#[tokio::test]
async fn many_are_asked_about() {
    let (_origin, client) = start().await;
    fill(&client, &[0, 10]).await;
    let keys = ["k1", "missing", "k0", ""].map(str::to_owned);
    let told = all(client.head_many("bucket").checksum().keys_from(found(keys)).unwrap()).await;
    let [Ok(ten), Err(missing), Ok(none), Err(nameless)] = &told[..] else { panic!("{told:?}") };
    assert_eq!((ten.size, none.size), (10, 0));
    assert!(ten.checksum.is_some());
    assert_eq!((missing.kind(), missing.key()), (ErrorKind::NotFound, Some("missing")));
    assert_eq!(nameless.kind(), ErrorKind::Config);
    assert!(client.head_many("no").keys_from(found([])).is_err());
}

#[tokio::test]
async fn no_more_is_taken_of_a_source_than_can_be_in_flight() {
    let script = Script::start(|asked| match asked.index {
        0..10 => vec![Act::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec())],
        _ => Vec::new(),
    });
    let client = script.builder().concurrency(3).build().unwrap();
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&taken);
    // Never ends.
    let items = Found((0..).map(move |index: u64| {
        counted.fetch_add(1, Ordering::Relaxed);
        GetItem::new(index.to_string()).size(0)
    }));
    let mut outcomes = client.get_many("bucket").discard_from(items).unwrap();
    for _ in 0..5 {
        outcomes.next().await.unwrap().1.unwrap();
    }
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    // Those taken, those that wait to be, and one in each worker's hands.
    assert!(taken.load(Ordering::Relaxed) <= 5 + 3 + 3, "{taken:?}");
}

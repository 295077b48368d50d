//! Down into a file.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tokio::sync::Notify;
use wirespeed::{Client, DownloadLog, DownloadResume, ErrorKind, FileItem, ObjectInfo, PartialDownload, Verified};
use wirespeed_origin::{Running, Verb};

use super::{client_of, content, count_anew, found, start};

const PART: u64 = 1 << 20;
const SIZE: u64 = 6 * PART + 12_345;

/// What a run is told, as a state file would keep it.
#[derive(Default)]
struct Log {
    told: Mutex<Option<PartialDownload>>,
    begun: Mutex<u32>,
    moved: Notify,
}

impl DownloadLog for Log {
    fn began(&self, partial: &PartialDownload) {
        assert_eq!(std::fs::metadata(&partial.temporary).unwrap().len(), 0, "told before the first byte");
        *self.told.lock().unwrap() = Some(partial.clone());
        *self.begun.lock().unwrap() += 1;
    }

    fn wrote(&self, range: Range<u64>) {
        self.told.lock().unwrap().as_mut().unwrap().ranges.push(range);
        self.moved.notify_one();
    }
}

impl Log {
    fn of(left: &PartialDownload) -> Arc<Log> {
        Arc::new(Log { told: Mutex::new(Some(left.clone())), ..Log::default() })
    }

    fn left(&self) -> PartialDownload {
        self.told.lock().unwrap().clone().unwrap()
    }

    /// How many bytes are there.
    fn there(&self) -> u64 {
        let mut bytes = vec![false; SIZE as usize];
        for range in self.left().ranges {
            bytes[range.start as usize..range.end as usize].fill(true);
        }
        bytes.into_iter().filter(|&there| there).count() as u64
    }

    async fn until(&self, bytes: u64) {
        while self.told.lock().unwrap().as_ref().is_none_or(|told| sum(&told.ranges) < bytes) {
            self.moved.notified().await;
        }
    }
}

fn sum(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn client(origin: &Running) -> Client {
    client_of(origin, PART)
}

async fn put(origin: &Running, content: Vec<u8>) {
    client(origin).put("bucket", "key").bytes(content).await.unwrap();
}

/// Downloads until so many bytes are told, and stops there.
async fn stopped(origin: &Running, folder: &Path, bytes: u64) -> PartialDownload {
    let log = Arc::new(Log::default());
    let resume = DownloadResume::new(log.clone());
    let download = client(origin).get("bucket", "key").resume(resume).file(folder.join("f"));
    tokio::select! {
        _ = download => panic!("it was too fast to be stopped"),
        () = log.until(bytes) => {}
    }
    log.left()
}

/// Goes on, and tells how many bytes were received for it.
async fn gone_on(origin: &Running, folder: &Path, left: &PartialDownload) -> (ObjectInfo, u64) {
    let client = client(origin);
    let resume = DownloadResume::new(Log::of(left)).from_partial(left.clone());
    let info = client.get("bucket", "key").resume(resume).file(folder.join("f")).await.unwrap();
    (info, client.metrics().bytes_received)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_anywhere_again_and_again_it_ends_with_every_byte_and_none_twice() {
    let origin = start().await;
    let content = content(SIZE);
    put(&origin, content.clone()).await;
    for seed in 0..6 {
        fastrand::seed(seed);
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("f");
        let mut left: Option<PartialDownload> = None;
        let mut stops = 0;
        let info = loop {
            let log = left.as_ref().map_or_else(Arc::<Log>::default, Log::of);
            let before = left.as_ref().map_or(0, |_| log.there());
            let mut resume = DownloadResume::new(log.clone());
            if let Some(left) = left.take() {
                resume = resume.from_partial(left);
            }
            let enough = before + fastrand::u64(0..2 * PART);
            let client = client(&origin);
            let download = client.get("bucket", "key").resume(resume).file(&target);
            let ended = tokio::select! {
                ended = download => Some(ended.unwrap()),
                () = log.until(enough), if stops < 4 => None,
            };
            let begun = *log.begun.lock().unwrap();
            // Stopped while it took its name, a temporary is no more.
            let before = if before == SIZE && begun == 1 { 0 } else { before };
            assert!(begun <= u32::from(before == 0), "one temporary, told once");
            if let Some(info) = ended {
                assert_eq!(client.metrics().bytes_received, SIZE - before, "only what was missing");
                break info;
            }
            assert!(!target.exists(), "a target is never half a file");
            assert_eq!(names_in(folder.path()).len(), 1, "the temporary stays");
            stops += 1;
            left = Some(log.left()).filter(|left| !left.ranges.is_empty());
        };
        assert!(matches!(info.verified, Verified::FullObject(_)), "{:?}", info.verified);
        assert!(std::fs::read(&target).unwrap() == content, "seed {seed}");
        assert_eq!(names_in(folder.path()), ["f"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_whole_already_is_compared_and_renamed() {
    let origin = start().await;
    put(&origin, content(SIZE)).await;
    let folder = tempfile::tempdir().unwrap();
    let mut left = stopped(&origin, folder.path(), PART).await;
    std::fs::write(&left.temporary, content(SIZE)).unwrap();
    left.ranges = vec![SIZE / 2..SIZE, 0..SIZE / 2 + 1];
    count_anew(&origin).await;
    let (info, received) = gone_on(&origin, folder.path(), &left).await;
    assert!(matches!(info.verified, Verified::FullObject(_)), "{:?}", info.verified);
    assert_eq!((received, info.size), (0, SIZE));
    assert_eq!((origin.stats().count(Verb::Get), origin.stats().count(Verb::Head)), (0, 1));
    assert!(std::fs::read(folder.path().join("f")).unwrap() == content(SIZE));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_changed_is_downloaded_anew() {
    let origin = start().await;
    let folder = tempfile::tempdir().unwrap();
    for size in [SIZE, SIZE - PART, PART / 2] {
        put(&origin, content(SIZE)).await;
        let left = stopped(&origin, folder.path(), 2 * PART).await;
        let mut other = content(size);
        other[0] ^= 1;
        put(&origin, other.clone()).await;
        let (_, received) = gone_on(&origin, folder.path(), &left).await;
        assert_eq!(received, size);
        assert!(std::fs::read(folder.path().join("f")).unwrap() == other);
        assert_eq!(names_in(folder.path()), ["f"], "the old temporary is gone");
        std::fs::remove_file(folder.path().join("f")).unwrap();
    }
    // The same where there was nothing left but to rename it.
    put(&origin, content(SIZE)).await;
    let mut left = stopped(&origin, folder.path(), PART).await;
    std::fs::write(&left.temporary, content(SIZE)).unwrap();
    left.ranges = vec![Range { start: 0, end: SIZE }];
    let mut other = content(SIZE);
    other[0] ^= 1;
    put(&origin, other.clone()).await;
    gone_on(&origin, folder.path(), &left).await;
    assert!(std::fs::read(folder.path().join("f")).unwrap() == other);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_temporary_that_is_not_what_was_told_is_not_used() {
    let origin = start().await;
    put(&origin, content(SIZE)).await;
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = folder.path().join("elsewhere.wirespeed-partial");
    type Harm = fn(&mut PartialDownload, &Path);
    let harms: [(&str, Harm); 6] = [
        ("gone", |left, _| std::fs::remove_file(&left.temporary).unwrap()),
        ("shorter", |left, _| std::fs::write(&left.temporary, b"short").unwrap()),
        ("longer than the object", |left, _| {
            std::fs::write(&left.temporary, vec![0; SIZE as usize + 1]).unwrap();
        }),
        ("of other bytes", |left, _| std::fs::write(&left.temporary, vec![7; SIZE as usize]).unwrap()),
        ("of a version nobody knows", |left, _| {
            (left.etag, left.version_id, left.last_modified) = (None, None, None);
        }),
        ("another's file", |left, elsewhere| {
            std::fs::rename(&left.temporary, elsewhere).unwrap();
            std::os::unix::fs::symlink(elsewhere, &left.temporary).unwrap();
        }),
    ];
    for (name, harm) in harms {
        let below = folder.path().join(name);
        std::fs::create_dir(&below).unwrap();
        let mut left = stopped(&origin, &below, 2 * PART).await;
        harm(&mut left, &elsewhere);
        let client = client(&origin);
        let resume = DownloadResume::new(Log::of(&left)).from_partial(left.clone());
        let info = client.get("bucket", "key").resume(resume).file(below.join("f")).await.expect(name);
        assert!(matches!(info.verified, Verified::FullObject(_)), "{name}: {:?}", info.verified);
        assert!(std::fs::read(below.join("f")).unwrap() == content(SIZE), "{name}");
        if name != "another's file" {
            assert_eq!(names_in(&below), ["f"], "{name}");
        }
    }
    assert!(std::fs::read(&elsewhere).unwrap() != content(SIZE), "what a link leads to was written to");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_keeps_the_temporary_unless_the_object_is_gone() {
    let origin = start().await;
    put(&origin, content(SIZE)).await;
    let folder = tempfile::tempdir().unwrap();
    let left = stopped(&origin, folder.path(), PART).await;
    let temporary = left.temporary.clone();
    let fail = async |left: &PartialDownload| {
        let resume = DownloadResume::new(Log::of(left)).from_partial(left.clone());
        client(&origin).get("bucket", "key").resume(resume).file(folder.path().join("f")).await.unwrap_err()
    };
    origin.inject("action=error:403:AccessDenied,verb=get".parse().unwrap());
    assert_eq!(fail(&left).await.kind(), ErrorKind::Denied);
    assert!(temporary.exists());
    origin.clear_faults();
    client(&origin).delete("bucket", "key").await.unwrap();
    assert_eq!(fail(&left).await.kind(), ErrorKind::NotFound);
    assert_eq!(names_in(folder.path()), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_request_brings_is_not_told() {
    let origin = start().await;
    put(&origin, content(PART)).await;
    let folder = tempfile::tempdir().unwrap();
    let log = Arc::new(Log::default());
    let get = client(&origin).get("bucket", "key").resume(DownloadResume::new(log.clone()));
    get.file(folder.path().join("f")).await.unwrap();
    assert_eq!(*log.told.lock().unwrap(), None);
    let range = client(&origin).get("bucket", "key").range(..5).resume(DownloadResume::new(log));
    assert_eq!(range.file(folder.path().join("f")).await.unwrap_err().kind(), ErrorKind::Config);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_the_large_ones_go_on_and_appear_as_they_should() {
    let origin = start().await;
    put(&origin, content(SIZE)).await;
    client(&origin).put("bucket", "small").bytes("small").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let left = stopped(&origin, folder.path(), 3 * PART).await;
    let missing = SIZE - sum(&left.ranges);
    let modified = jiff::Timestamp::new(1_000_000_000, 5).unwrap();
    let etag = left.etag.clone().unwrap();
    let resume = DownloadResume::new(Log::of(&left)).from_partial(left);
    let small = Arc::new(Log::default());
    let items = [
        FileItem::new("key", folder.path().join("f")).size(SIZE).if_match(etag).modified(modified).resume(resume),
        FileItem::new("small", folder.path().join("s")).size(5).resume(DownloadResume::new(small.clone())),
    ];
    let client = client(&origin);
    let mut done = client.get_many("bucket").into_files(found(items)).unwrap();
    while let Some((_, outcome)) = done.next().await {
        assert!(matches!(outcome.unwrap().verified, Verified::FullObject(_)));
    }
    assert_eq!(client.metrics().bytes_received, missing + 5);
    assert_eq!(std::fs::metadata(folder.path().join("f")).unwrap().modified().unwrap(), SystemTime::from(modified));
    assert!(std::fs::read(folder.path().join("f")).unwrap() == content(SIZE));
    assert_eq!(names_in(folder.path()), ["f", "s"]);
    assert_eq!(*small.told.lock().unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_came_meanwhile_stays_where_that_is_asked_for_and_the_temporary_goes() {
    let origin = start().await;
    put(&origin, content(SIZE)).await;
    let folder = tempfile::tempdir().unwrap();
    let left = stopped(&origin, folder.path(), PART).await;
    let log = Log::of(&left);
    let resume = DownloadResume::new(log.clone()).from_partial(left.clone());
    let item = FileItem::new("key", folder.path().join("f")).no_clobber().resume(resume);
    let mut done = client(&origin).get_many("bucket").into_files(found([item])).unwrap();
    log.until(2 * PART).await;
    std::fs::write(folder.path().join("f"), "came first").unwrap();
    let error = done.next().await.unwrap().1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Precondition, "{error}");
    assert_eq!(std::fs::read(folder.path().join("f")).unwrap(), b"came first");
    assert_eq!(names_in(folder.path()), ["f"]);
}

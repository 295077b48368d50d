//! Up from a file, in parts.

use std::path::Path;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use wirespeed::{
    ChecksumAlgorithm, Client, ErrorKind, PartialUpload, UploadItem, UploadLog, UploadResume, UploadedPart,
};
use wirespeed_origin::{Running, Verb};

use super::{client_of, content, count_anew, found, start};

const PART: u64 = 5 << 20;
const SIZE: u64 = 4 * PART + 12_345;
const PARTS: u64 = 5;

#[derive(Default)]
struct Log {
    told: Mutex<Option<PartialUpload>>,
    begun: Mutex<u32>,
    moved: Notify,
}

impl UploadLog for Log {
    fn began(&self, upload: &PartialUpload) {
        *self.told.lock().unwrap() = Some(upload.clone());
        *self.begun.lock().unwrap() += 1;
    }

    fn sent(&self, part: &UploadedPart) {
        self.told.lock().unwrap().as_mut().unwrap().parts.push(part.clone());
        self.moved.notify_one();
    }
}

impl Log {
    fn of(left: &PartialUpload) -> Arc<Log> {
        Arc::new(Log { told: Mutex::new(Some(left.clone())), ..Log::default() })
    }

    fn left(&self) -> PartialUpload {
        self.told.lock().unwrap().clone().unwrap()
    }

    async fn until(&self, parts: usize) {
        while self.told.lock().unwrap().as_ref().is_none_or(|told| told.parts.len() < parts) {
            self.moved.notified().await;
        }
    }
}

fn client(origin: &Running) -> Client {
    client_of(origin, PART)
}

fn source(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("source");
    std::fs::write(&path, content(SIZE)).unwrap();
    path
}

/// Uploads until the server has accepted so many parts, and stops there.
async fn stopped(origin: &Running, source: &Path, parts: usize) -> PartialUpload {
    let log = Arc::new(Log::default());
    let client = client(origin);
    let upload = client.put("bucket", "key").resume(UploadResume::new(log.clone())).file(source);
    tokio::select! {
        _ = upload => panic!("it was too fast to be stopped"),
        () = log.until(parts) => {}
    }
    assert_eq!(client.unfinished_uploads(), [], "it is kept on purpose");
    log.left()
}

async fn is_there(origin: &Running, content: &[u8]) {
    assert!(origin.object("bucket", "key").await.unwrap() == content);
    assert_eq!(origin.open_uploads("bucket"), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_anywhere_again_and_again_it_sends_no_accepted_part_twice() {
    let origin = start().await;
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path());
    for (seed, algorithm) in (0..4).zip([ChecksumAlgorithm::Crc64Nvme, ChecksumAlgorithm::Sha256].iter().cycle()) {
        fastrand::seed(seed);
        let mut left: Option<PartialUpload> = None;
        let mut stops = 0;
        let outcome = loop {
            let log = left.as_ref().map_or_else(Arc::<Log>::default, Log::of);
            let known = left.as_ref().map_or(0, |left| left.parts.len());
            let mut resume = UploadResume::new(log.clone());
            if let Some(left) = left.take() {
                resume = resume.from_partial(left);
            }
            let enough = known + fastrand::usize(0..3);
            count_anew(&origin).await;
            let client = client(&origin);
            let upload = client.put("bucket", "key").checksum(*algorithm).resume(resume).file(&source);
            let ended = tokio::select! {
                ended = upload => Some(ended.unwrap()),
                () = log.until(enough), if stops < 3 => None,
            };
            if let Some(outcome) = ended {
                let sent = origin.stats().count(Verb::UploadPart);
                assert!(sent <= PARTS - known as u64, "{sent} parts sent, {known} were accepted before");
                let starts = origin.stats().count(Verb::CreateMultipart);
                assert_eq!(starts, u64::from(known == 0 && stops == 0));
                break outcome;
            }
            stops += 1;
            left = Some(log.left());
        };
        is_there(&origin, &content(SIZE)).await;
        assert_eq!(u64::from(outcome.parts), PARTS);
        let info = client(&origin).head("bucket", "key").checksum().await.unwrap();
        assert_eq!(info.checksum.map(|checksum| checksum.algorithm), Some(*algorithm));
        assert_eq!(outcome.checksum.is_some(), algorithm.combines());
        let read = client(&origin).get("bucket", "key").discard().await.unwrap();
        assert_eq!(read.checksum.map(|checksum| checksum.algorithm), Some(*algorithm));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_that_only_the_server_knows_of_are_not_sent_again() {
    let origin = start().await;
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path());
    let mut left = stopped(&origin, &source, 3).await;
    let known = left.parts.len() as u64;
    // One is unknown to the log, of one its checksum.
    left.parts.remove(0);
    left.parts[0].checksum = None;
    count_anew(&origin).await;
    let log = Log::of(&left);
    let resume = UploadResume::new(log.clone()).from_partial(left);
    client(&origin).put("bucket", "key").resume(resume).file(&source).await.unwrap();
    assert!(origin.stats().count(Verb::UploadPart) <= PARTS - known);
    is_there(&origin, &content(SIZE)).await;
    let mut told: Vec<_> = log.left().parts.iter().map(|part| part.number).collect();
    told.sort_unstable();
    assert_eq!(told, (1..=PARTS as u32).collect::<Vec<_>>(), "each told once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_lists_no_parts_is_taken_at_its_earlier_word() {
    let origin = start().await;
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path());
    for fault in ["action=error:403:AccessDenied,verb=list-parts", "action=error:501:NotImplemented,verb=list-parts"] {
        let left = stopped(&origin, &source, 2).await;
        let missing = SIZE - left.parts.iter().map(|part| part.size).sum::<u64>();
        origin.inject(fault.parse().unwrap());
        let resume = UploadResume::new(Log::of(&left)).from_partial(left);
        let client = client(&origin);
        let item = UploadItem::new(&source, "key").size(SIZE).resume(resume);
        let mut done = client.put_many("bucket").from_files(found([item])).unwrap();
        done.next().await.unwrap().1.unwrap();
        // The parts, and what completes them.
        let sent = client.metrics().bytes_sent;
        assert!((missing..missing + 4096).contains(&sent), "{fault}: {sent} bytes sent of {missing}");
        is_there(&origin, &content(SIZE)).await;
        origin.clear_faults();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_changed_is_uploaded_anew_and_the_old_upload_aborted() {
    let origin = start().await;
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path());
    type Change = fn(&mut PartialUpload, &Path);
    let changes: [(&str, Change); 5] = [
        ("its length", |_, source| std::fs::write(source, content(SIZE + 1)).unwrap()),
        ("its time", |left, _| left.source.modified = left.source.modified.map(|time| time - 1)),
        ("its inode", |left, _| left.source.inode = left.source.inode.map(|inode| inode + 1)),
        ("the checksum that is wanted", |left, _| left.checksum = Some(ChecksumAlgorithm::Crc32)),
        ("a size of parts that cannot be", |left, _| left.part_size = 1),
    ];
    for (name, change) in changes {
        std::fs::write(&source, content(SIZE)).unwrap();
        let mut left = stopped(&origin, &source, 2).await;
        change(&mut left, &source);
        count_anew(&origin).await;
        let log = Log::of(&left);
        let resume = UploadResume::new(log.clone()).from_partial(left);
        client(&origin).put("bucket", "key").resume(resume).file(&source).await.expect(name);
        assert_eq!(origin.stats().count(Verb::UploadPart), PARTS, "{name}");
        assert_eq!(*log.begun.lock().unwrap(), 1, "{name}");
        is_there(&origin, &std::fs::read(&source).unwrap()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_is_gone_is_begun_anew_unless_it_had_worked() {
    let origin = start().await;
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path());
    let left = stopped(&origin, &source, 2).await;
    client(&origin).abort_upload("bucket", "key", &left.upload_id).await.unwrap();
    let log = Log::of(&left);
    let resume = UploadResume::new(log.clone()).from_partial(left);
    let outcome = client(&origin).put("bucket", "key").resume(resume).file(&source).await.unwrap();
    is_there(&origin, &content(SIZE)).await;
    // Killed after the last request and before its answer was noted: the same again asks, and sends nothing.
    count_anew(&origin).await;
    let left = log.left();
    let resume = UploadResume::new(Log::of(&left)).from_partial(left.clone());
    let again = client(&origin).put("bucket", "key").resume(resume).file(&source).await.unwrap();
    assert_eq!(again, outcome);
    assert_eq!(origin.stats().count(Verb::UploadPart) + origin.stats().count(Verb::CreateMultipart), 0);
    // Not where the object is another by now.
    client(&origin).put("bucket", "key").bytes(content(SIZE - 1)).await.unwrap();
    let resume = UploadResume::new(Log::of(&left)).from_partial(left);
    client(&origin).put("bucket", "key").resume(resume).file(&source).await.unwrap();
    is_there(&origin, &content(SIZE)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_that_the_server_will_not_have_after_all_are_sent_again() {
    let origin = start().await;
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path());
    let left = stopped(&origin, &source, 3).await;
    origin.inject("action=error:400:InvalidPart,verb=complete-multipart,nth=1".parse().unwrap());
    let resume = UploadResume::new(Log::of(&left)).from_partial(left);
    client(&origin).put("bucket", "key").resume(resume).file(&source).await.unwrap();
    is_there(&origin, &content(SIZE)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_keeps_the_upload_and_a_broken_condition_does_not() {
    let origin = start().await;
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path());
    origin.inject("action=error:403:AccessDenied,verb=upload-part,nth=4".parse().unwrap());
    let log = Arc::new(Log::default());
    let put = client(&origin).put("bucket", "key").resume(UploadResume::new(log.clone()));
    assert_eq!(put.file(&source).await.unwrap_err().kind(), ErrorKind::Denied);
    origin.clear_faults();
    assert_eq!(origin.open_uploads("bucket").len(), 1);
    origin.put_object("bucket", "key", "somebody else's").await.unwrap();
    let resume = UploadResume::new(log.clone()).from_partial(log.left());
    let put = client(&origin).put("bucket", "key").if_none_match_any().resume(resume);
    assert_eq!(put.file(&source).await.unwrap_err().kind(), ErrorKind::Precondition);
    is_there(&origin, b"somebody else's").await;
}

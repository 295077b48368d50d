//! Whole jobs against the embedded server: what is there afterwards, what was told, and what was asked for it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // That is how a test fails.

#[path = "jobs/copies.rs"]
mod copies;
#[path = "jobs/deletions.rs"]
mod deletions;
#[path = "jobs/differences.rs"]
mod differences;
#[path = "jobs/faults.rs"]
mod faults;
#[path = "jobs/moves.rs"]
mod moves;
#[path = "jobs/resumed.rs"]
mod resumed;
#[path = "jobs/syncs.rs"]
mod syncs;

use std::collections::BTreeMap;
use std::path::Path;

use wirespeed::Client;
use wirespeed_bulk::{Item, Job, Outcome, Place, Report, Summary};
use wirespeed_origin::{Origin, Running};

async fn start() -> (Running, Client) {
    let origin = Origin::builder().anonymous(true).bucket("bucket").bucket("other").start().await.unwrap();
    let client = client(&origin);
    (origin, client)
}

fn client(origin: &Running) -> Client {
    Client::builder().endpoint_url(origin.endpoint()).region("us-east-1").anonymous().build().unwrap()
}

/// What a job tells, a line an item: `download a: done`.
#[derive(Default)]
struct Told {
    lines: Vec<String>,
    found: (u64, u64),
    all_found: bool,
}

impl Report for Told {
    fn found(&mut self, items: u64, bytes: u64) {
        self.found.0 += items;
        self.found.1 += bytes;
    }

    fn all_found(&mut self) {
        assert!(!self.all_found, "told twice");
        self.all_found = true;
    }

    fn item(&mut self, item: &Item<'_>) {
        let came = match &item.outcome {
            Outcome::Done => "done".to_owned(),
            Outcome::Planned => "planned".to_owned(),
            Outcome::Unchanged => "unchanged".to_owned(),
            Outcome::DoneBefore => "done before".to_owned(),
            Outcome::Skipped(why) => format!("skipped, {why}"),
            Outcome::Failed(failure) => format!("failed, {failure}"),
        };
        self.lines.push(format!("{} {}: {came}", item.action.as_str(), item.entry.key));
    }
}

/// Runs a job; what it told is sorted by name, because items end in any order.
async fn run(job: Job) -> (Summary, Told) {
    let mut told = Told::default();
    let summary = job.run(&mut told).await;
    told.lines.sort_by_cached_key(|line| line.split_once(": ").map(|(name, _)| name.to_owned()));
    (summary, told)
}

/// The same, of which all must go well.
async fn succeed(job: Job) -> (Summary, Vec<String>) {
    let (summary, told) = run(job).await;
    assert!(summary.is_success(), "{summary:?} {:?}", told.lines);
    assert!(told.all_found && summary.source_complete);
    (summary, told.lines)
}

/// A server that answers every request with this document.
async fn canned(document: &'static str) -> Client {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut asked = Vec::new();
                while !asked.windows(4).any(|end| end == b"\r\n\r\n") {
                    if stream.read_buf(&mut asked).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                let head =
                    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", document.len());
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.write_all(document.as_bytes()).await;
                // What is still being sent is taken in, so that the answer is not lost with a reset.
                let _ = stream.shutdown().await;
                let _ = stream.read_to_end(&mut asked).await;
            });
        }
    });
    Client::builder().endpoint_url(endpoint).region("us-east-1").anonymous().build().unwrap()
}

async fn put(origin: &Running, bucket: &str, objects: &[(&str, &str)]) {
    for (key, content) in objects {
        origin.put_object(bucket, key, content.as_bytes().to_vec()).await.unwrap();
    }
}

/// All that is in a bucket under a prefix.
async fn objects(origin: &Running, bucket: &str, prefix: &str) -> BTreeMap<String, String> {
    let mut pages = client(origin).list(bucket).prefix(prefix).pages();
    let mut found = BTreeMap::new();
    while let Some(page) = pages.next().await {
        for object in page.unwrap().objects {
            let content = origin.object(bucket, &object.key).await.unwrap();
            found.insert(object.key, String::from_utf8(content).unwrap());
        }
    }
    found
}

/// All that is in a folder, by the path below it.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for child in std::fs::read_dir(next).unwrap() {
            let path = child.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let key = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(key, std::fs::read_to_string(path).unwrap());
            }
        }
    }
    found
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, content) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

fn tree(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, content)| ((*key).to_owned(), (*content).to_owned())).collect()
}

fn folder(folder: &tempfile::TempDir) -> Place {
    Place::folder(folder.path())
}

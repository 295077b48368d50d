//! Jobs in shards against the embedded server: together they do what the job does, in any order, each as often as it takes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // That is how a test fails.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use wirespeed::{Client, Progress};
use wirespeed_bulk::{
    BulkSpec, Failure, NamedItem, Rule, ShardResult, ShardSpec, Slice, Verb, merge, plan, plan_names, run_shard,
};
use wirespeed_origin::{Origin, Running};

async fn start() -> (Running, Client) {
    let origin = Origin::builder().anonymous(true).bucket("bucket").bucket("other").start().await.unwrap();
    let client = Client::builder().endpoint_url(origin.endpoint()).region("us-east-1").anonymous().build().unwrap();
    (origin, client)
}

/// Names that try the order of keys: of folders, of siblings that sort around a `/`, of bytes beyond ASCII.
fn keys() -> Vec<String> {
    let mut keys: Vec<String> = (0..120).map(|n| format!("d{}/f{n:03}", n % 7)).collect();
    keys.extend(
        ["a", "a.b", "a-b/c", "ab/c", "d1.txt", "d1-/x", "z", "ü/é", "\u{10FFFF}", "d0/sub/deep"].map(String::from),
    );
    keys.sort();
    keys
}

fn body(key: &str) -> Vec<u8> {
    key.bytes().cycle().take(key.len() * 7).collect()
}

fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
        for child in fs::read_dir(folder).unwrap() {
            let path = child.unwrap().path();
            if path.is_dir() {
                walk(root, &path, found);
            } else {
                let key = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.insert(key, fs::read(path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(folder, folder, &mut found);
    found
}

fn expected() -> BTreeMap<String, Vec<u8>> {
    keys().into_iter().map(|key| (key.clone(), body(&key))).collect()
}

async fn fill(client: &Client, prefix: &str) {
    for key in keys() {
        client.put("bucket", format!("{prefix}{key}")).bytes(body(&key)).await.unwrap();
    }
}

async fn objects(client: &Client, bucket: &str, prefix: &str) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pages = client.list(bucket).prefix(prefix).pages();
    while let Some(page) = futures_util::StreamExt::next(&mut pages).await {
        for object in page.unwrap().objects {
            let content = client.get(bucket, &object.key).buffer().await.unwrap();
            found.insert(object.key[prefix.len()..].to_owned(), content.body.to_vec());
        }
    }
    found
}

/// Through JSON, as between machines.
async fn run(spec: &ShardSpec, client: &Client) -> ShardResult {
    let spec = ShardSpec::from_json(&spec.to_json()).unwrap();
    let result = run_shard(&spec, client, Progress::default(), &mut ()).await.unwrap();
    ShardResult::from_json(&result.to_json()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn shards_of_a_download_bring_everything_once_in_any_order() {
    let (_origin, client) = start().await;
    fill(&client, "p/").await;
    client.put("bucket", "p2/x").bytes("not below the prefix").await.unwrap();
    let target = tempfile::tempdir().unwrap();
    let job = BulkSpec::new(Verb::Sync, "s3://bucket/p", target.path().to_str().unwrap(), &client);
    let shards = plan(job, &client, 6).await.unwrap();
    assert_eq!(shards.len(), 6);
    assert_eq!(shards.iter().map(|spec| spec.items).sum::<u64>(), 130);
    let mut results = Vec::new();
    for spec in shards.iter().rev() {
        results.push(run(spec, &client).await);
        assert_eq!(results.last().unwrap().transferred, spec.items);
    }
    assert_eq!(tree(target.path()), expected());
    // Each once more: there is nothing left to do.
    for spec in &shards {
        let again = run(spec, &client).await;
        assert_eq!((again.transferred, again.unchanged, again.failed), (0, spec.items, 0));
    }
    let report = merge(results);
    assert!(report.is_success());
    assert_eq!((report.transferred, report.shards), (130, 6));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_shard_of_an_upload_deletes_in_its_own_range_and_the_ends_are_open() {
    let (_origin, client) = start().await;
    let source = tempfile::tempdir().unwrap();
    for key in keys() {
        let path = source.path().join(&key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, body(&key)).unwrap();
    }
    // Before the first key, behind the last, and in between.
    let strangers = ["\u{1}first", "d3/f0005", "ü", "\u{10FFFF}\u{10FFFF}"];
    for key in strangers {
        client.put("bucket", format!("p/{key}")).bytes("x").await.unwrap();
    }
    client.put("bucket", "q").bytes("not below the prefix").await.unwrap();
    let mut job = BulkSpec::new(Verb::Sync, source.path().to_str().unwrap(), "s3://bucket/p/", &client);
    job.options.delete = true;
    let shards = plan(job, &client, 5).await.unwrap();
    let (first, others) = shards.split_first().unwrap();
    run(first, &client).await;
    let left = objects(&client, "bucket", "p/").await;
    assert!(!left.contains_key("\u{1}first") && left.contains_key("ü") && left.contains_key("\u{10FFFF}\u{10FFFF}"));
    for spec in others {
        run(spec, &client).await;
    }
    assert_eq!(objects(&client, "bucket", "p/").await, expected());
    assert_eq!(objects(&client, "bucket", "q").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_that_is_dropped_in_the_middle_is_run_again() {
    let (_origin, client) = start().await;
    fill(&client, "").await;
    let job = BulkSpec::new(Verb::Copy, "s3://bucket", "s3://other/copy", &client);
    let shards = plan(job, &client, 3).await.unwrap();
    for spec in &shards {
        let mut unheard = ();
        let half = run_shard(spec, &client, Progress::default(), &mut unheard);
        // As often as it is polled within a moment; how far it comes does not matter.
        let _ = tokio::time::timeout(std::time::Duration::from_millis(3), half).await;
        assert!(run(spec, &client).await.is_success());
    }
    assert_eq!(objects(&client, "other", "copy/").await, expected());
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_and_options_go_along() {
    let (_origin, client) = start().await;
    fill(&client, "").await;
    let mut job = BulkSpec::new(Verb::Copy, "s3://bucket/", "s3://other/", &client);
    job.options.rules = vec![Rule::Exclude("*".to_owned()), Rule::Include("d1/*".to_owned())];
    job.options.write.storage_class = Some("STANDARD_IA".to_owned());
    job.options.write.metadata = BTreeMap::from([("k".to_owned(), "v".to_owned())]);
    let shards = plan(job, &client, 4).await.unwrap();
    let wanted = keys().iter().filter(|key| key.starts_with("d1/")).count() as u64;
    assert_eq!(shards.iter().map(|spec| spec.items).sum::<u64>(), wanted);
    let mut transferred = 0;
    for spec in &shards {
        transferred += run(spec, &client).await.transferred;
    }
    assert_eq!(transferred, wanted);
    let info = client.head("other", "d1/f001").await.unwrap();
    assert_eq!(info.metadata, [("k".to_owned(), "v".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_cut_and_what_is_missing_is_reported() {
    let (_origin, client) = start().await;
    fill(&client, "").await;
    let target = tempfile::tempdir().unwrap();
    let named = |key: &str| NamedItem { key: key.to_owned(), ..NamedItem::default() };
    let names = ["d0/f000", "a", "missing", "z", "a", "d1/f001"].map(named);
    let job = BulkSpec::new(Verb::Copy, "s3://bucket/", target.path().to_str().unwrap(), &client);
    let shards = plan_names(job.clone(), &client, names, 3).unwrap();
    assert_eq!(shards.len(), 3);
    assert!(shards.iter().all(|spec| matches!(&spec.slice, Slice::Names(names) if !names.is_empty())));
    let mut results = Vec::new();
    for spec in &shards {
        results.push(run(spec, &client).await);
    }
    let report = merge(results);
    assert_eq!((report.transferred, report.failed), (4, 1));
    assert_eq!(report.failures[0].kind, "not_found");
    assert_eq!(report.failures[0].source.as_deref(), Some("s3://bucket/missing"));
    let mut deleting = job;
    (deleting.verb, deleting.options.delete) = (Verb::Sync, true);
    assert!(matches!(plan_names(deleting, &client, [], 3), Err(Failure::Refused(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spec_holds_the_settings_that_decide_and_no_secret() {
    let origin = Origin::builder().anonymous(true).bucket("bucket").start().await.unwrap();
    let client = Client::builder()
        .endpoint_url(origin.endpoint())
        .region("eu-west-3")
        .credentials(wirespeed::Credentials::new("AKIDEXAMPLE", "sEcReT"))
        .concurrency(7)
        .build()
        .unwrap();
    let job = BulkSpec::new(Verb::Sync, "s3://bucket/a", "/nowhere", &client);
    let spec = &plan_names(job, &client, [NamedItem { key: "k".to_owned(), ..NamedItem::default() }], 1).unwrap()[0];
    let text = spec.to_json();
    assert!(!text.contains("AKIDEXAMPLE") && !text.contains("sEcReT"), "{text}");
    let made = spec.client_builder().unwrap().anonymous().build().unwrap();
    assert_eq!(made.config().endpoint_url, client.config().endpoint_url);
    assert_eq!(made.config().region, "eu-west-3");
    assert!(!spec.job.settings.contains_key("concurrency"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_shard_is_refused_with_what_to_try() {
    let (_origin, client) = start().await;
    for (text, says) in [
        ("", "wirespeed plan"),
        ("{}", "version"),
        (r#"{"version": 2}"#, "plan it again"),
        (r#"{"version": 1, "shard": 0}"#, "wirespeed plan"),
    ] {
        let why = ShardSpec::from_json(text).unwrap_err().to_string();
        assert!(why.contains(says), "{text}: {why}");
    }
    for (from, to) in [("/a", "/b"), ("a", "s3://b"), ("s3:///k", "/a"), ("s3://b", "relative/path")] {
        let job = BulkSpec::new(Verb::Sync, from, to, &client);
        assert!(matches!(plan(job, &client, 2).await, Err(Failure::Refused(_))), "{from} {to}");
    }
    let missing = BulkSpec::new(Verb::Sync, "s3://no-such-bucket/a", "/nowhere", &client);
    assert!(matches!(plan(missing, &client, 2).await, Err(Failure::Engine(_))));
}

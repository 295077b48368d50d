//! Copies from S3 to S3 whose bytes pass through this machine: where two clients speak to the two places, or the server
//! will not copy by itself.

use std::collections::{HashMap, VecDeque};
use std::io;

use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::task::{Id, JoinSet};
use wirespeed::{CopyDirective, ObjectInfo, PutOptions};

use super::call::Transferred;
use super::lane::Ended;
use super::way::{Way, check_read};
use crate::entry::Entry;
use crate::failure::Failure;

/// Copies that wait for others to end.
const WAITING: usize = 1_000;

/// Copies under way through this machine, a task each.
pub(super) struct Relay {
    most: usize,
    waiting: VecDeque<(Entry, Way)>,
    running: JoinSet<Result<Transferred, Failure>>,
    entries: HashMap<Id, Entry>,
}

impl Relay {
    pub(super) fn new(most: usize) -> Relay {
        Relay { most, waiting: VecDeque::new(), running: JoinSet::new(), entries: HashMap::new() }
    }

    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < WAITING
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
    }

    pub(super) fn add(&mut self, way: &Way, entry: Entry) {
        self.waiting.push_back((entry, way.clone()));
        self.let_in();
    }

    fn let_in(&mut self) {
        while self.running.len() < self.most
            && let Some((entry, way)) = self.waiting.pop_front()
        {
            let copied = entry.clone();
            let task = self.running.spawn(async move { relay(&way, &copied).await });
            self.entries.insert(task.id(), entry);
        }
    }

    /// The next that has ended. Cancelled, it loses nothing. Waits forever where none is under way.
    pub(super) async fn next(&mut self) -> Ended {
        loop {
            let (id, result) = match self.running.join_next_with_id().await {
                Some(Ok((id, result))) => (id, result),
                Some(Err(error)) => (error.id(), Err(Failure::lost())),
                None => std::future::pending().await,
            };
            self.let_in();
            if let Some(entry) = self.entries.remove(&id) {
                return (entry, result);
            }
        }
    }
}

/// Copies one object as it is read.
async fn relay(way: &Way, entry: &Entry) -> Result<Transferred, Failure> {
    let Some((from, to)) = way.relayed() else { return Err(Failure::lost()) };
    let settings = way.settings();
    let mut get = from.asked(from.client.get(&from.name, from.key_of(&entry.key)));
    if let Some(key) = &from.customer_key {
        get = get.sse_customer_key(key.clone());
    }
    if let Some(version) = &entry.version {
        get = get.version(version);
    }
    if let Some(etag) = way.listed_etag(entry).filter(|etag| !etag.starts_with("W/")) {
        get = get.if_match(etag);
    }
    if let Some(verify) = settings.verify {
        get = get.verify(verify);
    }
    let content = get.stream().await?;
    let size = content.length();
    if way.removes_source() {
        check_read(from, entry, Some(size), content.info().etag.as_deref())?;
    }
    let options = match settings.metadata {
        CopyDirective::Copy => described(content.info(), way.options().clone()),
        CopyDirective::Replace => way.options().clone(),
    };
    let mut put = to.client.put(&to.name, to.key_of(entry.target())).options(options);
    if let Some(checksum) = settings.checksum {
        put = put.checksum(checksum);
    }
    let content = content.map(|buffer| buffer.map(Bytes::from).map_err(io::Error::other));
    let outcome = put.progress(settings.progress.clone()).expected_size(size).stream(content).await?;
    Ok(Transferred { size: Some(size), etag: outcome.etag })
}

/// The options, and the description that the source has.
fn described(info: &ObjectInfo, mut options: PutOptions) -> PutOptions {
    type Setter = fn(PutOptions, String) -> PutOptions;
    let texts: [(&Option<String>, Setter); 5] = [
        (&info.content_type, PutOptions::content_type),
        (&info.content_encoding, PutOptions::content_encoding),
        (&info.content_disposition, PutOptions::content_disposition),
        (&info.content_language, PutOptions::content_language),
        (&info.cache_control, PutOptions::cache_control),
    ];
    for (text, set) in texts {
        if let Some(text) = text {
            options = set(options, text.clone());
        }
    }
    for (name, value) in &info.metadata {
        options = options.metadata(name, value);
    }
    options
}

//! A round: workers that take items in order, and a slot for each item's sample, made before the clock starts.

use std::fs::File;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use crc32fast::Hasher;
use futures::future::join_all;
use nix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::Client;
use crate::call::Call;
use crate::found::Found;
use crate::plan::{Item, Operation, Plan, Sink, Source};

/// Nanoseconds of the machine's monotonic clock.
pub(crate) fn now() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |time| time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// Where a sample stays until the clock has stopped. Written once, by whoever took the item.
#[derive(Default)]
struct Slot {
    worker: AtomicU64,
    start_ns: AtomicU64,
    first_ns: AtomicU64,
    end_ns: AtomicU64,
    bytes: AtomicU64,
    keys: AtomicU64,
}

/// What few items or few rounds have.
#[derive(Default)]
struct Aside {
    errors: Vec<(usize, String)>,
    digests: Vec<(usize, u32)>,
}

pub(crate) struct Round<C> {
    client: Arc<C>,
    plan: Arc<Plan>,
    body: Option<Bytes>,
    number: u64,
    verify: bool,
    next: AtomicUsize,
    found: Found,
    slots: Vec<Slot>,
    aside: Mutex<Aside>,
}

impl<C: Client> Round<C> {
    pub(crate) fn new(
        client: Arc<C>,
        plan: Arc<Plan>,
        body: Option<Bytes>,
        number: u64,
        verify: bool,
    ) -> Arc<Round<C>> {
        let slots = plan.work.iter().map(|_| Slot::default()).collect();
        let found = Found::new(plan.work.len(), plan.listing.is_some());
        let (next, aside) = (AtomicUsize::new(0), Mutex::default());
        Arc::new(Round { client, plan, body, number, verify, next, found, slots, aside })
    }

    /// Does all the work once; when it began and when it ended.
    pub(crate) async fn run(self: &Arc<Self>) -> (u64, u64) {
        let workers = self.client.in_flight().clamp(1, self.plan.work.len());
        let start = now();
        let lister = self.plan.listing.is_some().then(|| tokio::spawn(Arc::clone(self).find(workers)));
        let workers = (0..workers).map(|worker| tokio::spawn(Arc::clone(self).work(worker)));
        join_all(lister.into_iter().chain(workers)).await;
        let end = now();
        for n in self.found.count()..self.plan.work.len() {
            self.slots[n].start_ns.store(end, Relaxed);
            self.slots[n].end_ns.store(end, Relaxed);
            self.put_aside(n, None, Err(anyhow!("the listing did not name it in its turn")));
        }
        (start, end)
    }

    /// Lists what `workers` then get.
    async fn find(self: Arc<Self>, workers: usize) {
        let prefix = Item::listed(self.plan.listing.clone().unwrap_or_default());
        let mut call = Call::new(&self.plan, 0, &prefix, false);
        call.found = Some(&self.found);
        if let Err(error) = self.client.list(&mut call).await {
            eprintln!("{}: the listing failed: {error:#}", C::ABOUT.name);
        }
        self.found.all_for(workers);
    }

    async fn work(self: Arc<Self>, worker: usize) {
        loop {
            self.found.turn().await;
            let n = self.next.fetch_add(1, Relaxed);
            if n >= self.found.count() {
                return;
            }
            let (item, slot) = (&self.plan.work[n], &self.slots[n]);
            let mut call = Call::new(&self.plan, n, item, self.verify);
            let start = now();
            let done = match self.plan.operation {
                Operation::Get => self.client.get(&mut call).await,
                Operation::Put => {
                    let body = self.body.as_ref().map(|body| body.slice(..item.size as usize));
                    self.client.put(&mut call, body).await
                }
                Operation::List => self.client.list(&mut call).await,
            };
            let end = now();
            slot.worker.store(worker as u64, Relaxed);
            slot.start_ns.store(start, Relaxed);
            slot.first_ns.store(call.first_ns, Relaxed);
            slot.end_ns.store(end, Relaxed);
            slot.bytes.store(call.bytes, Relaxed);
            slot.keys.store(call.keys, Relaxed);
            self.put_aside(n, call.digest.take(), done);
        }
    }

    fn put_aside(&self, n: usize, digest: Option<Hasher>, done: Result<()>) {
        if digest.is_none() && done.is_ok() {
            return;
        }
        let mut aside = self.aside.lock().unwrap_or_else(PoisonError::into_inner);
        match done {
            Ok(()) => aside.digests.extend(digest.map(|digest| (n, digest.finalize()))),
            Err(error) => aside.errors.push((n, format!("{error:#}"))),
        }
    }

    /// Prints the samples, and that the round is done.
    ///
    /// # Errors
    /// Where standard output is gone.
    // A function of its own in profiles too: what it costs comes after the clock, and is left out there.
    #[inline(never)]
    pub(crate) fn report(&self, (start, end): (u64, u64), out: &mut impl Write) -> Result<()> {
        let mut aside = std::mem::take(&mut *self.aside.lock().unwrap_or_else(PoisonError::into_inner));
        aside.errors.sort_unstable();
        aside.digests.sort_unstable();
        for (n, slot) in self.slots.iter().enumerate() {
            let sample = match aside.errors.binary_search_by_key(&n, |error| error.0) {
                Ok(at) => self.sample(n, slot, None, Some(aside.errors[at].1.clone())),
                Err(_) => {
                    let digest = aside.digests.binary_search_by_key(&n, |digest| digest.0);
                    match digest.map(|at| aside.digests[at].1).map_or(Ok(None), |crc| self.digest(n, crc).map(Some)) {
                        Ok(digest) => self.sample(n, slot, digest, None),
                        Err(error) => self.sample(n, slot, None, Some(format!("{error:#}"))),
                    }
                }
            };
            writeln!(out, "{sample}")?;
        }
        let effective = self.client.effective();
        let done =
            json!({"type": "done", "round": self.number, "start_ns": start, "end_ns": end, "effective": effective});
        writeln!(out, "{done}")?;
        out.flush()?;
        Ok(())
    }

    fn sample(&self, n: usize, slot: &Slot, digest: Option<u32>, error: Option<String>) -> Value {
        let first = Some(slot.first_ns.load(Relaxed)).filter(|first| *first > 0);
        let mut sample = json!({
            "type": "sample", "n": n, "worker": slot.worker.load(Relaxed), "start_ns": slot.start_ns.load(Relaxed),
            "first_ns": first, "end_ns": slot.end_ns.load(Relaxed), "bytes": slot.bytes.load(Relaxed), "error": error,
        });
        if self.plan.operation == Operation::List {
            sample["keys"] = slot.keys.load(Relaxed).into();
        }
        if let Some(digest) = digest {
            sample["digest"] = format!("{digest:08x}").into();
        }
        sample
    }

    /// Of the bytes that are in the item's file now, where it has one; otherwise as they were seen.
    fn digest(&self, n: usize, seen: u32) -> Result<u32> {
        if self.plan.sink != Sink::File && self.plan.source != Source::File {
            return Ok(seen);
        }
        let path = Call::new(&self.plan, n, &self.plan.work[n], false).path();
        let mut file = File::open(&path).with_context(|| format!("open {}", path.display()))?;
        let (mut digest, mut buffer) = (Hasher::new(), vec![0; 1 << 20]);
        loop {
            match file.read(&mut buffer).with_context(|| format!("read {}", path.display()))? {
                0 => return Ok(digest.finalize()),
                read => digest.update(&buffer[..read]),
            }
        }
    }
}

//! The engine with nothing of the lab around it: the same plan, the same calls by as many tasks, and neither clock
//! nor sample. What wirespeed-rust costs more than this is what driving costs (`python -m wirespeed_lab.overhead`).

use std::future::Future;
use std::io::{Write, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anyhow::{Context, Result};
use lab_driver::{About, Operation, Plan, Sink, Source};
use tokio::runtime::Builder;
use wirespeed::Client;

const ABOUT: About = About {
    name: "bare",
    client: "wirespeed",
    version: "0.1.0",
    components: &[],
    operations: &[Operation::Get],
    sinks: &[Sink::Discard],
    sources: &[Source::Memory],
    settings: &["concurrency"],
    tls: false,
    notes: &["takes no samples"],
};

struct Work {
    engine: Client,
    plan: Plan,
    next: AtomicUsize,
}

impl Work {
    async fn work(self: Arc<Self>) -> Result<()> {
        while let Some(item) = self.plan.work.get(self.next.fetch_add(1, Relaxed)) {
            let get = self.engine.get(self.plan.bucket.as_str(), item.key.as_str());
            match item.range() {
                Some(range) => get.range(range).discard().await?,
                None => get.discard().await?,
            };
        }
        Ok(())
    }
}

async fn run(mut lines: impl Iterator<Item = std::io::Result<String>>) -> Result<()> {
    let plan = Plan::parse(&lines.next().context("there is no plan")??, &ABOUT)?;
    let mut builder = Client::builder()
        .endpoint_url(plan.endpoint.as_str())
        .region(plan.region.as_str())
        .set("addressing_style", "path")?;
    if let Some(requests) = plan.concurrency {
        builder = builder.concurrency(requests);
    }
    let work = Arc::new(Work { engine: builder.build()?, plan, next: AtomicUsize::new(0) });
    said("ready")?;
    for line in lines {
        line?;
        work.next.store(0, Relaxed);
        let tasks: Vec<_> = (0..work.engine.config().concurrency.clamp(1, work.plan.work.len()))
            .map(|_| tokio::spawn(Arc::clone(&work).work()))
            .collect();
        for task in tasks {
            task.await??;
        }
        said("done")?;
    }
    Ok(())
}

fn said(what: &str) -> Result<()> {
    println!("{{\"type\":\"{what}\"}}");
    stdout().flush()?;
    Ok(())
}

fn main() -> Result<()> {
    block_on(run(stdin().lines()))
}

/// On the runtime that drivers have on one core.
fn block_on(work: impl Future<Output = Result<()>>) -> Result<()> {
    Builder::new_current_thread().enable_all().build()?.block_on(work)
}

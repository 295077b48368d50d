//! The object_store crate: `get_opts` for each range or object, signed, the body
//! read chunk by chunk and dropped. `describe` and `run` are the lab's protocol.

use std::ops::Range;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use lab_driver::ranges::{self, Fetch};
use lab_driver::{About, Call, Client, Operation, Plan, Sink, Skip, Source};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{Certificate, ClientOptions, GetOptions, ObjectStore, ObjectStoreExt};
use protocol::{Get, Workload};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// Version of the object_store crate that Cargo.toml pins.
const OBJECT_STORE_VERSION: &str = "0.14.2";

struct Store(AmazonS3);

impl Fetch for Store {
    async fn fetch<T>(&self, key: &str, range: Option<Range<u64>>, mut take: T) -> Result<()>
    where
        T: FnMut(Bytes) -> Result<()> + Send,
    {
        let options = GetOptions { range: range.map(Into::into), ..GetOptions::default() };
        let answer = self.0.get_opts(&Path::parse(key)?, options).await?;
        let mut body = answer.into_stream();
        while let Some(chunk) = body.try_next().await.context("body")? {
            take(chunk)?;
        }
        Ok(())
    }
}

struct Driver {
    store: Arc<Store>,
    plan: Arc<Plan>,
}

impl Client for Driver {
    const ABOUT: About = About {
        name: "object-store",
        client: "object_store",
        version: OBJECT_STORE_VERSION,
        components: &[],
        operations: &[Operation::Get, Operation::Put, Operation::List],
        sinks: &[Sink::Discard, Sink::Memory, Sink::Stream, Sink::File],
        sources: &[Source::Memory],
        settings: &["concurrency", "part_size", "listing"],
        tls: true,
        notes: &[
            "the driver makes the parts of one large object",
            "the driver writes the files",
            "lists whole folders alone",
        ],
    };

    fn open(plan: &Arc<Plan>) -> Result<Driver> {
        let mut prefixes = plan.work.iter().map(|item| item.prefix.as_str()).chain(plan.listing.as_deref());
        if prefixes.any(|prefix| !prefix.is_empty() && !prefix.ends_with('/')) {
            bail!(Skip::new("object_store lists only prefixes that end in a slash"));
        }
        let mut options = ClientOptions::new().with_allow_http(true);
        if let Some(file) = &plan.ca_file {
            let pem = std::fs::read(file).with_context(|| format!("read {}", file.display()))?;
            options = options.with_root_certificate(Certificate::from_pem(&pem)?);
        }
        let (access_key, secret_key) = lab_driver::credentials()?;
        let store = AmazonS3Builder::new()
            .with_endpoint(&plan.endpoint)
            .with_bucket_name(&plan.bucket)
            .with_region(&plan.region)
            .with_access_key_id(access_key)
            .with_secret_access_key(secret_key)
            .with_virtual_hosted_style_request(!plan.path_style)
            .with_client_options(options)
            .build()?;
        Ok(Driver { store: Arc::new(Store(store)), plan: Arc::clone(plan) })
    }

    fn in_flight(&self) -> usize {
        self.plan.in_flight()
    }

    fn effective(&self) -> Value {
        json!({"concurrency": self.plan.in_flight(), "part_size": self.plan.split(), "checksums": false})
    }

    async fn get(self: &Arc<Self>, call: &mut Call<'_>) -> Result<()> {
        ranges::get(&self.store, call, self.plan.split(), self.plan.in_flight()).await
    }

    async fn put(self: &Arc<Self>, call: &mut Call<'_>, body: Option<Bytes>) -> Result<()> {
        let body = body.unwrap_or_default();
        let path = Path::parse(&call.item.key)?;
        match self.plan.split() {
            None => {
                self.store.0.put(&path, body.clone().into()).await?;
            }
            Some(part) => {
                let mut upload = self.store.0.put_multipart(&path).await?;
                let mut sent = JoinSet::new();
                for from in (0..body.len()).step_by(part as usize) {
                    if sent.len() == self.plan.in_flight()
                        && let Some(part) = sent.join_next().await
                    {
                        part??;
                    }
                    let end = body.len().min(from + part as usize);
                    sent.spawn(upload.put_part(body.slice(from..end).into()));
                }
                while let Some(part) = sent.join_next().await {
                    part??;
                }
                upload.complete().await?;
            }
        }
        call.whole(&body);
        Ok(())
    }

    async fn list(self: &Arc<Self>, call: &mut Call<'_>) -> Result<()> {
        let prefix = Path::parse(&call.item.prefix)?;
        let mut objects = self.store.0.list(Some(&prefix));
        while let Some(object) = objects.try_next().await? {
            call.begun();
            call.key(object.location.as_ref());
        }
        Ok(())
    }
}

async fn fetch(store: Arc<Store>, get: Get) -> Result<u64> {
    let mut received = 0;
    let take = |chunk: Bytes| {
        received += chunk.len() as u64;
        Ok(())
    };
    store.fetch(&get.key, get.range.map(|(from, to)| from..to), take).await?;
    Ok(received)
}

fn main() -> Result<()> {
    lab_driver::answer::<Driver>();
    let workload = <Workload as clap::Parser>::parse();
    let store = AmazonS3Builder::new()
        .with_endpoint(&workload.endpoint)
        .with_bucket_name(&workload.bucket)
        .with_region(&workload.region)
        .with_access_key_id(&workload.access_key)
        .with_secret_access_key(&workload.secret_key)
        .with_client_options(ClientOptions::new().with_allow_http(true))
        .build()?;
    let store = Arc::new(Store(store));
    let in_effect = json!({
        "client": "object-store", "version": OBJECT_STORE_VERSION, "connections": workload.connections,
        "part": workload.part, "runtime_threads": 1,
    });
    let in_flight = workload.connections;
    workload.run(in_effect, move |gets| {
        let store = store.clone();
        async move {
            stream::iter(gets)
                .map(|get| fetch(store.clone(), get))
                .buffer_unordered(in_flight)
                .try_fold(0, |sum, bytes| async move { Ok(sum + bytes) })
                .await
        }
    })
}

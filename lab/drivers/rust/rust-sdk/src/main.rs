//! The AWS SDK for Rust: `get_object` for each range or object, the body read
//! chunk by chunk and dropped. Checksum validation is off; stalled-stream
//! protection stays on as it comes, for the engine's stall timeout is on too.
//! `describe` and `run` are the lab's protocol.

use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use lab_driver::ranges::{self, Fetch};
use lab_driver::{About, Call, Client, Operation, Plan, Sink, Source};
use protocol::{Get, Workload};
use rust_sdk::{Sdk, Site, connect};
use serde_json::{Value, json};

struct Driver {
    sdk: Arc<Sdk>,
    plan: Arc<Plan>,
}

impl Client for Driver {
    const ABOUT: About = About {
        name: "rust-sdk",
        client: "aws-sdk-s3",
        version: aws_sdk_s3::meta::PKG_VERSION,
        components: &[],
        operations: &[Operation::Get, Operation::Put, Operation::List],
        sinks: &[Sink::Discard, Sink::Memory, Sink::Stream, Sink::File],
        sources: &[Source::Memory, Source::File],
        settings: &["concurrency", "part_size", "checksums", "listing"],
        tls: true,
        notes: &["the driver makes the parts of one large object", "the driver writes the files"],
    };

    fn open(plan: &Arc<Plan>) -> Result<Driver> {
        Ok(Driver { sdk: Arc::new(Sdk::open(plan)?), plan: Arc::clone(plan) })
    }

    fn in_flight(&self) -> usize {
        self.plan.in_flight()
    }

    fn effective(&self) -> Value {
        json!({
            "concurrency": self.plan.in_flight(), "part_size": self.plan.split(),
            "checksums": self.plan.checksums.unwrap_or(true), "stalled_stream_protection": "default",
        })
    }

    async fn get(self: &Arc<Self>, call: &mut Call<'_>) -> Result<()> {
        ranges::get(&self.sdk, call, self.plan.split(), self.plan.in_flight()).await
    }

    async fn put(self: &Arc<Self>, call: &mut Call<'_>, body: Option<Bytes>) -> Result<()> {
        self.sdk.put(call, body, self.plan.split(), self.plan.in_flight()).await
    }

    async fn list(self: &Arc<Self>, call: &mut Call<'_>) -> Result<()> {
        self.sdk.list(call).await
    }
}

async fn fetch(sdk: Arc<Sdk>, get: Get) -> Result<u64> {
    let mut received = 0;
    let take = |chunk: Bytes| {
        received += chunk.len() as u64;
        Ok(())
    };
    sdk.fetch(&get.key, get.range.map(|(from, to)| from..to), take).await?;
    Ok(received)
}

fn main() -> Result<()> {
    lab_driver::answer::<Driver>();
    let workload = <Workload as clap::Parser>::parse();
    let client = connect(&Site {
        endpoint: &workload.endpoint,
        region: &workload.region,
        access_key: &workload.access_key,
        secret_key: &workload.secret_key,
        path_style: true,
        checksums: false,
    });
    let in_effect = json!({
        "client": "rust-sdk", "version": aws_sdk_s3::meta::PKG_VERSION, "connections": workload.connections,
        "part": workload.part, "checksums": false, "stalled_stream_protection": "default", "runtime_threads": 1,
    });
    let sdk = Arc::new(Sdk { client, bucket: workload.bucket.clone() });
    let in_flight = workload.connections;
    workload.run(in_effect, move |gets| {
        let sdk = Arc::clone(&sdk);
        async move {
            stream::iter(gets)
                .map(|get| fetch(Arc::clone(&sdk), get))
                .buffer_unordered(in_flight)
                .try_fold(0, |sum, bytes| async move { Ok(sum + bytes) })
                .await
        }
    })
}

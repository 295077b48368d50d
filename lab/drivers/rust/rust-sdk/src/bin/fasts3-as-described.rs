//! FastS3 as it was described, not the thing itself, which no registry has: a HEAD for each object, then ranges of
//! 128 MB in parallel over the AWS SDK for Rust; one page after another for a listing.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use lab_driver::{About, Call, Client, Operation, Plan, Sink, Source, ranges};
use rust_sdk::Sdk;
use serde_json::{Value, json};

const PART: u64 = 128 << 20;

struct Driver {
    sdk: Arc<Sdk>,
    plan: Arc<Plan>,
}

impl Driver {
    fn part(&self) -> u64 {
        self.plan.part_size.unwrap_or(PART)
    }
}

impl Client for Driver {
    const ABOUT: About = About {
        name: "fasts3-as-described",
        client: "fasts3-as-described",
        version: "1",
        components: &[("aws-sdk-s3", aws_sdk_s3::meta::PKG_VERSION)],
        operations: &[Operation::Get, Operation::Put, Operation::List],
        sinks: &[Sink::Discard, Sink::Memory, Sink::Stream, Sink::File],
        sources: &[Source::Memory],
        settings: &["concurrency", "part_size", "checksums", "listing"],
        tls: true,
        notes: &["built from a description: a HEAD, then ranges of 128 MB in parallel", "serial listing"],
    };

    fn open(plan: &Arc<Plan>) -> Result<Driver> {
        Ok(Driver { sdk: Arc::new(Sdk::open(plan)?), plan: Arc::clone(plan) })
    }

    fn in_flight(&self) -> usize {
        self.plan.in_flight()
    }

    fn effective(&self) -> Value {
        json!({
            "concurrency": self.plan.in_flight(), "part_size": self.part(),
            "checksums": self.plan.checksums.unwrap_or(true),
        })
    }

    async fn get(self: &Arc<Self>, call: &mut Call<'_>) -> Result<()> {
        let length = match call.item.range() {
            Some(range) => range.end - range.start,
            None => {
                let head = self.sdk.client.head_object().bucket(&self.sdk.bucket).key(&call.item.key);
                head.send().await?.content_length.unwrap_or_default() as u64
            }
        };
        let part = Some(self.part()).filter(|part| length > *part);
        ranges::get(&self.sdk, call, part, self.plan.in_flight()).await
    }

    async fn put(self: &Arc<Self>, call: &mut Call<'_>, body: Option<Bytes>) -> Result<()> {
        let part = Some(self.part()).filter(|part| call.item.size > *part);
        self.sdk.put(call, body, part, self.plan.in_flight()).await
    }

    async fn list(self: &Arc<Self>, call: &mut Call<'_>) -> Result<()> {
        self.sdk.list(call).await
    }
}

fn main() -> ExitCode {
    lab_driver::answer::<Driver>();
    eprintln!("fasts3-as-described: say describe or run");
    ExitCode::from(64)
}

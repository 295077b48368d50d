//! wirespeed as a Rust crate: one call for each item, and the engine's own splitting of large ones.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use lab_driver::{About, Call, Client, Operation, Plan, Sink, Source};
use serde_json::{Value, json};
use wirespeed::AddressingStyle;

/// S3 takes no smaller part, but for the last.
const LEAST_PART: u64 = 5 << 20;

struct Driver {
    engine: wirespeed::Client,
    bucket: String,
    serial_list: bool,
}

impl Driver {
    fn item(&self, call: &Call<'_>) -> wirespeed::Get {
        let get = self.engine.get(self.bucket.as_str(), call.item.key.as_str());
        match call.item.range() {
            Some(range) => get.range(range),
            None => get,
        }
    }
}

impl Client for Driver {
    const ABOUT: About = About {
        name: "wirespeed-rust",
        client: "wirespeed",
        version: "0.1.0",
        components: &[],
        operations: &[Operation::Get, Operation::Put, Operation::List],
        sinks: &[Sink::Discard, Sink::Memory, Sink::Stream, Sink::File],
        sources: &[Source::Memory, Source::File],
        settings: &["concurrency", "part_size", "checksums", "listing"],
        tls: true,
        notes: &["a round that verifies a discard reads a stream", "a list of concurrency 1 is serial"],
    };

    fn open(plan: &Arc<Plan>) -> Result<Driver> {
        let style = if plan.path_style { "path" } else { "virtual" };
        let mut builder = wirespeed::Client::builder()
            .endpoint_url(plan.endpoint.as_str())
            .region(plan.region.as_str())
            .set("addressing_style", style)?;
        if let Some(requests) = plan.concurrency {
            builder = builder.concurrency(requests);
        }
        if let Some(bytes) = plan.part_size {
            // What is larger than a part goes up in parts, as it comes down in them.
            let threshold = bytes.saturating_add(1).max(LEAST_PART);
            builder = builder.part_size(bytes).set("multipart_threshold", &threshold.to_string())?;
        }
        if let Some(checked) = plan.checksums {
            let algorithm = if checked { "crc64nvme" } else { "none" };
            builder = builder.set("checksum_algorithm", algorithm)?.set("verify_checksums", &checked.to_string())?;
        }
        if let Some(file) = &plan.ca_file {
            builder = builder.ca_bundle(file);
        }
        let engine = builder.build()?;
        Ok(Driver { engine, bucket: plan.bucket.clone(), serial_list: plan.concurrency == Some(1) })
    }

    fn in_flight(&self) -> usize {
        self.engine.config().concurrency
    }

    fn effective(&self) -> Value {
        let config = self.engine.config();
        json!({
            "concurrency": config.concurrency, "part_size": config.part_size,
            "checksums": config.verify_checksums, "checksum_algorithm": config.checksum_algorithm.map(|a| a.name()),
            "path_style": config.addressing_style != AddressingStyle::Virtual,
            "multipart_threshold": config.multipart_threshold, "memory": config.memory,
            "receive_low_water": config.receive_low_water,
        })
    }

    async fn get(self: &Arc<Self>, call: &mut Call<'_>) -> Result<()> {
        let get = self.item(call);
        match call.plan.sink {
            Sink::Discard if !call.verify => {
                let info = get.discard().await?;
                call.moved(received(call, &info));
            }
            Sink::Discard | Sink::Stream => {
                let mut stream = get.stream().await?;
                while let Some(part) = stream.next().await {
                    call.chunk(&part?);
                }
            }
            Sink::Memory => call.whole(&get.buffer().await?.body),
            Sink::File => {
                let info = get.file(call.path()).await?;
                call.moved(received(call, &info));
            }
        }
        Ok(())
    }

    async fn put(self: &Arc<Self>, call: &mut Call<'_>, body: Option<Bytes>) -> Result<()> {
        let put = self.engine.put(self.bucket.as_str(), call.item.key.as_str());
        match body {
            Some(body) => {
                put.bytes(body.clone()).await?;
                call.whole(&body);
            }
            None => {
                put.file(call.path()).await?;
                call.moved(call.item.size);
            }
        }
        Ok(())
    }

    async fn list(self: &Arc<Self>, call: &mut Call<'_>) -> Result<()> {
        let list = self.engine.list(self.bucket.as_str()).prefix(call.item.prefix.as_str());
        let mut pages = if self.serial_list { list.pages() } else { list.in_parallel().in_order().pages() };
        while let Some(page) = pages.next().await {
            call.begun();
            page?.objects.iter().for_each(|object| call.key(&object.key));
        }
        Ok(())
    }
}

/// Bytes that came, of an object as the server describes it: the engine fails where they don't.
fn received(call: &Call<'_>, info: &wirespeed::ObjectInfo) -> u64 {
    call.item.range().map_or(info.size, |range| range.end.min(info.size) - range.start)
}

fn main() -> ExitCode {
    lab_driver::answer::<Driver>();
    eprintln!("wirespeed-rust: say describe or run");
    ExitCode::from(64)
}

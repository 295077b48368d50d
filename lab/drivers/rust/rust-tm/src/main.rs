//! The Rust transfer manager: one download of the whole object, its chunks dropped as they come. It runs its
//! own threads and its own HTTP client, which trusts the certificates of SSL_CERT_FILE. Checksum validation is off.
//! `describe` and `run` are the lab's protocol.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use aws_sdk_s3_transfer_manager::io::InputStream;
use aws_sdk_s3_transfer_manager::operation::download::builders::DownloadFluentBuilder;
use aws_sdk_s3_transfer_manager::types::{ConcurrencyMode, PartSize};
use aws_sdk_s3_transfer_manager::{Client, Config};
use bytes::Bytes;
use lab_driver::{About, Call, Operation, Plan, Sink, Skip, Source};
use protocol::Workload;
use rust_sdk::Site;
use serde_json::{Value, json};

/// Version of the transfer manager that Cargo.toml pins.
const VERSION: &str = "0.3.1";

struct Driver {
    manager: Client,
    plan: Arc<Plan>,
}

impl Driver {
    fn download(&self, call: &Call<'_>) -> DownloadFluentBuilder {
        let range = call.item.range().map(|range| format!("bytes={}-{}", range.start, range.end - 1));
        self.manager.download().bucket(&self.plan.bucket).key(&call.item.key).set_range(range)
    }
}

impl lab_driver::Client for Driver {
    const ABOUT: About = About {
        name: "rust-tm",
        client: "aws-sdk-s3-transfer-manager",
        version: VERSION,
        components: &[("aws-sdk-s3", aws_sdk_s3::meta::PKG_VERSION)],
        operations: &[Operation::Get, Operation::Put],
        sinks: &[Sink::Discard, Sink::Memory, Sink::Stream, Sink::File],
        sources: &[Source::Memory, Source::File],
        settings: &["concurrency", "part_size", "checksums"],
        tls: true,
        notes: &["the manager runs threads of its own"],
    };

    fn open(plan: &Arc<Plan>) -> Result<Driver> {
        let (access_key, secret_key) = lab_driver::credentials()?;
        let mut config = Config::builder().s3_config(rust_sdk::config(&Site::of(plan, &access_key, &secret_key)));
        if let Some(part) = plan.part_size {
            // What is larger than a part goes up in parts, as it comes down in them.
            config = config.part_size(PartSize::Target(part)).multipart_threshold(PartSize::Target(part + 1));
        }
        if let Some(requests) = plan.concurrency {
            config = config.concurrency(ConcurrencyMode::Explicit(requests));
        }
        Ok(Driver { manager: Client::new(config.build()), plan: Arc::clone(plan) })
    }

    fn in_flight(&self) -> usize {
        self.plan.in_flight()
    }

    fn effective(&self) -> Value {
        let config = self.manager.config();
        let concurrency = match config.concurrency() {
            ConcurrencyMode::Explicit(requests) => Some(*requests),
            _ => None,
        };
        let part_size = match config.part_size() {
            PartSize::Target(bytes) => Some(*bytes),
            _ => None,
        };
        json!({
            "concurrency": concurrency, "part_size": part_size, "items_in_flight": self.plan.in_flight(),
            "checksums": self.plan.checksums.unwrap_or(true),
        })
    }

    async fn get(self: &Arc<Self>, call: &mut Call<'_>) -> Result<()> {
        let download = self.download(call);
        if call.plan.sink == Sink::File {
            download.write_to_path(call.path()).await?.join().await?;
            call.moved(std::fs::metadata(call.path())?.len());
            return Ok(());
        }
        let in_memory = call.plan.sink == Sink::Memory;
        let mut object = Vec::with_capacity(if in_memory { call.item.length() as usize } else { 0 });
        let mut download = download.initiate()?;
        while let Some(chunk) = download.body_mut().next().await {
            for segment in chunk?.data.into_segments() {
                if in_memory {
                    call.begun();
                    object.extend_from_slice(&segment);
                } else {
                    call.chunk(&segment);
                }
            }
        }
        call.whole(&object);
        Ok(())
    }

    async fn put(self: &Arc<Self>, call: &mut Call<'_>, body: Option<Bytes>) -> Result<()> {
        let upload = self.manager.upload().bucket(&self.plan.bucket).key(&call.item.key);
        match body {
            Some(body) => {
                upload.body(InputStream::from(body.clone())).initiate()?.join().await?;
                call.whole(&body);
            }
            None => {
                upload.body(InputStream::from_path(call.path())?).initiate()?.join().await?;
                call.moved(call.item.size);
            }
        }
        Ok(())
    }

    async fn list(self: &Arc<Self>, _: &mut Call<'_>) -> Result<()> {
        bail!(Skip::new("the transfer manager has no listing of its own"))
    }
}

async fn fetch(client: Client, bucket: String, key: String) -> Result<u64> {
    let mut download = client.download().bucket(bucket).key(key).initiate()?;
    let mut received = 0;
    while let Some(chunk) = download.body_mut().next().await {
        received += chunk?.data.len() as u64;
    }
    Ok(received)
}

fn main() -> Result<()> {
    lab_driver::answer::<Driver>();
    let workload = <Workload as clap::Parser>::parse();
    let key = workload.key.clone().context("only one object at a time: give --key")?;
    let s3 = rust_sdk::config(&Site {
        endpoint: &workload.endpoint,
        region: &workload.region,
        access_key: &workload.access_key,
        secret_key: &workload.secret_key,
        path_style: true,
        checksums: false,
    });
    let config = Config::builder()
        .s3_config(s3)
        .part_size(PartSize::Target(workload.part))
        .concurrency(ConcurrencyMode::Explicit(workload.connections))
        .build();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let client = {
        let _inside = runtime.enter();
        Client::new(config)
    };
    let in_effect = json!({
        "client": "rust-tm", "version": VERSION, "connections": workload.connections, "part": workload.part,
        "checksums": false,
    });
    let bucket = workload.bucket.clone();
    workload.run_on(&runtime, in_effect, move |_| fetch(client.clone(), bucket.clone(), key.clone()))
}

//! The Rust transfer manager: one download of the whole object, its chunks dropped as they come. It runs its
//! own threads and its own HTTP client, which trusts the certificates of SSL_CERT_FILE. Checksum validation is off.

use anyhow::{Context, Result};
use aws_sdk_s3::config::{
    BehaviorVersion, Credentials, Region, RequestChecksumCalculation, ResponseChecksumValidation,
};
use aws_sdk_s3_transfer_manager::types::{ConcurrencyMode, PartSize};
use aws_sdk_s3_transfer_manager::{Client, Config};
use protocol::Workload;

/// Version of the transfer manager that Cargo.toml pins.
const VERSION: &str = "0.3.1";

async fn fetch(client: Client, bucket: String, key: String) -> Result<u64> {
    let mut download = client.download().bucket(bucket).key(key).initiate()?;
    let mut received = 0;
    while let Some(chunk) = download.body_mut().next().await {
        received += chunk?.data.len() as u64;
    }
    Ok(received)
}

fn main() -> Result<()> {
    let workload = <Workload as clap::Parser>::parse();
    let key = workload.key.clone().context("only one object at a time: give --key")?;
    let credentials = Credentials::new(&workload.access_key, &workload.secret_key, None, None, "driver");
    let s3 = aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(&workload.endpoint)
        .region(Region::new(workload.region.clone()))
        .credentials_provider(credentials)
        .force_path_style(true)
        .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
        .response_checksum_validation(ResponseChecksumValidation::WhenRequired);
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
    let in_effect = serde_json::json!({
        "client": "rust-tm", "version": VERSION, "connections": workload.connections, "part": workload.part,
        "checksums": false,
    });
    let bucket = workload.bucket.clone();
    workload.run_on(&runtime, in_effect, move |_| fetch(client.clone(), bucket.clone(), key.clone()))
}

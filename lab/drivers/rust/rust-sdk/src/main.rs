//! The AWS SDK for Rust: `get_object` for each range or object, the body read
//! chunk by chunk and dropped. Checksum validation is off; stalled-stream
//! protection stays on as it comes, for the engine's stall timeout is on too.
//! Over TLS: rustls with aws-lc, and the certificates of SSL_CERT_FILE.

use anyhow::{Context, Result};
use aws_sdk_s3::Client;
use aws_sdk_s3::config::{
    BehaviorVersion, Credentials, Region, RequestChecksumCalculation, ResponseChecksumValidation,
};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use futures::{StreamExt, TryStreamExt, stream};
use protocol::{Get, Workload};

async fn fetch(client: Client, bucket: String, get: Get) -> Result<u64> {
    let range = get.range.map(|(from, to)| format!("bytes={from}-{}", to - 1));
    let answer = client.get_object().bucket(bucket).key(&get.key).set_range(range).send().await?;
    let mut body = answer.body;
    let mut received = 0;
    while let Some(chunk) = body.try_next().await.context("body")? {
        received += chunk.len() as u64;
    }
    Ok(received)
}

fn main() -> Result<()> {
    let workload = <Workload as clap::Parser>::parse();
    let http = aws_smithy_http_client::Builder::new();
    let http = if workload.endpoint.starts_with("https:") {
        http.tls_provider(Provider::Rustls(CryptoMode::AwsLc)).build_https()
    } else {
        http.build_http()
    };
    let credentials = Credentials::new(&workload.access_key, &workload.secret_key, None, None, "driver");
    let config = aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(&workload.endpoint)
        .region(Region::new(workload.region.clone()))
        .credentials_provider(credentials)
        .force_path_style(true)
        .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
        .response_checksum_validation(ResponseChecksumValidation::WhenRequired)
        .http_client(http)
        .build();
    let client = Client::from_conf(config);
    let in_effect = serde_json::json!({
        "client": "rust-sdk", "version": aws_sdk_s3::meta::PKG_VERSION, "connections": workload.connections,
        "part": workload.part, "checksums": false, "stalled_stream_protection": "default", "runtime_threads": 1,
    });
    let (bucket, in_flight) = (workload.bucket.clone(), workload.connections);
    workload.run(in_effect, move |gets| {
        let (client, bucket) = (client.clone(), bucket.clone());
        async move {
            stream::iter(gets)
                .map(|get| fetch(client.clone(), bucket.clone(), get))
                .buffer_unordered(in_flight)
                .try_fold(0, |sum, bytes| async move { Ok(sum + bytes) })
                .await
        }
    })
}

//! The object_store crate: `get_opts` for each range or object, signed, the body
//! read chunk by chunk and dropped.

use std::sync::Arc;

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{ClientOptions, GetOptions, ObjectStore};
use protocol::{Get, Workload};

/// Version of the object_store crate that Cargo.toml pins.
const OBJECT_STORE_VERSION: &str = "0.14.2";

async fn fetch(store: Arc<AmazonS3>, get: Get) -> Result<u64> {
    let options = GetOptions { range: get.range.map(|(from, to)| (from..to).into()), ..GetOptions::default() };
    let answer = store.get_opts(&Path::parse(&get.key)?, options).await?;
    let mut body = answer.into_stream();
    let mut received = 0;
    while let Some(chunk) = body.try_next().await.context("body")? {
        received += chunk.len() as u64;
    }
    Ok(received)
}

fn main() -> Result<()> {
    let workload = <Workload as clap::Parser>::parse();
    let store = AmazonS3Builder::new()
        .with_endpoint(&workload.endpoint)
        .with_bucket_name(&workload.bucket)
        .with_region(&workload.region)
        .with_access_key_id(&workload.access_key)
        .with_secret_access_key(&workload.secret_key)
        .with_client_options(ClientOptions::new().with_allow_http(true))
        .build()?;
    let store = Arc::new(store);
    let in_effect = serde_json::json!({
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

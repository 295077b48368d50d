//! OpenDAL: its reader and its writer, which split a large object themselves where they are told a chunk.

use std::fs::File;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use futures::TryStreamExt;
use lab_driver::{About, Call, Client, Operation, Plan, Sink, Source};
use opendal::services::S3;
use opendal::{BytesRange, Operator, Reader};
use serde_json::{Value, json};

struct Driver {
    operator: Operator,
    plan: Arc<Plan>,
}

impl Driver {
    async fn reader(&self, call: &Call<'_>) -> Result<(Reader, BytesRange)> {
        let reader = self.operator.reader_with(&call.item.key);
        let (reader, range) = match (self.plan.split(), call.item.range()) {
            (Some(part), _) => (reader.chunk(part as usize).concurrent(self.plan.in_flight()), call.item.span().into()),
            (None, Some(range)) => (reader, range.into()),
            (None, None) => (reader, (..).into()),
        };
        Ok((reader.await?, range))
    }
}

impl Client for Driver {
    const ABOUT: About = About {
        name: "opendal",
        client: "opendal",
        version: "0.59.5",
        components: &[],
        operations: &[Operation::Get, Operation::Put, Operation::List],
        sinks: &[Sink::Discard, Sink::Memory, Sink::Stream, Sink::File],
        sources: &[Source::Memory],
        settings: &["concurrency", "part_size", "listing"],
        tls: true,
        notes: &["the driver writes the files", "no layers: nothing is tried again"],
    };

    fn open(plan: &Arc<Plan>) -> Result<Driver> {
        let (access_key, secret_key) = lab_driver::credentials()?;
        let service = S3::default()
            .endpoint(&plan.endpoint)
            .region(&plan.region)
            .bucket(&plan.bucket)
            .access_key_id(&access_key)
            .secret_access_key(&secret_key)
            .disable_config_load();
        let service = if plan.path_style { service } else { service.enable_virtual_host_style() };
        Ok(Driver { operator: Operator::new(service)?, plan: Arc::clone(plan) })
    }

    fn in_flight(&self) -> usize {
        self.plan.in_flight()
    }

    fn effective(&self) -> Value {
        json!({"concurrency": self.plan.in_flight(), "part_size": self.plan.split(), "checksums": false})
    }

    async fn get(self: &Arc<Self>, call: &mut Call<'_>) -> Result<()> {
        let (reader, range) = self.reader(call).await?;
        let mut file = match call.plan.sink {
            Sink::Memory => {
                call.whole(&reader.read(range).await?.to_bytes());
                return Ok(());
            }
            Sink::File => Some(File::create(call.path()).context("create the file")?),
            Sink::Discard | Sink::Stream => None,
        };
        let mut chunks = reader.into_bytes_stream(range).await?;
        while let Some(chunk) = chunks.try_next().await? {
            call.chunk(&chunk);
            if let Some(file) = &mut file {
                file.write_all(&chunk).context("write the file")?;
            }
        }
        Ok(())
    }

    async fn put(self: &Arc<Self>, call: &mut Call<'_>, body: Option<Bytes>) -> Result<()> {
        let body = body.unwrap_or_default();
        let write = self.operator.write_with(&call.item.key, body.clone());
        match self.plan.split() {
            Some(part) => write.chunk(part as usize).concurrent(self.plan.in_flight()).await?,
            None => write.await?,
        };
        call.whole(&body);
        Ok(())
    }

    async fn list(self: &Arc<Self>, call: &mut Call<'_>) -> Result<()> {
        let mut entries = self.operator.lister_with(&call.item.prefix).recursive(true).await?;
        while let Some(entry) = entries.try_next().await? {
            call.begun();
            call.key(entry.path());
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    lab_driver::answer::<Driver>();
    eprintln!("opendal: say describe or run");
    ExitCode::from(64)
}

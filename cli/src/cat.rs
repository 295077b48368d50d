//! `wirespeed cat`: objects to standard output, one after the other, each in order.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll};

use clap::Args;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::uri::S3Uri;

const EXAMPLES: &str = "\
Examples:
  wirespeed cat s3://bucket/notes.txt
  wirespeed cat s3://bucket/part-1 s3://bucket/part-2 > whole
  wirespeed cat s3://bucket/logs.gz | gunzip | grep error";

/// Print objects to standard output
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// s3://bucket/key
    #[arg(required = true, value_name = "S3_URI", value_parser = S3Uri::parse)]
    uris: Vec<S3Uri>,
}

/// Runs `cat`. Unlike a copy it stops at the first failure: what would follow a gap is not what was asked for.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    if let Some(uri) = arguments.uris.iter().find(|uri| uri.is_prefix()) {
        return Err(Failure::Usage(format!("`{uri}` names no object; give the whole key")));
    }
    for uri in &arguments.uris {
        to_stdout(context, uri).await?;
    }
    Ok(Exit::Done)
}

/// Writes one object to standard output.
pub(crate) async fn to_stdout(context: &Context<'_>, uri: &S3Uri) -> Result<(), Failure> {
    let closed = Arc::new(AtomicBool::new(false));
    let mut writer = Stdout { inner: tokio::io::stdout(), closed: closed.clone() };
    let read = context.client.get(&uri.bucket, &uri.key).writer(&mut writer).await;
    let written = writer.flush().await;
    // The engine reports that its writer failed; that the reader simply left is known only here.
    if closed.load(Ordering::Relaxed) {
        return Err(Failure::StdoutClosed);
    }
    read?;
    written.map_err(|source| Failure::Local { what: "cannot write to standard output".to_owned(), source })
}

/// Standard output that remembers whether its reader went away.
struct Stdout {
    inner: tokio::io::Stdout,
    closed: Arc<AtomicBool>,
}

impl Stdout {
    fn watch<T>(&self, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(error)) = &result
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            self.closed.store(true, Ordering::Relaxed);
        }
        result
    }
}

impl AsyncWrite for Stdout {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.watch(result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.inner).poll_flush(cx);
        self.watch(result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.watch(result)
    }
}

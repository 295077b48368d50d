//! `wirespeed cat`: objects to standard output, one after the other, each in order.
//!
//! Small objects that a listing has told of are fetched ahead, a few at a time, while those before them are written. A
//! large one is fetched in ranges when its turn comes. Stops at the first failure: what would follow a gap is not what
//! was asked for.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll};

use clap::Args;
use futures_util::StreamExt as _;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::task::JoinSet;
use wirespeed::{Get, SseCustomerKey};

use crate::access::Access;
use crate::context::Context;
use crate::customer_key::CustomerKey;
use crate::failure::{Exit, Failure};
use crate::targets::{Target, targets};
use crate::uri::S3Uri;
use crate::wildcard::Wildcards;

const EXAMPLES: &str = "\
Examples:
  wirespeed cat s3://bucket/notes.txt
  wirespeed cat s3://bucket/part-1 s3://bucket/part-2 > whole
  wirespeed cat 's3://bucket/logs/2026-01-*' | grep error    all that match, in the order of their keys
  wirespeed cat s3://bucket/logs.gz | gunzip | grep error
  wirespeed cat s3://bucket/log --range -1000            the last 1,000 bytes
  wirespeed cat s3://bucket/log --range 0-99             the first 100";

/// Print objects to standard output
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// s3://bucket/key, or with wildcards
    #[arg(required = true, value_name = "S3_URI", value_parser = S3Uri::parse)]
    uris: Vec<S3Uri>,
    /// Only these bytes: FIRST-LAST, FIRST- to the end, or -LENGTH from the end
    #[arg(long, value_name = "RANGE", value_parser = Range::parse, allow_hyphen_values = true)]
    range: Option<Range>,
    /// This version of the one object
    #[arg(long, value_name = "ID")]
    version_id: Option<String>,
    #[command(flatten)]
    conditions: Conditions,
    #[command(flatten)]
    wildcards: Wildcards,
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    customer_key: CustomerKey,
}

/// What must hold of the object that is read.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Conditions {
    /// Only while the object has this ETag
    #[arg(long, value_name = "ETAG")]
    pub(crate) if_match: Option<String>,
    /// Only if its ETag is another than this
    #[arg(long, value_name = "ETAG")]
    pub(crate) if_none_match: Option<String>,
}

/// Bytes of an object, as HTTP's `Range` has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Range {
    Between(u64, u64),
    From(u64),
    Last(u64),
}

impl Range {
    fn parse(text: &str) -> Result<Range, String> {
        let wrong = || format!("`{text}` is no range; write it as 0-99, 100- or -100");
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        match text.strip_prefix("bytes=").unwrap_or(text).split_once('-').ok_or_else(wrong)? {
            ("", length) => number(length).map(Range::Last),
            (first, "") => number(first).map(Range::From),
            (first, last) => match (number(first)?, number(last)?) {
                (first, last) if first <= last => Ok(Range::Between(first, last)),
                _ => Err(wrong()),
            },
        }
    }
}

/// How an object is read.
pub(crate) struct Reading<'a> {
    pub(crate) version: Option<&'a str>,
    pub(crate) access: &'a Access,
    pub(crate) customer_key: Option<SseCustomerKey>,
    pub(crate) range: Option<Range>,
    pub(crate) conditions: &'a Conditions,
}

/// Objects up to this many bytes are fetched whole ahead of their turn, so many of them: at most 16 MiB in memory.
const SMALL: u64 = 1 << 20;
const AHEAD: usize = 16;

/// Runs `cat`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let wildcards = &arguments.wildcards;
    if let Some(uri) = arguments.uris.iter().find(|uri| uri.key.is_empty()) {
        let all = uri.with_key("*");
        return Err(Failure::Usage(format!("`{uri}` names no object; give the whole key, or '{all}' for all in it")));
    }
    if arguments.version_id.is_some() && (arguments.uris.len() > 1 || wildcards.of(&arguments.uris[0]).is_some()) {
        return Err(Failure::Usage("--version-id is of one object; name one".to_owned()));
    }
    let reading = Reading {
        version: arguments.version_id.as_deref(),
        access: &arguments.access,
        customer_key: arguments.customer_key.read()?,
        range: arguments.range,
        conditions: &arguments.conditions,
    };
    let targets = targets(context, &arguments.uris, wildcards, &arguments.access);
    let mut fetched = targets.map(|target| fetch_ahead(context, &reading, target)).buffered(AHEAD);
    while let Some(fetched) = fetched.next().await {
        match fetched? {
            Fetched::Body(body) => write(context, Source::Body(body)).await?,
            Fetched::InItsTurn(uri) => to_stdout(context, &uri, &reading).await?,
        }
    }
    Ok(Exit::Done)
}

/// An object whose turn is near.
enum Fetched {
    Body(wirespeed::Buffer),
    InItsTurn(S3Uri),
}

async fn fetch_ahead(
    context: &Context<'_>,
    reading: &Reading<'_>,
    target: Result<Target, Failure>,
) -> Result<Fetched, Failure> {
    let Target { uri, size } = target?;
    if reading.range.is_some() || size.is_none_or(|bytes| bytes > SMALL) {
        return Ok(Fetched::InItsTurn(uri));
    }
    // In a task of its own, so that it goes on while an object before it is written; a set ends what it has when dropped.
    let mut task = JoinSet::new();
    task.spawn(reading.get(context, &uri).buffer());
    match task.join_next().await {
        Some(Ok(object)) => Ok(Fetched::Body(object?.body)),
        _ => Err(Failure::Lost(format!(
            "cannot read {uri}: the task that did it ended in a panic, a fault of wirespeed; report it"
        ))),
    }
}

impl Reading<'_> {
    fn get(&self, context: &Context<'_>, uri: &S3Uri) -> Get {
        let mut get = self.access.on(context.client.get(&uri.bucket, &uri.key));
        if let Some(version) = self.version {
            get = get.version(version);
        }
        if let Some(key) = &self.customer_key {
            get = get.sse_customer_key(key.clone());
        }
        if let Some(etag) = &self.conditions.if_match {
            get = get.if_match(etag);
        }
        if let Some(etag) = &self.conditions.if_none_match {
            get = get.if_none_match(etag);
        }
        match self.range {
            None => get,
            Some(Range::Between(first, last)) => get.range(first..=last),
            Some(Range::From(first)) => get.range(first..),
            Some(Range::Last(length)) => get.suffix(length),
        }
    }
}

/// Writes one object to standard output.
pub(crate) async fn to_stdout(context: &Context<'_>, uri: &S3Uri, reading: &Reading<'_>) -> Result<(), Failure> {
    let written = write(context, Source::Get(Box::new(reading.get(context, uri)))).await;
    written.map_err(|failure| failure.of_object(uri, "name '{}*' for all under it"))
}

enum Source {
    Get(Box<Get>),
    Body(wirespeed::Buffer),
}

async fn write(context: &Context<'_>, source: Source) -> Result<(), Failure> {
    let _alone = context.output.objects().await?;
    let closed = Arc::new(AtomicBool::new(false));
    let mut writer = Stdout { inner: tokio::io::stdout(), closed: closed.clone() };
    let cannot = |source| Failure::Local { what: "cannot write to standard output".to_owned(), source };
    let read = match source {
        Source::Get(get) => get.writer(&mut writer).await.map(drop).map_err(Failure::from),
        Source::Body(body) => writer.write_all(&body).await.map_err(cannot),
    };
    let written = writer.flush().await;
    // The engine reports that its writer failed; that the reader simply left is known only here.
    if closed.load(Ordering::Relaxed) {
        return Err(Failure::StdoutClosed);
    }
    read?;
    written.map_err(cannot)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_http_writes_them() {
        assert_eq!(Range::parse("0-99"), Ok(Range::Between(0, 99)));
        assert_eq!(Range::parse("bytes=7-7"), Ok(Range::Between(7, 7)));
        assert_eq!(Range::parse("100-"), Ok(Range::From(100)));
        assert_eq!(Range::parse("-100"), Ok(Range::Last(100)));
        for wrong in ["", "-", "5", "9-8", "a-b", "0-1,3-4", "--1"] {
            assert!(Range::parse(wrong).is_err(), "{wrong}");
        }
    }
}

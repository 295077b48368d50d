//! What a driver does for a client that can't split: one object read in ranges, so many in flight.

use std::fs::File;
use std::future::Future;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use bytes::{BufMut, Bytes, BytesMut};
use crc32fast::Hasher;
use futures::{StreamExt, TryStreamExt, stream};

use crate::call::Call;
use crate::plan::Sink;

/// A client that gives the bytes of one range, chunk by chunk.
pub trait Fetch: Send + Sync + 'static {
    /// Gives `take` every chunk of the object, or of a range of it, in order.
    fn fetch<T>(&self, key: &str, range: Option<Range<u64>>, take: T) -> impl Future<Output = Result<()>> + Send
    where
        T: FnMut(Bytes) -> Result<()> + Send;
}

/// Where a range's bytes go, and what is known of them when they are there.
struct Piece {
    range: Range<u64>,
    memory: Option<BytesMut>,
    file: Option<Arc<File>>,
    digest: Option<Hasher>,
    received: u64,
}

impl Piece {
    fn take(&mut self, chunk: &Bytes, origin: u64) -> Result<()> {
        let at = self.range.start + self.received;
        self.received += chunk.len() as u64;
        ensure!(at + chunk.len() as u64 <= self.range.end, "more bytes came than the range has");
        if let Some(digest) = &mut self.digest {
            digest.update(chunk);
        }
        match (&mut self.memory, &self.file) {
            (Some(memory), _) => memory.put_slice(chunk),
            (None, Some(file)) => file.write_all_at(chunk, at - origin).context("write the file")?,
            (None, None) => {}
        }
        Ok(())
    }
}

/// Reads the item, whole or in ranges of `part` bytes with `in_flight` of them at once, into the plan's sink.
///
/// # Errors
/// Those of the client, those of the file, and where other than the item's bytes came.
pub async fn get<F: Fetch>(client: &Arc<F>, call: &mut Call<'_>, part: Option<u64>, in_flight: usize) -> Result<()> {
    let Some(part) = part else { return whole(&**client, call).await };
    let span = call.item.span();
    let sink = call.plan.sink;
    let file = match sink {
        Sink::File => Some(Arc::new(create(call)?)),
        _ => None,
    };
    // In memory, each range has its piece of one buffer; a stream's ranges have buffers of their own.
    let mut rest = (sink == Sink::Memory).then(|| BytesMut::with_capacity(call.item.length() as usize));
    let verify = call.verify && sink == Sink::Discard;
    let pieces: Vec<Piece> = span
        .clone()
        .step_by(part as usize)
        .map(|from| {
            let range = from..span.end.min(from + part);
            let memory = rest.as_mut().map(|rest| {
                let tail = rest.split_off((range.end - range.start) as usize);
                std::mem::replace(rest, tail)
            });
            Piece { range, memory, file: file.clone(), digest: verify.then(Hasher::new), received: 0 }
        })
        .collect();
    let count = pieces.len();
    let key: Arc<str> = call.item.key.as_str().into();
    let requests = stream::iter(pieces.into_iter().enumerate()).map(|(at, mut piece)| {
        let (client, key, origin) = (Arc::clone(client), Arc::clone(&key), span.start);
        let task = tokio::spawn(async move {
            if sink == Sink::Stream {
                piece.memory = Some(BytesMut::with_capacity((piece.range.end - piece.range.start) as usize));
            }
            let range = piece.range.clone();
            client.fetch(&key, Some(range), |chunk| piece.take(&chunk, origin)).await?;
            ensure!(piece.received == piece.range.end - piece.range.start, "fewer bytes came than the range has");
            anyhow::Ok((at, piece))
        });
        async move { task.await? }
    });
    if sink == Sink::Stream {
        let mut in_order = requests.buffered(in_flight);
        while let Some((_, piece)) = in_order.try_next().await? {
            call.chunk(piece.memory.as_deref().unwrap_or_default());
        }
        return Ok(());
    }
    let mut done: Vec<Option<Piece>> = (0..count).map(|_| None).collect();
    let mut finished = requests.buffer_unordered(in_flight);
    while let Some((at, piece)) = finished.try_next().await? {
        done[at] = Some(piece);
    }
    let mut object: Option<BytesMut> = None;
    let mut digest = Hasher::new();
    for piece in done.into_iter().flatten() {
        if let Some(part) = &piece.digest {
            digest.combine(part);
        }
        match (&mut object, piece.memory) {
            (Some(object), Some(memory)) => object.unsplit(memory),
            (None, memory @ Some(_)) => object = memory,
            (_, None) => call.moved(piece.received),
        }
    }
    if let Some(object) = object {
        call.whole(&object);
    } else if verify {
        call.digested(digest);
    }
    Ok(())
}

async fn whole<F: Fetch>(client: &F, call: &mut Call<'_>) -> Result<()> {
    let item = call.item;
    match call.plan.sink {
        Sink::Discard | Sink::Stream => {
            client
                .fetch(&item.key, item.range(), |chunk| {
                    call.chunk(&chunk);
                    Ok(())
                })
                .await
        }
        Sink::Memory => {
            let mut object = Vec::with_capacity(item.length() as usize);
            client
                .fetch(&item.key, item.range(), |chunk| {
                    call.begun();
                    object.extend_from_slice(&chunk);
                    Ok(())
                })
                .await?;
            call.whole(&object);
            Ok(())
        }
        Sink::File => {
            let mut file = create(call)?;
            client
                .fetch(&item.key, item.range(), |chunk| {
                    call.begun();
                    call.moved(chunk.len() as u64);
                    std::io::Write::write_all(&mut file, &chunk).context("write the file")
                })
                .await
        }
    }
}

fn create(call: &Call<'_>) -> Result<File> {
    let path = call.path();
    File::create(&path).with_context(|| format!("create {}", path.display()))
}

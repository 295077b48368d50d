//! PUT of what has no known length: a stream of bytes, or a reader.
//!
//! Bytes are gathered into pooled memory, a part at a time. What ends within the first piece is one
//! request. Beyond it there is a multipart upload, whose parts are sent while the next is being read;
//! how many are held at once is the budget's decision, and a source that is faster than the network
//! waits for it. Parts grow, so that their number does not run out. A source that fails, and a future
//! that is dropped, abort the upload.
//!
//! What is being gathered needs nobody's leave: its source is the caller's and may stand still, and may
//! itself be fed by this client. It is taken once the source has brought something. Leave is asked for
//! when a piece is whole, and lasts until it is sent, which is the engine's work alone. Where there is no
//! memory to be lent, the piece is sent all the same when those before it have been, and nothing is
//! gathered meanwhile: so every upload moves on with one piece, whatever else the client does.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_core::Stream;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::task::JoinSet;
use tracing::Instrument;

use super::multipart::SentPart;
use super::part::reserve;
use super::put::{Put, PutOutcome, Stop};
use super::upload::{Content, Upload};
use super::workers::lost;
use crate::buffer::Slot;
use crate::error::{Error, ErrorKind, Result};
use crate::pace::MemoryPermit;
use crate::plan::{MAX_PARTS, UploadPlan, growing_part_size, upload_plan};

impl Put {
    /// How many bytes a stream or a reader is expected to bring. The parts are made large enough for
    /// it: without, an upload ends with an error after 7.8 TiB of parts that begin at 8 MiB.
    pub fn expected_size(mut self, bytes: u64) -> Put {
        self.expected_size = bytes;
        self
    }

    /// Ends an upload from a stream or a reader when `stop` does, whatever it waits for, until its last part
    /// is sent: it then fails with [`ErrorKind::Cancelled`] after the server was told to drop its parts. An
    /// upload whose future is dropped is aborted too, but behind the caller's back.
    pub fn stop_when(mut self, stop: impl Future<Output = ()> + Send + 'static) -> Put {
        self.stop = Some(Box::pin(stop));
        self
    }

    /// From a stream whose length nobody knows.
    ///
    /// ```no_run
    /// # async fn example<S>(client: wirespeed::Client, rows: S) -> wirespeed::Result<()>
    /// # where S: futures_core::Stream<Item = std::io::Result<bytes::Bytes>> + Send {
    /// let outcome = client.put("bucket", "rows.csv").content_type("text/csv").stream(rows).await?;
    /// println!("{} parts", outcome.parts);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Put::bytes`]; and [`ErrorKind::Io`] where the stream fails. Nothing is stored then.
    pub async fn stream(self, source: impl Stream<Item = io::Result<Bytes>> + Send) -> Result<PutOutcome> {
        let mut source = std::pin::pin!(source);
        self.pour(Pieces { stream: source.as_mut(), left: Bytes::new() }).await
    }

    /// From a reader, to its end.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client, input: impl tokio::io::AsyncRead + Send) -> wirespeed::Result<()> {
    /// client.put("bucket", "backup.tar").reader(input).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Put::stream`].
    pub async fn reader(self, source: impl AsyncRead + Send) -> Result<PutOutcome> {
        let mut source = std::pin::pin!(source);
        self.pour(Reader(source.as_mut())).await
    }

    async fn pour(mut self, source: impl Source) -> Result<PutOutcome> {
        let stop = self.stop.take().unwrap_or_else(|| Box::pin(std::future::pending()));
        let subject = self.subject()?;
        let expected_size = self.expected_size;
        // What is sent are pieces of their own; this is what they have in common.
        let upload = self.upload(subject.clone(), Content::Memory(Bytes::new()));
        upload.engine.keep_house();
        let progress = upload.progress.clone();
        let outcome = Pour { upload, expected_size }.run(source, stop).instrument(subject.span()).await?;
        if let Some(progress) = progress {
            progress.add_object();
        }
        Ok(outcome)
    }
}

/// Where the bytes come from.
trait Source: Send {
    /// Fills the slot; less than all of it only at the end.
    fn fill(&mut self, slot: &mut Slot) -> impl Future<Output = io::Result<()>> + Send;
}

struct Pieces<'a, S> {
    stream: Pin<&'a mut S>,
    /// What the last slot had no room for.
    left: Bytes,
}

impl<S: Stream<Item = io::Result<Bytes>> + Send> Source for Pieces<'_, S> {
    async fn fill(&mut self, slot: &mut Slot) -> io::Result<()> {
        while !slot.is_full() {
            if self.left.is_empty() {
                match std::future::poll_fn(|cx| self.stream.as_mut().poll_next(cx)).await {
                    Some(piece) => self.left = piece?,
                    None => return Ok(()),
                }
            }
            let taken = slot.put_slice(&self.left);
            let _ = self.left.split_to(taken);
        }
        Ok(())
    }
}

struct Reader<'a, R>(Pin<&'a mut R>);

impl<R: AsyncRead + Send> Source for Reader<'_, R> {
    async fn fill(&mut self, slot: &mut Slot) -> io::Result<()> {
        while !slot.is_full() {
            if self.0.read_buf(slot).await? == 0 {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// The filled front of a slot, in the hands of whoever sends it.
struct Gathered(Slot);

impl AsRef<[u8]> for Gathered {
    fn as_ref(&self) -> &[u8] {
        self.0.filled()
    }
}

/// What is read of a source before memory for a whole piece is taken: little to copy, and little to hold for
/// a source that stands still.
const GLIMPSE: u64 = 64 << 10;

/// What one task sends: its part, and the budget's room for it.
struct Piece {
    number: u32,
    body: Bytes,
    /// `None`: it is the one that needs nobody's leave.
    permit: Option<Arc<MemoryPermit>>,
}

type Sending = JoinSet<Result<SentPart>>;

struct Pour {
    upload: Upload,
    expected_size: u64,
}

impl Pour {
    async fn run(self, mut source: impl Source, mut stop: Stop) -> Result<PutOutcome> {
        let first_part = self.part_size(0);
        // Below the threshold it is to be one request, so that much is gathered before it is known.
        let threshold = self.upload.engine.config.multipart_threshold;
        let most = (self.upload.engine.config.memory / 4).max(first_part);
        let first = threshold.next_multiple_of(first_part).clamp(first_part, most / first_part * first_part);
        let (mut sending, mut none_sent) = (Sending::new(), Vec::new());
        let gathering = self.gather(&mut source, first, &mut sending, &mut none_sent);
        let (body, is_last) = self.unless(&mut stop, gathering).await?;
        let size = body.len() as u64;
        if is_last && matches!(upload_plan(size, first_part, threshold), Ok(UploadPlan::Single { .. })) {
            let (engine, subject) = (Arc::clone(&self.upload.engine), self.upload.subject.clone());
            let mut kept = None;
            let upload = Upload { content: Content::Memory(body), ..self.upload };
            let outcome = upload.single(size, &mut kept).await?;
            engine.put_back(&subject, kept);
            return Ok(outcome);
        }
        let started = self.upload.start().await?;
        let upload_id: Arc<str> = started.upload_id.as_str().into();
        let pouring = self.send_all(source, (body, is_last), &upload_id, &mut sending);
        let sent = self.unless(&mut stop, pouring).await;
        if sent.is_err() {
            // None of them is to write any more when the upload is aborted.
            sending.shutdown().await;
        }
        let completed = match sent {
            Ok((parts, size)) => self.upload.complete(&upload_id, &parts, size).await,
            Err(error) => Err(error),
        };
        match completed {
            Ok(outcome) => {
                started.forget();
                Ok(outcome)
            }
            Err(error) => Err(started.abort(error).await),
        }
    }

    /// As `work` ends, unless it is to be stopped before.
    async fn unless<T>(&self, stop: &mut Stop, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            () = stop => Err(self.explain(Error::new(ErrorKind::Cancelled, "the upload was stopped"))),
            done = work => done,
        }
    }

    async fn send_all(
        &self,
        mut source: impl Source,
        (first, mut is_last): (Bytes, bool),
        upload_id: &Arc<str>,
        sending: &mut Sending,
    ) -> Result<(Vec<SentPart>, u64)> {
        let engine = &self.upload.engine;
        let workers = engine.pace.workers(usize::MAX);
        let mut sent = Vec::new();
        let mut size = first.len() as u64;
        let mut number = 0;
        let mut first = first;
        let mut permit = engine.pace.admission.memory_at_once(size).map(Arc::new);
        while !first.is_empty() {
            number += 1;
            let length = (self.part_size(number - 1) as usize).min(first.len());
            let piece = Piece { number, body: first.split_to(length), permit: permit.clone() };
            self.send(piece, upload_id, sending);
        }
        while !is_last {
            if permit.take().is_none() {
                sent_all(sending, &mut sent).await?;
            }
            while sending.len() >= workers {
                arrived(sending.join_next().await, &mut sent)?;
            }
            let body;
            (body, is_last) = self.gather(&mut source, self.part_size(number), sending, &mut sent).await?;
            if body.is_empty() {
                break;
            }
            if number == MAX_PARTS {
                let message = format!("the source goes on after {size} bytes in {MAX_PARTS} parts, S3's most");
                return Err(self.explain(
                    Error::new(ErrorKind::Config, message)
                        .with_hint("say how many bytes to expect, or set a larger part size"),
                ));
            }
            number += 1;
            size += body.len() as u64;
            permit = self.leave(body.len() as u64, sending, &mut sent).await?.map(Arc::new);
            self.send(Piece { number, body, permit: permit.clone() }, upload_id, sending);
        }
        sent_all(sending, &mut sent).await?;
        sent.sort_unstable_by_key(|part| part.number);
        Ok((sent, size))
    }

    /// Leave to hold a piece while it is sent and others are gathered; none where there was no memory for it
    /// until all pieces before it were sent.
    async fn leave(
        &self,
        length: u64,
        sending: &mut Sending,
        sent: &mut Vec<SentPart>,
    ) -> Result<Option<MemoryPermit>> {
        let admission = &self.upload.engine.pace.admission;
        {
            let mut lent = std::pin::pin!(admission.memory(length));
            while !sending.is_empty() {
                tokio::select! {
                    biased;
                    permit = &mut lent => return Ok(Some(permit)),
                    done = sending.join_next() => arrived(done, sent)?,
                }
            }
        }
        // Outside the queue, which would have kept some of what is free for it.
        Ok(admission.memory_at_once(length))
    }

    /// Reads up to `length` bytes, and whether they are the last. A part that fails meanwhile is not
    /// waited for: nothing more needs to be read then.
    async fn gather(
        &self,
        source: &mut impl Source,
        length: u64,
        sending: &mut Sending,
        sent: &mut Vec<SentPart>,
    ) -> Result<(Bytes, bool)> {
        let reserve = |length| reserve(&self.upload.engine, length).map_err(|error| self.explain(error));
        let mut slot = reserve(length.min(GLIMPSE))?.whole();
        let read = {
            let gathering = async {
                source.fill(&mut slot).await?;
                if !slot.is_full() || length <= GLIMPSE {
                    return Ok(Ok(()));
                }
                let glimpse = match reserve(length) {
                    Ok(mut target) => std::mem::replace(&mut slot, target.whole()),
                    Err(error) => return Ok(Err(error)),
                };
                // All of it fits: the slot is the longer one.
                let _ = slot.put_slice(glimpse.filled());
                drop(glimpse);
                source.fill(&mut slot).await.map(Ok)
            };
            let mut filling = std::pin::pin!(gathering);
            loop {
                tokio::select! {
                    read = &mut filling => break read,
                    done = sending.join_next(), if !sending.is_empty() => arrived(done, sent)?,
                }
            }
        };
        read.map_err(|error: io::Error| self.explain(Error::io("the source cannot be read", error)))??;
        let is_last = !slot.is_full();
        let body = Bytes::from_owner(Gathered(slot));
        if let Some(progress) = &self.upload.progress {
            progress.expect(body.len() as u64);
        }
        Ok((body, is_last))
    }

    fn send(&self, piece: Piece, upload_id: &Arc<str>, sending: &mut Sending) {
        let Piece { number, body, permit } = piece;
        let length = body.len() as u64;
        let upload = Upload { content: Content::Memory(body), ..self.upload.clone() };
        let upload_id = Arc::clone(upload_id);
        let part = async move {
            let mut kept = None;
            let sent = upload.send_part(number, 0..length, &upload_id, &mut kept).await?;
            upload.engine.put_back(&upload.subject, kept);
            drop(upload);
            drop(permit);
            Ok(sent)
        };
        sending.spawn(part.in_current_span());
    }

    /// The length of part `index`, counted from 0.
    fn part_size(&self, index: u32) -> u64 {
        let least = self.expected_size.div_ceil(u64::from(MAX_PARTS));
        growing_part_size(self.upload.engine.pace.part_size().max(least), index)
    }

    fn explain(&self, error: Error) -> Error {
        self.upload.subject.explain(error)
    }
}

/// Waits until everything has been sent.
async fn sent_all(sending: &mut Sending, sent: &mut Vec<SentPart>) -> Result<()> {
    while let Some(done) = sending.join_next().await {
        arrived(Some(done), sent)?;
    }
    Ok(())
}

/// Keeps what a task has sent.
fn arrived(done: Option<Result<Result<SentPart>, tokio::task::JoinError>>, sent: &mut Vec<SentPart>) -> Result<()> {
    if let Some(done) = done {
        sent.push(done.unwrap_or_else(|error| Err(lost(error)))?);
    }
    Ok(())
}

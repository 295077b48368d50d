//! GET: an object, or a range of it, into memory, into a file, or through a writer.
//!
//! No question is asked before the answer: the first request is for the first part, and its head
//! brings the size and the version. Then there is a destination, cut into parts that a crew of
//! workers asks for, each received at its final offset.

use std::ops::{Range, RangeBounds};
use std::path::PathBuf;
use std::sync::Arc;

use tracing::Instrument;

use super::Engine;
use super::begun_get::BegunGet;
use super::crew::{Destination, Parts, Rest, receive};
use super::discover::open;
use super::file::{Appearance, PartialFile};
use super::head::ObjectInfo;
use super::opening::{Opening, Wanted};
use super::ordered;
use super::part::{Begun, Source, reserve};
use super::parts::ObjectParts;
use super::read_options::{ReadOptions, read_methods, version_method};
use super::request::Subject;
use super::resume::{self, DownloadResume, FileTarget, Opener};
use super::stream::ObjectStream;
use crate::buffer::{Buffer, FreezeError, OwnedTarget, Slot, Target, lend_blocking};
use crate::error::{Error, ErrorKind, Result};
use crate::metrics::Progress;
use crate::net::Connection;
use crate::plan::download_parts;

/// An object in memory.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Object {
    /// The bytes asked for.
    pub body: Buffer,
    /// What the server says of the object.
    pub info: ObjectInfo,
}

/// A GET that has not been sent; made by [`Client::get`](crate::Client::get).
#[must_use = "nothing is sent until a destination is chosen"]
pub struct Get {
    engine: Arc<Engine>,
    bucket: String,
    key: String,
    wanted: Wanted,
    window: Option<u64>,
    progress: Option<Progress>,
    verify: Option<bool>,
    options: ReadOptions,
    resume: Option<DownloadResume>,
}

read_methods!(Get);
version_method!(Get, this => this.options.version_id);

impl Get {
    pub(crate) fn new(engine: Arc<Engine>, bucket: String, key: String) -> Get {
        let options = ReadOptions::default();
        Get {
            engine,
            bucket,
            key,
            wanted: Wanted::All,
            window: None,
            progress: None,
            verify: None,
            options,
            resume: None,
        }
    }

    /// Whether the bytes are compared with the object's own checksum, where it has one and all of it is
    /// read; otherwise as `verify_checksums` is set. [`ObjectInfo::verified`] says what came of it.
    pub fn verify(mut self, verify: bool) -> Get {
        self.verify = Some(verify);
        self
    }

    /// Only these bytes of the object. A range that reaches beyond the object's end is cut there;
    /// one that begins beyond it is an error.
    pub fn range(mut self, range: impl RangeBounds<u64>) -> Get {
        self.wanted = Wanted::range(range);
        self
    }

    /// Only the last `length` bytes of the object; all of it where it has no more. Costs no request
    /// beyond those for the bytes.
    pub fn suffix(mut self, length: u64) -> Get {
        self.wanted = Wanted::Suffix(length);
        self
    }

    /// How many bytes [`Get::stream`] and [`Get::parts`] may hold that were received or asked for and not yet taken, at
    /// least 128 KiB. Where it is not given: as many as the client's concurrency can use, within a
    /// quarter of its memory budget.
    pub fn window(mut self, bytes: u64) -> Get {
        self.window = Some(bytes);
        self
    }

    /// Counts the bytes as they arrive.
    pub fn progress(mut self, progress: Progress) -> Get {
        self.progress = Some(progress);
        self
    }

    /// Into memory that the engine owns: pooled, never zeroed, given back when the last clone of
    /// the buffer is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] where there is no such object, [`ErrorKind::Precondition`] where it
    /// changed while it was read, [`ErrorKind::Integrity`] where the server sent something else than
    /// was asked for, and the others as their kinds say.
    pub async fn buffer(self) -> Result<Object> {
        let subject = self.subject()?;
        self.into_buffer(&subject).instrument(subject.span()).await
    }

    async fn into_buffer(self, subject: &Subject) -> Result<Object> {
        let mut kept = None;
        let opened = self.open(subject, &mut kept).await?;
        let engine = Arc::clone(&opened.source.engine);
        let object = opened.into_object(&mut kept).await?;
        engine.put_back(subject, kept);
        Ok(object)
    }

    /// Sends the first request and stops at the head of its answer, which says how much is to come: for a
    /// caller that must make a destination of exactly that length. It costs no request more.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client) -> wirespeed::Result<()> {
    /// let begun = client.get("bucket", "key").begin().await?;
    /// let exactly = vec![0; begun.length() as usize];
    /// let (bytes, _, info) = begun.into_owned(exactly).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Get::buffer`], as far as the first answer tells them.
    pub async fn begin(self) -> Result<BegunGet> {
        let subject = self.subject()?;
        let opened = self.open(&subject, &mut None).instrument(subject.span()).await?;
        Ok(BegunGet::new(opened))
    }

    /// Into memory of the caller's, which is given back with how many bytes were written at its
    /// front. What lies behind them is left alone.
    ///
    /// The destination moves into the engine for as long as a task may write to it; if the future is
    /// dropped, it is dropped after them.
    ///
    /// # Errors
    /// Those of [`Get::buffer`], and [`ErrorKind::Config`] where the object is larger than the
    /// destination.
    pub async fn into_owned<D>(self, destination: D) -> Result<(D, u64, ObjectInfo)>
    where
        D: AsMut<[u8]> + Send + 'static,
    {
        let subject = self.subject()?;
        let mut target = Target::from_owner(destination);
        let slot = target.whole();
        let (length, info) = self.fill(&subject, slot).instrument(subject.span()).await?;
        Ok((recovered(target, &subject)?, length, info))
    }

    /// Into borrowed memory, blocking until no task can write to it any more. Returns how many
    /// bytes were written at its front.
    ///
    /// For threads that are not the runtime's own: it waits on `runtime`.
    ///
    /// # Errors
    /// Those of [`Get::into_owned`].
    ///
    /// # Panics
    /// As [`Handle::block_on`](tokio::runtime::Handle::block_on): when called from async code.
    pub fn into_slice_blocking(
        self,
        destination: &mut [u8],
        runtime: &tokio::runtime::Handle,
    ) -> Result<(u64, ObjectInfo)> {
        lend_blocking(destination, |slot| {
            runtime.block_on(async {
                let subject = self.subject()?;
                self.fill(&subject, slot).instrument(subject.span()).await
            })
        })
    }

    /// Lets [`Get::file`] survive its process: what arrives is told to the resume's log, and what is half done
    /// stays where it is when the download is stopped or fails, so that another can go on with it. Objects of one
    /// part are downloaded as without it; other destinations do not look at it.
    ///
    /// A download that goes on asks only for what is missing, of the version that the rest came from; where that
    /// is no longer there, or the temporary is gone, it begins anew. The object's own checksum is compared as ever: what
    /// was there is read back. [`Progress`] counts only what is received now.
    pub fn resume(mut self, resume: DownloadResume) -> Get {
        self.resume = Some(resume);
        self
    }

    /// Into a file: written out of order to a temporary name beside it, renamed when whole. The
    /// folder must exist; a file of that name is replaced.
    ///
    /// # Errors
    /// Those of [`Get::buffer`], and [`ErrorKind::Io`] where the file cannot be written. The target
    /// is then as it was. [`ErrorKind::Config`] where only a range was to be resumed.
    pub async fn file(self, path: impl Into<PathBuf>) -> Result<ObjectInfo> {
        let subject = self.subject()?;
        let path = path.into();
        let downloaded = async {
            let mut kept = None;
            let engine = Arc::clone(&self.engine);
            let info = match self.resume.clone() {
                Some(resume) => Box::pin(self.resume_file(&subject, &resume, path, &mut kept)).await?,
                None => {
                    self.open(&subject, &mut kept)
                        .await?
                        .into_file(path, Appearance::default(), None, &mut kept)
                        .await?
                }
            };
            engine.put_back(&subject, kept);
            Ok(info)
        };
        downloaded.instrument(subject.span()).await
    }

    async fn resume_file(
        self,
        subject: &Subject,
        resume: &DownloadResume,
        path: PathBuf,
        kept: &mut Option<Connection>,
    ) -> Result<ObjectInfo> {
        let Get { engine, wanted, progress, verify, options, .. } = self;
        if wanted != Wanted::All {
            let error = Error::new(ErrorKind::Config, "only a download of the whole object can be resumed");
            return Err(subject.explain(error));
        }
        let (attached, conditions) = options.split();
        let opener = Opener {
            engine: &engine,
            subject: subject.clone().with(attached),
            conditions: &conditions,
            verify: verify.unwrap_or(engine.config.verify_checksums),
            sizes: &engine.sizes,
            size: None,
            listed_etag: None,
            progress,
        };
        let target = FileTarget { path, appearance: Appearance::default(), attributes: None };
        resume::to_file(opener, resume, target, kept).await
    }

    /// Receives every byte and keeps none: to measure, or to see that an object can be read.
    ///
    /// # Errors
    /// Those of [`Get::buffer`].
    pub async fn discard(self) -> Result<ObjectInfo> {
        let subject = self.subject()?;
        let discarded = async {
            let mut kept = None;
            let opened = self.open(&subject, &mut kept).await?;
            let engine = Arc::clone(&opened.source.engine);
            let info = opened.discard(&mut kept).await?;
            engine.put_back(&subject, kept);
            Ok(info)
        };
        discarded.instrument(subject.span()).await
    }

    /// In order, through a window of parts that are fetched ahead within a quarter of the memory budget,
    /// whatever the object's size.
    ///
    /// # Errors
    /// Those of [`Get::buffer`], and [`ErrorKind::Io`] where the writer fails.
    pub async fn writer(self, writer: impl tokio::io::AsyncWrite + Unpin + Send) -> Result<ObjectInfo> {
        let subject = self.subject()?;
        let engine = Arc::clone(&self.engine);
        let written = async {
            let opened = self.open_for(&subject, engine.pace.part_size(), true, &mut None).await?;
            ordered::write(opened, writer).await
        };
        written.instrument(subject.span()).await
    }

    /// In order, a part at a time, as a [`Stream`](futures_core::Stream) of buffers: parts are
    /// fetched ahead of the reader, within [`Get::window`]. The stream begins when the server has
    /// answered; dropped, it stops what is in flight.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client) -> wirespeed::Result<()> {
    /// let mut parts = client.get("bucket", "large").window(64 << 20).stream().await?;
    /// println!("{} bytes are to come", parts.length());
    /// while let Some(part) = parts.next().await {
    ///     let part = part?;
    ///     println!("{} bytes", part.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Get::buffer`]: of the first answer here, of what follows in the stream, which then
    /// ends.
    pub async fn stream(self) -> Result<ObjectStream> {
        let subject = self.subject()?;
        let (window, part) = ObjectStream::window(&self.engine, self.window);
        let opened = self.open_for(&subject, part, true, &mut None).instrument(subject.span()).await?;
        Ok(ObjectStream::new(opened, window, part))
    }

    /// As they land, in no order, within [`Get::window`]: for a consumer that has a use for bytes at any
    /// offset. It costs no more than [`Get::buffer`]; and where it drops what it has seen, little memory. Begins
    /// when the server has answered; dropped, it stops what is in flight.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client) -> wirespeed::Result<()> {
    /// let mut parts = client.get("bucket", "large").parts().await?;
    /// while let Some(part) = parts.next().await {
    ///     let part = part?;
    ///     println!("{} bytes at {}", part.body.len(), part.offset);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Get::buffer`]: of the first answer here, of what follows in the parts, which then end. That
    /// the bytes are not those that were stored is known, and said, after the last.
    pub async fn parts(self) -> Result<ObjectParts> {
        let subject = self.subject()?;
        let (window, part) = ObjectParts::window(&self.engine, self.window);
        let opened = self.open_for(&subject, part, false, &mut None).instrument(subject.span()).await?;
        Ok(ObjectParts::new(opened, window, part))
    }

    fn subject(&self) -> Result<Subject> {
        Subject::key(&self.engine, "get", &self.bucket, &self.key)
    }

    /// Fills the front of the slot; how many bytes that took, and what the object is.
    async fn fill(self, subject: &Subject, slot: Slot) -> Result<(u64, ObjectInfo)> {
        let mut kept = None;
        let opened = self.open(subject, &mut kept).await?;
        let engine = Arc::clone(&opened.source.engine);
        let length = opened.length();
        let info = opened.into_slice(slot, &mut kept).await?;
        engine.put_back(subject, kept);
        Ok((length, info))
    }

    async fn open(self, subject: &Subject, kept: &mut Option<Connection>) -> Result<Opened> {
        let part = self.engine.pace.part_size();
        self.open_for(subject, part, false, kept).await
    }

    async fn open_for(
        self,
        subject: &Subject,
        part: u64,
        in_order: bool,
        kept: &mut Option<Connection>,
    ) -> Result<Opened> {
        let Get { engine, wanted, progress, verify, options, .. } = self;
        if wanted.is_empty() {
            return Err(subject.explain(empty_range()));
        }
        let (attached, conditions) = options.split();
        let subject = subject.clone().with(attached);
        let verify = verify.unwrap_or(engine.config.verify_checksums);
        let (conditions, sizes) = (&conditions, &engine.sizes);
        let (pin, size, listed_etag) = (None, None, None);
        let opening = Opening { wanted, part, in_order, conditions, verify, pin, sizes, size, listed_etag };
        open(&engine, subject, opening, progress, kept).await
    }
}

/// A download whose first answer has begun.
pub(crate) struct Opened {
    pub(crate) source: Source,
    pub(crate) info: ObjectInfo,
    /// The bytes of the object that are wanted.
    pub(crate) wanted: Range<u64>,
    /// The first part and its answer; `None` for an empty object. Of a suffix it is the last part.
    pub(crate) first: Option<(Range<u64>, Begun)>,
}

impl Opened {
    /// How many bytes are wanted.
    pub(crate) fn length(&self) -> u64 {
        self.wanted.end - self.wanted.start
    }

    /// Into the front of a slot that has room for it.
    pub(crate) async fn into_slice(self, mut slot: Slot, kept: &mut Option<Connection>) -> Result<ObjectInfo> {
        let room = slot.remaining() as u64;
        let length = self.length();
        if length > room {
            let error = Error::new(
                ErrorKind::Config,
                format!("the destination has room for {room} bytes, and {length} are to be read"),
            );
            return Err(self.source.subject.explain(error.with_hint("read a range, or make room")));
        }
        // The cast is exact: `length` is at most the slot's own length.
        let front = slot.split_to(length as usize);
        drop(slot);
        self.into_memory(front, kept).await
    }

    pub(crate) async fn into_object(self, kept: &mut Option<Connection>) -> Result<Object> {
        let subject = self.source.subject.clone();
        let explain = |error| subject.explain(error);
        let mut target = reserve(&self.source.engine, self.length()).map_err(explain)?;
        let slot = target.whole();
        let info = self.into_memory(slot, kept).await?;
        let body = target.freeze().map_err(|error| explain(incomplete(&error)))?;
        Ok(Object { body, info })
    }

    /// `slot` has exactly the wanted length.
    pub(crate) async fn into_memory(self, slot: Slot, kept: &mut Option<Connection>) -> Result<ObjectInfo> {
        self.run(Destination::Memory(slot), kept).await
    }

    /// With `resume` what is half done survives, unless it is one request's.
    pub(crate) async fn into_file(
        self,
        path: PathBuf,
        appearance: Appearance,
        resume: Option<&DownloadResume>,
        kept: &mut Option<Connection>,
    ) -> Result<ObjectInfo> {
        let is_one = self.first.as_ref().is_none_or(|(first, _)| *first == self.wanted);
        if let Some(resume) = resume.filter(|_| !is_one) {
            return Box::pin(resume::begin(self, &resume.log, path, appearance, kept)).await;
        }
        let subject = self.source.subject.clone();
        let explain = |error| subject.explain(error);
        let file = PartialFile::create(path, appearance).await.map_err(explain)?;
        let info = self.run(Destination::File(file.writer()), kept).await?;
        file.finish().await.map_err(explain)?;
        Ok(info)
    }

    pub(crate) async fn discard(self, kept: &mut Option<Connection>) -> Result<ObjectInfo> {
        self.run(Destination::Discard, kept).await
    }

    pub(super) async fn run(self, destination: Destination, kept: &mut Option<Connection>) -> Result<ObjectInfo> {
        let Opened { source, mut info, wanted, first } = self;
        let progress = source.progress.clone();
        if let Some((first, begun)) = first {
            let rest = Rest::Span(download_parts(rest_of(&wanted, &first), source.engine.pace.part_size()));
            let is_one = rest.len() == 0;
            let mut parts = Parts { rest, destination, origin: wanted.start };
            let sink = parts.first_sink(&first);
            if is_one {
                // One part, one request: no crew.
                source.fetch_and_ask(source.fetch(first, sink, Some(begun), kept)).await?;
                source.conclude(&mut info)?;
            } else {
                let source = Arc::new(source);
                source.fetch_and_ask(receive(&source, parts, (first, sink, begun), kept)).await?;
                source.conclude(&mut info)?;
            }
        }
        if let Some(progress) = &progress {
            progress.add_object();
        }
        Ok(info)
    }
}

/// What is wanted beside the first part, which lies at its beginning or at its end.
pub(crate) fn rest_of(wanted: &Range<u64>, first: &Range<u64>) -> Range<u64> {
    if first.start > wanted.start { wanted.start..first.start } else { first.end..wanted.end }
}

/// There is no way to ask for no bytes.
pub(crate) fn empty_range() -> Error {
    Error::new(ErrorKind::Config, "the range is empty")
}

/// The caller's memory back, after its transfer.
pub(crate) fn recovered<D>(target: OwnedTarget<D>, subject: &Subject) -> Result<D>
where
    D: AsMut<[u8]> + Send + 'static,
{
    target.recover().map_err(|error| subject.explain(Error::new(ErrorKind::Cancelled, error.to_string())))
}

/// Every part came in, and yet bytes are missing: the engine's own mistake, never handed on.
pub(crate) fn incomplete(error: &FreezeError) -> Error {
    Error::new(ErrorKind::Integrity, format!("not every byte arrived: {error}"))
}

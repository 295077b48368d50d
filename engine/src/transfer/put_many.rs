//! PUT of many objects in one call.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures_core::Stream;

use super::Engine;
use super::file::{FoundFile, SourceFile};
use super::many::{Items, Outcomes, Worker, start};
use super::put::PutOutcome;
use super::put_options::{PutOptions, Written, put_methods};
use super::request::Subject;
use super::resume::UploadResume;
use super::upload::{Content, Upload};
use super::upload_item::UploadItem;
use crate::error::Result;
use crate::metrics::Progress;
use crate::net::Connection;
use crate::pace::MemoryPermit;
use crate::plan::{UploadPlan, upload_plan};
use crate::wire::checksum::ChecksumAlgorithm;

/// PUTs that have not been sent; made by [`Client::put_many`](crate::Client::put_many).
#[must_use = "nothing is sent until a source is chosen"]
pub struct PutMany {
    engine: Arc<Engine>,
    bucket: String,
    progress: Option<Progress>,
    checksum: Option<ChecksumAlgorithm>,
    options: PutOptions,
    media_type: Option<MediaTypes>,
}

/// What a key says of its object's media type.
type MediaTypes = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

put_methods!(PutMany, this => this.options);

impl PutMany {
    pub(crate) fn new(engine: Arc<Engine>, bucket: String) -> PutMany {
        let checksum = engine.config.checksum_algorithm;
        PutMany { engine, bucket, progress: None, checksum, options: PutOptions::default(), media_type: None }
    }

    /// The checksum that goes with each object, or `None` for none; otherwise as `checksum_algorithm`
    /// is set.
    pub fn checksum(mut self, algorithm: impl Into<Option<ChecksumAlgorithm>>) -> PutMany {
        self.checksum = algorithm.into();
        self
    }

    /// Counts bytes and objects as the server accepts them.
    pub fn progress(mut self, progress: Progress) -> PutMany {
        self.progress = Some(progress);
        self
    }

    /// All options at once, for every object, in the place of those that were set so far.
    pub fn options(mut self, options: PutOptions) -> PutMany {
        self.options = options;
        self
    }

    /// Each object's media type by its key, where the options name none; `None` leaves it to the server.
    pub fn content_type_by_key(
        mut self,
        media_type: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> PutMany {
        self.media_type = Some(Arc::new(media_type));
        self
    }

    /// Each object from memory, which is sent from where it is.
    ///
    /// # Errors
    /// At once, where the bucket's name cannot exist. Each object's own are in the stream; one
    /// object's failure does not stop the others.
    pub fn bytes<K>(self, objects: K) -> Result<Outcomes<PutOutcome>>
    where
        K: IntoIterator<Item = (String, Bytes)>,
        K::IntoIter: Send + 'static,
    {
        self.start(Items::known(objects), MemoryPutter)
    }

    /// Each object from a file.
    ///
    /// # Errors
    /// Those of [`PutMany::bytes`].
    pub fn files<K>(self, files: K) -> Result<Outcomes<PutOutcome>>
    where
        K: IntoIterator<Item = (PathBuf, String)>,
        K::IntoIter: Send + 'static,
    {
        self.start(Items::known(files), FilePutter)
    }

    /// The same from files that are still being found: uploads begin with the first.
    ///
    /// # Errors
    /// Those of [`PutMany::bytes`].
    pub fn files_from(
        self,
        files: impl Stream<Item = (PathBuf, String)> + Send + 'static,
    ) -> Result<Outcomes<PutOutcome>> {
        self.start(Items::found(files), FilePutter)
    }

    /// The same with what is known of each file, which saves looking at it before it is read, and with options of its
    /// own where it has some. Of the stream no more is taken than can be in flight: it may be as long as it likes.
    ///
    /// # Errors
    /// Those of [`PutMany::bytes`].
    pub fn from_files(self, files: impl Stream<Item = UploadItem> + Send + 'static) -> Result<Outcomes<PutOutcome>> {
        self.start(Items::found(files), FilePutter)
    }

    fn start<I, W>(self, items: Items<I>, worker: impl Fn(Putter) -> W) -> Result<Outcomes<PutOutcome>>
    where
        I: Send + 'static,
        W: Worker<I, PutOutcome>,
    {
        let PutMany { engine, bucket, progress, checksum, options, media_type } = self;
        let bucket = Subject::bucket(&engine, "put", &bucket)?.with(options.attached());
        let written = Written::new(&options);
        let by_key = media_type.map(|media_type| Arc::new(ByKey { media_type, options }));
        let workers = engine.pace.workers(usize::MAX);
        let crew = start(items, workers, || {
            worker(Putter {
                engine: Arc::clone(&engine),
                bucket: bucket.clone(),
                written: Arc::clone(&written),
                by_key: by_key.clone(),
                typed: None,
                checksum,
                progress: progress.clone(),
                kept: None,
            })
        });
        Ok(crew.into())
    }
}

/// How the media type follows from the key, and what it is added to.
struct ByKey {
    media_type: MediaTypes,
    options: PutOptions,
}

struct Putter {
    engine: Arc<Engine>,
    bucket: Subject,
    /// For an object whose media type is not known.
    written: Arc<Written>,
    by_key: Option<Arc<ByKey>>,
    /// For objects of this media type, the last that there was: neighbours are mostly of one type.
    typed: Option<(String, Arc<Written>)>,
    checksum: Option<ChecksumAlgorithm>,
    progress: Option<Progress>,
    kept: Option<Connection>,
}

impl Putter {
    /// What the call's options come to for this key.
    fn written(&mut self, key: &str) -> Arc<Written> {
        let Some(by_key) = self.by_key.as_ref().filter(|by_key| by_key.options.content_type.is_none()) else {
            return Arc::clone(&self.written);
        };
        let Some(media_type) = (by_key.media_type)(key) else { return Arc::clone(&self.written) };
        match &self.typed {
            Some((known, written)) if *known == media_type => Arc::clone(written),
            _ => {
                let written = Written::new(&by_key.options.clone().content_type(&media_type));
                self.typed = Some((media_type, Arc::clone(&written)));
                written
            }
        }
    }

    /// The same of options that are the object's own.
    fn own_written(&self, key: &str, mut options: PutOptions) -> Arc<Written> {
        if options.content_type.is_none() {
            options.content_type = self.by_key.as_ref().and_then(|by_key| (by_key.media_type)(key));
        }
        Written::new(&options)
    }

    async fn put(&mut self, key: &str, body: Bytes) -> Result<PutOutcome> {
        let (subject, written) = (self.bucket.with_key(key)?, self.written(key));
        self.send(subject, Content::Memory(body), written, None).await
    }

    async fn upload(&mut self, item: UploadItem) -> Result<PutOutcome> {
        let UploadItem { path, key, size, options, resume } = item;
        let mut subject = self.bucket.with_key(&key)?;
        let written = match options {
            None => self.written(&key),
            Some(options) => {
                subject = subject.with(options.attached());
                self.own_written(&key, *options)
            }
        };
        let content = match size {
            Some(size) if self.goes_at_once(size) && !resume.as_ref().is_some_and(UploadResume::has_left) => {
                Content::Found(FoundFile { path, size })
            }
            _ => {
                let file = SourceFile::open(path, size).await;
                Content::File(file.map_err(|error| subject.explain(error))?)
            }
        };
        self.send(subject, content, written, resume).await
    }

    /// Whether a file of this size is one request.
    fn goes_at_once(&self, size: u64) -> bool {
        let plan = upload_plan(size, self.engine.pace.part_size(), self.engine.config.multipart_threshold);
        matches!(plan, Ok(UploadPlan::Single { .. }))
    }

    async fn send(
        &mut self,
        subject: Subject,
        content: Content,
        written: Arc<Written>,
        resume: Option<UploadResume>,
    ) -> Result<PutOutcome> {
        let upload = Upload {
            engine: Arc::clone(&self.engine),
            subject,
            content,
            written,
            checksum: self.checksum,
            progress: self.progress.clone(),
            resume,
        };
        upload.run(&mut self.kept).await
    }

    fn retire(self) {
        self.engine.put_back(&self.bucket, self.kept);
    }
}

struct MemoryPutter(Putter);

impl Worker<(String, Bytes), PutOutcome> for MemoryPutter {
    async fn work(&mut self, (key, body): (String, Bytes)) -> (Result<PutOutcome>, Option<MemoryPermit>) {
        (self.0.put(&key, body).await, None)
    }

    fn retire(self) {
        self.0.retire();
    }
}

struct FilePutter(Putter);

impl<I: Into<UploadItem> + Send + 'static> Worker<I, PutOutcome> for FilePutter {
    async fn work(&mut self, item: I) -> (Result<PutOutcome>, Option<MemoryPermit>) {
        (self.0.upload(item.into()).await, None)
    }

    fn retire(self) {
        self.0.retire();
    }
}

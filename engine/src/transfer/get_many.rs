//! GET of many objects in one call: small ones are one request each, large ones are cut into parts,
//! and all share the client's places and budget.

use std::path::PathBuf;
use std::sync::Arc;

use futures_core::Stream;
use tracing::Instrument;

use super::Engine;
use super::checksum::Sizes;
use super::file::{Appearance, FileAttributes, write_file};
use super::file_item::FileItem;
use super::get::{Object, incomplete};
use super::get_item::GetItem;
use super::getter::Getter;
use super::head::ObjectInfo;
use super::many::{Items, Outcomes, Worker, start};
use super::part::reserve;
use super::read_options::{ReadOptions, read_methods};
use super::request::Subject;
use super::resume::FileTarget;
use crate::error::Result;
use crate::metrics::Progress;
use crate::pace::MemoryPermit;

/// GETs that have not been sent; made by [`Client::get_many`](crate::Client::get_many).
#[must_use = "nothing is sent until a destination is chosen"]
pub struct GetMany {
    engine: Arc<Engine>,
    bucket: String,
    progress: Option<Progress>,
    verify: Option<bool>,
    attributes: Option<Attributes>,
    options: ReadOptions,
}

/// What an answer says of the file that its object becomes.
pub(crate) type Attributes = Arc<dyn Fn(&ObjectInfo) -> FileAttributes + Send + Sync>;

read_methods!(GetMany);

impl GetMany {
    pub(crate) fn new(engine: Arc<Engine>, bucket: String) -> GetMany {
        let options = ReadOptions::default();
        GetMany { engine, bucket, progress: None, verify: None, attributes: None, options }
    }

    /// Whether objects are compared with their own checksums; otherwise as `verify_checksums` is set.
    pub fn verify(mut self, verify: bool) -> GetMany {
        self.verify = Some(verify);
        self
    }

    /// Counts bytes and objects as they arrive.
    pub fn progress(mut self, progress: Progress) -> GetMany {
        self.progress = Some(progress);
        self
    }

    /// What each file gets by what the server says of its object, as where its time of modification is kept in the
    /// metadata. It wins over what the file's item says.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client, files: Vec<(String, std::path::PathBuf)>) -> wirespeed::Result<()> {
    /// use wirespeed::FileAttributes;
    ///
    /// let written = client.get_many("bucket").attributes(|info| FileAttributes { modified: info.last_modified, mode: None });
    /// let mut files = written.files(files)?;
    /// # while files.next().await.is_some() {}
    /// # Ok(())
    /// # }
    /// ```
    pub fn attributes(mut self, of: impl Fn(&ObjectInfo) -> FileAttributes + Send + Sync + 'static) -> GetMany {
        self.attributes = Some(Arc::new(of));
        self
    }

    /// Each object into memory that the engine owns, as they finish. What has not been taken from
    /// the stream counts against the memory budget, so a slow reader slows the downloads; of two such
    /// streams of one client, both must be read.
    ///
    /// # Errors
    /// At once, where the bucket's name cannot exist. Each object's own are in the stream; one
    /// object's failure does not stop the others.
    pub fn buffers<K>(self, keys: K) -> Result<Outcomes<Object>>
    where
        K: IntoIterator<Item = String>,
        K::IntoIter: Send + 'static,
    {
        self.start(Items::known(keys.into_iter().map(GetItem::new)), Buffers)
    }

    /// The same for a range of each, or a version of it.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client, keys: Vec<String>) -> wirespeed::Result<()> {
    /// use wirespeed::GetItem;
    ///
    /// let footers = keys.into_iter().map(|key| GetItem::new(key).suffix(64 << 10));
    /// let mut footers = client.get_many("bucket").items(footers)?;
    /// while let Some((index, footer)) = footers.next().await {
    ///     println!("{index}: {} bytes", footer?.body.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`GetMany::buffers`].
    pub fn items<K>(self, items: K) -> Result<Outcomes<Object>>
    where
        K: IntoIterator<Item = GetItem>,
        K::IntoIter: Send + 'static,
    {
        self.start(Items::known(items), Buffers)
    }

    /// Each object into memory of the caller's, which comes back with how many bytes were written at its
    /// front, as with [`Get::into_owned`](crate::Get::into_owned). A destination that is too small is an error of
    /// kind [`Config`](crate::ErrorKind::Config). Where an object fails, its destination is dropped.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client, keys: Vec<String>) -> wirespeed::Result<()> {
    /// use wirespeed::GetItem;
    ///
    /// let into = keys.into_iter().map(|key| (GetItem::new(key), vec![0; 64 << 10]));
    /// let mut objects = client.get_many("bucket").into_owned(into)?;
    /// while let Some((index, object)) = objects.next().await {
    ///     let (memory, length, _) = object?;
    ///     println!("{index}: {} bytes", memory[..length as usize].len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`GetMany::buffers`].
    pub fn into_owned<K, D>(self, items: K) -> Result<Outcomes<(D, u64, ObjectInfo)>>
    where
        K: IntoIterator<Item = (GetItem, D)>,
        K::IntoIter: Send + 'static,
        D: AsMut<[u8]> + Send + 'static,
    {
        self.start(Items::known(items), Owned)
    }

    /// Receives each object and keeps no byte.
    ///
    /// # Errors
    /// Those of [`GetMany::buffers`].
    pub fn discard<K>(self, keys: K) -> Result<Outcomes<ObjectInfo>>
    where
        K: IntoIterator<Item = String>,
        K::IntoIter: Send + 'static,
    {
        self.start(Items::known(keys.into_iter().map(GetItem::new)), Discard)
    }

    /// The same for objects that are still being found.
    ///
    /// # Errors
    /// Those of [`GetMany::buffers`].
    pub fn discard_from(self, items: impl Stream<Item = GetItem> + Send + 'static) -> Result<Outcomes<ObjectInfo>> {
        self.start(Items::found(items), Discard)
    }

    /// Each object into a file of its own, named beside its key; missing folders are made. A file
    /// appears when it is whole.
    ///
    /// # Errors
    /// Those of [`GetMany::buffers`].
    pub fn files<K>(self, targets: K) -> Result<Outcomes<ObjectInfo>>
    where
        K: IntoIterator<Item = (String, PathBuf)>,
        K::IntoIter: Send + 'static,
    {
        self.start_files(Items::known(targets))
    }

    /// The same from keys that are still being found: downloads begin with the first.
    ///
    /// # Errors
    /// Those of [`GetMany::buffers`].
    pub fn files_from(
        self,
        targets: impl Stream<Item = (String, PathBuf)> + Send + 'static,
    ) -> Result<Outcomes<ObjectInfo>> {
        self.start_files(Items::found(targets))
    }

    /// The same with what is known of each object, which saves memory and time, and with how its file is to appear.
    /// Of the stream no more is taken than can be in flight: it may be as long as it likes.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client, found: tokio::sync::mpsc::Receiver<wirespeed::ListedObject>)
    /// # -> wirespeed::Result<()> {
    /// use std::pin::Pin;
    /// use std::task::{Context, Poll};
    /// use wirespeed::{FileItem, ListedObject};
    ///
    /// /// A listing that somebody else reads.
    /// struct Found(tokio::sync::mpsc::Receiver<ListedObject>);
    ///
    /// impl futures_core::Stream for Found {
    ///     type Item = FileItem;
    ///
    ///     fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<FileItem>> {
    ///         let found = self.0.poll_recv(cx);
    ///         found.map(|found| found.map(|object| FileItem::new(&object.key, &object.key).size(object.size)))
    ///     }
    /// }
    ///
    /// let mut files = client.get_many("bucket").into_files(Found(found))?;
    /// while let Some((index, file)) = files.next().await {
    ///     println!("{index}: {} bytes", file?.size);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`GetMany::buffers`].
    pub fn into_files(self, items: impl Stream<Item = FileItem> + Send + 'static) -> Result<Outcomes<ObjectInfo>> {
        self.start_files(Items::found(items))
    }

    fn start_files<I: Into<FileItem> + Send + 'static>(mut self, items: Items<I>) -> Result<Outcomes<ObjectInfo>> {
        let attributes = self.attributes.take();
        self.start(items, move |getter| Files { getter, attributes: attributes.clone() })
    }

    fn start<I, T, W>(self, items: Items<I>, worker: impl Fn(Getter) -> W) -> Result<Outcomes<T>>
    where
        I: Send + 'static,
        T: Send + 'static,
        W: Worker<I, T>,
    {
        let GetMany { engine, bucket, progress, verify, options, .. } = self;
        let verify = verify.unwrap_or(engine.config.verify_checksums);
        let sizes = Arc::new(Sizes::mostly_small());
        let (attached, conditions) = options.split();
        let bucket = Subject::bucket(&engine, "get", &bucket)?.with(attached);
        let conditions = Arc::new(conditions);
        let workers = engine.pace.workers(usize::MAX);
        let crew = start(items, workers, || {
            worker(Getter {
                engine: Arc::clone(&engine),
                bucket: bucket.clone(),
                progress: progress.clone(),
                conditions: Arc::clone(&conditions),
                verify,
                sizes: Arc::clone(&sizes),
                kept: None,
            })
        });
        Ok(crew.into())
    }
}

struct Buffers(Getter);

impl Worker<GetItem, Object> for Buffers {
    async fn work(&mut self, item: GetItem) -> (Result<Object>, Option<MemoryPermit>) {
        let span = self.0.bucket.span_of(item.key());
        match self.0.buffer(item, None).instrument(span).await {
            Ok((object, permit)) => (Ok(object), Some(permit)),
            Err(error) => (Err(error), None),
        }
    }

    fn retire(self) {
        self.0.retire();
    }
}

struct Owned(Getter);

impl<D> Worker<(GetItem, D), (D, u64, ObjectInfo)> for Owned
where
    D: AsMut<[u8]> + Send + 'static,
{
    async fn work(&mut self, (item, into): (GetItem, D)) -> (Result<(D, u64, ObjectInfo)>, Option<MemoryPermit>) {
        let span = self.0.bucket.span_of(item.key());
        (self.0.fill(item, into).instrument(span).await, None)
    }

    fn retire(self) {
        self.0.retire();
    }
}

struct Discard(Getter);

impl Worker<GetItem, ObjectInfo> for Discard {
    async fn work(&mut self, item: GetItem) -> (Result<ObjectInfo>, Option<MemoryPermit>) {
        let span = self.0.bucket.span_of(item.key());
        let discarded = async {
            let opened = self.0.open(item, None).await?;
            opened.discard(&mut self.0.kept).await
        };
        (discarded.instrument(span).await, None)
    }

    fn retire(self) {
        self.0.retire();
    }
}

struct Files {
    getter: Getter,
    attributes: Option<Attributes>,
}

impl Files {
    async fn file(&mut self, item: FileItem) -> Result<ObjectInfo> {
        let FileItem { object, path, attributes, no_clobber, resume, job } = item;
        let getter = &mut self.getter;
        let part = getter.engine.pace.part_size();
        let is_large = object.size.is_none_or(|size| size > part);
        if let Some(resume) = resume.filter(|resume| is_large || resume.has_left()) {
            let appearance = Appearance { make_folders: true, no_clobber, attributes, job };
            let target = FileTarget { path, appearance, attributes: self.attributes.clone() };
            return Box::pin(getter.resume_file(object, &resume, target)).await;
        }
        let permit = match object.size {
            // It will pass through stages, which are paid for when there is something to receive.
            Some(size) if size > part => None,
            size => Some(getter.engine.pace.admission.memory(size.unwrap_or(part)).await),
        };
        let room = object.size.unwrap_or(part);
        let opened = getter.open(object, None).await?;
        let length = opened.length();
        let told = self.attributes.as_ref().map(|of| of(&opened.info)).unwrap_or_default();
        let appearance = Appearance { make_folders: true, no_clobber, attributes: told.or(attributes), job };
        let mut permit = match permit {
            Some(permit) if length <= room => permit,
            _ => {
                drop(permit);
                return opened.into_file(path, appearance, None, &mut getter.kept).await;
            }
        };
        // Small enough to be received whole: opened, written and renamed in one go.
        permit.shrink(length);
        let engine = Arc::clone(&getter.engine);
        let subject = opened.source.subject.clone();
        let explain = |error| subject.explain(error);
        let mut target = reserve(&engine, length).map_err(explain)?;
        let slot = target.whole();
        let info = opened.into_memory(slot, &mut getter.kept).await?;
        let content = target.freeze().map_err(|error| explain(incomplete(&error)))?;
        let written = engine.files.run(move || {
            let _permit = permit;
            write_file(path, &content, appearance)
        });
        written.await.map_err(explain)?;
        Ok(info)
    }
}

impl<I: Into<FileItem> + Send + 'static> Worker<I, ObjectInfo> for Files {
    async fn work(&mut self, item: I) -> (Result<ObjectInfo>, Option<MemoryPermit>) {
        let item = item.into();
        let span = self.getter.bucket.span_of(item.key());
        (self.file(item).instrument(span).await, None)
    }

    fn retire(self) {
        self.getter.retire();
    }
}

//! PUT: an object from memory or from a file, in one request or in parts by its size.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

use super::Engine;
use super::file::SourceFile;
use super::put_options::{PutOptions, Written, put_methods};
use super::request::Subject;
use super::resume::UploadResume;
use super::upload::{Content, Upload};
use crate::error::Result;
use crate::metrics::Progress;
use crate::wire::checksum::{Checksum, ChecksumAlgorithm};

/// What the server says of an object that it has stored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PutOutcome {
    /// The entity tag, with its quotes, byte for byte as the server sent it.
    pub etag: Option<String>,
    /// The version, where the bucket keeps versions.
    pub version_id: Option<String>,
    /// How many requests carried the body.
    pub parts: u32,
    /// The checksum of the whole object that was sent with it. `None` where none was, and of an object in
    /// parts with SHA-256, of which S3 keeps a composite.
    pub checksum: Option<Checksum>,
}

/// A PUT that has not been sent; made by [`Client::put`](crate::Client::put).
#[must_use = "nothing is sent until a source is chosen"]
pub struct Put {
    pub(super) engine: Arc<Engine>,
    pub(super) bucket: String,
    pub(super) key: String,
    pub(super) progress: Option<Progress>,
    pub(super) checksum: Option<ChecksumAlgorithm>,
    pub(super) options: PutOptions,
    /// How large an object of unknown length is expected to be.
    pub(super) expected_size: u64,
    pub(super) stop: Option<Stop>,
    resume: Option<UploadResume>,
}

/// What ends an upload early when it comes.
pub(super) type Stop = Pin<Box<dyn Future<Output = ()> + Send>>;

put_methods!(Put, this => this.options);

impl Put {
    pub(crate) fn new(engine: Arc<Engine>, bucket: String, key: String) -> Put {
        let checksum = engine.config.checksum_algorithm;
        let options = PutOptions::default();
        Put { engine, bucket, key, progress: None, checksum, options, expected_size: 0, stop: None, resume: None }
    }

    /// The checksum that goes with the bytes, or `None` for none; otherwise as `checksum_algorithm` is
    /// set. The server refuses bytes that do not agree with it, and keeps it.
    pub fn checksum(mut self, algorithm: impl Into<Option<ChecksumAlgorithm>>) -> Put {
        self.checksum = algorithm.into();
        self
    }

    /// Counts bytes as the server accepts them, a part at a time.
    pub fn progress(mut self, progress: Progress) -> Put {
        self.progress = Some(progress);
        self
    }

    /// All options at once, in the place of those that were set so far.
    pub fn options(mut self, options: PutOptions) -> Put {
        self.options = options;
        self
    }

    /// Lets [`Put::file`] survive its process where the file goes in parts: what the server has accepted is told to the
    /// resume's log, and stays on the server when the upload is stopped or fails, so that another can go on with it.
    /// Files of one request are uploaded as without it; other sources do not look at it.
    ///
    /// An upload that goes on sends only the parts that the server does not list. Where the file has changed
    /// since, or the upload is gone, it begins anew. [`Progress`] counts only what is sent now.
    pub fn resume(mut self, resume: UploadResume) -> Put {
        self.resume = Some(resume);
        self
    }

    /// From memory, which is sent from where it is. Anything that owns bytes can be wrapped without
    /// a copy by [`Bytes::from_owner`].
    ///
    /// # Errors
    /// As their kinds say. A multipart upload that fails is aborted.
    pub async fn bytes(self, body: impl Into<Bytes>) -> Result<PutOutcome> {
        let content = Content::Memory(body.into());
        self.run(content).await
    }

    /// From a file, read part by part within the memory budget.
    ///
    /// # Errors
    /// As [`Put::bytes`]; and [`ErrorKind::Io`](crate::ErrorKind::Io) where the file cannot be read,
    /// [`ErrorKind::Integrity`](crate::ErrorKind::Integrity) where it changed meanwhile.
    pub async fn file(self, path: impl Into<PathBuf>) -> Result<PutOutcome> {
        let file = SourceFile::open(path.into(), None).await;
        let explain = |error: crate::Error| error.with_context("put", &self.bucket, &self.key);
        let content = Content::File(file.map_err(explain)?);
        self.run(content).await
    }

    async fn run(self, content: Content) -> Result<PutOutcome> {
        let subject = self.subject()?;
        let engine = Arc::clone(&self.engine);
        let upload = self.upload(subject.clone(), content);
        let mut kept = None;
        let outcome = upload.run(&mut kept).await?;
        engine.put_back(&subject, kept);
        Ok(outcome)
    }

    pub(super) fn subject(&self) -> Result<Subject> {
        Ok(Subject::key(&self.engine, "put", &self.bucket, &self.key)?.with(self.options.attached()))
    }

    pub(super) fn upload(self, subject: Subject, content: Content) -> Upload {
        let written = Written::new(&self.options);
        let resume = self.resume.filter(|_| matches!(content, Content::File(_)));
        let (checksum, progress) = (self.checksum, self.progress);
        Upload { engine: self.engine, subject, content, checksum, written, progress, resume }
    }
}

//! HEAD of many objects in one call.

use std::sync::Arc;

use futures_core::Stream;

use super::Engine;
use super::checksum::CHECKSUM_MODE;
use super::head::{ObjectInfo, head_as};
use super::many::{Items, Outcomes, Worker, start};
use super::options::Fields;
use super::read_options::{ReadOptions, read_methods};
use super::request::Subject;
use crate::error::Result;
use crate::pace::MemoryPermit;

/// HEADs that have not been sent; made by [`Client::head_many`](crate::Client::head_many).
#[must_use = "nothing is sent until the keys are given"]
pub struct HeadMany {
    engine: Arc<Engine>,
    bucket: String,
    options: ReadOptions,
    checksum: bool,
}

read_methods!(HeadMany);

impl HeadMany {
    pub(crate) fn new(engine: Arc<Engine>, bucket: String) -> HeadMany {
        HeadMany { engine, bucket, options: ReadOptions::default(), checksum: false }
    }

    /// Asks for [`ObjectInfo::checksum`] too, as [`Head::checksum`](crate::Head::checksum).
    pub fn checksum(mut self) -> HeadMany {
        self.checksum = true;
        self
    }

    /// Asks about each object as its key is found. Of the stream no more is taken than can be in flight: it may be as
    /// long as it likes.
    ///
    /// # Errors
    /// At once, where the bucket's name cannot exist. Each object's own are in the stream; one object's failure does
    /// not stop the others.
    pub fn keys_from(self, keys: impl Stream<Item = String> + Send + 'static) -> Result<Outcomes<ObjectInfo>> {
        let HeadMany { engine, bucket, options, checksum } = self;
        engine.keep_house();
        let (attached, mut headers) = options.split();
        if checksum {
            headers.push(CHECKSUM_MODE.0, CHECKSUM_MODE.1);
        }
        let bucket = Subject::bucket(&engine, "head", &bucket)?.with(attached);
        let headers = Arc::new(headers);
        let workers = engine.pace.workers(usize::MAX);
        let hire = || Asker { engine: Arc::clone(&engine), bucket: bucket.clone(), headers: Arc::clone(&headers) };
        Ok(start(Items::found(keys), workers, hire).into())
    }
}

struct Asker {
    engine: Arc<Engine>,
    bucket: Subject,
    headers: Arc<Fields>,
}

impl Worker<String, ObjectInfo> for Asker {
    async fn work(&mut self, key: String) -> (Result<ObjectInfo>, Option<MemoryPermit>) {
        let told = match self.bucket.with_key(&key) {
            Ok(subject) => head_as(&self.engine, &subject, &self.headers.borrowed()).await,
            Err(error) => Err(error),
        };
        (told, None)
    }

    fn retire(self) {}
}

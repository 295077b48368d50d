//! How one object of many is read: opened under the call's conditions, on the worker's own connection, within
//! the budget.

use std::sync::Arc;

use super::Engine;
use super::checksum::Sizes;
use super::discover::open;
use super::get::{Object, Opened, empty_range, recovered};
use super::get_item::GetItem;
use super::head::ObjectInfo;
use super::opening::Opening;
use super::options::Fields;
use super::request::Subject;
use super::resume::{DownloadResume, FileTarget, Opener, to_file};
use super::version::Pin;
use crate::buffer::Target;
use crate::error::Result;
use crate::metrics::Progress;
use crate::net::Connection;
use crate::pace::MemoryPermit;

/// What a worker over many objects has, whatever their destination.
pub(super) struct Getter {
    pub(super) engine: Arc<Engine>,
    pub(super) bucket: Subject,
    pub(super) progress: Option<Progress>,
    pub(super) conditions: Arc<Fields>,
    pub(super) verify: bool,
    /// What this call has seen.
    pub(super) sizes: Arc<Sizes>,
    pub(super) kept: Option<Connection>,
}

impl Getter {
    /// Sends the first request; where several reads of the key must be of one version, with their `pin`.
    pub(super) async fn open(&mut self, item: GetItem, pin: Option<&Pin>) -> Result<Opened> {
        let subject = self.subject(&item)?;
        let GetItem { wanted, size, if_match, .. } = item;
        if wanted.is_empty() {
            return Err(subject.explain(empty_range()));
        }
        let part = self.engine.pace.part_size();
        let (conditions, verify, sizes) = (&*self.conditions, self.verify, &*self.sizes);
        let listed_etag = listed(&if_match);
        let in_order = false;
        let opening = Opening { wanted, part, in_order, conditions, verify, pin, sizes, size, listed_etag };
        open(&self.engine, subject, opening, self.progress.clone(), &mut self.kept).await
    }

    /// Downloads all of an object to a file, going on with what an earlier run left of it.
    pub(super) async fn resume_file(
        &mut self,
        item: GetItem,
        resume: &DownloadResume,
        target: FileTarget,
    ) -> Result<ObjectInfo> {
        let opener = Opener {
            engine: &self.engine,
            subject: self.subject(&item)?,
            conditions: &self.conditions,
            verify: self.verify,
            sizes: &self.sizes,
            size: item.size,
            listed_etag: listed(&item.if_match),
            progress: self.progress.clone(),
        };
        to_file(opener, resume, target, &mut self.kept).await
    }

    fn subject(&self, item: &GetItem) -> Result<Subject> {
        let subject = self.bucket.with_key(&item.key)?;
        Ok(match &item.version {
            Some(id) => subject.at_version(id.clone()),
            None => subject,
        })
    }

    /// Receives into the engine's memory. The budget is asked for one part's room unless the size is
    /// known before, since the bytes come with the answer, and for what a larger object needs after that.
    pub(super) async fn buffer(&mut self, item: GetItem, pin: Option<&Pin>) -> Result<(Object, MemoryPermit)> {
        let part = self.engine.pace.part_size();
        let first = item.size.map_or(part, |size| size.min(part)).min(item.wanted.most());
        let mut permit = self.engine.pace.admission.undelivered(first).await;
        let mut opened = self.open(item, pin).await?;
        let length = opened.length();
        match (length.checked_sub(first), &mut opened.first) {
            (Some(more @ 1..), Some((_, begun))) => {
                let more = self.engine.pace.admission.more_undelivered(more);
                permit.join(begun.exchange.wait_for_memory(&self.engine, more).await);
            }
            _ => permit.shrink(length),
        }
        let object = opened.into_object(&mut self.kept).await?;
        Ok((object, permit))
    }

    /// Receives into the caller's memory, which the budget leaves to the caller.
    pub(super) async fn fill<D>(&mut self, item: GetItem, destination: D) -> Result<(D, u64, ObjectInfo)>
    where
        D: AsMut<[u8]> + Send + 'static,
    {
        let mut target = Target::from_owner(destination);
        let slot = target.whole();
        let opened = self.open(item, None).await?;
        let subject = opened.source.subject.clone();
        let length = opened.length();
        let info = opened.into_slice(slot, &mut self.kept).await?;
        Ok((recovered(target, &subject)?, length, info))
    }

    pub(super) fn retire(self) {
        self.engine.put_back(&self.bucket, self.kept);
    }
}

/// A weak tag stands in no `If-Match`.
fn listed(if_match: &Option<String>) -> Option<&str> {
    if_match.as_deref().filter(|etag| !etag.starts_with("W/"))
}

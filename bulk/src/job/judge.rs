//! Whether what both sides have is the same, where the listings alone do not tell: by the metadata that keeps a file's
//! time and mode, or by checksums.

use crate::compare::{Compare, Direction, Verdict};
use crate::differences::{Comparing, Contents};
use crate::entry::Entry;
use crate::failure::Failure;
use crate::place::{Bucket, Place};
use crate::preserve;

/// The rule of a job, and whom to ask.
#[derive(Clone)]
pub(super) struct Judge {
    compare: Compare,
    direction: Direction,
    preserve: bool,
    from: Place,
    to: Place,
    comparing: Comparing,
}

impl Judge {
    pub(super) fn new(compare: Compare, preserve: bool, from: &Place, to: &Place) -> Judge {
        let down = matches!((from, to), (Place::Bucket(_), Place::Folder(_)));
        let direction = if down { Direction::Down } else { Direction::UpOrAcross };
        let has_files = matches!((from, to), (Place::Folder(_), _) | (_, Place::Folder(_)));
        Judge {
            compare,
            direction,
            preserve: preserve && has_files,
            from: from.clone(),
            to: to.clone(),
            comparing: Comparing::new(from, to, false),
        }
    }

    /// What is told of something that is the same.
    pub(super) fn compare(&self) -> Compare {
        self.compare
    }

    /// Judges what both listings tell.
    pub(super) fn at_once(&self, source: &Entry, target: &Entry) -> Verdict {
        let by_time = matches!(self.compare, Compare::SizeAndTime | Compare::ExactTime);
        if self.preserve && by_time && source.size.is_some() && source.size == target.size {
            return Verdict::Ask;
        }
        self.compare.judge(self.direction, source, target)
    }

    /// Whether they are the same, which takes a question.
    ///
    /// # Errors
    /// Where that cannot be told: the object or the file cannot be read.
    pub(super) async fn ask(&self, source: &Entry, target: &Entry) -> Result<bool, Failure> {
        if self.compare == Compare::Checksum {
            return self.by_checksum(source, target).await;
        }
        let (bucket, object, file) = match (&self.from, &self.to) {
            (Place::Bucket(bucket), _) => (bucket, source, target),
            (_, Place::Bucket(bucket)) => (bucket, target, source),
            _ => return Ok(false),
        };
        let kept = head(bucket, object).await?.metadata;
        let by_time = || self.compare.judge(self.direction, source, target) == Verdict::Same;
        Ok(preserve::agrees(&kept, file).unwrap_or_else(by_time))
    }

    async fn by_checksum(&self, source: &Entry, target: &Entry) -> Result<bool, Failure> {
        Ok(match self.comparing.compare(source, target).await? {
            Contents::Same => true,
            Contents::Different => false,
            Contents::Unknown(_) => Compare::SizeAndTime.judge(self.direction, source, target) == Verdict::Same,
        })
    }
}

async fn head(bucket: &Bucket, object: &Entry) -> wirespeed::Result<wirespeed::ObjectInfo> {
    let mut head = bucket.asked(bucket.client.head(&bucket.name, bucket.key_of(&object.key)));
    if let Some(key) = &bucket.customer_key {
        head = head.sse_customer_key(key.clone());
    }
    head.await
}

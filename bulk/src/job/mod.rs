//! A job: what is to be done between two places, and how it is run.

mod call;
mod drive;
mod extra;
mod judge;
mod landing;
mod lane;
mod lanes;
mod look;
mod plan;
mod relay;
mod removal;
mod stated;
mod way;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use futures_core::Stream;
use wirespeed::{ChecksumAlgorithm, CopyDirective, Progress, PutOptions};

use crate::compare::Compare;
use crate::entry::Entry;
use crate::failure::Failure;
use crate::filter::Filter;
use crate::place::Place;
use crate::report::Report;
use crate::source::Range;
use crate::state::State;
use crate::summary::Summary;

/// Names that somebody else lists, a batch at a time.
type Names = Pin<Box<dyn Stream<Item = Vec<Entry>> + Send>>;

/// What a key says of its object's media type.
type MediaTypes = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What is to be done between two places; nothing happens before [`Job::run`].
#[must_use = "nothing is done until it is run"]
pub struct Job {
    kind: Kind,
    from: Place,
    to: Place,
    names: Option<Names>,
    settings: Settings,
}

/// What a job does with what it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Copy,
    Move,
    Sync,
    Delete,
}

/// How a job does it.
#[derive(Clone)]
struct Settings {
    filter: Filter,
    compare: Option<Compare>,
    delete_extra: bool,
    max_delete: Option<u64>,
    dry_run: bool,
    fail_fast: bool,
    preserve: bool,
    follow_links: bool,
    through_here: bool,
    all_versions: bool,
    verify: Option<bool>,
    checksum: Option<Option<ChecksumAlgorithm>>,
    options: PutOptions,
    metadata: CopyDirective,
    tagging: CopyDirective,
    media_types: Option<MediaTypes>,
    range: Range,
    progress: Progress,
    state: Option<State>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            filter: Filter::default(),
            compare: None,
            delete_extra: false,
            max_delete: None,
            dry_run: false,
            fail_fast: false,
            preserve: false,
            follow_links: true,
            through_here: false,
            all_versions: false,
            verify: None,
            checksum: None,
            options: PutOptions::default(),
            metadata: CopyDirective::Copy,
            tagging: CopyDirective::Copy,
            media_types: None,
            range: Range::default(),
            progress: Progress::default(),
            state: None,
        }
    }
}

impl Job {
    fn new(kind: Kind, from: Place, to: Place) -> Job {
        Job { kind, from, to, names: None, settings: Settings::default() }
    }

    /// Copies all that `from` has to `to`, whatever is there.
    pub fn copy(from: Place, to: Place) -> Job {
        Job::new(Kind::Copy, from, to)
    }

    /// Copies, and removes each source that was really copied: a file only if it is still what was copied.
    pub fn mv(from: Place, to: Place) -> Job {
        Job::new(Kind::Move, from, to)
    }

    /// Copies what `to` does not have or has otherwise, as told by [`Job::compare`].
    pub fn sync(from: Place, to: Place) -> Job {
        Job::new(Kind::Sync, from, to)
    }

    /// Deletes all that the place has.
    pub fn delete(from: Place) -> Job {
        Job::new(Kind::Delete, from, Place::Nowhere)
    }

    /// Only these of the source, which is not listed then: names that come as they are found, in any order, in batches.
    /// What is known of them saves questions; what is not is asked where it is needed.
    pub fn names(mut self, names: impl Stream<Item = Vec<Entry>> + Send + 'static) -> Job {
        self.names = Some(Box::pin(names));
        self
    }

    /// Only these of the source, which is not listed then.
    pub fn entries(self, entries: impl IntoIterator<Item = Entry>) -> Job {
        let entries: Vec<Entry> = entries.into_iter().collect();
        self.names(futures_util::stream::iter([entries]))
    }

    /// Only what this wants. A sync neither transfers nor deletes what it does not.
    pub fn filter(mut self, filter: Filter) -> Job {
        self.settings.filter = filter;
        self
    }

    /// When what is on both sides is the same; a copy or move that is told compares too, and transfers less.
    pub fn compare(mut self, compare: Compare) -> Job {
        self.settings.compare = Some(compare);
        self
    }

    /// Leaves alone whatever is on the other side, even if it comes to be there while the job runs.
    pub fn no_clobber(mut self, no_clobber: bool) -> Job {
        if no_clobber {
            self.settings.compare = Some(Compare::Absent);
        }
        self
    }

    /// Whether a sync deletes what the source has no more. Only what the filter wants is deleted; and nothing
    /// at all before the source was listed to its end without any error.
    pub fn delete_extra(mut self, delete: bool) -> Job {
        self.settings.delete_extra = delete;
        self
    }

    /// The most that a sync, or a deletion, may delete. Of more a sync deletes nothing; a deletion stops there.
    pub fn max_delete(mut self, items: u64) -> Job {
        self.settings.max_delete = Some(items);
        self
    }

    /// Whether only the plan is reported, and nothing changed.
    pub fn dry_run(mut self, dry_run: bool) -> Job {
        self.settings.dry_run = dry_run;
        self
    }

    /// Whether the first failure ends the job.
    pub fn fail_fast(mut self, fail_fast: bool) -> Job {
        self.settings.fail_fast = fail_fast;
        self
    }

    /// Whether a file's time and mode are kept as the object's metadata (`mtime`, `mode`), given back by a download, and
    /// compared by a sync.
    pub fn preserve(mut self, preserve: bool) -> Job {
        self.settings.preserve = preserve;
        self
    }

    /// Whether symbolic links are followed when files are looked for (the default), or left out.
    pub fn follow_links(mut self, follow: bool) -> Job {
        self.settings.follow_links = follow;
        self
    }

    /// Copies from S3 to S3 through this machine. So it is done anyway where two clients speak to the two places.
    pub fn through_here(mut self, through: bool) -> Job {
        self.settings.through_here = through;
        self
    }

    /// A deletion deletes every version and delete marker, for good.
    pub fn all_versions(mut self, all: bool) -> Job {
        self.settings.all_versions = all;
        self
    }

    /// Whether downloads are compared with the objects' checksums; otherwise as the client is configured.
    pub fn verify(mut self, verify: bool) -> Job {
        self.settings.verify = Some(verify);
        self
    }

    /// The checksum that goes with each upload, or `None` for none; otherwise as the client is configured.
    pub fn checksum(mut self, algorithm: impl Into<Option<ChecksumAlgorithm>>) -> Job {
        self.settings.checksum = Some(algorithm.into());
        self
    }

    /// How objects are written.
    pub fn options(mut self, options: PutOptions) -> Job {
        self.settings.options = options;
        self
    }

    /// Each uploaded object's media type by its key, where the options name none.
    pub fn content_type_by_key(mut self, media_type: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Job {
        self.settings.media_types = Some(Arc::new(media_type));
        self
    }

    /// Where a copy takes content type and the like and metadata from.
    pub fn metadata_directive(mut self, directive: CopyDirective) -> Job {
        self.settings.metadata = directive;
        self
    }

    /// Where a copy takes its tags from.
    pub fn tagging_directive(mut self, directive: CopyDirective) -> Job {
        self.settings.tagging = directive;
        self
    }

    /// Only keys after the one and up to the other, both relative to their places: one of several jobs that share the
    /// work. A name that is given is not held against it.
    pub fn range(mut self, after: Option<String>, until: Option<String>) -> Job {
        self.settings.range = Range { after, until };
        self
    }

    /// Counts bytes and objects as they arrive.
    pub fn progress(mut self, progress: Progress) -> Job {
        self.settings.progress = progress;
        self
    }

    /// Writes down in this file what is done and what is half done, and goes on from what it says: items that an earlier
    /// run finished are not looked at again, and large ones go on where they stopped. What is half done then stays when the
    /// job is stopped. When it ends with nothing failed, the file is removed, and what is left over of items that are gone.
    pub fn state(mut self, state: State) -> Job {
        self.settings.state = Some(state);
        self
    }

    /// What would never end, or harm what it is to copy.
    fn refuse(&self) -> Result<(), Failure> {
        let (Place::Bucket(from), Place::Bucket(to)) = (&self.from, &self.to) else { return Ok(()) };
        let Some(below) = to.prefix.strip_prefix(&from.prefix).filter(|below| !below.is_empty()) else { return Ok(()) };
        let finds_copies = self.settings.filter.wants(&format!("{below}x"), None, None);
        if self.names.is_some() || !from.may_be(to) || !finds_copies {
            return Ok(());
        }
        Err(Failure::Refused(format!(
            "s3://{}/{} lies within s3://{}/{}: what is copied would be found, and copied again; copy it to a place \
             outside, or exclude it",
            to.name, to.prefix, from.name, from.prefix
        )))
    }

    /// Does it, inside a tokio runtime. Dropped, it stops what is in flight and leaves nothing half done.
    pub async fn run(self, report: &mut dyn Report) -> Summary {
        let started = Instant::now();
        let mut summary = drive::run(self, report).await;
        summary.elapsed = started.elapsed();
        summary
    }
}

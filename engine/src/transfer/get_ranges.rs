//! GET of many ranges of one object or of many: what lies near is fetched together, and cut apart without a copy.
//!
//! [`join_ranges`] plans before anything is sent. Each request is then one of many, as those of `get_many`; of one
//! key they must all meet the same version of the object, which the first answer decides ([`Pin`]).

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use tracing::Instrument;

use super::Engine;
use super::checksum::{Sizes, Unverified, Verified};
use super::discover::beyond_the_end;
use super::get::{Object, incomplete};
use super::get_item::GetItem;
use super::getter::Getter;
use super::head::ObjectInfo;
use super::many::{Items, Outcomes, Worker, start};
use super::part::reserve;
use super::read_options::{ReadOptions, read_methods, version_method};
use super::request::Subject;
use super::version::Pin;
use crate::error::Result;
use crate::metrics::Progress;
use crate::pace::MemoryPermit;
use crate::plan::{JoinedRanges, join_ranges};

/// GETs of ranges that have not been sent; made by [`Client::get_ranges`](crate::Client::get_ranges).
#[must_use = "nothing is sent until a destination is chosen"]
pub struct GetRanges {
    engine: Arc<Engine>,
    bucket: String,
    max_gap: u64,
    progress: Option<Progress>,
    options: ReadOptions,
}

read_methods!(GetRanges);
version_method!(GetRanges, this => this.options.version_id);

impl GetRanges {
    pub(crate) fn new(engine: Arc<Engine>, bucket: String) -> GetRanges {
        GetRanges { engine, bucket, max_gap: 0, progress: None, options: ReadOptions::default() }
    }

    /// Ranges of one object with at most so many bytes between them are fetched by one request, up to the
    /// length of a part; the bytes in between are dropped. Otherwise 0: only ranges that touch or overlap are.
    pub fn max_gap(mut self, bytes: u64) -> GetRanges {
        self.max_gap = bytes;
        self
    }

    /// Counts the bytes that were asked for as they arrive, and each range as an object.
    pub fn progress(mut self, progress: Progress) -> GetRanges {
        self.progress = Some(progress);
        self
    }

    /// Each range, by key, into memory that the engine owns, as they finish: in any order, overlapping or equal
    /// ones too. A range that reaches beyond its object's end is cut there; one that begins beyond it is an error;
    /// one without bytes has none, without a request, and without a look at whether the object exists.
    ///
    /// Ranges that came together share their memory, which is free again when the last of them is dropped. All
    /// ranges of a key are of one version of its object: those that meet another are errors of kind
    /// [`Precondition`](crate::ErrorKind::Precondition). They are not compared with the object's checksum.
    ///
    /// # Errors
    /// At once, where the bucket's name cannot exist. Each range's own are in the stream; one range's failure
    /// stops none but those that were fetched with it.
    pub fn buffers(self, ranges: Vec<(String, Range<u64>)>) -> Result<Outcomes<Object>> {
        let GetRanges { engine, bucket, max_gap, progress, options } = self;
        let (attached, conditions) = options.split();
        let bucket = Subject::bucket(&engine, "get", &bucket)?.with(attached);
        let joined = join_ranges(&ranges, max_gap, engine.pace.part_size());
        let mut ready = VecDeque::with_capacity(joined.empty().len());
        for &index in joined.empty() {
            let nothing = reserve(&engine, 0).map_err(|error| bucket.explain(error))?.freeze();
            let body = nothing.map_err(|error| bucket.explain(incomplete(&error)))?;
            if let Some(progress) = &progress {
                progress.add_object();
            }
            ready.push_back((index, Ok(Object { body, info: ObjectInfo::default() })));
        }
        let requests = joined.requests().len();
        let workers = engine.pace.workers(requests);
        let pins = (0..joined.groups()).map(|_| Pin::default()).collect();
        let plan = Arc::new(Plan { ranges, joined, pins });
        let (conditions, sizes) = (Arc::new(conditions), Arc::new(Sizes::mostly_small()));
        let crew = start(Items::known(0..requests), workers, || Ranger {
            plan: Arc::clone(&plan),
            progress: progress.clone(),
            getter: Getter {
                engine: Arc::clone(&engine),
                bucket: bucket.clone(),
                progress: None,
                conditions: Arc::clone(&conditions),
                // Nobody is asked for the checksum of a range.
                verify: false,
                sizes: Arc::clone(&sizes),
                kept: None,
            },
        });
        Ok(Outcomes::several(crew, move |request| plan.joined.members(request).to_vec(), ready))
    }
}

struct Plan {
    ranges: Vec<(String, Range<u64>)>,
    joined: JoinedRanges,
    /// Of each key.
    pins: Vec<Pin>,
}

struct Ranger {
    plan: Arc<Plan>,
    progress: Option<Progress>,
    getter: Getter,
}

impl Worker<usize, Vec<(usize, Result<Object>)>> for Ranger {
    async fn work(&mut self, request: usize) -> (Result<Vec<(usize, Result<Object>)>>, Option<MemoryPermit>) {
        let plan = Arc::clone(&self.plan);
        let joined = &plan.joined.requests()[request];
        let members = plan.joined.members(request);
        let key = &plan.ranges[members[0]].0;
        // Alone, a range is counted as it arrives; of several, what lies between them is nobody's.
        self.getter.progress = self.progress.clone().filter(|_| members.len() == 1);
        let item = GetItem::new(key).range(joined.range.clone());
        let span = self.getter.bucket.span_of(key);
        let reading = self.getter.buffer(item, Some(&plan.pins[joined.group]));
        let (mut object, permit) = match reading.instrument(span).await {
            Ok(read) => read,
            Err(error) => return (Ok(members.iter().map(|&index| (index, Err(error.clone()))).collect()), None),
        };
        object.info.verified = Verified::Not(Unverified::Range);
        if let &[index] = members {
            return (Ok(vec![(index, Ok(object))]), Some(permit));
        }
        let cut = |index: usize| {
            let asked = &plan.ranges[index].1;
            let body = cut(&object, joined.range.start, asked).map_err(|error| {
                let error = error.with_part(|| format!("bytes {}-{}", asked.start, asked.end.saturating_sub(1)));
                error.with_context("get", &self.getter.bucket.bucket, key)
            })?;
            if let Some(progress) = &self.progress {
                let length = body.len() as u64;
                progress.expect(length);
                progress.add_bytes(length);
                progress.add_object();
            }
            Ok(Object { body, info: object.info.clone() })
        };
        (Ok(members.iter().map(|&index| (index, cut(index))).collect()), Some(permit))
    }

    fn retire(self) {
        self.getter.retire();
    }
}

/// The bytes of `asked` out of what was fetched from `start` on. What the object does not have is the error that
/// the server gives where it is asked for that alone.
fn cut(fetched: &Object, start: u64, asked: &Range<u64>) -> Result<crate::Buffer> {
    let size = fetched.info.size;
    if asked.start >= size && asked.start > 0 {
        return Err(beyond_the_end(size));
    }
    // The casts are exact: what was fetched is in memory.
    let (from, to) = (asked.start - start, asked.end.min(size) - start);
    Ok(fetched.body.slice(from as usize..to as usize))
}

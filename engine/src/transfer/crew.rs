//! The crew of one download: workers that take parts from one queue, each with the place where its
//! bytes go.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::file::FileWriter;
use super::part::{Begun, Sink, Source};
use super::workers::run_together;
use crate::buffer::Slot;
use crate::error::Result;
use crate::net::Connection;
use crate::plan::{DownloadParts, PartsOfGaps};

/// Where a download's bytes go.
pub(super) enum Destination {
    /// The slot over what has not been handed out yet.
    Memory(Slot),
    File(FileWriter),
    Discard,
}

/// Which parts there are beside the first.
pub(super) enum Rest {
    /// Those of one range.
    Span(DownloadParts),
    /// Those that an earlier download left to do.
    Gaps(PartsOfGaps),
}

impl Rest {
    fn next(&mut self) -> Option<Range<u64>> {
        match self {
            Rest::Span(parts) => parts.next(),
            Rest::Gaps(parts) => parts.next(),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Rest::Span(parts) => parts.len(),
            Rest::Gaps(parts) => parts.left(),
        }
    }
}

/// The parts that no worker has taken yet.
pub(super) struct Parts {
    pub(super) rest: Rest,
    pub(super) destination: Destination,
    pub(super) origin: u64,
}

impl Parts {
    fn take(&mut self) -> Option<(Range<u64>, Sink)> {
        let range = self.rest.next()?;
        let sink = self.sink(&range);
        Some((range, sink))
    }

    /// Of the part that the first answer brings.
    pub(super) fn first_sink(&mut self, range: &Range<u64>) -> Sink {
        let before = range.start - self.origin;
        match &mut self.destination {
            Destination::Memory(slot) if before > 0 => {
                let front = slot.split_to(before as usize);
                Sink::Memory(std::mem::replace(slot, front))
            }
            _ => self.sink(range),
        }
    }

    /// Parts are handed out in order, so the part's slot is the front of what is left.
    fn sink(&mut self, range: &Range<u64>) -> Sink {
        match &mut self.destination {
            Destination::Memory(slot) => Sink::Memory(slot.split_to((range.end - range.start) as usize)),
            Destination::File(writer) => Sink::File(writer.clone(), self.origin),
            Destination::Discard => Sink::Discard,
        }
    }
}

/// Receives every part: the first, whose answer has begun, and the others.
pub(super) async fn receive(
    source: &Arc<Source>,
    parts: Parts,
    begun: (Range<u64>, Sink, Begun),
    kept: &mut Option<Connection>,
) -> Result<()> {
    let others = source.engine.pace.workers(parts.rest.len().saturating_add(1)) - 1;
    let parts = Arc::new(Mutex::new(parts));
    // Boxed: whoever waits for a download should not carry a worker too.
    let lead = Box::pin(work(Arc::clone(source), Arc::clone(&parts), Some(begun), kept.take()));
    let crew = (0..others).map(|_| work(Arc::clone(source), Arc::clone(&parts), None, None));
    run_together(lead, crew).await?;
    Ok(())
}

/// One worker: part after part, on one connection for as long as it lasts.
async fn work(
    source: Arc<Source>,
    parts: Arc<Mutex<Parts>>,
    begun: Option<(Range<u64>, Sink, Begun)>,
    mut kept: Option<Connection>,
) -> Result<()> {
    if let Some((range, sink, begun)) = begun {
        source.fetch(range, sink, Some(begun), &mut kept).await?;
    }
    loop {
        let taken = parts.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((range, sink)) = taken else { break };
        source.fetch(range, sink, None, &mut kept).await?;
    }
    source.engine.put_back(&source.subject, kept);
    Ok(())
}

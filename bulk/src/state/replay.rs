//! Reading a resume file: what of it counts, and what that adds up to.
//!
//! A file is read from its beginning to the first line that is none. That line and all behind it are not believed,
//! whether a crash tore it or a disk changed it: what is left is a beginning of the file's history, and every beginning is
//! a state to go on from. At worst something is moved again.
//!
//! One more cut, after the machine went down rather than the process: files that were written shortly before may be empty
//! now, and parts of temporaries too, although the resume file speaks of them. Then all after the last `synced` is cut.

use std::io::{self, BufRead, Read as _};

use super::finished::{Count, FinishedSet};
use super::history::History;
use super::record::{Job, LONGEST_LINE, Record, read_line};

/// What a file was found to hold.
pub(super) struct Replayed {
    /// The first line; `None` where there is not even that.
    pub(super) job: Option<Job>,
    /// The length of what counts, in bytes.
    pub(super) length: u64,
    pub(super) history: History,
    /// Digests by bucket, for the second pass.
    pub(super) count: Count,
    /// How many items are finished.
    pub(super) finished: u64,
    /// The process that took the file up last.
    pub(super) pid: Option<u32>,
    /// The boot of the machine that it ran in.
    pub(super) boot: Option<String>,
    /// Up to where all is known to be on disk.
    pub(super) synced: u64,
}

/// Reads a file up to `limit` bytes.
///
/// # Errors
/// Those of reading; nothing that stands in the file is one.
pub(super) fn replay(file: &mut impl BufRead, limit: u64) -> io::Result<Replayed> {
    let mut replayed = Replayed {
        job: None,
        length: 0,
        history: History::default(),
        count: Count::new(),
        finished: 0,
        pid: None,
        boot: None,
        synced: 0,
    };
    each_record(file, limit, |record, length| {
        match (&record, replayed.length) {
            (Record::Job(job), 0) => {
                replayed.job = Some(job.clone());
                replayed.synced = length;
            }
            // Something else: it is no resume file, or one whose beginning is damaged.
            (_, 0) => return false,
            (Record::Opened { pid, boot }, _) => (replayed.pid, replayed.boot) = (Some(*pid), boot.clone()),
            (Record::Done { items, .. }, _) => {
                items.iter().for_each(|digest| replayed.count.add(digest));
                replayed.finished += items.len() as u64;
            }
            (Record::Synced { until }, length) if *until <= length => replayed.synced = replayed.synced.max(*until),
            _ => {}
        }
        replayed.history.apply(&record);
        replayed.length += length;
        true
    })?;
    Ok(replayed)
}

/// The second pass, over the length that the first one found.
pub(super) fn finished(file: &mut impl BufRead, length: u64, count: Count) -> io::Result<FinishedSet> {
    let mut filling = count.fill();
    each_record(file, length, |record, _| {
        if let Record::Done { items, .. } = record {
            items.iter().for_each(|digest| filling.add(digest));
        }
        true
    })?;
    Ok(filling.finish())
}

/// Shows each record with the length of its line, until there is none or `show` says that it is enough.
pub(super) fn each_record(
    file: &mut impl BufRead,
    limit: u64,
    mut show: impl FnMut(Record, u64) -> bool,
) -> io::Result<()> {
    let mut line = Vec::new();
    let mut left = limit;
    loop {
        line.clear();
        let read = file.by_ref().take(left.min(LONGEST_LINE as u64)).read_until(b'\n', &mut line)? as u64;
        left -= read;
        let Some(record) = read_line(&line) else { return Ok(()) };
        if !show(record, read) {
            return Ok(());
        }
    }
}

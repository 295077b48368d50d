//! The resume file of a job: what is finished, what is half done and where its bytes are, so that a job which was
//! interrupted goes on where it stopped.
//!
//! One file, written at its end alone. Every event of the job is a line (`record`) that is handed to the kernel before the
//! call returns: killed at any moment, a process has lost nothing that it told here, and a line that was torn is cut when
//! the file is opened (`replay`). What the machine itself forgets when it goes down is another matter: every half minute
//! all that was written is synced, and after a restart only what was told before that is believed.
//!
//! Owns the format, the lock (one process a file) and the promise that a file is of one job. Refuses another job's file,
//! one that is in use, and what is no resume file, which it leaves untouched. Knows nothing of how items move: the engine
//! tells it of temporaries, uploads and parts (`resume`), the job of finished items.
//!
//! Memory: 8 bytes for each item that earlier runs finished (`finished`), and the half-done items (`history`), of which
//! there are no more than transfers in flight and failed ones. Nothing for what this run finishes. A file that is mostly
//! out of date is written anew when it is opened (`file`). [ADR 17](../../../docs/adr/0017-resume-state.md) has the reasons.

mod error;
mod file;
mod finished;
mod history;
#[allow(unreachable_pub)] // Public where it is fuzzed, built alone.
mod record;
mod replay;
mod resume;

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use crc_fast::CrcAlgorithm;

use self::file::{Opened, Opener, boot, sync_file_system};
use self::finished::{Digester, FinishedSet};
use self::history::{Half, History};
use self::record::{Job, Record, VERSION, write_line};

use crate::entry::Entry;

pub use self::error::StateError;

/// How much may be lost when the machine goes down: what was written since the last sync and during it. The kernel itself
/// holds nothing back for longer than some 30 s (`vm.dirty_expire_centisecs`), so that a sync finds little to do.
const SYNC_EVERY: Duration = Duration::from_secs(30);

/// What a resume file is of. Going on takes the same in every part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobName {
    /// `cp`, `sync`.
    pub verb: String,
    /// Where from: an S3 address or an absolute path.
    pub source: String,
    /// Where to.
    pub destination: String,
    /// What else decides which items there are and what becomes of them, always written in the same way.
    pub options: String,
    /// The local folder that is written to, if any.
    pub landing: Option<PathBuf>,
}

/// How much of a job earlier runs did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resumed {
    /// Items that are finished.
    pub finished: u64,
    /// Items that are half done.
    pub half_done: usize,
}

/// Something half done that is stored somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Leftover {
    /// A file with a part of a download.
    Temporary {
        /// The item's name in the job.
        key: String,
        /// The file.
        path: PathBuf,
    },
    /// A multipart upload that is not completed.
    Upload {
        /// The item's name in the job.
        key: String,
        /// The bucket it is in.
        bucket: String,
        /// The key that the object would have.
        target: String,
        /// The upload.
        upload_id: String,
    },
}

/// The resume file of one job, open and locked until the last clone is dropped. Calls take microseconds and may come
/// from any thread; only [`open`](State::open) and [`complete`](State::complete) wait for the disk.
#[derive(Clone)]
pub struct State {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    landing: Option<PathBuf>,
    digester: Digester,
    /// Of the job, in the names of its temporaries; the same for as long as the file is there.
    number: u32,
    finished: FinishedSet,
    resumed: Resumed,
    told: Mutex<Told>,
    writing: Mutex<Writing>,
    /// A thread has the file system sync.
    syncing: AtomicBool,
}

/// What happened, in the order in which it stands in the file.
struct Told {
    history: History,
    /// Lines that are not written yet.
    pending: Vec<u8>,
}

struct Writing {
    file: File,
    /// In bytes.
    length: u64,
    /// Lines on their way, kept for their memory.
    lines: Vec<u8>,
    /// Why nothing is written any more.
    trouble: Option<io::Error>,
    synced: Instant,
}

impl State {
    /// Opens the file of a job, or makes it; waits for the disk.
    ///
    /// # Errors
    /// [`StateError`]: the file is another job's, is in use, is no resume file, or cannot be read or written.
    pub fn open(path: &Path, name: &JobName) -> Result<State, StateError> {
        let boot = boot();
        let seed: [u8; 16] = std::array::from_fn(|_| fastrand::u8(..));
        let job = Job {
            wirespeed_state: VERSION,
            verb: name.verb.clone(),
            source: name.source.clone(),
            destination: name.destination.clone(),
            options: name.options.clone(),
            seed: STANDARD_NO_PAD.encode(seed),
        };
        let opener = Opener { path, job, landing: name.landing.as_deref(), boot: boot.clone() };
        let Opened { file, length, job, history, finished } = opener.open()?;
        let resumed = Resumed { finished: finished.len() as u64, half_done: history.len() };
        let writing = Writing { file, length, lines: Vec::new(), trouble: None, synced: Instant::now() };
        let shared = Shared {
            path: path.to_owned(),
            landing: name.landing.clone(),
            digester: Digester::new(job.seed.as_bytes()),
            number: crc_fast::checksum(CrcAlgorithm::Crc32IsoHdlc, job.seed.as_bytes()) as u32,
            finished,
            resumed,
            told: Mutex::new(Told { history, pending: Vec::new() }),
            writing: Mutex::new(writing),
            syncing: AtomicBool::new(false),
        };
        let state = State { shared: Arc::new(shared) };
        state.tell(Record::Opened { pid: std::process::id(), boot });
        match state.trouble() {
            Some(source) => Err(StateError::Io { doing: "write", path: path.to_owned(), source }),
            None => Ok(state),
        }
    }

    /// The job's number, the same for as long as the file is there: what [`FileItem::job`](wirespeed::FileItem::job)
    /// is given.
    pub fn number(&self) -> u32 {
        self.shared.number
    }

    /// What earlier runs did.
    pub fn resumed(&self) -> Resumed {
        self.shared.resumed
    }

    /// Whether an earlier run finished this item as it is now. Of what this run finishes nothing is known here.
    pub fn is_finished(&self, item: &Entry) -> bool {
        self.shared.resumed.finished > 0 && self.shared.finished.contains(&self.shared.digester.digest(item))
    }

    /// The item is finished: its bytes are where they belong. What was half done of it is over.
    pub fn finished(&self, item: &Entry) {
        let digest = self.shared.digester.digest(item);
        self.tell_with(|history| Record::Done { items: vec![digest], id: history.id(&item.key) });
    }

    /// The item failed, and is tried again when the job goes on. The reason is for whoever reads the file.
    pub fn failed(&self, key: &str, why: &str) {
        self.tell(Record::Failed { key: key.to_owned(), why: why.to_owned() });
    }

    /// What is half done now and stored somewhere, by name.
    pub fn leftovers(&self) -> Vec<Leftover> {
        let told = self.shared.told();
        let leftover = |(key, half): (&str, &Half)| match half {
            Half::Download(half) => Leftover::Temporary { key: key.to_owned(), path: half.began.temporary.clone() },
            Half::Upload(half) => Leftover::Upload {
                key: key.to_owned(),
                bucket: half.bucket.clone(),
                target: half.target.clone(),
                upload_id: half.upload_id.clone(),
            },
        };
        told.history.halves().into_iter().map(leftover).collect()
    }

    /// Why the file is not written any more, if that is so: the job goes on, but could not be taken up where it is now.
    pub fn trouble(&self) -> Option<io::Error> {
        let writing = self.shared.writing();
        writing.trouble.as_ref().map(|error| io::Error::new(error.kind(), error.to_string()))
    }

    /// Removes the file: the job ended and nothing is left to do. See [`leftovers`](Self::leftovers) first.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn complete(self) -> Result<(), StateError> {
        let Shared { path, .. } = &*self.shared;
        std::fs::remove_file(path).map_err(|source| StateError::Io { doing: "remove", path: path.clone(), source })
    }

    fn tell(&self, record: Record) {
        self.tell_with(|_| record);
    }

    /// Appends the record that `make` makes of what is half done.
    fn tell_with(&self, make: impl FnOnce(&mut History) -> Record) {
        {
            let mut told = self.shared.told();
            let Told { history, pending } = &mut *told;
            let record = make(history);
            history.apply(&record);
            write_line(pending, &record);
        }
        self.shared.write_out();
        self.sync_if_due();
    }

    /// Has everything synced that was told so far, on a thread of its own, if it is time.
    fn sync_if_due(&self) {
        let shared = &self.shared;
        let Some(landing) = shared.landing.clone() else { return };
        let until = match shared.writing.try_lock() {
            Ok(writing) if writing.synced.elapsed() >= SYNC_EVERY => writing.length,
            _ => return,
        };
        if shared.syncing.swap(true, Ordering::AcqRel) {
            return;
        }
        let state = self.clone();
        let synced = std::thread::Builder::new().name("wirespeed-sync".to_owned()).spawn(move || {
            if sync_file_system(&landing).is_ok() {
                state.tell(Record::Synced { until });
                let mut writing = state.shared.writing();
                writing.synced = Instant::now();
                // Not being synced, it says less than it could; nothing is wrong.
                let _ = writing.file.sync_data();
            }
            state.shared.syncing.store(false, Ordering::Release);
        });
        if synced.is_err() {
            shared.syncing.store(false, Ordering::Release);
        }
    }
}

impl Shared {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what is pending. Who finds somebody else writing leaves it to them: they look again when they are done. So
    /// a disk that is slow holds one thread, and lines that come meanwhile go in one write.
    fn write_out(&self) {
        loop {
            let mut writing = match self.writing.try_lock() {
                Ok(writing) => writing,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            writing.take_and_write(self);
            drop(writing);
            if self.told().pending.is_empty() {
                return;
            }
        }
    }
}

impl Writing {
    fn take_and_write(&mut self, shared: &Shared) {
        self.lines.clear();
        std::mem::swap(&mut self.lines, &mut shared.told().pending);
        // After a line that is torn, no line may follow: all behind it would not be believed.
        if self.trouble.is_some() || self.lines.is_empty() {
            return;
        }
        match self.file.write_all(&self.lines) {
            Ok(()) => self.length += self.lines.len() as u64,
            Err(error) => self.trouble = Some(error),
        }
    }
}

#[cfg(test)]
mod tests;

//! The file itself: opened and locked, read, cut, made smaller, and written to.
//!
//! The lock is the kernel's (`flock`), so that it goes with the process, however that ends. A file that is made smaller is
//! written anew beside the old one and takes its name: so who has locked a file must see that it still has its name.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::StateError;
use super::finished::FinishedSet;
use super::history::History;
use super::record::{DIGESTS_A_LINE, Digest, Job, Record, VERSION, write_line};
use super::replay::{Replayed, each_record, finished, replay};

/// Smaller files are left as they are, in bytes.
const WORTH_COMPACTING: u64 = 1 << 20;

/// The bytes of a finished item in a compacted file: ten, in base64, and its share of a line.
const COMPACT_ITEM: u64 = 14;

/// A file that is read and locked, and ready to be written to.
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) length: u64,
    pub(super) job: Job,
    pub(super) history: History,
    pub(super) finished: FinishedSet,
}

/// Who opens a file.
pub(super) struct Opener<'a> {
    pub(super) path: &'a Path,
    /// The job; its seed is for a file that is new.
    pub(super) job: Job,
    /// The folder that the job writes to, whose file system is synced before the file is written anew.
    pub(super) landing: Option<&'a Path>,
    /// The boot of the machine.
    pub(super) boot: Option<String>,
}

impl Opener<'_> {
    pub(super) fn open(self) -> Result<Opened, StateError> {
        let file = self.lock()?;
        let length = file.metadata().map_err(|source| self.failed("read", source))?.len();
        let mut replayed = self.read(&file, length)?;
        if let Some(found) = &replayed.job {
            self.same_job(found)?;
        } else if length > 0 {
            return Err(StateError::Foreign { path: self.path.to_owned(), version: None });
        }
        // Uploads are with the server; what this machine wrote may have gone down with it.
        if self.landing.is_some()
            && replayed.length > replayed.synced
            && (self.boot.is_none() || replayed.boot != self.boot)
        {
            replayed = self.read(&file, replayed.synced)?;
        }
        let (file, length) = self.tidy(file, length, &replayed)?;
        let finished = match replayed.finished {
            0 => FinishedSet::default(),
            _ => finished(&mut self.rewound(&file)?, length, replayed.count)
                .map_err(|source| self.failed("read", source))?,
        };
        let job = replayed.job.unwrap_or(self.job);
        Ok(Opened { file, length, job, history: replayed.history, finished })
    }

    /// The file, locked, and still the one that has the name.
    fn lock(&self) -> Result<File, StateError> {
        loop {
            let opened = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(self.path);
            let file = opened.map_err(|source| self.failed("open", source))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(std::fs::TryLockError::WouldBlock) => {
                    let length = file.metadata().map_or(0, |metadata| metadata.len());
                    let pid = self.read(&file, length).ok().and_then(|replayed| replayed.pid);
                    return Err(StateError::Locked { path: self.path.to_owned(), pid });
                }
                Err(std::fs::TryLockError::Error(source)) => return Err(self.failed("lock", source)),
            }
            let here = file.metadata().map_err(|source| self.failed("open", source))?;
            match std::fs::metadata(self.path) {
                Ok(named) if (named.dev(), named.ino()) == (here.dev(), here.ino()) => return Ok(file),
                // Written anew, or removed at the end of its job, between our opening and our locking it.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(self.failed("open", source)),
            }
        }
    }

    fn read(&self, file: &File, limit: u64) -> Result<Replayed, StateError> {
        replay(&mut self.rewound(file)?, limit).map_err(|source| self.failed("read", source))
    }

    fn rewound<'a>(&self, mut file: &'a File) -> Result<BufReader<&'a File>, StateError> {
        file.seek(SeekFrom::Start(0)).map_err(|source| self.failed("read", source))?;
        Ok(BufReader::with_capacity(256 << 10, file))
    }

    fn same_job(&self, found: &Job) -> Result<(), StateError> {
        if found.wirespeed_state != VERSION {
            return Err(StateError::Foreign { path: self.path.to_owned(), version: Some(found.wirespeed_state) });
        }
        let named = [
            ("verb", &found.verb, &self.job.verb),
            ("source", &found.source, &self.job.source),
            ("destination", &found.destination, &self.job.destination),
            ("list of options", &found.options, &self.job.options),
        ];
        match named.into_iter().find(|(_, found, wanted)| found != wanted) {
            Some((what, found, wanted)) => Err(StateError::OtherJob {
                path: self.path.to_owned(),
                difference: format!("its {what} is `{found}`, not `{wanted}`"),
            }),
            None => Ok(()),
        }
    }

    /// Cuts what does not count, and writes a file anew that has no first line yet, or that this more than halves.
    fn tidy(&self, file: File, length: u64, replayed: &Replayed) -> Result<(File, u64), StateError> {
        let Replayed { job, length: counts, .. } = replayed;
        let mut live = Vec::new();
        replayed.history.records().iter().for_each(|record| write_line(&mut live, record));
        let needed = live.len() as u64 + replayed.finished * COMPACT_ITEM;
        if job.is_none() || *counts > WORTH_COMPACTING && needed < counts / 2 {
            return self.write_anew(&file, replayed, &live);
        }
        if *counts < length {
            file.set_len(*counts).map_err(|source| self.failed("write", source))?;
        }
        Ok((file, *counts))
    }

    /// A file is never seen with half of its first line: so one that is not empty and has none is somebody else's.
    fn write_anew(&self, old: &File, replayed: &Replayed, live: &[u8]) -> Result<(File, u64), StateError> {
        let failed = |source| self.failed("write", source);
        let path = beside(self.path);
        // Nobody else writes it: who would, has not locked the file itself.
        let opened = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&path);
        let new = opened.map_err(failed)?;
        new.set_len(0).map_err(failed)?;
        match new.try_lock() {
            Ok(()) => {}
            Err(error) => return Err(self.failed("lock", error.into())),
        }
        if let Some(landing) = self.landing {
            sync_file_system(landing).map_err(failed)?;
        }
        let mut writer = Anew { to: BufWriter::new(&new), line: Vec::new(), items: Vec::new(), length: 0 };
        let job = replayed.job.as_ref().unwrap_or(&self.job);
        writer.record(&Record::Job(job.clone())).map_err(failed)?;
        let mut result = Ok(());
        let copied = each_record(&mut self.rewound(old)?, replayed.length, |record, _| {
            if let Record::Done { items, .. } = record {
                result = items.iter().try_for_each(|digest| writer.item(*digest));
            }
            result.is_ok()
        });
        copied.and(result).and_then(|()| writer.items()).map_err(failed)?;
        writer.to.write_all(live).map_err(failed)?;
        writer.length += live.len() as u64;
        let synced = writer.length;
        writer.record(&Record::Synced { until: synced }).map_err(failed)?;
        let length = writer.length;
        writer.to.flush().map_err(failed)?;
        drop(writer);
        new.sync_all().and_then(|()| std::fs::rename(&path, self.path)).map_err(failed)?;
        Ok((new, length))
    }

    fn failed(&self, doing: &'static str, source: io::Error) -> StateError {
        StateError::Io { doing, path: self.path.to_owned(), source }
    }
}

/// A file that is written anew.
struct Anew<'a> {
    to: BufWriter<&'a File>,
    line: Vec<u8>,
    items: Vec<Digest>,
    length: u64,
}

impl Anew<'_> {
    fn record(&mut self, record: &Record) -> io::Result<()> {
        self.line.clear();
        write_line(&mut self.line, record);
        self.length += self.line.len() as u64;
        self.to.write_all(&self.line)
    }

    fn item(&mut self, digest: Digest) -> io::Result<()> {
        self.items.push(digest);
        if self.items.len() < DIGESTS_A_LINE { Ok(()) } else { self.items() }
    }

    fn items(&mut self) -> io::Result<()> {
        let items = std::mem::take(&mut self.items);
        if items.is_empty() { Ok(()) } else { self.record(&Record::Done { items, id: None }) }
    }
}

/// The name that a file is written anew under.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".anew");
    path.with_file_name(name)
}

/// Has the file system that holds `folder`, or the nearest folder above it that exists, write all that it holds back.
pub(super) fn sync_file_system(folder: &Path) -> io::Result<()> {
    let folder = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    #[cfg(target_os = "linux")]
    nix::unistd::syncfs(&File::open(folder)?)?;
    #[cfg(not(target_os = "linux"))]
    {
        let _ = folder;
        nix::unistd::sync();
    }
    Ok(())
}

/// What is another each time the machine starts; `None` where it does not say.
pub(super) fn boot() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(boot.trim_end().to_owned()).filter(|boot| !boot.is_empty())
}

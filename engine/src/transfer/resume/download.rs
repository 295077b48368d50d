//! A download into a file that goes on where an earlier run stopped.
//!
//! What is missing of the temporary is asked for, and nothing else, pinned to the version that the rest came from.
//! The rest is read back beside the requests, on blocking threads, since the checksum is one of the whole object.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::metrics::Progress;
use crate::net::Connection;
use crate::plan::{PartsOfGaps, gaps};
use crate::transfer::Engine;
use crate::transfer::checksum::{CHECKSUM_MODE, Check, Sizes, Unverified};
use crate::transfer::crew::{self, Destination, Parts, Rest};
use crate::transfer::discover::open;
use crate::transfer::file::{Appearance, FileAttributes, FileWriter, PartialFile, on_blocking_thread};
use crate::transfer::get::Opened;
use crate::transfer::get_many::Attributes;
use crate::transfer::head::{ObjectInfo, head_as, parse_http_date};
use crate::transfer::opening::{Opening, Wanted};
use crate::transfer::options::{Borrowed, Fields};
use crate::transfer::part::Source;
use crate::transfer::request::Subject;
use crate::transfer::version::{Pin, Version, changed};

/// How much of a temporary is read back at a time.
const READ_BACK: usize = 1 << 20;

/// Is told how a download into a file proceeds. Called between the requests of the transfer, so it should write
/// down what it is told and return.
pub trait DownloadLog: Send + Sync {
    /// A temporary has been made, and nothing written to it; `partial` has no ranges yet. What was told of this
    /// download before is void.
    fn began(&self, partial: &PartialDownload);

    /// These bytes of the object are in the temporary, at the same offset: the kernel has them.
    fn wrote(&self, range: Range<u64>);
}

/// What a download left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialDownload {
    /// The file that holds what has arrived, beside the one that it is to become.
    pub temporary: PathBuf,
    /// The size of the whole object, in bytes.
    pub size: u64,
    /// The entity tag of the version that is being read, with its quotes.
    pub etag: Option<String>,
    /// Its version id, where the bucket keeps versions.
    pub version_id: Option<String>,
    /// When it was last written, as the server says it (an HTTP date).
    pub last_modified: Option<String>,
    /// The bytes that have arrived, in any order; they may overlap.
    pub ranges: Vec<Range<u64>>,
}

/// How a download into a file is to survive its process; see [`Get::resume`](crate::Get::resume).
#[derive(Clone)]
pub struct DownloadResume {
    pub(crate) log: Arc<dyn DownloadLog>,
    left: Option<Arc<PartialDownload>>,
}

impl DownloadResume {
    /// Tells `log` how the download proceeds.
    pub fn new(log: Arc<dyn DownloadLog>) -> DownloadResume {
        DownloadResume { log, left: None }
    }

    pub(crate) fn has_left(&self) -> bool {
        self.left.is_some()
    }

    /// Goes on with what an earlier run left, as far as that still holds: the log is then told of the ranges that
    /// are added. Where it does not hold it is removed, and the download begins anew.
    #[must_use]
    pub fn from_partial(mut self, left: PartialDownload) -> DownloadResume {
        self.left = Some(Arc::new(left));
        self
    }
}

impl std::fmt::Debug for DownloadResume {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DownloadResume").field("left", &self.left).finish_non_exhaustive()
    }
}

/// How the object is opened, perhaps more than once.
pub(crate) struct Opener<'a> {
    pub(crate) engine: &'a Arc<Engine>,
    pub(crate) subject: Subject,
    pub(crate) conditions: &'a Fields,
    pub(crate) verify: bool,
    pub(crate) sizes: &'a Sizes,
    /// How large the object is, as far as the caller knows.
    pub(crate) size: Option<u64>,
    /// The entity tag that the caller knows it by.
    pub(crate) listed_etag: Option<&'a str>,
    pub(crate) progress: Option<Progress>,
}

/// The file that the object is to become.
pub(crate) struct FileTarget {
    pub(crate) path: PathBuf,
    pub(crate) appearance: Appearance,
    /// What it gets by the server's answer, before what stands in its appearance.
    pub(crate) attributes: Option<Attributes>,
}

impl FileTarget {
    fn attributes(&self, info: &ObjectInfo) -> FileAttributes {
        let told = self.attributes.as_ref().map(|of| of(info)).unwrap_or_default();
        told.or(self.appearance.attributes)
    }
}

impl Opener<'_> {
    async fn open(&self, wanted: Wanted, pin: Option<&Pin>, kept: &mut Option<Connection>) -> Result<Opened> {
        let opening = Opening {
            wanted,
            part: self.engine.pace.part_size(),
            in_order: false,
            conditions: self.conditions,
            verify: self.verify && pin.is_none(),
            pin,
            sizes: self.sizes,
            size: self.size,
            listed_etag: self.listed_etag,
        };
        // What is missing is known better here than there.
        let progress = self.progress.clone().filter(|_| pin.is_none());
        Box::pin(open(self.engine, self.subject.clone(), opening, progress, kept)).await
    }
}

/// Downloads the whole object to `target`, going on with what is left of it where that holds.
pub(crate) async fn to_file(
    opener: Opener<'_>,
    resume: &DownloadResume,
    target: FileTarget,
    kept: &mut Option<Connection>,
) -> Result<ObjectInfo> {
    if let Some(left) = &resume.left {
        let reached = left.ranges.iter().map(|range| range.end).max().unwrap_or(0);
        let (path, temporary) = (target.path.clone(), left.temporary.clone());
        let reopened = PartialFile::reopen(path, temporary, reached..=left.size, target.appearance).await;
        if let Some(file) = reopened.map_err(|error| opener.subject.explain(error))? {
            // Boxed, as what follows is: each is as large as a download.
            match Box::pin(go_on(&opener, &resume.log, left, file, &target, kept)).await {
                Err(error) if is_void(&error) => {
                    tracing::debug!(%error, "what was left of a download is of no use, it begins anew");
                }
                ended => return ended,
            }
        }
    }
    let opened = opener.open(Wanted::All, None, kept).await?;
    let appearance = Appearance { attributes: target.attributes(&opened.info), ..target.appearance };
    Box::pin(opened.into_file(target.path, appearance, Some(resume), kept)).await
}

/// Downloads what `opened` brings, and tells the log.
pub(crate) async fn begin(
    opened: Opened,
    log: &Arc<dyn DownloadLog>,
    path: PathBuf,
    appearance: Appearance,
    kept: &mut Option<Connection>,
) -> Result<ObjectInfo> {
    let subject = opened.source.subject.clone();
    let file = PartialFile::create(path, appearance).await.map_err(|error| subject.explain(error))?;
    let Version { size, etag, version_id, last_modified } = opened.source.version.clone();
    let temporary = file.temporary().to_owned();
    log.began(&PartialDownload { temporary, size, etag, version_id, last_modified, ranges: Vec::new() });
    let writer = file.writer().telling(Arc::clone(log));
    settle(file, &subject, |_| appearance.attributes, Box::pin(opened.run(Destination::File(writer), kept))).await
}

async fn go_on(
    opener: &Opener<'_>,
    log: &Arc<dyn DownloadLog>,
    left: &PartialDownload,
    file: PartialFile,
    target: &FileTarget,
    kept: &mut Option<Connection>,
) -> Result<ObjectInfo> {
    let PartialDownload { size, etag, version_id, last_modified, ranges, .. } = left.clone();
    let version = Version { size, etag, version_id, last_modified };
    let missing = gaps(size, &ranges);
    let writer = file.writer().telling(Arc::clone(log));
    let received = async {
        if version.etag.is_none() && version.version_id.is_none() && version.last_modified.is_none() {
            return Err(opener.subject.explain(changed("what is known of its version").error));
        }
        match missing.is_empty() {
            true => Box::pin(compare(opener, version, writer)).await,
            false => Box::pin(receive(opener, version, missing, writer, kept)).await,
        }
    };
    settle(file, &opener.subject, |info| target.attributes(info), received).await
}

/// Renames the file when `received` is; else keeps it, unless nobody could go on with it.
async fn settle(
    mut file: PartialFile,
    subject: &Subject,
    attributes: impl Fn(&ObjectInfo) -> FileAttributes,
    received: impl Future<Output = Result<ObjectInfo>>,
) -> Result<ObjectInfo> {
    file.keep(true);
    match received.await {
        Ok(info) => {
            file.give(attributes(&info));
            file.finish().await.map_err(|error| subject.explain(error))?;
            Ok(info)
        }
        Err(error) => {
            file.keep(!is_void(&error));
            Err(error)
        }
    }
}

/// Whether after this what has arrived is of no use: it is of another version, or not what was stored, or the object
/// is gone.
fn is_void(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Precondition | ErrorKind::Integrity | ErrorKind::NotFound)
        || error.status() == Some(416)
}

/// Nothing is missing: the object must still be the one that was read, and its checksum that of the file.
async fn compare(opener: &Opener<'_>, version: Version, writer: FileWriter) -> Result<ObjectInfo> {
    let mut headers: Borrowed<'_> = opener.conditions.borrowed();
    headers.extend(opener.verify.then_some(CHECKSUM_MODE));
    headers.extend(version.if_match().map(|etag| ("if-match", etag)));
    let mut info = head_as(opener.engine, &opener.subject, &headers).await?;
    drop(headers);
    let differs =
        |ours: &Option<String>, theirs: &Option<String>| matches!((ours, theirs), (Some(a), Some(b)) if a != b);
    let written = version.last_modified.as_deref().and_then(parse_http_date);
    if info.size != version.size
        || differs(&version.etag, &info.etag)
        || differs(&version.version_id, &info.version_id)
        || version.if_match().is_none() && written != info.last_modified
    {
        return Err(opener.subject.explain(changed("its version").error));
    }
    let check = match opener.verify {
        true => Check::known(info.checksum.take()),
        false => Check::none(Unverified::TurnedOff),
    };
    let (subject, progress) = (opener.subject.clone(), opener.progress.clone());
    let whole = vec![Range { start: 0, end: version.size }];
    let source = Arc::new(Source::new(opener.engine, subject, version, progress, check));
    read_back(Arc::clone(&source), writer, whole).await?;
    source.conclude(&mut info)?;
    if let Some(progress) = &opener.progress {
        progress.add_object();
    }
    Ok(info)
}

/// Asks for what is missing, which is something.
async fn receive(
    opener: &Opener<'_>,
    version: Version,
    mut missing: Vec<Range<u64>>,
    writer: FileWriter,
    kept: &mut Option<Connection>,
) -> Result<ObjectInfo> {
    let part = opener.engine.pace.part_size();
    let there = gaps(version.size, &missing);
    let expected = missing.iter().map(|gap| gap.end - gap.start).sum();
    let gap = missing[0].clone();
    let pin = Pin::to(version);
    let wanted = Wanted::Range(gap.start..gap.end.min(gap.start.saturating_add(part)));
    let Opened { mut source, mut info, first, .. } = opener.open(wanted, Some(&pin), kept).await?;
    let Some((first, begun)) = first else {
        return Err(opener.subject.explain(changed("its size").error));
    };
    missing[0].start = first.end;
    if let Some(progress) = &opener.progress {
        progress.expect(expected);
    }
    source.progress = opener.progress.clone();
    source.check = if opener.verify { Check::unknown() } else { Check::none(Unverified::TurnedOff) };
    let rest = Rest::Gaps(PartsOfGaps::new(missing, part));
    let mut parts = Parts { rest, destination: Destination::File(writer.clone()), origin: 0 };
    let sink = parts.first_sink(&first);
    let source = Arc::new(source);
    let received = crew::receive(&source, parts, (first, sink, begun), kept);
    let read = read_back(Arc::clone(&source), writer, there);
    source.fetch_and_ask(Box::pin(async { tokio::try_join!(received, read) })).await?;
    source.conclude(&mut info)?;
    if let Some(progress) = &opener.progress {
        progress.add_object();
    }
    Ok(info)
}

/// Sums what was in the file before, a range after the other.
async fn read_back(source: Arc<Source>, writer: FileWriter, ranges: Vec<Range<u64>>) -> Result<()> {
    let subject = source.subject.clone();
    let read = on_blocking_thread(move || {
        for range in ranges {
            if !source.check.wants_bytes() {
                break;
            }
            let mut sums = source.check.begin();
            writer.read_pieces(range.clone(), READ_BACK, |piece| sums.update(piece, &source.check))?;
            source.check.add(range.start, sums);
        }
        Ok(())
    });
    read.await.map_err(|error| subject.explain(error))
}

//! What a schedule does: one operation of the client, as a caller would write it, and what came of it. Bytes that are
//! handed out as a success are compared here, where they are.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use wirespeed::{Client, Error, FileItem, PutOptions, UploadItem, Verified};

use crate::schedule::{Draw, KIB, MIB, Operation as Op, Schedule};

pub const BUCKET: &str = "bucket";

/// Keys on one page of a listing.
pub const PAGE: u64 = 10;

/// Bytes without a pattern, of which every content is a piece.
pub static POOL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut draw = Draw::new(0);
    (0..(20 * MIB) / 8).flat_map(|_| draw.next().to_le_bytes()).collect()
});

/// What is where when a schedule begins.
pub struct Scene {
    /// The object that is read, written or copied.
    pub content: &'static [u8],
    /// What it is replaced by, where a fault does that.
    pub other: &'static [u8],
    /// What is there before something is written.
    pub old: &'static [u8],
    pub folder: tempfile::TempDir,
    replaces: bool,
    tampers: bool,
}

impl Scene {
    pub fn new(schedule: &Schedule) -> io::Result<Scene> {
        let piece = |offset: u64, size: u64| &POOL[offset as usize..][..size as usize];
        let offset = schedule.seed % (2 * MIB);
        Ok(Scene {
            content: piece(offset, schedule.size),
            other: piece(offset + 3 * MIB + 1, schedule.other_size),
            old: piece(offset + 5 * MIB + 3, 1000),
            folder: tempfile::tempdir()?,
            replaces: schedule.replaces(),
            tampers: schedule.tampers(),
        })
    }

    /// Of the object of this number, where there are many: the first is `content`.
    pub fn nth(&self, index: u64) -> &'static [u8] {
        &self.content[..self.content.len() / (index as usize + 1)]
    }

    pub fn target(&self) -> PathBuf {
        self.folder.path().join("target")
    }

    pub fn source(&self) -> PathBuf {
        self.folder.path().join("source")
    }

    pub fn many(&self, index: u64) -> PathBuf {
        self.folder.path().join("many").join(index.to_string())
    }

    /// Whether these are the bytes of one version of the object, whole.
    pub fn is_version(&self, bytes: &[u8], expected: &[u8]) -> bool {
        bytes == expected || (self.replaces && bytes == self.other)
    }

    /// Judges bytes that were handed out as a success.
    fn judge(&self, bytes: &[u8], expected: &[u8], verified: Verified, outcome: &mut Outcome) {
        outcome.succeeded += 1;
        outcome.verified = Some(verified);
        if self.is_version(bytes, expected) {
            return;
        }
        if self.tampers && matches!(verified, Verified::Not(_)) {
            outcome.unverified += 1;
            return;
        }
        let at = bytes.iter().zip(expected).position(|(got, meant)| got != meant);
        outcome.wrong.push(format!(
            "WRONG BYTES handed out as a success: {} bytes of {}, the first difference at {at:?}, {verified:?}",
            bytes.len(),
            expected.len(),
        ));
    }
}

/// What came of an operation.
#[derive(Default)]
pub struct Outcome {
    pub succeeded: usize,
    pub errors: Vec<Error>,
    /// What was broken.
    pub wrong: Vec<String>,
    /// Bytes that were changed on the way, handed out with the word that nobody verified them.
    pub unverified: usize,
    pub verified: Option<Verified>,
    /// Keys that the server would not delete.
    pub kept: Vec<String>,
}

impl Outcome {
    fn take<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        result.map_err(|error| self.errors.push(error)).ok()
    }

    /// An operation that says that it went by parts must have done so, or it tests something else.
    fn expect_parts(&mut self, parts: u64, schedule: &Schedule) {
        let whole = !schedule.operation.is_multipart() || schedule.replaces();
        let expected = if whole { 1 } else { schedule.size.div_ceil(5 * MIB) };
        if parts < expected || (!schedule.operation.is_multipart() && parts > 1) {
            self.wrong.push(format!("{parts} parts, not {expected}"));
        }
    }
}

pub async fn perform(client: &Client, schedule: &Schedule, scene: &Scene) -> Outcome {
    let mut outcome = Outcome::default();
    match schedule.operation {
        operation if operation.is_get() => get(client, schedule, scene, &mut outcome).await,
        operation if operation.is_put() => put(client, schedule, scene, &mut outcome).await,
        Op::List => list(client, schedule, &mut outcome).await,
        Op::DeleteMany => {
            let keys = (0..schedule.count).map(|index| format!("key-{index}")).collect();
            if let Some(kept) = outcome.take(client.delete_many(BUCKET, keys).await) {
                outcome.succeeded += 1;
                outcome.kept = kept.into_iter().map(|failure| failure.key).collect();
            }
        }
        Op::Head => {
            if let Some(info) = outcome.take(client.head(BUCKET, "key").await) {
                outcome.succeeded += 1;
                let size = info.size as usize;
                if size != scene.content.len() && !(scene.replaces && size == scene.other.len()) {
                    outcome.wrong.push(format!("HEAD tells {size} bytes of {}", scene.content.len()));
                }
            }
        }
        _ => {
            let mut copy = client.copy(BUCKET, "source", BUCKET, "key");
            if schedule.operation == Op::CopyByParts {
                copy = copy.multipart_threshold(0).part_size(5 * MIB);
            }
            if let Some(copied) = outcome.take(copy.await) {
                outcome.succeeded += 1;
                outcome.expect_parts(u64::from(copied.parts), schedule);
            }
        }
    }
    outcome
}

async fn get(client: &Client, schedule: &Schedule, scene: &Scene, outcome: &mut Outcome) {
    let get = client.get(BUCKET, "key");
    let keys = || (0..schedule.count).map(|index| format!("key-{index}"));
    match schedule.operation {
        Op::GetBuffer => {
            if let Some(object) = outcome.take(get.buffer().await) {
                scene.judge(&object.body, scene.content, object.info.verified, outcome);
            }
        }
        Op::GetOwned => {
            let room = scene.content.len().max(scene.other.len()) + 7;
            // A server that lies about the size may lie upwards.
            if let Some((mine, length, info)) = outcome.take(get.into_owned(vec![0_u8; room + 8000]).await) {
                scene.judge(&mine[..length as usize], scene.content, info.verified, outcome);
                if mine[length as usize..].iter().any(|&byte| byte != 0) {
                    outcome.wrong.push("bytes were written behind the object's end".to_owned());
                }
            }
        }
        Op::GetFile => {
            if let Some(info) = outcome.take(get.file(scene.target()).await) {
                let written = std::fs::read(scene.target()).unwrap_or_default();
                scene.judge(&written, scene.content, info.verified, outcome);
            }
        }
        Op::GetWriter => {
            let mut writer = Sluggish::new(Vec::new(), schedule.pause);
            let result = get.writer(&mut writer).await;
            if let Some(info) = outcome.take(result) {
                scene.judge(&writer.inner, scene.content, info.verified, outcome);
            }
        }
        Op::GetStream => {
            let Some(mut parts) = outcome.take(get.window(256 * KIB).stream().await) else { return };
            let mut taken = Vec::new();
            loop {
                match parts.next().await {
                    Some(Ok(part)) => taken.extend_from_slice(&part),
                    Some(Err(error)) => {
                        outcome.errors.push(error);
                        let begins = |version: &[u8]| version.starts_with(&taken);
                        let is_beginning = begins(scene.content) || (scene.replaces && begins(scene.other));
                        if !is_beginning && !scene.tampers {
                            outcome.wrong.push("a stream mixed two versions before it failed".to_owned());
                        }
                        return;
                    }
                    None => break,
                }
                if let Some(pause) = schedule.pause {
                    sleep(pause).await;
                }
            }
            scene.judge(&taken, scene.content, parts.info().verified, outcome);
        }
        Op::GetParts => {
            let Some(mut parts) = outcome.take(get.window(256 * KIB).parts().await) else { return };
            let mut taken = vec![None; parts.length() as usize];
            loop {
                match parts.next().await {
                    Some(Ok(part)) => {
                        for (at, &byte) in (part.offset as usize..).zip(&*part.body) {
                            if taken.get(at) != Some(&None) {
                                outcome.wrong.push(format!("byte {at} came twice, or from beyond the end"));
                                return;
                            }
                            taken[at] = Some(byte);
                        }
                    }
                    Some(Err(error)) => {
                        outcome.errors.push(error);
                        let agrees = |version: &[u8]| {
                            let came = taken.iter().enumerate().filter_map(|(at, byte)| Some((at, (*byte)?)));
                            came.into_iter().all(|(at, byte)| version.get(at) == Some(&byte))
                        };
                        let is_one = agrees(scene.content) || (scene.replaces && agrees(scene.other));
                        if !is_one && !scene.tampers {
                            outcome.wrong.push("parts of two versions came before it failed".to_owned());
                        }
                        return;
                    }
                    None => break,
                }
                if let Some(pause) = schedule.pause {
                    sleep(pause).await;
                }
            }
            let taken: Option<Vec<u8>> = taken.into_iter().collect();
            match taken {
                Some(taken) => scene.judge(&taken, scene.content, parts.info().verified, outcome),
                None => outcome.wrong.push("the parts ended and bytes are missing".to_owned()),
            }
        }
        Op::GetManyBuffers => {
            let Some(mut objects) = outcome.take(client.get_many(BUCKET).buffers(keys())) else { return };
            let mut seen = 0;
            while let Some((index, object)) = objects.next().await {
                seen += 1;
                if let Some(object) = outcome.take(object) {
                    scene.judge(&object.body, scene.nth(index as u64), object.info.verified, outcome);
                }
                if let Some(pause) = schedule.pause {
                    sleep(pause).await;
                }
            }
            if seen != schedule.count {
                outcome.wrong.push(format!("{seen} of {} objects came", schedule.count));
            }
        }
        _ => {
            let targets = keys().zip((0..).map(|index| scene.many(index)));
            let objects = match schedule.operation {
                Op::GetManyListed => {
                    let listed = targets.zip(0..).map(|((key, path), index)| {
                        FileItem::new(key, path).size(scene.nth(index).len() as u64).modified(Timestamp::UNIX_EPOCH)
                    });
                    client.get_many(BUCKET).into_files(Found(listed.collect::<Vec<_>>().into_iter()))
                }
                _ => client.get_many(BUCKET).files(targets.collect::<Vec<_>>()),
            };
            let Some(mut objects) = outcome.take(objects) else { return };
            while let Some((index, info)) = objects.next().await {
                if let Some(info) = outcome.take(info) {
                    let index = index as u64;
                    let written = std::fs::read(scene.many(index)).unwrap_or_default();
                    scene.judge(&written, scene.nth(index), info.verified, outcome);
                }
            }
        }
    }
}

async fn put(client: &Client, schedule: &Schedule, scene: &Scene, outcome: &mut Outcome) {
    let mut put = client.put(BUCKET, "key");
    if schedule.conditional {
        put = put.if_none_match_any();
    }
    let result = match schedule.operation {
        Op::PutBytes | Op::MultipartBytes => put.bytes(Bytes::from_static(scene.content)).await,
        Op::PutFile | Op::MultipartFile => put.file(scene.source()).await,
        Op::PutFound => {
            let item = UploadItem::new(scene.source(), "key").size(scene.content.len() as u64);
            let options = PutOptions::new();
            let options = if schedule.conditional { options.if_none_match_any() } else { options };
            let puts = client.put_many(BUCKET).from_files(Found(std::iter::once(item.options(options))));
            let Some(mut puts) = outcome.take(puts) else { return };
            match puts.next().await {
                Some((_, result)) => result,
                None => return outcome.wrong.push("a file was passed over".to_owned()),
            }
        }
        _ => put.reader(Sluggish::new(scene.content, schedule.pause)).await,
    };
    if let Some(stored) = outcome.take(result) {
        outcome.succeeded += 1;
        outcome.expect_parts(u64::from(stored.parts), schedule);
    }
}

async fn list(client: &Client, schedule: &Schedule, outcome: &mut Outcome) {
    let expected = keys(schedule.count);
    let mut pages = client.list(BUCKET).page_size(PAGE as u32).pages();
    let mut listed = Vec::new();
    while let Some(page) = pages.next().await {
        match page {
            Ok(page) => listed.extend(page.objects.into_iter().map(|object| object.key)),
            Err(error) => {
                outcome.errors.push(error);
                if !expected.starts_with(&listed) {
                    outcome.wrong.push(format!("a listing that failed told {listed:?}"));
                }
                return;
            }
        }
        if let Some(pause) = schedule.pause {
            sleep(pause).await;
        }
    }
    outcome.succeeded += 1;
    if listed != expected {
        outcome.wrong.push(format!("listed {} keys of {}", listed.len(), expected.len()));
    }
}

/// What a listing must tell, in its order.
pub fn keys(count: u64) -> Vec<String> {
    (0..count).map(|index| format!("key {index:04}+é")).collect()
}

/// Items that are found one after the other.
struct Found<I>(I);

impl<I: Iterator + Unpin> Stream for Found<I> {
    type Item = I::Item;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<I::Item>> {
        Poll::Ready(self.0.next())
    }
}

/// A reader or writer that takes its time, a piece at a time.
struct Sluggish<T> {
    inner: T,
    pause: Option<Duration>,
    waiting: Option<Pin<Box<Sleep>>>,
}

/// Enough pauses for a part to overtake another, and few enough for megabytes to pass.
const PIECE: usize = 32 << 10;

impl<T> Sluggish<T> {
    fn new(inner: T, pause: Option<Duration>) -> Sluggish<T> {
        Sluggish { inner, pause, waiting: None }
    }

    fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(waiting) = &mut self.waiting {
            ready!(waiting.as_mut().poll(cx));
        }
        self.waiting = self.pause.map(|pause| Box::pin(sleep(pause)));
        Poll::Ready(())
    }
}

impl AsyncRead for Sluggish<&'static [u8]> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        // Megabytes are not read in small pieces: it is the pauses that matter.
        let piece = if self.inner.len() > 1 << 20 { 1 << 20 } else { PIECE };
        ready!(self.poll_pause(cx));
        let length = self.inner.len().min(buf.remaining()).min(piece);
        let (now, later) = self.inner.split_at(length);
        buf.put_slice(now);
        self.inner = later;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Sluggish<Vec<u8>> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_pause(cx));
        let length = if self.pause.is_some() { bytes.len().min(PIECE) } else { bytes.len() };
        self.inner.extend_from_slice(&bytes[..length]);
        Poll::Ready(Ok(length))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

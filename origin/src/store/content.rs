//! The bytes of an object, and reading them.
//!
//! A [`Reader`] hands out frames of at most [`FRAME`] bytes: slices of what is kept in memory (no copy),
//! slices of the synthetic table (no copy), or blocks read from files off the event loop.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use http_body::{Body, Frame, SizeHint};
use tokio::task::JoinHandle;

use super::synthetic::Table;

/// The largest frame handed to the connection: 1 MiB, some 80 microseconds of copying to a socket, so
/// that one connection does not hold a single-threaded server for long.
pub(crate) const FRAME: u64 = 1 << 20;

/// Where an object's bytes are.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// Frames in memory, in order.
    Memory(Chunks),
    /// Files in order, each whole.
    Files(Arc<[Segment]>),
    /// Bytes of the synthetic table from this phase on (see [`super::synthetic`]).
    Synthetic { phase: u64 },
    /// Dropped on arrival: they can't be read back.
    Discarded,
}

/// Frames in memory with the offset at which each ends.
#[derive(Clone, Debug)]
pub(crate) struct Chunks {
    frames: Arc<[(u64, Bytes)]>,
}

/// One file that holds a stretch of an object, from its first byte to its last.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    pub(crate) size: u64,
}

impl Chunks {
    pub(crate) fn new(frames: impl IntoIterator<Item = Bytes>) -> Self {
        let mut end = 0;
        let frames = frames.into_iter().map(|frame| {
            end += frame.len() as u64;
            (end, frame)
        });
        Self { frames: frames.collect() }
    }

    /// The frames, uncopied.
    pub(crate) fn frames(&self) -> impl Iterator<Item = Bytes> {
        self.frames.iter().map(|(_, frame)| frame.clone())
    }
}

impl Content {
    /// Reads `range`, which must lie inside the object.
    ///
    /// # Errors
    /// A file that can't be opened, or bytes that were dropped on arrival.
    pub(crate) fn read(&self, range: Range<u64>) -> io::Result<Reader> {
        let source = match self {
            Self::Memory(chunks) => {
                let index = chunks.frames.partition_point(|(end, _)| *end <= range.start);
                Source::Memory { chunks: chunks.clone(), index }
            }
            Self::Files(segments) => Source::Files(Files::open(segments, range.start)?),
            Self::Synthetic { phase } => Source::Synthetic { phase: *phase },
            Self::Discarded => {
                return Err(io::Error::other("this bucket drops the bytes of its objects; they can't be read back"));
            }
        };
        Ok(Reader { source, at: range.start, end: range.end })
    }
}

/// The bytes of one range of one object, frame by frame.
#[derive(Debug)]
pub(crate) struct Reader {
    source: Source,
    at: u64,
    end: u64,
}

#[derive(Debug)]
enum Source {
    Memory { chunks: Chunks, index: usize },
    Files(Files),
    Synthetic { phase: u64 },
}

impl Reader {
    /// Bytes still to come.
    pub(crate) fn remaining(&self) -> u64 {
        self.end - self.at
    }

    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let wanted = self.remaining().min(FRAME);
        if wanted == 0 {
            return Poll::Ready(None);
        }
        let bytes = match &mut self.source {
            Source::Memory { chunks, index } => {
                let Some((end, frame)) = chunks.frames.get(*index) else {
                    return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())));
                };
                let left = (end - self.at).min(wanted);
                if self.at + left == *end {
                    *index += 1;
                }
                let start = frame.len() - (end - self.at) as usize;
                frame.slice(start..start + left as usize)
            }
            Source::Synthetic { phase } => Table::get().slice(*phase, self.at, wanted),
            Source::Files(files) => match ready!(files.poll_read(wanted, cx)) {
                Ok(bytes) => bytes,
                Err(error) => return Poll::Ready(Some(Err(error))),
            },
        };
        self.at += bytes.len() as u64;
        Poll::Ready(Some(Ok(bytes)))
    }
}

impl Stream for Reader {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_bytes(cx)
    }
}

impl Body for Reader {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.poll_bytes(cx).map(|next| next.map(|bytes| bytes.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining())
    }
}

/// Files opened when the read begins, so that an object replaced meanwhile is still read whole.
#[derive(Debug)]
struct Files {
    segments: Vec<(Arc<File>, u64)>,
    /// The segment being read, and where in it.
    index: usize,
    at: u64,
    pending: Option<JoinHandle<io::Result<Bytes>>>,
}

impl Files {
    fn open(segments: &[Segment], mut skip: u64) -> io::Result<Self> {
        let mut opened = Vec::with_capacity(segments.len());
        let mut at = 0;
        for segment in segments {
            if opened.is_empty() && skip >= segment.size {
                skip -= segment.size;
                continue;
            }
            if opened.is_empty() {
                at = skip;
            }
            opened.push((Arc::new(File::open(&segment.path)?), segment.size));
        }
        Ok(Self { segments: opened, index: 0, at, pending: None })
    }

    fn poll_read(&mut self, wanted: u64, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        while self.segments.get(self.index).is_some_and(|(_, size)| self.at == *size) {
            self.index += 1;
            self.at = 0;
        }
        let Some((file, size)) = self.segments.get(self.index) else {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        };
        let pending = self.pending.get_or_insert_with(|| {
            let (file, at, length) = (file.clone(), self.at, wanted.min(size - self.at) as usize);
            tokio::task::spawn_blocking(move || {
                let mut block = vec![0; length];
                file.read_exact_at(&mut block, at)?;
                Ok(Bytes::from(block))
            })
        });
        let read = ready!(Pin::new(pending).poll(cx));
        self.pending = None;
        let bytes = read.map_err(io::Error::other)??;
        self.at += bytes.len() as u64;
        Poll::Ready(Ok(bytes))
    }
}

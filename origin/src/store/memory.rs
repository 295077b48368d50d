//! The room that keeps uploads in memory, as the frames that arrived.
//!
//! A frame of [`KEEP`] bytes or more is kept as it is; smaller ones are copied together, so that an
//! object is never thousands of slivers, each holding a larger receive buffer alive.

use bytes::{Bytes, BytesMut};

use super::content::{Chunks, Content};

/// Frames at least this long, in bytes, are kept uncopied.
const KEEP: usize = 64 << 10;
/// Smaller frames are gathered into blocks of at most this many bytes.
const BLOCK: usize = 1 << 20;

/// Collects the frames of one upload.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    frames: Vec<Bytes>,
    gathered: BytesMut,
}

impl Frames {
    pub(crate) fn push(&mut self, frame: Bytes) {
        if frame.len() >= KEEP {
            self.seal();
            self.frames.push(frame);
            return;
        }
        self.gathered.extend_from_slice(&frame);
        if self.gathered.len() >= BLOCK {
            self.seal();
        }
    }

    pub(crate) fn finish(mut self) -> Content {
        self.seal();
        Content::Memory(Chunks::new(self.frames))
    }

    fn seal(&mut self) {
        if !self.gathered.is_empty() {
            // Exactly as long as its bytes: small objects must not hold the slack of a growing buffer.
            self.frames.push(Bytes::copy_from_slice(&self.gathered));
            self.gathered.clear();
        }
    }
}

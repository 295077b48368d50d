//! Receiving the bytes of an upload: hashing each frame and handing it to the room that keeps it.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest as Crc};
use s3s::crypto::{Checksum as _, Md5, Sha1, Sha256};

use super::Shelf;
use super::content::Content;
use super::directory::FileWriter;
use super::memory::Frames;
use super::object::{Algorithm, Checksum};

/// What ETags are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EtagKind {
    /// MD5 of the bytes, as S3 does: 1.5 core-seconds a GiB.
    #[default]
    Md5,
    /// `crc64-` + CRC-64/NVME of the bytes in hex + `-` + their length in hex: made of the content and strong
    /// enough to see any accident, at 0.02 to 0.04 core-seconds a GiB. Never taken for an MD5.
    Fast,
}

/// One upload on its way in.
pub(crate) struct Intake {
    size: u64,
    md5: Option<Md5>,
    crc64: Option<Crc>,
    checksum: Option<Checksummer>,
    etag: EtagKind,
    room: Room,
}

enum Room {
    Memory(Frames),
    File(FileWriter),
    Discard,
}

/// An upload that has arrived whole.
pub(crate) struct Received {
    pub(crate) size: u64,
    /// Without quotes.
    pub(crate) etag: String,
    pub(crate) md5: Option<[u8; 16]>,
    pub(crate) checksum: Option<Checksum>,
    pub(crate) content: Content,
}

impl Intake {
    /// Opens the room; computes the checksum asked for, and MD5 where the ETag or `md5` wants it.
    pub(crate) fn open(shelf: &Shelf, etag: EtagKind, md5: bool, checksum: Option<Algorithm>) -> io::Result<Self> {
        let room = match shelf {
            Shelf::Memory => Room::Memory(Frames::default()),
            Shelf::Directory(directory) => Room::File(directory.writer()?),
            Shelf::Discard => Room::Discard,
        };
        Ok(Self {
            size: 0,
            md5: (md5 || etag == EtagKind::Md5).then(Md5::new),
            crc64: (etag == EtagKind::Fast).then(|| Crc::new(CrcAlgorithm::Crc64Nvme)),
            checksum: checksum.map(Checksummer::new),
            etag,
            room,
        })
    }

    /// Bytes received so far.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) async fn push(&mut self, frame: Bytes) -> io::Result<()> {
        self.size += frame.len() as u64;
        if let Some(md5) = &mut self.md5 {
            md5.update(&frame);
        }
        if let Some(crc64) = &mut self.crc64 {
            crc64.update(&frame);
        }
        if let Some(checksum) = &mut self.checksum {
            checksum.update(&frame);
        }
        match &mut self.room {
            Room::Memory(frames) => frames.push(frame),
            Room::File(file) => file.push(frame).await?,
            Room::Discard => {}
        }
        Ok(())
    }

    pub(crate) async fn finish(self) -> io::Result<Received> {
        let md5 = self.md5.map(|md5| -> [u8; 16] { md5.finalize() });
        let etag = match (self.etag, md5, self.crc64) {
            (EtagKind::Md5, Some(md5), _) => hex(&md5),
            (_, _, crc64) => fast_etag(crc64.map_or(0, |crc64| crc64.finalize()), self.size),
        };
        let content = match self.room {
            Room::Memory(frames) => frames.finish(),
            Room::File(file) => file.finish().await?,
            Room::Discard => Content::Discarded,
        };
        let checksum = self.checksum.map(Checksummer::finish);
        Ok(Received { size: self.size, etag, md5, checksum, content })
    }
}

/// An ETag of the `fast` kind, without quotes.
pub(crate) fn fast_etag(crc64: u64, size: u64) -> String {
    format!("crc64-{crc64:016x}-{size:x}")
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One running checksum.
pub(crate) enum Checksummer {
    Crc(Algorithm, Box<Crc>),
    Sha1(Box<Sha1>),
    Sha256(Box<Sha256>),
}

impl Checksummer {
    pub(crate) fn new(algorithm: Algorithm) -> Self {
        match (crc_of(algorithm), algorithm) {
            (Some(crc), _) => Self::Crc(algorithm, Box::new(Crc::new(crc))),
            (None, Algorithm::Sha1) => Self::Sha1(Box::new(Sha1::new())),
            (None, _) => Self::Sha256(Box::new(Sha256::new())),
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Crc(_, crc) => crc.update(bytes),
            Self::Sha1(sha1) => sha1.update(bytes),
            Self::Sha256(sha256) => sha256.update(bytes),
        }
    }

    pub(crate) fn finish(self) -> Checksum {
        let (algorithm, value) = match self {
            Self::Crc(algorithm, crc) => (algorithm, encode_crc(algorithm, crc.finalize())),
            Self::Sha1(sha1) => (Algorithm::Sha1, STANDARD.encode(sha1.finalize())),
            Self::Sha256(sha256) => (Algorithm::Sha256, STANDARD.encode(sha256.finalize())),
        };
        Checksum { algorithm, value, composite: false }
    }
}

/// The CRC behind an algorithm, for those that are one.
pub(crate) fn crc_of(algorithm: Algorithm) -> Option<CrcAlgorithm> {
    match algorithm {
        Algorithm::Crc32 => Some(CrcAlgorithm::Crc32IsoHdlc),
        Algorithm::Crc32c => Some(CrcAlgorithm::Crc32Iscsi),
        Algorithm::Crc64Nvme => Some(CrcAlgorithm::Crc64Nvme),
        Algorithm::Sha1 | Algorithm::Sha256 => None,
    }
}

/// Base64 of a CRC's big-endian bytes: eight for CRC-64, four for the others.
pub(crate) fn encode_crc(algorithm: Algorithm, crc: u64) -> String {
    let bytes = crc.to_be_bytes();
    let skip = if algorithm == Algorithm::Crc64Nvme { 0 } else { 4 };
    STANDARD.encode(&bytes[skip..])
}

/// The CRC that [`encode_crc`] wrote.
pub(crate) fn decode_crc(value: &str) -> Option<u64> {
    let bytes = STANDARD.decode(value).ok()?;
    Some(bytes.iter().fold(0, |crc, byte| crc << 8 | u64::from(*byte)))
}

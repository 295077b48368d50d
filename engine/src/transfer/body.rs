//! The body of one request of an upload: its bytes, and what is known of them before they are sent.
//!
//! Every byte is passed over once, a cache's worth at a time: the signature's hash and the checksum are
//! computed from the same piece, and a file's pieces while they are where `read` put them. A very large body
//! in memory that is not signed is not passed over at all: its checksum is computed while it is sent.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::Engine;
use super::checksum::Carriage;
use super::file::{FoundFile, SourceFile, on_blocking_thread};
use super::part::reserve;
use crate::buffer::Slot;
use crate::error::Result;
use crate::pace::MemoryPermit;
use crate::wire::checksum::{ChecksumAlgorithm, Sum, Summer};
use crate::wire::request::Payload;

/// Hashing less than this costs less than handing it to another thread.
const HASH_HERE: usize = 256 * 1024;

/// The same for a CRC. What is longer than this does not stay in the cache between being summed and being
/// sent either, and its checksum follows it instead.
const SUM_HERE: usize = 16 << 20;

/// How much is passed over at a time, by one algorithm after the other: half of a small second-level cache.
const PASS: usize = 128 * 1024;

/// What is computed of a body on the way.
#[derive(Clone, Copy)]
pub(super) struct Wants {
    /// The signature covers the body.
    pub(super) signed: bool,
    pub(super) checksum: Option<ChecksumAlgorithm>,
    pub(super) carriage: Carriage,
}

impl Wants {
    /// How the checksum of a body of that length goes: a file's is known before sending at no cost, and so is that
    /// of what is signed. Summing a part ahead is cheaper than framing it: it leaves the part in the
    /// cache for the kernel to copy.
    fn carriage(self, in_memory: bool, length: usize) -> Carriage {
        match self.carriage {
            Carriage::Trailer if self.signed || !in_memory || length <= SUM_HERE => Carriage::Header,
            carriage => carriage,
        }
    }
}

/// The bytes of one request.
pub(super) enum Bodied {
    Shared(Bytes),
    Pooled { slot: Slot, _permit: MemoryPermit },
}

/// One request's body, ready to be sent.
pub(super) struct PartBody {
    bytes: Bodied,
    pub(super) payload: Payload,
    /// Known unless it goes as a trailer.
    pub(super) sum: Option<Sum>,
    pub(super) carriage: Carriage,
}

impl PartBody {
    /// From memory.
    pub(super) async fn of_memory(bytes: Bytes, wants: Wants) -> Result<PartBody> {
        let length = bytes.len();
        let carriage = wants.carriage(true, length);
        let mut passes = Passes::new(wants, carriage);
        let sum_all = move |bytes: Bodied| {
            as_slice(&bytes).chunks(PASS).for_each(|piece| passes.update(piece));
            Ok(passes.finish(bytes))
        };
        let here = length <= if wants.signed { HASH_HERE } else { SUM_HERE };
        if here || carriage == Carriage::Trailer || (!wants.signed && carriage == Carriage::None) {
            return sum_all(Bodied::Shared(bytes));
        }
        on_blocking_thread(move || sum_all(Bodied::Shared(bytes))).await
    }

    /// From a file, into pooled memory.
    pub(super) async fn of_file(
        engine: &Engine,
        file: &Arc<SourceFile>,
        range: Range<u64>,
        wants: Wants,
    ) -> Result<PartBody> {
        let length = range.end - range.start;
        let permit = engine.pace.admission.memory(length).await;
        let slot = reserve(engine, length)?.whole();
        let mut passes = Passes::new(wants, wants.carriage(false, 0));
        let file = Arc::clone(file);
        on_blocking_thread(move || {
            // The cast is exact: the slot was made so long.
            let slot = file.read_pieces(slot, range.start, length as usize, PASS, |piece| passes.update(piece))?;
            Ok(passes.finish(Bodied::Pooled { slot, _permit: permit }))
        })
        .await
    }

    /// From a file that is read whole.
    pub(super) async fn of_found(engine: &Engine, file: &FoundFile, wants: Wants) -> Result<PartBody> {
        let permit = engine.pace.admission.memory(file.size).await;
        let slot = reserve(engine, file.size)?.whole();
        let mut passes = Passes::new(wants, wants.carriage(false, 0));
        let file = file.clone();
        let read = move || {
            let slot = file.read(slot, PASS, |piece| passes.update(piece))?;
            Ok(passes.finish(Bodied::Pooled { slot, _permit: permit }))
        };
        engine.files.run(read).await
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        as_slice(&self.bytes)
    }

    /// The server does not take the checksum as it was sent: the next way down.
    pub(super) fn lower(&mut self, algorithm: Option<ChecksumAlgorithm>) {
        self.carriage = self.carriage.lower();
        match (self.carriage, algorithm) {
            // Once in the life of a client.
            (Carriage::Header, Some(algorithm)) => self.sum = Some(Sum::of(algorithm, self.as_slice())),
            _ => self.sum = None,
        }
    }
}

fn as_slice(bytes: &Bodied) -> &[u8] {
    match bytes {
        Bodied::Shared(bytes) => bytes,
        Bodied::Pooled { slot, .. } => slot.filled(),
    }
}

/// What is computed in one pass.
struct Passes {
    hash: Option<Summer>,
    checksum: Option<Summer>,
    /// The checksum is the hash.
    one_for_both: bool,
    carriage: Carriage,
}

impl Passes {
    fn new(wants: Wants, carriage: Carriage) -> Passes {
        let algorithm = wants.checksum.filter(|_| carriage == Carriage::Header);
        let one_for_both = wants.signed && algorithm == Some(ChecksumAlgorithm::Sha256);
        Passes {
            hash: wants.signed.then(|| Summer::new(ChecksumAlgorithm::Sha256)),
            checksum: algorithm.filter(|_| !one_for_both).map(Summer::new),
            one_for_both,
            carriage,
        }
    }

    fn update(&mut self, piece: &[u8]) {
        for summer in self.hash.iter_mut().chain(&mut self.checksum) {
            summer.update(piece);
        }
    }

    fn finish(self, bytes: Bodied) -> PartBody {
        let hash = self.hash.map(Summer::finish);
        let payload = hash.and_then(|hash| hash.sha256()).map_or(Payload::Unsigned, Payload::Sha256);
        let sum = if self.one_for_both { hash } else { self.checksum.map(Summer::finish) };
        PartBody { bytes, payload, sum, carriage: self.carriage }
    }
}

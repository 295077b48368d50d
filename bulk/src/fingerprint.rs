//! What an object's bytes can be known by without reading them, and whether a local file has the same.
//!
//! Best is the checksum of the whole object that the server keeps, which a HEAD tells. Without one there is the ETag: of
//! an object that was written by one request the MD5 of its bytes, of one written in parts the MD5 of the parts' MD5s,
//! which takes to know how it was cut: the usual sizes of parts are tried. A file that fits is the same; one that fits
//! none may have been cut in another way, so that nothing follows. Under keys of KMS or of the customer an ETag is no MD5
//! (S3's documentation of `Object`), and checksums of parts' checksums are not tried.
//!
//! Files are read by position in pieces, on blocking threads.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};
use sha2::Sha256;
use wirespeed::{ChecksumAlgorithm, ObjectInfo};

use crate::failure::Failure;

/// Read at a time: more than a disk's own reading ahead, and little enough to stay in the cache until it is summed.
const PIECE: usize = 256 << 10;

const MIB: u64 = 1 << 20;

/// Sizes of parts that clients cut by, in MiB and, where the client counts so, in MB: the AWS CLI and SDKs 8 MiB, rclone
/// 5 MiB, s5cmd 50 MiB, the rest what people choose.
const USUAL_MIB: [u64; 17] = [5, 6, 8, 10, 15, 16, 20, 24, 25, 32, 48, 50, 64, 100, 128, 256, 512];
const USUAL_MB: [u64; 7] = [5, 8, 10, 16, 50, 64, 100];

/// No more sizes are tried at once: each costs an MD5 of the file.
const MOST_SIZES: usize = 6;

/// What an object's bytes are known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// Of the whole object, in base64.
    Checksum(ChecksumAlgorithm, String),
    /// Of the whole object.
    Md5([u8; 16]),
    /// Of the parts' MD5s, and how many there are.
    Parts([u8; 16], u64),
}

impl Fingerprint {
    /// Of an object that was asked about with its checksum ([`Head::checksum`](wirespeed::Head::checksum)); `None` where
    /// nothing that is told says what its bytes are.
    pub fn of_object(info: &ObjectInfo) -> Option<Fingerprint> {
        if let Some(checksum) = info.checksum.as_ref().filter(|checksum| !checksum.composite) {
            return Some(Fingerprint(Kind::Checksum(checksum.algorithm, checksum.value.clone())));
        }
        // Not told at all is how it was before buckets encrypted by themselves, and how other stores do it.
        match info.server_side_encryption.as_deref() {
            None | Some("AES256") => Fingerprint::of_etag(info.etag.as_deref()?),
            Some(_) => None,
        }
    }

    /// Of an ETag that is known to be no random one.
    pub(crate) fn of_etag(etag: &str) -> Option<Fingerprint> {
        let etag = etag.strip_prefix('"').and_then(|etag| etag.strip_suffix('"')).unwrap_or(etag);
        let (digits, parts) = match etag.split_once('-') {
            Some((digits, parts)) => (digits, Some(parts.parse().ok().filter(|parts| *parts > 0)?)),
            None => (etag, None),
        };
        let mut md5 = [0; 16];
        if digits.len() != 32 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, place) in md5.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(digits.get(place..place + 2)?, 16).ok()?;
        }
        Some(Fingerprint(match parts {
            Some(parts) => Kind::Parts(md5, parts),
            None => Kind::Md5(md5),
        }))
    }

    /// Whether another object of the same size, known by `other`, has the same bytes; `None` where that cannot be told.
    pub fn agrees_with(&self, other: &Fingerprint) -> Option<bool> {
        match (&self.0, &other.0) {
            (Kind::Checksum(one, _), Kind::Checksum(another, _)) if one != another => None,
            (Kind::Checksum(_, one), Kind::Checksum(_, another)) => Some(one == another),
            (Kind::Md5(one), Kind::Md5(another)) => Some(one == another),
            // Cut into other parts the same bytes have another one.
            (Kind::Parts(..), Kind::Parts(..)) => (self == other).then_some(true),
            _ => None,
        }
    }

    /// Whether a file of `size` bytes has the object's bytes; `None` where that cannot be told. Reads the file, on a blocking
    /// thread.
    ///
    /// # Errors
    /// The file cannot be read, or is not of that size.
    pub async fn is_of_file(&self, path: &Path, size: u64) -> Result<Option<bool>, Failure> {
        let sums = match &self.0 {
            Kind::Checksum(algorithm, _) => vec![Sum::new(*algorithm)?],
            Kind::Md5(_) => vec![Sum::Md5(Md5::new())],
            Kind::Parts(_, parts) => part_sizes(size, *parts).map(PartsMd5::new).map(Sum::Parts).collect(),
        };
        if sums.is_empty() {
            return Ok(None);
        }
        let sums = read(path, size, sums).await?;
        let found = sums.into_iter().any(|sum| match (&self.0, sum.finish()) {
            (Kind::Checksum(_, value), Summed::Base64(sum)) => *value == sum,
            (Kind::Md5(md5) | Kind::Parts(md5, _), Summed::Md5(sum)) => *md5 == sum,
            _ => false,
        });
        Ok(match self.0 {
            Kind::Parts(..) => found.then_some(true),
            Kind::Checksum(..) | Kind::Md5(_) => Some(found),
        })
    }

    /// Whether it is the MD5 of the whole, as far as an ETag tells.
    pub(crate) fn is_md5(&self) -> bool {
        matches!(self.0, Kind::Md5(_))
    }

    /// Of a file of `size` bytes, by its CRC64NVME. Reads the file, on a blocking thread.
    ///
    /// # Errors
    /// The file cannot be read, or is not of that size.
    pub async fn of_file(path: &Path, size: u64) -> Result<Fingerprint, Failure> {
        let algorithm = ChecksumAlgorithm::Crc64Nvme;
        let sum = read(path, size, vec![Sum::new(algorithm)?]).await?.pop();
        match sum.map(Sum::finish) {
            Some(Summed::Base64(value)) => Ok(Fingerprint(Kind::Checksum(algorithm, value))),
            _ => Err(Failure::Lost(format!("the reading of {} was lost", path.display()))),
        }
    }
}

/// The usual sizes by which an object of `size` bytes is cut into so many parts, and the one that its writer may have
/// computed from the two.
fn part_sizes(size: u64, parts: u64) -> impl Iterator<Item = u64> {
    let least = size.div_ceil(parts);
    let usual = USUAL_MIB.map(|size| size * MIB).into_iter().chain(USUAL_MB.map(|size| size * 1_000_000));
    let mut sizes: Vec<u64> = usual.chain([least.next_multiple_of(MIB), least]).collect();
    // One part may be as long as it likes: the object is it.
    sizes.retain(|part| *part > 0 && size.max(1).div_ceil(*part) == parts);
    let mut tried = Vec::new();
    for size in sizes {
        if !tried.contains(&size) && tried.len() < MOST_SIZES {
            tried.push(size);
        }
    }
    if parts == 1 {
        tried.truncate(1);
    }
    tried.into_iter()
}

/// The fingerprint of bytes that come piece by piece.
pub(crate) struct Reading(crc_fast::Digest);

impl Reading {
    pub(crate) fn new() -> Reading {
        Reading(crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64Nvme))
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// By the CRC64NVME, as [`Fingerprint::of_file`] makes it.
    pub(crate) fn finish(self) -> Fingerprint {
        let algorithm = ChecksumAlgorithm::Crc64Nvme;
        Fingerprint(Kind::Checksum(algorithm, STANDARD.encode(self.0.finalize().to_be_bytes())))
    }
}

/// A sum under way.
enum Sum {
    Crc(ChecksumAlgorithm, crc_fast::Digest),
    Sha256(Sha256),
    Md5(Md5),
    Parts(PartsMd5),
}

enum Summed {
    Base64(String),
    Md5([u8; 16]),
}

impl Sum {
    fn new(algorithm: ChecksumAlgorithm) -> Result<Sum, Failure> {
        use crc_fast::CrcAlgorithm as Fast;
        let fast = match algorithm {
            ChecksumAlgorithm::Crc64Nvme => Fast::Crc64Nvme,
            ChecksumAlgorithm::Crc32 => Fast::Crc32IsoHdlc,
            ChecksumAlgorithm::Crc32c => Fast::Crc32Iscsi,
            ChecksumAlgorithm::Sha256 => return Ok(Sum::Sha256(Sha256::new())),
            _ => return Err(Failure::Refused(format!("{algorithm} is not computed here; compare by size"))),
        };
        Ok(Sum::Crc(algorithm, crc_fast::Digest::new(fast)))
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Sum::Crc(_, digest) => digest.update(bytes),
            Sum::Sha256(digest) => digest.update(bytes),
            Sum::Md5(digest) => digest.update(bytes),
            Sum::Parts(parts) => parts.update(bytes),
        }
    }

    fn finish(self) -> Summed {
        match self {
            Sum::Crc(ChecksumAlgorithm::Crc64Nvme, digest) => {
                Summed::Base64(STANDARD.encode(digest.finalize().to_be_bytes()))
            }
            // The 32 bits are the lower half.
            Sum::Crc(_, digest) => Summed::Base64(STANDARD.encode((digest.finalize() as u32).to_be_bytes())),
            Sum::Sha256(digest) => Summed::Base64(STANDARD.encode(digest.finalize())),
            Sum::Md5(digest) => Summed::Md5(digest.finalize().into()),
            Sum::Parts(parts) => Summed::Md5(parts.finish()),
        }
    }
}

/// The MD5 of the MD5s of parts of one size.
struct PartsMd5 {
    size: u64,
    /// What the part that is being summed lacks.
    lacks: u64,
    part: Md5,
    parts: Md5,
}

impl PartsMd5 {
    fn new(size: u64) -> PartsMd5 {
        PartsMd5 { size, lacks: size, part: Md5::new(), parts: Md5::new() }
    }

    fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.lacks == 0 {
                self.parts.update(self.part.finalize_reset());
                self.lacks = self.size;
            }
            let taken = usize::try_from(self.lacks).map_or(bytes.len(), |lacks| lacks.min(bytes.len()));
            let (now, later) = bytes.split_at(taken);
            self.part.update(now);
            self.lacks -= taken as u64;
            bytes = later;
        }
    }

    fn finish(mut self) -> [u8; 16] {
        self.parts.update(self.part.finalize());
        self.parts.finalize().into()
    }
}

/// Reads a file once and sums it in each way.
async fn read(path: &Path, size: u64, mut sums: Vec<Sum>) -> Result<Vec<Sum>, Failure> {
    let path = path.to_owned();
    let lost = format!("the reading of {} was lost", path.display());
    let reading = tokio::task::spawn_blocking(move || {
        let failed = |source| Failure::Local { doing: "read", path: path.clone(), source };
        let file = File::open(&path).map_err(failed)?;
        let mut piece = vec![0; PIECE];
        let mut offset = 0;
        loop {
            let read = match file.read_at(&mut piece, offset) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(failed(error)),
            };
            offset += read as u64;
            sums.iter_mut().for_each(|sum| sum.update(&piece[..read]));
        }
        if offset != size {
            return Err(Failure::Refused(format!(
                "{} changed while it was compared: it had {size} bytes and has {offset}; compare it when nothing writes \
                 to it",
                path.display()
            )));
        }
        Ok(sums)
    });
    reading.await.unwrap_or_else(|_| Err(Failure::Lost(lost)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write as _;

    fn file_of(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn of(kind: Kind) -> Fingerprint {
        Fingerprint(kind)
    }

    /// The values are those of `123456789`: the catalogue's check values of the CRCs, and of `sha256sum` and `md5sum`.
    #[tokio::test]
    async fn a_file_is_known_by_each_sum() {
        let file = file_of(b"123456789");
        let base64 = |hex: u64, bytes: usize| STANDARD.encode(&hex.to_be_bytes()[8 - bytes..]);
        let sha = "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=";
        for (algorithm, value) in [
            (ChecksumAlgorithm::Crc64Nvme, base64(0xae8b_1486_0a79_9888, 8)),
            (ChecksumAlgorithm::Crc32, base64(0xcbf4_3926, 4)),
            (ChecksumAlgorithm::Crc32c, base64(0xe306_9283, 4)),
        ] {
            let right = of(Kind::Checksum(algorithm, value));
            assert_eq!(right.is_of_file(file.path(), 9).await.unwrap(), Some(true), "{algorithm}");
            let wrong = of(Kind::Checksum(algorithm, base64(1, 8)));
            assert_eq!(wrong.is_of_file(file.path(), 9).await.unwrap(), Some(false), "{algorithm}");
        }
        let right = of(Kind::Checksum(ChecksumAlgorithm::Sha256, sha.to_owned()));
        assert_eq!(right.is_of_file(file.path(), 9).await.unwrap(), Some(true));
        let md5 = Fingerprint::of_etag("\"25f9e794323b453885f5181f1b624d0b\"").unwrap();
        assert_eq!(md5.is_of_file(file.path(), 9).await.unwrap(), Some(true));
        assert_eq!(md5.is_of_file(file_of(b"123456780").path(), 9).await.unwrap(), Some(false));
        assert!(matches!(md5.is_of_file(file.path(), 8).await, Err(Failure::Refused(_))), "it is not of that size");
        assert!(matches!(md5.is_of_file(Path::new("/nowhere"), 8).await, Err(Failure::Local { .. })));
    }

    #[tokio::test]
    async fn an_object_of_parts_is_known_by_its_etag_where_it_was_cut_as_usual() {
        let bytes: Vec<u8> = (0..20 * MIB + 7).map(|place| (place % 251) as u8).collect();
        let file = file_of(&bytes);
        let etag = |part: usize| {
            let parts: Vec<u8> = bytes.chunks(part).flat_map(Md5::digest).collect();
            format!("\"{:x}-{}\"", Md5::digest(&parts), bytes.chunks(part).len())
        };
        let size = bytes.len() as u64;
        for part in [5 << 20, 8 << 20, 16 << 20, 10_000_000, 7 << 20] {
            let fingerprint = Fingerprint::of_etag(&etag(part)).unwrap();
            assert_eq!(fingerprint.is_of_file(file.path(), size).await.unwrap(), Some(true), "{part}");
        }
        let odd = Fingerprint::of_etag(&etag((5 << 20) + 12_345)).unwrap();
        assert_eq!(odd.is_of_file(file.path(), size).await.unwrap(), None, "cut in an unusual way: nothing follows");
    }

    #[test]
    fn what_says_nothing_of_the_bytes() {
        let md5 = "\"25f9e794323b453885f5181f1b624d0b\"";
        let info = |encryption: Option<&str>, etag: &str| {
            let mut info = ObjectInfo::default();
            info.etag = Some(etag.to_owned());
            info.server_side_encryption = encryption.map(str::to_owned);
            info
        };
        assert!(Fingerprint::of_object(&info(None, md5)).is_some());
        assert!(Fingerprint::of_object(&info(Some("AES256"), md5)).is_some());
        assert_eq!(Fingerprint::of_object(&info(Some("aws:kms"), md5)), None);
        for odd in [
            "",
            "\"\"",
            "\"abc\"",
            "25f9e794323b453885f5181f1b624d0b-",
            "\"25f9e794323b453885f5181f1b624d0b-0\"",
            "\"25f9e794323b453885f5181f1b624dxx\"",
            "\"ééééééééééééééééé\"",
        ] {
            assert_eq!(Fingerprint::of_object(&info(None, odd)), None, "{odd}");
        }
    }

    #[test]
    fn two_objects() {
        let checksum = |algorithm, value: &str| of(Kind::Checksum(algorithm, value.to_owned()));
        let crc = checksum(ChecksumAlgorithm::Crc32, "a");
        assert_eq!(crc.agrees_with(&crc), Some(true));
        assert_eq!(crc.agrees_with(&checksum(ChecksumAlgorithm::Crc32, "b")), Some(false));
        assert_eq!(crc.agrees_with(&checksum(ChecksumAlgorithm::Crc32c, "a")), None);
        assert_eq!(crc.agrees_with(&of(Kind::Md5([1; 16]))), None);
        assert_eq!(of(Kind::Md5([1; 16])).agrees_with(&of(Kind::Md5([2; 16]))), Some(false));
        let parts = of(Kind::Parts([1; 16], 2));
        assert_eq!(parts.agrees_with(&parts), Some(true));
        assert_eq!(parts.agrees_with(&of(Kind::Parts([2; 16], 2))), None, "cut in another way");
    }

    proptest! {
        #[test]
        fn no_etag_is_too_odd(etag in any::<String>()) {
            let _ = Fingerprint::of_etag(&etag);
        }

        #[test]
        fn sizes_of_parts_give_that_many(size in 0..1_u64 << 50, parts in 1..10_001_u64) {
            for part in part_sizes(size, parts) {
                prop_assert_eq!(size.max(1).div_ceil(part), parts);
            }
        }
    }
}

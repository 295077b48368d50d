//! Multipart uploads in progress.
//!
//! Owns the parts until they become an object or are dropped. Refuses parts out of order, parts that never came,
//! and parts (but the last) below the least size, as S3 does at completion.

use std::collections::BTreeMap;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use s3s::crypto::{Checksum as _, Md5};

use super::bucket::join;
use super::directory::drop_files;
use super::intake::{Checksummer, EtagKind, Received, crc_of, decode_crc, encode_crc, fast_etag, hex};
use super::object::{Algorithm, Checksum, Head, Object, now};

/// The uploads of one bucket, by key and then by id.
#[derive(Default)]
pub(crate) struct Uploads {
    uploads: BTreeMap<(String, String), Upload>,
}

/// One upload.
pub(crate) struct Upload {
    pub(crate) head: Head,
    pub(crate) initiated: SystemTime,
    /// The checksum its parts carry, where the client named one.
    pub(crate) checksum: Option<(Algorithm, Combination)>,
    pub(crate) parts: BTreeMap<u16, Part>,
}

/// How the checksums of parts become the object's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combination {
    /// A checksum of the parts' checksums.
    Composite,
    /// The checksum of the whole object's bytes, which CRCs allow to be computed from the parts'.
    FullObject,
}

/// One part.
pub(crate) struct Part {
    pub(crate) received: Received,
    pub(crate) modified: SystemTime,
}

/// A part as the client names it at completion.
pub(crate) struct Named {
    pub(crate) number: i32,
    /// Without quotes.
    pub(crate) etag: String,
    pub(crate) checksum: Option<Checksum>,
}

/// Why an upload could not be completed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Incomplete {
    NoSuchUpload,
    Empty,
    Order,
    InvalidPart(i32),
    TooSmall { number: i32, size: u64, least: u64 },
}

impl Uploads {
    pub(crate) fn begin(&mut self, key: &str, id: String, upload: Upload) {
        self.uploads.insert((key.to_owned(), id), upload);
    }

    pub(crate) fn get(&self, key: &str, id: &str) -> Option<&Upload> {
        self.uploads.get(&(key.to_owned(), id.to_owned()))
    }

    /// Adds a part, in place of an earlier one of its number. Returns false, dropping the part, if there is no
    /// such upload (any more).
    pub(crate) fn add(&mut self, key: &str, id: &str, number: u16, received: Received) -> bool {
        match self.uploads.get_mut(&(key.to_owned(), id.to_owned())) {
            Some(upload) => {
                if let Some(old) = upload.parts.insert(number, Part { received, modified: now() }) {
                    drop_files(&old.received.content);
                }
                true
            }
            None => {
                drop_files(&received.content);
                false
            }
        }
    }

    /// Drops an upload and its parts; false if there is none.
    pub(crate) fn abort(&mut self, key: &str, id: &str) -> bool {
        self.uploads.remove(&(key.to_owned(), id.to_owned())).map(|upload| upload.drop_parts_but(&[])).is_some()
    }

    /// Drops every upload and its parts.
    pub(crate) fn abort_all(&mut self) {
        for upload in std::mem::take(&mut self.uploads).into_values() {
            upload.drop_parts_but(&[]);
        }
    }

    /// Forgets an upload whose parts became an object, dropping the parts that did not.
    pub(crate) fn finish(&mut self, key: &str, id: &str, used: &[Named]) {
        if let Some(upload) = self.uploads.remove(&(key.to_owned(), id.to_owned())) {
            upload.drop_parts_but(used);
        }
    }

    /// The uploads after `(key, id)`, in order; all those of `key` are passed over where no id is given.
    pub(crate) fn after<'a>(
        &'a self,
        key: &'a str,
        id: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a (String, String), &'a Upload)> {
        self.uploads.iter().filter(move |((k, i), _)| match k.as_str().cmp(key) {
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => key.is_empty() || id.is_some_and(|id| i.as_str() > id),
            std::cmp::Ordering::Less => false,
        })
    }

    /// The object that the named parts make. The upload stays until [`Uploads::finish`].
    pub(crate) fn assemble(
        &self,
        key: &str,
        id: &str,
        named: &[Named],
        least: u64,
        kind: EtagKind,
    ) -> Result<Object, Incomplete> {
        let upload = self.get(key, id).ok_or(Incomplete::NoSuchUpload)?;
        if named.is_empty() {
            return Err(Incomplete::Empty);
        }
        if named.windows(2).any(|pair| pair[0].number >= pair[1].number) {
            return Err(Incomplete::Order);
        }
        let mut parts = Vec::with_capacity(named.len());
        for part in named {
            let kept = u16::try_from(part.number).ok().and_then(|number| upload.parts.get(&number));
            let kept = kept.ok_or(Incomplete::InvalidPart(part.number))?;
            let same = kept.received.etag == part.etag;
            let agrees = part.checksum.is_none() || part.checksum == kept.received.checksum;
            if !same || !agrees {
                return Err(Incomplete::InvalidPart(part.number));
            }
            parts.push(&kept.received);
        }
        let all_but_last = parts.iter().zip(named).take(parts.len() - 1);
        if let Some((part, named)) = all_but_last.into_iter().find(|(part, _)| part.size < least) {
            return Err(Incomplete::TooSmall { number: named.number, size: part.size, least });
        }
        Ok(Object {
            head: upload.head.clone(),
            size: parts.iter().map(|part| part.size).sum(),
            etag: etag_of(&parts, kind),
            modified: now(),
            checksum: upload.checksum.and_then(|(algorithm, how)| combine(&parts, algorithm, how)),
            part_sizes: parts.iter().map(|part| part.size).collect(),
            version: None,
            content: join(parts.iter().map(|part| &part.content)),
        })
    }
}

impl Upload {
    fn drop_parts_but(&self, used: &[Named]) {
        for (number, part) in &self.parts {
            if !used.iter().any(|named| named.number == i32::from(*number)) {
                drop_files(&part.received.content);
            }
        }
    }
}

/// MD5 of the parts' MD5s and their number, as S3 does; or the fast kind, over the parts' ETags.
fn etag_of(parts: &[&Received], kind: EtagKind) -> String {
    let count = parts.len();
    match kind {
        EtagKind::Md5 => {
            let mut md5 = Md5::new();
            parts.iter().filter_map(|part| part.md5).for_each(|part| md5.update(&part));
            format!("{}-{count}", hex(&md5.finalize()))
        }
        EtagKind::Fast => {
            let mut crc = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64Nvme);
            parts.iter().for_each(|part| crc.update(part.etag.as_bytes()));
            let size = parts.iter().map(|part| part.size).sum();
            format!("{}-{count}", fast_etag(crc.finalize(), size))
        }
    }
}

/// The object's checksum, if every part has one of its algorithm.
fn combine(parts: &[&Received], algorithm: Algorithm, how: Combination) -> Option<Checksum> {
    let checksums: Option<Vec<_>> =
        parts.iter().map(|part| part.checksum.as_ref().filter(|checksum| checksum.algorithm == algorithm)).collect();
    let checksums = checksums?;
    if let (Combination::FullObject, Some(crc)) = (how, crc_of(algorithm)) {
        let mut whole = 0;
        for (part, checksum) in parts.iter().zip(checksums) {
            whole = crc_fast::checksum_combine(crc, whole, decode_crc(&checksum.value)?, part.size);
        }
        return Some(Checksum { algorithm, value: encode_crc(algorithm, whole), composite: false });
    }
    let mut over = Checksummer::new(algorithm);
    for checksum in &checksums {
        over.update(&STANDARD.decode(&checksum.value).ok()?);
    }
    let value = format!("{}-{}", over.finish().value, parts.len());
    Some(Checksum { algorithm, value, composite: true })
}

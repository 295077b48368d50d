//! TLS records, opened into their destination and sealed from their source. No IO.
//!
//! The handshake is rustls's, and so are the keys; what is here is the record layer of RFC 8446
//! (TLS 1.3) and RFC 5246 with RFC 5288 and RFC 7905 (TLS 1.2 with AES-GCM or ChaCha20-Poly1305) over
//! aws-lc's ciphers. A record is decrypted from where it was received into where its content belongs,
//! in one pass: a record layer that decrypts in place would copy every byte once more.
//!
//! Refused: a record longer than the standard allows, one of a type that has no place after the
//! handshake, and of course one whose tag is wrong. What a refused record left in the destination
//! counts for nothing.

use std::fmt;
use std::ops::Range;

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use rustls::{ConnectionTrafficSecrets, ProtocolVersion};

/// Type, version and length.
pub(super) const HEADER: usize = 5;
/// All three ciphers' tags have this length.
const TAG: usize = 16;
/// RFC 5288, section 3: the part of the nonce that an AES-GCM record of TLS 1.2 carries.
const EXPLICIT_NONCE: usize = 8;
/// The most content that one record may hold.
pub(super) const MOST_CONTENT: usize = 1 << 14;
/// RFC 8446, section 5.2: the most that a record's content may grow by.
const MOST_GROWTH: usize = 256;
/// The longest record.
pub(super) const MOST_RECORD: usize = HEADER + MOST_CONTENT + MOST_GROWTH;
/// What a sealed record has beyond its content, at most.
pub(super) const GROWTH: usize = HEADER + EXPLICIT_NONCE + 1 + TAG;

pub(super) const CHANGE_CIPHER_SPEC: u8 = 20;
pub(super) const ALERT: u8 = 21;
pub(super) const HANDSHAKE: u8 = 22;
pub(super) const APPLICATION_DATA: u8 = 23;

/// Why a record was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordError {
    TooLong,
    /// It is not what the peer sent, or the peer has other keys.
    Forged,
    Unexpected(u8),
    /// The keys are of a cipher that this record layer has not got.
    Cipher,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::TooLong => f.write_str("a TLS record is longer than the protocol allows"),
            RecordError::Forged => f.write_str("a TLS record was damaged or forged on its way"),
            RecordError::Unexpected(kind) => write!(f, "a TLS record of type {kind} has no place here"),
            RecordError::Cipher => f.write_str("the TLS cipher that was agreed on is not supported"),
        }
    }
}

impl std::error::Error for RecordError {}

impl From<RecordError> for std::io::Error {
    fn from(error: RecordError) -> std::io::Error {
        std::io::Error::new(std::io::ErrorKind::InvalidData, error)
    }
}

/// How nonces and additional data are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Tls13,
    /// AES-GCM: eight bytes of the nonce are in the record.
    Tls12Explicit,
    /// ChaCha20-Poly1305: none are.
    Tls12,
}

/// The keys of one direction, and how many records they have served.
pub(super) struct RecordKeys {
    key: LessSafeKey,
    iv: [u8; 12],
    sequence: u64,
    form: Form,
}

/// Where the content of an opened record lies.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opened {
    /// At the front of the room that was given.
    Room(usize),
    /// In the record's own bytes: the room was too small.
    Record(Range<usize>),
}

impl RecordKeys {
    pub(super) fn new(
        version: ProtocolVersion,
        (sequence, secrets): (u64, ConnectionTrafficSecrets),
    ) -> Result<RecordKeys, RecordError> {
        let (algorithm, key, iv, gcm) = match &secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&AES_128_GCM, key, iv, true),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&AES_256_GCM, key, iv, true),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (&CHACHA20_POLY1305, key, iv, false),
            _ => return Err(RecordError::Cipher),
        };
        let form = match (version, gcm) {
            (ProtocolVersion::TLSv1_3, _) => Form::Tls13,
            (ProtocolVersion::TLSv1_2, true) => Form::Tls12Explicit,
            (ProtocolVersion::TLSv1_2, false) => Form::Tls12,
            _ => return Err(RecordError::Cipher),
        };
        let iv = iv.as_ref().try_into().map_err(|_| RecordError::Cipher)?;
        let key = UnboundKey::new(algorithm, key.as_ref()).map_err(|_| RecordError::Cipher)?;
        Ok(RecordKeys { key: LessSafeKey::new(key), iv, sequence, form })
    }

    /// How many records these keys have served.
    pub(super) fn used(&self) -> u64 {
        self.sequence
    }

    /// RFC 8446, section 5.3: the sequence number, padded on the left, over the initialisation vector.
    fn nonce(&self) -> [u8; 12] {
        let mut nonce = self.iv;
        for (byte, count) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= count;
        }
        nonce
    }

    /// RFC 5246, section 6.2.3.3.
    fn tls12_additional_data(&self, kind: u8, length: usize) -> [u8; 13] {
        let mut data = [0; 13];
        data[..8].copy_from_slice(&self.sequence.to_be_bytes());
        data[8..11].copy_from_slice(&[kind, 3, 3]);
        // The cast is exact: a record's length has 16 bits.
        data[11..].copy_from_slice(&(length as u16).to_be_bytes());
        data
    }

    /// Opens one whole record: its type, and where its content is. `room` is written to as far as the
    /// record needs it, which under TLS 1.3 is beyond the content.
    pub(super) fn open(&mut self, record: &mut [u8], room: &mut [u8]) -> Result<(u8, Opened), RecordError> {
        let (header, payload) = record.split_at_mut_checked(HEADER).ok_or(RecordError::Forged)?;
        let outer = header[0];
        let mut nonce = self.nonce();
        let explicit = if self.form == Form::Tls12Explicit { EXPLICIT_NONCE } else { 0 };
        let Some(length) = payload.len().checked_sub(explicit + TAG) else { return Err(RecordError::Forged) };
        let (carried, sealed) = payload.split_at_mut(explicit);
        nonce[12 - explicit..].copy_from_slice(carried);
        let (content, tag) = sealed.split_at_mut(length);
        let additional = self.tls12_additional_data(outer, length);
        let additional = match self.form {
            Form::Tls13 if outer != APPLICATION_DATA => return Err(RecordError::Unexpected(outer)),
            Form::Tls13 => &*header,
            Form::Tls12 | Form::Tls12Explicit => &additional[..],
        };
        let (nonce, additional) = (Nonce::assume_unique_for_key(nonce), Aad::from(additional));
        let fits = room.len() >= length;
        let opened = if fits {
            self.key.open_separate_gather(nonce, additional, content, tag, &mut room[..length])
        } else {
            self.key.open_in_place_separate_tag(nonce, additional, tag, content).map(|_| ())
        };
        opened.map_err(|_| RecordError::Forged)?;
        self.sequence += 1;
        let plain = if fits { &room[..length] } else { &content[..] };
        let (kind, length) = match self.form {
            Form::Tls13 => inner_type(plain)?,
            Form::Tls12 | Form::Tls12Explicit => (outer, length),
        };
        if length > MOST_CONTENT {
            return Err(RecordError::TooLong);
        }
        let start = HEADER + explicit;
        Ok((kind, if fits { Opened::Room(length) } else { Opened::Record(start..start + length) }))
    }

    /// Seals `content`, at most [`MOST_CONTENT`] of it, at the front of `out`, which has room for it
    /// and [`GROWTH`]. Returns the record's length.
    pub(super) fn seal(&mut self, kind: u8, content: &[u8], out: &mut [u8]) -> Result<usize, RecordError> {
        let nonce = self.nonce();
        let explicit = if self.form == Form::Tls12Explicit { EXPLICIT_NONCE } else { 0 };
        let inner: &[u8] = if self.form == Form::Tls13 { &[kind] } else { &[] };
        let payload = explicit + content.len() + inner.len() + TAG;
        let record = out.get_mut(..HEADER + payload).ok_or(RecordError::TooLong)?;
        let (header, rest) = record.split_at_mut(HEADER);
        header[0] = if self.form == Form::Tls13 { APPLICATION_DATA } else { kind };
        header[1..3].copy_from_slice(&[3, 3]);
        // The cast is exact: content has at most 2^14 bytes.
        header[3..].copy_from_slice(&(payload as u16).to_be_bytes());
        let (carried, sealed) = rest.split_at_mut(explicit);
        carried.copy_from_slice(&nonce[12 - explicit..]);
        let (into, after) = sealed.split_at_mut(content.len());
        let additional = self.tls12_additional_data(kind, content.len());
        let additional = if self.form == Form::Tls13 { &*header } else { &additional[..] };
        let (nonce, additional) = (Nonce::assume_unique_for_key(nonce), Aad::from(additional));
        self.key
            .seal_out_of_place_scatter(nonce, additional, content, into, inner, after)
            .map_err(|_| RecordError::Cipher)?;
        self.sequence += 1;
        Ok(HEADER + payload)
    }
}

/// RFC 8446, section 5.4: the last byte that is not zero is the type, what follows it is padding.
fn inner_type(plain: &[u8]) -> Result<(u8, usize), RecordError> {
    let at = plain.iter().rposition(|&byte| byte != 0).ok_or(RecordError::Unexpected(0))?;
    Ok((plain[at], at))
}

/// The length of the record at the front of `received`, once it is there whole.
pub(super) fn whole_record(received: &[u8]) -> Result<Option<usize>, RecordError> {
    let Some(header) = received.first_chunk::<HEADER>() else { return Ok(None) };
    let length = HEADER + usize::from(u16::from_be_bytes([header[3], header[4]]));
    if length > MOST_RECORD {
        return Err(RecordError::TooLong);
    }
    Ok((received.len() >= length).then_some(length))
}

/// How many bytes of records hold `content` bytes, when each is as full as it may be.
pub(super) fn sealed_length(content: usize) -> usize {
    content + content.div_ceil(MOST_CONTENT).max(1) * GROWTH
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rustls::crypto::cipher::{AeadKey, Iv};

    const KINDS: [fn() -> ConnectionTrafficSecrets; 2] = [
        || ConnectionTrafficSecrets::Aes256Gcm { key: AeadKey::from([7; 32]), iv: Iv::new([3; 12]) },
        || ConnectionTrafficSecrets::Chacha20Poly1305 { key: AeadKey::from([9; 32]), iv: Iv::new([5; 12]) },
    ];

    fn pair(version: ProtocolVersion, cipher: usize) -> (RecordKeys, RecordKeys) {
        let keys = || RecordKeys::new(version, (41, KINDS[cipher]())).unwrap();
        (keys(), keys())
    }

    proptest! {
        #[test]
        fn what_was_sealed_opens_again_wherever_there_is_room(
            content in proptest::collection::vec(any::<u8>(), 0..MOST_CONTENT),
            room in 0..=MOST_CONTENT + 1,
            cipher in 0..2usize,
            thirteen in any::<bool>(),
        ) {
            let version = if thirteen { ProtocolVersion::TLSv1_3 } else { ProtocolVersion::TLSv1_2 };
            let (mut sealing, mut opening) = pair(version, cipher);
            let mut out = vec![0; sealed_length(content.len())];
            for _ in 0..2 {
                let length = sealing.seal(APPLICATION_DATA, &content, &mut out).unwrap();
                prop_assert_eq!(whole_record(&out[..length - 1]), Ok(None));
                prop_assert_eq!(whole_record(&out), Ok(Some(length)));
                let mut room = vec![0; room];
                let (kind, opened) = opening.open(&mut out[..length], &mut room).unwrap();
                prop_assert_eq!(kind, APPLICATION_DATA);
                match opened {
                    Opened::Room(count) => prop_assert_eq!(&room[..count], &content[..]),
                    Opened::Record(range) => prop_assert_eq!(&out[range], &content[..]),
                }
            }
        }

        #[test]
        fn a_record_with_any_bit_changed_is_refused(at in 0..120usize, bit in 0..8u8, cipher in 0..2usize) {
            let (mut sealing, mut opening) = pair(ProtocolVersion::TLSv1_3, cipher);
            let mut out = vec![0; 256];
            let length = sealing.seal(APPLICATION_DATA, &[1; 98], &mut out).unwrap();
            prop_assert_eq!(length, 120);
            out[at] ^= 1 << bit;
            prop_assert!(opening.open(&mut out[..length], &mut [0; 200]).is_err());
        }
    }

    #[test]
    fn records_out_of_order_are_refused() {
        let (mut sealing, mut opening) = pair(ProtocolVersion::TLSv1_3, 0);
        let mut out = vec![0; 64];
        sealing.seal(APPLICATION_DATA, b"first", &mut out).unwrap();
        let length = sealing.seal(APPLICATION_DATA, b"second", &mut out).unwrap();
        assert_eq!(opening.open(&mut out[..length], &mut [0; 64]), Err(RecordError::Forged));
    }

    #[test]
    fn a_record_that_claims_too_much_is_refused_before_it_is_awaited() {
        let header = [APPLICATION_DATA, 3, 3, 0xff, 0xff];
        assert_eq!(whole_record(&header), Err(RecordError::TooLong));
    }

    #[test]
    fn padding_is_no_content() {
        assert_eq!(inner_type(b"content\x17\0\0"), Ok((APPLICATION_DATA, 7)));
        assert_eq!(inner_type(&[0; 9]), Err(RecordError::Unexpected(0)));
    }
}

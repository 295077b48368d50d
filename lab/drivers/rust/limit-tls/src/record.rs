//! One direction of TLS 1.3 with AES-128-GCM (RFC 8446, section 5), and no other cipher: 5 bytes of header,
//! the content and one byte of type encrypted together, 16 bytes of tag. No padding is sent; what comes padded
//! is refused.

use anyhow::{Result, anyhow, bail, ensure};
use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::ConnectionTrafficSecrets;

/// Bytes of a record's header.
pub const HEADER: usize = 5;
/// Bytes of a record that are not content: header, type, tag.
pub const OVERHEAD: usize = HEADER + 1 + TAG;
/// The most content in a record.
pub const FULL: usize = 1 << 14;
const TAG: usize = 16;

/// Types of records.
pub const ALERT: u8 = 21;
pub const HANDSHAKE: u8 = 22;
pub const DATA: u8 = 23;

/// A key, the vector that nonces are made of, and how many records it has served.
pub struct Direction {
    key: LessSafeKey,
    vector: u128,
    count: u64,
}

impl Direction {
    /// From what the handshake agreed on.
    pub fn new((count, secrets): (u64, ConnectionTrafficSecrets)) -> Result<Direction> {
        let ConnectionTrafficSecrets::Aes128Gcm { key, iv } = secrets else {
            bail!("the server chose a cipher that was not offered")
        };
        let key = UnboundKey::new(&AES_128_GCM, key.as_ref()).map_err(|_| anyhow!("a key of a wrong length"))?;
        let vector = iv.as_ref().iter().fold(0, |vector, byte| vector << 8 | u128::from(*byte));
        Ok(Direction { key: LessSafeKey::new(key), vector, count })
    }

    fn nonce(&mut self) -> Nonce {
        let mut nonce = [0; 12];
        nonce.copy_from_slice(&(self.vector ^ u128::from(self.count)).to_be_bytes()[4..]);
        self.count += 1;
        Nonce::assume_unique_for_key(nonce)
    }

    /// Opens a whole record into the front of `out`, which must have room for its content and one byte more.
    /// Returns the type and how much content there is.
    pub fn open(&mut self, record: &[u8], out: &mut [u8]) -> Result<(u8, usize)> {
        let (header, sealed) = record.split_at(HEADER);
        let inner = inner_len(record);
        let nonce = self.nonce();
        self.key
            .open_separate_gather(nonce, Aad::from(header), &sealed[..inner], &sealed[inner..], &mut out[..inner])
            .map_err(|_| anyhow!("a record's tag is wrong"))?;
        let kind = out[inner - 1];
        ensure!(kind != 0, "a padded record: this limit counts on none");
        Ok((kind, inner - 1))
    }

    /// Seals at most [`FULL`] bytes of content at the front of `out`. Returns the record's length.
    pub fn seal(&mut self, content: &[u8], out: &mut [u8]) -> Result<usize> {
        let length = content.len() + 1 + TAG;
        let [high, low] = u16::try_from(length)?.to_be_bytes();
        let (header, sealed) = out[..HEADER + length].split_at_mut(HEADER);
        header.copy_from_slice(&[DATA, 3, 3, high, low]);
        let (body, tail) = sealed.split_at_mut(content.len());
        let nonce = self.nonce();
        self.key
            .seal_out_of_place_scatter(nonce, Aad::from(&*header), content, body, &[DATA], tail)
            .map_err(|_| anyhow!("a record can't be sealed"))?;
        Ok(HEADER + length)
    }
}

/// Content and type of a whole record, in bytes.
pub fn inner_len(record: &[u8]) -> usize {
    record.len() - HEADER - TAG
}

/// The record at the front, once it is whole.
pub fn first_record(received: &[u8]) -> Result<Option<&[u8]>> {
    let Some(header) = received.first_chunk::<HEADER>() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
    ensure!(header[0] == DATA && length > TAG && length <= FULL + 1 + TAG, "not a record of TLS 1.3: {header:?}");
    Ok(received.get(..HEADER + length))
}

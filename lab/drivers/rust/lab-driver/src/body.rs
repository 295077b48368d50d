//! The bytes of a put: the computed object of the key `body`, by the formula of `wirespeed-origin --synthetic`.

use bytes::Bytes;

/// The table's period in bytes: a prime.
const PERIOD: usize = 1_048_583;
const KEY: &str = "body";

/// The first `length` bytes.
pub(crate) fn body(length: usize) -> Bytes {
    let table: Vec<u8> = (1..=(PERIOD as u64).div_ceil(8)).flat_map(|n| word(n).to_le_bytes()).take(PERIOD).collect();
    let mut bytes = Vec::with_capacity(length);
    let mut at = phase(KEY);
    while bytes.len() < length {
        let end = PERIOD.min(at + length - bytes.len());
        bytes.extend_from_slice(&table[at..end]);
        at = 0;
    }
    bytes.into()
}

fn word(n: u64) -> u64 {
    let mut state = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

fn phase(key: &str) -> usize {
    let hash = key
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
    (hash % PERIOD as u64) as usize
}

//! Numbers that are drawn from a seed and from what they are for, so that the same requests draw the same numbers in
//! whatever order they come.

/// A hash of its parts: FNV-1a over each and its length, finished by SplitMix64's mixer.
pub(crate) fn draw<'a>(seed: u64, parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ mix(seed);
    for part in parts {
        for byte in part.iter().chain(&(part.len() as u64).to_le_bytes()) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    mix(hash)
}

/// The number after `state` of a sequence that passes every test of randomness that matters here (SplitMix64).
pub(crate) fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The same number as a fraction: at least 0, below 1.
pub(crate) fn fraction(draw: u64) -> f64 {
    (draw >> 11) as f64 / (1_u64 << 53) as f64
}

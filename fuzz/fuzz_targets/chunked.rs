//! The chunked decoder: the same result however the input is cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wirespeed_fuzz::wire::chunked::{ChunkedDecoder, ChunkedError};

/// The data, the bytes consumed, whether it ended; or why not, with the data before that.
type Decoded = (Vec<u8>, Result<(usize, bool), ChunkedError>);

fn whole(input: &[u8]) -> Decoded {
    let mut out = Vec::new();
    let result = ChunkedDecoder::new().decode(input, &mut out, usize::MAX);
    (out, result)
}

/// In pieces of lengths that `cuts` gives; with `direct`, data is reported as received elsewhere.
fn in_pieces(input: &[u8], cuts: &[u8], direct: bool) -> Decoded {
    let (mut decoder, mut out, mut at) = (ChunkedDecoder::new(), Vec::new(), 0);
    let mut cuts = cuts.iter().cycle();
    while at < input.len() && !decoder.is_done() {
        let length = (1 + usize::from(*cuts.next().unwrap_or(&0) % 7)).min(input.len() - at);
        let wanted = usize::try_from(decoder.data_wanted()).unwrap_or(usize::MAX);
        if direct && wanted > 0 {
            let length = length.min(wanted);
            out.extend_from_slice(&input[at..at + length]);
            decoder.advance(length as u64).unwrap();
            at += length;
            continue;
        }
        match decoder.decode(&input[at..at + length], &mut out, usize::MAX) {
            Ok((consumed, done)) => {
                assert!(done || consumed == length, "input was left that nobody wants");
                at += consumed;
            }
            Err(error) => return (out, Err(error)),
        }
    }
    (out, Ok((at, decoder.is_done())))
}

fuzz_target!(|data: &[u8]| {
    let Some((&count, rest)) = data.split_first() else { return };
    let (cuts, input) = rest.split_at((usize::from(count) % 8).min(rest.len()));
    let expected = whole(input);
    assert!(expected.0.len() <= input.len());
    for direct in [false, true] {
        assert_eq!(in_pieces(input, cuts, direct), expected);
    }
    assert_eq!(in_pieces(input, &[0], false), expected);
});

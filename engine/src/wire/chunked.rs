//! The chunked transfer coding (RFC 9112, section 7.1), decoded as it arrives.
//!
//! Owns the state between two reads: input may be cut anywhere. [`ChunkedDecoder::step`] finds the next
//! piece of data in what was received; between steps [`ChunkedDecoder::data_wanted`] says how many bytes of
//! the current chunk are still to come, so that a reader can receive these straight into their
//! destination and report them with [`ChunkedDecoder::advance`]. Extensions and trailers are skipped.
//!
//! Refuses a size that is no number or beyond 64 bits, a line end that is not CR LF, and extensions or
//! trailers without end. The connection must then be closed.

use std::fmt;
use std::ops::Range;

/// The most bytes that extensions of one chunk may have.
pub const MAX_EXTENSION: usize = 4 * 1024;
/// The most bytes that the trailers may have.
pub const MAX_TRAILERS: usize = 64 * 1024;

/// Why a chunked body can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkedError {
    /// A chunk's size is not a hexadecimal number of at most 64 bits.
    Size,
    /// A line does not end as it must, or a chunk is longer than its size says.
    LineEnd,
    /// Extensions or trailers are longer than any server's.
    TooLong,
}

impl fmt::Display for ChunkedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Size => "a chunk of the response body has an unreadable size",
            Self::LineEnd => "a chunk of the response body does not end where its size says",
            Self::TooLong => "the response body has extensions or trailers without end",
        })
    }
}

impl std::error::Error for ChunkedError {}

/// What one step found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// How many bytes of the input are done with, the data included.
    pub consumed: usize,
    /// Which bytes of the input belong to the body; empty when none do.
    pub data: Range<usize>,
    /// Whether the body is complete. Input that was not consumed belongs to no one.
    pub done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size {
        value: u64,
        digits: u32,
    },
    Extension {
        length: usize,
    },
    SizeLf {
        value: u64,
    },
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    /// At the start of a trailer's line, or of the last, empty one.
    TrailerStart,
    Trailer,
    TrailerLf,
    LastLf,
    Done,
}

/// Decodes one body.
#[derive(Clone, Debug)]
pub struct ChunkedDecoder {
    state: State,
    /// The size of the chunk whose extensions are being skipped.
    size: u64,
    trailers: usize,
}

impl Default for ChunkedDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl ChunkedDecoder {
    /// A decoder at the start of a body.
    pub fn new() -> Self {
        Self { state: State::Size { value: 0, digits: 0 }, size: 0, trailers: 0 }
    }

    /// How many bytes of the current chunk are still to come; 0 when something else comes next.
    pub fn data_wanted(&self) -> u64 {
        match self.state {
            State::Data { left } => left,
            _ => 0,
        }
    }

    /// Whether the whole body was seen.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Tells the decoder that `count` bytes of data were received elsewhere.
    ///
    /// # Errors
    /// [`ChunkedError::LineEnd`] when that is more than [`Self::data_wanted`].
    pub fn advance(&mut self, count: u64) -> Result<(), ChunkedError> {
        let left = self.data_wanted().checked_sub(count).ok_or(ChunkedError::LineEnd)?;
        if count > 0 {
            self.state = if left == 0 { State::DataCr } else { State::Data { left } };
        }
        Ok(())
    }

    /// Reads `input` up to the end of the next piece of data, the end of the body or the end of the input.
    ///
    /// # Errors
    /// [`ChunkedError`] when the coding is broken.
    pub fn step(&mut self, input: &[u8]) -> Result<Step, ChunkedError> {
        let mut at = 0;
        while at < input.len() && self.state != State::Done {
            if let State::Data { left } = self.state {
                let room = input.len() - at;
                let length = usize::try_from(left).map_or(room, |left| left.min(room));
                self.advance(length as u64)?;
                return Ok(Step { consumed: at + length, data: at..at + length, done: false });
            }
            self.byte(input[at])?;
            at += 1;
        }
        Ok(Step { consumed: at, data: at..at, done: self.is_done() })
    }

    /// Appends the data in `input` to `out`, at most `most` bytes. Returns how many bytes of the input are done
    /// with (all of them, unless the body or the room ends before) and whether the body is complete.
    ///
    /// # Errors
    /// [`ChunkedError`] when the coding is broken; `out` has the data before that.
    pub fn decode(&mut self, input: &[u8], out: &mut Vec<u8>, most: usize) -> Result<(usize, bool), ChunkedError> {
        let (mut consumed, mut room) = (0, most);
        loop {
            let rest = &input[consumed..];
            let step = self.step(&rest[..rest.len().min(room)])?;
            room -= step.data.len();
            out.extend_from_slice(&rest[step.data]);
            consumed += step.consumed;
            if step.done || room == 0 || consumed == input.len() {
                return Ok((consumed, step.done));
            }
        }
    }

    fn byte(&mut self, byte: u8) -> Result<(), ChunkedError> {
        self.state = match (self.state, byte) {
            (State::Size { value, digits }, _) if byte.is_ascii_hexdigit() => {
                let digit = char::from(byte).to_digit(16).ok_or(ChunkedError::Size)?;
                // Sixteen digits are 64 bits. More are refused even if they are zeros.
                if digits == 16 {
                    return Err(ChunkedError::Size);
                }
                State::Size { value: (value << 4) | u64::from(digit), digits: digits + 1 }
            }
            (State::Size { digits: 0, .. }, _) => return Err(ChunkedError::Size),
            (State::Size { value, .. }, b'\r') => State::SizeLf { value },
            (State::Size { value, .. }, b';' | b' ' | b'\t') => {
                self.size = value;
                State::Extension { length: 0 }
            }
            (State::Size { .. }, _) => return Err(ChunkedError::Size),
            (State::Extension { .. }, b'\r') => State::SizeLf { value: self.size },
            (State::Extension { .. } | State::Trailer, b'\n') => return Err(ChunkedError::LineEnd),
            (State::Extension { length: MAX_EXTENSION.. }, _) => return Err(ChunkedError::TooLong),
            (State::Extension { length }, _) => State::Extension { length: length + 1 },
            (State::SizeLf { value: 0 }, b'\n') => State::TrailerStart,
            (State::SizeLf { value }, b'\n') => State::Data { left: value },
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Size { value: 0, digits: 0 },
            (State::TrailerStart, b'\r') => State::LastLf,
            (State::TrailerStart, b'\n') => return Err(ChunkedError::LineEnd),
            (State::TrailerStart, _) => State::Trailer,
            (State::Trailer, b'\r') => State::TrailerLf,
            (State::Trailer, _) => State::Trailer,
            (State::TrailerLf, b'\n') => State::TrailerStart,
            (State::LastLf, b'\n') => State::Done,
            _ => return Err(ChunkedError::LineEnd),
        };
        if matches!(self.state, State::Trailer) {
            self.trailers += 1;
            if self.trailers > MAX_TRAILERS {
                return Err(ChunkedError::TooLong);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(input: &[u8]) -> Result<(Vec<u8>, usize, bool), ChunkedError> {
        let mut out = Vec::new();
        let (consumed, done) = ChunkedDecoder::new().decode(input, &mut out, usize::MAX)?;
        Ok((out, consumed, done))
    }

    #[test]
    fn a_body_with_extensions_and_trailers_is_decoded() {
        let body = b"5\r\nhello\r\n6 ;name=\"v\";x\r\n world\r\n000\r\nx-amz-checksum: a\r\nb:\r\n\r\nnext";
        assert_eq!(decode(body).unwrap(), (b"hello world".to_vec(), body.len() - 4, true));
        assert_eq!(decode(b"0\r\n\r\n").unwrap(), (Vec::new(), 5, true));
        assert_eq!(decode(b"aB\r\n").unwrap(), (Vec::new(), 4, false));
        assert_eq!(decode(b"").unwrap(), (Vec::new(), 0, false));
    }

    #[test]
    fn broken_codings_are_refused() {
        use ChunkedError::{LineEnd, Size, TooLong};
        for (body, error) in [
            (b"\r\n".as_slice(), Size),
            (b"g\r\n", Size),
            (b"-1\r\n", Size),
            (b"0x5\r\n", Size),
            (b"5\nhello", Size),
            (b"10000000000000000\r\n", Size),
            (b"5\rhello", LineEnd),
            (b"5;a\nhello", LineEnd),
            (b"5\r\nhello!\r\n", LineEnd),
            (b"5\r\nhello\n0\r\n\r\n", LineEnd),
            (b"0\r\n\n", LineEnd),
            (b"0\r\na: b\n\r\n", LineEnd),
            (b"0\r\na: b\rc\r\n", LineEnd),
            (b"0\r\n\ra", LineEnd),
        ] {
            assert_eq!(decode(body), Err(error), "{}", body.escape_ascii());
        }
        let extension = format!("5;{}", "a".repeat(MAX_EXTENSION + 1));
        assert_eq!(decode(extension.as_bytes()), Err(TooLong));
        let trailers = format!("0\r\n{}", "a: b\r\n".repeat(MAX_TRAILERS / 4 + 1));
        assert_eq!(decode(trailers.as_bytes()), Err(TooLong));
    }

    #[test]
    fn data_can_be_received_elsewhere() {
        let mut decoder = ChunkedDecoder::new();
        let step = decoder.step(b"ffffffffffffffff\r\nab").unwrap();
        assert_eq!(step, Step { consumed: 20, data: 18..20, done: false });
        assert_eq!(decoder.data_wanted(), u64::MAX - 2);
        decoder.advance(u64::MAX - 3).unwrap();
        assert_eq!(decoder.advance(2), Err(ChunkedError::LineEnd));
        decoder.advance(1).unwrap();
        assert_eq!(decoder.data_wanted(), 0);
        assert_eq!(decoder.step(b"\r\n0\r\n\r\n").unwrap(), Step { consumed: 7, data: 7..7, done: true });
        assert!(decoder.is_done());
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_body(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8),
            cuts in prop::collection::vec(1usize..20, 1..80),
            most in prop_oneof![1usize..30, Just(usize::MAX)],
        ) {
            let mut body = Vec::new();
            for chunk in &chunks {
                body.extend_from_slice(format!("{:X};e\r\n", chunk.len()).as_bytes());
                body.extend_from_slice(chunk);
                body.extend_from_slice(b"\r\n");
            }
            body.extend_from_slice(b"0\r\nt: v\r\n\r\n");
            let (mut decoder, mut out, mut rest, mut done) = (ChunkedDecoder::new(), Vec::new(), &body[..], false);
            for cut in cuts.iter().cycle() {
                let mut piece;
                (piece, rest) = rest.split_at((*cut).min(rest.len()));
                while !piece.is_empty() {
                    let before = out.len();
                    let (consumed, finished) = decoder.decode(piece, &mut out, most).unwrap();
                    let taken = out.len() - before;
                    prop_assert!(taken <= most && (consumed == piece.len() || taken == most));
                    piece = &piece[consumed..];
                    done = finished;
                }
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert!(done);
            prop_assert_eq!(out, chunks.concat());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
            let _ = decode(&bytes);
        }
    }
}

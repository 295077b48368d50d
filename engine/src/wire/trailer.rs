//! The `aws-chunked` framing: a body in pieces, and behind it the checksum that was computed while the
//! pieces were sent.
//!
//! Owns the few bytes between the pieces and how long everything is together; the pieces themselves
//! are sent from where they lie. The framing is not a transfer coding: the request has a
//! `content-length`, which counts the framing too.

use std::io::Write as _;

use super::checksum::{ChecksumAlgorithm, Sum};

/// How much of a body is summed and sent at a time: small enough to be in the processor's cache still
/// when the kernel reads it. S3 wants at least 8 KiB.
pub const PIECE: usize = 1 << 20;

/// Appends what comes before a piece of `length` bytes, which is not 0. `first` is the first piece.
pub fn write_piece_head(out: &mut Vec<u8>, length: usize, first: bool) {
    // Writing to a Vec does not fail.
    let _ = write!(out, "{}{length:x}\r\n", if first { "" } else { "\r\n" });
}

/// Appends what comes after the last piece; `empty` says that there was none.
pub fn write_trailer(out: &mut Vec<u8>, sum: &Sum, empty: bool) {
    let end = if empty { "" } else { "\r\n" };
    let _ = write!(out, "{end}0\r\n{}:{sum}\r\n\r\n", sum.algorithm().header());
}

/// The length of a body of `length` bytes together with its framing and its trailer.
pub fn framed_length(length: u64, algorithm: ChecksumAlgorithm) -> u64 {
    let piece = PIECE as u64;
    let head = |length: u64| (u64::from(length.max(1).ilog2()) / 4 + 1) + 2;
    let (whole, rest) = (length / piece, length % piece);
    let mut total = length + whole * (head(piece) + 2);
    if rest > 0 {
        total += head(rest) + 2;
    }
    let value = match algorithm {
        ChecksumAlgorithm::Crc64Nvme => 12,
        ChecksumAlgorithm::Crc32 | ChecksumAlgorithm::Crc32c => 8,
        ChecksumAlgorithm::Sha256 => 44,
    };
    // `0`, the name, a colon and the value, each line with its end, and the empty line.
    total + 3 + algorithm.header().len() as u64 + 1 + value + 2 + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(body: &[u8], algorithm: ChecksumAlgorithm) -> Vec<u8> {
        let mut out = Vec::new();
        for (index, piece) in body.chunks(PIECE).enumerate() {
            write_piece_head(&mut out, piece.len(), index == 0);
            out.extend_from_slice(piece);
        }
        write_trailer(&mut out, &Sum::of(algorithm, body), body.is_empty());
        out
    }

    #[test]
    fn a_framed_body_is_exactly_this() {
        let text = String::from_utf8(framed(b"123456789", ChecksumAlgorithm::Crc64Nvme)).unwrap();
        assert_eq!(text, "9\r\n123456789\r\n0\r\nx-amz-checksum-crc64nvme:rosUhgp5mIg=\r\n\r\n");
        let empty = String::from_utf8(framed(b"", ChecksumAlgorithm::Crc32)).unwrap();
        assert_eq!(empty, "0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n");
    }

    #[test]
    fn the_length_that_is_announced_is_the_length_that_is_sent() {
        for algorithm in ChecksumAlgorithm::ALL {
            for length in [0, 1, 15, 16, 17, 255, 256, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 4096] {
                let sent = framed(&vec![7; length], algorithm).len() as u64;
                assert_eq!(framed_length(length as u64, algorithm), sent, "{algorithm} of {length}");
            }
        }
    }
}

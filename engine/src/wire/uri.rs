//! Percent-encoding as Signature Version 4 defines it, and its reverse.
//!
//! Owns the one encoding that request targets, canonical requests and url-encoded listings share. What is
//! written to the wire is already in canonical form, so that what is signed and what is sent can't differ.
//! Keys are encoded segment by segment and otherwise left alone: S3 does not normalise, so `.`, `..`,
//! `//` and a leading `/` stay.

use std::cmp::Ordering;
use std::fmt;

use smallvec::SmallVec;

/// The characters that Signature Version 4 leaves as they are (RFC 3986, unreserved).
const UNRESERVED: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b'-' | b'.' | b'_' | b'~');
        byte += 1;
    }
    table
};

const UPPER_HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Appends `key` as a path: everything but unreserved characters and `/` is percent-encoded.
pub fn encode_path(out: &mut Vec<u8>, key: &str) {
    encode::<true>(out, key.as_bytes());
}

/// Appends `text` as the name or the value of a query parameter: `/` is encoded too.
pub fn encode_query(out: &mut Vec<u8>, text: &str) {
    encode::<false>(out, text.as_bytes());
}

fn encode<const KEEP_SLASH: bool>(out: &mut Vec<u8>, text: &[u8]) {
    let plain = |byte: u8| UNRESERVED[usize::from(byte)] || (KEEP_SLASH && byte == b'/');
    let mut rest = text;
    loop {
        let run = rest.iter().position(|&byte| !plain(byte)).unwrap_or(rest.len());
        let (kept, tail) = rest.split_at(run);
        out.extend_from_slice(kept);
        let Some((&byte, tail)) = tail.split_first() else {
            return;
        };
        out.extend_from_slice(&[b'%', UPPER_HEX[usize::from(byte >> 4)], UPPER_HEX[usize::from(byte & 15)]]);
        rest = tail;
    }
}

/// Appends the canonical query string: pairs encoded and sorted by encoded name, then by encoded value;
/// a name without a value is written `name=`.
pub fn write_query(out: &mut Vec<u8>, pairs: &[(&str, &str)]) {
    let mut sorted: SmallVec<[(&str, &str); 8]> = SmallVec::from_slice(pairs);
    if sorted.len() > 1 {
        sorted.sort_unstable_by(|a, b| compare_encoded(a.0, b.0).then_with(|| compare_encoded(a.1, b.1)));
    }
    for (index, (name, value)) in sorted.iter().enumerate() {
        if index > 0 {
            out.push(b'&');
        }
        encode_query(out, name);
        out.push(b'=');
        encode_query(out, value);
    }
}

/// Orders two texts as their encodings would be ordered, without encoding them.
fn compare_encoded(a: &str, b: &str) -> Ordering {
    // An encoded byte becomes `%XX`, whose digits order as the byte does: one number a byte is enough.
    let rank = |byte: u8| {
        if UNRESERVED[usize::from(byte)] { u16::from(byte) << 8 } else { (u16::from(b'%') << 8) | u16::from(byte) }
    };
    a.bytes().map(rank).cmp(b.bytes().map(rank))
}

/// Why a url-encoded text could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// A `%` that two hexadecimal digits do not follow.
    Escape,
    /// The decoded bytes are not UTF-8.
    Utf8,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Escape => "a percent sign without two hexadecimal digits after it",
            Self::Utf8 => "bytes that are not UTF-8",
        })
    }
}

impl std::error::Error for DecodeError {}

/// Decodes `text` once, in place, as S3 encodes keys under `encoding-type=url`: `%XX` is a byte and `+` a
/// space.
pub fn decode_form(text: String) -> Result<String, DecodeError> {
    let special =
        |bytes: &[u8], from: usize| memchr::memchr2(b'%', b'+', &bytes[from..]).map_or(bytes.len(), |run| from + run);
    let mut read = special(text.as_bytes(), 0);
    if read == text.len() {
        return Ok(text);
    }
    let mut bytes = text.into_bytes();
    let mut write = read;
    while read < bytes.len() {
        let (byte, width) = if bytes[read] == b'+' {
            (b' ', 1)
        } else {
            let digit = |at| bytes.get(at).copied().and_then(hex_digit).ok_or(DecodeError::Escape);
            ((digit(read + 1)? << 4) | digit(read + 2)?, 3)
        };
        bytes[write] = byte;
        let run = read + width;
        read = special(&bytes, run);
        bytes.copy_within(run..read, write + 1);
        write += 1 + read - run;
    }
    bytes.truncate(write);
    String::from_utf8(bytes).map_err(|_| DecodeError::Utf8)
}

fn hex_digit(byte: u8) -> Option<u8> {
    // `to_digit` of a base of 16 is always below 16.
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(key: &str) -> String {
        let mut out = Vec::new();
        encode_path(&mut out, key);
        String::from_utf8(out).unwrap()
    }

    fn query(pairs: &[(&str, &str)]) -> String {
        let mut out = Vec::new();
        write_query(&mut out, pairs);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn awkward_keys_keep_their_shape() {
        for (key, encoded) in [
            ("a//b", "a//b"),
            ("c/./d", "c/./d"),
            ("../e", "../e"),
            ("/lead", "/lead"),
            ("trail/", "trail/"),
            ("a b", "a%20b"),
            ("a+b", "a%2Bb"),
            ("100%", "100%25"),
            ("%41", "%2541"),
            ("~-._", "~-._"),
            ("é", "%C3%A9"),
            ("🚀", "%F0%9F%9A%80"),
            ("a?b#c&d=e", "a%3Fb%23c%26d%3De"),
            ("\0\n", "%00%0A"),
        ] {
            assert_eq!(path(key), encoded);
        }
    }

    #[test]
    fn queries_are_sorted_by_their_encoding() {
        assert_eq!(query(&[("uploads", "")]), "uploads=");
        assert_eq!(query(&[("b", "2"), ("a", "1"), ("b", "1")]), "a=1&b=1&b=2");
        // Raw, `{` sorts before `~` and `é` after it; encoded, both begin with `%` and come first.
        assert_eq!(query(&[("~", ""), ("é", ""), ("A", ""), ("{", "")]), "%7B=&%C3%A9=&A=&~=");
        // By name first: `a` is before `a-`, though `a-=` is before `a=` as text.
        assert_eq!(query(&[("a-", "1"), ("a", "2")]), "a=2&a-=1");
        assert_eq!(query(&[("prefix", "a/b c")]), "prefix=a%2Fb%20c");
    }

    #[test]
    fn decoding_refuses_what_it_cannot_read() {
        assert_eq!(decode_form("a+b%2Bc%2f%C3%A9".into()), Ok("a b+c/é".into()));
        for broken in ["%", "%4", "a%zz", "%+1", "%G0"] {
            assert_eq!(decode_form(broken.into()), Err(DecodeError::Escape), "{broken}");
        }
        assert_eq!(decode_form("%ff".into()), Err(DecodeError::Utf8));
    }

    proptest! {
        #[test]
        fn encoding_round_trips(text in any::<String>()) {
            prop_assert_eq!(decode_form(path(&text)), Ok(text.clone()));
            let mut encoded = Vec::new();
            encode_query(&mut encoded, &text);
            prop_assert_eq!(decode_form(String::from_utf8(encoded).unwrap()), Ok(text));
        }

        #[test]
        fn decoding_never_panics(text in any::<String>()) {
            let _ = decode_form(text);
        }

        #[test]
        fn order_is_that_of_the_encoded_text(a in any::<String>(), b in any::<String>()) {
            let (mut x, mut y) = (Vec::new(), Vec::new());
            encode_query(&mut x, &a);
            encode_query(&mut y, &b);
            prop_assert_eq!(compare_encoded(&a, &b), x.cmp(&y));
        }
    }
}

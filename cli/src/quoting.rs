//! Words of a shell: how a command is written so that a shell, or `wirespeed run`, reads the same words again.
//!
//! Owns both directions. What is written is one line, whatever is in the words: control characters and bytes that are
//! not UTF-8 are spelled out in `$'…'`, which bash, zsh and ksh read too. What is read are quotes, backslashes and
//! comments; nothing is expanded, so `$HOME`, `~` and `*` stay what they are.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::iter::Peekable;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::slice::Iter;

/// A text, a path or an argument as one word of a shell, also where it is not UTF-8.
pub(crate) fn quoted<T: AsRef<OsStr> + ?Sized>(word: &T) -> Cow<'_, str> {
    let bytes = word.as_ref().as_bytes();
    let Ok(text) = str::from_utf8(bytes) else { return Cow::Owned(spelled_out(bytes)) };
    let plain = |c: char| c.is_alphanumeric() || "-_./:=+,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    if !text.chars().any(char::is_control) {
        return Cow::Owned(format!("'{}'", text.replace('\'', "'\\''")));
    }
    Cow::Owned(spelled_out(bytes))
}

fn spelled_out(bytes: &[u8]) -> String {
    let mut word = "$'".to_owned();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\'' | '\\' => word.extend(['\\', character]),
                _ if character.is_control() => {
                    let mut bytes = [0; 4];
                    word.extend(character.encode_utf8(&mut bytes).bytes().map(|byte| format!("\\x{byte:02x}")));
                }
                _ => word.push(character),
            }
        }
        word.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    word + "'"
}

/// The words of one line; none of a line that is blank or a comment.
///
/// # Errors
/// Says which quote is open at the end.
pub(crate) fn words(line: &[u8]) -> Result<Vec<OsString>, &'static str> {
    let mut bytes = line.iter().peekable();
    let mut words = Vec::new();
    loop {
        while bytes.next_if(|byte| byte.is_ascii_whitespace()).is_some() {}
        match bytes.peek() {
            None | Some(b'#') => return Ok(words),
            Some(_) => words.push(OsString::from_vec(word(&mut bytes)?)),
        }
    }
}

type Bytes<'a> = Peekable<Iter<'a, u8>>;

fn word(bytes: &mut Bytes<'_>) -> Result<Vec<u8>, &'static str> {
    let mut word = Vec::new();
    while let Some(&byte) = bytes.next_if(|byte| !byte.is_ascii_whitespace()) {
        match byte {
            b'\'' => loop {
                match bytes.next().ok_or("a ' is not closed")? {
                    b'\'' => break,
                    &byte => word.push(byte),
                }
            },
            b'"' => loop {
                match bytes.next().ok_or("a \" is not closed")? {
                    b'"' => break,
                    b'\\' => match *bytes.next().ok_or("a \" is not closed")? {
                        escaped @ (b'"' | b'\\' | b'$' | b'`') => word.push(escaped),
                        other => word.extend([b'\\', other]),
                    },
                    &byte => word.push(byte),
                }
            },
            b'\\' => word.push(*bytes.next().ok_or("the line ends in a \\")?),
            b'$' if bytes.next_if(|byte| **byte == b'\'').is_some() => spelled(bytes, &mut word)?,
            byte => word.push(byte),
        }
    }
    Ok(word)
}

/// The rest of `$'…'`, with the escapes of C.
fn spelled(bytes: &mut Bytes<'_>, word: &mut Vec<u8>) -> Result<(), &'static str> {
    const OPEN: &str = "a $' is not closed";
    loop {
        match bytes.next().ok_or(OPEN)? {
            b'\'' => return Ok(()),
            b'\\' => match bytes.next().ok_or(OPEN)? {
                b'a' => word.push(7),
                b'b' => word.push(8),
                b'e' | b'E' => word.push(27),
                b'f' => word.push(12),
                b'n' => word.push(b'\n'),
                b'r' => word.push(b'\r'),
                b't' => word.push(b'\t'),
                b'v' => word.push(11),
                b'x' => word.push(number(bytes, 0, 2, 16)? as u8),
                b'u' => push_character(number(bytes, 0, 4, 16)?, word)?,
                b'U' => push_character(number(bytes, 0, 8, 16)?, word)?,
                &digit @ b'0'..=b'7' => word.push(number(bytes, u32::from(digit - b'0'), 2, 8)? as u8),
                &itself @ (b'\\' | b'\'' | b'"' | b'?') => word.push(itself),
                &other => word.extend([b'\\', other]),
            },
            &byte => word.push(byte),
        }
    }
}

/// Up to `most` more digits behind `first`; of base 16 there must be one.
fn number(bytes: &mut Bytes<'_>, first: u32, most: usize, base: u32) -> Result<u32, &'static str> {
    let (mut number, mut digits) = (first, 0);
    while digits < most
        && let Some(digit) = bytes.peek().and_then(|byte| char::from(**byte).to_digit(base))
    {
        bytes.next();
        number = number.wrapping_mul(base).wrapping_add(digit);
        digits += 1;
    }
    if digits == 0 && base == 16 { Err("an escape of $'…' has no digits") } else { Ok(number) }
}

fn push_character(number: u32, word: &mut Vec<u8>) -> Result<(), &'static str> {
    let character = char::from_u32(number).ok_or("an escape of $'…' is no character")?;
    word.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(line: &str) -> Vec<String> {
        words(line.as_bytes()).unwrap().into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn words_as_a_shell_has_them() {
        assert_eq!(of("cp s3://b/k  ./k\t"), ["cp", "s3://b/k", "./k"]);
        assert_eq!(of(r#"cp 'a b'"c d"e\ f"#), ["cp", "a bc de f"]);
        assert_eq!(of(r#""\"\\\$\a" '' \#a b#c"#), ["\"\\$\\a", "", "#a", "b#c"]);
        assert_eq!(of(r"$'a\n\t\'\\\x41\101\u00e9\e' $HOME ~"), ["a\n\t'\\AAé\u{1b}", "$HOME", "~"]);
        assert_eq!(of("rm s3://b/k # not this"), ["rm", "s3://b/k"]);
        for nothing in ["", "  \t\r", "# all of it", "   #"] {
            assert_eq!(of(nothing), [""; 0], "{nothing}");
        }
    }

    #[test]
    fn what_is_open_at_the_end_is_an_error() {
        for (line, hint) in [("a 'b", "'"), ("\"a\\", "\""), ("a\\", "\\"), ("$'a", "$'"), (r"$'\x'", "digits")] {
            let error = words(line.as_bytes()).unwrap_err();
            assert!(error.contains(hint), "{line}: {error}");
        }
        assert!(words(br"$'\uD800'").is_err());
    }

    #[test]
    fn words_as_they_are_written() {
        assert_eq!(quoted("s3://b/a-b_c.d"), "s3://b/a-b_c.d");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("a key's"), "'a key'\\''s'");
        assert_eq!(quoted("a\n'\u{1b}"), "$'a\\x0a\\'\\x1b'");
        assert_eq!(quoted(OsStr::from_bytes(b"a\xff")), "$'a\\xff'");
    }

    proptest! {
        #[test]
        fn what_is_written_is_one_line_that_reads_back(texts in proptest::collection::vec(any::<Vec<u8>>(), 1..4)) {
            let texts: Vec<OsString> = texts.into_iter().map(OsString::from_vec).collect();
            let line = texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(" ");
            prop_assert!(!line.chars().any(char::is_control));
            prop_assert_eq!(words(line.as_bytes()), Ok(texts));
        }

        #[test]
        fn a_library_reads_the_same_words(line in "[ab '\"\\\\#$ ]{0,12}") {
            // Of `$'` it knows nothing.
            prop_assume!(!line.contains("$'"));
            let theirs = shlex::bytes::split(line.as_bytes());
            let ours = words(line.as_bytes());
            prop_assert_eq!(ours.ok().map(|words| words.into_iter().map(OsString::into_vec).collect::<Vec<_>>()), theirs);
        }
    }
}

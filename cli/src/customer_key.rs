//! Flags that give a customer's own encryption key (SSE-C), spelled as `aws s3` spells them.
//!
//! The key is read here and nowhere shown: not in `Debug`, not in an error, not in a usage message, which is why clap
//! is given text to keep and nothing to judge.

use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use wirespeed::SseCustomerKey;

use crate::failure::Failure;

/// What was given as a key. Any text will do until it is needed.
#[derive(Clone)]
pub(crate) struct KeyText(String);

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyText(hidden)")
    }
}

impl FromStr for KeyText {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<KeyText, Self::Err> {
        Ok(KeyText(text.to_owned()))
    }
}

impl KeyText {
    /// The file that holds it, as it was named; none where the key itself was given.
    fn file(&self) -> Option<&str> {
        Some(self.0.as_str()).filter(|text| text.starts_with("fileb://") || text.starts_with("file://"))
    }

    /// The key itself: 32 characters as they stand, the base64 of 32 bytes, or a file of 32 bytes.
    fn read(&self, flag: &str) -> Result<SseCustomerKey, Failure> {
        let file = self.0.strip_prefix("fileb://").or_else(|| self.0.strip_prefix("file://"));
        let bytes = match file {
            Some(path) => {
                let path = Path::new(path);
                fs::read(path).map_err(|source| Failure::local("read the key", path, source))?
            }
            None => self.0.clone().into_bytes(),
        };
        let key = match bytes.len() {
            44 => STANDARD.decode(&bytes).unwrap_or(bytes),
            _ => bytes,
        };
        SseCustomerKey::new(&key).map_err(|_| {
            Failure::Usage(format!(
                "{flag} holds no key: AES-256 takes 32 bytes, as they are, in base64, or from a file as \
                 fileb://path/to/key"
            ))
        })
    }
}

/// The algorithm that goes with a key. Any text will do until the key is read: in its place a key is given by
/// mistake, which no error may quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Aes256,
    Other,
}

impl FromStr for Algorithm {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Algorithm, Self::Err> {
        Ok(if text == "AES256" { Algorithm::Aes256 } else { Algorithm::Other })
    }
}

impl Algorithm {
    fn check(given: Option<Algorithm>, flag: &str) -> Result<(), Failure> {
        match given {
            Some(Algorithm::Other) => Err(Failure::Usage(format!(
                "{flag} takes the name of the algorithm, AES256, or nothing; write {flag}=AES256 before a file's name, and the \
                 key behind {flag}-key"
            ))),
            Some(Algorithm::Aes256) | None => Ok(()),
        }
    }
}

/// The key of the object that is written, or read.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CustomerKey {
    /// Encrypt or decrypt with a key of your own, the one in --sse-c-key
    #[arg(long, value_name = "ALGORITHM", num_args = 0..=1, default_missing_value = "AES256")]
    #[arg(requires = "sse_c_key")]
    sse_c: Option<Algorithm>,
    /// That key: 32 bytes as they are, in base64, or fileb://FILE, which other users of this machine cannot see
    #[arg(long, value_name = "KEY", requires = "sse_c")]
    sse_c_key: Option<KeyText>,
}

impl CustomerKey {
    /// The key, if there is one.
    pub(crate) fn read(&self) -> Result<Option<SseCustomerKey>, Failure> {
        Algorithm::check(self.sse_c, "--sse-c")?;
        self.sse_c_key.as_ref().map(|key| key.read("--sse-c-key")).transpose()
    }

    /// The flags again, as words of a command. A key that was given itself is left out: it is nobody else's to read.
    pub(crate) fn words(&self) -> Vec<String> {
        words("--sse-c", self.sse_c_key.as_ref())
    }
}

/// The key of the object that a copy on the server reads.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CopySourceKey {
    /// S3 to S3: the source is encrypted with a key of your own, the one in --sse-c-copy-source-key
    #[arg(long, value_name = "ALGORITHM", num_args = 0..=1, default_missing_value = "AES256")]
    #[arg(requires = "sse_c_copy_source_key")]
    sse_c_copy_source: Option<Algorithm>,
    /// That key, as for --sse-c-key
    #[arg(long, value_name = "KEY", requires = "sse_c_copy_source")]
    sse_c_copy_source_key: Option<KeyText>,
}

impl CopySourceKey {
    /// Whether there is one.
    pub(crate) fn given(&self) -> bool {
        self.sse_c_copy_source_key.is_some()
    }

    /// The key, if there is one.
    pub(crate) fn read(&self) -> Result<Option<SseCustomerKey>, Failure> {
        Algorithm::check(self.sse_c_copy_source, "--sse-c-copy-source")?;
        self.sse_c_copy_source_key.as_ref().map(|key| key.read("--sse-c-copy-source-key")).transpose()
    }

    /// As [`CustomerKey::words`].
    pub(crate) fn words(&self) -> Vec<String> {
        words("--sse-c-copy-source", self.sse_c_copy_source_key.as_ref())
    }
}

fn words(flag: &str, key: Option<&KeyText>) -> Vec<String> {
    match key.and_then(KeyText::file) {
        Some(file) => vec![format!("{flag}=AES256"), format!("{flag}-key"), file.to_owned()],
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_in_each_of_its_forms_and_never_shown() {
        let raw = "0123456789abcdef0123456789abcdef";
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), raw).unwrap();
        let expected = SseCustomerKey::new(raw.as_bytes()).unwrap();
        for form in [raw.to_owned(), STANDARD.encode(raw), format!("fileb://{}", file.path().display())] {
            let text = KeyText(form);
            assert!(text.read("--sse-c-key").unwrap() == expected);
            assert_eq!(format!("{text:?}"), "KeyText(hidden)");
        }
        for wrong in ["short-and-secret", "fileb:///no/such/file", ""] {
            let failure = KeyText(wrong.to_owned()).read("--sse-c-key").unwrap_err().to_string();
            assert!(!failure.contains("short-and-secret"), "{failure}");
        }
    }
}

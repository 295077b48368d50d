//! The file of what failed: a command a line that `wirespeed run` takes, each behind a comment that says why.
//!
//! Written as failures come, so that a run that is killed leaves what it knew. What was refused is no command that could
//! succeed, and stands there as a comment alone.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, visible};
use crate::quoting::quoted;

/// The file, empty at first.
pub(crate) struct FailuresFile {
    file: File,
    path: PathBuf,
    /// Flags that each command needs again.
    flags: String,
    /// Told once; the job goes on.
    trouble: Option<Failure>,
}

impl FailuresFile {
    /// Makes the file anew. `flags` are words of each command.
    pub(crate) fn create(path: &Path, flags: &[String]) -> Result<FailuresFile, Failure> {
        let file = File::create(path).map_err(|source| Failure::local("write", path, source))?;
        let flags = flags.iter().map(|flag| format!(" {}", quoted(flag))).collect();
        Ok(FailuresFile { file, path: path.to_owned(), flags, trouble: None })
    }

    /// A command that failed: its verb, what it is about, and flags of its own.
    pub(crate) fn command(&mut self, verb: &str, words: &[&str], why: &str) {
        let words: String = words.iter().map(|word| format!(" {}", quoted(word))).collect();
        self.write(&format!("# {}\n{verb}{words}{}\n", visible(why), self.flags));
    }

    /// Something that no command could do.
    pub(crate) fn remark(&mut self, why: &str) {
        self.write(&format!("# {}\n", visible(why)));
    }

    /// Why the file does not have all, if that is so.
    pub(crate) fn trouble(self) -> Option<Failure> {
        self.trouble
    }

    fn write(&mut self, lines: &str) {
        if self.trouble.is_none()
            && let Err(source) = self.file.write_all(lines.as_bytes())
        {
            self.trouble = Some(Failure::local("write", &self.path, source));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_command_and_a_comment_is_one_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut failures = FailuresFile::create(file.path(), &["--metadata={\"a\":\"b c\"}".to_owned()]).unwrap();
        failures.command("cp", &["s3://b/a key\n", "./k", "--raw"], "denied\nrm s3://b");
        failures.remark("refused `x`");
        assert!(failures.trouble().is_none());
        assert_eq!(
            std::fs::read_to_string(file.path()).unwrap(),
            "# denied\\nrm s3://b\ncp $'s3://b/a key\\x0a' ./k --raw '--metadata={\"a\":\"b c\"}'\n# refused `x`\n"
        );
    }
}

//! The media type that an object's name suggests, guessed as `aws s3` does: by the last ending, or by the one before
//! it where the last says how the file is compressed.

use std::path::Path;

/// Endings that say how a file is compressed and not what it is.
const COMPRESSIONS: [&str; 6] = ["br", "bz2", "gz", "xz", "z", "zst"];

/// Endings that stand for two.
const SHORT_FOR: [(&str, &str); 5] = [("svgz", "svg"), ("tbz2", "tar"), ("tgz", "tar"), ("taz", "tar"), ("txz", "tar")];

/// The media type of a file or key of this name; `None` where the name says nothing.
pub fn guess(name: &str) -> Option<&'static str> {
    let name = name.rsplit('/').next()?;
    let (stem, ending) = split(name)?;
    let ending = ending.to_ascii_lowercase();
    if COMPRESSIONS.contains(&ending.as_str()) {
        return split(stem).and_then(|(_, ending)| of_ending(&ending.to_ascii_lowercase()));
    }
    match SHORT_FOR.iter().find(|(short, _)| *short == ending) {
        Some((_, long)) => of_ending(long),
        None => of_ending(&ending),
    }
}

/// The name before its last dot, and what follows; a leading dot hides a file and begins no ending.
fn split(name: &str) -> Option<(&str, &str)> {
    let path = Path::new(name);
    Some((path.file_stem()?.to_str()?, path.extension()?.to_str()?))
}

fn of_ending(ending: &str) -> Option<&'static str> {
    mime_guess::from_ext(ending).first_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_aws_reads_them() {
        for (name, expected) in [
            ("a.txt", Some("text/plain")),
            ("dir.d/page.HTML", Some("text/html")),
            ("data.json", Some("application/json")),
            ("photo.jpeg", Some("image/jpeg")),
            ("a.tar", Some("application/x-tar")),
            ("a.tar.gz", Some("application/x-tar")),
            ("a.tgz", Some("application/x-tar")),
            ("a.csv.zst", Some("text/csv")),
            ("a.gz", None),
            (".gz", None),
            (".txt", None),
            ("a", None),
            ("a.", None),
            ("dir.txt/a", None),
            ("a.unheard-of", None),
            ("", None),
        ] {
            assert_eq!(guess(name), expected, "{name}");
        }
    }
}

//! The walk over a folder that is uploaded: in the order of names, symbolic links followed as `aws s3 cp` does.
//!
//! What cannot be uploaded is handed on with its reason: unreadable folders, links in a circle and names that are not
//! UTF-8 as failures, devices, pipes and sockets as skipped.

use std::io;
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

/// What the walk came upon.
#[derive(Debug)]
pub enum Found {
    /// A file to upload.
    File {
        /// Where it is.
        path: PathBuf,
        /// The path below the folder, with `/` between its components.
        relative: String,
        /// In bytes.
        size: u64,
    },
    /// Nothing that could be uploaded.
    Skipped {
        /// Where it is.
        path: PathBuf,
        /// What it is.
        why: &'static str,
    },
    /// Something that ought to be uploaded, and cannot be.
    Failed {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        why: Unreadable,
    },
}

/// Why something cannot be uploaded.
#[derive(Debug)]
pub enum Unreadable {
    /// The system's reason.
    Io(io::Error),
    /// Its name is not UTF-8, and S3 keys are.
    NotUtf8,
}

/// Walks over `folder`; on the caller's thread, which waits for the file system.
pub fn entries(folder: &Path) -> impl Iterator<Item = Found> {
    WalkDir::new(folder).min_depth(1).follow_links(true).sort_by_file_name().into_iter().filter_map(move |entry| {
        match entry {
            Ok(entry) => look_at(folder, entry),
            Err(error) => {
                let path = error.path().unwrap_or(folder).to_owned();
                let source = match error.loop_ancestor() {
                    Some(_) => io::Error::other("the symbolic link leads back to a folder above it"),
                    None => plain(&error),
                };
                Some(Found::Failed { path, why: Unreadable::Io(source) })
            }
        }
    })
}

/// The system's own error: walkdir's says the path again, which the message already has.
fn plain(error: &walkdir::Error) -> io::Error {
    match error.io_error().and_then(io::Error::raw_os_error) {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::other(error.to_string()),
    }
}

fn look_at(folder: &Path, entry: DirEntry) -> Option<Found> {
    let kind = entry.file_type();
    if kind.is_dir() {
        return None;
    }
    if !kind.is_file() {
        return Some(Found::Skipped { path: entry.into_path(), why: "not a regular file" });
    }
    let size = match entry.metadata() {
        Ok(metadata) => metadata.len(),
        Err(error) => {
            let why = Unreadable::Io(plain(&error));
            return Some(Found::Failed { path: entry.into_path(), why });
        }
    };
    let path = entry.into_path();
    let relative = path.strip_prefix(folder).ok().and_then(Path::to_str).map(str::to_owned);
    Some(match relative {
        Some(relative) => Found::File { path, relative, size },
        None => Found::Failed { path, why: Unreadable::NotUtf8 },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;

    fn described(folder: &Path) -> Vec<String> {
        entries(folder)
            .map(|found| match found {
                Found::File { relative, size, .. } => format!("{relative} {size}"),
                Found::Skipped { path, why } => {
                    format!("{}: {why}", path.file_name().unwrap().to_string_lossy())
                }
                Found::Failed { path, why } => format!("failed: {} {why:?}", path.display()),
            })
            .collect()
    }

    #[test]
    fn files_in_order_with_links_followed() {
        let folder = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("b/c")).unwrap();
        fs::write(folder.path().join("b/c/d"), "four").unwrap();
        fs::write(folder.path().join(".hidden"), "").unwrap();
        fs::write(other.path().join("x"), "x").unwrap();
        symlink(other.path(), folder.path().join("linked")).unwrap();
        symlink(other.path().join("x"), folder.path().join("z")).unwrap();
        assert_eq!(described(folder.path()), [".hidden 0", "b/c/d 4", "linked/x 1", "z 1"]);
    }

    #[test]
    fn what_cannot_be_uploaded_is_told_and_the_rest_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let socket = std::os::unix::net::UnixListener::bind(folder.path().join("a-socket")).unwrap();
        symlink("nowhere", folder.path().join("b-broken")).unwrap();
        symlink(".", folder.path().join("c-circle")).unwrap();
        fs::write(folder.path().join(OsStr::from_bytes(b"d-\xff")), "").unwrap();
        fs::write(folder.path().join("e"), "").unwrap();
        let described = described(folder.path());
        assert_eq!(described.len(), 5, "{described:?}");
        assert_eq!(described[0], "a-socket: not a regular file");
        assert!(described[1].contains("b-broken") && described[1].contains("NotFound"), "{described:?}");
        assert!(described[2].contains("c-circle") && described[2].contains("leads back"), "{described:?}");
        assert!(described[3].contains("NotUtf8"), "{described:?}");
        assert_eq!(described[4], "e 0");
        drop(socket);
    }
}

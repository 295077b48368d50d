//! Where the objects of a download land: keys become paths, or are refused.
//!
//! The folder is looked at on a blocking thread, a batch of keys at a time.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tokio::task::spawn_blocking;
use wirespeed_local::Target;

use crate::entry::Entry;

/// What became of one key.
pub(super) type Landed = (Entry, Result<PathBuf, String>);

/// The folder that a download fills.
pub(super) struct Landing(Option<Folder>);

struct Folder {
    target: Target,
    /// Whether anything may be made in it, to find out what it is like.
    may_probe: bool,
    names: Names,
}

/// Whether two names that differ in case are two files there.
enum Names {
    Unknown,
    Distinct,
    /// They are one. What names have come, as hashes: memory grows by some 10 bytes a file, on such a file system alone.
    Folded(HashSet<u64, BuildHasherDefault<DefaultHasher>>),
}

impl Landing {
    pub(super) fn new(folder: &Path, may_probe: bool) -> Landing {
        Landing(Some(Folder { target: Target::new(folder), may_probe, names: Names::Unknown }))
    }

    /// The paths of these, in their order.
    pub(super) async fn map(&mut self, entries: Vec<Entry>) -> Vec<Landed> {
        // It is only away while this runs.
        let Some(mut folder) = self.0.take() else { return Vec::new() };
        let mapping = spawn_blocking(move || {
            let landed = entries.into_iter().map(|entry| folder.map(entry)).collect();
            (folder, landed)
        });
        match mapping.await {
            Ok((folder, landed)) => {
                self.0 = Some(folder);
                landed
            }
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime ends, and all tasks with it.
                Err(_ended) => Vec::new(),
            },
        }
    }
}

impl Folder {
    fn map(&mut self, entry: Entry) -> Landed {
        if matches!(self.names, Names::Unknown) {
            self.names = self.look();
        }
        let key = entry.target();
        let path = self.target.map(key).and_then(|path| {
            let taken = match &mut self.names {
                Names::Folded(taken) => !taken.insert(folded(key)),
                Names::Unknown | Names::Distinct => false,
            };
            if taken {
                Err("its name differs from another's in case alone, and the folder tells no cases apart".to_owned())
            } else {
                Ok(path)
            }
        });
        (entry, path)
    }

    fn look(&self) -> Names {
        let root = self.target.root();
        let is_folded = if self.may_probe { probe(root) } else { None };
        match is_folded.or_else(|| of_its_own_name(root)) {
            Some(true) => Names::Folded(HashSet::default()),
            _ => Names::Distinct,
        }
    }
}

fn folded(key: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(key.to_lowercase())
}

/// Whether a file is found under a name in another case; `None` where none can be made, as where there is no folder yet.
fn probe(folder: &Path) -> Option<bool> {
    let file = tempfile::Builder::new().prefix(".CASE-").suffix(".wirespeed-partial").tempfile_in(folder).ok()?;
    let name = file.path().file_name()?.to_str()?.to_lowercase();
    Some(folder.join(name).symlink_metadata().is_ok())
}

/// The same by the folder's own name, or that of one above it: the file system is mostly one.
fn of_its_own_name(folder: &Path) -> Option<bool> {
    let folder = folder.ancestors().find_map(|above| above.canonicalize().ok())?;
    let above = folder.ancestors().find(|above| {
        above.file_name().is_some_and(|name| name.to_string_lossy().bytes().any(|byte| byte.is_ascii_alphabetic()))
    })?;
    let name: String = above.file_name()?.to_str()?.chars().map(other_case).collect();
    let (one, other) = (above.symlink_metadata().ok()?, above.with_file_name(name).symlink_metadata());
    Some(other.is_ok_and(|other| (other.dev(), other.ino()) == (one.dev(), one.ino())))
}

fn other_case(letter: char) -> char {
    if letter.is_ascii_lowercase() { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_cases_are_one_the_second_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let mut folder =
            Folder { target: Target::new(root.path()), may_probe: false, names: Names::Folded(HashSet::default()) };
        let mut mapped = |key: &str| folder.map(Entry::named(key)).1;
        assert!(mapped("Readme").is_ok());
        assert!(mapped("readme").unwrap_err().contains("in case alone"));
        assert!(mapped("../README").is_err());
        assert!(mapped("ÄRGER/x").is_ok());
        assert!(mapped("ärger/X").is_err());
    }

    #[tokio::test]
    async fn where_cases_are_two_both_are_files() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(probe(root.path()), Some(false), "this test is for a file system that tells cases apart");
        assert_eq!(of_its_own_name(&root.path().join("not/there/yet")), Some(false));
        let mut landing = Landing::new(root.path(), true);
        let landed = landing.map(vec![Entry::named("a"), Entry::named("A"), Entry::named("b").to("c/d")]).await;
        let paths: Vec<PathBuf> = landed.into_iter().map(|(_, path)| path.unwrap()).collect();
        assert_eq!(paths, ["a", "A", "c/d"].map(|name| root.path().join(name)));
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0, "nothing stays of the probe");
    }
}

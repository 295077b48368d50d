//! Local path mapping: where the object `key` goes below the folder that a recursive download fills.
//!
//! A key is whatever its writer chose, so it is judged here before anything is created. What could leave the folder
//! or mean two things is refused, one key at a time: an empty, `.` or `..` component (so also a leading `/`), a NUL,
//! a parent that is a symbolic link or a file, a name that is taken by a folder or a symbolic link, and a key that
//! came before. Everything else maps to the folder plus its components, byte for byte: two different keys never share a path.
//!
//! Memory stays small over millions of keys because a listing is in byte order: all keys that begin with `k` follow
//! `k` at once, and so do all keys of one folder. Keys in another order are still mapped safely; only a clash between
//! two objects of the same run is then left for the file system to notice.
//!
//! The folder is looked at before the engine writes: a symbolic link made by another process in between is not seen.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The folder that a recursive download fills.
pub struct Target {
    root: PathBuf,
    /// The folders below the root, down to the parent of the last accepted key, that are known to be no trap.
    verified: Vec<OsString>,
    /// Accepted keys that could be a proper beginning of the keys to come, each the beginning of the next.
    accepted: Vec<String>,
}

impl Target {
    /// A target rooted at `root`, which the person named: it may itself be, or lie behind, a symbolic link.
    pub fn new(root: &Path) -> Target {
        Target { root: root.to_owned(), verified: Vec::new(), accepted: Vec::new() }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path for a key relative to the prefix that is downloaded.
    ///
    /// # Errors
    /// In words, why there is none.
    pub fn map(&mut self, key: &str) -> Result<PathBuf, String> {
        let components = components(key)?;
        self.is_free(key)?;
        let (name, parents) = components.split_last().ok_or("it is empty")?;
        self.verify(parents)?;
        let mut path = self.root.clone();
        path.extend(&components);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => {
                return Err(format!("`{name}` is a symbolic link in the target folder"));
            }
            Ok(found) if found.is_dir() => return Err(format!("`{name}` is a folder in the target folder")),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.to_string()),
        }
        // Only now: a key that is refused takes no path from the keys after it.
        self.accepted.push(key.to_owned());
        Ok(path)
    }

    /// Whether no key of this run has the path already, or a part of it.
    fn is_free(&mut self, key: &str) -> Result<(), String> {
        while self.accepted.last().is_some_and(|earlier| !key.starts_with(earlier.as_str())) {
            self.accepted.pop();
        }
        for earlier in &self.accepted {
            match key.as_bytes().get(earlier.len()) {
                None => return Err("it came before: two objects cannot have one file".to_owned()),
                Some(b'/') => {
                    return Err(format!("`{earlier}` is an object of its own, so it cannot be a folder too"));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Sees that each parent is a folder, or missing and so about to be made.
    fn verify(&mut self, parents: &[&str]) -> Result<(), String> {
        let known =
            self.verified.iter().zip(parents).take_while(|(known, parent)| *known == OsStr::new(parent)).count();
        self.verified.truncate(known);
        let mut path = self.root.clone();
        path.extend(&parents[..known]);
        for parent in &parents[known..] {
            path.push(parent);
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_symlink() => {
                    return Err(format!("`{parent}` is a symbolic link in the target folder"));
                }
                Ok(found) if !found.is_dir() => {
                    return Err(format!("`{parent}` is a file in the target folder where a folder is needed"));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.to_string()),
            }
            self.verified.push(parent.into());
        }
        Ok(())
    }
}

/// The components of a key that is safe to map. Windows' ideas of a path are not judged: the tool is for Unix.
fn components(key: &str) -> Result<Vec<&str>, String> {
    if key.contains('\0') {
        return Err("it has a NUL, which no file name can have".to_owned());
    }
    if key.starts_with('/') {
        return Err("it is absolute and would leave the target folder".to_owned());
    }
    let components: Vec<&str> = key.split('/').collect();
    for component in &components {
        match *component {
            "" => return Err("it has an empty component".to_owned()),
            ".." => {
                return Err("it has a `..` component and could leave the target folder".to_owned());
            }
            "." => return Err("it has a `.` component".to_owned()),
            _ => {}
        }
    }
    Ok(components)
}

/// Checks a single object's file name, which is joined to the folder that the person named.
///
/// # Errors
/// In words, what is wrong with it.
pub fn file_name(name: &str) -> Result<&str, String> {
    components(name).map(|_| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;
    use std::path::Component;

    fn empty() -> (tempfile::TempDir, Target) {
        let folder = tempfile::tempdir().unwrap();
        let target = Target::new(folder.path());
        (folder, target)
    }

    #[test]
    fn ordinary_keys() {
        let (folder, mut target) = empty();
        for key in ["a", "b/c/d", "b/c/é ü", "b\\c", "c:\\x", "...", "..a", "a..", "~", "-", " ", "x\ny"] {
            assert_eq!(target.map(key), Ok(folder.path().join(key)), "{key:?}");
        }
    }

    #[test]
    fn keys_that_would_leave() {
        let (_folder, mut target) = empty();
        for key in
            ["", "/", "/etc/passwd", "..", "../x", "a/../../x", "a/..", "a/./b", ".", "a//b", "a/", "//x", "a\0b"]
        {
            assert!(target.map(key).is_err(), "{key:?}");
            assert!(file_name(key).is_err(), "{key:?}");
        }
    }

    #[test]
    fn symbolic_links_and_files_in_the_way() {
        let (folder, mut target) = empty();
        let outside = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "x").unwrap();
        fs::create_dir(folder.path().join("folder")).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("folder/link")).unwrap();
        for key in ["file/x", "folder", "folder/link", "folder/link/x", "link", "link/x", "link/y/z"] {
            assert!(target.map(key).is_err(), "{key}");
        }
        for key in ["file", "folder/x", "folder/y/z"] {
            assert!(target.map(key).is_ok(), "{key}");
        }
    }

    #[test]
    fn a_refused_key_takes_no_path_from_those_below_it() {
        let (folder, mut target) = empty();
        fs::create_dir(folder.path().join("folder")).unwrap();
        assert!(target.map("folder").is_err());
        assert_eq!(target.map("folder/x"), Ok(folder.path().join("folder/x")));
        assert!(target.map("folder/x").is_err(), "an accepted one does");
    }

    #[test]
    fn the_folder_itself_may_be_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(".", &link).unwrap();
        assert_eq!(Target::new(&link).map("a/b"), Ok(link.join("a/b")));
    }

    #[test]
    fn one_path_for_one_object() {
        let (_folder, mut target) = empty();
        assert!(target.map("a").is_ok());
        assert!(target.map("a").is_err());
        assert!(target.map("a-b").is_ok());
        assert!(target.map("a/b").is_err(), "`a` is a file of this run");
        assert!(target.map("a0").is_ok());
        assert!(target.map("b/c").is_ok());
        assert!(target.map("b/c/d/e").is_err());
    }

    fn key() -> impl Strategy<Value = String> {
        let component = prop_oneof![
            4 => "[ab]{1,2}",
            1 => Just(String::new()),
            1 => Just(".".to_owned()),
            1 => Just("..".to_owned()),
            1 => "\\PC{0,3}",
            1 => Just("\0".to_owned()),
        ];
        prop::collection::vec(component, 0..5).prop_map(|components| components.join("/"))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

        #[test]
        fn nothing_leaves_the_folder(keys in prop::collection::vec(prop_oneof![key(), any::<String>()], 1..30)) {
            let (folder, mut target) = empty();
            for key in &keys {
                if let Ok(path) = target.map(key) {
                    let inner = path.strip_prefix(folder.path()).unwrap();
                    prop_assert!(inner.components().all(|part| matches!(part, Component::Normal(_))));
                    prop_assert_eq!(inner.to_str(), Some(key.as_str()));
                }
            }
        }

        /// In listing order, the accepted keys can all be created as files, one beside the other.
        #[test]
        fn accepted_keys_can_all_be_files(mut keys in prop::collection::vec(key(), 1..30)) {
            let (_folder, mut target) = empty();
            keys.sort();
            let paths: Vec<PathBuf> = keys.iter().filter_map(|key| target.map(key).ok()).collect();
            let distinct: HashSet<&PathBuf> = paths.iter().collect();
            prop_assert_eq!(distinct.len(), paths.len());
            for path in &paths {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
        }
    }
}

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;
use crate::place::Place;
use crate::source::{Range, Source};

fn following() -> Looking {
    Looking { follow_links: true, ..Looking::default() }
}

/// The entries in the order in which they came, and the troubles in words.
fn walk(folder: &Path, looking: Looking) -> Result<(Vec<Entry>, Vec<String>), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (mut entries, mut troubles) = (Vec::new(), Vec::new());
        let mut source = Source::of(&Place::folder(folder), looking);
        while let Some(batch) = source.next().await {
            let batch = batch?;
            entries.extend(batch.entries);
            troubles.extend(batch.troubles.into_iter().map(|(entry, trouble)| match trouble {
                Trouble::Skipped(why) => format!("{}: skipped, {why}", entry.key),
                Trouble::Failed(failure) => format!("{}: {failure}", entry.key),
            }));
        }
        Ok((entries, troubles))
    })
}

fn keys(folder: &Path, looking: Looking) -> Vec<String> {
    let (entries, troubles) = walk(folder, looking).unwrap();
    assert!(troubles.is_empty(), "{troubles:?}");
    entries.into_iter().map(|entry| entry.key).collect()
}

fn fill(folder: &Path, files: &[&str]) {
    for file in files {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
}

#[test]
fn a_folder_stands_where_its_slash_does() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), &["a/b", "a.b", "a0", "a/c/d", "a-", ".hidden", "B"]);
    let (entries, _) = walk(folder.path(), following()).unwrap();
    let seen: Vec<_> = entries.iter().map(|entry| (entry.key.as_str(), entry.size.unwrap())).collect();
    let expected = [".hidden", "B", "a-", "a.b", "a/b", "a/c/d", "a0"];
    assert!(seen.into_iter().eq(expected.map(|key| (key, key.len() as u64))));
    let modified = fs::metadata(folder.path().join("B")).unwrap().modified().unwrap();
    assert_eq!(entries[1].modified, Some(modified.try_into().unwrap()));
    assert_eq!(entries[1].mode.unwrap() & 0o170000, 0o100000);
}

#[test]
fn links_are_followed_or_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    fill(other.path(), &["x/y"]);
    fill(folder.path(), &["a.b", "z"]);
    symlink(other.path(), folder.path().join("a")).unwrap();
    symlink(other.path().join("x/y"), folder.path().join("l")).unwrap();
    assert_eq!(keys(folder.path(), following()), ["a.b", "a/x/y", "l", "z"]);
    assert_eq!(keys(folder.path(), Looking::default()), ["a.b", "z"]);
}

#[test]
fn what_cannot_be_transferred_is_told_and_the_rest_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let socket = std::os::unix::net::UnixListener::bind(folder.path().join("a-socket")).unwrap();
    symlink("nowhere", folder.path().join("b-broken")).unwrap();
    fs::create_dir(folder.path().join("c")).unwrap();
    symlink("..", folder.path().join("c/circle")).unwrap();
    fs::write(folder.path().join(OsStr::from_bytes(b"d-\xff")), "").unwrap();
    fill(folder.path(), &["e"]);
    let (entries, mut troubles) = walk(folder.path(), following()).unwrap();
    assert_eq!(entries.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["e"]);
    troubles.sort();
    assert_eq!(troubles.len(), 4, "{troubles:?}");
    assert_eq!(troubles[0], "a-socket: skipped, not a regular file");
    assert!(troubles[1].starts_with("b-broken: cannot read"), "{troubles:?}");
    assert!(troubles[2].starts_with("c/circle/: ") && troubles[2].contains("leads back"), "{troubles:?}");
    assert!(troubles[3].contains("not UTF-8"), "{troubles:?}");
    drop(socket);
}

#[test]
fn a_folder_that_is_not_there_fails_the_walk_unless_it_is_to_be_made() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no");
    assert!(walk(&missing, following()).unwrap_err().to_string().starts_with("cannot read the folder"));
    assert_eq!(keys(&missing, Looking { may_be_missing: true, ..following() }), [""; 0]);
    fill(folder.path(), &["file"]);
    assert!(walk(&folder.path().join("file"), Looking { may_be_missing: true, ..following() }).is_err());
}

#[test]
fn what_a_stopped_download_left_is_no_file_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let left = [".a.0123abcd.wirespeed-partial", "b/.a.b.ffffffff.wirespeed-partial"];
    let own = [".wirespeed-partial", "a.0123abcd.wirespeed-partial", ".a.0123abcz.wirespeed-partial"];
    fill(folder.path(), &left);
    fill(folder.path(), &own);
    let mut seen = keys(folder.path(), following());
    seen.sort();
    let mut own = own.to_vec();
    own.sort();
    assert_eq!(seen, own);
}

#[test]
fn more_than_a_batch_arrives_whole_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..2_500).map(|number| format!("{:02}/{number:04}", number / 100)).collect();
    fill(folder.path(), &names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(keys(folder.path(), following()), names);
    let range = Range { after: Some("03/0310".to_owned()), until: Some("12/1200".to_owned()) };
    assert_eq!(keys(folder.path(), Looking { range, ..following() }), names[311..=1200]);
}

/// A tree: names that are files, or folders of the same.
#[derive(Debug, Clone)]
enum Tree {
    File,
    Folder(BTreeMap<String, Tree>),
}

fn tree() -> impl Strategy<Value = Tree> {
    // Bytes on both sides of the slash, and beyond ASCII.
    let name = "[a!\\-.0é]{1,3}".prop_filter("a name of its own", |name| name != "." && name != "..");
    Just(Tree::File).prop_recursive(3, 40, 8, move |inner| {
        prop::collection::btree_map(name.clone(), inner, 0..8).prop_map(Tree::Folder)
    })
}

fn make(path: &Path, key: &str, tree: &Tree, keys: &mut Vec<String>) {
    match tree {
        Tree::File => {
            fs::write(path, "").unwrap();
            keys.push(key.to_owned());
        }
        Tree::Folder(children) => {
            fs::create_dir_all(path).unwrap();
            for (name, child) in children {
                let key = if key.is_empty() { name.clone() } else { format!("{key}/{name}") };
                make(&path.join(name), &key, child, keys);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_order_is_that_of_the_keys_bytes(tree in tree()) {
        let folder = tempfile::tempdir().unwrap();
        let mut expected = Vec::new();
        if let Tree::Folder(_) = tree {
            make(folder.path(), "", &tree, &mut expected);
        }
        expected.sort_unstable();
        prop_assert_eq!(keys(folder.path(), following()), expected);
    }
}

//! `wirespeed tree`: a prefix as the tree of folders that its keys stand for.
//!
//! Keys come in order, so the folders that are open at a moment are those of the last key, and nothing else is kept. That
//! is also why lines are set in, and not joined: which one is the last of its folder is known only after all that is in
//! it.

use clap::Args;
use serde::Serialize;

use crate::access::Access;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::filter_flags::FilterFlags;
use crate::ls::next;
use crate::output::Output;
use crate::rows::push_visible;
use crate::selection::{Order, Scope, Selection};
use crate::units::{Size, objects, thousands};
use crate::uri::S3Uri;
use crate::wildcard::Wildcards;

const EXAMPLES: &str = "\
Examples:
  wirespeed tree s3://bucket/photos
  wirespeed tree --depth 2 s3://bucket       two levels; what lies deeper is counted
  wirespeed tree --sizes s3://bucket/photos --include '*.jpg' --exclude '*'";

/// Show the folders and objects under a prefix as a tree
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// s3://bucket[/prefix], or with wildcards
    #[arg(value_name = "S3_URI", value_parser = S3Uri::parse)]
    uri: S3Uri,
    /// So many levels; what lies deeper is counted on the line of its folder
    #[arg(long, short, visible_alias = "max-depth", value_name = "LEVELS", value_parser = clap::value_parser!(u32).range(1..))]
    depth: Option<u32>,
    /// Show the size of each object
    #[arg(long)]
    sizes: bool,
    #[command(flatten)]
    wildcards: Wildcards,
    #[command(flatten)]
    filter: FilterFlags,
    #[command(flatten)]
    access: Access,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Record<'a> {
    Folder { prefix: &'a str, depth: usize, objects: Option<u64>, bytes: Option<u64> },
    Object { key: &'a str, depth: usize, size: u64 },
    Summary { folders: u64, objects: u64, bytes: u64 },
}

/// Runs `tree`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let output = context.output;
    let selection = Selection::new(&arguments.uri, Scope::Folder, &arguments.wildcards, &arguments.filter);
    let root = selection.folder();
    let mut pages = selection.list_all(&context.client, &arguments.access, Order::ByKey).pages();
    let mut page = next(&mut pages, output).await?;
    // Not before something is known to be there.
    if !output.json() {
        output.line(&crate::failure::visible(&arguments.uri.with_key(root).to_string()))?;
    }
    let mut tree = Tree {
        output,
        root,
        sizes: arguments.sizes,
        depth: arguments.depth.map_or(usize::MAX, |levels| levels as usize),
        open: String::new(),
        collapsed: None,
        sum: Sum::default(),
    };
    while let Some(found) = page {
        output.rows(|rows| {
            for object in &found.objects {
                if selection.wants(&object.key, object.size, object.last_modified) {
                    tree.add(selection.relative(&object.key), object.size, rows);
                }
            }
        })?;
        page = next(&mut pages, output).await?;
    }
    output.rows(|rows| tree.close(rows))?;
    let Sum { folders, objects: count, bytes } = tree.sum;
    if output.json() {
        output.record(&Record::Summary { folders, objects: count, bytes })?;
    } else {
        let folders = format!("{} folder{}", thousands(folders), if folders == 1 { "" } else { "s" });
        output.line(&format!("\n{folders}, {}, {}", objects(count), Size(bytes)))?;
    }
    Ok(if count > 0 || selection.is_bucket() { Exit::Done } else { Exit::Partial })
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Sum {
    folders: u64,
    objects: u64,
    bytes: u64,
}

/// What is open while the keys go by.
struct Tree<'a> {
    output: &'a Output,
    root: &'a str,
    sizes: bool,
    depth: usize,
    /// The folder of the last key, of those that are shown.
    open: String,
    /// What lies too deep in it, where something does.
    collapsed: Option<(u64, u64)>,
    sum: Sum,
}

impl Tree<'_> {
    fn add(&mut self, key: &str, size: u64, rows: &mut Vec<u8>) {
        self.sum.objects += 1;
        self.sum.bytes += size;
        let slashes = || key.bytes().enumerate().filter(|(_, byte)| *byte == b'/').map(|(at, _)| at + 1);
        let levels = slashes().count();
        let end = slashes().take(self.depth).last().unwrap_or(0);
        let folder = &key[..end];
        if folder != self.open {
            self.close(rows);
            self.enter(folder, rows);
        }
        // A folder at the last level that is shown has its count on its own line.
        if levels >= self.depth {
            let (objects, bytes) = self.collapsed.unwrap_or_default();
            self.collapsed = Some((objects + 1, bytes + size));
        } else if end < key.len() {
            self.object(key, levels, size, rows);
        }
    }

    /// Shows the folders that the last one was not in, but for one that waits for its count.
    fn enter(&mut self, folder: &str, rows: &mut Vec<u8>) {
        let shared = shared_folder(&self.open, folder);
        self.open = folder.to_owned();
        let ends = folder[shared..].match_indices('/').map(|(at, _)| shared + at + 1);
        for (number, end) in ends.enumerate() {
            let level = folder[..shared].matches('/').count() + number + 1;
            self.sum.folders += 1;
            if level < self.depth {
                self.folder(&folder[..end], level, None, rows);
            }
        }
    }

    /// Shows the folder that waited for its count.
    fn close(&mut self, rows: &mut Vec<u8>) {
        if let Some(count) = self.collapsed.take() {
            let folder = std::mem::take(&mut self.open);
            self.folder(&folder, self.depth, Some(count), rows);
            self.open = folder;
        }
    }

    fn folder(&self, folder: &str, level: usize, count: Option<(u64, u64)>, rows: &mut Vec<u8>) {
        if self.output.json() {
            let (objects, bytes) = count.unzip();
            let prefix = format!("{}{folder}", self.root);
            return self.output.push_record(&Record::Folder { prefix: &prefix, depth: level, objects, bytes }, rows);
        }
        indent(level, rows);
        let name = folder.strip_suffix('/').unwrap_or(folder);
        push_visible(&folder[name.rfind('/').map_or(0, |slash| slash + 1)..], rows);
        if let Some((count, bytes)) = count {
            rows.extend_from_slice(format!("  ({}, {})", objects(count), Size(bytes)).as_bytes());
        }
        rows.push(b'\n');
    }

    fn object(&self, key: &str, levels: usize, size: u64, rows: &mut Vec<u8>) {
        if self.output.json() {
            let key = format!("{}{key}", self.root);
            return self.output.push_record(&Record::Object { key: &key, depth: levels + 1, size }, rows);
        }
        indent(levels + 1, rows);
        push_visible(key.rsplit('/').next().unwrap_or(key), rows);
        if self.sizes {
            rows.extend_from_slice(format!("  {}", Size(size)).as_bytes());
        }
        rows.push(b'\n');
    }
}

fn indent(level: usize, rows: &mut Vec<u8>) {
    rows.resize(rows.len() + 2 * level, b' ');
}

/// Bytes of the deepest folder that both are in.
fn shared_folder(one: &str, other: &str) -> usize {
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    one.as_bytes()[..same].iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Form;

    fn drawn(depth: usize, keys: &[&str]) -> (String, Sum) {
        let output = Output::new(Form::default());
        let (open, collapsed, sum) = (String::new(), None, Sum::default());
        let mut tree = Tree { output: &output, root: "", sizes: false, depth, open, collapsed, sum };
        let mut rows = Vec::new();
        keys.iter().for_each(|key| tree.add(key, 1, &mut rows));
        tree.close(&mut rows);
        (String::from_utf8(rows).unwrap(), tree.sum)
    }

    const KEYS: [&str; 7] = ["a/b/c/1", "a/b/c/2", "a/b/3", "a/bc/4", "a/x", "marker/", "z"];

    #[test]
    fn folders_open_and_close_as_keys_go_by() {
        let (text, sum) = drawn(usize::MAX, &KEYS);
        let expected =
            "  a/\n    b/\n      c/\n        1\n        2\n      3\n    bc/\n      4\n    x\n  marker/\n  z\n";
        assert_eq!(text, expected);
        assert_eq!(sum, Sum { folders: 5, objects: 7, bytes: 7 });
    }

    #[test]
    fn what_lies_too_deep_is_counted() {
        let (text, sum) = drawn(1, &KEYS);
        assert_eq!(text, "  a/  (5 objects, 5 Bytes)\n  marker/  (1 object, 1 Byte)\n  z\n");
        assert_eq!((sum.folders, sum.objects), (2, 7));
        let (text, _) = drawn(2, &KEYS);
        assert_eq!(text, "  a/\n    b/  (3 objects, 3 Bytes)\n    bc/  (1 object, 1 Byte)\n    x\n  marker/\n  z\n");
    }

    #[test]
    fn folders_share_whole_components() {
        for (one, other, shared) in [("a/b/", "a/bc/", 2), ("a/b/", "a/b/c/", 4), ("", "a/", 0), ("a/", "b/", 0)] {
            assert_eq!(shared_folder(one, other), shared);
        }
    }
}

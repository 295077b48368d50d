//! `wirespeed du`: how many objects lie under a prefix and how many bytes they are, folder by folder where asked.
//!
//! The listing comes in no order, from many listers at once. What is kept is one sum for each folder that is shown, and
//! nothing of the objects.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;
use wirespeed::StorageClass;

use crate::access::Access;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::filter_flags::FilterFlags;
use crate::ls::next;
use crate::rows::{push_right, push_size, push_visible};
use crate::selection::{Order, Scope, Selection};
use crate::uri::S3Uri;
use crate::wildcard::Wildcards;

const EXAMPLES: &str = "\
Examples:
  wirespeed du s3://bucket                         all of it: bytes, objects, address
  wirespeed du -H s3://bucket/photos s3://bucket/music
  wirespeed du -H --depth 1 s3://bucket            and each folder of the first level
  wirespeed du --group s3://bucket                 by storage class
  wirespeed du --all-versions s3://bucket          with what newer versions hide
  wirespeed du 's3://bucket/logs/*.gz' --older-than 30d";

/// Count objects and bytes under a prefix
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// s3://bucket[/prefix], or with wildcards
    #[arg(required = true, value_name = "S3_URI", value_parser = S3Uri::parse)]
    uris: Vec<S3Uri>,
    /// A line for each folder too, so many levels down
    #[arg(long, short, visible_alias = "max-depth", value_name = "LEVELS", default_value_t = 0)]
    depth: usize,
    /// Sizes as in 1.5 MiB
    #[arg(long, short = 'H', visible_alias = "humanize")]
    human_readable: bool,
    /// A line for each storage class
    #[arg(long, short)]
    group: bool,
    /// Count all versions, not the newest alone; delete markers are none
    #[arg(long)]
    all_versions: bool,
    #[command(flatten)]
    wildcards: Wildcards,
    #[command(flatten)]
    filter: FilterFlags,
    #[command(flatten)]
    access: Access,
}

#[derive(Serialize)]
struct Record<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    bucket: &'a str,
    prefix: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    storage_class: Option<&'a str>,
    objects: u64,
    bytes: u64,
}

/// Columns of a number.
const WIDTH: usize = 14;

/// Runs `du`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let (mut found, mut failed) = (false, 0);
    for uri in &arguments.uris {
        match one(context, arguments, uri).await {
            Ok(something) => found |= something,
            Err(failure) if arguments.uris.len() == 1 || matches!(failure, Failure::StdoutClosed) => {
                return Err(failure);
            }
            Err(failure) => {
                failed += 1;
                context.output.failure(&failure);
            }
        }
    }
    Ok(match failed {
        0 if found => Exit::Done,
        all if all == arguments.uris.len() => Exit::Failed,
        _ => Exit::Partial,
    })
}

/// Shows one address; tells whether there is anything, or a bucket that may well be empty.
async fn one(context: &Context<'_>, arguments: &Arguments, uri: &S3Uri) -> Result<bool, Failure> {
    let output = context.output;
    let selection = Selection::new(uri, Scope::Folder, &arguments.wildcards, &arguments.filter);
    let list = selection.list_all(&context.client, &arguments.access, Order::AsTheyCome);
    let mut sums = Sums { depth: arguments.depth, by_class: arguments.group, ..Sums::default() };
    if arguments.all_versions {
        let mut pages = list.versions();
        while let Some(page) = next(&mut pages, output).await? {
            for version in page.versions.iter().filter(|version| !version.is_delete_marker) {
                if selection.wants(&version.key, version.size, version.last_modified) {
                    sums.add(selection.relative(&version.key), version.size, version.storage_class.as_ref());
                }
            }
        }
    } else {
        let mut pages = list.pages();
        while let Some(page) = next(&mut pages, output).await? {
            for object in &page.objects {
                if selection.wants(&object.key, object.size, object.last_modified) {
                    sums.add(selection.relative(&object.key), object.size, object.storage_class.as_ref());
                }
            }
        }
    }
    let folders = sums.rolled_up();
    output.rows(|rows| {
        for (folder, classes) in &folders {
            // Of a pattern the folder is where its fixed part ends; its own line has the pattern.
            let prefix = if folder.is_empty() && selection.is_pattern() {
                uri.key.clone()
            } else {
                format!("{}{folder}", selection.folder())
            };
            for (class, usage) in classes {
                let storage_class = arguments.group.then(|| class.as_ref().map_or("-", StorageClass::as_str));
                let Usage { objects, bytes } = *usage;
                if output.json() {
                    let bucket = &uri.bucket;
                    let record = Record { kind: "usage", bucket, prefix: &prefix, storage_class, objects, bytes };
                    output.push_record(&record, rows);
                    continue;
                }
                push_size(bytes, arguments.human_readable, WIDTH, rows);
                push_size(objects, false, WIDTH, rows);
                rows.push(b' ');
                if let Some(class) = storage_class {
                    push_right(class, WIDTH, rows);
                    rows.push(b' ');
                }
                push_visible(&uri.with_key(&prefix).to_string(), rows);
                rows.push(b'\n');
            }
        }
    })?;
    let anything = folders.get("").into_iter().flatten().any(|(_, usage)| usage.objects > 0);
    Ok(anything || selection.is_bucket())
}

/// Objects, and the bytes in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Usage {
    objects: u64,
    bytes: u64,
}

impl Usage {
    fn and(self, other: Usage) -> Usage {
        Usage { objects: self.objects + other.objects, bytes: self.bytes + other.bytes }
    }
}

/// A usage for each storage class; under one heading where classes do not matter.
type Classes = Vec<(Option<StorageClass>, Usage)>;

/// The sums of folders, each without what lies in those below that have their own.
#[derive(Default)]
struct Sums {
    depth: usize,
    by_class: bool,
    folders: BTreeMap<String, Classes>,
    /// The folder of the last object, whose neighbours are mostly in it too.
    last: String,
    of_last: Classes,
}

impl Sums {
    fn add(&mut self, key: &str, size: u64, class: Option<&StorageClass>) {
        let folder = shown_folder(key, self.depth);
        if folder != self.last {
            self.put_away();
            self.last = folder.to_owned();
        }
        let class = class.filter(|_| self.by_class);
        enter(&mut self.of_last, class, Usage { objects: 1, bytes: size });
    }

    fn put_away(&mut self) {
        let sums = self.folders.entry(std::mem::take(&mut self.last)).or_default();
        self.of_last.drain(..).for_each(|(class, usage)| enter(sums, class.as_ref(), usage));
    }

    /// The sums of each folder and all below it; of the root also where there is nothing.
    fn rolled_up(mut self) -> BTreeMap<String, Classes> {
        self.put_away();
        let mut rolled: BTreeMap<String, Classes> = BTreeMap::new();
        rolled.entry(String::new()).or_default();
        for (folder, classes) in &self.folders {
            let ends = folder.match_indices('/').map(|(slash, _)| slash + 1);
            for end in std::iter::once(0).chain(ends) {
                let sums = rolled.entry(folder[..end].to_owned()).or_default();
                classes.iter().for_each(|(class, usage)| enter(sums, class.as_ref(), *usage));
            }
        }
        if let Some(root) = rolled.get_mut("")
            && root.is_empty()
        {
            root.push((None, Usage::default()));
        }
        rolled
    }
}

fn enter(classes: &mut Classes, class: Option<&StorageClass>, usage: Usage) {
    match classes.iter_mut().find(|(known, _)| known.as_ref() == class) {
        Some((_, sum)) => *sum = sum.and(usage),
        None => classes.push((class.cloned(), usage)),
    }
}

/// The folder of the key, at most so many levels down, with its slash.
fn shown_folder(key: &str, depth: usize) -> &str {
    let slashes = key.bytes().enumerate().filter(|(_, byte)| *byte == b'/');
    let end = slashes.take(depth).last().map_or(0, |(slash, _)| slash + 1);
    &key[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn folders_down_to_a_level() {
        for (key, depth, folder) in [
            ("a/b/c", 0, ""),
            ("a/b/c", 1, "a/"),
            ("a/b/c", 2, "a/b/"),
            ("a/b/c", 9, "a/b/"),
            ("a", 1, ""),
            ("a/", 1, "a/"),
        ] {
            assert_eq!(shown_folder(key, depth), folder, "{key} {depth}");
        }
    }

    #[test]
    fn classes_are_summed_apart() {
        let mut sums = Sums { by_class: true, ..Sums::default() };
        sums.add("a", 1, Some(&StorageClass::Standard));
        sums.add("b", 2, Some(&StorageClass::Glacier));
        sums.add("c", 4, Some(&StorageClass::Standard));
        let expected = vec![
            (Some(StorageClass::Standard), Usage { objects: 2, bytes: 5 }),
            (Some(StorageClass::Glacier), Usage { objects: 1, bytes: 2 }),
        ];
        assert_eq!(sums.rolled_up()[""], expected);
    }

    proptest! {
        #[test]
        fn every_folder_has_what_begins_with_it(
            keys in proptest::collection::vec(("[ab]{1,2}(/[ab]{1,2}){0,3}", 0_u64..100), 0..20),
            depth in 0_usize..4,
        ) {
            let mut sums = Sums { depth, ..Sums::default() };
            keys.iter().for_each(|(key, size)| sums.add(key, *size, None));
            let rolled = sums.rolled_up();
            for (folder, classes) in &rolled {
                let within = keys.iter().filter(|(key, _)| key.starts_with(folder.as_str()));
                let expected = within.fold(Usage::default(), |sum, (_, size)| sum.and(Usage { objects: 1, bytes: *size }));
                prop_assert_eq!(classes.as_slice(), &[(None, expected)][..], "{}", folder);
            }
            for (key, _) in &keys {
                prop_assert!(rolled.contains_key(shown_folder(key, depth)));
            }
        }
    }
}

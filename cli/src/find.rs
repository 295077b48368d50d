//! `wirespeed find`: the objects of a tree that pass tests, as addresses, as JSON, or as commands for `run`.
//!
//! A command is a template whose words are filled in and quoted for each object, so that whatever a key holds, `run` (or
//! a shell) reads it back as it is. An address whose key could be taken for a pattern is followed by `--raw`.

use clap::Args;
use serde::Serialize;
use wirespeed::StorageClass;
use wirespeed_bulk::Pattern;

use crate::access::Access;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::filter_flags::FilterFlags;
use crate::ls::{Time, next};
use crate::output::Output;
use crate::quoting::{quoted, words};
use crate::rows::push_visible;
use crate::selection::{Order, Scope, Selection};
use crate::uri::S3Uri;
use crate::wildcard::{Wildcards, has_wildcards};

const EXAMPLES: &str = "\
Examples:
  wirespeed find s3://bucket/photos --name '*.jpg' --larger 10MiB
  wirespeed find s3://bucket --storage-class GLACIER --older-than 90d
  wirespeed find s3://bucket --path 'logs/*/error*'
  wirespeed find s3://bucket --json | jq -r .key
  wirespeed find s3://bucket --print0 | xargs -0 -n 1 wirespeed stat --raw
  wirespeed find s3://bucket/tmp --older-than 7d --command 'rm {}' | wirespeed run -
  wirespeed find s3://bucket/in --command 'cp {} s3://other/{relative}' | wirespeed run -

In a command, {} is the address, {bucket}, {key}, {relative} (the key from the folder on that was named), {name} (its
last component) and {version} are its parts. Each is one word, whatever is in it.";

/// Find objects by name, age, size and storage class
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// s3://bucket[/prefix], or with wildcards
    #[arg(value_name = "S3_URI", value_parser = S3Uri::parse)]
    uri: S3Uri,
    /// Its last component matches (repeatable: one of them)
    #[arg(long, value_name = "PATTERN")]
    name: Vec<String>,
    /// The key from the folder on matches (repeatable: one of them)
    #[arg(long, value_name = "PATTERN")]
    path: Vec<String>,
    /// It has this storage class (repeatable: one of them)
    #[arg(long, value_name = "CLASS", ignore_case = true)]
    storage_class: Vec<String>,
    /// It lies at most so many levels down; 1 is the folder itself
    #[arg(long, value_name = "LEVELS", value_parser = clap::value_parser!(u64).range(1..))]
    max_depth: Option<u64>,
    /// All versions, not the newest alone; delete markers are none
    #[arg(long)]
    all_versions: bool,
    /// End each address with a NUL instead of a line, and spell nothing out
    #[arg(long, short = '0', conflicts_with = "command")]
    print0: bool,
    /// Print this command for each, to be piped into `wirespeed run -`
    #[arg(long, value_name = "TEMPLATE", value_parser = Template::parse)]
    command: Option<Template>,
    /// In the order in which pages come, where objects need no order
    #[arg(long)]
    unordered: bool,
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
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version_id: Option<&'a str>,
    size: u64,
    last_modified: Option<Time>,
    etag: Option<&'a str>,
    storage_class: Option<&'a str>,
}

/// Runs `find`.
pub(crate) async fn run(context: &Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let output = context.output;
    let selection = Selection::new(&arguments.uri, Scope::Folder, &arguments.wildcards, &arguments.filter);
    let order = if arguments.unordered { Order::AsTheyCome } else { Order::ByKey };
    let list = selection.list_all(&context.client, &arguments.access, order);
    let tests = Tests::new(arguments);
    let printer = Printer { output, arguments, selection: &selection };
    let mut found = false;
    let mut print = |object: Found<'_>, rows: &mut Vec<u8>| {
        if selection.wants(object.key, object.size, object.modified)
            && tests.pass(selection.relative(object.key), object.class)
        {
            found = true;
            printer.print(&object, rows);
        }
    };
    if arguments.all_versions {
        let mut pages = list.versions();
        while let Some(page) = next(&mut pages, output).await? {
            output.rows(|rows| {
                for version in page.versions.iter().filter(|version| !version.is_delete_marker) {
                    let object = Found {
                        key: &version.key,
                        version: Some(&version.version_id),
                        size: version.size,
                        modified: version.last_modified,
                        etag: version.etag.as_deref(),
                        class: version.storage_class.as_ref(),
                    };
                    print(object, rows);
                }
            })?;
        }
    } else {
        let mut pages = list.pages();
        while let Some(page) = next(&mut pages, output).await? {
            output.rows(|rows| {
                for object in &page.objects {
                    let object = Found {
                        key: &object.key,
                        version: None,
                        size: object.size,
                        modified: object.last_modified,
                        etag: object.etag.as_deref(),
                        class: object.storage_class.as_ref(),
                    };
                    print(object, rows);
                }
            })?;
        }
    }
    Ok(if found { Exit::Done } else { Exit::Partial })
}

/// An object, or a version of one, as the listing tells of it.
struct Found<'a> {
    key: &'a str,
    version: Option<&'a str>,
    size: u64,
    modified: Option<jiff::Timestamp>,
    etag: Option<&'a str>,
    class: Option<&'a StorageClass>,
}

/// The tests that only `find` has.
struct Tests {
    names: Vec<Pattern>,
    paths: Vec<Pattern>,
    classes: Vec<String>,
    max_depth: Option<u64>,
}

impl Tests {
    fn new(arguments: &Arguments) -> Tests {
        let patterns = |texts: &[String]| texts.iter().map(|text| Pattern::new(text)).collect();
        Tests {
            names: patterns(&arguments.name),
            paths: patterns(&arguments.path),
            classes: arguments.storage_class.iter().map(|class| class.to_ascii_uppercase()).collect(),
            max_depth: arguments.max_depth,
        }
    }

    fn pass(&self, relative: &str, class: Option<&StorageClass>) -> bool {
        let one_of = |patterns: &[Pattern], text: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(text))
        };
        // Who does not tell a class has but one.
        let class = class.map_or("STANDARD", StorageClass::as_str);
        one_of(&self.names, file_name(relative))
            && one_of(&self.paths, relative)
            && (self.classes.is_empty() || self.classes.iter().any(|wanted| wanted == class))
            && self.max_depth.is_none_or(|most| (relative.matches('/').count() as u64) < most)
    }
}

fn file_name(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or(key)
}

struct Printer<'a> {
    output: &'a Output,
    arguments: &'a Arguments,
    selection: &'a Selection,
}

impl Printer<'_> {
    fn print(&self, object: &Found<'_>, rows: &mut Vec<u8>) {
        let bucket = &self.arguments.uri.bucket;
        if let Some(template) = &self.arguments.command {
            return template.fill(bucket, object, self.selection.relative(object.key), rows);
        }
        if self.output.json() {
            let record = Record {
                kind: "object",
                bucket,
                key: object.key,
                version_id: object.version,
                size: object.size,
                last_modified: object.modified.map(Time),
                etag: object.etag,
                storage_class: object.class.map(StorageClass::as_str),
            };
            return self.output.push_record(&record, rows);
        }
        rows.extend_from_slice(b"s3://");
        rows.extend_from_slice(bucket.as_bytes());
        rows.push(b'/');
        if self.arguments.print0 {
            rows.extend_from_slice(object.key.as_bytes());
            return rows.push(0);
        }
        push_visible(object.key, rows);
        if let Some(version) = object.version {
            rows.push(b' ');
            push_visible(version, rows);
        }
        rows.push(b'\n');
    }
}

/// A command with holes, by its words.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Template(Vec<Vec<Piece>>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Hole(Hole),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hole {
    Address,
    Bucket,
    Key,
    Relative,
    Name,
    Version,
}

const HOLES: [(&str, Hole); 6] = [
    ("{}", Hole::Address),
    ("{bucket}", Hole::Bucket),
    ("{key}", Hole::Key),
    ("{relative}", Hole::Relative),
    ("{name}", Hole::Name),
    ("{version}", Hole::Version),
];

impl Template {
    fn parse(text: &str) -> Result<Template, String> {
        let words = words(text.as_bytes()).map_err(|why| format!("{why} in `{text}`"))?;
        if words.is_empty() {
            return Err("a command has at least a verb, as in 'rm {}'".to_owned());
        }
        // Text of an argument stays text, whatever quotes were taken from it.
        Ok(Template(words.iter().map(|word| pieces(&word.to_string_lossy())).collect()))
    }

    /// Adds the command for one object.
    fn fill(&self, bucket: &str, object: &Found<'_>, relative: &str, rows: &mut Vec<u8>) {
        let mut could_be_pattern = false;
        for (number, pieces) in self.0.iter().enumerate() {
            let mut word = String::new();
            for piece in pieces {
                let hole = match piece {
                    Piece::Text(text) => {
                        word.push_str(text);
                        continue;
                    }
                    Piece::Hole(hole) => hole,
                };
                let begun = word.len();
                match hole {
                    Hole::Address => word.extend(["s3://", bucket, "/", object.key]),
                    Hole::Bucket => word.push_str(bucket),
                    Hole::Key => word.push_str(object.key),
                    Hole::Relative => word.push_str(relative),
                    Hole::Name => word.push_str(file_name(object.key)),
                    Hole::Version => word.push_str(object.version.unwrap_or_default()),
                }
                could_be_pattern |= has_wildcards(&word[begun..]);
            }
            if number > 0 {
                rows.push(b' ');
            }
            rows.extend_from_slice(quoted(&word).as_bytes());
        }
        if could_be_pattern {
            rows.extend_from_slice(b" --raw");
        }
        rows.push(b'\n');
    }
}

fn pieces(word: &str) -> Vec<Piece> {
    let (mut pieces, mut text, mut rest) = (Vec::new(), String::new(), word);
    while let Some(next) = rest.chars().next() {
        let hole = HOLES.iter().find_map(|(name, hole)| Some((*hole, rest.strip_prefix(name)?)));
        match hole {
            Some((hole, after)) => {
                if !text.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                }
                pieces.push(Piece::Hole(hole));
                rest = after;
            }
            None => {
                text.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    if !text.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Text(text));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filled(template: &str, key: &str, relative: &str) -> String {
        let object = Found { key, version: Some("v1"), size: 1, modified: None, etag: None, class: None };
        let mut rows = Vec::new();
        Template::parse(template).unwrap().fill("b", &object, relative, &mut rows);
        String::from_utf8(rows).unwrap()
    }

    #[test]
    fn templates_are_filled() {
        assert_eq!(filled("rm {}", "d/a b", "a b"), "rm 's3://b/d/a b'\n");
        assert_eq!(filled("cp {} s3://o/{relative}", "d/x", "x"), "cp s3://b/d/x s3://o/x\n");
        assert_eq!(filled("cp {} 'in here/{name}'", "d/x", "x"), "cp s3://b/d/x 'in here/x'\n");
        assert_eq!(filled("rm {} --version-id {version}", "x", "x"), "rm s3://b/x --version-id v1\n");
        assert_eq!(filled("rm {}", "a*", "a*"), "rm 's3://b/a*' --raw\n");
        assert_eq!(filled("x {other} { } ''", "a", "a"), "x '{other}' '{' '}' ''\n");
        assert!(Template::parse("  ").is_err() && Template::parse("rm '{}").is_err());
    }

    #[test]
    fn every_test_must_pass() {
        let tests = Tests {
            names: vec![Pattern::new("*.txt"), Pattern::new("*.md")],
            paths: vec![Pattern::new("d/*")],
            classes: vec!["STANDARD".to_owned()],
            max_depth: Some(2),
        };
        assert!(tests.pass("d/a.txt", None) && tests.pass("d/a.md", Some(&StorageClass::Standard)));
        assert!(!tests.pass("d/a.gz", None), "name");
        assert!(!tests.pass("a.txt", None), "path");
        assert!(!tests.pass("d/a.txt", Some(&StorageClass::Glacier)), "class");
        assert!(!tests.pass("d/e/a.txt", None), "depth");
    }

    proptest! {
        #[test]
        fn a_command_reads_back_with_the_key_as_it_is(key in any::<String>()) {
            let line = filled("rm {} {key}", &key, &key);
            prop_assert_eq!(line.matches('\n').count(), 1);
            let read: Vec<_> = words(line.trim_end().as_bytes()).unwrap();
            let address = format!("s3://b/{key}");
            prop_assert_eq!(read[1].to_str(), Some(address.as_str()));
            prop_assert_eq!(read[2].to_str(), Some(key.as_str()));
            prop_assert_eq!(read.get(3).is_some(), has_wildcards(&key));
        }
    }
}

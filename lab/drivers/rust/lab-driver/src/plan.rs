//! The plan: one line of JSON, read once before the clock.

use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::About;
use crate::verbs::Skip;

/// The version of plans that is understood.
pub(crate) const VERSION: u64 = 1;

/// Where neither the plan nor the client has a number: the lab's own.
const DEFAULT_CONCURRENCY: usize = 16;

/// What a plan does with every item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Read an object, or a range of it.
    Get,
    /// Write an object.
    Put,
    /// List the keys under a prefix.
    List,
}

/// Where the bytes of a get go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sink {
    /// Received and dropped.
    Discard,
    /// The whole object in memory at once, in one piece.
    Memory,
    /// Chunk by chunk, in order.
    Stream,
    /// A file of its own.
    File,
}

/// Where the bytes of a put come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// One buffer for all items.
    Memory,
    /// A file of its own for each item.
    File,
}

/// One item of work.
#[derive(Clone, Debug, Deserialize)]
pub struct Item {
    /// Key of the object; empty for a list.
    #[serde(default)]
    pub key: String,
    /// Bytes of the whole object.
    #[serde(default)]
    pub size: u64,
    /// First byte and the one past the last; `None` for the whole object.
    #[serde(default)]
    range: Option<(u64, u64)>,
    /// Prefix to list.
    #[serde(default)]
    pub prefix: String,
}

impl Item {
    /// The list of a prefix.
    pub(crate) fn listed(prefix: String) -> Item {
        Item { key: String::new(), size: 0, range: None, prefix }
    }

    /// The part of the object to read; `None` for all of it.
    pub fn range(&self) -> Option<Range<u64>> {
        self.range.map(|(from, to)| from..to)
    }

    /// The bytes of the object that the item is about.
    pub fn span(&self) -> Range<u64> {
        self.range().unwrap_or(0..self.size)
    }

    /// Bytes that must move.
    pub fn length(&self) -> u64 {
        self.span().end - self.span().start
    }
}

/// A plan that the driver can do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is done.
    pub operation: Operation,
    /// Where a get's bytes go.
    pub sink: Sink,
    /// Where a put's bytes come from.
    pub source: Source,
    /// Operations in flight, or requests of one large object; `None` for the client's default.
    pub concurrency: Option<usize>,
    /// Bytes of a part; `None` for the client's default.
    pub part_size: Option<u64>,
    /// Whether bytes are checked on both ends; `None` for the client's default.
    pub checksums: Option<bool>,
    /// URL of the server.
    pub endpoint: String,
    /// Region that signatures name.
    pub region: String,
    /// Bucket of all items.
    pub bucket: String,
    /// Whether the bucket stands in the path rather than in the host's name.
    pub path_style: bool,
    /// PEM file of the authorities to trust.
    pub ca_file: Option<PathBuf>,
    /// Where a file sink's files go, and a file source's lie.
    pub folder: Option<PathBuf>,
    /// The prefix to list within a round that gets what is found there.
    pub listing: Option<String>,
    /// The items, in order.
    pub work: Vec<Item>,
}

/// The line as it came.
#[derive(Deserialize)]
struct Line {
    operation: Operation,
    sink: Option<Sink>,
    source: Option<Source>,
    concurrency: Option<usize>,
    part_size: Option<u64>,
    checksums: Option<bool>,
    endpoint: String,
    region: String,
    bucket: String,
    #[serde(default = "yes")]
    path_style: bool,
    ca_file: Option<PathBuf>,
    folder: Option<PathBuf>,
    listing: Option<String>,
    work: Vec<Item>,
}

fn yes() -> bool {
    true
}

impl Plan {
    /// Reads a plan's line.
    ///
    /// # Errors
    /// [`Skip`] where the driver of `about` cannot do the plan, any other where it is malformed or of another
    /// version.
    pub fn parse(line: &str, about: &About) -> Result<Plan> {
        let value: Value = serde_json::from_str(line).context("the plan is not JSON")?;
        ensure!(value["type"] == "plan", "the first line must be a plan, and its type is {}", value["type"]);
        let version = value["version"].as_u64().context("the plan has no version")?;
        ensure!(version == VERSION, "the plan is of version {version}; this driver understands {VERSION}");
        let line: Line = serde_json::from_value(value).context("the plan is malformed")?;
        let operation = line.operation;
        let sink = line.sink.filter(|_| operation == Operation::Get).unwrap_or(Sink::Discard);
        let source = line.source.filter(|_| operation == Operation::Put).unwrap_or(Source::Memory);
        let plan = Plan {
            operation,
            sink,
            source,
            concurrency: line.concurrency,
            part_size: line.part_size,
            checksums: line.checksums,
            endpoint: line.endpoint,
            region: line.region,
            bucket: line.bucket,
            path_style: line.path_style,
            ca_file: line.ca_file,
            folder: line.folder,
            listing: line.listing,
            work: line.work,
        };
        plan.check(about)?;
        Ok(plan)
    }

    fn check(&self, about: &About) -> Result<()> {
        ensure!(!self.work.is_empty(), "the plan has no work");
        ensure!(self.concurrency != Some(0) && self.part_size != Some(0), "concurrency and part_size are at least 1");
        let needs_folder = self.sink == Sink::File || self.source == Source::File;
        ensure!(self.listing.is_none() || self.operation == Operation::Get, "only what is got can be listed before");
        ensure!(!needs_folder || self.folder.is_some(), "the plan moves files and names no folder");
        for (n, item) in self.work.iter().enumerate() {
            ensure!(item.key.is_empty() == (self.operation == Operation::List), "item {n} of the plan has no key");
            let fits = item.range.is_none_or(|(from, to)| from < to && to <= item.size);
            ensure!(fits, "the range of item {n} of the plan does not lie within its {} bytes", item.size);
            if self.operation == Operation::Put && item.range.is_some() {
                bail!(Skip::new("a range of an object cannot be put"));
            }
        }
        let lacks = |what: &str| -> Result<()> {
            bail!(Skip::new(format!("{} has no {}", about.name, what.to_lowercase())));
        };
        if !about.operations.contains(&self.operation) {
            lacks(&format!("operation {:?}", self.operation))?;
        }
        if self.operation == Operation::Get && !about.sinks.contains(&self.sink) {
            lacks(&format!("sink {:?}", self.sink))?;
        }
        if !about.sources.contains(&self.source) {
            lacks(&format!("source {:?}", self.source))?;
        }
        if self.endpoint.starts_with("https:") && !about.tls {
            lacks("https here")?;
        }
        if self.listing.is_some() && !about.settings.contains(&"listing") {
            lacks("listing of what it gets")?;
        }
        if self.checksums == Some(true) && !about.settings.contains(&"checksums") {
            lacks("setting for checksums")?;
        }
        Ok(())
    }

    /// How much is kept in flight by a driver of a client that has no number of its own.
    pub fn in_flight(&self) -> usize {
        self.concurrency.unwrap_or(DEFAULT_CONCURRENCY)
    }

    /// The length of a part where the plan is one object that is to be moved in parts.
    pub fn split(&self) -> Option<u64> {
        let only = match self.work.as_slice() {
            [only] => only,
            _ => return None,
        };
        self.part_size.filter(|part| only.length() > *part)
    }
}

/// The access key and its secret that the environment gives.
///
/// # Errors
/// Where one of them is not set.
pub fn credentials() -> Result<(String, String)> {
    let variable = |name: &str| std::env::var(name).with_context(|| format!("{name} is not set"));
    Ok((variable("AWS_ACCESS_KEY_ID")?, variable("AWS_SECRET_ACCESS_KEY")?))
}

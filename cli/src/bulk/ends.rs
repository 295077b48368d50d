//! The two ends of a job: what its arguments mean as places, and which names of the source are meant.
//!
//! Owns the rules of paths, which are those of `aws s3`: a tree's source is a folder, also where its address ends in no
//! slash, and its content is what is copied; one object or file goes under the name that the destination says, or under its
//! own where that is a bucket, ends in a slash or is a folder. `/dev/null` takes bytes and keeps none. Refuses ends that
//! would eat their own source.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use wirespeed::{Client, SseCustomerKey};
use wirespeed_bulk::{Bucket, Entry, Pattern, Place};
use wirespeed_local::file_name;

use super::Asked;
use super::account::Verb;
use crate::access::Access;
use crate::context::Context;
use crate::failure::{Failure, visible};
use crate::uri::{Location, S3Uri};

/// Where a job takes from and brings to.
pub(crate) struct Ends {
    pub(crate) from: Place,
    pub(crate) to: Place,
    /// The one thing that is meant, where it is not a tree.
    pub(crate) alone: Option<Entry>,
    /// What the names of a tree have to match.
    pub(crate) pattern: Option<Pattern>,
    /// What is done to an item.
    pub(crate) operation: &'static str,
}

/// A path that takes whatever is written to it.
const NOWHERE: &str = "/dev/null";

/// Whether bytes that go there are dropped.
pub(crate) fn is_nowhere(destination: &Location) -> bool {
    matches!(destination, Location::Local(path) if path == Path::new(NOWHERE))
}

impl Ends {
    /// What the arguments mean.
    pub(crate) fn of(context: &Context<'_>, asked: &Asked<'_>) -> Result<Ends, Failure> {
        let nowhere = is_nowhere(asked.destination);
        match (asked.source, asked.destination) {
            (Location::S3(_), Location::Local(_)) if nowhere && asked.verb != Verb::Copy => {
                Err(Failure::Usage(format!("`{NOWHERE}` keeps nothing, and only cp goes there: name a folder")))
            }
            (Location::S3(uri), Location::Local(path)) => Ends::down(context, asked, uri, path, nowhere),
            (Location::Local(path), Location::S3(uri)) => Ends::up(context, asked, path, uri),
            (Location::S3(from), Location::S3(to)) => Ends::across(context, asked, from, to),
            (Location::Standard, _) | (_, Location::Standard) => Err(Failure::Usage(
                "a stream holds one object; name a folder, or copy one object with `wirespeed cp` without --recursive"
                    .to_owned(),
            )),
            (Location::Local(_), Location::Local(_)) => {
                Err(Failure::Usage("neither end is on S3; write that end as s3://bucket/key".to_owned()))
            }
        }
    }

    fn down(
        context: &Context<'_>,
        asked: &Asked<'_>,
        uri: &S3Uri,
        path: &Path,
        nowhere: bool,
    ) -> Result<Ends, Failure> {
        let key = asked.write.customer_key.read()?;
        let source = Source::of(asked, uri)?;
        let from = place(&context.client, &uri.bucket, &source.prefix, asked.access, key);
        let operation = if asked.verb == Verb::Move { "move" } else { "download" };
        let ends = |to, alone, pattern| Ends { from, to, alone, pattern, operation };
        if nowhere {
            return Ok(ends(Place::Nowhere, source.alone, source.pattern));
        }
        let Some(alone) = source.alone else {
            if path.exists() && !path.is_dir() {
                return Err(Failure::local("download into", path, io::ErrorKind::NotADirectory.into()));
            }
            return Ok(ends(Place::folder(path), None, source.pattern));
        };
        let file = destination_file(uri, path)?;
        let Some(name) = own_name(&file) else {
            let name = visible(&file.to_string_lossy()).into_owned();
            return Err(Failure::Usage(format!(
                "`{name}` is no name for a file that goes with this flag; use another"
            )));
        };
        let alone = alone.to(name);
        Ok(ends(Place::folder(folder_of(&file)), Some(alone), None))
    }

    fn up(context: &Context<'_>, asked: &Asked<'_>, path: &Path, uri: &S3Uri) -> Result<Ends, Failure> {
        let key = asked.write.customer_key.read()?;
        let operation = if asked.verb == Verb::Move { "move" } else { "upload" };
        let to = |prefix: &str| place(&context.client, &uri.bucket, prefix, asked.access, key.clone());
        let reading = if asked.recursive { "read the folder" } else { "read" };
        let found = fs::metadata(path).map_err(|source| Failure::local(reading, path, source))?;
        let name = || visible(&path.to_string_lossy()).into_owned();
        if asked.recursive {
            if !found.is_dir() {
                let what =
                    if asked.verb == Verb::Sync { "name the folder that it is in" } else { "leave out --recursive" };
                return Err(Failure::Usage(format!("`{}` is not a folder; {what}", name())));
            }
            return Ok(Ends {
                from: Place::folder(path),
                to: to(&uri.folder()),
                alone: None,
                pattern: None,
                operation,
            });
        }
        if found.is_dir() {
            return Err(Failure::Usage(format!("`{}` is a folder; add --recursive for all of it", name())));
        }
        if !found.is_file() {
            let kind = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
            return Err(Failure::local("upload", path, kind));
        }
        let Some(own_name) = own_name(path) else {
            return Err(Failure::Refused(format!("refused `{}`: its name is not UTF-8; rename it", name())));
        };
        let target = split(&under_its_name(uri, own_name));
        let alone = file(own_name, &found).to(target.1);
        Ok(Ends {
            from: Place::folder(folder_of(path)),
            to: to(&target.0),
            alone: Some(alone),
            pattern: None,
            operation,
        })
    }

    fn across(context: &Context<'_>, asked: &Asked<'_>, from: &S3Uri, to: &S3Uri) -> Result<Ends, Failure> {
        let source = Source::of(asked, from)?;
        let elsewhere = asked.tree.source.given();
        let target = match &source.alone {
            Some(_) => split(&under_its_name(to, from.file_name())),
            None => (to.folder(), String::new()),
        };
        if !elsewhere && from.bucket == to.bucket {
            refuse_circles(asked, from, &source, &target)?;
        }
        let client = if elsewhere { context.other_client(&asked.tree.source)? } else { context.client.clone() };
        let source_access = asked.copy.source_access(asked.access);
        let from = place(&client, &from.bucket, &source.prefix, &source_access, asked.copy.source_key()?);
        let key = asked.write.customer_key.read()?;
        let to = place(&context.client, &to.bucket, &target.0, asked.access, key);
        let alone = source.alone.map(|alone| alone.to(target.1));
        let operation = if asked.verb == Verb::Move { "move" } else { "copy" };
        Ok(Ends { from, to, alone, pattern: source.pattern, operation })
    }
}

/// What an address means as a source.
struct Source {
    prefix: String,
    alone: Option<Entry>,
    pattern: Option<Pattern>,
}

impl Source {
    fn of(asked: &Asked<'_>, uri: &S3Uri) -> Result<Source, Failure> {
        if let Some((prefix, pattern)) = asked.wildcards.split(uri) {
            return Ok(Source { prefix, alone: None, pattern: Some(pattern) });
        }
        if asked.recursive {
            return Ok(Source { prefix: uri.folder(), alone: None, pattern: None });
        }
        if uri.key.is_empty() {
            return Err(Failure::Usage(format!(
                "`{uri}` names no object; give the whole key, or add --recursive for all under it"
            )));
        }
        let (prefix, name) = split(uri);
        let alone = Entry { version: asked.version.map(str::to_owned), ..Entry::named(name) };
        Ok(Source { prefix, alone: Some(alone), pattern: None })
    }
}

/// Refuses what would copy its own copies, move something onto itself, or delete its own source.
fn refuse_circles(
    asked: &Asked<'_>,
    from: &S3Uri,
    source: &Source,
    (target, name): &(String, String),
) -> Result<(), Failure> {
    let shown = |key: &str| from.with_key(key);
    if source.alone.is_some() {
        let same = format!("{target}{name}") == from.key;
        return match asked.verb {
            Verb::Move if same => Err(Failure::Usage(format!("{from} cannot be moved onto itself"))),
            _ => Ok(()),
        };
    }
    let prefix = &source.prefix;
    if target == prefix && asked.verb == Verb::Move {
        return Err(Failure::Usage(format!("{} cannot be moved onto itself", shown(prefix))));
    }
    // What is copied would be listed, and copied again.
    if target != prefix && target.starts_with(prefix) {
        let (target, prefix) = (shown(target), shown(prefix));
        return Err(Failure::Usage(format!("{target} lies within {prefix}; copy it to a place outside")));
    }
    if asked.deletes && target != prefix && prefix.starts_with(target) {
        let (target, prefix) = (shown(target), shown(prefix));
        return Err(Failure::Usage(format!("--delete would delete {prefix} itself, which lies within {target}")));
    }
    Ok(())
}

/// A prefix of a bucket as a place.
pub(crate) fn place(
    client: &Client,
    bucket: &str,
    prefix: &str,
    access: &Access,
    key: Option<SseCustomerKey>,
) -> Place {
    let mut place = Bucket::new(client, bucket, prefix);
    if access.request_payer.is_some() {
        place = place.request_payer();
    }
    if let Some(owner) = &access.expected_bucket_owner {
        place = place.expected_owner(owner);
    }
    if let Some(key) = key {
        place = place.sse_customer_key(key);
    }
    place.into()
}

/// The destination on S3 of one object: a bucket, or what ends in `/`, takes the name that it had.
pub(crate) fn under_its_name(destination: &S3Uri, name: &str) -> S3Uri {
    if destination.is_prefix() {
        destination.with_key(&format!("{}{name}", destination.key))
    } else {
        destination.clone()
    }
}

/// The file that one object becomes: the destination, or in it when that is a folder.
pub(crate) fn destination_file(uri: &S3Uri, destination: &Path) -> Result<PathBuf, Failure> {
    let wants_folder = destination.as_os_str().as_encoded_bytes().ends_with(b"/");
    if !wants_folder && !destination.is_dir() {
        return Ok(destination.to_owned());
    }
    if uri.file_name().is_empty() {
        return Err(Failure::Usage(format!(
            "`{uri}` has no name to keep; name the file to write, or add --recursive for all under it"
        )));
    }
    let name = file_name(uri.file_name())
        .map_err(|why| Failure::Refused(format!("refused {uri}: {why}; name the file to write")))?;
    let path = destination.join(name);
    if path.is_dir() {
        return Err(Failure::local("write", &path, io::ErrorKind::IsADirectory.into()));
    }
    Ok(path)
}

/// The name of a path, as a key could have it.
pub(crate) fn own_name(path: &Path) -> Option<&str> {
    path.file_name().and_then(|name| name.to_str())
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The folder of a key, and the name in it: a slash at the end belongs to the name.
pub(crate) fn split(uri: &S3Uri) -> (String, String) {
    let inner = uri.key.strip_suffix('/').unwrap_or(&uri.key);
    let at = inner.rfind('/').map_or(0, |slash| slash + 1);
    (uri.key[..at].to_owned(), uri.key[at..].to_owned())
}

/// One file as a job is told of it.
fn file(name: &str, found: &Metadata) -> Entry {
    let nanosecond = i32::try_from(found.mtime_nsec()).unwrap_or(0);
    Entry {
        size: Some(found.len()),
        modified: Timestamp::new(found.mtime(), nanosecond).ok(),
        mode: Some(found.mode()),
        ..Entry::named(name)
    }
}

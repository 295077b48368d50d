//! Names of objects from a file, in the place of a listing: read as they are needed, one after another.
//!
//! Four forms: a name a line (a key or an `s3://` address, behind tabs its size and ETag), names that end in a NUL, the CSV
//! of S3's Inventory and Batch Operations, and the JSON lines of `wirespeed ls --json`. Names that are not below the place
//! the manifest is for are refused, and so is every line that is not what it should be, with its number; the lines after
//! it are read on. Nothing is held but the line.

mod csv_rows;

use std::fmt;
use std::io::{self, BufRead, Read as _};

use jiff::Timestamp;
use serde::Deserialize;

use self::csv_rows::CsvRows;
use crate::entry::Entry;

/// The longest line, in bytes: a key has at most 1,024, six times that where each byte is escaped, and there is room for
/// the rest of a record.
const LONGEST: u64 = 64 << 10;

/// How names are written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// A name a line. Behind it, after tabs, may stand the size in bytes and the ETag.
    Lines,
    /// Names that end in a NUL each, as `find -print0` writes them.
    Nul,
    /// Comma-separated values: of the columns named here, as `fileSchema` in an Inventory's `manifest.json` has them;
    /// `Bucket, Key` where none are named. Keys are URL-encoded.
    Csv(Vec<String>),
    /// JSON lines, as `wirespeed ls --json` prints them.
    Json,
}

impl Form {
    /// The form that a file's beginning suggests.
    pub fn guess(beginning: &[u8]) -> Form {
        match beginning.trim_ascii_start().first() {
            _ if beginning.contains(&0) => Form::Nul,
            Some(b'{') => Form::Json,
            Some(b'"') => Form::Csv(Vec::new()),
            _ => Form::Lines,
        }
    }

    /// The columns of a CSV, as an Inventory's `fileSchema` names them: `Bucket, Key, Size, ETag`.
    pub fn csv(schema: &str) -> Form {
        Form::Csv(schema.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }
}

/// Why a line is no name.
#[derive(Debug)]
pub struct ManifestError {
    /// The line, from 1; of names that end in a NUL, which of them.
    pub line: u64,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the manifest: {}", self.line, self.why)
    }
}

impl std::error::Error for ManifestError {}

/// The entries of a manifest, relative to a place.
pub struct Manifest<R> {
    lines: Lines<R>,
    /// Of whose names they are; `None` for files.
    bucket: Option<String>,
    prefix: String,
}

enum Lines<R> {
    Ended,
    By { reader: R, line: u64, end: u8, parse: Parse },
    Csv(Box<CsvRows<R>>),
}

/// Reads a line: `None` for one that names nothing.
type Parse = fn(&str) -> Result<Option<Row>, String>;

/// What a line says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Row {
    bucket: Option<String>,
    key: String,
    size: Option<u64>,
    etag: Option<String>,
    modified: Option<Timestamp>,
    version: Option<String>,
}

impl<R: BufRead> Manifest<R> {
    /// Reads a manifest in this form. Its keys must begin with `prefix`, which entries leave out, and be of `bucket` where
    /// they name one.
    pub fn new(reader: R, form: &Form, bucket: Option<&str>, prefix: &str) -> Manifest<R> {
        let by = |reader, end, parse| Lines::By { reader, line: 0, end, parse };
        let lines = match form {
            Form::Lines => by(reader, b'\n', columns as Parse),
            Form::Nul => by(reader, 0, name as Parse),
            Form::Json => by(reader, b'\n', json as Parse),
            Form::Csv(schema) => Lines::Csv(Box::new(CsvRows::new(reader, schema))),
        };
        Manifest { lines, bucket: bucket.map(str::to_owned), prefix: prefix.to_owned() }
    }

    /// The next line that is not empty, whatever it says.
    fn next_row(&mut self) -> Option<(u64, Result<Row, String>)> {
        loop {
            let Lines::By { reader, line, end, parse } = &mut self.lines else {
                return match &mut self.lines {
                    Lines::Csv(rows) => rows.next(),
                    _ => None,
                };
            };
            let mut bytes = Vec::new();
            *line += 1;
            let number = *line;
            let read = reader.by_ref().take(LONGEST).read_until(*end, &mut bytes);
            let parsed = match read {
                Ok(0) => return None,
                Ok(_) if bytes.last() != Some(end) && bytes.len() as u64 == LONGEST => {
                    // What follows is no line's beginning.
                    let why = format!("it is longer than {LONGEST} bytes, which no name is");
                    self.lines = Lines::Ended;
                    return Some((number, Err(why)));
                }
                Ok(_) => {
                    let text = bytes.strip_suffix(&[*end]).unwrap_or(&bytes);
                    let text = if *end == b'\n' { text.strip_suffix(b"\r").unwrap_or(text) } else { text };
                    match std::str::from_utf8(text) {
                        Ok("") => continue,
                        Ok(text) => parse(text),
                        Err(_) => Err("it is not UTF-8, and S3 keys are".to_owned()),
                    }
                }
                Err(error) => {
                    self.lines = Lines::Ended;
                    return Some((number, Err(cannot_read(&error))));
                }
            };
            match parsed {
                Ok(Some(row)) => return Some((number, Ok(row))),
                Ok(None) => {}
                Err(why) => return Some((number, Err(why))),
            }
        }
    }

    fn entry(&self, row: Row) -> Result<Entry, String> {
        let Row { bucket, key, size, etag, modified, version } = row;
        if let (Some(named), Some(wanted)) = (&bucket, &self.bucket)
            && named != wanted
        {
            return Err(format!("it names the bucket `{named}`, and the job is about `{wanted}`"));
        }
        match key.strip_prefix(&self.prefix) {
            Some("") => Err("it names no object".to_owned()),
            Some(key) => Ok(Entry { size, etag, modified, version, ..Entry::named(key) }),
            None => {
                Err(format!("`{}` does not begin with `{}`, which the job is about", key.escape_debug(), self.prefix))
            }
        }
    }
}

impl<R: BufRead> Iterator for Manifest<R> {
    type Item = Result<Entry, ManifestError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (line, row) = self.next_row()?;
        Some(row.and_then(|row| self.entry(row)).map_err(|why| ManifestError { line, why }))
    }
}

fn cannot_read(error: &io::Error) -> String {
    format!("it cannot be read: {error}")
}

/// A key, or an address with its bucket.
fn name(text: &str) -> Result<Option<Row>, String> {
    let Some(address) = text.strip_prefix("s3://") else {
        return Ok(Some(Row { key: text.to_owned(), ..Row::default() }));
    };
    let (bucket, key) = wirespeed::split_bucket(address);
    if bucket.is_empty() || key.is_empty() {
        return Err(format!("`{}` names no object; write it as s3://bucket/key", text.escape_debug()));
    }
    Ok(Some(Row { bucket: Some(bucket.to_owned()), key: key.to_owned(), ..Row::default() }))
}

/// A name, and behind tabs its size and ETag.
fn columns(text: &str) -> Result<Option<Row>, String> {
    let mut columns = text.split('\t');
    let row = name(columns.next().unwrap_or_default())?;
    let size = columns.next().filter(|size| !size.is_empty()).map(bytes).transpose()?;
    let etag = columns.next().filter(|etag| !etag.is_empty()).map(str::to_owned);
    if columns.next().is_some() {
        return Err("it has more than a name, a size and an ETag between tabs".to_owned());
    }
    Ok(row.map(|row| Row { size, etag, ..row }))
}

fn bytes(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{}` is no number of bytes", text.escape_debug()))
}

/// A line of `wirespeed ls --json`. What is no object (a prefix, a delete marker, the summary) names nothing.
fn json(text: &str) -> Result<Option<Row>, String> {
    #[derive(Deserialize)]
    struct Line {
        #[serde(rename = "type")]
        kind: Option<String>,
        bucket: Option<String>,
        key: Option<String>,
        size: Option<u64>,
        etag: Option<String>,
        last_modified: Option<String>,
        version_id: Option<String>,
        #[serde(default)]
        is_delete_marker: bool,
    }
    let line: Line = serde_json::from_str(text).map_err(|error| format!("it is no JSON of an object: {error}"))?;
    if line.is_delete_marker || !matches!(line.kind.as_deref(), None | Some("object" | "version")) {
        return Ok(None);
    }
    let key = line.key.ok_or("it has no `key`")?;
    let Line { bucket, size, etag, last_modified, version_id: version, .. } = line;
    let modified = last_modified.and_then(|time| time.parse().ok());
    Ok(Some(Row { bucket, key, size, etag, modified, version }))
}

#[cfg(test)]
mod tests;

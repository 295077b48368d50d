//! Rows of comma-separated values: S3's Inventory, and manifests of S3 Batch Operations.
//!
//! Which column is what the Inventory's own `manifest.json` tells (`fileSchema`); a first row that names `Bucket` and `Key`
//! tells it too. Keys are URL-encoded, as both write them (S3 User Guide, "Amazon S3 Inventory list").

use std::io::BufRead;

use percent_encoding::percent_decode_str;

use super::{Row, bytes};

/// The columns that say something here.
#[derive(Debug, Clone, Copy, Default)]
struct Columns {
    bucket: Option<usize>,
    key: Option<usize>,
    size: Option<usize>,
    etag: Option<usize>,
    modified: Option<usize>,
    version: Option<usize>,
    is_delete_marker: Option<usize>,
}

impl Columns {
    fn named<'n>(names: impl IntoIterator<Item = &'n str>) -> Columns {
        let mut columns = Columns::default();
        for (place, name) in names.into_iter().enumerate() {
            let column = match name {
                "Bucket" => &mut columns.bucket,
                "Key" => &mut columns.key,
                "Size" => &mut columns.size,
                "ETag" => &mut columns.etag,
                "LastModifiedDate" => &mut columns.modified,
                "VersionId" => &mut columns.version,
                "IsDeleteMarker" => &mut columns.is_delete_marker,
                _ => continue,
            };
            *column = Some(place);
        }
        columns
    }
}

pub(super) struct CsvRows<R> {
    reader: csv::Reader<R>,
    record: csv::StringRecord,
    columns: Columns,
    first: bool,
}

impl<R: BufRead> CsvRows<R> {
    pub(super) fn new(reader: R, schema: &[String]) -> CsvRows<R> {
        let reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(reader);
        let columns = match schema {
            [] => Columns::named(["Bucket", "Key"]),
            schema => Columns::named(schema.iter().map(String::as_str)),
        };
        CsvRows { reader, record: csv::StringRecord::new(), columns, first: true }
    }

    /// The next row with its line.
    pub(super) fn next(&mut self) -> Option<(u64, Result<Row, String>)> {
        loop {
            let line = self.reader.position().line();
            match self.reader.read_record(&mut self.record) {
                Ok(false) => return None,
                Ok(true) => {}
                Err(error) => return Some((line, Err(format!("it is no row of values: {error}")))),
            }
            let line = self.record.position().map_or(line, csv::Position::line);
            if std::mem::take(&mut self.first) {
                let named = Columns::named(self.record.iter());
                if named.bucket.is_some() && named.key.is_some() {
                    self.columns = named;
                    continue;
                }
            }
            match self.row() {
                Ok(Some(row)) => return Some((line, Ok(row))),
                Ok(None) => {}
                Err(why) => return Some((line, Err(why))),
            }
        }
    }

    /// `None` for a delete marker.
    fn row(&self) -> Result<Option<Row>, String> {
        let column =
            |place: Option<usize>| place.and_then(|place| self.record.get(place)).filter(|text| !text.is_empty());
        if column(self.columns.is_delete_marker) == Some("true") {
            return Ok(None);
        }
        let key = column(self.columns.key).ok_or("it has no key where the schema says one is")?;
        // `+` is a blank there, and a plus is `%2B`.
        let spaced = key.replace('+', " ");
        let key = percent_decode_str(&spaced).decode_utf8().map_err(|_| "its key is not UTF-8 when it is decoded")?;
        let size = column(self.columns.size).map(bytes).transpose()?;
        let text = |place| column(place).map(str::to_owned);
        Ok(Some(Row {
            bucket: text(self.columns.bucket),
            key: key.into_owned(),
            size,
            // The Inventory leaves the quotes out that a listing has.
            etag: column(self.columns.etag).map(|etag| format!("\"{}\"", etag.trim_matches('"'))),
            modified: column(self.columns.modified).and_then(|time| time.parse().ok()),
            version: text(self.columns.version),
        }))
    }
}

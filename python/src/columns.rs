//! A listing as columns: Arrow arrays, built on the engine's threads as its pages arrive.
//!
//! Owns: what the columns are, and how a page of the engine's becomes a part of them. Nothing here is
//! Python's: a key becomes a Python object only when somebody asks for it. Where the text of a column
//! would no longer fit into offsets of 32 bits, another chunk of rows is begun.

use std::mem;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder};
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use jiff::Timestamp;
use wirespeed::{StorageClass, VersionPage};

const ZONE: &str = "UTC";

/// Bytes of text in one column after which a chunk is full: a page more, of 8 MiB at most, still fits.
const FULL: usize = 1 << 30;

/// A page as the engine gives it.
pub(crate) enum Found {
    Objects(wirespeed::Page),
    Versions(VersionPage),
}

impl Found {
    /// The keys that were found.
    pub(crate) fn keys(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Found::Objects(page) => Box::new(page.objects.iter().map(|object| object.key.as_str())),
            Found::Versions(page) => Box::new(page.versions.iter().map(|version| version.key.as_str())),
        }
    }
}

/// Rows of a listing, one array a column.
pub(crate) struct Chunk {
    pub(crate) keys: StringArray,
    pub(crate) sizes: Int64Array,
    pub(crate) last_modified: TimestampMicrosecondArray,
    pub(crate) etags: StringArray,
    pub(crate) storage_classes: StringArray,
    /// Of a listing of versions.
    pub(crate) versions: Option<Versions>,
}

pub(crate) struct Versions {
    pub(crate) ids: StringArray,
    pub(crate) latest: BooleanArray,
    pub(crate) delete_markers: BooleanArray,
}

/// Rows of a listing, in the server's order, and the prefixes that it rolled up.
pub(crate) struct Columns {
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) rows: usize,
    pub(crate) prefixes: Vec<String>,
    of_versions: bool,
}

impl Columns {
    /// One page.
    pub(crate) fn of(found: Found) -> Columns {
        let mut builder = Builder::new(matches!(found, Found::Versions(_)));
        builder.append(found);
        builder.finish()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0 && self.prefixes.is_empty()
    }

    /// The chunk that holds a row, and which of its rows that is.
    pub(crate) fn find(&self, mut row: usize) -> Option<(&Chunk, usize)> {
        for chunk in &self.chunks {
            if row < chunk.keys.len() {
                return Some((chunk, row));
            }
            row -= chunk.keys.len();
        }
        None
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        let mut fields = vec![
            Field::new("key", DataType::Utf8, false),
            Field::new("size", DataType::Int64, false),
            Field::new("last_modified", DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into())), true),
            Field::new("etag", DataType::Utf8, true),
            Field::new("storage_class", DataType::Utf8, true),
        ];
        if self.of_versions {
            fields.push(Field::new("version_id", DataType::Utf8, false));
            fields.push(Field::new("is_latest", DataType::Boolean, false));
            fields.push(Field::new("is_delete_marker", DataType::Boolean, false));
        }
        Arc::new(Schema::new(fields))
    }

    /// The chunks for others to read; their memory is shared with them.
    pub(crate) fn batches(&self) -> Result<Vec<RecordBatch>, ArrowError> {
        let schema = self.schema();
        self.chunks.iter().map(|chunk| RecordBatch::try_new(Arc::clone(&schema), chunk.arrays())).collect()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.chunks.iter().flat_map(|chunk| chunk.keys.iter().flatten())
    }

    pub(crate) fn sizes(&self) -> impl Iterator<Item = i64> {
        self.chunks.iter().flat_map(|chunk| chunk.sizes.values().iter().copied())
    }
}

impl Chunk {
    fn arrays(&self) -> Vec<ArrayRef> {
        let mut arrays: Vec<ArrayRef> = vec![
            Arc::new(self.keys.clone()),
            Arc::new(self.sizes.clone()),
            Arc::new(self.last_modified.clone()),
            Arc::new(self.etags.clone()),
            Arc::new(self.storage_classes.clone()),
        ];
        if let Some(versions) = &self.versions {
            arrays.push(Arc::new(versions.ids.clone()));
            arrays.push(Arc::new(versions.latest.clone()));
            arrays.push(Arc::new(versions.delete_markers.clone()));
        }
        arrays
    }
}

/// Takes pages and makes columns of them.
pub(crate) struct Builder {
    chunks: Vec<Chunk>,
    rows: usize,
    prefixes: Vec<String>,
    keys: StringBuilder,
    sizes: Int64Builder,
    last_modified: TimestampMicrosecondBuilder,
    etags: StringBuilder,
    storage_classes: StringBuilder,
    versions: Option<VersionsBuilder>,
}

#[derive(Default)]
struct VersionsBuilder {
    ids: StringBuilder,
    latest: BooleanBuilder,
    delete_markers: BooleanBuilder,
}

impl Builder {
    pub(crate) fn new(of_versions: bool) -> Builder {
        Builder {
            chunks: Vec::new(),
            rows: 0,
            prefixes: Vec::new(),
            keys: StringBuilder::new(),
            sizes: Int64Builder::new(),
            last_modified: TimestampMicrosecondBuilder::new().with_timezone(ZONE),
            etags: StringBuilder::new(),
            storage_classes: StringBuilder::new(),
            versions: of_versions.then(VersionsBuilder::default),
        }
    }

    pub(crate) fn append(&mut self, found: Found) {
        match found {
            Found::Objects(page) => {
                for object in &page.objects {
                    let etag = object.etag.as_deref();
                    self.row(&object.key, object.size, object.last_modified, etag, object.storage_class.as_ref());
                }
                self.prefixes.extend(page.prefixes);
            }
            Found::Versions(page) => {
                for version in &page.versions {
                    let etag = version.etag.as_deref();
                    self.row(&version.key, version.size, version.last_modified, etag, version.storage_class.as_ref());
                    if let Some(versions) = &mut self.versions {
                        versions.ids.append_value(&version.version_id);
                        versions.latest.append_value(version.is_latest);
                        versions.delete_markers.append_value(version.is_delete_marker);
                    }
                }
                self.prefixes.extend(page.prefixes);
            }
        }
        let ids = self.versions.as_ref().map_or(0, |versions| versions.ids.values_slice().len());
        let text = [&self.keys, &self.etags, &self.storage_classes].map(|column| column.values_slice().len());
        if text.into_iter().chain([ids]).any(|bytes| bytes > FULL) {
            self.seal();
        }
    }

    fn row(
        &mut self,
        key: &str,
        size: u64,
        last_modified: Option<Timestamp>,
        etag: Option<&str>,
        storage_class: Option<&StorageClass>,
    ) {
        self.keys.append_value(key);
        self.sizes.append_value(i64::try_from(size).unwrap_or(i64::MAX));
        self.last_modified.append_option(last_modified.map(Timestamp::as_microsecond));
        self.etags.append_option(etag);
        self.storage_classes.append_option(storage_class.map(StorageClass::as_str));
        self.rows += 1;
    }

    fn seal(&mut self) {
        let versions = self.versions.as_mut().map(|versions| Versions {
            ids: versions.ids.finish(),
            latest: versions.latest.finish(),
            delete_markers: versions.delete_markers.finish(),
        });
        self.chunks.push(Chunk {
            keys: self.keys.finish(),
            sizes: self.sizes.finish(),
            last_modified: self.last_modified.finish(),
            etags: self.etags.finish(),
            storage_classes: self.storage_classes.finish(),
            versions,
        });
    }

    pub(crate) fn finish(mut self) -> Columns {
        // An empty listing has its columns, too.
        if self.chunks.is_empty() || !self.keys.values_slice().is_empty() {
            self.seal();
        }
        let prefixes = mem::take(&mut self.prefixes);
        Columns { chunks: self.chunks, rows: self.rows, prefixes, of_versions: self.versions.is_some() }
    }
}

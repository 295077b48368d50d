//! Where an object is, and which of its bytes are wanted, as Python says it.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyString, PyTuple};

use crate::errors;

const SCHEMES: [&str; 3] = ["s3://", "s3a://", "wirespeed://"];

/// A bucket and what is in it.
pub(crate) struct Location {
    pub(crate) bucket: String,
    /// Literally as it was given: nothing is percent-decoded.
    pub(crate) key: String,
}

impl Location {
    /// An object, named by a URI or, where the bucket is given, by its key.
    pub(crate) fn object(text: &Bound<'_, PyAny>, bucket: Option<&str>) -> PyResult<Location> {
        let location = Location::prefix(text, bucket)?;
        if location.key.is_empty() {
            return Err(errors::config(format!(
                "{} names a bucket and no object; write s3://{}/key",
                text.str()?,
                location.bucket
            )));
        }
        Ok(location)
    }

    /// Where the key may be empty: a bucket, or what begins with something.
    pub(crate) fn prefix(text: &Bound<'_, PyAny>, bucket: Option<&str>) -> PyResult<Location> {
        let text = as_text(text)?;
        Location::parse(&text, bucket)
    }

    pub(crate) fn parse(text: &str, bucket: Option<&str>) -> PyResult<Location> {
        let (bucket, key) = match bucket {
            Some(bucket) => (bucket, text),
            None => {
                let rest = SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme)).ok_or_else(|| {
                    errors::config(format!(
                        "{text:?} is no location: write s3://bucket/key, or give the bucket as bucket="
                    ))
                })?;
                wirespeed::split_bucket(rest)
            }
        };
        if bucket.is_empty() {
            return Err(errors::config(format!("{text:?} names no bucket: write s3://bucket/key")));
        }
        if key.contains('\0') {
            return Err(errors::config(format!("the key {key:?} contains NUL, which no key may")));
        }
        Ok(Location { bucket: bucket.to_owned(), key: key.to_owned() })
    }
}

fn as_text(text: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = text.cast::<PyString>() {
        // Lone surrogates cannot be sent: the error says which.
        return text.to_str().map(str::to_owned);
    }
    let kind = text.get_type();
    let kind = kind.name()?;
    let advice = if kind == "bytes" { "; decode it" } else { "" };
    Err(PyTypeError::new_err(format!("a location is a str such as \"s3://bucket/key\", not {kind}{advice}")))
}

/// Which bytes of an object are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    All,
    /// Half open; to the end where there is no end.
    Range(u64, Option<u64>),
    Suffix(u64),
}

impl Wanted {
    /// A `(start, stop)` as in a slice, or a slice, or None for everything.
    pub(crate) fn parse(range: Option<&Bound<'_, PyAny>>) -> PyResult<Wanted> {
        let Some(range) = range.filter(|range| !range.is_none()) else { return Ok(Wanted::All) };
        let (start, stop): (Option<i64>, Option<i64>) = if let Ok(slice) = range.cast::<PySlice>() {
            if !slice.getattr("step")?.is_none() {
                return Err(errors::config("a range has no step"));
            }
            (slice.getattr("start")?.extract()?, slice.getattr("stop")?.extract()?)
        } else if let Ok(pair) = range.cast::<PyTuple>() {
            pair.extract().map_err(|_| wrong(range))?
        } else {
            return Err(wrong(range));
        };
        match (start, stop) {
            (None | Some(0), None) => Ok(Wanted::All),
            (Some(last), None) if last < 0 => Ok(Wanted::Suffix(last.unsigned_abs())),
            (start, stop) => {
                let from = u64::try_from(start.unwrap_or(0));
                let to = stop.map(u64::try_from).transpose();
                match (from, to) {
                    (Ok(from), Ok(to)) if to.is_none_or(|to| to >= from) => Ok(Wanted::Range(from, to)),
                    _ => Err(errors::config(format!(
                        "{range} is no range: write (start, stop) with 0 <= start <= stop, or (-n, None) for the last n bytes"
                    ))),
                }
            }
        }
    }
}

fn wrong(range: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("a range is a tuple (start, stop) or a slice, not {range}"))
}

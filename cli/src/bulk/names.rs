//! The names of `--from-file`: read on a thread of their own as the job wants them, from a file or standard input.
//!
//! A line that is no name is told and the next one read; the job ends with 1 then.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::Stream;
use futures_util::stream::poll_fn;
use tokio::sync::mpsc;
use wirespeed_bulk::{Entry, Form, Manifest, Place};

use crate::failure::{Failure, visible};
use crate::output::Output;

/// Names of a batch, and batches that may wait.
const BATCH: usize = 1_000;
const AHEAD: usize = 4;

/// What was wrong with lines.
#[derive(Clone, Default)]
pub(crate) struct Troubles(Arc<Mutex<Vec<Failure>>>);

impl Troubles {
    fn add(&self, failure: Failure) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
    }

    /// Tells of all of them; whether there were any.
    pub(crate) fn tell(&self, output: &Output) -> bool {
        let troubles = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        troubles.iter().for_each(|failure| output.failure(failure));
        !troubles.is_empty()
    }
}

/// The names in a file, `-` being standard input, as they stand below the place. Must run inside the runtime.
pub(crate) fn read(path: &Path, from: &Place) -> Result<(impl Stream<Item = Vec<Entry>> + use<>, Troubles), Failure> {
    let mut reader: Box<dyn BufRead + Send> = if path == Path::new("-") {
        Box::new(BufReader::new(io::stdin()))
    } else {
        let file = File::open(path).map_err(|source| Failure::local("read the names in", path, source))?;
        Box::new(BufReader::with_capacity(256 << 10, file))
    };
    let (bucket, prefix) = match from {
        Place::Bucket(bucket) => (Some(bucket.name().to_owned()), bucket.prefix().to_owned()),
        Place::Folder(_) | Place::Nowhere => (None, String::new()),
    };
    let (send, mut batches) = mpsc::channel(AHEAD);
    let troubles = Troubles::default();
    let (told, name) = (troubles.clone(), visible(&path.to_string_lossy()).into_owned());
    tokio::task::spawn_blocking(move || {
        let form = match reader.fill_buf() {
            Ok(beginning) => Form::guess(beginning),
            Err(source) => {
                return told.add(Failure::Local { what: format!("cannot read the names in `{name}`"), source });
            }
        };
        let mut batch = Vec::new();
        for entry in Manifest::new(reader, &form, bucket.as_deref(), &prefix) {
            match entry {
                Ok(entry) => batch.push(entry),
                Err(error) => told.add(Failure::Refused(format!("`{name}`: {error}"))),
            }
            if batch.len() == BATCH && send.blocking_send(std::mem::take(&mut batch)).is_err() {
                return;
            }
        }
        // A job that has ended wants no more.
        let _ = send.blocking_send(batch);
    });
    Ok((poll_fn(move |cx| batches.poll_recv(cx)), troubles))
}

//! The resume file that `--state` names: of which job it is, and what is said of it.
//!
//! A job is known by its verb, its two ends with the service that they are at, and how objects are written. Which items
//! are chosen is no part of that: what is finished stays so when the next run wants others too.

use std::path::Path;

use wirespeed_bulk::{JobName, Place, State, StateError};

use super::Asked;
use crate::context::Context;
use crate::failure::Failure;

/// Opens the file, where one is named and something is to be done.
pub(super) fn open(
    context: &Context<'_>,
    asked: &Asked<'_>,
    from: &Place,
    to: &Place,
) -> Result<Option<State>, Failure> {
    let Some(path) = asked.tree.state.as_deref().filter(|_| !asked.run.dryrun) else { return Ok(None) };
    let service = context.client.config().endpoint_url.clone().unwrap_or_default();
    let mut options = asked.words();
    options.push(format!("preserve={} endpoint={service}", asked.tree.preserve));
    let name = JobName {
        verb: asked.verb.name().to_owned(),
        source: shown(from),
        destination: shown(to),
        options: options.join(" "),
        landing: match to {
            Place::Folder(folder) => Some(absolute(folder)),
            Place::Bucket(_) | Place::Nowhere => None,
        },
    };
    let state = State::open(path, &name).map_err(|error| match error {
        StateError::Io { doing, path, source } => Failure::local(doing, &path, source),
        StateError::Locked { .. } => Failure::Locked(error.to_string()),
        // Nothing was tried: another file, or another moment, is what helps.
        other => Failure::Usage(other.to_string()),
    })?;
    let before = state.resumed();
    if before.finished > 0 || before.half_done > 0 {
        let (finished, half_done) = (before.finished, before.half_done);
        context.output.note(&format!("going on: {finished} items were done before, {half_done} are half done"));
    }
    Ok(Some(state))
}

/// Says so when the file could not be written to its end.
pub(super) fn close(context: &Context<'_>, state: &State) {
    if let Some(error) = state.trouble() {
        context.output.note_always(&format!(
            "the resume file could not be written to its end ({error}): a job that goes on from it does more again"
        ));
    }
}

fn shown(place: &Place) -> String {
    match place {
        Place::Folder(folder) => absolute(folder).to_string_lossy().into_owned(),
        Place::Bucket(bucket) => format!("s3://{}/{}", bucket.name(), bucket.prefix()),
        Place::Nowhere => "nowhere".to_owned(),
    }
}

fn absolute(folder: &Path) -> std::path::PathBuf {
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}

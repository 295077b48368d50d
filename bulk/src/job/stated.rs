//! A job's resume file: what it is told, and how it ends.

use super::Settings;
use crate::failure::Failure;
use crate::place::Place;
use crate::report::{Action, Item, Outcome};
use crate::state::{Leftover, State};
use crate::summary::Summary;

/// Writes down what came of an item.
pub(super) fn tell(settings: &Settings, item: &Item<'_>) {
    let Some(state) = settings.state.as_ref().filter(|_| item.action != Action::Delete) else { return };
    match &item.outcome {
        Outcome::Done => state.finished(item.entry),
        Outcome::Failed(failure) => state.failed(&item.entry.key, &failure.to_string()),
        Outcome::Planned | Outcome::Unchanged | Outcome::DoneBefore | Outcome::Skipped(_) => {}
    }
}

/// Where the job is done, removes what is half done of items that are gone, and the file. What cannot be removed stays
/// named in it.
pub(super) async fn end(settings: &Settings, to: &Place, summary: &Summary, incomplete: bool) {
    let Some(state) = &settings.state else { return };
    if incomplete || summary.stopped.is_some() || summary.failed > 0 {
        return;
    }
    let removed = match clear(state, to).await {
        Ok(()) => state.clone().complete().map_err(|error| Failure::Refused(error.to_string())),
        Err(failure) => Err(failure),
    };
    if let Err(failure) = removed {
        tracing::warn!(%failure, "the job is done, and its resume file stays");
    }
}

async fn clear(state: &State, to: &Place) -> Result<(), Failure> {
    for leftover in state.leftovers() {
        match (leftover, to) {
            (Leftover::Temporary { path, .. }, _) => match std::fs::remove_file(&path) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Failure::Local { doing: "remove", path, source });
                }
                _ => {}
            },
            (Leftover::Upload { bucket, target, upload_id, .. }, Place::Bucket(place)) => {
                let abort = place.asked(place.client.abort_upload(&bucket, &target, &upload_id));
                match abort.await {
                    Err(error) if error.kind() != wirespeed::ErrorKind::NotFound => return Err(error.into()),
                    _ => {}
                }
            }
            (Leftover::Upload { .. }, _) => {}
        }
    }
    Ok(())
}

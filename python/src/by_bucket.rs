//! One call of the engine's for each bucket, run as if they were one.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use futures_core::Stream;
use wirespeed::{Outcomes, Result};

/// The items of one bucket, each with its place among all.
pub(crate) struct Group<I> {
    pub(crate) bucket: String,
    places: Vec<usize>,
    pub(crate) items: Vec<I>,
}

/// Groups items by their buckets.
pub(crate) fn group<I>(items: impl IntoIterator<Item = (String, I)>) -> Vec<Group<I>> {
    let mut known = HashMap::new();
    let mut groups: Vec<Group<I>> = Vec::new();
    for (place, (bucket, item)) in items.into_iter().enumerate() {
        let which = *known.entry(bucket).or_insert_with_key(|bucket| {
            groups.push(Group { bucket: bucket.clone(), places: Vec::new(), items: Vec::new() });
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(which) {
            group.places.push(place);
            group.items.push(item);
        }
    }
    groups
}

/// What comes of the items of all groups. Dropped, it stops what is in flight.
pub(crate) struct Coming<T>(Vec<(Vec<usize>, Outcomes<T>)>);

impl<T> Coming<T> {
    /// Begins all of them; on the engine's threads.
    pub(crate) fn begin<I>(
        groups: Vec<Group<I>>,
        begin: impl Fn(String, Vec<I>) -> Result<Outcomes<T>>,
    ) -> Result<Coming<T>> {
        let begun = groups.into_iter().map(|Group { bucket, places, items }| Ok((places, begin(bucket, items)?)));
        Ok(Coming(begun.collect::<Result<_>>()?))
    }

    /// The next item that has finished, by its place; `None` after the last.
    pub(crate) async fn next(&mut self) -> Option<(usize, Result<T>)> {
        poll_fn(|cx| {
            let mut waiting = false;
            for (places, outcomes) in &mut self.0 {
                match Pin::new(outcomes).poll_next(cx) {
                    Poll::Ready(Some((index, outcome))) => {
                        return Poll::Ready(Some((places.get(index).copied().unwrap_or(index), outcome)));
                    }
                    Poll::Ready(None) => {}
                    Poll::Pending => waiting = true,
                }
            }
            if waiting { Poll::Pending } else { Poll::Ready(None) }
        })
        .await
    }
}

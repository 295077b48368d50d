//! What comes of the items, in batches, from however many of the engine's calls.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use futures_core::Stream;
use pyo3::prelude::*;
use wirespeed::{Client, Object, ObjectInfo, Outcomes, Progress, Result};

use super::items::{Asked, Group, Prepared};
use crate::buffer::{self, Buffer};
use crate::errors;
use crate::memory::{Lent, NewBytes};
use crate::options::apply_read;

/// What one item has brought.
pub(super) enum Delivered {
    Buffer(Box<Object>),
    Bytes(NewBytes, u64),
    Into(Lent, u64),
}

impl Delivered {
    fn buffer(object: Object) -> Delivered {
        Delivered::Buffer(Box::new(object))
    }

    fn into_value(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(match self {
            Delivered::Buffer(object) => Py::new(py, Buffer::of_object(py, *object)?)?.into_any(),
            Delivered::Bytes(bytes, length) => bytes.finish(py, length).into_any(),
            Delivered::Into(lent, length) => {
                lent.release(py);
                length.into_pyobject(py)?.into_any().unbind()
            }
        })
    }
}

/// An item's result, or the exception that stands in its place.
pub(super) fn value(py: Python<'_>, outcome: Result<Delivered>) -> PyResult<Py<PyAny>> {
    match outcome {
        Ok(delivered) => delivered.into_value(py),
        Err(error) => Ok(errors::from_engine(py, &error).into_value(py).into_any()),
    }
}

/// The same as `bytes`, copied out of the engine's memory.
pub(super) fn copied(py: Python<'_>, outcome: Result<Delivered>) -> PyResult<Py<PyAny>> {
    match outcome {
        Ok(Delivered::Buffer(object)) => Ok(buffer::copied(py, &object.body)?.into_any()),
        other => value(py, other),
    }
}

enum Outcoming {
    Buffers(Outcomes<Object>),
    Bytes(Outcomes<(NewBytes, u64, ObjectInfo)>),
    Into(Outcomes<(Lent, u64, ObjectInfo)>),
}

pub(super) struct Coming {
    groups: Vec<(Vec<usize>, Outcoming)>,
    objects: Vec<(usize, Result<Object>)>,
}

impl Coming {
    /// Begins all of them; on the engine's threads.
    pub(super) fn begin(client: &Client, prepared: Prepared, progress: Progress) -> Result<Coming> {
        let Prepared { groups, verify, mut options } = prepared;
        let version = options.version_id.take();
        let mut begun = Vec::with_capacity(groups.len());
        for Group { bucket, indices, asked } in groups {
            let options = options.clone();
            let of_version = |item: wirespeed::GetItem| match &version {
                Some(id) => item.version(id.as_str()),
                None => item,
            };
            let get_many = || {
                let get = apply_read!(client.get_many(bucket.clone()), options.clone()).progress(progress.clone());
                match verify {
                    Some(verify) => get.verify(verify),
                    None => get,
                }
            };
            let outcoming = match asked {
                Asked::Buffers(items) => {
                    let items: Vec<_> = items.into_iter().map(of_version).collect();
                    Outcoming::Buffers(get_many().items(items)?)
                }
                Asked::Bytes(items) => {
                    let items: Vec<_> = items.into_iter().map(|(item, bytes)| (of_version(item), bytes)).collect();
                    Outcoming::Bytes(get_many().into_owned(items)?)
                }
                Asked::Into(items) => {
                    let items: Vec<_> = items.into_iter().map(|(item, lent)| (of_version(item), lent)).collect();
                    Outcoming::Into(get_many().into_owned(items)?)
                }
                Asked::Joined(max_gap, ranges) => {
                    let get = apply_read!(client.get_ranges(bucket.clone()), options.clone());
                    Outcoming::Buffers(get.max_gap(max_gap).progress(progress.clone()).buffers(ranges)?)
                }
            };
            begun.push((indices, outcoming));
        }
        Ok(Coming { groups: begun, objects: Vec::new() })
    }

    /// Adds what has finished to `into`; returns how many that are, and 0 after the last.
    pub(super) async fn next_batch(&mut self, into: &mut Vec<(usize, Result<Delivered>)>) -> usize {
        let before = into.len();
        // The usual case: one bucket, whose items are the call's, handed over as the engine batches them.
        if let [(_, Outcoming::Buffers(outcomes))] = self.groups.as_mut_slice() {
            outcomes.next_batch(&mut self.objects).await;
            into.extend(self.objects.drain(..).map(|(index, outcome)| (index, outcome.map(Delivered::buffer))));
            return into.len() - before;
        }
        poll_fn(|cx| {
            let mut waiting = false;
            for (indices, outcoming) in &mut self.groups {
                loop {
                    let polled = match outcoming {
                        Outcoming::Buffers(outcomes) => Pin::new(outcomes)
                            .poll_next(cx)
                            .map(|next| next.map(|(index, outcome)| (index, outcome.map(Delivered::buffer)))),
                        Outcoming::Bytes(outcomes) => Pin::new(outcomes).poll_next(cx).map(|next| {
                            next.map(|(index, outcome)| {
                                (index, outcome.map(|(bytes, length, _)| Delivered::Bytes(bytes, length)))
                            })
                        }),
                        Outcoming::Into(outcomes) => Pin::new(outcomes).poll_next(cx).map(|next| {
                            next.map(|(index, outcome)| {
                                (index, outcome.map(|(lent, length, _)| Delivered::Into(lent, length)))
                            })
                        }),
                    };
                    match polled {
                        Poll::Ready(Some((index, outcome))) => {
                            let index = indices.get(index).copied().unwrap_or(index);
                            into.push((index, outcome));
                        }
                        Poll::Ready(None) => break,
                        Poll::Pending => {
                            waiting = true;
                            break;
                        }
                    }
                }
            }
            if into.len() > before || !waiting { Poll::Ready(into.len() - before) } else { Poll::Pending }
        })
        .await
    }
}

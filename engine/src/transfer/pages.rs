//! The pages of a listing, whatever is listed: fetched one ahead, in the server's order, or as a task brings them.
//!
//! The next page is asked for as soon as a page has arrived, so that the server works while the
//! caller does. A listing ends when the server says so, never on a count; an error is an error, not
//! a shorter list.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;
use tracing::Instrument;

use super::list::Page;
use super::options::Sending;
use super::workers::lost;
use crate::error::{Error, ErrorKind, Result};

/// Where a page begins: a token, or a key and what is listed of it.
pub(crate) type Marker = (String, String);

/// Asks for one page: the first, or the one at a marker. Gives the marker of the next, if there is
/// one.
pub(crate) type Ask<P> = Box<dyn Fn(Option<Marker>) -> Sending<(P, Option<Marker>)> + Send + Sync>;

/// The pages of a listing: a [`Stream`], or call [`Pages::next`]. After an error it ends.
pub struct Pages<P = Page>(Source<P>);

enum Source<P> {
    /// One after the other.
    Serial(Serial<P>),
    /// From a task that asks for many.
    Parallel(Parallel<P>),
}

/// The task is begun by the first who waits for a page, and stopped when nobody will.
struct Parallel<P> {
    begin: Option<Box<dyn FnOnce() -> Running<P> + Send>>,
    running: Option<Running<P>>,
}

struct Running<P> {
    pages: Receiver<Result<P>>,
    _task: AbortOnDrop,
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Serial<P> {
    ask: Ask<P>,
    state: State<P>,
    /// Hashes of the markers that have come: a listing that returns to one would never end.
    markers: HashSet<u64>,
    /// What stands in the error of a listing that turns in circles.
    operation: &'static str,
    bucket: String,
}

enum State<P> {
    Start,
    Asked(Asked<P>),
    End,
}

/// A page that is on its way; no longer wanted when dropped.
struct Asked<P>(JoinHandle<Result<(P, Option<Marker>)>>);

impl<P> Drop for Asked<P> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<P: Send + 'static> Pages<P> {
    pub(crate) fn new(operation: &'static str, bucket: String, ask: Ask<P>) -> Pages<P> {
        Pages(Source::Serial(Serial { ask, state: State::Start, markers: HashSet::new(), operation, bucket }))
    }

    /// The pages that a task sends, of which it may be `ahead`. It is begun by the first poll.
    pub(crate) fn from_task<F>(ahead: usize, task: impl FnOnce(Sender<Result<P>>) -> F + Send + 'static) -> Pages<P>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let begin = move || {
            let (out, pages) = channel(ahead);
            Running { pages, _task: AbortOnDrop(tokio::spawn(task(out).in_current_span())) }
        };
        Pages(Source::Parallel(Parallel { begin: Some(Box::new(begin)), running: None }))
    }

    /// The next page; `None` after the last.
    pub async fn next(&mut self) -> Option<Result<P>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl<P> Serial<P> {
    fn turns_in_circles(&self) -> Error {
        let message = "the listing does not move on: the server sent the same continuation token twice";
        Error::new(ErrorKind::Protocol, message).with_context(self.operation, &self.bucket, "")
    }
}

// The page on its way is in a task of its own.
impl<P> Unpin for Pages<P> {}

impl<P: Send + 'static> Stream for Pages<P> {
    type Item = Result<P>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match &mut self.0 {
            Source::Serial(serial) => serial.poll_next(cx),
            Source::Parallel(parallel) => parallel.poll_next(cx),
        }
    }
}

impl<P> Parallel<P> {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<P>>> {
        if let Some(begin) = self.begin.take() {
            self.running = Some(begin());
        }
        match &mut self.running {
            Some(running) => running.pages.poll_recv(cx),
            None => Poll::Ready(None),
        }
    }
}

impl<P: Send + 'static> Serial<P> {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<P>>> {
        if matches!(self.state, State::Start) {
            self.state = State::Asked(Asked(tokio::spawn((self.ask)(None))));
        }
        let State::Asked(asked) = &mut self.state else { return Poll::Ready(None) };
        let arrived = ready!(Pin::new(&mut asked.0).poll(cx));
        let (page, next) = match arrived.unwrap_or_else(|error| Err(lost(error))) {
            Ok(page) => page,
            Err(error) => {
                self.state = State::End;
                return Poll::Ready(Some(Err(error)));
            }
        };
        self.state = match next {
            Some(marker) => {
                if !self.markers.insert(BuildHasherDefault::<DefaultHasher>::default().hash_one(&marker)) {
                    self.state = State::End;
                    return Poll::Ready(Some(Err(self.turns_in_circles())));
                }
                State::Asked(Asked(tokio::spawn((self.ask)(Some(marker)))))
            }
            None => State::End,
        };
        Poll::Ready(Some(Ok(page)))
    }
}

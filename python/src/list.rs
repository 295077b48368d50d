//! LIST: the objects under a prefix, or their versions, one by one, page by page, or all at once.
//!
//! Owns: the listing that has not been read yet, and its readings. A reading asks for its next page on
//! the engine's threads, which make columns of it ([`crate::columns`]) and ask for one page ahead, no
//! more. All at once is one crossing, however many pages there are. A page that arrives when whoever
//! asked for it has stopped waiting (Ctrl-C, a cancelled task) is there for the next who asks: a reading
//! that goes on after an interruption leaves nothing out.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList};
use wirespeed::{Error, List, Pages, VersionPage};

use crate::aio::{self, Arriving, Step};
use crate::call::{Call, wait};
use crate::client::{Live, Verbs};
use crate::columns::{Builder, Columns, Found};
use crate::errors;
use crate::fork::Inherited;
use crate::location::Location;
use crate::page::{Counted, ListedObject, Page, Rows};

/// What is to be listed, and who asks.
struct Asked {
    client: Py<Verbs>,
    location: Location,
    delimiter: Option<String>,
    start_after: Option<String>,
    versions: bool,
    page_size: u32,
    request_payer: bool,
    expected_bucket_owner: Option<String>,
}

impl Asked {
    fn request(&self, engine: &wirespeed::Client) -> List {
        let mut list = engine.list(&self.location.bucket).prefix(&self.location.key).page_size(self.page_size);
        if let Some(delimiter) = &self.delimiter {
            list = list.delimiter(delimiter);
        }
        if let Some(key) = &self.start_after {
            list = list.start_after(key);
        }
        if self.request_payer {
            list = list.request_payer();
        }
        if let Some(account) = &self.expected_bucket_owner {
            list = list.expected_owner(account);
        }
        list
    }

    /// Its pages, from the first; nothing is sent yet.
    fn source(&self, py: Python<'_>) -> PyResult<(Arc<Live>, Source)> {
        let live = self.client.get().live(py)?;
        let list = self.request(&live.engine);
        let source = if self.versions { Source::Versions(list.versions()) } else { Source::Objects(list.pages()) };
        Ok((live, source))
    }

    fn reading(&self, py: Python<'_>) -> PyResult<Inherited<Reading>> {
        let (live, source) = self.source(py)?;
        let source = Arc::new(tokio::sync::Mutex::new(Ok(source)));
        Ok(Inherited::new(Reading { live, source, arrived: Arc::default() }))
    }

    fn keys(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (live, mut source) = self.source(py)?;
        let future = async move {
            let mut names = Names::default();
            while let Some(found) = source.next().await {
                names.append(&found?);
            }
            Ok(names)
        };
        let finish = |py: Python<'_>, names: Names| Ok(names.list(py)?.into_any().unbind());
        Call { future, finish, watch: None }.run(py, &live, self.client.get().awaitable)
    }

    fn table(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (live, mut source) = self.source(py)?;
        let mut builder = Builder::new(self.versions);
        let future = async move {
            while let Some(found) = source.next().await {
                builder.append(found?);
            }
            Ok(builder.finish())
        };
        let finish = |py: Python<'_>, columns| Ok(Py::new(py, Page::from(columns))?.into_any());
        Call { future, finish, watch: None }.run(py, &live, self.client.get().awaitable)
    }

    fn first_page(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if self.versions {
            return Err(errors::config("the first page of versions is that of pages()"));
        }
        let live = self.client.get().live(py)?;
        let list = self.request(&live.engine);
        let future = async move { Ok(Columns::of(Found::Objects(list.first_page().await?))) };
        let finish = |py: Python<'_>, columns| Ok(Py::new(py, Page::from(columns))?.into_any());
        Call { future, finish, watch: None }.run(py, &live, self.client.get().awaitable)
    }

    fn repr(&self, class: &str) -> String {
        let of = if self.versions { "versions in " } else { "" };
        format!("<wirespeed.{class} of {of}s3://{}/{}>", self.location.bucket, self.location.key)
    }
}

/// The engine's pages of either kind.
enum Source {
    Objects(Pages),
    Versions(Pages<VersionPage>),
}

impl Source {
    async fn next(&mut self) -> Option<wirespeed::Result<Found>> {
        match self {
            Source::Objects(pages) => pages.next().await.map(|page| page.map(Found::Objects)),
            Source::Versions(pages) => pages.next().await.map(|page| page.map(Found::Versions)),
        }
    }
}

/// Keys one behind the other, until they become a list.
#[derive(Default)]
struct Names {
    text: String,
    ends: Vec<usize>,
}

impl Names {
    fn append(&mut self, found: &Found) {
        for key in found.keys() {
            self.text.push_str(key);
            self.ends.push(self.text.len());
        }
    }

    fn list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let starts = std::iter::once(&0).chain(&self.ends);
        let keys = starts.zip(&self.ends).map(|(start, end)| &self.text[*start..*end]);
        PyList::new(py, Counted(keys, self.ends.len()))
    }
}

/// One reading of a listing, from its first page to its last.
struct Reading {
    live: Arc<Live>,
    /// Where more pages come from, or why none do.
    source: Arc<tokio::sync::Mutex<Result<Source, Arc<Error>>>>,
    arrived: Arc<Arrived>,
}

/// Pages that have not been handed out, the first perhaps in part.
#[derive(Default)]
struct Arrived(Mutex<VecDeque<Arc<Rows>>>);

impl Arrived {
    fn queue(&self) -> MutexGuard<'_, VecDeque<Arc<Rows>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn page(&self) -> Option<Page> {
        let rows = self.queue().pop_front()?;
        Some(Page::of(&rows))
    }

    /// Made without the lock: making an object may run the garbage collector, and that anything.
    fn object(&self, py: Python<'_>) -> Option<ListedObject> {
        loop {
            let rows = self.queue().front().map(Arc::clone)?;
            if let Some(object) = rows.next(py) {
                return Some(object);
            }
            let mut queue = self.queue();
            if queue.front().is_some_and(|front| Arc::ptr_eq(front, &rows)) {
                queue.pop_front();
            }
        }
    }
}

/// Whether a page has arrived.
type Filled = Result<bool, Arc<Error>>;

/// What a reading is iterated over by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Each {
    Page,
    Object,
}

impl Reading {
    /// Sees to it that a page has arrived that holds something of what is wanted; whether there is one.
    /// What went wrong is told to all who ask: an end after it would pass for the listing's.
    fn fill(&self, each: Each) -> impl Future<Output = wirespeed::Result<Filled>> + Send + use<> {
        let (source, arrived) = (Arc::clone(&self.source), Arc::clone(&self.arrived));
        async move {
            let mut source = source.lock().await;
            while arrived.queue().is_empty() {
                let found = match &mut *source {
                    Ok(pages) => pages.next().await,
                    Err(error) => return Ok(Err(Arc::clone(error))),
                };
                let columns = match found {
                    None => return Ok(Ok(false)),
                    Some(Ok(found)) => Columns::of(found),
                    Some(Err(error)) => {
                        let error = Arc::new(error);
                        *source = Err(Arc::clone(&error));
                        return Ok(Err(error));
                    }
                };
                if columns.rows > 0 || (each == Each::Page && !columns.is_empty()) {
                    arrived.queue().push_back(Arc::new(Rows::new(columns)));
                }
            }
            Ok(Ok(true))
        }
    }

    /// The next that has arrived.
    fn take(&self, py: Python<'_>, each: Each) -> PyResult<Option<Py<PyAny>>> {
        match each {
            Each::Page => self.arrived.page().map(|page| Ok(Py::new(py, page)?.into_any())),
            Each::Object => self.arrived.object(py).map(|object| Ok(Py::new(py, object)?.into_any())),
        }
        .transpose()
    }
}

/// A reading under way, for ``for``.
#[pyclass(frozen, name = "_ListingIterator", module = "wirespeed")]
struct Blocking {
    reading: Inherited<Reading>,
    each: Each,
}

#[pymethods]
impl Blocking {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let reading = ours(&self.reading)?;
        loop {
            let taken = reading.take(py, self.each)?;
            if taken.is_some() {
                return Ok(taken);
            }
            let filled = wait(py, &reading.live, reading.fill(self.each), &mut None)?;
            if !filled.map_err(|error| errors::from_engine(py, &error))? {
                return Ok(None);
            }
        }
    }
}

fn ours(reading: &Inherited<Reading>) -> PyResult<&Reading> {
    reading.get().ok_or_else(|| errors::inherited("listing"))
}

/// A reading under way, for ``async for``.
#[pyclass(frozen, name = "_AsyncListingIterator", module = "wirespeed")]
struct Awaitable {
    reading: Inherited<Reading>,
    each: Each,
}

#[pymethods]
impl Awaitable {
    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__(slf: Py<Self>) -> Step {
        Step::new(slf)
    }
}

impl Arriving for Py<Awaitable> {
    fn take(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let Awaitable { reading, each } = self.get();
        ours(reading)?.take(py, *each)
    }

    fn arrival(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let Awaitable { reading, each } = self.get();
        let reading = ours(reading)?;
        let finish = |py: Python<'_>, filled: Filled| {
            let more = filled.map_err(|error| errors::from_engine(py, &error))?;
            Ok(PyBool::new(py, more).to_owned().into_any().unbind())
        };
        aio::submit(py, &reading.live, reading.fill(*each), finish, None)
    }
}

/// A listing that has not been read yet: iterate over it, or over its `pages`.
///
/// Each page is asked for when it is needed, one ahead. `keys` and `table` read all of it in one
/// crossing into the engine. Each iteration, `keys` and `table` reads it from the beginning.
///
/// What cannot be listed raises when it is read: `NotFoundError` where there is no such bucket,
/// `DeniedError`, and the others of `wirespeed.errors`.
#[pyclass(frozen, module = "wirespeed")]
pub(crate) struct Listing(Asked);

#[pymethods]
impl Listing {
    /// The pages, each up to 1,000 objects as columns; those that hold nothing are left out.
    fn pages(&self, py: Python<'_>) -> PyResult<Blocking> {
        Ok(Blocking { reading: self.0.reading(py)?, each: Each::Page })
    }

    /// All keys, in the server's order; of versions, one key for each.
    fn keys(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.0.keys(py)
    }

    /// All of it as one page, its `prefixes` too.
    fn table(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.0.table(py)
    }

    /// The first page alone, empty where there is nothing: one request, and none ahead.
    fn first_page(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.0.first_page(py)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Blocking> {
        Ok(Blocking { reading: self.0.reading(py)?, each: Each::Object })
    }

    fn __repr__(&self) -> String {
        self.0.repr("Listing")
    }
}

/// A listing that has not been read yet, for ``async for``: iterate over it, or over its `pages`.
///
/// Each page is asked for when it is needed, one ahead. `keys` and `table` are awaited and read all of
/// it in one crossing into the engine. Each iteration, `keys` and `table` reads it from the beginning.
///
/// What cannot be listed raises when it is read: `NotFoundError` where there is no such bucket,
/// `DeniedError`, and the others of `wirespeed.errors`.
#[pyclass(frozen, module = "wirespeed")]
pub(crate) struct AsyncListing(Asked);

#[pymethods]
impl AsyncListing {
    /// The pages, each up to 1,000 objects as columns; those that hold nothing are left out.
    fn pages(&self, py: Python<'_>) -> PyResult<Awaitable> {
        Ok(Awaitable { reading: self.0.reading(py)?, each: Each::Page })
    }

    /// All keys, in the server's order; of versions, one key for each. To be awaited.
    fn keys(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.0.keys(py)
    }

    /// All of it as one page, its `prefixes` too. To be awaited.
    fn table(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.0.table(py)
    }

    /// The first page alone, empty where there is nothing: one request, and none ahead. To be awaited.
    fn first_page(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.0.first_page(py)
    }

    fn __aiter__(&self, py: Python<'_>) -> PyResult<Awaitable> {
        Ok(Awaitable { reading: self.0.reading(py)?, each: Each::Object })
    }

    fn __repr__(&self) -> String {
        self.0.repr("AsyncListing")
    }
}

#[pymethods]
impl Verbs {
    /// Lists what begins with a prefix: ``"s3://bucket/prefix"``, or a prefix with ``bucket=``.
    ///
    /// Returns a `Listing`; nothing is sent before it is read. ``for object in client.list(…)`` gives
    /// a `ListedObject` at a time, ``.pages()`` columns, ``.keys()`` all the keys, ``.table()`` all of
    /// it as columns. Of an `AsyncClient` it is an `AsyncListing`, itself not awaited.
    ///
    /// With `delimiter`, usually ``"/"``, keys that hold it after the prefix are rolled up into the
    /// `prefixes` of the pages. `start_after` is a key: only what comes behind it in byte order. With
    /// ``versions=True`` all versions and delete markers are listed, the newest of a key first.
    /// `page_size` is how many keys a page asks for, 1 to 1,000.
    #[pyo3(
        signature = (r#where=None, *, bucket=None, delimiter=None, start_after=None, versions=false, page_size=1000,
                     request_payer=false, expected_bucket_owner=None),
        text_signature = "($self, where='', *, bucket=None, delimiter=None, start_after=None, versions=False, \
                          page_size=1000, request_payer=False, expected_bucket_owner=None)"
    )]
    fn list(
        slf: &Bound<'_, Self>,
        r#where: Option<&Bound<'_, PyAny>>,
        bucket: Option<&str>,
        delimiter: Option<String>,
        start_after: Option<String>,
        versions: bool,
        page_size: i64,
        request_payer: bool,
        expected_bucket_owner: Option<String>,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let location = match r#where {
            Some(text) => Location::prefix(text, bucket)?,
            None => Location::parse("", bucket)?,
        };
        let page_size = u32::try_from(page_size)
            .ok()
            .filter(|keys| (1..=1000).contains(keys))
            .ok_or_else(|| errors::config(format!("page_size is 1 to 1000 keys, not {page_size}")))?;
        let asked = Asked {
            client: slf.clone().unbind(),
            location,
            delimiter,
            start_after,
            versions,
            page_size,
            request_payer,
            expected_bucket_owner,
        };
        // A closed client is an error here already.
        slf.get().live(py)?;
        if slf.get().awaitable {
            return Ok(Py::new(py, AsyncListing(asked))?.into_any());
        }
        Ok(Py::new(py, Listing(asked))?.into_any())
    }
}

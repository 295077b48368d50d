//! The engine's log, passed on to Python's `logging`.
//!
//! Owns: the records that wait to be passed on. The engine's threads only put them on a bounded queue,
//! since a handler of Python's may take its time and needs the interpreter's lock; whoever waits for a
//! call, ten times a second and at its end, hands them to the logger `wirespeed`. What overflows is
//! counted and said. Nothing is recorded that the logger would not take. What a handler raises is shown
//! and costs no call its result.

use std::fmt::Write;
use std::sync::Once;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crossbeam_queue::ArrayQueue;
use jiff::Timestamp;
use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::fork::PerProcess;
use crate::runtime;

const MOST_WAITING: usize = 4096;

struct Record {
    level: Level,
    message: String,
    time: Timestamp,
}

/// A child passes on none of its parent's.
static WAITING: PerProcess<ArrayQueue<Record>> = PerProcess::new(|| ArrayQueue::new(MOST_WAITING));
static DROPPED: AtomicU64 = AtomicU64::new(0);
/// Python's effective level, divided by ten: 1 is DEBUG, 5 CRITICAL; 0 before anybody has looked.
static LEVEL: AtomicU8 = AtomicU8::new(0);

fn wanted() -> LevelFilter {
    match LEVEL.load(Ordering::Relaxed) {
        1 => LevelFilter::DEBUG,
        2 => LevelFilter::INFO,
        3 => LevelFilter::WARN,
        4 => LevelFilter::ERROR,
        _ => LevelFilter::OFF,
    }
}

fn logger(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static LOGGER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let logger = LOGGER
        .get_or_try_init(py, || py.import("logging")?.call_method1("getLogger", ("wirespeed",)).map(Bound::unbind))?;
    Ok(logger.bind(py))
}

/// Records from now on what the logger would take.
pub(crate) fn follow(py: Python<'_>) -> PyResult<()> {
    let level: i64 = logger(py)?.call_method0(intern!(py, "getEffectiveLevel"))?.extract()?;
    let level = u8::try_from(level.clamp(1, 59) / 10).unwrap_or(5).max(1);
    if LEVEL.swap(level, Ordering::Relaxed) != level {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let subscriber = tracing_subscriber::registry().with(Passing);
            // The extension has a copy of its own of the tracing library, so nobody else has set one.
            let _ = tracing::subscriber::set_global_default(subscriber);
        });
        tracing::callsite::rebuild_interest_cache();
    }
    Ok(())
}

/// Hands on what has been recorded.
///
/// # Errors
/// What is no `Exception`, such as a `KeyboardInterrupt`. Others are shown, as those of a finaliser are.
pub(crate) fn pass_on(py: Python<'_>) -> PyResult<()> {
    let queue = WAITING.get();
    while let Some(record) = queue.pop() {
        shown(py, hand_over(py, &record))?;
    }
    if DROPPED.load(Ordering::Relaxed) > 0 {
        let dropped = DROPPED.swap(0, Ordering::Relaxed);
        let message = format!("{dropped} log records were dropped: more than {MOST_WAITING} were waiting");
        shown(py, hand_over(py, &Record { level: Level::WARN, message, time: Timestamp::now() }))?;
    }
    Ok(())
}

fn shown(py: Python<'_>, outcome: PyResult<()>) -> PyResult<()> {
    match outcome {
        Err(raised) if raised.is_instance_of::<PyException>(py) => {
            raised.write_unraisable(py, logger(py).ok());
            Ok(())
        }
        outcome => outcome,
    }
}

fn hand_over(py: Python<'_>, record: &Record) -> PyResult<()> {
    let logger = logger(py)?;
    let level = match record.level {
        Level::ERROR => 40,
        Level::WARN => 30,
        Level::INFO => 20,
        _ => 10,
    };
    if !logger.call_method1(intern!(py, "isEnabledFor"), (level,))?.is_truthy()? {
        return Ok(());
    }
    let name = logger.getattr(intern!(py, "name"))?;
    // Where it was recorded is no line of the program's.
    let made =
        logger.call_method1(intern!(py, "makeRecord"), (name, level, "", 0, record.message.as_str(), (), py.None()))?;
    let fields = made.getattr(intern!(py, "__dict__"))?.cast_into::<PyDict>()?;
    let created = record.time.as_duration().as_secs_f64();
    fields.set_item(intern!(py, "created"), created)?;
    fields.set_item(intern!(py, "msecs"), (created.fract() * 1000.0).floor())?;
    runtime::threads()?.calling(py, || logger.call_method1(intern!(py, "handle"), (made,)))?;
    Ok(())
}

/// Puts events on the queue.
struct Passing;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Passing {
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        *metadata.level() <= wanted() && metadata.target().starts_with("wirespeed")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(wanted())
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let mut message = text.message;
        message.push_str(&text.fields);
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(fields) = span.extensions().get::<Text>() {
                message.push_str(&fields.fields);
            }
        }
        let record = Record { level: *event.metadata().level(), message, time: Timestamp::now() };
        if WAITING.get().push(record).is_err() {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn on_new_span(&self, attributes: &tracing::span::Attributes<'_>, id: &tracing::span::Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut text = Text::default();
            attributes.record(&mut text);
            span.extensions_mut().insert(text);
        }
    }
}

/// The message of an event and its fields, ` name=value` each.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message.push_str(value),
            // A key may have any character: none is to begin another line of the log.
            _ => self.record_debug(field, &format_args!("{}", value.escape_debug())),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // Writing into a String cannot fail.
        let _ = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            write!(self.fields, " {}={value:?}", field.name())
        };
    }
}

//! Listens to everything that the engine logs, at every level, for what must not be there.

use std::fmt::{Debug, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::site::SECRETS;

/// Lines that showed a secret.
static SHOWN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Everything that was heard, counted, so that it is known that something was.
static HEARD: AtomicU64 = AtomicU64::new(0);

struct Listener(AtomicU64);

/// From now on, in all threads.
pub fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Listener(AtomicU64::new(1))).unwrap());
}

/// How many lines and spans were heard, and those that showed a secret.
pub fn heard() -> (u64, Vec<String>) {
    let shown = std::mem::take(&mut *SHOWN.lock().unwrap_or_else(PoisonError::into_inner));
    (HEARD.load(Ordering::Relaxed), shown)
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string does not fail.
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

fn hear(name: &str, record: impl FnOnce(&mut Line)) {
    let mut line = Line(name.to_owned());
    record(&mut line);
    HEARD.fetch_add(1, Ordering::Relaxed);
    if SECRETS.iter().any(|secret| line.0.contains(secret)) {
        SHOWN.lock().unwrap_or_else(PoisonError::into_inner).push(line.0);
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // The server, in the same process, is not what is tested.
        metadata.target().split("::").next() == Some("wirespeed")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        hear(span.metadata().name(), |line| span.record(line));
        Id::from_u64(self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        hear("record", |line| values.record(line));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        hear(event.metadata().target(), |line| event.record(line));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

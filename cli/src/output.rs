//! What is printed, and where: results on standard output, progress, notes and errors on standard error.
//!
//! Three forms: lines for a person or a pipe, JSON lines (`--json`), errors only (`--quiet`). Owns the two streams and
//! the place of the progress bar, so that a line never lands inside the bar. Many commands of one `run` share the streams,
//! each by an [`Output`] of its own that knows its line. A reader that went away (`| head`) ends a listing quietly
//! ([`Failure::StdoutClosed`]) but never a transfer, whose lines are only a report.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use serde::Serialize;

use crate::failure::{ErrorRecord, Failure, visible};

/// The form that was asked for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Form {
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    /// Whether progress is told: always, never, or where standard error is a terminal.
    pub(crate) progress: Option<bool>,
}

/// Both streams of the process, as one command has them.
#[derive(Clone)]
pub(crate) struct Output {
    form: Form,
    /// Where the command stands in what `run` reads.
    line: Option<u64>,
    streams: Arc<Streams>,
}

struct Streams {
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    stdout: Mutex<Stdout>,
    /// Held while an object's bytes are written past the buffer.
    objects: tokio::sync::Mutex<()>,
    bar: Mutex<Option<ProgressBar>>,
}

struct Stdout {
    /// Whole lines.
    buffer: Vec<u8>,
    flushed: Instant,
    /// A report that could not be written is told once, and then no more is written.
    report_failed: bool,
}

/// How long a line of a report may wait in the buffer while others follow.
const FLUSH_EVERY: Duration = Duration::from_millis(50);

/// Collected before each write: a page of a listing is one system call, not a thousand.
const BUFFER: usize = 64 << 10;

impl Stdout {
    fn flush(&mut self) -> Result<(), Failure> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(&self.buffer).and_then(|()| stdout.flush());
        self.buffer.clear();
        written.map_err(stdout_failure)
    }

    fn flush_if_full(&mut self) -> Result<(), Failure> {
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }
}

impl Output {
    /// Takes over standard output and standard error.
    pub(crate) fn new(form: Form) -> Output {
        let stdout = Stdout { buffer: Vec::new(), flushed: Instant::now(), report_failed: false };
        let streams = Streams {
            stdout_is_terminal: io::stdout().is_terminal(),
            stderr_is_terminal: io::stderr().is_terminal(),
            stdout: Mutex::new(stdout),
            objects: tokio::sync::Mutex::new(()),
            bar: Mutex::new(None),
        };
        Output { form, line: None, streams: Arc::new(streams) }
    }

    /// The same streams for the command in one line of `run`: without a bar, its errors and records with the line.
    pub(crate) fn of_line(&self, line: u64, form: Form) -> Output {
        let form = Form { json: self.form.json || form.json, quiet: self.form.quiet || form.quiet, ..form };
        Output { form, line: Some(line), streams: Arc::clone(&self.streams) }
    }

    /// Whether results are JSON lines.
    pub(crate) fn json(&self) -> bool {
        self.form.json
    }

    /// Whether only errors are to be printed.
    pub(crate) fn quiet(&self) -> bool {
        self.form.quiet
    }

    /// Whether a progress bar has a place: a terminal to draw on, and no wish for silence or JSON.
    pub(crate) fn wants_bar(&self) -> bool {
        let has_place = self.line.is_none() && self.streams.stderr_is_terminal;
        has_place && self.form.progress != Some(false) && !self.form.quiet && !self.form.json
    }

    /// Whether progress is to be told in lines, because it is wanted and there is no place for a bar.
    pub(crate) fn wants_progress_lines(&self) -> bool {
        self.form.progress == Some(true) && !self.wants_bar()
    }

    /// Whether each item of a transfer gets a line: not where the bar already tells the story.
    pub(crate) fn wants_item_lines(&self) -> bool {
        let bar_tells = self.streams.stdout_is_terminal && self.wants_bar();
        !self.form.quiet && !bar_tells
    }

    /// Sets or takes away the bar that lines must not run into.
    pub(crate) fn set_bar(&self, bar: Option<ProgressBar>) {
        *lock(&self.streams.bar) = bar;
    }

    /// One line of a result. Flushed by [`flush`](Self::flush) or when the buffer is full.
    pub(crate) fn line(&self, line: &str) -> Result<(), Failure> {
        self.rows(|rows| {
            rows.extend_from_slice(line.as_bytes());
            rows.push(b'\n');
        })
    }

    /// Many lines of a result: `print` adds them, each with its end, to what is not yet written.
    pub(crate) fn rows(&self, print: impl FnOnce(&mut Vec<u8>)) -> Result<(), Failure> {
        let mut stdout = lock(&self.streams.stdout);
        print(&mut stdout.buffer);
        stdout.flush_if_full()
    }

    /// A whole document as it stands.
    pub(crate) fn document(&self, bytes: &[u8]) -> Result<(), Failure> {
        self.rows(|rows| rows.extend_from_slice(bytes))
    }

    /// One JSON line of a result.
    pub(crate) fn record(&self, record: &impl Serialize) -> Result<(), Failure> {
        self.rows(|rows| self.push_record(record, rows))
    }

    /// Adds a JSON line to others that [`rows`](Self::rows) is adding.
    pub(crate) fn push_record(&self, record: &impl Serialize, rows: &mut Vec<u8>) {
        let begun = rows.len();
        let written = match self.line {
            None => serde_json::to_writer(&mut *rows, record),
            Some(line) => serde_json::to_writer(&mut *rows, &InLine { line, record }),
        };
        match written {
            Ok(()) => rows.push(b'\n'),
            // Records are made of text and numbers, which always have a JSON form; half of one would break the line.
            Err(_) => rows.truncate(begun),
        }
    }

    /// The right to write bytes of objects to standard output, past the buffer, after all that is in it.
    pub(crate) async fn objects(&self) -> Result<tokio::sync::MutexGuard<'_, ()>, Failure> {
        let guard = self.streams.objects.lock().await;
        self.flush()?;
        Ok(guard)
    }

    /// Lets everything that was printed be seen.
    pub(crate) fn flush(&self) -> Result<(), Failure> {
        lock(&self.streams.stdout).flush()
    }

    /// One line of a report on work that goes on whether or not anybody reads it. Never into a bar: see
    /// [`wants_item_lines`](Self::wants_item_lines).
    pub(crate) fn report(&self, line: &str) {
        self.report_with(|output| output.line(line));
    }

    /// One JSON line of such a report.
    pub(crate) fn report_record(&self, record: &impl Serialize) {
        self.report_with(|output| output.record(record));
    }

    fn report_with(&self, print: impl FnOnce(&Output) -> Result<(), Failure>) {
        if lock(&self.streams.stdout).report_failed {
            return;
        }
        let due = lock(&self.streams.stdout).flushed.elapsed() >= FLUSH_EVERY;
        let result = print(self).and_then(|()| if due { self.flush() } else { Ok(()) });
        let mut stdout = lock(&self.streams.stdout);
        if due {
            stdout.flushed = Instant::now();
        }
        if let Err(failure) = result {
            stdout.report_failed = true;
            drop(stdout);
            if !matches!(failure, Failure::StdoutClosed) {
                self.stderr(&format!("wirespeed: {failure}; the work goes on without its report"));
            }
        }
    }

    /// Something worth knowing that is no failure.
    pub(crate) fn note(&self, note: &str) {
        if !self.form.quiet {
            self.stderr(&format!("wirespeed: {}{}", self.place(), visible(note)));
        }
    }

    /// What has to be said even in quiet: why the process ends.
    pub(crate) fn note_always(&self, note: &str) {
        self.stderr(&format!("wirespeed: {note}"));
    }

    /// A failure: one line for a person, and with `--json` one for a program.
    pub(crate) fn failure(&self, failure: &Failure) {
        #[derive(Serialize)]
        struct Wrapped {
            error: ErrorRecord,
        }
        if matches!(failure, Failure::StdoutClosed) {
            return;
        }
        self.stderr(&format!("wirespeed: {}{}", self.place(), visible(&failure.to_string())));
        if self.form.json
            && let Ok(json) =
                serde_json::to_string(&Wrapped { error: ErrorRecord { line: self.line, ..failure.record() } })
        {
            self.stderr(&json);
        }
    }

    fn place(&self) -> String {
        self.line.map_or_else(String::new, |line| format!("line {line}: "))
    }

    fn stderr(&self, line: &str) {
        // Nobody is left to tell when standard error itself fails.
        self.around_bar(|| drop(writeln!(io::stderr().lock(), "{line}")));
    }

    fn around_bar(&self, print: impl FnOnce()) {
        let bar = lock(&self.streams.bar).clone();
        match bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

/// A record of one line of many.
#[derive(Serialize)]
struct InLine<'a, R> {
    line: u64,
    #[serde(flatten)]
    record: &'a R,
}

fn stdout_failure(source: io::Error) -> Failure {
    match source.kind() {
        io::ErrorKind::BrokenPipe => Failure::StdoutClosed,
        _ => Failure::Local { what: "cannot write to standard output".to_owned(), source },
    }
}

/// A panic elsewhere must not silence the report of it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! What is printed, and where: results on standard output, progress, notes and errors on standard error.
//!
//! Three forms: lines for a person or a pipe, JSON lines (`--json`), errors only (`--quiet`). Owns the two streams and
//! the place of the progress bar, so that a line never lands inside the bar. A reader that went away (`| head`) ends a
//! listing quietly ([`Failure::StdoutClosed`]) but never a transfer, whose lines are only a report.

use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use serde::Serialize;

use crate::failure::{ErrorRecord, Failure, visible};

/// The form that was asked for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Form {
    pub(crate) json: bool,
    pub(crate) quiet: bool,
}

/// Both streams of the process.
pub(crate) struct Output {
    form: Form,
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    stdout: Mutex<Stdout>,
    bar: Mutex<Option<ProgressBar>>,
}

struct Stdout {
    stream: BufWriter<io::Stdout>,
    flushed: Instant,
    /// A report that could not be written is told once, and then no more is written.
    report_failed: bool,
}

/// How long a line of a report may wait in the buffer while others follow.
const FLUSH_EVERY: Duration = Duration::from_millis(50);

/// Collected before each write: a page of a listing is one system call, not a thousand.
const BUFFER: usize = 64 << 10;

impl Output {
    /// Takes over standard output and standard error.
    pub(crate) fn new(form: Form) -> Output {
        Output {
            form,
            stdout_is_terminal: io::stdout().is_terminal(),
            stderr_is_terminal: io::stderr().is_terminal(),
            stdout: Mutex::new(Stdout {
                stream: BufWriter::with_capacity(BUFFER, io::stdout()),
                flushed: Instant::now(),
                report_failed: false,
            }),
            bar: Mutex::new(None),
        }
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
        self.stderr_is_terminal && !self.form.quiet && !self.form.json
    }

    /// Whether each item of a transfer gets a line: not where the bar already tells the story.
    pub(crate) fn wants_item_lines(&self) -> bool {
        let bar_tells = self.stdout_is_terminal && self.wants_bar();
        !self.form.quiet && !bar_tells
    }

    /// Sets or takes away the bar that lines must not run into.
    pub(crate) fn set_bar(&self, bar: Option<ProgressBar>) {
        *lock(&self.bar) = bar;
    }

    /// One line of a result. Flushed by [`flush`](Self::flush) or when the buffer is full.
    pub(crate) fn line(&self, line: &str) -> Result<(), Failure> {
        let mut stdout = lock(&self.stdout);
        writeln!(stdout.stream, "{line}").map_err(stdout_failure)
    }

    /// A whole document as it stands.
    pub(crate) fn document(&self, bytes: &[u8]) -> Result<(), Failure> {
        lock(&self.stdout).stream.write_all(bytes).map_err(stdout_failure)
    }

    /// One JSON line of a result.
    pub(crate) fn record(&self, record: &impl Serialize) -> Result<(), Failure> {
        let mut stdout = lock(&self.stdout);
        serde_json::to_writer(&mut stdout.stream, record).map_err(|error| stdout_failure(error.into()))?;
        stdout.stream.write_all(b"\n").map_err(stdout_failure)
    }

    /// Lets everything that was printed be seen.
    pub(crate) fn flush(&self) -> Result<(), Failure> {
        lock(&self.stdout).stream.flush().map_err(stdout_failure)
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
        if lock(&self.stdout).report_failed {
            return;
        }
        let due = lock(&self.stdout).flushed.elapsed() >= FLUSH_EVERY;
        let result = print(self).and_then(|()| if due { self.flush() } else { Ok(()) });
        let mut stdout = lock(&self.stdout);
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
            self.stderr(&format!("wirespeed: {}", visible(note)));
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
        self.stderr(&format!("wirespeed: {}", visible(&failure.to_string())));
        if self.form.json
            && let Ok(json) = serde_json::to_string(&Wrapped { error: failure.record() })
        {
            self.stderr(&json);
        }
    }

    fn stderr(&self, line: &str) {
        // Nobody is left to tell when standard error itself fails.
        self.around_bar(|| drop(writeln!(io::stderr().lock(), "{line}")));
    }

    fn around_bar(&self, print: impl FnOnce()) {
        let bar = lock(&self.bar).clone();
        match bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
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

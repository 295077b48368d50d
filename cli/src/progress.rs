//! The progress bar: bytes, objects, rate and time left, on standard error.
//!
//! The engine counts into a [`Progress`] as it goes; ten times a second a task reads it. The transfer itself never
//! draws. How much is to come is known only as far as the listing or the walk has got, so the time left shows once
//! that is complete; for one object, once the first answer has brought its size.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::task::AbortHandle;
use wirespeed::Progress;

use crate::output::Output;
use crate::units::{Elapsed, Size, rate, thousands};

/// What is to be transferred, as far as it is known.
#[derive(Clone, Default)]
pub(crate) struct Expected(Arc<ExpectedCounts>);

#[derive(Default)]
struct ExpectedCounts {
    bytes: AtomicU64,
    objects: AtomicU64,
    /// Objects of which the other side has the same.
    same: AtomicU64,
    failed: AtomicU64,
    complete: AtomicBool,
    /// Sizes come with the engine's answers, and nothing is found here.
    by_engine: bool,
}

impl Expected {
    /// One object, whose size is the engine's to tell.
    pub(crate) fn one_of_unknown_size() -> Expected {
        let counts = ExpectedCounts { objects: AtomicU64::new(1), by_engine: true, ..ExpectedCounts::default() };
        Expected(Arc::new(counts))
    }

    /// The bytes of all there is, once they are known.
    fn total(&self, progress: &Progress) -> Option<u64> {
        if self.0.by_engine {
            return Some(progress.expected()).filter(|bytes| *bytes > 0);
        }
        self.0.complete.load(Ordering::Relaxed).then(|| self.0.bytes.load(Ordering::Relaxed))
    }

    /// One more object of `bytes`.
    pub(crate) fn add(&self, bytes: u64) {
        self.add_many(1, bytes);
    }

    /// More objects of so many `bytes` together.
    pub(crate) fn add_many(&self, objects: u64, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.0.objects.fetch_add(objects, Ordering::Relaxed);
    }

    /// One more object that need not be transferred.
    pub(crate) fn same(&self) {
        self.0.same.fetch_add(1, Ordering::Relaxed);
    }

    /// One more object that failed.
    pub(crate) fn failed(&self) {
        self.0.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// How far it is, in objects.
    fn message(&self, progress: &Progress) -> String {
        let counts = &self.0;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut message = format!("{} of {} objects", thousands(progress.objects()), thousands(read(&counts.objects)));
        for (number, what) in [(read(&counts.same), "the same"), (read(&counts.failed), "failed")] {
            if number > 0 {
                message.push_str(&format!(", {} {what}", thousands(number)));
            }
        }
        if self.total(progress).is_none() && !counts.by_engine {
            message.push_str("  finding more…");
        }
        message
    }

    /// Nothing more will be found.
    pub(crate) fn complete(&self) {
        self.0.complete.store(true, Ordering::Relaxed);
    }
}

/// The bar while it is on the screen, or the lines that stand for it; dropping it clears the line.
pub(crate) struct Bar<'a> {
    output: &'a Output,
    drawn: Option<ProgressBar>,
    task: Option<AbortHandle>,
}

const REDRAW: Duration = Duration::from_millis(100);
/// Often enough to see a standstill, seldom enough for a log.
const TELL_EVERY: Duration = Duration::from_secs(2);
const COUNTING: &str = "{spinner} {bytes:>10}  {binary_bytes_per_sec:>12}  {msg}";
const KNOWN: &str = "{wide_bar:.cyan/dim} {bytes:>10} of {total_bytes}  {binary_bytes_per_sec:>12}  {msg}  {eta} left";

impl Bar<'_> {
    /// Shows the bar if there is a terminal for it, else does nothing. Must run inside the runtime.
    pub(crate) fn show<'a>(output: &'a Output, progress: &Progress, expected: &Expected) -> Bar<'a> {
        if output.wants_progress_lines() {
            let task = tokio::spawn(tell(output.clone(), progress.clone(), expected.clone()));
            return Bar { output, drawn: None, task: Some(task.abort_handle()) };
        }
        if !output.wants_bar() {
            return Bar { output, drawn: None, task: None };
        }
        // Lengths are given before the first drawing, so the style decides what shows.
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(10));
        bar.set_style(style(COUNTING));
        output.set_bar(Some(bar.clone()));
        let task = tokio::spawn(redraw(bar.clone(), progress.clone(), expected.clone()));
        Bar { output, drawn: Some(bar), task: Some(task.abort_handle()) }
    }
}

impl Drop for Bar<'_> {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
        if let Some(bar) = self.drawn.take() {
            self.output.set_bar(None);
            bar.finish_and_clear();
        }
    }
}

async fn redraw(bar: ProgressBar, progress: Progress, expected: Expected) {
    let mut tick = tokio::time::interval(REDRAW);
    let mut known = false;
    loop {
        tick.tick().await;
        let total = expected.total(&progress);
        if !known && total.is_some() {
            known = true;
            bar.set_style(style(KNOWN));
        }
        if let Some(total) = total {
            bar.set_length(total);
        }
        // A part that is fetched again can be counted twice; more than all of it would confuse.
        bar.set_position(total.map_or(progress.bytes(), |total| progress.bytes().min(total)));
        bar.set_message(expected.message(&progress));
        bar.tick();
    }
}

/// A line every now and then, for who has no terminal and wants to know.
async fn tell(output: Output, progress: Progress, expected: Expected) {
    let mut tick = tokio::time::interval(TELL_EVERY);
    tick.tick().await;
    let began = Instant::now();
    loop {
        tick.tick().await;
        let bytes = progress.bytes();
        let mut line = Size(bytes).to_string();
        let total = expected.total(&progress);
        if let Some(total) = total {
            line.push_str(&format!(" of {}", Size(total)));
        }
        let speed = rate(bytes, began.elapsed());
        line.push_str(&format!(", {}/s, {}", Size(speed as u64), expected.message(&progress)));
        if let Some(left) =
            total.map(|total| total.saturating_sub(bytes) as f64 / speed).filter(|left| left.is_finite())
        {
            line.push_str(&format!(", {} left", Elapsed(Duration::from_secs(left.ceil() as u64))));
        }
        output.note_always(&line);
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_are_valid() {
        for template in [COUNTING, KNOWN] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}

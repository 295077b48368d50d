//! The progress bar: bytes, objects, rate and time left, on standard error.
//!
//! The engine counts into a [`Progress`] as it goes; ten times a second a task reads it. The transfer itself never
//! draws. How much is to come is known only as far as the listing or the walk has got, so the time left shows once
//! that is complete; for one object, once the first answer has brought its size.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::task::AbortHandle;
use wirespeed::Progress;

use crate::output::Output;
use crate::units::thousands;

/// What is to be transferred, as far as it is known.
#[derive(Clone, Default)]
pub(crate) struct Expected(Arc<ExpectedCounts>);

#[derive(Default)]
struct ExpectedCounts {
    bytes: AtomicU64,
    objects: AtomicU64,
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
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.0.objects.fetch_add(1, Ordering::Relaxed);
    }

    /// Nothing more will be found.
    pub(crate) fn complete(&self) {
        self.0.complete.store(true, Ordering::Relaxed);
    }
}

/// The bar while it is on the screen; dropping it clears the line.
pub(crate) struct Bar<'a> {
    output: &'a Output,
    drawn: Option<(ProgressBar, AbortHandle)>,
}

const REDRAW: Duration = Duration::from_millis(100);
const COUNTING: &str = "{spinner} {bytes:>10}  {binary_bytes_per_sec:>12}  {msg}";
const KNOWN: &str = "{wide_bar:.cyan/dim} {bytes:>10} of {total_bytes}  {binary_bytes_per_sec:>12}  {msg}  {eta} left";

impl Bar<'_> {
    /// Shows the bar if there is a terminal for it, else does nothing. Must run inside the runtime.
    pub(crate) fn show<'a>(output: &'a Output, progress: &Progress, expected: &Expected) -> Bar<'a> {
        if !output.wants_bar() {
            return Bar { output, drawn: None };
        }
        // Lengths are given before the first drawing, so the style decides what shows.
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(10));
        bar.set_style(style(COUNTING));
        output.set_bar(Some(bar.clone()));
        let task = tokio::spawn(redraw(bar.clone(), progress.clone(), expected.clone()));
        Bar { output, drawn: Some((bar, task.abort_handle())) }
    }
}

impl Drop for Bar<'_> {
    fn drop(&mut self) {
        if let Some((bar, task)) = self.drawn.take() {
            task.abort();
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
        let objects = expected.0.objects.load(Ordering::Relaxed);
        if !known && total.is_some() {
            known = true;
            bar.set_style(style(KNOWN));
        }
        if let Some(total) = total {
            bar.set_length(total);
        }
        // A part that is fetched again can be counted twice; more than all of it would confuse.
        bar.set_position(total.map_or(progress.bytes(), |total| progress.bytes().min(total)));
        let more = if total.is_some() || expected.0.by_engine { "" } else { "  finding more…" };
        bar.set_message(format!("{} of {} objects{more}", thousands(progress.objects()), thousands(objects)));
        bar.tick();
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

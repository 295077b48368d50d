//! The progress bar: bytes, objects, rate and time left, on standard error.
//!
//! The engine counts into a [`Progress`] as it goes; ten times a second a task reads it. The transfer itself never
//! draws. How much is to come is known only as far as the listing or the walk has got, so the time left shows once
//! that is complete.

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
}

impl Expected {
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
const COUNTING: &str = "{spinner} {bytes:>10}  {binary_bytes_per_sec:>12}  {msg}  finding more…";
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
        let total = expected.0.bytes.load(Ordering::Relaxed);
        let objects = expected.0.objects.load(Ordering::Relaxed);
        if !known && expected.0.complete.load(Ordering::Relaxed) {
            known = true;
            bar.set_style(style(KNOWN));
        }
        // A part that is fetched again can be counted twice; more than all of it would confuse.
        bar.set_length(total);
        bar.set_position(if known { progress.bytes().min(total) } else { progress.bytes() });
        bar.set_message(format!("{} of {} objects", thousands(progress.objects()), thousands(objects)));
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

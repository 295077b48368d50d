//! The table of `--stat`: how many requests of each kind there were, how long they took, and how they were answered.
//!
//! Each thread of the engine records into histograms of its own, merged once at the end: a request costs a lock that
//! nobody else wants and a few increments.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use thread_local::ThreadLocal;
use wirespeed::{Metrics, Observer, RequestEvent};

use crate::output::Output;
use crate::units::{Size, thousands};

/// Listens to the engine.
#[derive(Default)]
pub(crate) struct RequestTable {
    shards: ThreadLocal<Mutex<Shard>>,
}

/// By operation, what one thread has seen.
type Shard = HashMap<&'static str, Seen>;

#[derive(Clone)]
struct Seen {
    first_byte: Histogram<u32>,
    total: Histogram<u32>,
    bytes: u64,
    statuses: BTreeMap<u16, u64>,
}

/// Counts in ticks of 10 microseconds, to an hour, with two significant digits: a few KiB each.
const TICK: Duration = Duration::from_micros(10);
const TICKS_AN_HOUR: u64 = 360_000_000;
const TICKS_A_MILLISECOND: f64 = 100.0;

impl Seen {
    fn new() -> Option<Seen> {
        let histogram = Histogram::new_with_bounds(1, TICKS_AN_HOUR, 2).ok()?;
        Some(Seen { first_byte: histogram.clone(), total: histogram, bytes: 0, statuses: BTreeMap::new() })
    }

    fn add(&mut self, other: &Seen) {
        // Same bounds everywhere, so that nothing can fail to fit.
        let _ = self.first_byte.add(&other.first_byte);
        let _ = self.total.add(&other.total);
        self.bytes += other.bytes;
        other.statuses.iter().for_each(|(status, count)| *self.statuses.entry(*status).or_default() += count);
    }
}

impl Observer for RequestTable {
    fn request(&self, event: &RequestEvent) {
        let mut shard = self.shards.get_or_default().lock().unwrap_or_else(PoisonError::into_inner);
        if !shard.contains_key(event.operation)
            && let Some(seen) = Seen::new()
        {
            shard.insert(event.operation, seen);
        }
        if let Some(seen) = shard.get_mut(event.operation) {
            seen.first_byte.saturating_record(ticks(event.time_to_first_byte));
            seen.total.saturating_record(ticks(event.total));
            seen.bytes += event.bytes;
            *seen.statuses.entry(event.status).or_default() += 1;
        }
    }
}

/// The table as `--json` prints it.
#[derive(Debug, Serialize)]
struct TableRecord {
    #[serde(rename = "type")]
    kind: &'static str,
    operations: Vec<Row>,
    retries: u64,
    connections: u64,
}

#[derive(Debug, Serialize)]
struct Row {
    operation: &'static str,
    requests: u64,
    bytes: u64,
    first_byte_ms: Percentiles,
    total_ms: Percentiles,
    /// By status of the answer.
    statuses: BTreeMap<u16, u64>,
}

#[derive(Debug, Serialize)]
struct Percentiles {
    p50: f64,
    p95: f64,
    p99: f64,
    max: f64,
}

impl Percentiles {
    fn of(histogram: &Histogram<u32>) -> Percentiles {
        let at = |percentile| milliseconds(histogram.value_at_percentile(percentile));
        Percentiles { p50: at(50.0), p95: at(95.0), p99: at(99.0), max: milliseconds(histogram.max()) }
    }
}

impl RequestTable {
    /// Prints what was seen until now.
    pub(crate) fn print(&self, output: &Output, metrics: Metrics) {
        let record = self.record(metrics);
        if output.json() {
            return output.report_record(&record);
        }
        let head = ["operation", "requests", "bytes", "first byte p50", "p95", "p99", "max ms"];
        let tail = ["whole p50", "p95", "p99", "max ms", "answers"];
        let mut rows = vec![head.iter().chain(&tail).map(|&cell| cell.to_owned()).collect::<Vec<_>>()];
        rows.extend(record.operations.iter().map(Row::cells));
        let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
        for row in &rows {
            let mut line = format!("{:<width$}", row[0], width = widths[0]);
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                line.push_str(&format!("  {cell:>width$}"));
            }
            output.report(line.trim_end());
        }
        output.report(&format!(
            "retries: {}, connections made: {}",
            thousands(record.retries),
            thousands(record.connections)
        ));
    }

    fn record(&self, metrics: Metrics) -> TableRecord {
        let mut merged: BTreeMap<&'static str, Seen> = BTreeMap::new();
        for shard in &self.shards {
            for (operation, seen) in shard.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                match merged.get_mut(operation) {
                    Some(all) => all.add(seen),
                    None => drop(merged.insert(operation, seen.clone())),
                }
            }
        }
        let row = |(operation, seen): (&'static str, Seen)| Row {
            operation,
            requests: seen.total.len(),
            bytes: seen.bytes,
            first_byte_ms: Percentiles::of(&seen.first_byte),
            total_ms: Percentiles::of(&seen.total),
            statuses: seen.statuses,
        };
        TableRecord {
            kind: "requests",
            operations: merged.into_iter().map(row).collect(),
            retries: metrics.retries,
            connections: metrics.connections_opened,
        }
    }
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.operation.to_owned(), thousands(self.requests), Size(self.bytes).to_string()];
        for times in [&self.first_byte_ms, &self.total_ms] {
            cells.extend([times.p50, times.p95, times.p99, times.max].map(|time| format!("{time:.1}")));
        }
        let answers = self.statuses.iter().map(|(status, count)| format!("{status}: {}", thousands(*count)));
        cells.push(answers.collect::<Vec<_>>().join(" "));
        cells
    }
}

fn ticks(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos() / TICK.as_nanos()).unwrap_or(u64::MAX)
}

fn milliseconds(ticks: u64) -> f64 {
    ticks as f64 / TICKS_A_MILLISECOND
}

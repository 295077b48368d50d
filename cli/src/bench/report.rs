//! What `bench` prints: one JSON object, or a table for a person.

use std::collections::BTreeMap;

use serde::Serialize;

use super::latency::Percentiles;
use super::{Operation, Sink};
use crate::units::{Size, objects, thousands};

/// One round.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Round {
    pub(super) seconds: f64,
    pub(super) bytes: u64,
    pub(super) objects: u64,
    pub(super) requests: u64,
    /// CPU time of the whole process, in user mode and in the kernel.
    pub(super) user_s: f64,
    pub(super) system_s: f64,
    /// Median over the round's requests.
    pub(super) ttfb_ms: f64,
    pub(super) latency_ms: Percentiles,
}

impl Round {
    fn bytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.seconds.max(1e-9)
    }

    fn core_seconds(&self) -> f64 {
        self.user_s + self.system_s
    }
}

/// One round as `--step` prints it.
#[derive(Serialize)]
pub(super) struct StepRound {
    #[serde(flatten)]
    pub(super) round: Round,
    pub(super) peak_rss_bytes: u64,
    pub(super) socket_memory_bytes: u64,
}

/// All rounds.
#[derive(Serialize)]
pub(super) struct Report {
    pub(super) operation: Operation,
    pub(super) sink: Sink,
    pub(super) rounds: Vec<Round>,
    pub(super) peak_rss_bytes: u64,
    /// What the kernel may hold for the connections, which is not resident.
    pub(super) socket_memory_bytes: u64,
    pub(super) config: BTreeMap<&'static str, String>,
}

impl Report {
    /// The lines of the table.
    pub(super) fn table(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{:>5} {:>9} {:>13} {:>9} {:>10} {:>10} {:>9} {:>9} {:>9}",
            "round", "seconds", "per second", "requests", "cpu s/GiB", "cpu us/req", "ttfb ms", "p50 ms", "p99 ms"
        )];
        for (index, round) in self.rounds.iter().enumerate() {
            lines.push(format!(
                "{:>5} {:>9.4} {:>13} {:>9} {:>10.3} {:>10.1} {:>9.2} {:>9.2} {:>9.2}",
                index + 1,
                round.seconds,
                Size(round.bytes_per_second() as u64).to_string(),
                thousands(round.requests),
                round.core_seconds() / (round.bytes.max(1) as f64 / f64::from(1 << 30)),
                round.core_seconds() * 1e6 / round.requests.max(1) as f64,
                round.ttfb_ms,
                round.latency_ms.p50,
                round.latency_ms.p99,
            ));
        }
        // The first round is cold, so that it would blur the middle of few.
        let warm = if self.rounds.len() > 1 { &self.rounds[1..] } else { &self.rounds[..] };
        if let Some(first) = warm.first() {
            lines.push(format!(
                "{}, {} a round; median of the {} round{}: {}/s; peak memory {}",
                objects(first.objects),
                Size(first.bytes),
                if self.rounds.len() > 1 { "warm" } else { "cold" },
                if warm.len() > 1 { "s" } else { "" },
                Size(median(warm.iter().map(Round::bytes_per_second)) as u64),
                Size(self.peak_rss_bytes),
            ));
        }
        lines
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        length if length % 2 == 1 => values[length / 2],
        length => f64::midpoint(values[length / 2 - 1], values[length / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(seconds: &[f64]) -> Report {
        let round = |&seconds: &f64| Round {
            seconds,
            bytes: 1 << 30,
            objects: 1,
            requests: 128,
            user_s: 0.05,
            system_s: 0.1,
            ttfb_ms: 0.5,
            latency_ms: Percentiles::default(),
        };
        Report {
            operation: Operation::Get,
            sink: Sink::Memory,
            rounds: seconds.iter().map(round).collect(),
            peak_rss_bytes: 3 << 30,
            socket_memory_bytes: 8 << 20,
            config: BTreeMap::from([("part_size", "8388608".to_owned())]),
        }
    }

    #[test]
    fn the_table_leaves_the_cold_round_out_of_the_median() {
        let table = report(&[4.0, 1.0, 0.5, 2.0]).table();
        assert_eq!(table.len(), 6);
        assert!(table[1].contains("256.0 MiB") && table[1].contains("0.150"), "{}", table[1]);
        assert!(table[5].contains("median of the warm rounds: 1.0 GiB/s"), "{}", table[5]);
        assert!(report(&[1.0]).table()[2].contains("median of the cold round: 1.0 GiB/s"));
    }

    #[test]
    fn the_json_has_the_documented_fields() {
        let json = serde_json::to_value(report(&[1.0])).unwrap();
        assert_eq!(json["operation"], "get");
        assert_eq!(json["sink"], "memory");
        assert_eq!(json["socket_memory_bytes"], 8 << 20);
        assert_eq!(json["config"]["part_size"], "8388608");
        for field in ["seconds", "bytes", "objects", "requests", "user_s", "system_s", "ttfb_ms"] {
            assert!(json["rounds"][0][field].is_number(), "{field}");
        }
        for field in ["p50", "p95", "p99", "max"] {
            assert!(json["rounds"][0]["latency_ms"][field].is_number(), "{field}");
        }
    }

    #[test]
    fn medians() {
        assert_eq!(median([].into_iter()), 0.0);
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0].into_iter()), 2.5);
    }
}

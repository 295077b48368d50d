//! What is told: a line a case, or one JSON document.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::json;

use crate::case::Cost;
use crate::suite::{Row, Spent};

/// The line of one case.
pub(crate) fn line(out: &mut impl Write, row: &Row) -> io::Result<()> {
    let (word, detail) = (row.outcome.word(), row.outcome.detail());
    let lead = format!("{word:<9} {:<44} {:>5} requests {:>7.2} s", row.name, row.requests, row.seconds);
    // What a server says can be long, and have line ends.
    let detail: String = detail.split_whitespace().collect::<Vec<_>>().join(" ");
    if detail.is_empty() { writeln!(out, "{lead}") } else { writeln!(out, "{lead}  {detail}") }
}

/// How many cases came to what, and what they cost.
pub(crate) fn summary(out: &mut impl Write, rows: &[Row], declared: &Cost, spent: &Spent) -> io::Result<()> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows {
        *counts.entry(row.outcome.word()).or_default() += 1;
    }
    let counts: Vec<_> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    writeln!(out, "{} cases: {}", rows.len(), counts.join(", "))?;
    writeln!(
        out,
        "{} requests of {} declared, {} bytes up, {} bytes down",
        spent.requests,
        declared.requests(),
        spent.up,
        spent.down
    )
}

/// Everything, for programs: `run` has been cut short where `not_run` cases are left of it.
pub(crate) fn document(
    (bucket, prefix): (&str, &str),
    rows: &[Row],
    not_run: usize,
    left_behind: &[String],
    declared: &Cost,
    spent: &Spent,
) -> serde_json::Value {
    let cases: Vec<_> = rows
        .iter()
        .map(|row| {
            json!({
                "name": row.name,
                "outcome": row.outcome.word().to_lowercase(),
                "detail": row.outcome.detail(),
                "requests": row.requests,
                "seconds": row.seconds,
            })
        })
        .collect();
    json!({
        "bucket": bucket,
        "prefix": prefix,
        "declared": {
            "writes": declared.writes,
            "reads": declared.reads,
            "deletes": declared.deletes,
            "bytes_up": declared.up,
            "bytes_down": declared.down,
        },
        "spent": { "requests": spent.requests, "bytes_up": spent.up, "bytes_down": spent.down },
        "cases": cases,
        "not_run": not_run,
        "left_behind": left_behind,
    })
}

//! What a store is claimed to be like: how soon it answers, how fast it sends, and when it says "slow down".
//!
//! A [`Model`] is only a description, written in code or in TOML; [`super::latency`], [`super::rate`] and
//! [`super::throttle`] keep to it. A server without one pays nothing for it.

use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

/// How long the first byte of an answer takes, from the request's last byte.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FirstByte {
    /// Always as long.
    Constant(Duration),
    /// Log-normally distributed, with this median and 95th percentile.
    LogNormal {
        /// Half of all answers take less.
        p50: Duration,
        /// One answer in twenty takes longer.
        p95: Duration,
    },
    /// Distributed evenly between these percentiles (from 0 to 100, in ascending order).
    Percentiles(Vec<(f64, Duration)>),
}

/// How much a network interface carries in either direction, in bytes a second: `baseline` for ever, or `burst` for as
/// long as there is credit. Credit begins at `credit` bytes, is spent by what goes beyond the baseline, and is earned
/// back, up to the same, by what stays below it: as EC2 instances do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nic {
    /// Bytes a second that are always there.
    pub baseline: f64,
    /// Bytes a second while credit lasts.
    pub burst: f64,
    /// Bytes beyond the baseline at the start, and at most.
    pub credit: f64,
}

/// Requests a second that each prefix takes (a prefix being a key up to its last `/`); beyond them the answer is 503
/// `SlowDown`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrefixLimits {
    /// GET, HEAD and lists.
    pub reads: f64,
    /// PUT, COPY, POST and DELETE.
    pub writes: f64,
    /// For how many seconds' worth of requests a prefix that was idle has room.
    pub burst_seconds: f64,
}

impl Default for PrefixLimits {
    /// What S3 states: 5,500 reads and 3,500 writes; with room for a tenth of a second's.
    fn default() -> Self {
        Self { reads: 5500.0, writes: 3500.0, burst_seconds: 0.1 }
    }
}

/// What a store is like.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    pub(crate) seed: u64,
    pub(crate) first_byte: Option<FirstByte>,
    pub(crate) down: Option<f64>,
    pub(crate) up: Option<f64>,
    pub(crate) nic: Option<Nic>,
    pub(crate) prefix: Option<PrefixLimits>,
}

impl Model {
    /// A store without limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// The seed of what is drawn.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How soon answers begin.
    #[must_use]
    pub fn first_byte(mut self, first_byte: FirstByte) -> Self {
        self.first_byte = Some(first_byte);
        self
    }

    /// The most that one connection sends to its client, in bytes a second.
    #[must_use]
    pub fn connection_down(mut self, rate: f64) -> Self {
        self.down = Some(rate);
        self
    }

    /// The most that one connection takes from its client, in bytes a second.
    #[must_use]
    pub fn connection_up(mut self, rate: f64) -> Self {
        self.up = Some(rate);
        self
    }

    /// What all connections together carry, each way.
    #[must_use]
    pub fn nic(mut self, nic: Nic) -> Self {
        self.nic = Some(nic);
        self
    }

    /// How many requests a prefix takes.
    #[must_use]
    pub fn prefix(mut self, limits: PrefixLimits) -> Self {
        self.prefix = Some(limits);
        self
    }
}

/// TOML: see `docs/origin.md`.
impl FromStr for Model {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let written: Written = toml::from_str(text).map_err(|error| error.to_string())?;
        let connection = written.connection.unwrap_or_default();
        let rate = |rate: Option<Rate>| rate.map(|rate| rate.0);
        Ok(Self {
            seed: written.seed,
            first_byte: written.first_byte.map(FirstByte::try_from).transpose()?,
            down: rate(connection.down),
            up: rate(connection.up),
            nic: written.nic.map(|nic| Nic {
                baseline: nic.baseline.0,
                burst: nic.burst.map_or(nic.baseline.0, |burst| burst.0),
                credit: nic.credit.map_or(0.0, |credit| credit.0),
            }),
            prefix: written.prefix.map(PrefixLimits::try_from).transpose()?,
        })
    }
}

/// `30ms`, or `27ms..75ms` for the median and the 95th percentile of a log-normal distribution.
impl FromStr for FirstByte {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let time = |text: &str| {
            let millis = text.strip_suffix("ms").and_then(|number| number.parse().ok());
            millis.and_then(millis_of).ok_or_else(|| format!("{text:?} is not a time such as 30ms"))
        };
        match text.split_once("..") {
            None => Ok(Self::Constant(time(text)?)),
            Some((p50, p95)) => log_normal(time(p50)?, time(p95)?),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    seed: u64,
    first_byte: Option<WrittenFirstByte>,
    connection: Option<WrittenConnection>,
    nic: Option<WrittenNic>,
    prefix: Option<WrittenPrefix>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFirstByte {
    constant_ms: Option<f64>,
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
    percentiles: Option<Vec<(f64, f64)>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenConnection {
    down: Option<Rate>,
    up: Option<Rate>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenNic {
    baseline: Rate,
    burst: Option<Rate>,
    credit: Option<Rate>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPrefix {
    reads: Option<f64>,
    writes: Option<f64>,
    burst_seconds: Option<f64>,
}

impl TryFrom<WrittenFirstByte> for FirstByte {
    type Error = String;

    fn try_from(written: WrittenFirstByte) -> Result<Self, String> {
        let time = |millis: f64| millis_of(millis).ok_or_else(|| format!("first_byte: {millis} is no time"));
        match (written.constant_ms, written.p50_ms, written.p95_ms, written.percentiles) {
            (Some(millis), None, None, None) => Ok(Self::Constant(time(millis)?)),
            (None, Some(p50), Some(p95), None) => log_normal(time(p50)?, time(p95)?),
            (None, None, None, Some(table)) => {
                let ascending = table.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
                if table.is_empty() || !ascending || table.iter().any(|(at, _)| !(0.0..=100.0).contains(at)) {
                    return Err(
                        "first_byte: percentiles are from 0 to 100 and ascend, and so do their times".to_owned()
                    );
                }
                let table = table.into_iter().map(|(at, millis)| Ok((at, time(millis)?)));
                Ok(Self::Percentiles(table.collect::<Result<_, String>>()?))
            }
            _ => Err("first_byte: give constant_ms, or p50_ms and p95_ms, or percentiles".to_owned()),
        }
    }
}

impl TryFrom<WrittenPrefix> for PrefixLimits {
    type Error = String;

    fn try_from(written: WrittenPrefix) -> Result<Self, String> {
        let default = Self::default();
        let limits = Self {
            reads: written.reads.unwrap_or(default.reads),
            writes: written.writes.unwrap_or(default.writes),
            burst_seconds: written.burst_seconds.unwrap_or(default.burst_seconds),
        };
        let above = |limit: f64| limit > 0.0 && limit.is_finite();
        if above(limits.reads) && above(limits.writes) && limits.burst_seconds >= 0.0 {
            return Ok(limits);
        }
        Err("prefix: reads and writes a second must be above 0".to_owned())
    }
}

fn log_normal(p50: Duration, p95: Duration) -> Result<FirstByte, String> {
    if p50.is_zero() || p95 < p50 {
        return Err("first_byte: the median is above 0 and not above the 95th percentile".to_owned());
    }
    Ok(FirstByte::LogNormal { p50, p95 })
}

fn millis_of(millis: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(millis / 1000.0).ok()
}

/// A number of bytes, or of bytes a second.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "WrittenRate")]
pub struct Rate(pub f64);

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenRate {
    Number(f64),
    Text(String),
}

impl TryFrom<WrittenRate> for Rate {
    type Error = String;

    fn try_from(written: WrittenRate) -> Result<Self, String> {
        match written {
            WrittenRate::Number(number) if number > 0.0 && number.is_finite() => Ok(Self(number)),
            WrittenRate::Number(number) => Err(format!("{number} is no rate: it must be above 0")),
            WrittenRate::Text(text) => text.parse(),
        }
    }
}

/// A number and a unit: `B`, `kB`, `MB`, `GB`, `KiB`, `MiB`, `GiB`, `Mbit`, `Gbit`, with or without `/s`.
impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let trimmed = text.trim().trim_end_matches("/s");
        let digits = trimmed.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits);
        let unit = match unit.trim() {
            "" | "B" => 1.0,
            "kB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            "KiB" => 1024.0,
            "MiB" => 1024.0 * 1024.0,
            "GiB" => 1024.0 * 1024.0 * 1024.0,
            "Mbit" => 1e6 / 8.0,
            "Gbit" => 1e9 / 8.0,
            _ => f64::NAN,
        };
        let rate = number.parse::<f64>().map_or(f64::NAN, |number| number * unit);
        if rate.is_finite() && rate > 0.0 {
            return Ok(Self(rate));
        }
        Err(format!("{text:?} is not a rate above 0, such as 90MB/s: B, kB, MB, GB, KiB, MiB, GiB, Mbit, Gbit"))
    }
}

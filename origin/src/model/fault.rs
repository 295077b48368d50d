//! Faults: which requests they meet.
//!
//! A fault is scripted (the n-th request that fits, so many times) or drawn (every request that fits, with a
//! probability). What is drawn depends on the seed, the fault's place in its [`Schedule`], the operation, bucket, key,
//! range or part, and on how often that very request came before: never on the order in which different requests
//! arrive. So a schedule does the same to a client that runs its requests in parallel, in whatever order.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use serde::Deserialize;

use super::action::Action;
use super::seeded::{draw, fraction};
use crate::verb::{Named, Verb, decode};

/// A fault: an action, and the requests that it meets.
///
/// Without conditions it meets every request. Where several are due for one request the one given first acts.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    action: Action,
    verb: Option<Verb>,
    bucket: Option<String>,
    key: Option<String>,
    nth: u64,
    times: u64,
    probability: Option<f64>,
}

impl Fault {
    /// A fault that meets every request.
    pub fn new(action: Action) -> Self {
        Self { action, verb: None, bucket: None, key: None, nth: 1, times: u64::MAX, probability: None }
    }

    /// Meets only this operation.
    #[must_use]
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verb = Some(verb);
        self
    }

    /// Meets only requests for this bucket.
    #[must_use]
    pub fn bucket(mut self, bucket: impl Into<String>) -> Self {
        self.bucket = Some(bucket.into());
        self
    }

    /// Meets only requests for this key.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Meets the `nth` request that fits, counted from 1, and (unless [`Fault::times`] follows) no other.
    #[must_use]
    pub fn nth(mut self, nth: u64) -> Self {
        self.nth = nth.max(1);
        self.times = 1;
        self
    }

    /// Meets this many requests that fit, from the first or from [`Fault::nth`] on.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// Meets a request that fits with this probability, from 0 to 1, drawn from the schedule's seed.
    ///
    /// `nth` and `times` then count each request (by operation, bucket, key, and range or part) by itself: with
    /// `times(2)` a request that is tried a third time is left alone.
    #[must_use]
    pub fn probability(mut self, probability: f64) -> Self {
        self.probability = Some(probability.clamp(0.0, 1.0));
        self
    }

    fn fits(&self, verb: Verb, named: &Named<'_>) -> bool {
        let (bucket, key) = (named.target.bucket, named.target.key);
        self.verb.is_none_or(|wanted| wanted == verb)
            && self.bucket.as_ref().is_none_or(|wanted| wanted == bucket)
            && self.key.as_ref().is_none_or(|wanted| *wanted == decode(key))
            && self.action.suits(verb)
    }

    /// Whether the `seen`-th request that fits is one of those meant.
    fn acts(&self, seen: u64) -> bool {
        seen >= self.nth && seen - self.nth < self.times
    }
}

/// Comma-separated `FIELD=VALUE`: `action=ACTION[:ARGUMENT]`, and any of `verb`, `bucket`, `key`, `nth`, `times`,
/// `probability`.
impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut written = Written::default();
        for field in text.split(',') {
            let (field, value) = field.split_once('=').ok_or_else(|| format!("{field:?} is not FIELD=VALUE"))?;
            let count = || value.parse::<u64>().map_err(|_| format!("{field}={value}: not a whole number"));
            match field {
                "action" => value.clone_into(&mut written.action),
                "verb" => written.verb = Some(value.to_owned()),
                "bucket" => written.bucket = Some(value.to_owned()),
                "key" => written.key = Some(value.to_owned()),
                "nth" => written.nth = Some(count()?),
                "times" => written.times = Some(count()?),
                "probability" => {
                    let number = value.parse().map_err(|_| format!("{field}={value}: not a number from 0 to 1"))?;
                    written.probability = Some(number);
                }
                _ => {
                    return Err(format!(
                        "no such field: {field}; there are action, verb, bucket, key, nth, times, probability"
                    ));
                }
            }
        }
        written.try_into()
    }
}

/// Faults and the seed that they are drawn from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    seed: u64,
    faults: Vec<Fault>,
}

impl Schedule {
    /// No faults yet.
    pub fn new(seed: u64) -> Self {
        Self { seed, faults: Vec::new() }
    }

    /// Draws from this seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Adds a fault.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }
}

/// TOML or JSON: `seed`, a number, and `fault`, a list of tables with the fields that a [`Fault`] has as text.
impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let written: WrittenSchedule = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| error.to_string())?
        } else {
            toml::from_str(text).map_err(|error| error.to_string())?
        };
        let faults =
            written.fault.into_iter().enumerate().map(|(index, written)| {
                Fault::try_from(written).map_err(|error| format!("fault {}: {error}", index + 1))
            });
        Ok(Self { seed: written.seed, faults: faults.collect::<Result<_, _>>()? })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSchedule {
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    fault: Vec<Written>,
}

/// A fault as people write it.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    action: String,
    verb: Option<String>,
    bucket: Option<String>,
    key: Option<String>,
    nth: Option<u64>,
    times: Option<u64>,
    probability: Option<f64>,
}

impl TryFrom<Written> for Fault {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        if written.action.is_empty() {
            return Err("it lacks action=ACTION".to_owned());
        }
        if let Some(probability) = written.probability.filter(|probability| !(0.0..=1.0).contains(probability)) {
            return Err(format!("probability={probability}: not a number from 0 to 1"));
        }
        let verb = written.verb.map(|verb| verb.parse()).transpose()?;
        let mut fault = Self::new(written.action.parse()?);
        fault = written.nth.into_iter().fold(fault, Self::nth);
        fault = written.times.into_iter().fold(fault, Self::times);
        fault = written.probability.into_iter().fold(fault, Self::probability);
        Ok(Self { verb, bucket: written.bucket, key: written.key, ..fault })
    }
}

/// What is due for one request.
#[derive(Clone, Debug)]
pub(crate) struct Due {
    pub(crate) action: Action,
    /// A number drawn for this request, for whatever the action leaves open.
    pub(crate) draw: u64,
}

/// The faults of one server.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Whether there are any: all that a request looks at where there are none.
    any: AtomicBool,
    armed: RwLock<Armed>,
}

#[derive(Debug, Default)]
struct Armed {
    seed: u64,
    faults: Vec<Arc<Counted>>,
}

#[derive(Debug)]
struct Counted {
    fault: Fault,
    seen: AtomicU64,
    /// How often each request came, for a fault with a probability.
    requests: Mutex<HashMap<u64, u64>>,
}

impl Counted {
    fn new(fault: Fault) -> Arc<Self> {
        Arc::new(Self { fault, seen: AtomicU64::new(0), requests: Mutex::default() })
    }
}

impl Faults {
    pub(crate) fn arm(&self, fault: Fault) {
        self.armed.write().faults.push(Counted::new(fault));
        self.any.store(true, Ordering::Release);
    }

    /// In place of all that there were.
    pub(crate) fn set(&self, schedule: Schedule) {
        let any = !schedule.faults.is_empty();
        let faults = schedule.faults.into_iter().map(Counted::new).collect();
        *self.armed.write() = Armed { seed: schedule.seed, faults };
        self.any.store(any, Ordering::Release);
    }

    /// Counts a request, and says what is to happen to it.
    pub(crate) fn due(&self, verb: Verb, named: &Named<'_>) -> Option<Due> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let armed = self.armed.read();
        let mut due = None;
        for (index, counted) in armed.faults.iter().enumerate().filter(|(_, armed)| armed.fault.fits(verb, named)) {
            let drawn = |seen: u64| {
                let (index, seen) = ((index as u64).to_le_bytes(), seen.to_le_bytes());
                draw(armed.seed, [&index[..], &seen].into_iter().chain(named.parts(verb)))
            };
            let (acts, drawn) = match counted.fault.probability {
                None => {
                    let seen = counted.seen.fetch_add(1, Ordering::Relaxed) + 1;
                    (counted.fault.acts(seen), drawn(seen))
                }
                Some(probability) => {
                    let mut requests = counted.requests.lock();
                    let seen = requests.entry(draw(0, named.parts(verb))).or_default();
                    *seen += 1;
                    let drawn = drawn(*seen);
                    (counted.fault.acts(*seen) && fraction(drawn) < probability, crate::model::seeded::mix(drawn))
                }
            };
            if acts && due.is_none() {
                due = Some(Due { action: counted.fault.action.clone(), draw: drawn });
            }
        }
        due
    }
}

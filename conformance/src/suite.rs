//! The suite at work: one case after another, each measured, and nothing left behind.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use wirespeed::{Client, Method, Metrics};

use crate::case::{Case, Cost, Finding, Need};
use crate::cleanup;
use crate::known::{Known, Outcome};
use crate::store::Store;

/// No case has work for longer, on any store.
const LONGEST: Duration = Duration::from_secs(100);

/// The longest wait for a sign of life from a store that did not answer a case.
const SILENCE: Duration = Duration::from_secs(30);

/// What came of one case.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) outcome: Outcome,
    pub(crate) requests: u64,
    pub(crate) seconds: f64,
}

pub(crate) struct Suite {
    client: Client,
    anonymous: Client,
    bucket: String,
    prefix: String,
    own_buckets: bool,
    /// Buckets that were made and not removed yet.
    made: Mutex<Vec<String>>,
}

impl Suite {
    /// A suite that works under a fresh prefix of the bucket.
    pub(crate) fn new(client: Client, anonymous: Client, bucket: String, own_buckets: bool) -> Suite {
        let prefix = format!("conformance-{:016x}/", fastrand::u64(..));
        Suite { client, anonymous, bucket, prefix, own_buckets, made: Mutex::default() }
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// What the cases cost at most, with the cleaning up.
    pub(crate) fn cost(&self, cases: &[Case]) -> Cost {
        let run = cases.iter().filter(|case| self.allows(case));
        let cases = run.fold(Cost::default(), |sum, case| sum + case.cost);
        // Uploads, objects and versions are listed, objects deleted a thousand at a time.
        let objects = cases.writes;
        cases + Cost { writes: 4 + 2 * objects.div_ceil(1_000), ..Cost::default() }
    }

    fn allows(&self, case: &Case) -> bool {
        self.own_buckets || case.need == Need::Prefix
    }

    /// Runs the cases and tells `row` of each, until all have run or the store answers no longer.
    ///
    /// # Errors
    /// The reason why the store is taken to be gone.
    pub(crate) async fn run(&self, cases: &[Case], known: &Known, mut row: impl FnMut(Row)) -> Result<(), String> {
        for (number, case) in cases.iter().enumerate() {
            let (before, started) = (self.client.metrics(), Instant::now());
            let result = if self.allows(case) { Some(self.check(number, case).await) } else { None };
            let unanswered = matches!(result, Some(Err(Finding::Unanswered(_))));
            let outcome = match result {
                Some(result) => known.judge(&case.name, result),
                None => Outcome::Skipped("needs --own-buckets".to_owned()),
            };
            let requests = Spent::between(&before, &self.client.metrics()).requests;
            row(Row { name: case.name.clone(), outcome, requests, seconds: started.elapsed().as_secs_f64() });
            if unanswered {
                self.sign_of_life().await?;
            }
        }
        Ok(())
    }

    /// Asks for the bucket. Any answer will do.
    async fn sign_of_life(&self) -> Result<(), String> {
        let asked = self.client.raw(Method::Head, &self.bucket, "").send();
        match tokio::time::timeout(SILENCE, asked).await {
            Err(_) => Err(format!("no answer within {} seconds", SILENCE.as_secs())),
            Ok(answer) => match answer.map_err(Finding::from) {
                Err(Finding::Unanswered(why)) => Err(why),
                _ => Ok(()),
            },
        }
    }

    async fn check(&self, number: usize, case: &Case) -> Result<(), Finding> {
        let own = match case.need {
            Need::Prefix => None,
            Need::Bucket => {
                let name = format!("conformance-{:016x}", fastrand::u64(..));
                self.made().push(name.clone());
                self.client.create_bucket(&name).await?;
                Some(name)
            }
        };
        let store = Store {
            client: self.client.clone(),
            anonymous: self.anonymous.clone(),
            bucket: own.clone().unwrap_or_else(|| self.bucket.clone()),
            prefix: if own.is_some() { String::new() } else { format!("{}{number:03}/", self.prefix) },
        };
        let before = self.client.metrics();
        let checked = tokio::time::timeout(LONGEST, (case.run)(&store)).await;
        let spent = Spent::between(&before, &self.client.metrics());
        let mut result = checked
            .unwrap_or_else(|_| Err(Finding::Unanswered(format!("not done after {} seconds", LONGEST.as_secs()))));
        if result.is_ok() {
            result = spent.within(&case.cost);
        }
        if let Some(name) = own {
            // What cannot be removed now is tried again, and told, at the end.
            if cleanup::bucket(&self.client, &name).await.is_ok() {
                self.made().retain(|made| *made != name);
            }
        }
        result
    }

    /// Removes everything that the suite has made and not removed yet. Returns what is left in spite of that, with the
    /// reasons.
    pub(crate) async fn clean_up(&self) -> Vec<String> {
        let mut left = Vec::new();
        // What is still under way then is removed all the same, or found in the way of that.
        let _ = self.client.settle(Duration::from_secs(5)).await;
        let made = self.made().clone();
        for name in made {
            left.extend(cleanup::bucket(&self.client, &name).await.err());
        }
        left.extend(cleanup::prefix(&self.client, &self.bucket, &self.prefix).await.err());
        left
    }

    /// Returns what may be left where nothing can be removed: the prefix, and the buckets that the suite has made.
    pub(crate) fn unremoved(&self) -> Vec<String> {
        let prefix = format!("what is in {}/{}", self.bucket, self.prefix);
        std::iter::once(prefix).chain(self.made().iter().map(|name| format!("the bucket {name}"))).collect()
    }

    fn made(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was done between two looks at the metrics. Attempts over again are the network's cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) requests: u64,
    pub(crate) up: u64,
    pub(crate) down: u64,
}

impl Spent {
    pub(crate) fn between(before: &Metrics, after: &Metrics) -> Spent {
        Spent {
            requests: (after.requests - before.requests) - (after.retries - before.retries),
            up: after.bytes_sent - before.bytes_sent,
            down: after.bytes_received - before.bytes_received,
        }
    }

    /// Fails where the declaration was less than what was done.
    fn within(self, cost: &Cost) -> Result<(), Finding> {
        if self.requests <= cost.requests() && self.up <= cost.up && self.down <= cost.down {
            return Ok(());
        }
        Err(Finding::Differs(format!(
            "it cost more than it declares: {} requests, {} bytes up and {} down; declared are {}, {} and {}",
            self.requests,
            self.up,
            self.down,
            cost.requests(),
            cost.up,
            cost.down
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_more_than_it_declares_fails() {
        let cost = Cost::new(1, 1, 0);
        let spent = |requests, up, down| Spent { requests, up, down };
        assert!(spent(3, 10, 64 << 10).within(&cost).is_ok());
        for more in [spent(4, 0, 0), spent(1, 70_000, 0), spent(1, 0, 70_000)] {
            assert!(more.within(&cost).is_err(), "{more:?}");
        }
    }
}

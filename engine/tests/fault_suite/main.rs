//! The fault suite: seeded schedules of everything that can go wrong between a client and its server, and what must
//! hold whatever does: right bytes or a clear error, no half file, no orphaned upload, bounded time, and no connection,
//! memory, permit or task left behind.
//!
//! `schedule` makes schedules from seeds and does nothing; `site` runs one: a server, a fresh client, the faults, the
//! operation (`operations`), the cleaning up, the `invariants`, a probe on the same client, and its end. A schedule is
//! repeated exactly by `WIRESPEED_SEED`, but for what the machine's own timing decides: which of several requests at
//! once comes first, and how far an operation has come when its caller drops it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // That is how a test fails.
#![allow(unreachable_pub)]

mod invariants;
mod log;
mod operations;
mod schedule;
mod site;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use schedule::{Operation, Schedule, matrix};
use site::{Report, Site};

/// Schedules of an ordinary run of the tests.
const FEW: u64 = 300;

/// How long a schedule may take in all, with its set-up, cleaning up and probe, before the process is ended: whatever
/// hangs then hangs so that no timer of its own runtime fires any more.
const HOPELESS: Duration = Duration::from_secs(180);

/// Failures after which no more schedules are begun.
const ENOUGH: usize = 20;

/// A schedule by the name that repeats it: a seed, or the number of a case of the matrix.
#[derive(Clone)]
struct Named {
    name: String,
    schedule: Schedule,
    case: bool,
    /// One of those that are run where time is short.
    is_half: bool,
}

#[test]
fn every_fault_on_every_request_of_every_operation_plain_and_over_tls() {
    let mut named: Vec<_> = matrix().into_iter().enumerate().map(|(index, schedule)| case(index, schedule)).collect();
    if schedules().is_none() {
        // Uploads in parts move megabytes: half of them over TLS, and the other half not.
        named.retain(|named| !named.schedule.operation.is_multipart() || named.is_half);
    }
    run_all("matrix", named);
}

#[test]
fn schedules_from_seeds() {
    let count = schedules().unwrap_or(FEW);
    let first = std::env::var("WIRESPEED_FIRST_SEED").map_or(1, |first| first.parse().unwrap());
    let tally = run_all("schedules", (first..first + count).map(seeded).collect());
    if let Some(path) = std::env::var_os("WIRESPEED_RECORD") {
        std::fs::write(path, tally.record(first)).unwrap();
    }
}

/// The one that `WIRESPEED_SEED` names: what a failure says to run.
#[test]
fn one() {
    let name = std::env::var("WIRESPEED_SEED").unwrap_or_else(|_| "1".to_owned());
    let named = match name.strip_prefix("case-") {
        Some(index) => {
            let index: usize = index.parse().unwrap();
            case(index, matrix().swap_remove(index))
        }
        None => seeded(name.parse().unwrap()),
    };
    println!("{}: {}", named.name, named.schedule);
    run_all("one", vec![named]);
}

#[test]
fn a_seed_is_the_same_schedule_every_time() {
    for seed in 0..1000 {
        assert_eq!(Schedule::random(seed).to_string(), Schedule::random(seed).to_string());
    }
    let met: std::collections::BTreeSet<_> = (0..1000).map(|seed| Schedule::random(seed).operation).collect();
    assert_eq!(met.len(), Operation::ALL.len(), "an operation that no seed draws");
}

/// How many schedules are asked for; as many as fit an ordinary run where it is not said.
fn schedules() -> Option<u64> {
    std::env::var("WIRESPEED_SCHEDULES").ok().map(|count| count.parse().unwrap())
}

fn seeded(seed: u64) -> Named {
    Named { name: seed.to_string(), schedule: Schedule::random(seed), case: false, is_half: true }
}

fn case(index: usize, schedule: Schedule) -> Named {
    // Cases come in pairs, plain and over TLS; every other pair takes the one, and the rest the other.
    let is_half = (index / 2 + index).is_multiple_of(2);
    Named { name: format!("case-{index}"), schedule, case: true, is_half }
}

/// What is being run by whom, and since when.
type Running = Mutex<BTreeMap<usize, (Instant, Named)>>;

fn run_all(what: &str, all: Vec<Named>) -> Tally {
    // One after the other: files are counted for the whole process.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = lock(&ALONE);
    log::listen();
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // The first runtime of a process opens what all of them share, and keep.
    drop(runtime());
    let files = invariants::open_files();
    let started = Instant::now();
    let serving = runtime();
    // Most of a schedule is waiting.
    let workers = std::thread::available_parallelism().map_or(2, usize::from).saturating_mul(4).min(all.len());
    let verbose = std::env::var_os("WIRESPEED_VERBOSE").is_some();
    let next = AtomicUsize::new(0);
    let running = Running::default();
    let tally = Mutex::new(Tally::default());
    let ended = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (all, next, running, tally, ended) = (&all, &next, &running, &tally, &ended);
            let serving = serving.handle().clone();
            scope.spawn(move || {
                let mut site = Site::new(serving).unwrap();
                while let Some(named) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    lock(running).insert(worker, (Instant::now(), named.clone()));
                    let report = site.run(&named.schedule, named.case).unwrap();
                    if all.len() == 1 || verbose {
                        println!("{} {}: {:?}", named.name, report.ending, report.errors);
                    }
                    lock(running).remove(&worker);
                    let mut tally = lock(tally);
                    tally.add(named, report);
                    if tally.failures.len() >= ENOUGH {
                        break;
                    }
                }
                ended.fetch_add(1, Ordering::Relaxed);
            });
        }
        while ended.load(Ordering::Relaxed) < workers {
            std::thread::sleep(Duration::from_millis(20));
            if let Some((since, named)) = lock(&running).values().find(|(since, _)| since.elapsed() > HOPELESS) {
                eprintln!("HANG: after {:?}, and no timer fires\n{}", since.elapsed(), failure(named, &[]));
                std::process::exit(101);
            }
        }
    });
    drop(serving);
    let closed = invariants::closed(files);
    let mut tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    tally.elapsed = started.elapsed();
    println!("{}", tally.closing(what));
    // Where something failed already, that is what there is to mend first.
    if let (Err(leaked), true) = (closed, tally.failures.is_empty()) {
        panic!("{leaked}");
    }
    let (heard, shown) = log::heard();
    assert!(heard > 0, "nothing was logged: the engine's spans are not listened to");
    assert!(shown.is_empty(), "the log shows secrets: {shown:?}");
    assert!(tally.failures.is_empty(), "{} failed:\n{}", tally.failures.len(), tally.failures.join("\n"));
    tally
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failure(named: &Named, wrong: &[String]) -> String {
    let repeat = format!("WIRESPEED_SEED={} cargo test -p wirespeed --test fault_suite -- --exact one", named.name);
    let mut text = format!("seed {}: {}\n", named.name, named.schedule);
    for wrong in wrong {
        text += &format!("    {wrong}\n");
    }
    text + &format!("    repeat it: {repeat}\n")
}

/// What came of all.
#[derive(Default)]
struct Tally {
    endings: BTreeMap<Operation, BTreeMap<&'static str, u64>>,
    schedules: u64,
    retries: u64,
    faults: u64,
    unverified: u64,
    slowest: (Duration, String),
    elapsed: Duration,
    failures: Vec<String>,
}

impl Tally {
    fn add(&mut self, named: &Named, report: Report) {
        *self.endings.entry(named.schedule.operation).or_default().entry(report.ending).or_default() += 1;
        self.schedules += 1;
        self.retries += report.retries;
        self.faults += report.faults;
        self.unverified += report.unverified as u64;
        if report.elapsed > self.slowest.0 {
            self.slowest = (report.elapsed, named.name.clone());
        }
        if !report.wrong.is_empty() {
            let failure = failure(named, &report.wrong);
            eprintln!("{failure}");
            self.failures.push(failure);
        }
    }

    /// The same for a machine.
    fn record(&self, first_seed: u64) -> String {
        let outcomes: BTreeMap<_, _> =
            self.endings.iter().map(|(operation, endings)| (format!("{operation:?}"), endings)).collect();
        let record = serde_json::json!({
            "what": "fault suite",
            "first_seed": first_seed,
            "schedules": self.schedules,
            "failed": self.failures,
            "faults_met": self.faults,
            "retries": self.retries,
            "changed_objects_handed_out_as_unverified": self.unverified,
            "seconds": self.elapsed.as_secs_f64(),
            "slowest": { "seed": self.slowest.1, "seconds": self.slowest.0.as_secs_f64() },
            "outcomes": outcomes,
        });
        format!("{record:#}\n")
    }

    /// Counts by operation and ending, for a person.
    fn closing(&self, what: &str) -> String {
        let mut text = String::new();
        for (operation, endings) in &self.endings {
            let endings: Vec<_> = endings.iter().map(|(ending, count)| format!("{ending} {count}")).collect();
            text += &format!("{:16} {}\n", format!("{operation:?}"), endings.join(", "));
        }
        let Tally { schedules, retries, faults, unverified, slowest, elapsed, failures, .. } = self;
        text + &format!(
            "fault suite, {what}: {schedules} run in {:.1} s, {} failed; {faults} faults met, {retries} retries, \
             {unverified} changed objects handed out as unverified; the slowest took {:.1} s (seed {})",
            elapsed.as_secs_f64(),
            failures.len(),
            slowest.0.as_secs_f64(),
            slowest.1,
        )
    }
}

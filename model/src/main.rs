//! The engine's shared memory under a model checker.
//!
//! Owns no code of the engine: its files are built here a second time, as they are, with the
//! checker's locks, counters and semaphore in the place of the standard library's and tokio's
//! (`crate::sync` is the seam). Shuttle was chosen over loom because it has tokio's semaphore, on
//! which admission stands; it tries every order of small cases and random orders of larger ones. What
//! it does not model is weak memory: every atomic is sequentially consistent here.
//!
//! ```text
//! cargo run [NAME]        all checks, or those with NAME in theirs; MODEL_SECONDS bounds each (20)
//! ```

mod admission_model;
mod buffer_model;
mod places_model;
mod retry_model;

#[path = "../../engine/src/buffer/mod.rs"]
#[allow(dead_code, missing_docs, unused_imports)]
mod buffer;

#[path = "../../engine/src/pace/admission.rs"]
#[allow(dead_code)]
mod admission;

#[path = "../../engine/src/pace/places.rs"]
#[allow(dead_code)]
mod places;

#[path = "../../engine/src/pace/retry.rs"]
#[allow(dead_code)]
mod retry;

/// What the engine's files know as `crate::sync`.
mod sync {
    pub(crate) use std::sync::PoisonError;

    pub(crate) use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};
}

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use shuttle::scheduler::{DfsScheduler, RandomScheduler};
use shuttle::{Config, Runner};

/// The seed of the random orders: a run can be had again.
const SEED: u64 = 3;
/// Orders that a random check tries at most.
const RANDOM_ORDERS: usize = 20_000;

/// How the orders are chosen.
#[derive(Clone, Copy)]
enum Orders {
    /// Every one there is.
    All,
    /// Random ones.
    Random,
    /// Random ones, of which one must fail: the proof that the check can.
    SomeFails,
}

/// One thing that must hold in every order.
#[derive(Clone, Copy)]
struct Check {
    name: &'static str,
    orders: Orders,
    body: fn(),
}

fn main() -> ExitCode {
    let only = std::env::args().nth(1).unwrap_or_default();
    let seconds = std::env::var("MODEL_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let checks = [buffer_model::CHECKS, admission_model::CHECKS, places_model::CHECKS, retry_model::CHECKS].concat();
    let mut failed = 0;
    for check in checks.iter().filter(|check| check.name.contains(&only)) {
        failed += u32::from(!run(check, Duration::from_secs(seconds)));
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(check: &Check, at_most: Duration) -> bool {
    let mut config = Config::new();
    config.max_time = Some(at_most);
    // That atomics are stronger here than they are is said above.
    config.silence_warnings = true;
    let started = Instant::now();
    let random = || RandomScheduler::new_from_seed(SEED, RANDOM_ORDERS);
    let ran = catch_unwind(AssertUnwindSafe(|| match check.orders {
        Orders::All => Runner::new(DfsScheduler::new(None, false), config).run(check.body),
        Orders::Random | Orders::SomeFails => Runner::new(random(), config).run(check.body),
    }));
    let took = started.elapsed();
    let holds = match (&check.orders, &ran) {
        (Orders::SomeFails, ran) => ran.is_err(),
        (_, ran) => ran.is_ok(),
    };
    let how = match (&check.orders, ran) {
        (Orders::All, Ok(orders)) if took < at_most => format!("all {orders} orders"),
        (Orders::All, Ok(orders)) => format!("{orders} orders in the time allowed"),
        (Orders::Random, Ok(orders)) => format!("{orders} random orders"),
        (Orders::SomeFails, Err(_)) => "fails, as it must".to_owned(),
        (Orders::SomeFails, Ok(orders)) => format!("holds in {orders} orders, although it must not"),
        (_, Err(_)) => "FAILED: see above".to_owned(),
    };
    println!("{} {:<66} {how}, {:.1} s", if holds { "ok    " } else { "FAILED" }, check.name, took.as_secs_f64());
    holds
}

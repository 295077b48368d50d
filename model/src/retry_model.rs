//! The retry quota, which all requests of a client share.

use shuttle::sync::Arc;
use shuttle::thread;

use crate::retry::{Retry, RetryPolicy};
use crate::{Check, Orders};

/// Retries that a full quota pays for: 500 tokens at 5 each.
const PAID_FOR: usize = 100;

pub(crate) const CHECKS: &[Check] =
    &[Check { name: "the quota pays for no more retries than it has tokens for", orders: Orders::Random, body: quota }];

fn quota() {
    let policy = Arc::new(RetryPolicy::new(u32::MAX));
    let threads = [0; 3].map(|_| {
        let policy = Arc::clone(&policy);
        thread::spawn(move || (0..50).filter(|_| policy.next(Retry::Backoff, 1).is_some()).count())
    });
    let granted: usize = threads.into_iter().map(|thread| thread.join().expect("a thread")).sum();
    assert_eq!(granted, PAID_FOR);
}

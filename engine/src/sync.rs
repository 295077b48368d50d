//! The locks and counters that a model checker can take the place of.
//!
//! Owns no code. What shares memory between threads names `crate::sync` instead of `std::sync`, so
//! that `model/`, a crate of its own, can build the same source files over a checker's locks and try
//! the orders that threads may run in.

pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, atomic};

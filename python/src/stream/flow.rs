//! What has landed of a stream and who may take it: one call at a time has a turn. What a turn has
//! taken is delivered, or has torn the stream.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;
use wirespeed::{Error, ObjectStream};

use crate::buffer::Buffer;
use crate::errors;

/// A read of no more than this takes all of it in one step, when all of it has landed.
pub(super) const AT_ONCE: usize = 16 << 20;

/// Why nothing more comes of a stream.
#[derive(Clone)]
pub(super) enum Trouble {
    Engine(Arc<Error>),
    Closed,
    /// A read was stopped that had handed on some of its bytes.
    Torn,
}

impl Trouble {
    pub(super) fn raise(&self, py: Python<'_>) -> PyErr {
        match self {
            Trouble::Engine(error) => errors::from_engine(py, error),
            Trouble::Closed => errors::config("the stream is closed; open another"),
            Trouble::Torn => errors::cancelled(
                "an earlier read of this stream was stopped after it had taken some bytes, which are lost; open \
                 another stream, with range=(tell(), None) to go on where the last complete read ended",
            ),
        }
    }
}

/// Parts that have landed, and the source of more.
pub(super) struct Flow {
    pub(super) stream: Option<ObjectStream>,
    pub(super) landed: VecDeque<wirespeed::Buffer>,
    /// Bytes that have left the flow.
    pub(super) taken: u64,
    pub(super) trouble: Option<Trouble>,
}

impl Flow {
    pub(super) fn waiting(&self) -> usize {
        self.landed.iter().map(|part| part.len()).sum()
    }

    /// Waits for one more part; `false` at the end.
    pub(super) async fn fetch(&mut self, info: &Mutex<wirespeed::ObjectInfo>) -> Result<bool, Trouble> {
        if let Some(trouble) = &self.trouble {
            return Err(trouble.clone());
        }
        let Some(stream) = &mut self.stream else { return Ok(false) };
        match stream.next().await {
            Some(Ok(part)) => self.landed.push_back(part),
            Some(Err(error)) => {
                let trouble = Trouble::Engine(Arc::new(error));
                self.trouble = Some(trouble.clone());
                self.stream = None;
                return Err(trouble);
            }
            None => {
                *info.lock().unwrap_or_else(PoisonError::into_inner) = stream.info().clone();
                self.stream = None;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Copies what has landed, as far as there is room.
    pub(super) fn copy(&mut self, mut into: &mut [u8]) -> usize {
        let room = into.len();
        while !into.is_empty()
            && let Some(part) = self.landed.pop_front()
        {
            let length = part.len().min(into.len());
            let (front, rest) = into.split_at_mut(length);
            front.copy_from_slice(&part[..length]);
            into = rest;
            if length < part.len() {
                self.landed.push_front(part.slice(length..));
            }
        }
        let copied = room - into.len();
        self.taken += copied as u64;
        copied
    }
}

/// One call's turn with the flow, and what it has taken but not yet handed over.
pub(super) struct Turn {
    pub(super) flow: OwnedMutexGuard<Flow>,
    pub(super) undelivered: usize,
}

impl Turn {
    pub(super) fn deliver(self, shared: &Shared) {
        shared.position.fetch_add(self.leave(), Ordering::Relaxed);
    }

    /// Ends the turn. The bytes that it has taken are still to be delivered: how many they are.
    pub(super) fn leave(mut self) -> u64 {
        std::mem::take(&mut self.undelivered) as u64
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.undelivered > 0 && self.flow.trouble.is_none() {
            self.flow.trouble = Some(Trouble::Torn);
        }
    }
}

pub(super) struct Shared {
    pub(super) flow: Arc<tokio::sync::Mutex<Flow>>,
    pub(super) info: Mutex<wirespeed::ObjectInfo>,
    pub(super) length: u64,
    /// Bytes that the caller has.
    pub(super) position: AtomicU64,
    /// Whether bytes that had left the flow were dropped before the caller had them.
    pub(super) torn: AtomicBool,
    pub(super) closing: CancellationToken,
}

impl Shared {
    pub(super) async fn turn(&self) -> Turn {
        self.turn_with(Arc::clone(&self.flow).lock_owned().await)
    }

    pub(super) fn turn_with(&self, mut flow: OwnedMutexGuard<Flow>) -> Turn {
        if self.torn.load(Ordering::Relaxed) && flow.trouble.is_none() {
            flow.trouble = Some(Trouble::Torn);
        }
        Turn { flow, undelivered: 0 }
    }

    /// A turn, where nobody else has one and nothing is wrong.
    pub(super) fn try_turn(&self) -> Option<Turn> {
        let flow = Arc::clone(&self.flow).try_lock_owned().ok()?;
        let turn = self.turn_with(flow);
        turn.flow.trouble.is_none().then_some(turn)
    }

    /// Waits until the next part has landed, where one is left.
    pub(super) async fn part(&self) -> Result<Turn, Trouble> {
        let mut turn = self.turn().await;
        if let Some(trouble) = &turn.flow.trouble {
            return Err(trouble.clone());
        }
        if turn.flow.landed.is_empty() {
            turn.flow.fetch(&self.info).await?;
        }
        Ok(turn)
    }

    /// Hands on the next part that has landed.
    pub(super) fn take(&self, mut turn: Turn) -> Option<Buffer> {
        let part = turn.flow.landed.pop_front()?;
        turn.flow.taken += part.len() as u64;
        turn.undelivered = part.len();
        turn.deliver(self);
        Some(Buffer::of_part(part))
    }

    pub(super) async fn fill(&self, into: &mut [u8]) -> Result<Turn, Trouble> {
        let mut turn = self.turn().await;
        if let Some(trouble) = &turn.flow.trouble {
            return Err(trouble.clone());
        }
        while turn.undelivered < into.len() {
            let rest = &mut into[turn.undelivered..];
            while turn.flow.waiting() < rest.len().min(AT_ONCE) {
                if !turn.flow.fetch(&self.info).await? {
                    break;
                }
            }
            let copied = turn.flow.copy(rest);
            if copied == 0 {
                break;
            }
            turn.undelivered += copied;
        }
        if turn.flow.taken == self.length {
            // Nobody may ask again: whether the whole is right is said here.
            turn.flow.fetch(&self.info).await?;
        }
        Ok(turn)
    }

    /// As `work` ends, unless the stream is closed before.
    pub(super) async fn unless_closed<T>(&self, work: impl Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
        tokio::select! {
            biased;
            () = self.closing.cancelled() => Err(Trouble::Closed),
            done = work => done,
        }
    }
}

/// Bytes that have left the flow for good. Dropped, they have torn the stream.
pub(super) struct Undelivered {
    pub(super) bytes: u64,
    pub(super) shared: Arc<Shared>,
}

impl Undelivered {
    pub(super) fn deliver(mut self) {
        self.shared.position.fetch_add(std::mem::take(&mut self.bytes), Ordering::Relaxed);
    }
}

impl Drop for Undelivered {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.shared.torn.store(true, Ordering::Relaxed);
        }
    }
}

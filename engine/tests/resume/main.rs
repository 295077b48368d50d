//! Transfers that are stopped anywhere and gone on with: every byte is right, and only what was missing is moved
//! again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // That is how a test fails.

mod downloads;
mod uploads;

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use wirespeed::{Client, Credentials};
use wirespeed_origin::{Origin, Running};

async fn start() -> Running {
    Origin::builder().keys("id", "secret").bucket("bucket").start().await.unwrap()
}

/// Has the server count anew, once nothing of a run that was stopped can reach it any more.
async fn count_anew(origin: &Running) {
    let settled = async {
        while origin.stats().connections_open > 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), settled).await.expect("a client that is gone left a connection open");
    origin.reset_stats();
}

/// One a run: what it counts is the run's.
fn client_of(origin: &Running, part_size: u64) -> Client {
    Client::builder()
        .endpoint_url(origin.endpoint())
        .credentials(Credentials::new("id", "secret"))
        .part_size(part_size)
        .concurrency(4)
        .build()
        .unwrap()
}

fn content(size: u64) -> Vec<u8> {
    (0..size).map(|i| (i ^ (i >> 8) ^ (i >> 16).wrapping_mul(31)) as u8).collect()
}

/// Items that are found one after the other.
struct Found<I>(I);

impl<I: Iterator + Unpin> Stream for Found<I> {
    type Item = I::Item;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<I::Item>> {
        Poll::Ready(self.0.next())
    }
}

fn found<T>(items: impl IntoIterator<Item = T>) -> Found<std::vec::IntoIter<T>> {
    Found(items.into_iter().collect::<Vec<_>>().into_iter())
}

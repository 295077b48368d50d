//! A driver of no client: every item is done at once. What is left is what driving itself costs an item, to be
//! counted (`valgrind --tool=callgrind`) and held against a client's own instructions.

use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use lab_driver::{About, Call, Client, Operation, Plan, Sink, Source};
use serde_json::{Value, json};

struct Idle(Arc<Plan>);

impl Client for Idle {
    const ABOUT: About = About {
        name: "idle",
        client: "idle",
        version: "1",
        components: &[],
        operations: &[Operation::Get, Operation::Put, Operation::List],
        sinks: &[Sink::Discard],
        sources: &[Source::Memory],
        settings: &["concurrency"],
        tls: false,
        notes: &["moves nothing"],
    };

    fn open(plan: &Arc<Plan>) -> Result<Idle> {
        Ok(Idle(Arc::clone(plan)))
    }

    fn in_flight(&self) -> usize {
        self.0.in_flight()
    }

    fn effective(&self) -> Value {
        json!({"concurrency": self.0.in_flight(), "part_size": null})
    }

    async fn get(self: &Arc<Self>, call: &mut Call<'_>) -> Result<()> {
        call.moved(call.item.length());
        Ok(())
    }

    async fn put(self: &Arc<Self>, call: &mut Call<'_>, _: Option<Bytes>) -> Result<()> {
        call.moved(call.item.size);
        Ok(())
    }

    async fn list(self: &Arc<Self>, _: &mut Call<'_>) -> Result<()> {
        Ok(())
    }
}

fn main() {
    lab_driver::answer::<Idle>();
}

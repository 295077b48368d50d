//! What every verb works with: the client that the flags describe, and the output.

use std::sync::Arc;

use wirespeed::Client;

use crate::arguments::{Command, Global};
use crate::bench::Latency;
use crate::failure::Failure;
use crate::output::Output;
use crate::trace::Requests;

/// The client and the output of one command.
pub(crate) struct Context<'a> {
    pub(crate) client: Client,
    pub(crate) output: &'a Output,
    /// What the engine's observer collects; only `bench` looks.
    pub(crate) latency: Option<Arc<Latency>>,
}

impl<'a> Context<'a> {
    /// Builds the client: flags first, then the environment, then defaults.
    pub(crate) fn new(global: &Global, command: &Command, output: &'a Output) -> Result<Context<'a>, Failure> {
        let mut builder = Client::builder();
        let concurrency = global.concurrency.map(|number| number.to_string());
        let flags = [
            ("endpoint_url", global.endpoint_url.as_deref()),
            ("region", global.region.as_deref()),
            ("concurrency", concurrency.as_deref()),
            ("part_size", global.part_size.as_deref()),
            ("memory", global.memory.as_deref()),
            ("payload_signing", global.unsigned_payload.then_some("unsigned")),
        ];
        let flags = flags.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let settings = global.set.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in flags.chain(settings) {
            builder = builder.set(name, value)?;
        }
        if global.no_sign_request {
            builder = builder.anonymous();
        }
        let latency = matches!(command, Command::Bench(_)).then(|| Arc::new(Latency::default()));
        if let Some(latency) = &latency {
            builder = builder.observer(latency.clone());
        } else if global.verbose > 1 {
            builder = builder.observer(Arc::new(Requests));
        }
        Ok(Context { client: builder.build()?, output, latency })
    }
}

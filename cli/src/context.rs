//! What every verb works with: the client that the flags describe, and the output.

use std::path::Path;
use std::sync::Arc;

use wirespeed::{Client, Config};

use crate::arguments::{Command, Global};
use crate::bench::Latency;
use crate::failure::{Failure, visible};
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
        let ca_bundle = global.ca_bundle.as_deref().map(utf8).transpose()?;
        let flags = [
            ("endpoint_url", global.endpoint_url.as_deref()),
            ("region", global.region.as_deref()),
            ("concurrency", concurrency.as_deref()),
            ("part_size", global.part_size.as_deref()),
            ("memory", global.memory.as_deref()),
            ("payload_signing", global.unsigned_payload.then_some("unsigned")),
            ("profile", global.profile.as_deref()),
            ("ca_bundle", ca_bundle),
            ("verify_tls", global.no_verify_ssl.then_some("false")),
            ("use_dualstack_endpoint", global.dualstack.then_some("true")),
            ("use_fips_endpoint", global.use_fips.then_some("true")),
        ];
        let flags = flags.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let of_the_verb: Vec<(&str, &str)> = command.settings().collect();
        let flags = flags.chain(of_the_verb);
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
        let client = builder.build()?;
        warn_of_unverified_tls(client.config(), output);
        Ok(Context { client, output, latency })
    }
}

/// Said however it was asked for, by flag or by environment: it may have been asked for long ago.
fn warn_of_unverified_tls(config: &Config, output: &Output) {
    let speaks_tls = config.endpoint_url.as_deref().is_none_or(|url| !url.starts_with("http://"));
    if !config.verify_tls && speaks_tls {
        output.note_always(
            "WARNING: certificates are NOT verified: whoever stands between here and the server can read and change \
             everything, credentials of the session included; use --ca-bundle to trust a certificate of your own",
        );
    }
}

/// Settings are text.
fn utf8(path: &Path) -> Result<&str, Failure> {
    let name = || visible(&path.to_string_lossy()).into_owned();
    path.to_str().ok_or_else(|| Failure::Usage(format!("`{}` is not UTF-8; rename the file", name())))
}

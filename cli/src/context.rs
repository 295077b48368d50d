//! What every verb works with: the client that the flags describe, and the output.

use std::env;
use std::path::Path;
use std::sync::Arc;

use wirespeed::{Client, ClientBuilder, Config};

use crate::arguments::{Command, Global};
use crate::bench::Latency;
use crate::bulk::RequestTable;
use crate::bulk::run_flags::SourceFlags;
use crate::failure::{Failure, visible};
use crate::output::Output;
use crate::trace::Requests;

/// Requests in flight of a job that keeps a resume file: what is in flight when it is killed is moved again.
const RESUMABLE: &str = "16";

/// The client and the output of one command.
pub(crate) struct Context<'a> {
    pub(crate) client: Client,
    pub(crate) output: &'a Output,
    /// What the engine's observer collects; only `bench` looks.
    pub(crate) latency: Option<Arc<Latency>>,
    /// What `--stat` prints at the end.
    pub(crate) requests: Option<Arc<RequestTable>>,
    global: &'a Global,
}

impl<'a> Context<'a> {
    /// Builds the client: flags first, then the environment, then defaults.
    pub(crate) fn new(global: &'a Global, command: &Command, output: &'a Output) -> Result<Context<'a>, Failure> {
        let mut settings = command.settings();
        if command.state().is_some() && global.concurrency.is_none() && env::var_os("WIRESPEED_CONCURRENCY").is_none() {
            settings.push(("concurrency", RESUMABLE));
        }
        let mut builder = configured(Client::builder(), global, settings)?;
        let latency = matches!(command, Command::Bench(_)).then(|| Arc::new(Latency::default()));
        let requests = command.wants_request_table().then(|| Arc::new(RequestTable::default()));
        if let Some(latency) = &latency {
            builder = builder.observer(latency.clone());
        } else if let Some(requests) = &requests {
            builder = builder.observer(requests.clone());
        } else if global.verbose > 1 {
            builder = builder.observer(Arc::new(Requests));
        }
        let client = builder.build()?;
        warn_of_unverified_tls(client.config(), output);
        Ok(Context { client, output, latency, requests, global })
    }

    /// The same client for one line of `run`, which prints by itself.
    pub(crate) fn of_line<'o>(&self, output: &'o Output) -> Context<'o>
    where
        'a: 'o,
    {
        Context { client: self.client.clone(), output, latency: None, requests: None, global: self.global }
    }

    /// A client of settings that count where the flags say nothing.
    pub(crate) fn client_from(&self, settings: ClientBuilder) -> Result<Client, Failure> {
        let mut builder = configured(settings, self.global, [])?;
        if self.global.verbose > 1 {
            builder = builder.observer(Arc::new(Requests));
        }
        Ok(builder.build()?)
    }

    /// A client for a source that is elsewhere: as the flags describe, but for what these say.
    pub(crate) fn other_client(&self, source: &SourceFlags) -> Result<Client, Failure> {
        let mut builder = configured(Client::builder(), self.global, source.settings())?;
        if let Some(requests) = &self.requests {
            builder = builder.observer(requests.clone());
        }
        Ok(builder.build()?)
    }
}

/// A client with the global flags, and further settings that win over them.
fn configured<'s>(
    mut builder: ClientBuilder,
    global: &Global,
    further: impl IntoIterator<Item = (&'static str, &'s str)>,
) -> Result<ClientBuilder, Failure> {
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
    for (name, value) in flags.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        builder = builder.set(name, value)?;
    }
    for (name, value) in further {
        builder = builder.set(name, value)?;
    }
    for (name, value) in &global.set {
        builder = builder.set(name, value)?;
    }
    if global.no_sign_request {
        builder = builder.anonymous();
    }
    Ok(builder)
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

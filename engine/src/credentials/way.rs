//! The way to AWS's services of credentials: through the proxy, and trusting the authorities, that are set
//! for S3.
//!
//! `aws-config` brings an HTTP client of its own, which knows neither `HTTPS_PROXY` nor `AWS_CA_BUNDLE`. Where
//! either is set, that client is made here instead. A service that does not prove who it is gets no secret:
//! `verify_tls` is about S3 alone.

use std::path::{Path, PathBuf};

use aws_config::provider_config::ProviderConfig;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_smithy_http_client::{Builder, Connector};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::{ChainSettings, Profile};
use crate::config::ProxyUrl;
use crate::error::{Error, ErrorKind, Result};

/// The configuration with the client to ask them with; as it was where `aws-config`'s own will do.
///
/// # Errors
/// [`ErrorKind::Config`] where the bundle or the proxy cannot be used.
pub(super) fn onto(config: ProviderConfig, settings: &ChainSettings, profile: &Profile) -> Result<ProviderConfig> {
    let bundle = settings.ca_bundle.clone().or_else(|| profile.property("ca_bundle").map(PathBuf::from));
    if bundle.is_none() && settings.https_proxy.is_none() {
        return Ok(config);
    }
    let proxy = match &settings.https_proxy {
        None => ProxyConfig::disabled(),
        Some(url) => through(url, settings.no_proxy.as_deref())?,
    };
    let context = match &bundle {
        None => TlsContext::builder().build(),
        Some(path) => TlsContext::builder().with_trust_store(trusting(path)?).build(),
    };
    let unusable = |_| Error::new(ErrorKind::Config, "no TLS could be set up for the services of credentials");
    let context = context.map_err(unusable)?;
    Ok(config.with_http_client(Builder::new().build_with_connector_fn(move |settings, components| {
        let mut connector = Connector::builder().proxy_config(proxy.clone());
        connector.set_connector_settings(settings.cloned());
        connector.set_sleep_impl(components.and_then(|components| components.sleep_impl()));
        connector.tls_provider(Provider::rustls(CryptoMode::AwsLc)).tls_context(context.clone()).build()
    })))
}

fn through(url: &ProxyUrl, exceptions: Option<&str>) -> Result<ProxyConfig> {
    // Its reason may quote the URL, and with it a password.
    let refused = |_| Error::new(ErrorKind::Config, format!("the proxy {url} cannot be used for credentials"));
    let proxy = ProxyConfig::https(url.expose()).map_err(refused)?;
    Ok(match exceptions {
        Some(rules) => proxy.no_proxy(rules),
        None => proxy,
    })
}

/// The bundle and nothing else. Checked here: the client would panic at what it cannot read.
fn trusting(path: &Path) -> Result<TrustStore> {
    let shown = path.display();
    let refused = |why: String| {
        Error::new(ErrorKind::Config, format!("the CA bundle {shown} {why}"))
            .with_hint("name a file in PEM form in AWS_CA_BUNDLE, or ca_bundle of the profile")
    };
    let content = std::fs::read(path).map_err(|error| refused(format!("cannot be read: {error}")))?;
    let found = CertificateDer::pem_slice_iter(&content)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| refused(format!("cannot be read: {error}")))?;
    if found.is_empty() {
        return Err(refused("holds no certificate".to_owned()));
    }
    let mut roots = rustls::RootCertStore::empty();
    for certificate in found {
        roots.add(certificate).map_err(|error| refused(format!("holds a bad one: {error}")))?;
    }
    Ok(TrustStore::empty().with_pem_certificate(content))
}

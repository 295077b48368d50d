//! Whom to trust, and what to offer: made once for a client, at its first connection.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::sync::OnceCell;

use crate::net::failure::NetFailure;

/// What the user says about certificates.
#[derive(Debug, Clone)]
pub(in crate::net) struct TlsSettings {
    /// A PEM file of certificates to trust instead of the system's.
    pub(in crate::net) ca_bundle: Option<PathBuf>,
    /// Whether a server must prove who it is.
    pub(in crate::net) verify: bool,
}

/// The TLS configuration of one client; reading the system's certificates takes milliseconds, which a
/// client over plain HTTP does not pay.
pub(in crate::net) struct Trust {
    settings: TlsSettings,
    /// The bundle that a profile names, which is read after the client was made.
    of_profile: OnceLock<PathBuf>,
    config: OnceCell<Arc<ClientConfig>>,
}

impl Trust {
    pub(in crate::net) fn new(settings: TlsSettings) -> Trust {
        Trust { settings, of_profile: OnceLock::new(), config: OnceCell::new() }
    }

    /// Trusts this bundle where none was named. Has no effect after the first connection.
    pub(in crate::net) fn fill_bundle(&self, path: &Path) {
        self.of_profile.get_or_init(|| path.to_owned());
    }

    pub(super) async fn config(&self) -> Result<Arc<ClientConfig>, NetFailure> {
        let made = self.config.get_or_try_init(|| async {
            let mut settings = self.settings.clone();
            settings.ca_bundle = settings.ca_bundle.or_else(|| self.of_profile.get().cloned());
            let making = tokio::task::spawn_blocking(move || configure(&settings));
            making.await.unwrap_or_else(|_| Err("the certificates were not read to the end".to_owned()))
        });
        made.await.cloned().map_err(NetFailure::Trust)
    }
}

fn configure(settings: &TlsSettings) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = if settings.verify {
        builder.with_root_certificates(roots(settings.ca_bundle.as_deref())?).with_no_client_auth()
    } else {
        tracing::warn!("certificates are NOT verified: anybody on the way can read and change everything");
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider))).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // The record layer is ours.
    config.enable_secret_extraction = true;
    Ok(Arc::new(config))
}

/// aws-lc, with the cheaper key first: AES-128 takes ten rounds where AES-256 takes fourteen, and S3
/// follows the client's order.
fn provider() -> CryptoProvider {
    use aws_lc_rs::cipher_suite as suite;
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites.sort_by_key(|offered| {
        let suite = offered.suite();
        let cheap = [
            suite::TLS13_AES_128_GCM_SHA256.suite(),
            suite::TLS13_AES_256_GCM_SHA384.suite(),
            suite::TLS13_CHACHA20_POLY1305_SHA256.suite(),
            suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256.suite(),
            suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256.suite(),
        ];
        cheap.iter().position(|known| *known == suite).unwrap_or(cheap.len())
    });
    provider
}

fn roots(bundle: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match bundle {
        Some(path) => {
            let shown = path.display();
            let certificates = CertificateDer::pem_file_iter(path)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|error| format!("the CA bundle {shown} cannot be read: {error}"))?;
            for certificate in certificates {
                roots.add(certificate).map_err(|error| format!("the CA bundle {shown} holds a bad one: {error}"))?;
            }
            if roots.is_empty() {
                return Err(format!("the CA bundle {shown} holds no certificate; it is a file in PEM form"));
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            // Some systems carry a few that are malformed: the others are as good.
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                let why = found.errors.first().map_or_else(String::new, |error| format!(": {error}"));
                return Err(format!(
                    "no certificates to trust were found on this system{why}; install them (ca-certificates), or \
                     name a PEM file in AWS_CA_BUNDLE"
                ));
            }
        }
    }
    Ok(roots)
}

/// Takes any certificate for any name. That the server holds its key is still checked.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

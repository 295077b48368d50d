//! HTTPS: certificates made at the start, or given ones, and what a client may be offered of TLS.
//!
//! Owns the one `rustls` configuration of a server and the authority that signs its generated certificate. Refuses
//! client certificates, early data and HTTP/2: the S3 clients that are measured use none of them. Tickets are on, so
//! that resumption can be seen to work; which handshakes were full is counted in [`crate::Stats`].

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};

/// What is wrong with a generated certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsFault {
    /// It is for `elsewhere.invalid`.
    WrongName,
    /// It ended in 2020.
    Expired,
    /// It is signed by itself: the authority that clients are told of does not know it.
    SelfSigned,
}

/// Which versions of TLS are spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersions {
    /// 1.3 and 1.2.
    #[default]
    Both,
    /// 1.2 and nothing else.
    Tls12,
    /// 1.3 and nothing else.
    Tls13,
}

/// How a server speaks TLS: with a certificate of its own making unless told otherwise.
///
/// A generated certificate holds for `localhost`, `127.0.0.1`, `::1`, and with [`crate::Builder::domain`] for that name
/// and every name right under it. It is signed by an authority made for this server alone: see
/// [`crate::Running::ca_pem`].
#[derive(Clone, Default)]
pub struct Tls {
    given: Option<(String, String)>,
    fault: Option<TlsFault>,
    versions: TlsVersions,
}

impl Tls {
    /// A generated certificate, TLS 1.3 and 1.2.
    pub fn generated() -> Self {
        Self::default()
    }

    /// This chain, leaf first, and its private key, both in PEM.
    pub fn given(chain: impl Into<String>, key: impl Into<String>) -> Self {
        Self { given: Some((chain.into(), key.into())), ..Self::default() }
    }

    /// Makes the generated certificate a bad one. A given one is left as it is.
    #[must_use]
    pub fn fault(mut self, fault: TlsFault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Speaks only these versions.
    #[must_use]
    pub fn versions(mut self, versions: TlsVersions) -> Self {
        self.versions = versions;
        self
    }

    /// The server's configuration, and what clients are to trust, in PEM: the authority, or the given chain.
    pub(crate) fn config(&self, domain: Option<&str>) -> io::Result<(Arc<ServerConfig>, String)> {
        let (chain, key, ca_pem) = match &self.given {
            None => generate(domain, self.fault).map_err(|error| invalid("can't make a certificate", &error))?,
            Some((chain, key)) => {
                let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain.as_bytes()).collect();
                let certificates = certificates.map_err(|error| invalid("not a certificate in PEM", &error))?;
                if certificates.is_empty() {
                    return Err(invalid("not a certificate in PEM", &"it has no BEGIN CERTIFICATE"));
                }
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
                    .map_err(|error| invalid("not a private key in PEM", &error))?;
                (certificates, key, chain.clone())
            }
        };
        let versions: &[&SupportedProtocolVersion] = match self.versions {
            TlsVersions::Both => &[&TLS13, &TLS12],
            TlsVersions::Tls12 => &[&TLS12],
            TlsVersions::Tls13 => &[&TLS13],
        };
        let explain = |error: rustls::Error| invalid("can't serve TLS with this certificate", &error);
        let mut config = ServerConfig::builder_with_provider(aws_lc_rs::default_provider().into())
            .with_protocol_versions(versions)
            .map_err(explain)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(explain)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.ticketer = aws_lc_rs::Ticketer::new().map_err(explain)?;
        Ok((Arc::new(config), ca_pem))
    }
}

/// Says nothing of the key.
impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Tls");
        shown.field("given", &self.given.is_some()).field("fault", &self.fault).field("versions", &self.versions);
        shown.finish()
    }
}

impl FromStr for TlsFault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "wrong-name" => Ok(Self::WrongName),
            "expired" => Ok(Self::Expired),
            "self-signed" => Ok(Self::SelfSigned),
            _ => Err(format!("no such fault of a certificate: {text}; there are wrong-name, expired, self-signed")),
        }
    }
}

impl FromStr for TlsVersions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "1.2,1.3" | "1.3,1.2" => Ok(Self::Both),
            "1.2" => Ok(Self::Tls12),
            "1.3" => Ok(Self::Tls13),
            _ => Err(format!("no such versions of TLS: {text}; there are 1.2, 1.3 and 1.2,1.3")),
        }
    }
}

type Generated = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>, String);

fn generate(domain: Option<&str>, fault: Option<TlsFault>) -> Result<Generated, rcgen::Error> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.distinguished_name.push(DnType::CommonName, "wirespeed-origin test authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

    let names = match (fault, domain) {
        (Some(TlsFault::WrongName), _) => vec!["elsewhere.invalid".to_owned()],
        (_, domain) => {
            let mut names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
            names.extend(domain.into_iter().flat_map(|domain| [domain.to_owned(), format!("*.{domain}")]));
            names
        }
    };
    let mut leaf = CertificateParams::new(names)?;
    leaf.distinguished_name.push(DnType::CommonName, "wirespeed-origin");
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.use_authority_key_identifier_extension = true;
    if fault == Some(TlsFault::Expired) {
        leaf.not_before = date_time_ymd(2019, 1, 1);
        leaf.not_after = date_time_ymd(2020, 1, 1);
    }
    let key = KeyPair::generate()?;
    let certificate = match fault {
        Some(TlsFault::SelfSigned) => leaf.self_signed(&key)?,
        _ => leaf.signed_by(&key, &authority)?,
    };
    let private = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    Ok((vec![certificate.der().clone()], private, authority.pem()))
}

fn invalid(what: &str, why: &dyn fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{what}: {why}"))
}

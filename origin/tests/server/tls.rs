//! HTTPS, and certificates that a client must refuse.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, HandshakeKind, ProtocolVersion, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use wirespeed_origin::{Action, Fault, Origin, Running, Schedule, Series, Tls, TlsFault, TlsVersions, synthetic_bytes};

pub(crate) fn trusting(pem: &str) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(rustls::crypto::aws_lc_rs::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

pub(crate) struct Read {
    pub(crate) body: Vec<u8>,
    kind: HandshakeKind,
    version: ProtocolVersion,
}

pub(crate) async fn read(
    server: &Running,
    config: &Arc<ClientConfig>,
    name: &str,
    path: &str,
) -> std::io::Result<Read> {
    let stream = TcpStream::connect(server.address()).await?;
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut stream = TlsConnector::from(config.clone()).connect(name, stream).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut received = Vec::new();
    stream.read_to_end(&mut received).await?;
    let cut = received.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let session = stream.get_ref().1;
    assert_eq!(session.alpn_protocol(), Some(&b"http/1.1"[..]));
    Ok(Read {
        body: received.split_off(cut + 4),
        kind: session.handshake_kind().unwrap(),
        version: session.protocol_version().unwrap(),
    })
}

async fn start(tls: Tls) -> Running {
    let builder = Origin::builder().anonymous(true).domain("s3.test");
    builder.synthetic("data", Series::one("one.bin", 3 << 20)).tls(tls).start().await.unwrap()
}

#[tokio::test]
async fn objects_come_over_tls_under_every_name_of_the_server() {
    let server = start(Tls::generated()).await;
    assert!(server.endpoint().starts_with("https://127.0.0.1:"));
    let config = trusting(server.ca_pem().unwrap());
    for name in ["localhost", "127.0.0.1", "::1", "s3.test", "data.s3.test"] {
        let answer = read(&server, &config, name, "/data/one.bin").await.unwrap();
        assert!(answer.body == synthetic_bytes(0, "one.bin", 0, 3 << 20), "{name}");
        assert_eq!(answer.version, ProtocolVersion::TLSv1_3);
    }
    assert!(server.stats().bytes_out >= 5 * (3 << 20));
}

#[tokio::test]
async fn a_session_is_taken_up_again_and_counted() {
    for (versions, version) in
        [(TlsVersions::Both, ProtocolVersion::TLSv1_3), (TlsVersions::Tls12, ProtocolVersion::TLSv1_2)]
    {
        let server = start(Tls::generated().versions(versions)).await;
        let config = trusting(server.ca_pem().unwrap());
        let kinds = [
            read(&server, &config, "localhost", "/data/one.bin").await.unwrap(),
            read(&server, &config, "localhost", "/data/one.bin").await.unwrap(),
        ];
        assert_eq!(
            kinds.map(|answer| (answer.kind, answer.version)),
            [(HandshakeKind::Full, version), (HandshakeKind::Resumed, version)]
        );
        let stats = server.stats();
        assert_eq!((stats.tls_handshakes_full, stats.tls_handshakes_resumed), (1, 1));
        server.reset_stats();
        assert_eq!(server.stats().tls_handshakes_resumed, 0);
    }
}

#[tokio::test]
async fn bad_certificates_are_bad_in_the_way_that_was_asked() {
    let cases = [
        (TlsFault::WrongName, "not valid for name"),
        (TlsFault::Expired, "expired"),
        (TlsFault::SelfSigned, "UnknownIssuer"),
    ];
    for (fault, explanation) in cases {
        let server = start(Tls::generated().fault(fault)).await;
        let config = trusting(server.ca_pem().unwrap());
        let Err(error) = read(&server, &config, "localhost", "/data/one.bin").await else {
            panic!("{fault:?} was taken")
        };
        assert!(error.to_string().contains(explanation), "{fault:?}: {error}");
        // The client's alert may still be on its way.
        for _ in 0..100 {
            if server.stats().tls_handshakes_failed == 1 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert_eq!(server.stats().tls_handshakes_failed, 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_given_certificate_is_served_and_nonsense_is_refused() {
    let made = rcgen::generate_simple_self_signed(["given.test".to_owned()]).unwrap();
    let tls = Tls::given(made.cert.pem(), made.signing_key.serialize_pem());
    assert!(!format!("{tls:?}").contains("PRIVATE"));
    let server = start(tls).await;
    let config = trusting(server.ca_pem().unwrap());
    assert_eq!(read(&server, &config, "given.test", "/data/one.bin").await.unwrap().body.len(), 3 << 20);
    for tls in [Tls::given("nonsense", "nonsense"), Tls::given(made.cert.pem(), "nonsense")] {
        let error = Origin::builder().tls(tls).start().await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
}

#[tokio::test]
async fn faults_meet_https_as_they_meet_http() {
    let server = start(Tls::generated()).await;
    let config = trusting(server.ca_pem().unwrap());
    let whole = async || read(&server, &config, "localhost", "/data/one.bin").await;
    let reset = Fault::new(Action::ResetAfter(100_000));
    server.set_faults(Schedule::new(1).fault(reset));
    assert_eq!(whole().await.err().unwrap().kind(), std::io::ErrorKind::ConnectionReset);
    server.set_faults(Schedule::new(1).fault(Fault::new(Action::CloseAfter(100_000))));
    // A close without TLS's own goodbye.
    assert_eq!(whole().await.err().unwrap().kind(), std::io::ErrorKind::UnexpectedEof);
    server.set_faults(Schedule::new(1).fault(Fault::new(Action::Corrupt(3))));
    let corrupt = whole().await.unwrap().body;
    let differing = corrupt.iter().zip(&synthetic_bytes(0, "one.bin", 0, 3 << 20)).filter(|(a, b)| a != b).count();
    assert_eq!((corrupt.len(), differing), (3 << 20, 3));
    server.clear_faults();
    assert_eq!(whole().await.unwrap().body.len(), 3 << 20);
}

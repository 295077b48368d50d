//! A server that sends its answers in records of a given size, with new keys between them where a test
//! says so: what rustls allows, and honest servers seldom do.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection};
use wirespeed::{Client, Credentials};

/// What the server does after the head, one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Say {
    /// The next so many bytes of the body.
    Content(usize),
    /// New keys for what it sends, and a demand for new ones from the client.
    NewKeys,
    /// Lets what was said arrive by itself.
    Pause,
    /// Says that nothing more comes, and closes.
    Farewell,
    /// Closes without a word.
    Cut,
}

pub(crate) struct Server {
    endpoint: String,
}

impl Server {
    /// Answers every request with this head and body, said in this way.
    pub(crate) fn start(tls12: bool, fragment: usize, head: Vec<u8>, body: Vec<u8>, says: Vec<Say>) -> Server {
        let version = if tls12 { &rustls::version::TLS12 } else { &rustls::version::TLS13 };
        let mut config = self_signed(version);
        config.max_fragment_size = Some(fragment);
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("https://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let (config, head, body, says) = (Arc::clone(&config), head.clone(), body.clone(), says.clone());
                std::thread::spawn(move || serve(stream, config, &head, &body, &says));
            }
        });
        Server { endpoint }
    }

    /// A client that asks it for everything in one request.
    pub(crate) fn client(&self) -> Client {
        Client::builder()
            .endpoint_url(&self.endpoint)
            .credentials(Credentials::new("id", "secret"))
            .verify_tls(false)
            .part_size(64 << 20)
            .set("max_attempts", "1")
            .unwrap()
            .build()
            .unwrap()
    }
}

fn self_signed(version: &'static rustls::SupportedProtocolVersion) -> ServerConfig {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap()
}

/// A server that nobody trusts: its endpoint, and what it hears from its one client.
pub(crate) fn refused() -> (String, impl FnOnce() -> String + Send) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("https://{}", listener.local_addr().unwrap());
    let serve = move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut session = ServerConnection::new(Arc::new(self_signed(&rustls::version::TLS13))).unwrap();
        let heard = rustls::Stream::new(&mut session, &mut stream).read(&mut [0; 16]);
        format!("{heard:?}")
    };
    (endpoint, serve)
}

/// Ends when the client hangs up.
fn serve(mut stream: TcpStream, config: Arc<ServerConfig>, head: &[u8], body: &[u8], says: &[Say]) {
    stream.set_nodelay(true).unwrap();
    let mut session = ServerConnection::new(config).unwrap();
    loop {
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            let mut more = [0; 4096];
            match rustls::Stream::new(&mut session, &mut stream).read(&mut more) {
                Ok(0) | Err(_) => return,
                Ok(count) => asked.extend_from_slice(&more[..count]),
            }
        }
        let mut rest = body;
        let mut connection = rustls::Stream::new(&mut session, &mut stream);
        if connection.write_all(head).is_err() {
            return;
        }
        for say in says {
            let said = match *say {
                Say::Content(count) => {
                    let (now, later) = rest.split_at(count);
                    rest = later;
                    connection.write_all(now).and_then(|()| connection.flush())
                }
                Say::NewKeys => {
                    connection.conn.refresh_traffic_keys().unwrap();
                    connection.flush()
                }
                Say::Pause => {
                    let flushed = connection.flush();
                    std::thread::sleep(Duration::from_millis(3));
                    flushed
                }
                Say::Farewell => {
                    connection.conn.send_close_notify();
                    let _ = connection.flush();
                    return;
                }
                Say::Cut => return,
            };
            if said.is_err() {
                return;
            }
        }
    }
}

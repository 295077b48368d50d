//! The way through a proxy: a tunnel by CONNECT, in which TLS is made with the server itself.
//!
//! Which names go which way is said by `HTTPS_PROXY` and `NO_PROXY`, read as curl reads them. Only
//! TLS is tunnelled: plain HTTP goes straight. What the proxy is told is the server's name and port;
//! what it answers is an HTTP head, after which the connection is the server's.

use http::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::endpoint::Authority;
use super::failure::NetFailure;

/// An answer to CONNECT is some hundred bytes.
const MOST_ANSWER: usize = 16 << 10;

pub(super) struct Proxies(Matcher);

/// A proxy to go through.
pub(super) struct Proxy {
    pub(super) authority: Authority,
    /// The value of `Proxy-Authorization`: a secret.
    authorization: Option<http::HeaderValue>,
}

impl Proxies {
    /// `https` is a URL that the configuration has checked; `exceptions` is a list as `NO_PROXY` has it.
    pub(super) fn new(https: Option<&str>, exceptions: Option<&str>) -> Proxies {
        Proxies(Matcher::builder().https(https.unwrap_or_default()).no(exceptions.unwrap_or_default()).build())
    }

    /// The proxy that leads to the server, where one does.
    pub(super) fn to(&self, server: &Authority) -> Option<Proxy> {
        if !server.secure {
            return None;
        }
        let uri: Uri = format!("https://{server}/").parse().ok()?;
        let found: Intercept = self.0.intercept(&uri)?;
        let host = found.uri().host()?.trim_start_matches('[').trim_end_matches(']').to_owned();
        let authority = Authority { host, port: found.uri().port_u16().unwrap_or(80), secure: false };
        Some(Proxy { authority, authorization: found.basic_auth().cloned() })
    }
}

impl Proxy {
    /// Asks for the tunnel. The caller bounds its time.
    pub(super) async fn tunnel(&self, server: &Authority, stream: &mut TcpStream) -> Result<(), NetFailure> {
        const DURING: &str = "asking the proxy for a tunnel";
        let said = |why: String, may_pass| NetFailure::Proxy { proxy: self.authority.to_string(), why, may_pass };
        let refused = |why: String| said(why, false);
        let mut request = format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n").into_bytes();
        if let Some(authorization) = &self.authorization {
            request.extend_from_slice(b"Proxy-Authorization: ");
            request.extend_from_slice(authorization.as_bytes());
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"\r\n");
        stream.write_all(&request).await.map_err(|error| NetFailure::broken(DURING, error))?;
        let mut answer = Vec::with_capacity(1024);
        loop {
            let mut headers = [httparse::EMPTY_HEADER; 64];
            let mut head = httparse::Response::new(&mut headers);
            match head.parse(&answer) {
                Ok(httparse::Status::Complete(length)) => {
                    let status = head.code.unwrap_or_default();
                    return match status {
                        200..300 if length == answer.len() => Ok(()),
                        200..300 => Err(refused("it speaks before it is spoken to".to_owned())),
                        407 => Err(refused("it wants a user name and password (HTTP 407)".to_owned())),
                        500.. => Err(said(format!("it could not make the tunnel (HTTP {status})"), true)),
                        _ => Err(refused(format!("it refused the tunnel (HTTP {status})"))),
                    };
                }
                Ok(httparse::Status::Partial) if answer.len() < MOST_ANSWER => {}
                Ok(httparse::Status::Partial) | Err(_) => return Err(refused("its answer is not HTTP".to_owned())),
            }
            let received = stream.read_buf(&mut answer).await.map_err(|error| NetFailure::broken(DURING, error))?;
            if received == 0 {
                return Err(said("it closed the connection instead of answering".to_owned(), true));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(exceptions: &str, host: &str, secure: bool) -> Option<String> {
        let proxies = Proxies::new(Some("http://user:hidden@proxy:3128"), Some(exceptions));
        let server = Authority { host: host.to_owned(), port: 443, secure };
        proxies.to(&server).map(|proxy| proxy.authority.to_string())
    }

    #[test]
    fn exceptions_and_plain_http_go_straight() {
        let through = Some("proxy:3128".to_owned());
        assert_eq!(way("", "bucket.s3.amazonaws.com", true), through);
        assert_eq!(way("", "bucket.s3.amazonaws.com", false), None);
        assert_eq!(way("example.com,.amazonaws.com", "bucket.s3.amazonaws.com", true), None);
        assert_eq!(way("example.com", "notexample.com", true), through);
        assert_eq!(way("10.0.0.0/8,::1", "10.1.2.3", true), None);
        assert_eq!(way("10.0.0.0/8,::1", "::1", true), None);
        assert_eq!(way("*", "anything", true), None);
        assert!(Proxies::new(None, None).to(&Authority { host: "h".into(), port: 443, secure: true }).is_none());
    }
}

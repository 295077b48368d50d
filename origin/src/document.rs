//! The XML documents that requests carry: read by one parser, and checked against what was promised of them.
//!
//! `s3s` skips CDATA sections, so that `<![CDATA[a]]>b` would name the key `b`, and refuses character references
//! between U+10000 and U+FFFFF. Its route hands such a request over here once the signature is verified and before the
//! document is parsed. The document is read with quick-xml, written again with plain text in the place of references,
//! CDATA and comments, and passed on to a second service that holds the operations.

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, Request, Uri};
use percent_encoding::percent_decode_str;
use quick_xml::Reader;
use quick_xml::escape::{partial_escape, resolve_predefined_entity};
use quick_xml::events::Event;
use s3s::crypto::{Checksum as _, Md5};
use s3s::route::S3Route;
use s3s::service::S3Service;
use s3s::{Body, S3Error, S3ErrorCode, S3Request, S3Response, S3Result, StdError, s3_error};

use crate::protocol::{broken_body, checksums, decode_md5};
use crate::store::intake::Checksummer;
use crate::verb::Verb;

/// The largest document, in bytes: a DeleteObjects of 1,000 keys in character references has 5 MiB at most.
pub(crate) const LARGEST: usize = 8 << 20;

/// The mark of a request that carries a document, or may.
#[derive(Clone, Copy)]
pub(crate) struct Carried;

/// The access key of a request whose signature was verified before its document was read.
#[derive(Clone)]
pub(crate) struct Verified(pub(crate) String);

/// The route that requests with documents take.
pub(crate) struct Documents {
    /// The operations. No signature is verified there: [`Verified`] takes its place.
    pub(crate) operations: S3Service,
}

/// Returns whether a request's body is a document: neither an object's bytes nor a form with them.
pub(crate) fn is_carried(method: &Method, verb: Verb, headers: &HeaderMap) -> bool {
    let upload =
        matches!(verb, Verb::Put | Verb::UploadPart | Verb::Copy | Verb::UploadPartCopy | Verb::CreateMultipart);
    let form = headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"multipart/form-data"));
    matches!(*method, Method::PUT | Method::POST) && !upload && !form
}

#[async_trait::async_trait]
impl S3Route for Documents {
    fn is_match(&self, _: &Method, _: &Uri, _: &HeaderMap, extensions: &mut http::Extensions) -> bool {
        extensions.get::<Carried>().is_some()
    }

    /// Lets everything pass: the operations ask the same of a request with a document as of any other.
    async fn check_access(&self, _: &mut S3Request<Body>) -> S3Result<()> {
        Ok(())
    }

    async fn call(&self, mut request: S3Request<Body>) -> S3Result<S3Response<Body>> {
        let document = received(&mut request).await?;
        let document = plain(&document).map_err(|error| s3_error!(MalformedXML, "{error}"))?;
        let mut inner = Request::new(Body::empty());
        *inner.method_mut() = request.method;
        *inner.uri_mut() = without_signature(request.uri)?;
        *inner.headers_mut() = request.headers;
        inner.headers_mut().remove(AUTHORIZATION);
        inner.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(document.len()));
        *inner.body_mut() = Body::from(document);
        if let Some(credentials) = request.credentials {
            inner.extensions_mut().insert(Verified(credentials.access_key));
        }
        let failed = |error| S3Error::with_source(S3ErrorCode::InternalError, StdError::from(error));
        let answer = self.operations.call(inner).await.map_err(failed)?;
        let (head, body) = answer.into_parts();
        let mut response = S3Response::new(body);
        (response.status, response.headers, response.extensions) = (Some(head.status), head.headers, head.extensions);
        Ok(response)
    }
}

/// Returns the whole document, which is what its sender promised.
async fn received(request: &mut S3Request<Body>) -> S3Result<Bytes> {
    if http_body::Body::is_end_stream(&request.input) {
        return Ok(Bytes::new());
    }
    let length = request.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let length = length.ok_or_else(|| s3_error!(MissingContentLength, "A document needs a Content-Length"))?;
    if length > LARGEST as u64 {
        return Err(s3_error!(MaxMessageLengthExceeded, "Your request was too large: at most {LARGEST} bytes"));
    }
    let document = request.input.store_all_limited(LARGEST).await.map_err(broken_body)?;
    if document.len() as u64 != length {
        return Err(s3_error!(IncompleteBody, "The body has {} bytes of {length}", document.len()));
    }
    if let Some(promised) = request.headers.get("content-md5") {
        let promised = decode_md5(promised.to_str().unwrap_or_default())?;
        let mut md5 = Md5::new();
        md5.update(&document);
        if md5.finalize() != promised {
            return Err(s3_error!(BadDigest, "The Content-MD5 you specified did not match what we received"));
        }
    }
    // With an upload's id it is the checksum of the object.
    let of_object = request.uri.query().is_some_and(|query| query.split('&').any(|pair| pair.starts_with("uploadId=")));
    let trailing = checksums::trailing(request.trailing_headers.take());
    if let Some(promised) = trailing.or_else(|| checksums::named_in(&request.headers)).filter(|_| !of_object) {
        let mut computed = Checksummer::new(promised.algorithm);
        computed.update(&document);
        if computed.finish() != promised {
            return Err(s3_error!(
                BadDigest,
                "The {:?} you specified did not match the calculated checksum",
                promised.algorithm
            ));
        }
    }
    Ok(document)
}

/// Returns the URI without the signature of a presigned request, which holds no longer and is verified.
fn without_signature(uri: Uri) -> S3Result<Uri> {
    let Some(query) = uri.query() else { return Ok(uri) };
    let signature = |pair: &&str| {
        let name = percent_decode_str(pair.split('=').next().unwrap_or(pair)).decode_utf8_lossy();
        !matches!(&*name, "X-Amz-Signature" | "Signature")
    };
    let kept: Vec<_> = query.split('&').filter(signature).collect();
    let target = format!("{}?{}", uri.path(), kept.join("&"));
    target.parse().map_err(|_| s3_error!(InvalidURI, "The query cannot be read"))
}

/// Returns the same document with nothing but elements and plain text in it.
///
/// # Errors
/// A document that XML 1.0 does not allow, a document type, and an encoding other than UTF-8.
pub(crate) fn plain(document: &[u8]) -> Result<Vec<u8>, String> {
    let text = std::str::from_utf8(document).map_err(|_| "the document is not UTF-8".to_owned())?;
    let mut reader = Reader::from_str(text);
    let mut out = String::with_capacity(text.len());
    loop {
        match reader.read_event().map_err(|error| error.to_string())? {
            Event::Start(start) => write_tag(&mut out, "<", &start, ">"),
            Event::Empty(start) => write_tag(&mut out, "<", &start, "/>"),
            Event::End(end) => write_tag(&mut out, "</", &end, ">"),
            Event::Text(text) => write_text(&mut out, &text.xml10_content())?,
            Event::CData(text) => write_text(&mut out, &text.xml10_content())?,
            Event::GeneralRef(reference) => match reference.resolve_char_ref().map_err(|error| error.to_string())? {
                Some(character) => write_text(&mut out, character.encode_utf8(&mut [0; 4]))?,
                None => match resolve_predefined_entity(&reference) {
                    Some(text) => write_text(&mut out, text)?,
                    None => return Err(format!("the document has no entity {:?}", &*reference)),
                },
            },
            Event::Decl(declaration) => {
                let encoding = declaration.encoding().transpose().map_err(|error| error.to_string())?;
                if encoding.as_ref().is_some_and(|encoding| !encoding.eq_ignore_ascii_case("utf-8")) {
                    return Err("the document declares an encoding other than UTF-8".to_owned());
                }
            }
            Event::DocType(_) => return Err("the document has a document type".to_owned()),
            Event::Comment(_) | Event::PI(_) => {}
            Event::Eof => return Ok(out.into_bytes()),
        }
    }
}

fn write_tag(out: &mut String, open: &str, content: &str, close: &str) {
    out.push_str(open);
    out.push_str(content);
    out.push_str(close);
}

fn write_text(out: &mut String, text: &str) -> Result<(), String> {
    let allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{fffd}' | '\u{10000}'..);
    if let Some(character) = text.chars().find(|character| !allowed(*character)) {
        return Err(format!("XML has no character U+{:04X}", u32::from(character)));
    }
    out.push_str(&partial_escape(text));
    Ok(())
}

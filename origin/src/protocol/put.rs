//! PutObject, and receiving the body of any upload.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, StatusCode};
use s3s::dto::{ChecksumType, PutObjectInput, PutObjectOutput, StreamingBlob};
use s3s::{S3Error, S3Request, S3Response, S3Result, TrailingHeaders, s3_error};

use super::encryption::show_encryption;
use super::reply::{error_called, etag, head_of, internal, refused};
use super::{Protocol, checksums, conditions, writable};
use crate::linger::Paused;
use crate::refusal::LARGEST_UPLOAD;
use crate::store::bucket::{Condition, Stored};
use crate::store::directory::drop_files;
use crate::store::intake::{Intake, Received};
use crate::store::object::{Algorithm, Checksum, Head, Object, now};

/// The body of an upload and what was promised of it.
pub(super) struct Upload {
    pub(super) body: Option<StreamingBlob>,
    pub(super) length: Option<i64>,
    pub(super) md5: Option<String>,
    pub(super) checksum: Option<Checksum>,
    /// The algorithm of the checksum that is to be computed where none is given.
    pub(super) algorithm: Option<Algorithm>,
    pub(super) trailers: Option<TrailingHeaders>,
}

impl Protocol {
    pub(super) async fn put_object(
        &self,
        mut request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let input = &mut request.input;
        let bucket = self.bucket(&input.bucket)?;
        let stored = writable(&bucket)?;
        let condition = conditions::of_write(input.if_match.take(), input.if_none_match.take())?;
        let upload = Upload {
            body: input.body.take(),
            length: input.content_length,
            md5: input.content_md5.take(),
            checksum: checksums::given!(input),
            algorithm: None,
            trailers: request.trailing_headers.take(),
        };
        let head = head_of!(input);
        let received = self.receive(stored, upload, &request.headers, request.credentials.is_some()).await?;
        let object = Object {
            head,
            size: received.size,
            etag: received.etag,
            modified: now(),
            checksum: received.checksum,
            part_sizes: Vec::new(),
            version: None,
            content: received.content,
        };
        let content = object.content.clone();
        let object = stored.insert(&request.input.key, object, &condition).map_err(|refusal| {
            drop_files(&content);
            refused(refusal)
        })?;
        let mut output = PutObjectOutput { e_tag: Some(etag(&object.etag)), ..Default::default() };
        checksums::show!(output, object.checksum.as_ref());
        output.checksum_type = object.checksum.as_ref().map(|_| ChecksumType::from_static(ChecksumType::FULL_OBJECT));
        output.version_id = object.version.clone();
        show_encryption!(output, &object.head.encryption);
        Ok(S3Response::new(output))
    }

    /// Puts bytes under a key that has an object, for a fault: with the object's own head, under no condition.
    pub(crate) async fn overwrite(&self, bucket: &str, key: &str, bytes: Bytes) -> io::Result<()> {
        let gone = || io::Error::other("a fault can't replace an object that is not there");
        let object = self.store.bucket(bucket).and_then(|bucket| bucket.find(key)).ok_or_else(gone)?;
        self.place(bucket, key, object.head.clone(), bytes).await
    }

    /// Puts bytes under a key.
    pub(crate) async fn store_bytes(&self, bucket: &str, key: &str, bytes: Bytes) -> io::Result<()> {
        self.place(bucket, key, Head::default(), bytes).await
    }

    async fn place(&self, bucket: &str, key: &str, head: Head, bytes: Bytes) -> io::Result<()> {
        let closed = || io::Error::other("there is no such bucket, or it can't be written to");
        let bucket = self.store.bucket(bucket).ok_or_else(closed)?;
        let stored = writable(&bucket).map_err(|_| closed())?;
        let algorithm = self.default_checksum.then_some(Algorithm::Crc64Nvme);
        let mut intake = Intake::open(&stored.shelf, self.etag, false, algorithm)?;
        intake.push(bytes).await?;
        let received = intake.finish().await?;
        let object = Object {
            head,
            size: received.size,
            etag: received.etag,
            modified: now(),
            checksum: received.checksum,
            part_sizes: Vec::new(),
            version: None,
            content: received.content,
        };
        stored.insert(key, object, &Condition::None).map(drop).map_err(|_| closed())
    }

    /// Takes in a body, checking whatever was promised of it: length, MD5, checksum.
    pub(super) async fn receive(
        &self,
        stored: &Stored,
        upload: Upload,
        headers: &HeaderMap,
        signed: bool,
    ) -> S3Result<Received> {
        refuse_unsigned_framing(headers, signed)?;
        let md5 = upload.md5.as_deref().map(decode_md5).transpose()?;
        let algorithm = upload.checksum.as_ref().map(|checksum| checksum.algorithm);
        let promised = algorithm.or_else(|| checksums::announced(headers));
        let algorithm = promised.or(upload.algorithm).or(self.default_checksum.then_some(Algorithm::Crc64Nvme));
        let mut intake = Intake::open(&stored.shelf, self.etag, md5.is_some(), algorithm).map_err(internal)?;
        let most = upload.length.and_then(|length| u64::try_from(length).ok()).unwrap_or(LARGEST_UPLOAD);
        if let Some(mut body) = upload.body {
            while let Some(frame) = body.next().await {
                intake.push(frame.map_err(broken_body)?).await.map_err(internal)?;
                if intake.size() > most {
                    return Err(s3_error!(EntityTooLarge, "Your proposed upload exceeds the maximum allowed size"));
                }
            }
        }
        if upload.length.is_some_and(|length| length != intake.size() as i64) {
            return Err(s3_error!(
                IncompleteBody,
                "You did not provide the number of bytes specified by the Content-Length HTTP header"
            ));
        }
        let received = intake.finish().await.map_err(internal)?;
        let given = checksums::trailing(upload.trailers).or(upload.checksum);
        let kept = verify(&received, md5, promised.is_some(), given);
        if kept.is_err() {
            drop_files(&received.content);
        }
        kept.map(|()| received)
    }
}

/// Compares what was received with what was `given` of it; it must have been given where it was `promised`.
fn verify(received: &Received, md5: Option<[u8; 16]>, promised: bool, given: Option<Checksum>) -> S3Result<()> {
    if md5.is_some() && md5 != received.md5 {
        return Err(s3_error!(BadDigest, "The Content-MD5 you specified did not match what we received"));
    }
    match (&received.checksum, given) {
        (Some(computed), Some(given)) if *computed != given => Err(s3_error!(
            BadDigest,
            "The {:?} you specified did not match the calculated checksum",
            computed.algorithm
        )),
        (Some(computed), None) if promised => {
            let message = format!("A {:?} trailer was announced and did not come", computed.algorithm);
            Err(error_called("MalformedTrailerError", StatusCode::BAD_REQUEST, message))
        }
        _ => Ok(()),
    }
}

/// A body in aws-chunked framing is only taken apart when the request is signed: unsigned, its framing would be
/// kept as if it were content.
fn refuse_unsigned_framing(headers: &HeaderMap, signed: bool) -> S3Result<()> {
    let framed = headers.get("x-amz-content-sha256").is_some_and(|value| value.as_bytes().starts_with(b"STREAMING-"));
    if framed && !signed {
        return Err(s3_error!(NotImplemented, "An anonymous request can't have an aws-chunked body here"));
    }
    Ok(())
}

/// The digest that a Content-MD5 promises.
pub(crate) fn decode_md5(value: &str) -> S3Result<[u8; 16]> {
    let decoded = STANDARD.decode(value).ok().and_then(|bytes| bytes.try_into().ok());
    decoded.ok_or_else(|| s3_error!(InvalidDigest, "The Content-MD5 you specified is not valid."))
}

/// Names what the body did: `s3s` says so in the error's text alone.
pub(crate) fn broken_body(error: s3s::StdError) -> S3Error {
    let causes = std::iter::successors(Some(&*error as &dyn std::error::Error), |error| error.source());
    if causes.into_iter().any(|cause| cause.is::<Paused>()) {
        let message = "Your socket connection to the server was not read from or written to within the timeout period.";
        return error_called("RequestTimeout", StatusCode::BAD_REQUEST, message);
    }
    let text = error.to_string();
    let code = if text.contains("Sha256") || text.contains("InvalidChecksum") {
        "XAmzContentSHA256Mismatch"
    } else if text.contains("Signature") {
        "SignatureDoesNotMatch"
    } else {
        "IncompleteBody"
    };
    error_called(code, StatusCode::BAD_REQUEST, format!("The request body could not be taken in: {text}"))
}

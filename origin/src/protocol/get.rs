//! GetObject and HeadObject.

use std::io;
use std::ops::Range;

use http::StatusCode;
use http::header::CONTENT_RANGE;
use s3s::dto::{
    ChecksumMode, ChecksumType, GetObjectInput, GetObjectOutput, HeadObjectInput, HeadObjectOutput,
    Range as RangeHeader, StreamingBlob,
};
use s3s::stream::{ByteStream, RemainingLength};
use s3s::{S3ErrorCode, S3Request, S3Response, S3Result, s3_error};

use super::reply::{describe, error_called, error_with_headers, internal};
use super::{Protocol, checksums, conditions, encryption};
use crate::store::content::{Content, Reader};
use crate::store::intake::encode_crc;
use crate::store::object::{Algorithm, Checksum, Object};
use crate::store::synthetic;

/// Marks a request whose range a fault ignores.
#[derive(Clone, Copy)]
pub(crate) struct RangeIgnored;

impl Protocol {
    pub(super) async fn get_object(&self, request: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        let mut input = request.input;
        if request.extensions.get::<RangeIgnored>().is_some() {
            input.range = None;
        }
        let customer = encryption::customer!(input)?;
        // A file can be replaced between finding the object and opening it: then the new one is the answer.
        for _ in 0..3 {
            let object = self.find(&input.bucket, &input.key, input.version_id.as_deref())?;
            encryption::unlock(object.head.encryption.as_ref(), customer.clone())?;
            let conditions = conditions::Read {
                if_match: input.if_match.clone(),
                if_none_match: input.if_none_match.clone(),
                if_modified_since: input.if_modified_since.clone(),
                if_unmodified_since: input.if_unmodified_since.clone(),
            };
            conditions.check(&object)?;
            let wanted = Wanted::of(&object, input.range, input.part_number)?;
            let reader = match object.content.read(wanted.bytes.clone()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                reader => reader.map_err(internal)?,
            };
            let mut output = describe!(GetObjectOutput, &object);
            output.content_length = Some(reader.remaining() as i64);
            output.content_range = wanted.header(&object);
            output.parts_count = wanted.parts;
            output.body = Some(StreamingBlob::new(Outgoing(reader)));
            if wants_checksum(input.checksum_mode.as_ref()) && self.shows_checksum(&wanted, &object) {
                let checksum = checksum_of(&object);
                checksums::show!(output, checksum.as_ref());
                output.checksum_type = checksum.as_ref().map(checksum_type);
            }
            output.tag_count = tag_count(&object);
            output.cache_control = input.response_cache_control.or(output.cache_control);
            output.content_disposition = input.response_content_disposition.or(output.content_disposition);
            output.content_encoding = input.response_content_encoding.or(output.content_encoding);
            output.content_language = input.response_content_language.or(output.content_language);
            output.content_type = input.response_content_type.or(output.content_type);
            return Ok(S3Response::new(output));
        }
        Err(s3_error!(InternalError, "The object was replaced again and again while it was opened"))
    }

    pub(super) async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let mut input = request.input;
        let object = self.find(&input.bucket, &input.key, input.version_id.as_deref())?;
        encryption::unlock(object.head.encryption.as_ref(), encryption::customer!(input)?)?;
        let conditions = conditions::Read {
            if_match: input.if_match,
            if_none_match: input.if_none_match,
            if_modified_since: input.if_modified_since,
            if_unmodified_since: input.if_unmodified_since,
        };
        conditions.check(&object)?;
        let wanted = Wanted::of(&object, input.range, input.part_number)?;
        let mut output = describe!(HeadObjectOutput, &object);
        output.content_length = Some((wanted.bytes.end - wanted.bytes.start) as i64);
        output.content_range = wanted.header(&object);
        output.parts_count = wanted.parts;
        if wants_checksum(input.checksum_mode.as_ref()) && self.shows_checksum(&wanted, &object) {
            let checksum = checksum_of(&object);
            checksums::show!(output, checksum.as_ref());
            output.checksum_type = checksum.as_ref().map(checksum_type);
        }
        let mut response = S3Response::new(output);
        if let Some(count) = tag_count(&object) {
            response.headers.insert("x-amz-tagging-count", count.into());
        }
        Ok(response)
    }
}

impl Protocol {
    fn shows_checksum(&self, wanted: &Wanted, object: &Object) -> bool {
        !wanted.partial || (self.checksum_on_covering_range && wanted.bytes == (0..object.size))
    }
}

/// Which bytes of an object a request asked for.
struct Wanted {
    bytes: Range<u64>,
    partial: bool,
    /// Of how many parts, where one was asked for by its number.
    parts: Option<i32>,
}

impl Wanted {
    fn of(object: &Object, range: Option<RangeHeader>, part: Option<i32>) -> S3Result<Self> {
        match (range, part) {
            (Some(_), Some(_)) => Err(s3_error!(InvalidRequest, "Range and partNumber can't both be asked for")),
            (None, None) => Ok(Self { bytes: 0..object.size, partial: false, parts: None }),
            (Some(range), None) => {
                let bytes = range.check(object.size).ok().filter(|bytes| !bytes.is_empty());
                Ok(Self { bytes: bytes.ok_or_else(|| unsatisfiable(object))?, partial: true, parts: None })
            }
            (None, Some(part)) => Self::part(object, part),
        }
    }

    fn part(object: &Object, part: i32) -> S3Result<Self> {
        let index = usize::try_from(part).ok().and_then(|part| part.checked_sub(1));
        let whole = [object.size];
        let sizes = if object.part_sizes.is_empty() { &whole[..] } else { &object.part_sizes };
        let index = index.filter(|index| *index < sizes.len()).ok_or_else(|| {
            let message = "The requested partnumber is not satisfiable";
            error_called("InvalidPartNumber", StatusCode::RANGE_NOT_SATISFIABLE, message)
        })?;
        let start = sizes[..index].iter().sum();
        let parts = (!object.part_sizes.is_empty()).then_some(sizes.len() as i32);
        // An object without bytes has no range that could be named.
        Ok(Self { bytes: start..start + sizes[index], partial: object.size > 0, parts })
    }

    /// The Content-Range of the answer.
    fn header(&self, object: &Object) -> Option<String> {
        self.partial.then(|| format!("bytes {}-{}/{}", self.bytes.start, self.bytes.end - 1, object.size))
    }
}

fn unsatisfiable(object: &Object) -> s3s::S3Error {
    let headers = [(CONTENT_RANGE, format!("bytes */{}", object.size))];
    error_with_headers(S3ErrorCode::InvalidRange, "The requested range is not satisfiable", &headers)
}

fn wants_checksum(mode: Option<&ChecksumMode>) -> bool {
    mode.is_some_and(|mode| mode.as_str() == ChecksumMode::ENABLED)
}

fn checksum_type(checksum: &Checksum) -> ChecksumType {
    ChecksumType::from_static(if checksum.composite { ChecksumType::COMPOSITE } else { ChecksumType::FULL_OBJECT })
}

/// The object's checksum; that of a computed one is computed.
fn checksum_of(object: &Object) -> Option<Checksum> {
    if let Content::Synthetic { phase } = &object.content {
        let algorithm = Algorithm::Crc64Nvme;
        let value = encode_crc(algorithm, synthetic::crc64(*phase, object.size));
        return Some(Checksum { algorithm, value, composite: false });
    }
    object.checksum.clone()
}

fn tag_count(object: &Object) -> Option<i32> {
    Some(object.head.tags.len() as i32).filter(|count| *count > 0)
}

/// A [`Reader`] in the shape that `s3s` streams.
struct Outgoing(Reader);

impl futures_core::Stream for Outgoing {
    type Item = Result<bytes::Bytes, s3s::StdError>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        let next = std::pin::Pin::new(&mut self.0).poll_next(cx);
        next.map(|item| item.map(|bytes| bytes.map_err(Into::into)))
    }
}

impl ByteStream for Outgoing {
    fn remaining_length(&self) -> RemainingLength {
        RemainingLength::new_exact(self.0.remaining() as usize)
    }
}

//! Starting and completing multipart uploads.

use super::error::ErrorBody;
use super::reader::{Cursor, XmlError};
use super::writer::{NAMESPACE, element};
use crate::wire::checksum::{Checksum, ChecksumAlgorithm};

/// How a `CompleteMultipartUpload` ended: its status is 200 in both cases, because the server sends the
/// head before it knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompletedUpload {
    /// The object is there.
    Done {
        /// Its entity tag, with quotes.
        etag: String,
        /// Its checksum, if the server tells one of a known kind.
        checksum: Option<Checksum>,
    },
    /// It is not.
    Failed(ErrorBody),
}

/// Reads the upload id from the answer to `CreateMultipartUpload`.
///
/// # Errors
/// [`XmlError`] when there is none.
pub fn parse_initiate_multipart(xml: &[u8]) -> Result<String, XmlError> {
    let mut cursor = Cursor::open(xml, "InitiateMultipartUploadResult")?;
    let mut upload_id = None;
    while let Some(field) = cursor.child()? {
        match field.local_name().as_ref() {
            "UploadId" => upload_id = Some(cursor.text()?),
            _ => cursor.skip()?,
        }
    }
    cursor.finish()?;
    upload_id.filter(|id| !id.is_empty()).ok_or(XmlError::Missing("UploadId"))
}

/// Reads the answer to `CompleteMultipartUpload`. White space may come before the document.
///
/// # Errors
/// [`XmlError`] when the answer can't be read, or names no entity tag: the upload may then have been completed or not.
pub fn parse_complete_multipart(xml: &[u8]) -> Result<CompletedUpload, XmlError> {
    let mut cursor = match Cursor::open(xml, "CompleteMultipartUploadResult") {
        Err(XmlError::Service(error)) => return Ok(CompletedUpload::Failed(*error)),
        opened => opened?,
    };
    let (mut etag, mut found, mut kind) = (None, None, None);
    while let Some(field) = cursor.child()? {
        match field.local_name().as_ref() {
            "ETag" => etag = Some(cursor.text()?),
            "ChecksumType" => kind = Some(cursor.text()?),
            name => match ChecksumAlgorithm::of_element(name) {
                Some(algorithm) => found = Some((algorithm, cursor.text()?)),
                None => cursor.skip()?,
            },
        }
    }
    cursor.finish()?;
    let checksum = found.map(|(algorithm, value)| Checksum::told(algorithm, value, kind.as_deref()));
    let etag = etag.filter(|etag| !etag.is_empty()).ok_or(XmlError::Missing("ETag"))?;
    Ok(CompletedUpload::Done { etag, checksum })
}

/// Appends the body of a `CompleteMultipartUpload`: part numbers from 1 with their entity tags and, where
/// they have one, the element and the value of their checksum, in ascending order.
pub fn write_complete_multipart<'a>(
    out: &mut Vec<u8>,
    parts: impl Iterator<Item = (u32, &'a str, Option<(&'a str, &'a str)>)>,
) {
    out.extend_from_slice(format!("<CompleteMultipartUpload{NAMESPACE}>").as_bytes());
    for (number, etag, checksum) in parts {
        out.extend_from_slice(b"<Part>");
        element(out, "PartNumber", &number.to_string());
        element(out, "ETag", etag);
        if let Some((name, value)) = checksum {
            element(out, name, value);
        }
        out.extend_from_slice(b"</Part>");
    }
    out.extend_from_slice(b"</CompleteMultipartUpload>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_id_is_read_or_missed() {
        let xml = b"<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>VXBs+/=</UploadId></InitiateMultipartUploadResult>";
        assert_eq!(parse_initiate_multipart(xml), Ok("VXBs+/=".into()));
        for empty in [
            "<InitiateMultipartUploadResult/>",
            "<InitiateMultipartUploadResult><UploadId/></InitiateMultipartUploadResult>",
        ] {
            assert_eq!(parse_initiate_multipart(empty.as_bytes()), Err(XmlError::Missing("UploadId")));
        }
        assert_eq!(parse_initiate_multipart(b""), Err(XmlError::Truncated));
    }

    #[test]
    fn a_completion_can_fail_with_status_200() {
        let done = b"\n \n<?xml version=\"1.0\"?>\n<CompleteMultipartUploadResult><ETag>&quot;a-2&quot;</ETag></CompleteMultipartUploadResult>";
        assert_eq!(
            parse_complete_multipart(done),
            Ok(CompletedUpload::Done { etag: "\"a-2\"".into(), checksum: None })
        );
        let summed = b"<CompleteMultipartUploadResult><ETag>e</ETag><ChecksumCRC32>AAAAAA==</ChecksumCRC32><ChecksumType>COMPOSITE</ChecksumType></CompleteMultipartUploadResult>";
        let Ok(CompletedUpload::Done { checksum: Some(checksum), .. }) = parse_complete_multipart(summed) else {
            panic!()
        };
        assert_eq!((checksum.algorithm, checksum.composite), (ChecksumAlgorithm::Crc32, true));
        let failed = b"   \n<?xml version=\"1.0\"?><Error><Code>InternalError</Code><Message>Please try again.</Message></Error>";
        assert!(
            matches!(parse_complete_multipart(failed), Ok(CompletedUpload::Failed(body)) if body.code == "InternalError")
        );
        for broken in [
            "",
            "  \n",
            "<CompleteMultipartUploadResult>",
            "<html/>",
            "<html><ETag>e</ETag></html>",
            "<CompleteMultipartUploadResult><Location>l</Location></CompleteMultipartUploadResult>",
            "<CompleteMultipartUploadResult><ETag/></CompleteMultipartUploadResult>",
        ] {
            assert!(parse_complete_multipart(broken.as_bytes()).is_err(), "{broken}");
        }
    }

    #[test]
    fn parts_are_written_with_their_quotes() {
        let mut out = Vec::new();
        write_complete_multipart(
            &mut out,
            [(1, "\"a\"", None), (10_000, "b<", Some(("ChecksumCRC32", "AAAAAA==")))].into_iter(),
        );
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Part><PartNumber>1</PartNumber>\
             <ETag>&quot;a&quot;</ETag></Part><Part><PartNumber>10000</PartNumber><ETag>b&lt;</ETag>\
             <ChecksumCRC32>AAAAAA==</ChecksumCRC32></Part></CompleteMultipartUpload>"
        );
    }
}

//! `<Error>`: what the service says went wrong.

use std::fmt;

use super::reader::{Cursor, XmlError};

/// An error document. Only fields that help and hide nothing are kept: S3 may also repeat the string to
/// sign and tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorBody {
    /// The machine-readable code, as `NoSuchKey`.
    pub code: String,
    /// The explanation for people; may be empty.
    pub message: String,
    /// The request's id, to be quoted to support.
    pub request_id: Option<String>,
    /// The region that the bucket is in, or that the signature should have named.
    pub region: Option<String>,
    /// The bucket in question.
    pub bucket: Option<String>,
    /// The endpoint to use instead.
    pub endpoint: Option<String>,
    /// The server's clock, where it refuses the client's: `2013-05-24T00:00:00Z`.
    pub server_time: Option<String>,
}

impl fmt::Display for ErrorBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.code)?;
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

/// Reads an error document. `None` when `xml` is none, or when its code can't be read; a document that is
/// cut off after its code still counts, because the code is what matters.
pub fn parse_error(xml: &[u8]) -> Option<ErrorBody> {
    let mut cursor = Cursor::any(xml).ok()?;
    let root = cursor.root().ok()??;
    if root.local_name().as_ref() != "Error" {
        return None;
    }
    read_error(&mut cursor).ok()
}

/// Reads the inside of an `<Error>` element that was entered.
pub(super) fn read_error(cursor: &mut Cursor<'_>) -> Result<ErrorBody, XmlError> {
    let mut body = ErrorBody::default();
    match read_fields(cursor, &mut body) {
        Err(error) if body.code.is_empty() => Err(error),
        Ok(()) if body.code.is_empty() => Err(XmlError::Missing("Code")),
        _ => Ok(body),
    }
}

fn read_fields(cursor: &mut Cursor<'_>, body: &mut ErrorBody) -> Result<(), XmlError> {
    while let Some(field) = cursor.child()? {
        match field.local_name().as_ref() {
            "Code" => body.code = cursor.text()?,
            "Message" => body.message = cursor.text()?,
            "RequestId" => body.request_id = Some(cursor.text()?),
            "Region" => body.region = Some(cursor.text()?),
            "Bucket" | "BucketName" => body.bucket = Some(cursor.text()?),
            "Endpoint" => body.endpoint = Some(cursor.text()?),
            "ServerTime" => body.server_time = Some(cursor.text()?),
            _ => cursor.skip()?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_fields_are_read_and_secrets_are_not() {
        let xml = br#"<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region &apos;us-east-1&apos; is wrong; expecting &#39;eu-west-1&#39;</Message>
<Region>eu-west-1</Region><BucketName>b</BucketName><RequestId>R</RequestId><StringToSign>secret</StringToSign><HostId/></Error>"#;
        let error = parse_error(xml).unwrap();
        assert_eq!(error.code, "AuthorizationHeaderMalformed");
        assert_eq!(error.message, "the region 'us-east-1' is wrong; expecting 'eu-west-1'");
        assert_eq!(error.region.as_deref(), Some("eu-west-1"));
        assert_eq!(error.bucket.as_deref(), Some("b"));
        assert_eq!(error.request_id.as_deref(), Some("R"));
        assert!(!format!("{error:?} {error}").contains("secret"));
    }

    #[test]
    fn other_documents_are_no_errors() {
        for other in [
            "",
            "<html><body>Bad gateway</body></html>",
            "Service unavailable",
            "<Error></Error>",
            "<Error/>",
            "<Error><Code></Code></Error>",
            "<ListBucketResult/>",
            "<!DOCTYPE a><Error><Code>a</Code></Error>",
        ] {
            assert_eq!(parse_error(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_code_survives_a_cut() {
        let error = parse_error(b" \n<Error><Code>SlowDown</Code><Message>Please red").unwrap();
        assert_eq!((error.code.as_str(), error.message.as_str()), ("SlowDown", ""));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[<>/&;#!\\[\\]?A-Ea-c \"'=-]{0,80}") {
            let _ = parse_error(&bytes);
            let _ = parse_error(format!("<Error><Code>a</Code>{text}").as_bytes());
        }
    }
}

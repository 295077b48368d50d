//! `<Error>`: what the service says went wrong.

use std::fmt;

use super::list::size;
use super::reader::{Cursor, XmlError};
use crate::text::printable;

/// The most characters of a code, an id or a name.
const MOST_NAME: usize = 256;

/// The most characters of an explanation. S3's have at most some hundred.
const MOST_MESSAGE: usize = 1_024;

/// An error document, in which control characters are escaped and long texts are cut. Only fields that help and hide
/// nothing are kept: S3 may also repeat the string to sign and tokens.
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
    /// The size of the object, in bytes, where a range of it was refused.
    pub object_size: Option<u64>,
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

/// Reads an error document, whatever its root element is called. `None` when it has no code that can be read; a document that is
/// cut off after its code still counts, because the code is what matters.
pub fn parse_error(xml: &[u8]) -> Option<ErrorBody> {
    let mut cursor = Cursor::any(xml).ok()?;
    let root = cursor.root().ok()??;
    // Services with the query protocol, as IAM and STS, wrap it.
    if root.local_name().as_ref() == "ErrorResponse" {
        while cursor.child().ok()??.local_name().as_ref() != "Error" {
            cursor.skip().ok()?;
        }
    }
    read_error(&mut cursor).ok()
}

/// Reads a code or a name of an error document.
pub(super) fn name(cursor: &mut Cursor<'_>) -> Result<String, XmlError> {
    Ok(printable(cursor.text()?, MOST_NAME))
}

/// Reads an explanation.
pub(super) fn message(cursor: &mut Cursor<'_>) -> Result<String, XmlError> {
    Ok(printable(cursor.text()?, MOST_MESSAGE))
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
            "Code" => body.code = name(cursor)?,
            "Message" => body.message = message(cursor)?,
            "RequestId" => body.request_id = Some(name(cursor)?),
            "Region" => body.region = Some(name(cursor)?),
            "Bucket" | "BucketName" => body.bucket = Some(name(cursor)?),
            "Endpoint" => body.endpoint = Some(name(cursor)?),
            "ServerTime" => body.server_time = Some(name(cursor)?),
            "ActualObjectSize" => body.object_size = size(cursor.short_text()?),
            _ => cursor.skip()?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::writer::element;
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
            "<ErrorResponse><RequestId>R</RequestId></ErrorResponse>",
            "<ErrorResponse><Error/></ErrorResponse>",
        ] {
            assert_eq!(parse_error(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_code_is_read_whatever_the_root_element_is_called() {
        for document in [
            "<Fault><Code>SlowDown</Code></Fault>",
            "<a:Error xmlns:a=\"u\"><a:Code>SlowDown</a:Code></a:Error>",
            "<ErrorResponse><a><Code>no</Code></a><Error><Type>Sender</Type><Code>SlowDown</Code></Error></ErrorResponse>",
        ] {
            assert_eq!(parse_error(document.as_bytes()).unwrap().code, "SlowDown", "{document}");
        }
    }

    #[test]
    fn what_is_read_commands_no_terminal_and_is_bounded() {
        let long = "x".repeat(8 << 10);
        let xml = format!(
            "<Error><Code>A\u{1b}[2J&#27;</Code><Message>a&#10;b\u{9b}{long}</Message><RequestId>R\u{7}{long}</RequestId></Error>"
        );
        let error = parse_error(xml.as_bytes()).unwrap();
        assert_eq!(error.code, "A\\u{1b}[2J\\u{1b}");
        assert!(error.message.starts_with("a\\nb\\u{9b}xxx") && error.message.len() < 1_100, "{}", error.message.len());
        assert!(error.request_id.is_some_and(|id| id.starts_with("R\\u{7}x") && id.len() < 300));
    }

    #[test]
    fn a_code_survives_a_cut() {
        let error = parse_error(b" \n<Error><Code>SlowDown</Code><Message>Please red").unwrap();
        assert_eq!((error.code.as_str(), error.message.as_str()), ("SlowDown", ""));
        let endless = format!("<Error><Code>SlowDown</Code><Message>{}</Message></Error>", "x".repeat(1 << 20));
        assert_eq!(parse_error(endless.as_bytes()).unwrap().code, "SlowDown");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[<>/&;#!\\[\\]?A-Ea-c \"'=-]{0,80}") {
            let _ = parse_error(&bytes);
            let _ = parse_error(format!("<Error><Code>a</Code>{text}").as_bytes());
        }

        #[test]
        fn no_control_character_comes_out(code in ".{1,40}", message in any::<String>()) {
            let mut xml = b"<Error>".to_vec();
            element(&mut xml, "Code", &code);
            element(&mut xml, "Message", &message);
            xml.extend_from_slice(b"</Error>");
            if let Some(error) = parse_error(&xml) {
                prop_assert!(!error.to_string().chars().any(char::is_control));
            }
        }
    }
}

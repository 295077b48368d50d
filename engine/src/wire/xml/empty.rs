//! The bodies of answers in which S3 sends no document.

use super::error::read_error;
use super::reader::{Cursor, XmlError};

/// Checks the body of an answer that S3 sends without one (to PutObject, UploadPart and the deletions): it must be empty,
/// or an XML document that is neither an error nor HTML. Anything else, as the page of a proxy or of a web server, did not
/// come from an S3 server, whatever its status says.
///
/// # Errors
/// [`XmlError::Service`] for an error document, another for what is no document of S3.
pub fn check_empty(body: &[u8]) -> Result<(), XmlError> {
    if body.trim_ascii().is_empty() {
        return Ok(());
    }
    let mut cursor = Cursor::any(body)?;
    let root = cursor.root()?.ok_or(XmlError::Truncated)?;
    let root = root.local_name().as_ref().to_owned();
    match root.as_str() {
        "Error" => Err(XmlError::Service(Box::new(read_error(&mut cursor)?))),
        root if root.eq_ignore_ascii_case("html") => Err(XmlError::Root(root.to_owned())),
        _ => {
            cursor.skip()?;
            cursor.recognize();
            cursor.finish()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_nothing_or_a_document_passes() {
        for fine in ["", " \r\n", "<CopyObjectResult><ETag>a</ETag></CopyObjectResult>", "<?xml version=\"1.0\"?><a/>"]
        {
            assert_eq!(check_empty(fine.as_bytes()), Ok(()), "{fine}");
        }
        for page in [
            "<html><body>Sign in</body></html>",
            "<HTML/>",
            "<!DOCTYPE html><html><br></html>",
            "OK",
            "{\"ok\": true}",
            "<p>Welcome<br></p>",
            "<a>",
        ] {
            assert!(check_empty(page.as_bytes()).is_err(), "{page}");
        }
        let error = check_empty(b"<Error><Code>AccessDenied</Code></Error>");
        assert!(matches!(error, Err(XmlError::Service(body)) if body.code == "AccessDenied"));
        assert!(check_empty(b"\xff\xfe").is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[<>/&;#!A-Ea-c \"'=-]{0,80}") {
            let _ = check_empty(&bytes);
            let _ = check_empty(text.as_bytes());
        }
    }
}

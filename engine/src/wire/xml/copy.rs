//! What a copy within the server answers. Its status is 200 before the server knows how it ends: an error
//! comes as the document.

use jiff::Timestamp;

use super::list::timestamp;
use super::reader::{Cursor, XmlError};

/// What a copy made, of an object or of a part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyResult {
    /// Its entity tag, with its quotes where the server sent them.
    pub etag: Option<String>,
    /// When it was written; `None` also for a time that can't be read.
    pub last_modified: Option<Timestamp>,
}

/// Reads the answer to `CopyObject`.
///
/// # Errors
/// [`XmlError::Service`] when the copy failed, another when the answer can't be read: the copy may then
/// have been made or not.
pub fn parse_copy_object(xml: &[u8]) -> Result<CopyResult, XmlError> {
    read(xml, "CopyObjectResult")
}

/// Reads the answer to `UploadPartCopy`.
///
/// # Errors
/// Those of [`parse_copy_object`].
pub fn parse_copy_part(xml: &[u8]) -> Result<CopyResult, XmlError> {
    read(xml, "CopyPartResult")
}

fn read(xml: &[u8], root: &'static str) -> Result<CopyResult, XmlError> {
    let mut cursor = Cursor::open(xml, root)?;
    let mut result = CopyResult::default();
    while let Some(field) = cursor.child()? {
        match field.local_name().as_ref() {
            "ETag" => result.etag = Some(cursor.text()?).filter(|etag| !etag.is_empty()),
            "LastModified" => result.last_modified = timestamp(cursor.short_text()?),
            _ => cursor.skip()?,
        }
    }
    cursor.finish()?;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_copy_ends_well_or_says_why_not() {
        let xml = b"  <?xml version=\"1.0\"?><CopyObjectResult><LastModified>2009-10-28T22:32:00.000Z</LastModified><ETag>&quot;a&quot;</ETag></CopyObjectResult>";
        let copied = parse_copy_object(xml).unwrap();
        assert_eq!(copied.etag.as_deref(), Some("\"a\""));
        assert_eq!(copied.last_modified, Some("2009-10-28T22:32:00Z".parse().unwrap()));
        assert_eq!(parse_copy_part(b"<CopyPartResult/>"), Ok(CopyResult::default()));
        assert!(matches!(parse_copy_part(xml), Err(XmlError::Root(_))), "each answer is its own document");
        let failed = b"\n<Error><Code>SlowDown</Code></Error>";
        assert!(matches!(parse_copy_object(failed), Err(XmlError::Service(body)) if body.code == "SlowDown"));
        assert_eq!(parse_copy_object(&xml[..80]), Err(XmlError::Truncated));
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "[<>/&;#!A-Ea-c \"'=-]{0,80}") {
            let _ = parse_copy_object(format!("<CopyObjectResult>{text}").as_bytes());
        }
    }
}

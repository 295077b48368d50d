//! The answers to `CopyObject` and `UploadPartCopy`. Their status is 200 before the server knows how the copy ends: an
//! error comes as the document, and the entity tag of the copy says that it was made.

use jiff::Timestamp;

use super::list::timestamp;
use super::reader::{Cursor, XmlError};

/// What a copy made, of an object or of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyResult {
    /// Its entity tag, with its quotes where the server sent them.
    pub etag: String,
    /// When it was written; `None` also for a time that can't be read.
    pub last_modified: Option<Timestamp>,
}

/// Reads the answer to `CopyObject` or to `UploadPartCopy`.
///
/// # Errors
/// [`XmlError::Service`] when the copy failed, another when the answer can't be read or names no entity tag: the copy
/// may then have been made or not.
pub fn parse_copy_result(xml: &[u8]) -> Result<CopyResult, XmlError> {
    let mut cursor = Cursor::open(xml, "CopyObjectResult")?;
    let (mut etag, mut last_modified) = (None, None);
    while let Some(field) = cursor.child()? {
        match field.local_name().as_ref() {
            "ETag" => etag = Some(cursor.text()?).filter(|etag| !etag.is_empty()),
            "LastModified" => last_modified = timestamp(cursor.short_text()?),
            _ => cursor.skip()?,
        }
    }
    cursor.finish()?;
    Ok(CopyResult { etag: etag.ok_or(XmlError::Missing("ETag"))?, last_modified })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_copy_ends_well_or_says_why_not() {
        let xml = b"  <?xml version=\"1.0\"?><CopyObjectResult><LastModified>2009-10-28T22:32:00.000Z</LastModified><ETag>&quot;a&quot;</ETag></CopyObjectResult>";
        let copied = parse_copy_result(xml).unwrap();
        assert_eq!(copied.etag, "\"a\"");
        assert_eq!(copied.last_modified, Some("2009-10-28T22:32:00Z".parse().unwrap()));
        for root in ["CopyPartResult", "CopyObjectOutput"] {
            let part = parse_copy_result(format!("<{root}><ETag>a</ETag></{root}>").as_bytes());
            assert_eq!(part.unwrap().etag, "a", "{root}");
        }
        for silent in ["<CopyObjectResult/>", "<CopyObjectResult><ETag/><LastModified/></CopyObjectResult>"] {
            assert_eq!(parse_copy_result(silent.as_bytes()), Err(XmlError::Missing("ETag")), "{silent}");
        }
        assert!(matches!(parse_copy_result(b"<html><ETag>a</ETag></html>"), Err(XmlError::Root(_))));
        let failed = b"\n<Error><Code>SlowDown</Code></Error>";
        assert!(matches!(parse_copy_result(failed), Err(XmlError::Service(body)) if body.code == "SlowDown"));
        assert_eq!(parse_copy_result(&xml[..80]), Err(XmlError::Truncated));
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "[<>/&;#!A-Ea-c \"'=-]{0,80}") {
            let _ = parse_copy_result(format!("<CopyObjectResult>{text}").as_bytes());
        }
    }
}

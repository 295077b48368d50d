//! Deleting many objects with one request.

use std::fmt;

use super::error::{message, name};
use super::reader::{Cursor, XmlError};
use super::writer::{NAMESPACE, element};

/// An object that `DeleteObjects` did not delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteFailure {
    /// Its key; empty when the server does not tell.
    pub key: String,
    /// The version that was to be deleted, where one was named.
    pub version_id: Option<String>,
    /// The machine-readable code, as `AccessDenied`.
    pub code: String,
    /// The explanation for people; may be empty.
    pub message: String,
}

/// The answer to `DeleteObjects`, which names every object that the request named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteResult {
    /// The objects that were deleted: their keys, and their versions where one was named.
    pub deleted: Vec<(String, Option<String>)>,
    /// The objects that were not.
    pub failures: Vec<DeleteFailure>,
}

/// A key that XML 1.0 can't carry: it must be deleted with a request of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrepresentable {
    /// The key.
    pub key: String,
}

impl fmt::Display for Unrepresentable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the key {:?} holds a character that XML can't carry; delete it with a request of its own", self.key)
    }
}

impl std::error::Error for Unrepresentable {}

/// Whether a `DeleteObjects` body can name `key`.
///
/// XML 1.0 has no place, not even as a numeric reference, for control characters other than tab, line feed
/// and carriage return, nor for U+FFFE and U+FFFF (section 2.2). Some servers take such references and
/// some refuse the whole request, so they are never sent.
pub fn is_representable(key: &str) -> bool {
    key.chars().all(|character| matches!(character, '\t' | '\n' | '\r' | '\u{20}'..='\u{fffd}' | '\u{10000}'..))
}

/// Appends the body of a `DeleteObjects`, which takes at most 1,000 keys, each with the version that is
/// meant or without one. The server is to name what it deleted: the quiet form answers with failures only, so that
/// an answer that lost its content would look like success.
///
/// # Errors
/// [`Unrepresentable`] for the first key that XML can't carry; `out` is then as it was.
pub fn write_delete_objects<'a>(
    out: &mut Vec<u8>,
    keys: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> Result<(), Unrepresentable> {
    let start = out.len();
    out.extend_from_slice(format!("<Delete{NAMESPACE}>").as_bytes());
    for (key, version_id) in keys {
        if !is_representable(key) || !version_id.is_none_or(is_representable) {
            out.truncate(start);
            return Err(Unrepresentable { key: key.to_owned() });
        }
        out.extend_from_slice(b"<Object>");
        element(out, "Key", key);
        if let Some(version_id) = version_id {
            element(out, "VersionId", version_id);
        }
        out.extend_from_slice(b"</Object>");
    }
    out.extend_from_slice(b"</Delete>");
    Ok(())
}

/// Reads the answer to `DeleteObjects`.
///
/// # Errors
/// [`XmlError`] when the answer can't be read: some objects may then have been deleted.
pub fn parse_delete_result(xml: &[u8]) -> Result<DeleteResult, XmlError> {
    let mut cursor = Cursor::open(xml, "DeleteResult")?;
    let mut result = DeleteResult::default();
    while let Some(field) = cursor.child()? {
        match field.local_name().as_ref() {
            "Deleted" => result.deleted.push(read_deleted(&mut cursor)?),
            "Error" => result.failures.push(read_failure(&mut cursor)?),
            _ => cursor.skip()?,
        }
    }
    cursor.finish()?;
    Ok(result)
}

fn read_deleted(cursor: &mut Cursor<'_>) -> Result<(String, Option<String>), XmlError> {
    let (mut key, mut version_id) = (None, None);
    while let Some(field) = cursor.child()? {
        match field.local_name().as_ref() {
            "Key" => key = Some(cursor.text()?),
            "VersionId" => version_id = Some(cursor.text()?).filter(|id| !id.is_empty()),
            _ => cursor.skip()?,
        }
    }
    Ok((key.filter(|key| !key.is_empty()).ok_or(XmlError::Missing("Key"))?, version_id))
}

fn read_failure(cursor: &mut Cursor<'_>) -> Result<DeleteFailure, XmlError> {
    let mut failure = DeleteFailure::default();
    while let Some(field) = cursor.child()? {
        match field.local_name().as_ref() {
            "Key" => failure.key = cursor.text()?,
            "VersionId" => failure.version_id = Some(cursor.text()?).filter(|id| !id.is_empty()),
            "Code" => failure.code = name(cursor)?,
            "Message" => failure.message = message(cursor)?,
            _ => cursor.skip()?,
        }
    }
    Ok(failure)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quick_xml::Reader;
    use quick_xml::events::Event;

    use super::*;

    #[test]
    fn keys_are_escaped_and_line_ends_are_references() {
        let mut out = Vec::new();
        let keys = [("a&b<c>\"'", None), ("x\r\n\ty", None), (" ü🚀 ", Some("v<1"))];
        write_delete_objects(&mut out, keys).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Object><Key>a&amp;b&lt;c&gt;&quot;'</Key></Object>\
             <Object><Key>x&#13;&#10;&#9;y</Key></Object><Object><Key> ü🚀 </Key><VersionId>v&lt;1</VersionId></Object></Delete>"
        );
    }

    #[test]
    fn what_xml_cannot_carry_is_refused_whole() {
        for key in ["a\0", "\u{1}", "\u{1f}", "\u{fffe}", "\u{ffff}"] {
            let mut out = b"before".to_vec();
            let error = write_delete_objects(&mut out, [("fine", None), (key, None)]).unwrap_err();
            assert_eq!((error.key.as_str(), out.as_slice()), (key, b"before".as_slice()));
        }
    }

    #[test]
    fn what_was_deleted_and_what_was_not_is_read() {
        let xml = b"<DeleteResult><Deleted><Key>a</Key><DeleteMarker>true</DeleteMarker></Deleted><Error><Key>b</Key><VersionId/><Code>AccessDenied</Code><Message>Access Denied</Message></Error></DeleteResult>";
        let failure = DeleteFailure {
            key: "b".into(),
            version_id: None,
            code: "AccessDenied".into(),
            message: "Access Denied".into(),
        };
        let result = DeleteResult { deleted: vec![("a".into(), None)], failures: vec![failure] };
        assert_eq!(parse_delete_result(xml), Ok(result));
        assert_eq!(parse_delete_result(b"<DeleteResult/>"), Ok(DeleteResult::default()));
        let foreign = b"<D><Deleted><Key>a</Key><VersionId>v</VersionId></Deleted></D>";
        assert_eq!(parse_delete_result(foreign).unwrap().deleted, [("a".into(), Some("v".into()))]);
        for page in ["<html><body>Welcome</body></html>", "<HTML/>", "<page><p>Welcome</p></page>"] {
            assert!(matches!(parse_delete_result(page.as_bytes()), Err(XmlError::Root(_))), "{page}");
        }
        let nameless = b"<DeleteResult><Deleted/></DeleteResult>";
        assert_eq!(parse_delete_result(nameless), Err(XmlError::Missing("Key")));
        assert_eq!(parse_delete_result(&xml[..60]), Err(XmlError::Truncated));
        assert!(matches!(parse_delete_result(b"<Error><Code>MalformedXML</Code></Error>"), Err(XmlError::Service(_))));
    }

    proptest! {
        /// A reader of XML finds the keys that were written.
        #[test]
        fn keys_round_trip(keys in prop::collection::vec(any::<String>().prop_filter("XML", |key| is_representable(key)), 0..5)) {
            let mut out = Vec::new();
            write_delete_objects(&mut out, keys.iter().map(|key| (key.as_str(), None))).unwrap();
            let text = String::from_utf8(out).unwrap();
            let mut reader = Reader::from_str(&text);
            let (mut found, mut key) = (Vec::new(), String::new());
            loop {
                match reader.read_event().unwrap() {
                    Event::Text(piece) => key.push_str(&piece.xml10_content()),
                    Event::GeneralRef(name) => match name.resolve_char_ref().unwrap() {
                        Some(character) => key.push(character),
                        None => key.push_str(quick_xml::escape::resolve_xml_entity(&name).unwrap()),
                    },
                    Event::End(end) if end.name().as_ref() == "Key" => found.push(std::mem::take(&mut key)),
                    Event::Eof => break,
                    _ => {}
                }
            }
            prop_assert_eq!(found, keys);
        }
    }
}

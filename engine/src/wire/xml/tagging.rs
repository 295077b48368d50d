//! `<Tagging>`: the tags of an object.

use super::reader::{Cursor, XmlError};

/// Reads the answer to `GetObjectTagging`: pairs of name and value, in the server's order.
///
/// # Errors
/// [`XmlError`] when the document can't be read whole, or a tag has no name.
pub fn parse_tagging(xml: &[u8]) -> Result<Vec<(String, String)>, XmlError> {
    let mut cursor = Cursor::open(xml, "Tagging")?;
    let mut tags = Vec::new();
    while let Some(set) = cursor.child()? {
        if set.local_name().as_ref() != "TagSet" {
            cursor.skip()?;
            continue;
        }
        cursor.recognize();
        while let Some(tag) = cursor.child()? {
            match tag.local_name().as_ref() {
                "Tag" => tags.push(read_tag(&mut cursor)?),
                _ => cursor.skip()?,
            }
        }
    }
    cursor.finish()?;
    Ok(tags)
}

fn read_tag(cursor: &mut Cursor<'_>) -> Result<(String, String), XmlError> {
    let (mut name, mut value) = (None, String::new());
    while let Some(field) = cursor.child()? {
        match field.local_name().as_ref() {
            "Key" => name = Some(cursor.text()?),
            "Value" => value = cursor.text()?,
            _ => cursor.skip()?,
        }
    }
    name.map(|name| (name, value)).ok_or(XmlError::Missing("Key"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::writer::element;
    use super::*;

    #[test]
    fn a_set_may_be_empty_and_must_be_whole() {
        assert_eq!(parse_tagging(b"<Tagging><TagSet/></Tagging>"), Ok(Vec::new()));
        assert_eq!(
            parse_tagging(b"<Tagging><TagSet><Tag><Value>v</Value></Tag></TagSet></Tagging>"),
            Err(XmlError::Missing("Key"))
        );
        assert_eq!(parse_tagging(b"<Tagging><TagSet><Tag><Key>a</Key>"), Err(XmlError::Truncated));
        assert!(matches!(parse_tagging(b"<Error><Code>AccessDenied</Code></Error>"), Err(XmlError::Service(_))));
    }

    proptest! {
        #[test]
        fn tags_round_trip(tags in prop::collection::vec(("[a-z&<>\"' ü]{1,9}", "[a-z&<>\"' ü]{0,9}"), 0..10)) {
            let mut xml = b"<Tagging><TagSet>".to_vec();
            for (name, value) in &tags {
                xml.extend_from_slice(b"<Tag>");
                element(&mut xml, "Key", name);
                element(&mut xml, "Value", value);
                xml.extend_from_slice(b"</Tag>");
            }
            xml.extend_from_slice(b"</TagSet></Tagging>");
            prop_assert_eq!(parse_tagging(&xml), Ok(tags));
        }

        #[test]
        fn arbitrary_text_never_panics(text in "[<>/&;#!A-Ea-c \"'=-]{0,80}") {
            let _ = parse_tagging(format!("<Tagging><TagSet>{text}").as_bytes());
        }
    }
}

//! `<Contents>` in the plain shape that servers write it in, read without events.
//!
//! Owns a shortcut and no meaning: pulled through the XML reader, one object of a listing costs some forty
//! events, more than everything else in a page. Nearly every server writes objects as leaf elements
//! without attributes, which a scan for `<` and `>` finds. Whatever looks different (attributes, nesting,
//! comments, CDATA, carriage returns, unknown entities, very long texts, anything missing or broken) is not judged here but
//! left to the reader, which knows XML and says what is wrong.

use quick_xml::escape::unescape;

use super::list::{ListedObject, StorageClass, size, timestamp};
use super::reader::MAX_TEXT;

const START: &str = "<Contents>";
const END: &str = "</Contents>";

/// Reads the object that `xml` begins with, and says how many bytes it takes.
pub(super) fn object(xml: &str) -> Option<(ListedObject, usize)> {
    let mut rest = xml.trim_ascii_start().strip_prefix(START)?;
    let (mut key, mut bytes, mut etag, mut last_modified, mut storage_class) = (None, None, None, None, None);
    loop {
        rest = rest.trim_ascii_start();
        if let Some(after) = rest.strip_prefix(END) {
            rest = after;
            break;
        }
        let (name, text, after) = leaf(rest)?;
        rest = after;
        match name {
            "Key" => key = Some(plain_text(text)?),
            "Size" => bytes = Some(size(plain_text_unchanged(text)?)?),
            "ETag" => etag = Some(plain_text(text)?),
            "LastModified" => last_modified = timestamp(plain_text_unchanged(text)?),
            "StorageClass" => storage_class = Some(StorageClass::from_text(plain_text_unchanged(text)?)),
            // Its text is of no interest, but must be text.
            _ => drop(plain_text(text)?),
        }
    }
    let key = key.filter(|key: &String| !key.is_empty())?;
    let object = ListedObject { key, size: bytes?, etag, last_modified, storage_class };
    Some((object, xml.len() - rest.len()))
}

/// The element that `xml` begins with, if it is a leaf without attributes: its name, its text as it stands,
/// and what follows.
fn leaf(xml: &str) -> Option<(&str, &str, &str)> {
    let xml = xml.strip_prefix('<')?;
    let name_end = xml.bytes().position(|byte| !byte.is_ascii_alphanumeric())?;
    let (name, rest) = xml.split_at(name_end);
    let rest = rest.strip_prefix('>').filter(|_| !name.is_empty())?;
    let (text, rest) = rest.split_at(memchr::memchr(b'<', rest.as_bytes())?);
    if text.len() > MAX_TEXT {
        return None;
    }
    let rest = rest.strip_prefix("</")?.strip_prefix(name)?.strip_prefix('>')?;
    Some((name, text, rest))
}

fn plain_text(text: &str) -> Option<String> {
    if let Some(text) = plain_text_unchanged(text) {
        return Some(text.to_owned());
    }
    // Entity tags are quoted, and their quotes are mostly escaped.
    let quoted = text.strip_prefix("&quot;").and_then(|text| text.strip_suffix("&quot;"));
    if let Some(inner) = quoted.and_then(plain_text_unchanged) {
        let mut quoted = String::with_capacity(inner.len() + 2);
        quoted.push('"');
        quoted.push_str(inner);
        quoted.push('"');
        return Some(quoted);
    }
    if memchr::memchr(b'\r', text.as_bytes()).is_some() {
        return None;
    }
    unescape(text).ok().map(|text| text.into_owned())
}

/// `text`, unless XML says that it stands for another.
fn plain_text_unchanged(text: &str) -> Option<&str> {
    memchr::memchr2(b'&', b'\r', text.as_bytes()).is_none().then_some(text)
}

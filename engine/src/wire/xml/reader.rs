//! A cursor over a document: children, text, skip.

use std::fmt;
use std::io::BufRead as _;

use quick_xml::Reader;
use quick_xml::errors::SyntaxError;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesStart, Event};

use super::error::{ErrorBody, read_error};
use crate::text::printable;
use crate::wire::uri::DecodeError;

/// How deep elements may be nested; S3's own documents need six levels.
const MAX_DEPTH: usize = 64;

/// The most characters of a document that an error quotes.
const MOST_QUOTED: usize = 64;

/// The longest key that is accepted, in bytes. S3's have at most 1,024; stores over a file system allow as much as a path,
/// and 1,024 characters of four bytes are as many.
const MAX_KEY: usize = 4096;

/// The longest text of one element that is kept, in bytes: that of the longest key with every byte percent-encoded. What is
/// built from listed keys takes a multiple of their length.
pub(super) const MAX_TEXT: usize = 3 * MAX_KEY;

/// Why a document can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum XmlError {
    /// The document is not well-formed, with the reason and the byte where it was found.
    Syntax {
        /// What is wrong.
        reason: String,
        /// The offset in bytes.
        at: u64,
    },
    /// The document ends before its root element does.
    Truncated,
    /// The document is not UTF-8.
    Encoding,
    /// HTML, or a document in which nothing is known, with its root element.
    Root(String),
    /// An element that must be there is not, or is empty.
    Missing(&'static str),
    /// An element's text is not what it must be.
    Value(&'static str),
    /// An element's text is longer than any store's, with how many bytes it may have.
    TooLong(&'static str, usize),
    /// A url-encoded element could not be decoded.
    Decode(&'static str, DecodeError),
    /// The service answered with an error document.
    Service(Box<ErrorBody>),
}

impl fmt::Display for XmlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { reason, at } => write!(f, "the response is not well-formed XML at byte {at}: {reason}"),
            Self::Truncated => f.write_str("the response's XML document is cut off"),
            Self::Encoding => f.write_str("the response's XML document is not UTF-8"),
            Self::Root(root) => write!(f, "the response is an unexpected XML document <{root}>"),
            Self::Missing(element) => write!(f, "the response's XML document lacks <{element}>"),
            Self::Value(element) => write!(f, "the response's XML document has an unreadable <{element}>"),
            Self::TooLong(what, most) => {
                write!(
                    f,
                    "the response's XML document has {what} of more than {most} bytes; S3's keys have at most 1,024"
                )
            }
            Self::Decode(element, error) => {
                write!(f, "the response's XML document has a wrongly url-encoded <{element}>: {error}")
            }
            Self::Service(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for XmlError {}

/// Where a reader stands in a document.
pub(super) struct Cursor<'a> {
    document: &'a str,
    reader: Reader<&'a [u8]>,
    /// An element written as `<a/>` was opened: what comes next is its end.
    empty: bool,
    /// The last element's text when it is not kept.
    scratch: String,
    /// The name of a root element that S3 does not use, until an element that the reader knows was read.
    foreign_root: Option<String>,
}

impl<'a> Cursor<'a> {
    /// Opens `xml`, whose root element S3 calls `root`, and enters it. Another name is accepted where the reader finds
    /// something in the document, which [`finish`](Self::finish) checks.
    pub(super) fn open(xml: &'a [u8], root: &'static str) -> Result<Self, XmlError> {
        let mut cursor = Self::any(xml)?;
        match cursor.root()? {
            Some(name) if name.local_name().as_ref() == root => Ok(cursor),
            Some(name) if name.local_name().as_ref() == "Error" => {
                Err(XmlError::Service(Box::new(read_error(&mut cursor)?)))
            }
            Some(name) => {
                let name = printable(name.local_name().as_ref().to_owned(), MOST_QUOTED);
                if name.eq_ignore_ascii_case("html") {
                    return Err(XmlError::Root(name));
                }
                cursor.foreign_root = Some(name);
                Ok(cursor)
            }
            None => Err(XmlError::Truncated),
        }
    }

    /// Opens `xml` before its root element.
    pub(super) fn any(xml: &'a [u8]) -> Result<Self, XmlError> {
        // White space may precede the declaration: servers send it to keep a connection alive.
        let text = std::str::from_utf8(xml.trim_ascii_start()).map_err(|_| XmlError::Encoding)?;
        Ok(Self {
            document: text,
            reader: Reader::from_str(text),
            empty: false,
            scratch: String::new(),
            foreign_root: None,
        })
    }

    /// Enters the root element.
    pub(super) fn root(&mut self) -> Result<Option<BytesStart<'a>>, XmlError> {
        loop {
            return match self.event()? {
                Event::Start(start) => Ok(Some(start)),
                Event::Empty(start) => {
                    self.empty = true;
                    Ok(Some(start))
                }
                Event::Eof => Ok(None),
                Event::Decl(_) | Event::Comment(_) | Event::PI(_) => continue,
                Event::Text(text) if is_blank(&text) => continue,
                _ => Err(self.syntax("text outside the root element")),
            };
        }
    }

    /// Enters the next child of the current element, or leaves the element when there is none.
    pub(super) fn child(&mut self) -> Result<Option<BytesStart<'a>>, XmlError> {
        if std::mem::take(&mut self.empty) {
            return Ok(None);
        }
        loop {
            match self.event()? {
                Event::Start(start) => return Ok(Some(start)),
                Event::Empty(start) => {
                    self.empty = true;
                    return Ok(Some(start));
                }
                Event::End(_) => return Ok(None),
                Event::Eof => return Err(XmlError::Truncated),
                _ => {}
            }
        }
    }

    /// Lets `read` take the next child in its own way: it sees what comes next, and answers with what it
    /// made of it and how many bytes of whole elements that were. These are then done with.
    ///
    /// Only for use between children, where the reader stands behind a tag.
    pub(super) fn take_plain<T>(&mut self, read: impl FnOnce(&'a str) -> Option<(T, usize)>) -> Option<T> {
        if self.empty {
            return None;
        }
        let next = self.document.len().checked_sub(self.reader.get_ref().len())?;
        let (taken, length) = read(self.document.get(next..)?)?;
        self.reader.stream().consume(length);
        self.recognize();
        Some(taken)
    }

    /// Reads the text of the current element, and leaves it.
    pub(super) fn text(&mut self) -> Result<String, XmlError> {
        let mut text = String::new();
        self.append_text(&mut text)?;
        Ok(text)
    }

    /// Reads the text of the current element into memory that is used again, and leaves it.
    pub(super) fn short_text(&mut self) -> Result<&str, XmlError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let read = self.append_text(&mut scratch);
        self.scratch = scratch;
        read.map(|()| self.scratch.as_str())
    }

    /// Notes that the document contains what its reader looks for, whatever its root element is called.
    pub(super) fn recognize(&mut self) {
        self.foreign_root = None;
    }

    fn append_text(&mut self, text: &mut String) -> Result<(), XmlError> {
        self.recognize();
        if std::mem::take(&mut self.empty) {
            return Ok(());
        }
        loop {
            match self.event()? {
                Event::Text(piece) => append(text, &piece.xml10_content())?,
                Event::CData(piece) => append(text, &piece.xml10_content())?,
                Event::GeneralRef(reference) => {
                    // Control characters are taken as they come: XML 1.0 has no place for them, keys do.
                    let character = reference.resolve_char_ref().map_err(|error| self.failed(&error))?;
                    match (character, resolve_xml_entity(&reference)) {
                        (Some(character), _) => append(text, character.encode_utf8(&mut [0; 4]))?,
                        (None, Some(known)) => append(text, known)?,
                        (None, None) => return Err(self.syntax("an entity that XML does not know")),
                    }
                }
                Event::End(_) => return Ok(()),
                Event::Eof => return Err(XmlError::Truncated),
                Event::Start(_) | Event::Empty(_) => {
                    return Err(self.syntax("an element where text was expected"));
                }
                _ => {}
            }
        }
    }

    /// Leaves the current element, whatever is in it.
    pub(super) fn skip(&mut self) -> Result<(), XmlError> {
        if std::mem::take(&mut self.empty) {
            return Ok(());
        }
        let mut depth = 1;
        while depth > 0 {
            match self.event()? {
                Event::Start(_) => depth += 1,
                Event::End(_) => depth -= 1,
                Event::Eof => return Err(XmlError::Truncated),
                _ => {}
            }
            if depth > MAX_DEPTH {
                return Err(self.syntax("elements nested too deeply"));
            }
        }
        Ok(())
    }

    /// Checks that nothing but blanks and comments follows the root element, and that the document was one that its
    /// reader knows.
    pub(super) fn finish(&mut self) -> Result<(), XmlError> {
        match self.root()? {
            None => self.foreign_root.take().map_or(Ok(()), |root| Err(XmlError::Root(root))),
            Some(_) => Err(self.syntax("a second root element")),
        }
    }

    fn event(&mut self) -> Result<Event<'a>, XmlError> {
        match self.reader.read_event() {
            Ok(Event::DocType(_)) => Err(self.syntax("a document type, which S3 does not use")),
            Ok(event) => Ok(event),
            // What is left open at the end of the input was cut off.
            Err(quick_xml::Error::Syntax(error)) if error != SyntaxError::InvalidBangMarkup => Err(XmlError::Truncated),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn failed(&self, error: &quick_xml::Error) -> XmlError {
        XmlError::Syntax { reason: printable(error.to_string(), 4 * MOST_QUOTED), at: self.reader.buffer_position() }
    }

    fn syntax(&self, reason: &str) -> XmlError {
        XmlError::Syntax { reason: reason.to_owned(), at: self.reader.buffer_position() }
    }
}

/// Appends to the text of one element.
fn append(text: &mut String, more: &str) -> Result<(), XmlError> {
    if text.len() + more.len() > MAX_TEXT {
        return Err(XmlError::TooLong("a text", MAX_TEXT));
    }
    text.push_str(more);
    Ok(())
}

/// Refuses a decoded key or prefix that is longer than any store's.
pub(super) fn check_length(key: &str) -> Result<(), XmlError> {
    if key.len() > MAX_KEY { Err(XmlError::TooLong("a key", MAX_KEY)) } else { Ok(()) }
}

fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::Cursor;

    #[test]
    fn an_empty_element_has_no_children_to_take() {
        let mut empty = Cursor::open(b"<a/><b></b>", "a").unwrap();
        assert_eq!(empty.take_plain(|next| Some((next, 7))), None);
        let mut open = Cursor::open(b" \n<a><b></b>c</a>", "a").unwrap();
        assert_eq!(open.take_plain(|next| Some((next, 7))), Some("<b></b>c</a>"));
        assert_eq!(open.text().unwrap(), "c");
        open.finish().unwrap();
    }
}

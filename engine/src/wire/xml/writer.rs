//! Text into documents.

/// Appends `text` as XML character data. Line ends and tabs become numeric references, because a reader
/// may otherwise change them; whether XML can carry `text` at all is for the caller to know.
pub(super) fn escape(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    loop {
        let special = |byte: &u8| matches!(byte, b'&' | b'<' | b'>' | b'"' | b'\r' | b'\n' | b'\t');
        let run = rest.iter().position(special).unwrap_or(rest.len());
        let (kept, tail) = rest.split_at(run);
        out.extend_from_slice(kept);
        let Some((byte, tail)) = tail.split_first() else {
            return;
        };
        out.extend_from_slice(match byte {
            b'&' => b"&amp;",
            b'<' => b"&lt;",
            b'>' => b"&gt;",
            b'"' => b"&quot;",
            b'\r' => b"&#13;",
            b'\n' => b"&#10;",
            _ => b"&#9;",
        });
        rest = tail;
    }
}

/// Appends `<name>text</name>`.
pub(super) fn element(out: &mut Vec<u8>, name: &str, text: &str) {
    out.push(b'<');
    out.extend_from_slice(name.as_bytes());
    out.push(b'>');
    escape(out, text);
    out.extend_from_slice(b"</");
    out.extend_from_slice(name.as_bytes());
    out.push(b'>');
}

/// The namespace of S3's documents, as the attribute of a root element.
pub(super) const NAMESPACE: &str = r#" xmlns="http://s3.amazonaws.com/doc/2006-03-01/""#;

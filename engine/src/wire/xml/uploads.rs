//! `<ListMultipartUploadsResult>`: one page of the uploads that were begun and not ended.

use jiff::Timestamp;

use super::list::{StorageClass, decode, read_prefix, timestamp, truth};
use super::reader::{Cursor, XmlError, check_length};

/// A multipart upload that is neither complete nor aborted. Its parts are stored, and paid for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedUpload {
    /// The key that the object would have, decoded.
    pub key: String,
    /// The upload's id.
    pub upload_id: String,
    /// When it was begun; `None` also for a time that can't be read.
    pub initiated: Option<Timestamp>,
    /// The storage class that the object would have; `None` where the server does not tell.
    pub storage_class: Option<StorageClass>,
}

/// One page of uploads, in the server's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UploadList {
    /// The uploads.
    pub uploads: Vec<ListedUpload>,
    /// The common prefixes, with their delimiter, decoded.
    pub prefixes: Vec<String>,
    /// The key and the upload id to ask the next page with; `None` on the last page.
    pub next: Option<(String, String)>,
}

/// Reads a page of `ListMultipartUploads`. Keys and prefixes are decoded, once, when the document says
/// that they are url-encoded.
///
/// # Errors
/// [`XmlError`] for everything that could make the listing shorter than it is.
pub fn parse_list_uploads(xml: &[u8]) -> Result<UploadList, XmlError> {
    let mut cursor = Cursor::open(xml, "ListMultipartUploadsResult")?;
    let mut page = UploadList::default();
    let (mut is_truncated, mut url_encoded) = (None, false);
    let (mut next_key, mut next_upload) = (String::new(), String::new());
    while let Some(field) = cursor.child()? {
        match field.local_name().as_ref() {
            "Upload" => page.uploads.push(read_upload(&mut cursor)?),
            "CommonPrefixes" => page.prefixes.push(read_prefix(&mut cursor)?),
            "IsTruncated" => is_truncated = Some(truth(cursor.short_text()?, "IsTruncated")?),
            "NextKeyMarker" => next_key = cursor.text()?,
            "NextUploadIdMarker" => next_upload = cursor.text()?,
            "EncodingType" => url_encoded = cursor.short_text()?.trim_ascii() == "url",
            _ => cursor.skip()?,
        }
    }
    cursor.finish()?;
    if url_encoded {
        for upload in &mut page.uploads {
            upload.key = decode(std::mem::take(&mut upload.key), "Key")?;
        }
        for prefix in &mut page.prefixes {
            *prefix = decode(std::mem::take(prefix), "Prefix")?;
        }
        next_key = decode(next_key, "NextKeyMarker")?;
    }
    page.uploads.iter().map(|upload| &upload.key).chain(&page.prefixes).try_for_each(|key| check_length(key))?;
    // Some servers leave it out where there is one page. A key to go on after says that there is another.
    if is_truncated.unwrap_or(!next_key.is_empty()) {
        if next_key.is_empty() {
            return Err(XmlError::Missing("NextKeyMarker"));
        }
        page.next = Some((next_key, next_upload));
    }
    Ok(page)
}

fn read_upload(cursor: &mut Cursor<'_>) -> Result<ListedUpload, XmlError> {
    let (mut key, mut upload_id, mut initiated, mut storage_class) = (String::new(), String::new(), None, None);
    while let Some(field) = cursor.child()? {
        match field.local_name().as_ref() {
            "Key" => key = cursor.text()?,
            "UploadId" => upload_id = cursor.text()?,
            "Initiated" => initiated = timestamp(cursor.short_text()?),
            "StorageClass" => storage_class = Some(StorageClass::from_text(cursor.short_text()?)),
            _ => cursor.skip()?,
        }
    }
    if key.is_empty() {
        return Err(XmlError::Missing("Key"));
    }
    if upload_id.is_empty() {
        return Err(XmlError::Missing("UploadId"));
    }
    Ok(ListedUpload { key, upload_id, initiated, storage_class })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::writer::element;
    use super::*;

    #[test]
    fn uploads_are_read_with_what_comes_next() {
        let xml = b"<ListMultipartUploadsResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>\
            <NextKeyMarker>k%2B</NextKeyMarker><NextUploadIdMarker>u2</NextUploadIdMarker>\
            <Upload><Key>k+1</Key><UploadId>u1</UploadId><Initiated>2010-11-10T20:48:33.000Z</Initiated>\
            <Owner><ID>1</ID></Owner></Upload></ListMultipartUploadsResult>";
        let page = parse_list_uploads(xml).unwrap();
        assert_eq!((page.uploads[0].key.as_str(), page.uploads[0].upload_id.as_str()), ("k 1", "u1"));
        assert_eq!(page.uploads[0].initiated, Some("2010-11-10T20:48:33Z".parse().unwrap()));
        assert_eq!(page.next, Some(("k+".to_owned(), "u2".to_owned())));
        assert_eq!(parse_list_uploads(b"<ListMultipartUploadsResult/>"), Ok(UploadList::default()));
        let unsaid = b"<ListMultipartUploadsResult><NextKeyMarker>k</NextKeyMarker></ListMultipartUploadsResult>";
        assert_eq!(parse_list_uploads(unsaid).unwrap().next, Some(("k".to_owned(), String::new())));
        for broken in [
            "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated></ListMultipartUploadsResult>",
            "<ListMultipartUploadsResult><Upload><Key>k</Key></Upload></ListMultipartUploadsResult>",
            "<ListMultipartUploadsResult><Upload>",
        ] {
            assert!(parse_list_uploads(broken.as_bytes()).is_err(), "{broken}");
        }
    }

    proptest! {
        #[test]
        fn uploads_round_trip(found in prop::collection::vec(("[a-z&<>\"'/ ü+%]{1,9}", "[ -~]{1,9}"), 0..6)) {
            let mut xml = b"<ListMultipartUploadsResult>".to_vec();
            for (key, id) in &found {
                xml.extend_from_slice(b"<Upload>");
                element(&mut xml, "Key", key);
                element(&mut xml, "UploadId", id);
                xml.extend_from_slice(b"</Upload>");
            }
            xml.extend_from_slice(b"</ListMultipartUploadsResult>");
            let page = parse_list_uploads(&xml).unwrap();
            let read: Vec<_> = page.uploads.into_iter().map(|upload| (upload.key, upload.upload_id)).collect();
            prop_assert_eq!(read, found);
        }

        #[test]
        fn arbitrary_text_never_panics(text in "[<>/&;#!A-Ea-c \"'=-]{0,80}") {
            let _ = parse_list_uploads(format!("<ListMultipartUploadsResult>{text}").as_bytes());
        }
    }
}

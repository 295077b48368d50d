//! `<ListPartsResult>`: one page of the parts that a multipart upload has so far.

use jiff::Timestamp;

use super::list::{size, timestamp, truth};
use super::reader::{Cursor, XmlError};
use crate::wire::checksum::{Checksum, ChecksumAlgorithm};

/// A part that the server keeps of an upload that is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedPart {
    /// Its number, from 1.
    pub number: u32,
    /// Its length in bytes.
    pub size: u64,
    /// Its entity tag, byte for byte as the server sent it.
    pub etag: String,
    /// When it arrived; `None` also for a time that can't be read.
    pub last_modified: Option<Timestamp>,
    /// Its checksum, where the upload was begun with one of a known kind.
    pub checksum: Option<Checksum>,
}

/// One page of parts, by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartList {
    /// The parts.
    pub parts: Vec<ListedPart>,
    /// The number to ask the next page after; `None` on the last page.
    pub next: Option<u32>,
}

/// Reads a page of `ListParts`.
///
/// # Errors
/// [`XmlError`] for everything that could make the list shorter than it is, or a part another.
pub fn parse_list_parts(xml: &[u8]) -> Result<PartList, XmlError> {
    let mut cursor = Cursor::open(xml, "ListPartsResult")?;
    let mut page = PartList::default();
    let (mut is_truncated, mut next) = (None, None);
    while let Some(field) = cursor.child()? {
        match field.local_name().as_ref() {
            "Part" => page.parts.push(read_part(&mut cursor)?),
            "IsTruncated" => is_truncated = Some(truth(cursor.short_text()?, "IsTruncated")?),
            // Some servers leave it empty, or say 0, where nothing follows.
            "NextPartNumberMarker" => next = cursor.short_text()?.trim_ascii().parse().ok().filter(|&next| next > 0),
            _ => cursor.skip()?,
        }
    }
    cursor.finish()?;
    page.next = match is_truncated {
        Some(true) => Some(next.ok_or(XmlError::Missing("NextPartNumberMarker"))?),
        Some(false) => None,
        // Some servers leave it out where there is one page. A part to go on after says that there is another.
        None => next,
    };
    Ok(page)
}

fn read_part(cursor: &mut Cursor<'_>) -> Result<ListedPart, XmlError> {
    let (mut number, mut length, mut etag, mut last_modified, mut checksum) = (None, None, None, None, None);
    while let Some(field) = cursor.child()? {
        match field.local_name().as_ref() {
            "PartNumber" => {
                let told = size(cursor.short_text()?).and_then(|number| u32::try_from(number).ok());
                number = Some(told.filter(|&number| number > 0).ok_or(XmlError::Value("PartNumber"))?);
            }
            "Size" => length = Some(size(cursor.short_text()?).ok_or(XmlError::Value("Size"))?),
            "ETag" => etag = Some(cursor.text()?),
            "LastModified" => last_modified = timestamp(cursor.short_text()?),
            name => match ChecksumAlgorithm::of_element(name) {
                Some(algorithm) => checksum = Some(Checksum::full(algorithm, cursor.text()?)),
                None => cursor.skip()?,
            },
        }
    }
    Ok(ListedPart {
        number: number.ok_or(XmlError::Missing("PartNumber"))?,
        size: length.ok_or(XmlError::Missing("Size"))?,
        etag: etag.filter(|etag| !etag.is_empty()).ok_or(XmlError::Missing("ETag"))?,
        last_modified,
        checksum,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::writer::element;
    use super::*;

    #[test]
    fn parts_are_read_with_their_checksums_and_what_comes_next() {
        let xml = b"<ListPartsResult><Bucket>b</Bucket><UploadId>u</UploadId><PartNumberMarker>0</PartNumberMarker>\
            <NextPartNumberMarker>3</NextPartNumberMarker><IsTruncated>true</IsTruncated>\
            <Part><PartNumber>1</PartNumber><LastModified>2010-11-10T20:48:34.000Z</LastModified>\
            <ETag>&quot;e1&quot;</ETag><Size>10485760</Size><ChecksumCRC64NVME>AAAAAAAAAAA=</ChecksumCRC64NVME></Part>\
            <Part><PartNumber>3</PartNumber><ETag>\"e3\"</ETag><Size>5</Size></Part></ListPartsResult>";
        let page = parse_list_parts(xml).unwrap();
        assert_eq!(page.next, Some(3));
        let [first, third] = &page.parts[..] else { panic!("{page:?}") };
        assert_eq!((first.number, first.size, first.etag.as_str()), (1, 10_485_760, "\"e1\""));
        assert_eq!(first.last_modified, Some("2010-11-10T20:48:34Z".parse().unwrap()));
        let checksum = Checksum::full(ChecksumAlgorithm::Crc64Nvme, "AAAAAAAAAAA=".to_owned());
        assert_eq!(first.checksum, Some(checksum));
        assert_eq!((third.number, third.size, &third.checksum), (3, 5, &None));
        assert_eq!(parse_list_parts(b"<ListPartsResult/>"), Ok(PartList::default()));
        let unsaid =
            parse_list_parts(b"<ListPartsResult><NextPartNumberMarker>7</NextPartNumberMarker></ListPartsResult>");
        assert_eq!(unsaid.unwrap().next, Some(7));
    }

    #[test]
    fn a_part_that_is_not_whole_is_refused() {
        for broken in [
            "<Part><PartNumber>1</PartNumber><ETag>e</ETag></Part>",
            "<Part><PartNumber>1</PartNumber><Size>1</Size></Part>",
            "<Part><ETag>e</ETag><Size>1</Size></Part>",
            "<Part><PartNumber>0</PartNumber><ETag>e</ETag><Size>1</Size></Part>",
            "<Part><PartNumber>-1</PartNumber><ETag>e</ETag><Size>1</Size></Part>",
            "<Part><PartNumber>4294967296</PartNumber><ETag>e</ETag><Size>1</Size></Part>",
            "<IsTruncated>true</IsTruncated>",
            "<IsTruncated>true</IsTruncated><NextPartNumberMarker>0</NextPartNumberMarker>",
        ] {
            assert!(
                parse_list_parts(format!("<ListPartsResult>{broken}</ListPartsResult>").as_bytes()).is_err(),
                "{broken}"
            );
        }
    }

    proptest! {
        #[test]
        fn parts_round_trip(found in prop::collection::vec((1u32..=10_000, any::<u64>(), "[a-f0-9\"&<]{1,9}"), 0..6)) {
            let mut xml = b"<ListPartsResult>".to_vec();
            for (number, size, etag) in &found {
                xml.extend_from_slice(b"<Part>");
                element(&mut xml, "PartNumber", &number.to_string());
                element(&mut xml, "Size", &size.to_string());
                element(&mut xml, "ETag", etag);
                xml.extend_from_slice(b"</Part>");
            }
            xml.extend_from_slice(b"</ListPartsResult>");
            let page = parse_list_parts(&xml).unwrap();
            let read: Vec<_> = page.parts.into_iter().map(|part| (part.number, part.size, part.etag)).collect();
            prop_assert_eq!(read, found);
        }

        #[test]
        fn arbitrary_text_never_panics(text in "[<>/&;#!A-Ea-c \"'=-]{0,80}") {
            let _ = parse_list_parts(format!("<ListPartsResult>{text}").as_bytes());
        }
    }
}

//! `<ListVersionsResult>`: one page of a listing of versions and delete markers.

use jiff::Timestamp;

use super::list::{StorageClass, decode, read_prefix, size, timestamp, truth};
use super::reader::{Cursor, XmlError, check_length};

/// One version of an object, or a delete marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedVersion {
    /// The key, decoded.
    pub key: String,
    /// The version; `null` for what was written while the bucket kept none.
    pub version_id: String,
    /// Whether it is the newest of its key.
    pub is_latest: bool,
    /// Whether it only says that the object was deleted: it then has no bytes.
    pub is_delete_marker: bool,
    /// The size in bytes; 0 for a delete marker.
    pub size: u64,
    /// The entity tag byte for byte.
    pub etag: Option<String>,
    /// When it was written; `None` also for a time that can't be read.
    pub last_modified: Option<Timestamp>,
    /// The storage class; `None` where the server does not tell.
    pub storage_class: Option<StorageClass>,
}

/// One page of a listing of versions, in the server's order: by key, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionList {
    /// The versions and delete markers.
    pub versions: Vec<ListedVersion>,
    /// The common prefixes, with their delimiter, decoded.
    pub prefixes: Vec<String>,
    /// The key and the version to ask the next page with; `None` on the last page.
    pub next: Option<(String, String)>,
}

/// Reads a page of `ListObjectVersions`. Keys and prefixes are decoded, once, when the document says that
/// they are url-encoded.
///
/// # Errors
/// [`XmlError`] for everything that could make the listing shorter than it is.
pub fn parse_list_versions(xml: &[u8]) -> Result<VersionList, XmlError> {
    let mut cursor = Cursor::open(xml, "ListVersionsResult")?;
    let mut page = VersionList::default();
    let (mut is_truncated, mut url_encoded) = (None, false);
    let (mut next_key, mut next_version) = (String::new(), String::new());
    while let Some(field) = cursor.child()? {
        match field.local_name().as_ref() {
            "Version" => page.versions.push(read_version(&mut cursor, false)?),
            "DeleteMarker" => page.versions.push(read_version(&mut cursor, true)?),
            "CommonPrefixes" => page.prefixes.push(read_prefix(&mut cursor)?),
            "IsTruncated" => is_truncated = Some(truth(cursor.short_text()?, "IsTruncated")?),
            "NextKeyMarker" => next_key = cursor.text()?,
            "NextVersionIdMarker" => next_version = cursor.text()?,
            "EncodingType" => url_encoded = cursor.short_text()?.trim_ascii() == "url",
            _ => cursor.skip()?,
        }
    }
    cursor.finish()?;
    if url_encoded {
        for version in &mut page.versions {
            version.key = decode(std::mem::take(&mut version.key), "Key")?;
        }
        for prefix in &mut page.prefixes {
            *prefix = decode(std::mem::take(prefix), "Prefix")?;
        }
        next_key = decode(next_key, "NextKeyMarker")?;
    }
    page.versions.iter().map(|version| &version.key).chain(&page.prefixes).try_for_each(|key| check_length(key))?;
    if is_truncated.ok_or(XmlError::Missing("IsTruncated"))? {
        if next_key.is_empty() {
            return Err(XmlError::Missing("NextKeyMarker"));
        }
        page.next = Some((next_key, next_version));
    }
    Ok(page)
}

fn read_version(cursor: &mut Cursor<'_>, is_delete_marker: bool) -> Result<ListedVersion, XmlError> {
    let (mut key, mut version_id, mut bytes) = (String::new(), String::new(), None);
    let (mut is_latest, mut etag, mut last_modified, mut storage_class) = (false, None, None, None);
    while let Some(field) = cursor.child()? {
        match field.local_name().as_ref() {
            "Key" => key = cursor.text()?,
            "VersionId" => version_id = cursor.text()?,
            "IsLatest" => is_latest = truth(cursor.short_text()?, "IsLatest")?,
            "Size" => bytes = Some(size(cursor.short_text()?).ok_or(XmlError::Value("Size"))?),
            "ETag" => etag = Some(cursor.text()?),
            "LastModified" => last_modified = timestamp(cursor.short_text()?),
            "StorageClass" => storage_class = Some(StorageClass::from_text(cursor.short_text()?)),
            _ => cursor.skip()?,
        }
    }
    if key.is_empty() {
        return Err(XmlError::Missing("Key"));
    }
    if version_id.is_empty() {
        return Err(XmlError::Missing("VersionId"));
    }
    let size = if is_delete_marker { 0 } else { bytes.ok_or(XmlError::Missing("Size"))? };
    Ok(ListedVersion { key, version_id, is_latest, is_delete_marker, size, etag, last_modified, storage_class })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::writer::element;
    use super::*;

    #[test]
    fn versions_and_delete_markers_stand_in_their_order() {
        let xml = b"<ListVersionsResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>\
            <NextKeyMarker>a%2Fb+c</NextKeyMarker><NextVersionIdMarker>v9</NextVersionIdMarker>\
            <DeleteMarker><Key>a%2Fb</Key><VersionId>v2</VersionId><IsLatest>true</IsLatest></DeleteMarker>\
            <Version><Key>a%2Fb</Key><VersionId>null</VersionId><IsLatest>false</IsLatest><Size>7</Size><ETag>&quot;e&quot;</ETag></Version>\
            <CommonPrefixes><Prefix>x%2F</Prefix></CommonPrefixes></ListVersionsResult>";
        let page = parse_list_versions(xml).unwrap();
        let seen: Vec<_> =
            page.versions.iter().map(|v| (&*v.key, &*v.version_id, v.is_latest, v.is_delete_marker, v.size)).collect();
        assert_eq!(seen, [("a/b", "v2", true, true, 0), ("a/b", "null", false, false, 7)]);
        assert_eq!(page.prefixes, ["x/"]);
        assert_eq!(page.next, Some(("a/b c".to_owned(), "v9".to_owned())));
    }

    #[test]
    fn what_would_shorten_the_listing_is_an_error() {
        for broken in [
            "<ListVersionsResult/>",
            "<ListVersionsResult><IsTruncated>true</IsTruncated></ListVersionsResult>",
            "<ListVersionsResult><IsTruncated>maybe</IsTruncated></ListVersionsResult>",
            "<ListVersionsResult><IsTruncated>false</IsTruncated><Version><Key>a</Key><Size>1</Size></Version></ListVersionsResult>",
            "<ListVersionsResult><IsTruncated>false</IsTruncated><Version><Key>a</Key><VersionId>v</VersionId></Version></ListVersionsResult>",
            "<ListVersionsResult><IsTruncated>false</IsTruncated>",
        ] {
            assert!(parse_list_versions(broken.as_bytes()).is_err(), "{broken}");
        }
    }

    proptest! {
        #[test]
        fn keys_and_versions_round_trip(found in prop::collection::vec(("[a-z&<>\"'/ ü+%]{1,9}", "[a-zA-Z0-9._]{1,9}", any::<u64>()), 0..6)) {
            let mut xml = b"<ListVersionsResult><IsTruncated>false</IsTruncated>".to_vec();
            for (key, version, size) in &found {
                xml.extend_from_slice(b"<Version>");
                element(&mut xml, "Key", key);
                element(&mut xml, "VersionId", version);
                element(&mut xml, "Size", &size.to_string());
                xml.extend_from_slice(b"</Version>");
            }
            xml.extend_from_slice(b"</ListVersionsResult>");
            let page = parse_list_versions(&xml).unwrap();
            let read: Vec<_> = page.versions.into_iter().map(|v| (v.key, v.version_id, v.size)).collect();
            prop_assert_eq!(read, found);
        }

        #[test]
        fn arbitrary_text_never_panics(text in "[<>/&;#!A-Ea-c \"'=-]{0,80}") {
            let _ = parse_list_versions(format!("<ListVersionsResult>{text}").as_bytes());
        }
    }
}

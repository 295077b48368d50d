//! Listing and creating buckets.

use jiff::Timestamp;

use super::list::timestamp;
use super::reader::{Cursor, XmlError};
use super::writer::{NAMESPACE, element};

/// One bucket of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedBucket {
    /// Its name.
    pub name: String,
    /// When it was created; `None` also for a time that can't be read.
    pub creation_date: Option<Timestamp>,
    /// The region that it is in; `None` where the server does not tell.
    pub region: Option<String>,
}

/// One page of the list of buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketPage {
    /// The buckets, in the server's order.
    pub buckets: Vec<ListedBucket>,
    /// What to ask the next page with; `None` on the last. Servers page only when they were asked to, or
    /// beyond 10,000 buckets.
    pub continuation_token: Option<String>,
}

/// Reads a page of `ListBuckets`.
///
/// # Errors
/// [`XmlError`] when the page can't be read whole.
pub fn parse_list_buckets(xml: &[u8]) -> Result<BucketPage, XmlError> {
    let mut cursor = Cursor::open(xml, "ListAllMyBucketsResult")?;
    let mut page = BucketPage::default();
    while let Some(field) = cursor.child()? {
        match field.local_name().as_ref() {
            "Buckets" => {
                cursor.recognize();
                while let Some(bucket) = cursor.child()? {
                    match bucket.local_name().as_ref() {
                        "Bucket" => page.buckets.push(read_bucket(&mut cursor)?),
                        _ => cursor.skip()?,
                    }
                }
            }
            "ContinuationToken" => {
                page.continuation_token = Some(cursor.text()?).filter(|token| !token.is_empty());
            }
            _ => cursor.skip()?,
        }
    }
    cursor.finish()?;
    Ok(page)
}

fn read_bucket(cursor: &mut Cursor<'_>) -> Result<ListedBucket, XmlError> {
    let (mut name, mut creation_date, mut region) = (None, None, None);
    while let Some(field) = cursor.child()? {
        match field.local_name().as_ref() {
            "Name" => name = Some(cursor.text()?),
            "CreationDate" => creation_date = timestamp(cursor.short_text()?),
            "BucketRegion" => region = Some(cursor.text()?).filter(|region| !region.is_empty()),
            _ => cursor.skip()?,
        }
    }
    let name = name.filter(|name| !name.is_empty()).ok_or(XmlError::Missing("Name"))?;
    Ok(ListedBucket { name, creation_date, region })
}

/// Appends the body of a `CreateBucket` in `region`: nothing for `us-east-1`, which S3 does not accept as
/// a location constraint.
pub fn write_create_bucket(out: &mut Vec<u8>, region: &str) {
    if region.is_empty() || region == "us-east-1" {
        return;
    }
    out.extend_from_slice(format!("<CreateBucketConfiguration{NAMESPACE}>").as_bytes());
    element(out, "LocationConstraint", region);
    out.extend_from_slice(b"</CreateBucketConfiguration>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_read() {
        let xml = b"<ListAllMyBucketsResult><Owner><ID>1</ID></Owner><Buckets><Bucket><Name>a</Name><CreationDate>2019-12-11T23:32:47+00:00</CreationDate></Bucket>\
            <Bucket><Name>b</Name><BucketRegion>eu-west-1</BucketRegion></Bucket></Buckets><ContinuationToken>t</ContinuationToken></ListAllMyBucketsResult>";
        let page = parse_list_buckets(xml).unwrap();
        assert_eq!(page.buckets[0].name, "a");
        assert_eq!(page.buckets[0].creation_date, Some(Timestamp::from_second(1_576_107_167).unwrap()));
        assert_eq!(
            page.buckets[1],
            ListedBucket { name: "b".into(), creation_date: None, region: Some("eu-west-1".into()) }
        );
        assert_eq!(page.continuation_token.as_deref(), Some("t"));
        assert_eq!(
            parse_list_buckets(b"<ListAllMyBucketsResult><Buckets/></ListAllMyBucketsResult>"),
            Ok(BucketPage::default())
        );
        assert!(
            parse_list_buckets(b"<ListAllMyBucketsResult><Buckets><Bucket/></Buckets></ListAllMyBucketsResult>")
                .is_err()
        );
    }

    #[test]
    fn only_other_regions_are_named() {
        let body = |region| {
            let mut out = Vec::new();
            write_create_bucket(&mut out, region);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(body("us-east-1"), "");
        assert_eq!(
            body("eu-west-1"),
            "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
             <LocationConstraint>eu-west-1</LocationConstraint></CreateBucketConfiguration>"
        );
    }
}

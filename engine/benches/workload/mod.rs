//! The hot paths, each as it runs in a transfer. Both benchmarks measure these and nothing else.

use std::hint::black_box;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wirespeed::plan::{download_parts, upload_plan};
use wirespeed::wire::request::{Method, Payload, Request, write_request};
use wirespeed::wire::response::parse_response;
use wirespeed::wire::sign::Signer;
use wirespeed::wire::xml::parse_list_objects_v2;

/// A hot path: prepares itself, then runs as often as it is told.
pub(crate) type Path = fn(rounds: usize);

/// Every hot path with the name that its records bear.
pub(crate) const PATHS: [(&str, Path); 4] = [("sign", sign), ("head", head), ("list_page", list_page), ("plan", plan)];

/// The signed head of a ranged GET that is pinned to a version.
fn sign(rounds: usize) {
    let signer = Signer::new("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG", None, "us-east-1", "s3");
    let mut out = Vec::with_capacity(1024);
    for _ in 0..rounds {
        out.clear();
        let written = write_request(&mut out, black_box(&ranged_get()), Some(&signer), now());
        assert!(written.is_ok());
        black_box(&out);
    }
}

/// The head of the response to it.
fn head(rounds: usize) {
    for _ in 0..rounds {
        assert!(matches!(black_box(parse_response(black_box(RESPONSE), Method::Get)), Ok(Some(_))));
    }
}

/// A full page of a listing.
fn list_page(rounds: usize) {
    let page = page();
    for _ in 0..rounds {
        let parsed = parse_list_objects_v2(black_box(&page));
        assert!(black_box(&parsed).as_ref().is_ok_and(|page| page.objects.len() == 1_000));
    }
}

/// 1 GiB cut into 8 MiB parts, to be read and to be written.
fn plan(rounds: usize) {
    const SIZE: u64 = 1 << 30;
    const PART: u64 = 8 << 20;
    for _ in 0..rounds {
        let ends: u64 = download_parts(black_box(0..SIZE), black_box(PART)).map(|part| black_box(part).end).sum();
        assert!(black_box(ends) > SIZE);
        let plan = upload_plan(black_box(SIZE), black_box(PART), black_box(PART));
        let parts = plan.map_or(0, |plan| (0..plan.count()).filter_map(|at| black_box(plan.part(at))).count());
        assert!(parts == 128);
    }
}

fn ranged_get() -> Request<'static> {
    Request {
        method: Method::Get,
        host: "bucket.s3.us-east-1.amazonaws.com",
        path_prefix: "",
        key: "training/shards/2026-11-20/part-00042.parquet",
        query: &[],
        headers: &[("range", "bytes=8388608-16777215"), ("if-match", "\"d41d8cd98f00b204e9800998ecf8427e-128\"")],
        content_length: None,
        payload: Payload::Empty,
    }
}

/// Some time in November 2026. The path does not read the clock, whose cost is not its own.
fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_795_132_800)
}

const RESPONSE: &[u8] = b"HTTP/1.1 206 Partial Content\r\n\
    x-amz-id-2: eftixk72aD6Ap51TnqcoF8eFidJG9Z/2mkiDFu8yU9AS1ed4OpIszj7UDNEHGran\r\n\
    x-amz-request-id: 318BC8BC148832E5\r\n\
    Date: Fri, 20 Nov 2026 16:00:00 GMT\r\n\
    Last-Modified: Thu, 19 Nov 2026 09:30:00 GMT\r\n\
    ETag: \"d41d8cd98f00b204e9800998ecf8427e-128\"\r\n\
    x-amz-server-side-encryption: AES256\r\n\
    Accept-Ranges: bytes\r\n\
    Content-Range: bytes 8388608-16777215/1073741824\r\n\
    Content-Type: application/octet-stream\r\n\
    Content-Length: 8388608\r\n\
    Server: AmazonS3\r\n\r\n";

fn page() -> Vec<u8> {
    let mut page = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>bucket</Name><Prefix></Prefix>\
         <NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</NextContinuationToken>\
         <KeyCount>1000</KeyCount><MaxKeys>1000</MaxKeys><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>",
    );
    for index in 0..1_000 {
        page.push_str(&format!(
            "<Contents><Key>training/images/class%3D{:03}/sample+{index:08}.jpeg</Key>\
             <LastModified>2026-11-19T09:30:{:02}.000Z</LastModified><ETag>&quot;{:032x}&quot;</ETag>\
             <Size>{}</Size><StorageClass>STANDARD</StorageClass></Contents>",
            index / 10,
            index % 60,
            index * 7_919,
            100_000 + index * 37,
        ));
    }
    page.push_str("</ListBucketResult>");
    page.into_bytes()
}

//! Multipart uploads.

use base64::Engine as _;
use wirespeed_origin::{Origin, Running};

use super::client::{Answer, get, put, send};

async fn server() -> Running {
    Origin::builder().anonymous(true).bucket("bucket").start().await.unwrap()
}

async fn begin(server: &Running, key: &str, headers: &[(&str, &str)]) -> String {
    let answer = send(server, "POST", &format!("/bucket/{key}?uploads"), headers, b"").await;
    answer.one("UploadId").unwrap_or_else(|| panic!("{}", answer.text()))
}

async fn part(server: &Running, key: &str, id: &str, number: u32, bytes: &[u8]) -> String {
    let answer = put(server, &format!("/bucket/{key}?partNumber={number}&uploadId={id}"), bytes).await;
    answer.header("etag").unwrap_or_else(|| panic!("{}", answer.text())).to_owned()
}

async fn complete(server: &Running, key: &str, id: &str, parts: &[(u32, &str)], headers: &[(&str, &str)]) -> Answer {
    let parts: String = parts
        .iter()
        .map(|(number, etag)| format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"))
        .collect();
    let body = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
    send(server, "POST", &format!("/bucket/{key}?uploadId={id}"), headers, body.as_bytes()).await
}

#[tokio::test]
async fn parts_become_one_object() {
    let server = server().await;
    let (one, two) = (vec![1; 5 << 20], b"the tail".to_vec());
    let id = begin(&server, "key", &[("content-type", "text/x-test"), ("x-amz-meta-a", "b")]).await;
    let second = part(&server, "key", &id, 7, &two).await;
    part(&server, "key", &id, 2, b"replaced below").await;
    let first = part(&server, "key", &id, 2, &one).await;
    assert_eq!(get(&server, "/bucket/key", &[]).await.status, 404);
    let done = complete(&server, "key", &id, &[(2, &first), (7, &second)], &[]).await;
    assert_eq!(done.status, 200, "{}", done.text());
    // md5(md5(5 MiB of 0x01) + md5("the tail")), by another implementation.
    assert_eq!(done.one("ETag").unwrap().replace("&quot;", "\""), "\"68787852ab377af992bbcee6624d4d3e-2\"");
    let whole = get(&server, "/bucket/key", &[]).await;
    assert_eq!(whole.body, [one.clone(), two.clone()].concat());
    assert_eq!((whole.header("content-type"), whole.header("x-amz-meta-a")), (Some("text/x-test"), Some("b")));
    let across = get(&server, "/bucket/key", &[("range", "bytes=5242878-5242883")]).await;
    assert_eq!(across.body, [&[1, 1], &two[..4]].concat());
    let last = get(&server, "/bucket/key?partNumber=2", &[]).await;
    assert_eq!((last.status, last.body), (206, two));
    assert_eq!(complete(&server, "key", &id, &[(2, &first)], &[]).await.code(), "NoSuchUpload");
}

#[tokio::test]
async fn what_is_wrong_with_a_completion_is_said() {
    let server = server().await;
    let id = begin(&server, "key", &[]).await;
    let one = part(&server, "key", &id, 1, b"small").await;
    let two = part(&server, "key", &id, 2, b"small too").await;
    let cases: [(&[(u32, &str)], &str); 6] = [
        (&[(1, &one), (2, &two)], "EntityTooSmall"),
        (&[(2, &two), (1, &one)], "InvalidPartOrder"),
        (&[(1, &one), (1, &one)], "InvalidPartOrder"),
        (&[(3, &one)], "InvalidPart"),
        (&[(1, &two)], "InvalidPart"),
        (&[], "MalformedXML"),
    ];
    for (parts, code) in cases {
        assert_eq!(complete(&server, "key", &id, parts, &[]).await.code(), code, "{parts:?}");
    }
    let sized = complete(&server, "key", &id, &[(1, &one)], &[("x-amz-mp-object-size", "6")]).await;
    assert_eq!(sized.code(), "InvalidRequest");
    put(&server, "/bucket/key", b"there").await;
    let exists = complete(&server, "key", &id, &[(1, &one)], &[("if-none-match", "*")]).await;
    assert_eq!((exists.status, &*exists.code()), (412, "PreconditionFailed"));
    // None of that ended the upload.
    assert_eq!(complete(&server, "key", &id, &[(1, &one)], &[("x-amz-mp-object-size", "5")]).await.status, 200);
    assert_eq!(get(&server, "/bucket/key", &[]).await.body, b"small");
    let answer = put(&server, &format!("/bucket/key?partNumber=10001&uploadId={id}"), b"x").await;
    assert_eq!(answer.code(), "InvalidArgument");
    assert_eq!(complete(&server, "key", "no-such-id", &[(1, &one)], &[]).await.code(), "NoSuchUpload");
}

#[tokio::test]
async fn uploads_and_parts_are_listed_and_aborted() {
    let server = server().await;
    let ids = [begin(&server, "a", &[]).await, begin(&server, "a", &[]).await, begin(&server, "b", &[]).await];
    for number in 1..=5 {
        part(&server, "b", &ids[2], number, b"x").await;
    }
    let page = get(&server, &format!("/bucket/b?uploadId={}&max-parts=2&part-number-marker=1", ids[2]), &[]).await;
    assert_eq!(page.all("PartNumber"), ["2", "3"]);
    assert_eq!(page.one("NextPartNumberMarker").as_deref(), Some("3"));
    let page = get(&server, "/bucket?uploads&max-uploads=1", &[]).await;
    let (key, id) = (page.one("NextKeyMarker").unwrap(), page.one("NextUploadIdMarker").unwrap());
    let rest = get(&server, &format!("/bucket?uploads&key-marker={key}&upload-id-marker={id}"), &[]).await;
    assert_eq!([page.all("UploadId"), rest.all("UploadId")].concat(), ids);
    for (key, id) in [("a", &ids[0]), ("b", &ids[2])] {
        let path = format!("/bucket/{key}?uploadId={id}");
        assert_eq!(send(&server, "DELETE", &path, &[], b"").await.status, 204);
        assert_eq!(send(&server, "DELETE", &path, &[], b"").await.code(), "NoSuchUpload");
    }
    assert_eq!(get(&server, "/bucket?uploads", &[]).await.all("UploadId"), [ids[1].clone()]);
}

#[tokio::test]
async fn a_part_can_be_copied() {
    let server = server().await;
    put(&server, "/bucket/source", b"0123456789").await;
    let id = begin(&server, "key", &[]).await;
    let copy = async |range: &str| {
        let headers = [("x-amz-copy-source", "/bucket/source"), ("x-amz-copy-source-range", range)];
        send(&server, "PUT", &format!("/bucket/key?partNumber=1&uploadId={id}"), &headers, b"").await
    };
    assert_eq!(copy("bytes=5-10").await.code(), "InvalidRange");
    assert_eq!(copy("bytes=5-").await.code(), "InvalidArgument");
    let etag = copy("bytes=2-5").await.one("ETag").unwrap().replace("&quot;", "\"");
    assert_eq!(complete(&server, "key", &id, &[(1, &etag)], &[]).await.status, 200);
    assert_eq!(get(&server, "/bucket/key", &[]).await.body, b"2345");
}

#[tokio::test]
async fn crcs_of_parts_combine_into_the_whole_objects() {
    let server = server().await;
    let bytes: Vec<u8> = (0..(5 << 20) + 1000u32).map(|n| (n % 253) as u8).collect();
    let algorithm = [("x-amz-checksum-algorithm", "CRC64NVME")];
    let id = begin(&server, "key", &algorithm).await;
    let mut etags = Vec::new();
    for (number, part) in bytes.chunks(5 << 20).enumerate() {
        let checksum = crc64(part);
        let path = format!("/bucket/key?partNumber={}&uploadId={id}", number + 1);
        let answer = send(&server, "PUT", &path, &[("x-amz-checksum-crc64nvme", &checksum)], part).await;
        etags.push(answer.header("etag").unwrap().to_owned());
    }
    let wrong = [("x-amz-checksum-crc64nvme", "AAAAAAAAAAA=")];
    let parts = [(1, &*etags[0]), (2, &*etags[1])];
    assert_eq!(complete(&server, "key", &id, &parts, &wrong).await.code(), "BadDigest");
    let done = complete(&server, "key", &id, &parts, &[]).await;
    let whole = crc64(&bytes);
    assert_eq!(done.one("ChecksumCRC64NVME").as_deref(), Some(&*whole));
    let read = get(&server, "/bucket/key", &[("x-amz-checksum-mode", "ENABLED")]).await;
    assert_eq!(read.header("x-amz-checksum-crc64nvme"), Some(&*whole));
    assert_eq!(read.header("x-amz-checksum-type"), Some("FULL_OBJECT"));
}

#[tokio::test]
async fn a_composite_checksum_may_leave_out_of_how_many_parts() {
    let server = Origin::builder().anonymous(true).bucket("bucket").start().await.unwrap();
    let part = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, b"hello") as u32;
    let both = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &part.to_be_bytes()) as u32;
    let shown = |crc: u32| base64::engine::general_purpose::STANDARD.encode(crc.to_be_bytes());
    let name = "x-amz-checksum-crc32c";
    for (promised, status) in [
        (shown(both), 200),
        (format!("{}-1", shown(both)), 200),
        (format!("{}-2", shown(both)), 400),
        (shown(part), 400),
    ] {
        let begun = send(&server, "POST", "/bucket/key?uploads", &[("x-amz-checksum-algorithm", "CRC32C")], b"").await;
        let id = begun.one("UploadId").unwrap();
        let path = format!("/bucket/key?partNumber=1&uploadId={id}");
        let etag = send(&server, "PUT", &path, &[(name, &shown(part))], b"hello").await;
        let etag = etag.header("etag").unwrap();
        let document = format!(
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag><ChecksumCRC32C>{}\
             </ChecksumCRC32C></Part></CompleteMultipartUpload>",
            shown(part)
        );
        let path = format!("/bucket/key?uploadId={id}");
        let answer = send(&server, "POST", &path, &[(name, &promised)], document.as_bytes()).await;
        assert_eq!(answer.status, status, "{promised}: {}", answer.text());
        if status == 200 {
            assert_eq!(answer.one("ChecksumCRC32C").unwrap(), format!("{}-1", shown(both)));
        }
    }
}

/// CRC-64/NVME in base64.
fn crc64(bytes: &[u8]) -> String {
    let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, bytes);
    base64::engine::general_purpose::STANDARD.encode(crc.to_be_bytes())
}

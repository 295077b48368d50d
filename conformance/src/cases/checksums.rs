//! Checksums: stored, told and compared, for each algorithm.

use crc_fast::{CrcAlgorithm, checksum};
use sha2::{Digest, Sha256};
use wirespeed::Method;

use super::multipart::{Uploading, named};
use crate::case::{Case, Checked, Cost, Finding, case, ensure, refused, same};
use crate::store::{PART, Store, base64, content, text};

const BODY: &str = "what the sums are of";
/// SHA-1 of [`BODY`], computed with `sha1sum`.
const SHA1_OF_BODY: [u8; 20] = [
    0x7f, 0x0b, 0xda, 0xa6, 0x98, 0xf3, 0x8a, 0x1b, 0x7b, 0x5e, 0xc8, 0x98, 0xea, 0x59, 0x2c, 0xab, 0x4d, 0xbe, 0x39,
    0xa6,
];

const ALGORITHMS: [&str; 5] = ["crc32", "crc32c", "crc64nvme", "sha1", "sha256"];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for algorithm in ALGORITHMS {
        cases.push(case(format!("checksums/{algorithm}"), Cost::new(1, 2, 0), move |s| Box::pin(kept(s, algorithm))));
        cases.push(case(format!("checksums/{algorithm}-wrong"), Cost::new(1, 1, 0), move |s| {
            Box::pin(wrong(s, algorithm))
        }));
    }
    let (two, parts) = (PART as u64, Cost::new(4, 2, 1));
    for algorithm in ["crc32", "crc32c", "crc64nvme"] {
        cases.push(case(format!("checksums/{algorithm}-of-the-whole-upload"), parts.and_bytes(two, two), move |s| {
            Box::pin(full_object(s, algorithm))
        }));
    }
    cases.push(case("checksums/whole-upload-wrong", Cost::new(3, 1, 1), |s| Box::pin(full_object_wrong(s))));
    cases.push(case("checksums/part-wrong", Cost::new(2, 0, 1), |s| Box::pin(part_wrong(s))));
    cases.push(case("checksums/composite-sha256", Cost::new(3, 1, 0), |s| Box::pin(composite(s))));
    cases.push(case("checksums/composite-promised", Cost::new(3, 1, 0), |s| Box::pin(composite_promised(s))));
    cases.push(case("checksums/composite-wrong", Cost::new(3, 1, 1), |s| Box::pin(composite_wrong(s))));
    cases.push(case("checksums/not-told-unasked", Cost::new(1, 1, 0), |s| Box::pin(not_told(s))));
    cases.push(case("checksums/not-told-for-a-range", Cost::new(1, 1, 0), |s| Box::pin(not_for_a_range(s))));
    cases
}

fn sum(algorithm: &str, body: &[u8]) -> String {
    let low = |bits: u64| (bits as u32).to_be_bytes();
    match algorithm {
        "crc32" => base64(&low(checksum(CrcAlgorithm::Crc32IsoHdlc, body))),
        "crc32c" => base64(&low(checksum(CrcAlgorithm::Crc32Iscsi, body))),
        "crc64nvme" => base64(&checksum(CrcAlgorithm::Crc64Nvme, body).to_be_bytes()),
        "sha1" => base64(&SHA1_OF_BODY),
        _ => base64(&Sha256::digest(body)),
    }
}

fn header(algorithm: &str) -> String {
    format!("x-amz-checksum-{algorithm}")
}

async fn kept(s: &Store, algorithm: &str) -> Checked {
    let (name, right) = (header(algorithm), sum(algorithm, BODY.as_bytes()));
    s.raw(Method::Put, "key").header(&name, &right).body(BODY).send().await?;
    for method in [Method::Head, Method::Get] {
        let answer = s.raw(method, "key").header("x-amz-checksum-mode", "ENABLED").send().await?;
        same(&format!("the sum by {method:?}"), answer.header(&name), Some(right.as_str()))?;
    }
    Ok(())
}

async fn wrong(s: &Store, algorithm: &str) -> Checked {
    let right = sum(algorithm, BODY.as_bytes());
    // Another sum of the same form.
    let wrong = if right.starts_with('A') { right.replacen('A', "B", 1) } else { format!("A{}", &right[1..]) };
    let put = s.raw(Method::Put, "key").header(header(algorithm), wrong).body(BODY).send().await;
    refused("a PUT with a wrong sum", put, &[400])?;
    refused("GET of what was refused", s.get("key").await, &[404])?;
    Ok(())
}

/// The sum of the whole object, which is the one that a download can be checked with.
async fn full_object(s: &Store, algorithm: &str) -> Checked {
    let body = content(PART + 777, 31);
    let name = header(algorithm);
    let how =
        [("x-amz-checksum-algorithm", algorithm.to_uppercase()), ("x-amz-checksum-type", "FULL_OBJECT".to_owned())];
    let how = how.each_ref().map(|(name, value)| (*name, value.as_str()));
    let upload = Uploading::start(s, "key", &how).await?;
    let element = format!("Checksum{}", algorithm.to_uppercase());
    let mut parts = String::new();
    for (number, part) in [(1, &body[..PART]), (2, &body[PART..])] {
        let part_sum = sum(algorithm, part);
        let answer = upload.part_with(number, part.to_vec(), &[(&name, &part_sum)]).await?;
        let etag = answer.header("etag").unwrap_or_default();
        parts.push_str(&named(number, etag, &format!("<{element}>{part_sum}</{element}>")));
    }
    let whole = sum(algorithm, &body);
    let headers = [(name.as_str(), whole.as_str()), ("x-amz-checksum-type", "FULL_OBJECT")];
    let answer = upload.complete_with(&parts, &headers).await?;
    text(&answer.body, "ETag")?;
    let head = s.raw(Method::Head, "key").header("x-amz-checksum-mode", "ENABLED").send().await?;
    same("the sum by HEAD", head.header(&name), Some(whole.as_str()))?;
    same("its type", head.header("x-amz-checksum-type"), Some("FULL_OBJECT"))
}

async fn full_object_wrong(s: &Store) -> Checked {
    let how = [("x-amz-checksum-algorithm", "CRC64NVME"), ("x-amz-checksum-type", "FULL_OBJECT")];
    let upload = Uploading::start(s, "key", &how).await?;
    let (name, right) = (header("crc64nvme"), sum("crc64nvme", BODY.as_bytes()));
    let answer = upload.part_with(1, BODY, &[(&name, &right)]).await?;
    let part =
        named(1, answer.header("etag").unwrap_or_default(), &format!("<ChecksumCRC64NVME>{right}</ChecksumCRC64NVME>"));
    let other = sum("crc64nvme", b"something else");
    let headers = [(name.as_str(), other.as_str()), ("x-amz-checksum-type", "FULL_OBJECT")];
    let completed = refused("completing with a wrong sum", upload.complete_with(&part, &headers).await, &[400]);
    let _ = upload.abort().await;
    completed?;
    refused("GET of what was refused", s.get("key").await, &[404])?;
    Ok(())
}

async fn part_wrong(s: &Store) -> Checked {
    let upload = Uploading::start(s, "key", &[("x-amz-checksum-algorithm", "CRC32C")]).await?;
    let other = sum("crc32c", b"something else");
    let part =
        refused("a part with a wrong sum", upload.part_with(1, BODY, &[(&header("crc32c"), &other)]).await, &[400]);
    upload.abort().await?;
    part.map(drop)
}

/// A sum of the parts' sums, which says how many there were.
async fn composite(s: &Store) -> Checked {
    let (upload, part) = of_one_part(s).await?;
    upload.complete_with(&part, &[]).await?;
    composite_told(s).await
}

/// The client may promise the composite checksum when it completes the upload, as minio-go does.
async fn composite_promised(s: &Store) -> Checked {
    let (upload, part) = of_one_part(s).await?;
    let promised = base64(&Sha256::digest(Sha256::digest(BODY)));
    let answer = upload.complete_with(&part, &[(&header("sha256"), &promised)]).await?;
    text(&answer.body, "ETag")?;
    composite_told(s).await
}

async fn composite_wrong(s: &Store) -> Checked {
    let (upload, part) = of_one_part(s).await?;
    let other = base64(&Sha256::digest(Sha256::digest("something else")));
    let answer = upload.complete_with(&part, &[(&header("sha256"), &other)]).await;
    let completed = refused("completing with a wrong sum", answer, &[400]);
    let _ = upload.abort().await;
    completed?;
    refused("GET of what was refused", s.get("key").await, &[404])?;
    Ok(())
}

/// An upload with SHA-256 and one part, and how that is named.
async fn of_one_part(s: &Store) -> Result<(Uploading<'_>, String), Finding> {
    let upload = Uploading::start(s, "key", &[("x-amz-checksum-algorithm", "SHA256")]).await?;
    let right = sum("sha256", BODY.as_bytes());
    let answer = upload.part_with(1, BODY, &[(&header("sha256"), &right)]).await?;
    let etag = answer.header("etag").unwrap_or_default();
    Ok((upload, named(1, etag, &format!("<ChecksumSHA256>{right}</ChecksumSHA256>"))))
}

async fn composite_told(s: &Store) -> Checked {
    let expected = base64(&Sha256::digest(Sha256::digest(BODY)));
    let head = s.raw(Method::Head, "key").header("x-amz-checksum-mode", "ENABLED").send().await?;
    same("the sum by HEAD", head.header(&header("sha256")), Some(format!("{expected}-1").as_str()))
}

async fn not_told(s: &Store) -> Checked {
    s.raw(Method::Put, "key").header(header("crc32"), sum("crc32", BODY.as_bytes())).body(BODY).send().await?;
    let head = s.raw(Method::Head, "key").send().await?;
    same("the sum", head.header(&header("crc32")), None)
}

/// A sum beside a range would be taken for the range's own.
async fn not_for_a_range(s: &Store) -> Checked {
    s.raw(Method::Put, "key").header(header("crc32"), sum("crc32", BODY.as_bytes())).body(BODY).send().await?;
    let answer =
        s.raw(Method::Get, "key").header("x-amz-checksum-mode", "ENABLED").header("range", "bytes=0-3").send().await?;
    ensure!(answer.status == 206, "the status is {}", answer.status);
    same("the sum", answer.header(&header("crc32")), None)
}

//! Multipart uploads: create, upload a part, complete, abort, list parts, list uploads.

use std::sync::atomic::{AtomicU64, Ordering};

use s3s::dto::*;
use s3s::{S3Error, S3Request, S3Response, S3Result, s3_error};

use super::encryption::show_encryption;
use super::list::Encoding;
use super::put;
use super::reply::{etag, head_of, owner, refused};
use super::{Protocol, checksums, conditions, encryption, writable};
use crate::store::bucket::Stored;
use crate::store::object::{Algorithm, Encryption, now};
use crate::store::uploads::{Combination, Incomplete, Named, Upload};

/// The most parts or uploads of one page, as in S3.
const PAGE: i32 = 1000;

impl Protocol {
    pub(super) async fn create_multipart_upload(
        &self,
        mut request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let input = &mut request.input;
        let bucket = self.bucket(&input.bucket)?;
        let stored = writable(&bucket)?;
        let default = self.default_checksum.then_some(Algorithm::Crc64Nvme);
        let algorithm = checksums::named(input.checksum_algorithm.as_ref())?.or(default);
        let checksum = algorithm.map(|algorithm| combination(algorithm, input.checksum_type.as_ref())).transpose()?;
        let id = fresh_id();
        let head = head_of!(input);
        let encryption = head.encryption.clone();
        let upload = Upload { head, initiated: now(), checksum, parts: Default::default() };
        stored.uploads.lock().begin(&input.key, id.clone(), upload);
        let mut output = CreateMultipartUploadOutput {
            bucket: Some(input.bucket.clone()),
            key: Some(input.key.clone()),
            upload_id: Some(id),
            checksum_algorithm: input.checksum_algorithm.take(),
            checksum_type: checksum.map(|(_, how)| checksum_type(how)),
            ..Default::default()
        };
        show_encryption!(output, &encryption);
        Ok(S3Response::new(output))
    }

    pub(super) async fn upload_part(
        &self,
        mut request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        let input = &mut request.input;
        let number = part_number(input.part_number)?;
        let bucket = self.bucket(&input.bucket)?;
        let stored = writable(&bucket)?;
        let customer = encryption::customer!(input)?;
        let (algorithm, encryption) = upload_of(stored, &input.key, &input.upload_id)?;
        encryption::unlock(encryption.as_ref(), customer)?;
        let upload = put::Upload {
            body: input.body.take(),
            length: input.content_length,
            md5: input.content_md5.take(),
            checksum: checksums::given!(input),
            algorithm,
            trailers: request.trailing_headers.take(),
        };
        let received = self.receive(stored, upload, &request.headers, request.credentials.is_some()).await?;
        let mut output = UploadPartOutput { e_tag: Some(etag(&received.etag)), ..Default::default() };
        checksums::show!(output, received.checksum.as_ref());
        show_encryption!(output, &encryption);
        if !stored.uploads.lock().add(&request.input.key, &request.input.upload_id, number, received) {
            return Err(no_such_upload());
        }
        Ok(S3Response::new(output))
    }

    pub(super) async fn complete_multipart_upload(
        &self,
        mut request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let input = &mut request.input;
        let bucket = self.bucket(&input.bucket)?;
        let stored = writable(&bucket)?;
        let condition = conditions::of_write(input.if_match.take(), input.if_none_match.take())?;
        let promised = checksums::given!(input);
        let parts = input.multipart_upload.take().and_then(|upload| upload.parts).unwrap_or_default();
        let named = parts.into_iter().map(|mut part| Named {
            number: part.part_number.unwrap_or(0),
            etag: part.e_tag.as_ref().map(|etag| etag.value().to_owned()).unwrap_or_default(),
            checksum: checksums::given!(part),
        });
        let named: Vec<_> = named.collect();
        // Held until the object stands, so that of two completions one finds nothing.
        let mut uploads = stored.uploads.lock();
        let object =
            uploads.assemble(&input.key, &input.upload_id, &named, self.least_part, self.etag).map_err(incomplete)?;
        if input.mpu_object_size.is_some_and(|size| size != object.size as i64) {
            return Err(s3_error!(
                InvalidRequest,
                "The provided 'x-amz-mp-object-size' header does not match what was computed: {} bytes",
                object.size
            ));
        }
        if let (Some(promised), Some(computed)) = (&promised, &object.checksum)
            && promised.algorithm == computed.algorithm
            && !computed.is_promised_by(&promised.value)
        {
            return Err(s3_error!(
                BadDigest,
                "The {:?} you specified did not match the calculated checksum",
                promised.algorithm
            ));
        }
        let object = stored.insert(&input.key, object, &condition).map_err(refused)?;
        uploads.finish(&input.key, &input.upload_id, &named);
        drop(uploads);
        let mut output = CompleteMultipartUploadOutput {
            location: Some(format!("/{}/{}", input.bucket, input.key)),
            bucket: Some(input.bucket.clone()),
            key: Some(input.key.clone()),
            e_tag: Some(etag(&object.etag)),
            ..Default::default()
        };
        output.version_id = object.version.clone();
        if let Some(Encryption::Managed { algorithm, key }) = &object.head.encryption {
            output.server_side_encryption = Some(algorithm.clone().into());
            output.ssekms_key_id = key.clone();
        }
        checksums::show!(output, object.checksum.as_ref());
        output.checksum_type = object.checksum.as_ref().map(|checksum| {
            checksum_type(if checksum.composite { Combination::Composite } else { Combination::FullObject })
        });
        Ok(S3Response::new(output))
    }

    pub(super) async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let input = request.input;
        let bucket = self.bucket(&input.bucket)?;
        if !writable(&bucket)?.uploads.lock().abort(&input.key, &input.upload_id) {
            return Err(no_such_upload());
        }
        Ok(S3Response::new(AbortMultipartUploadOutput::default()))
    }

    pub(super) async fn list_parts(&self, request: S3Request<ListPartsInput>) -> S3Result<S3Response<ListPartsOutput>> {
        let input = request.input;
        let bucket = self.bucket(&input.bucket)?;
        let uploads = writable(&bucket)?.uploads.lock();
        let upload = uploads.get(&input.key, &input.upload_id).ok_or_else(no_such_upload)?;
        let limit = input.max_parts.unwrap_or(PAGE).clamp(0, PAGE);
        let marker = input.part_number_marker.unwrap_or(0);
        let mut later = upload.parts.iter().filter(|(number, _)| i32::from(**number) > marker);
        let mut parts = Vec::new();
        for (number, kept) in later.by_ref().take(limit as usize) {
            let mut part = Part {
                part_number: Some(i32::from(*number)),
                e_tag: Some(etag(&kept.received.etag)),
                size: Some(kept.received.size as i64),
                last_modified: Some(kept.modified.into()),
                ..Default::default()
            };
            checksums::show!(part, kept.received.checksum.as_ref());
            parts.push(part);
        }
        let truncated = later.next().is_some();
        let output = ListPartsOutput {
            bucket: Some(input.bucket),
            key: Some(input.key),
            upload_id: Some(input.upload_id),
            part_number_marker: Some(marker),
            next_part_number_marker: parts.last().and_then(|part| part.part_number).filter(|_| truncated),
            max_parts: Some(limit),
            is_truncated: Some(truncated),
            parts: Some(parts),
            owner: Some(owner()),
            storage_class: Some(StorageClass::from_static(StorageClass::STANDARD)),
            ..Default::default()
        };
        Ok(S3Response::new(output))
    }

    pub(super) async fn list_multipart_uploads(
        &self,
        request: S3Request<ListMultipartUploadsInput>,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        let input = request.input;
        let bucket = self.bucket(&input.bucket)?;
        let encoding = Encoding::of(input.encoding_type.as_ref())?;
        let uploads = writable(&bucket)?.uploads.lock();
        let limit = input.max_uploads.unwrap_or(PAGE).clamp(0, PAGE);
        let prefix = input.prefix.unwrap_or_default();
        let marker = input.key_marker.unwrap_or_default();
        let delimiter = input.delimiter.filter(|delimiter| !delimiter.is_empty());
        let rolled_up = |key: &str| -> Option<String> {
            let delimiter = delimiter.as_deref()?;
            let at = key.get(prefix.len()..)?.find(delimiter)?;
            key.get(..prefix.len() + at + delimiter.len()).map(str::to_owned)
        };
        let (mut listed, mut prefixes) = (Vec::new(), Vec::<String>::new());
        let (mut last, mut truncated) = (None, false);
        for ((key, id), upload) in uploads.after(&marker, input.upload_id_marker.as_deref()) {
            if !key.starts_with(&prefix) {
                continue;
            }
            let common = rolled_up(key);
            let repeated = common.as_ref().is_some_and(|common| prefixes.last() == Some(common));
            let past = common.as_ref().is_some_and(|common| *common == marker);
            if !repeated && !past {
                if listed.len() + prefixes.len() == limit as usize {
                    truncated = limit > 0;
                    break;
                }
                match common.clone() {
                    Some(common) => prefixes.push(common),
                    None => listed.push(MultipartUpload {
                        key: Some(encoding.apply(key)),
                        upload_id: Some(id.clone()),
                        initiated: Some(upload.initiated.into()),
                        owner: Some(owner()),
                        storage_class: Some(StorageClass::from_static(StorageClass::STANDARD)),
                        ..Default::default()
                    }),
                }
            }
            last = Some((common.unwrap_or_else(|| key.clone()), id.clone()));
        }
        let (next_key, next_id) = last.filter(|_| truncated).unzip();
        let output = ListMultipartUploadsOutput {
            bucket: Some(input.bucket),
            prefix: Some(encoding.apply(&prefix)),
            delimiter: delimiter.as_deref().map(|delimiter| encoding.apply(delimiter)),
            key_marker: Some(encoding.apply(&marker)),
            upload_id_marker: input.upload_id_marker.clone(),
            next_key_marker: next_key.as_deref().map(|key| encoding.apply(key)),
            next_upload_id_marker: next_id,
            max_uploads: Some(limit),
            is_truncated: Some(truncated),
            encoding_type: input.encoding_type,
            common_prefixes: Some(
                prefixes.iter().map(|prefix| CommonPrefix { prefix: Some(encoding.apply(prefix)) }).collect(),
            ),
            uploads: Some(listed),
            ..Default::default()
        };
        Ok(S3Response::new(output))
    }
}

pub(super) fn part_number(number: i32) -> S3Result<u16> {
    u16::try_from(number)
        .ok()
        .filter(|number| (1..=10_000).contains(number))
        .ok_or_else(|| s3_error!(InvalidArgument, "Part number must be an integer between 1 and 10000, inclusive"))
}

/// The checksum that the parts of an upload have, and what it is said to be encrypted with.
pub(super) fn upload_of(stored: &Stored, key: &str, id: &str) -> S3Result<(Option<Algorithm>, Option<Encryption>)> {
    let uploads = stored.uploads.lock();
    let upload = uploads.get(key, id).ok_or_else(no_such_upload)?;
    Ok((upload.checksum.map(|(algorithm, _)| algorithm), upload.head.encryption.clone()))
}

pub(super) fn no_such_upload() -> S3Error {
    s3_error!(
        NoSuchUpload,
        "The specified multipart upload does not exist. The upload ID might be invalid, or the multipart upload might \
         have been aborted or completed."
    )
}

fn incomplete(why: Incomplete) -> S3Error {
    match why {
        Incomplete::NoSuchUpload => no_such_upload(),
        Incomplete::Empty => s3_error!(MalformedXML, "You must specify at least one part"),
        Incomplete::Order => s3_error!(
            InvalidPartOrder,
            "The list of parts was not in ascending order. Parts must be ordered by part number."
        ),
        Incomplete::InvalidPart(number) => s3_error!(
            InvalidPart,
            "One or more of the specified parts could not be found. The part may not have been uploaded, or the \
             specified entity tag may not match the part's entity tag. Part {number}."
        ),
        Incomplete::TooSmall { number, size, least } => s3_error!(
            EntityTooSmall,
            "Your proposed upload is smaller than the minimum allowed size: part {number} has {size} bytes, the least \
             is {least}"
        ),
    }
}

/// How an upload's checksums combine: S3's default for its algorithm, or what was asked, where that can be.
fn combination(algorithm: Algorithm, asked: Option<&ChecksumType>) -> S3Result<(Algorithm, Combination)> {
    let how = match (algorithm, asked.map(ChecksumType::as_str)) {
        (Algorithm::Sha1 | Algorithm::Sha256, Some(ChecksumType::FULL_OBJECT))
        | (Algorithm::Crc64Nvme, Some(ChecksumType::COMPOSITE)) => {
            return Err(s3_error!(InvalidRequest, "This checksum type can't be had with this checksum algorithm"));
        }
        (Algorithm::Crc64Nvme, _) | (_, Some(ChecksumType::FULL_OBJECT)) => Combination::FullObject,
        _ => Combination::Composite,
    };
    Ok((algorithm, how))
}

fn checksum_type(how: Combination) -> ChecksumType {
    ChecksumType::from_static(match how {
        Combination::Composite => ChecksumType::COMPOSITE,
        Combination::FullObject => ChecksumType::FULL_OBJECT,
    })
}

/// Upload ids need only differ: from each other, and from those of an earlier run.
fn fresh_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos() as u64;
    format!("{since:016x}{:08x}", NEXT.fetch_add(1, Ordering::Relaxed))
}

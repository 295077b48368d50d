//! Multipart uploads, request by request.

use bytes::Bytes;
use wirespeed::{Method, RawAnswer};

use crate::case::{Case, Checked, Cost, Finding, case, ensure, refused, same};
use crate::store::{PART, Store, content, text, texts};

pub(super) fn cases() -> Vec<Case> {
    let large = |parts: u64| (parts * PART as u64, parts * PART as u64);
    let (one, two) = (large(1), large(2));
    vec![
        case("multipart/out-of-order", Cost::new(5, 4, 0).and_bytes(two.0, two.1), |s| Box::pin(out_of_order(s))),
        case("multipart/numbers-with-gaps", Cost::new(4, 3, 0).and_bytes(one.0, one.1), |s| Box::pin(gaps(s))),
        case("multipart/a-part-replaced", Cost::new(4, 1, 0), |s| Box::pin(replaced(s))),
        case("multipart/unseen-until-complete", Cost::new(5, 2, 0), |s| Box::pin(unseen(s))),
        case("multipart/etag-counts-parts", Cost::new(3, 0, 0), |s| Box::pin(etag(s))),
        case("multipart/read-by-part-number", Cost::new(4, 2, 0).and_bytes(one.0, 0), |s| Box::pin(by_part(s))),
        case("multipart/parts-listed", Cost::new(3, 1, 1), |s| Box::pin(parts_listed(s))),
        case("multipart/uploads-listed", Cost::new(4, 0, 1), |s| Box::pin(uploads_listed(s))),
        case("multipart/aborted", Cost::new(5, 1, 2), |s| Box::pin(aborted(s))),
        case("multipart/wrong-etag", Cost::new(3, 1, 1), |s| Box::pin(wrong_etag(s))),
        case("multipart/a-part-that-is-not-there", Cost::new(3, 0, 1), |s| Box::pin(no_such_part(s))),
        case("multipart/parts-named-out-of-order", Cost::new(4, 0, 1).and_bytes(one.0, 0), |s| {
            Box::pin(named_out_of_order(s))
        }),
        case("multipart/a-small-part-inside", Cost::new(4, 0, 1), |s| Box::pin(small_part(s))),
        case("multipart/no-parts", Cost::new(2, 0, 1), |s| Box::pin(no_parts(s))),
        case("multipart/part-number-0", Cost::new(2, 0, 1), |s| Box::pin(part_number(s, 0))),
        case("multipart/part-number-10001", Cost::new(2, 0, 1), |s| Box::pin(part_number(s, 10_001))),
        case("multipart/unknown-upload", Cost::new(2, 0, 1), |s| Box::pin(unknown(s))),
        case("multipart/wrong-object-size", Cost::new(3, 1, 1), |s| Box::pin(wrong_size(s))),
        case("multipart/metadata-of-the-start", Cost::new(3, 1, 0), |s| Box::pin(metadata(s))),
    ]
}

/// A multipart upload under way.
pub(super) struct Uploading<'a> {
    store: &'a Store,
    name: &'a str,
    id: String,
}

impl<'a> Uploading<'a> {
    pub(super) async fn start(
        store: &'a Store,
        name: &'a str,
        headers: &[(&str, &str)],
    ) -> Result<Uploading<'a>, Finding> {
        let mut raw = store.raw(Method::Post, name).query("uploads", "");
        for (header, value) in headers {
            raw = raw.header(*header, *value);
        }
        let id = text(&raw.send().await?.body, "UploadId")?;
        Ok(Uploading { store, name, id })
    }

    pub(super) async fn part(&self, number: u32, body: impl Into<Bytes>) -> Result<String, Finding> {
        let answer = self.part_with(number, body, &[]).await?;
        let etag = answer.header("etag").map(str::to_owned);
        etag.ok_or_else(|| Finding::Differs("a part was stored without an ETag".to_owned()))
    }

    pub(super) async fn part_with(
        &self,
        number: u32,
        body: impl Into<Bytes>,
        headers: &[(&str, &str)],
    ) -> wirespeed::Result<RawAnswer> {
        let mut raw = self.store.raw(Method::Put, self.name);
        for (header, value) in headers {
            raw = raw.header(*header, *value);
        }
        raw.query("partNumber", number.to_string()).query("uploadId", &self.id).body(body).send().await
    }

    /// Completes it with these parts, their sums where there are some, and these headers. An error
    /// within a success comes as one, as far as its name goes.
    pub(super) async fn complete_with(&self, parts: &str, headers: &[(&str, &str)]) -> wirespeed::Result<RawAnswer> {
        let document = format!(
            "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{parts}</CompleteMultipartUpload>"
        );
        let mut raw = self.store.raw(Method::Post, self.name).query("uploadId", &self.id);
        for (header, value) in headers {
            raw = raw.header(*header, *value);
        }
        raw.header("content-type", "application/xml").body(document).send().await
    }

    pub(super) async fn complete(
        &self,
        parts: &[(u32, &str)],
        headers: &[(&str, &str)],
    ) -> wirespeed::Result<RawAnswer> {
        let parts: String = parts.iter().map(|(number, etag)| named(*number, etag, "")).collect();
        self.complete_with(&parts, headers).await
    }

    pub(super) async fn abort(&self) -> wirespeed::Result<RawAnswer> {
        self.store.raw(Method::Delete, self.name).query("uploadId", &self.id).send().await
    }
}

/// `<Part>` of CompleteMultipartUpload, `more` being further elements.
pub(super) fn named(number: u32, etag: &str, more: &str) -> String {
    let etag = etag.replace('"', "&quot;");
    format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag>{more}</Part>")
}

/// What completes must say so, and not only by its status.
fn completed(answer: &RawAnswer) -> Checked {
    let document = String::from_utf8_lossy(&answer.body);
    ensure!(!document.contains("<Error>"), "200 with an error: {document}");
    text(&answer.body, "ETag").map(drop)
}

async fn out_of_order(s: &Store) -> Checked {
    let body = content(2 * PART + 1000, 21);
    let upload = Uploading::start(s, "key", &[]).await?;
    let third = upload.part(3, body[2 * PART..].to_vec()).await?;
    let first = upload.part(1, body[..PART].to_vec()).await?;
    let second = upload.part(2, body[PART..2 * PART].to_vec()).await?;
    completed(&upload.complete(&[(1, &first), (2, &second), (3, &third)], &[]).await?)?;
    ensure!(s.get("key").await?.body == *body, "other bytes came back");
    Ok(())
}

async fn gaps(s: &Store) -> Checked {
    let body = content(PART + 10, 22);
    let upload = Uploading::start(s, "key", &[]).await?;
    let first = upload.part(5, body[..PART].to_vec()).await?;
    let second = upload.part(10_000, body[PART..].to_vec()).await?;
    completed(&upload.complete(&[(5, &first), (10_000, &second)], &[]).await?)?;
    ensure!(s.get("key").await?.body == *body, "other bytes came back");
    Ok(())
}

async fn replaced(s: &Store) -> Checked {
    let upload = Uploading::start(s, "key", &[]).await?;
    upload.part(1, "first").await?;
    let second = upload.part(1, "second").await?;
    completed(&upload.complete(&[(1, &second)], &[]).await?)?;
    same("the object", &*s.get("key").await?.body, b"second")
}

async fn unseen(s: &Store) -> Checked {
    let upload = Uploading::start(s, "key", &[]).await?;
    let etag = upload.part(1, "content").await?;
    refused("GET before it is complete", s.get("key").await, &[404])?;
    same("the listing before it is complete", s.names().await?, [""; 0])?;
    completed(&upload.complete(&[(1, &etag)], &[]).await?)?;
    same("the listing", s.names().await?, ["key"])
}

async fn etag(s: &Store) -> Checked {
    let upload = Uploading::start(s, "key", &[]).await?;
    let part = upload.part(1, "content").await?;
    let answer = upload.complete(&[(1, &part)], &[]).await?;
    completed(&answer)?;
    let etag = text(&answer.body, "ETag")?;
    ensure!(etag.trim_matches('"').ends_with("-1"), "the ETag {etag} does not count the part");
    Ok(())
}

async fn by_part(s: &Store) -> Checked {
    let body = content(PART + 500, 23);
    let upload = Uploading::start(s, "key", &[]).await?;
    let first = upload.part(1, body[..PART].to_vec()).await?;
    let second = upload.part(2, body[PART..].to_vec()).await?;
    completed(&upload.complete(&[(1, &first), (2, &second)], &[]).await?)?;
    let answer = s.raw(Method::Get, "key").query("partNumber", "2").send().await?;
    same("the status", answer.status, 206)?;
    ensure!(answer.body == body[PART..], "other bytes came back");
    same("x-amz-mp-parts-count", answer.header("x-amz-mp-parts-count"), Some("2"))
}

async fn parts_listed(s: &Store) -> Checked {
    let upload = Uploading::start(s, "key", &[]).await?;
    upload.part(7, "seven").await?;
    upload.part(2, "two").await?;
    let answer = s.raw(Method::Get, "key").query("uploadId", &upload.id).send().await?;
    same("the numbers", texts(&answer.body, "PartNumber")?, ["2", "7"])?;
    same("the sizes", texts(&answer.body, "Size")?, ["3", "5"])?;
    upload.abort().await?;
    Ok(())
}

async fn uploads_listed(s: &Store) -> Checked {
    let upload = Uploading::start(s, "key", &[]).await?;
    let list = || s.raw_bucket(Method::Get).query("uploads", "").query("prefix", s.key("key")).send();
    let answer = list().await?;
    same("the keys", texts(&answer.body, "Key")?, [s.key("key")])?;
    same("the ids", texts(&answer.body, "UploadId")?, [upload.id.as_str()])?;
    upload.abort().await?;
    same("the keys after aborting", texts(&list().await?.body, "Key")?, [""; 0])
}

async fn aborted(s: &Store) -> Checked {
    let upload = Uploading::start(s, "key", &[]).await?;
    let etag = upload.part(1, "content").await?;
    upload.abort().await?;
    let part = upload.part_with(2, "more", &[]).await;
    same("the code", refused("a part after aborting", part, &[404])?.as_deref(), Some("NoSuchUpload"))?;
    refused("completing after aborting", upload.complete(&[(1, &etag)], &[]).await, &[404])?;
    refused("GET", s.get("key").await, &[404])?;
    Ok(())
}

/// Completing must be refused with this code; no object may come of it.
async fn refuses(s: &Store, upload: &Uploading<'_>, parts: &[(u32, &str)], code: &str) -> Checked {
    let found = refused("completing", upload.complete(parts, &[]).await, &[400]);
    // Whatever came of it, the next case wants none of it.
    let _ = upload.abort().await;
    same("the code", found?.as_deref(), Some(code))?;
    let _ = s;
    Ok(())
}

async fn wrong_etag(s: &Store) -> Checked {
    let upload = Uploading::start(s, "key", &[]).await?;
    upload.part(1, "content").await?;
    refuses(s, &upload, &[(1, "\"00000000000000000000000000000000\"")], "InvalidPart").await?;
    refused("GET", s.get("key").await, &[404])?;
    Ok(())
}

async fn no_such_part(s: &Store) -> Checked {
    let upload = Uploading::start(s, "key", &[]).await?;
    let etag = upload.part(1, "content").await?;
    refuses(s, &upload, &[(2, &etag)], "InvalidPart").await
}

async fn named_out_of_order(s: &Store) -> Checked {
    let upload = Uploading::start(s, "key", &[]).await?;
    let first = upload.part(1, content(PART, 24)).await?;
    let second = upload.part(2, "second").await?;
    refuses(s, &upload, &[(2, &second), (1, &first)], "InvalidPartOrder").await
}

async fn small_part(s: &Store) -> Checked {
    let upload = Uploading::start(s, "key", &[]).await?;
    let first = upload.part(1, "small").await?;
    let second = upload.part(2, "second").await?;
    refuses(s, &upload, &[(1, &first), (2, &second)], "EntityTooSmall").await
}

async fn no_parts(s: &Store) -> Checked {
    let upload = Uploading::start(s, "key", &[]).await?;
    refuses(s, &upload, &[], "MalformedXML").await
}

async fn part_number(s: &Store, number: u32) -> Checked {
    let upload = Uploading::start(s, "key", &[]).await?;
    let part = refused("the part", upload.part_with(number, "content", &[]).await, &[400]);
    upload.abort().await?;
    same("the code", part?.as_deref(), Some("InvalidArgument"))
}

async fn unknown(s: &Store) -> Checked {
    let upload = Uploading { store: s, name: "key", id: "00000000-0000-0000-0000-000000000000".to_owned() };
    let part = refused("a part", upload.part_with(1, "content", &[]).await, &[404])?;
    same("the code", part.as_deref(), Some("NoSuchUpload"))?;
    refused("completing", upload.complete(&[(1, "\"0\"")], &[]).await, &[404])?;
    refused("aborting", upload.abort().await, &[404])?;
    Ok(())
}

async fn wrong_size(s: &Store) -> Checked {
    let upload = Uploading::start(s, "key", &[]).await?;
    let etag = upload.part(1, "content").await?;
    let completed = upload.complete(&[(1, &etag)], &[("x-amz-mp-object-size", "8")]).await;
    let refusal = refused("completing with a size of 8 instead of 7", completed, &[400]);
    let _ = upload.abort().await;
    refusal?;
    refused("GET", s.get("key").await, &[404])?;
    Ok(())
}

async fn metadata(s: &Store) -> Checked {
    let headers = [("content-type", "text/x-conformance"), ("x-amz-meta-colour", "blue")];
    let upload = Uploading::start(s, "key", &headers).await?;
    let etag = upload.part(1, "content").await?;
    completed(&upload.complete(&[(1, &etag)], &[]).await?)?;
    let info = s.head("key").await?;
    same("the type", info.content_type.as_deref(), Some("text/x-conformance"))?;
    same("the metadata", info.metadata, [("colour".to_owned(), "blue".to_owned())])
}

//! The AWS SDK for Rust under the lab's protocol, for the drivers that stand on it. It has no splitting of its
//! own: one large object is moved in parts that the driver makes.

use std::ops::Range;

use anyhow::{Context, Result};
use aws_sdk_s3::Client;
use aws_sdk_s3::config::{
    BehaviorVersion, Credentials, Region, RequestChecksumCalculation, ResponseChecksumValidation,
};
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use lab_driver::ranges::Fetch;
use lab_driver::{Call, Plan};

/// Where the server is, and as whom it is asked.
pub struct Site<'a> {
    /// URL of the server; over TLS the certificates of SSL_CERT_FILE are trusted.
    pub endpoint: &'a str,
    /// Region that signatures name.
    pub region: &'a str,
    /// Access key id.
    pub access_key: &'a str,
    /// Secret access key.
    pub secret_key: &'a str,
    /// Whether the bucket stands in the path.
    pub path_style: bool,
    /// Whether bytes are checked wherever the server can; otherwise only where it must be.
    pub checksums: bool,
}

impl<'a> Site<'a> {
    /// That of a plan. Checksums are on unless the plan says otherwise, as the SDK has them.
    pub fn of(plan: &'a Plan, access_key: &'a str, secret_key: &'a str) -> Site<'a> {
        let checksums = plan.checksums.unwrap_or(true);
        let path_style = plan.path_style;
        Site { endpoint: &plan.endpoint, region: &plan.region, access_key, secret_key, path_style, checksums }
    }
}

/// The SDK's configuration, but for its HTTP client.
pub fn config(site: &Site<'_>) -> aws_sdk_s3::config::Builder {
    let (sent, received) = if site.checksums {
        (RequestChecksumCalculation::WhenSupported, ResponseChecksumValidation::WhenSupported)
    } else {
        (RequestChecksumCalculation::WhenRequired, ResponseChecksumValidation::WhenRequired)
    };
    aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(site.endpoint)
        .region(Region::new(site.region.to_owned()))
        .credentials_provider(Credentials::new(site.access_key, site.secret_key, None, None, "driver"))
        .force_path_style(site.path_style)
        .request_checksum_calculation(sent)
        .response_checksum_validation(received)
}

/// A client with the SDK's own HTTP client; stalled-stream protection stays on as it comes.
pub fn connect(site: &Site<'_>) -> Client {
    let http = aws_smithy_http_client::Builder::new();
    let http = if site.endpoint.starts_with("https:") {
        http.tls_provider(Provider::Rustls(CryptoMode::AwsLc)).build_https()
    } else {
        http.build_http()
    };
    Client::from_conf(config(site).http_client(http).build())
}

/// A client and its bucket.
pub struct Sdk {
    /// The client.
    pub client: Client,
    /// The bucket.
    pub bucket: String,
}

impl Sdk {
    /// The client of a plan, by the credentials of the environment.
    pub fn open(plan: &Plan) -> Result<Sdk> {
        let (access_key, secret_key) = lab_driver::credentials()?;
        let client = connect(&Site::of(plan, &access_key, &secret_key));
        Ok(Sdk { client, bucket: plan.bucket.clone() })
    }

    /// One request, or an upload in parts of `part` bytes with `in_flight` of them at once.
    pub async fn put(
        &self,
        call: &mut Call<'_>,
        body: Option<Bytes>,
        part: Option<u64>,
        in_flight: usize,
    ) -> Result<()> {
        let key = call.item.key.as_str();
        match (body, part) {
            (Some(body), Some(part)) => {
                self.put_in_parts(key, &body, part as usize, in_flight).await?;
                call.whole(&body);
            }
            (Some(body), None) => {
                let put = self.client.put_object().bucket(&self.bucket).key(key);
                put.body(body.clone().into()).send().await?;
                call.whole(&body);
            }
            (None, _) => {
                let body = ByteStream::from_path(call.path()).await?;
                self.client.put_object().bucket(&self.bucket).key(key).body(body).send().await?;
                call.moved(call.item.size);
            }
        }
        Ok(())
    }

    async fn put_in_parts(&self, key: &str, body: &Bytes, part: usize, in_flight: usize) -> Result<()> {
        let begun = self.client.create_multipart_upload().bucket(&self.bucket).key(key).send().await?;
        let id = begun.upload_id.context("the server named no upload")?;
        let mut parts: Vec<CompletedPart> = stream::iter((0..body.len()).step_by(part).zip(1..))
            .map(|(from, number)| {
                let bytes = body.slice(from..body.len().min(from + part));
                let upload = self.client.upload_part().bucket(&self.bucket).key(key).upload_id(&id);
                let sending = tokio::spawn(upload.part_number(number).body(bytes.into()).send());
                async move {
                    let sent = sending.await??;
                    let part = CompletedPart::builder().part_number(number).set_e_tag(sent.e_tag);
                    anyhow::Ok(part.set_checksum_crc32(sent.checksum_crc32).build())
                }
            })
            .buffer_unordered(in_flight)
            .try_collect()
            .await?;
        parts.sort_unstable_by_key(CompletedPart::part_number);
        let parts = CompletedMultipartUpload::builder().set_parts(Some(parts)).build();
        let upload = self.client.complete_multipart_upload().bucket(&self.bucket).key(key).upload_id(id);
        upload.multipart_upload(parts).send().await?;
        Ok(())
    }

    /// Page after page.
    pub async fn list(&self, call: &mut Call<'_>) -> Result<()> {
        let list = self.client.list_objects_v2().bucket(&self.bucket).prefix(&call.item.prefix);
        let mut pages = list.into_paginator().send();
        while let Some(page) = pages.next().await {
            call.begun();
            page?.contents().iter().filter_map(|object| object.key()).for_each(|key| call.key(key));
        }
        Ok(())
    }
}

impl Fetch for Sdk {
    async fn fetch<T>(&self, key: &str, range: Option<Range<u64>>, mut take: T) -> Result<()>
    where
        T: FnMut(Bytes) -> Result<()> + Send,
    {
        let range = range.map(|range| format!("bytes={}-{}", range.start, range.end - 1));
        let answer = self.client.get_object().bucket(&self.bucket).key(key).set_range(range).send().await?;
        let mut body = answer.body;
        while let Some(chunk) = body.try_next().await.context("body")? {
            take(chunk)?;
        }
        Ok(())
    }
}

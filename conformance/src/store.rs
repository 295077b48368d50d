//! The store as one case sees it: a client, a bucket, and a prefix that nobody else writes to.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use wirespeed::{Client, Method, Raw, Result};

use crate::case::Finding;

/// The least size of a part that is not the last.
pub(crate) const PART: usize = 5 << 20;

/// Where one case works.
pub(crate) struct Store {
    pub(crate) client: Client,
    /// The same without credentials.
    pub(crate) anonymous: Client,
    pub(crate) bucket: String,
    /// Ends with `/`; empty in a bucket of the case's own.
    pub(crate) prefix: String,
}

impl Store {
    /// The whole key.
    pub(crate) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The name within the prefix.
    pub(crate) fn name<'a>(&self, key: &'a str) -> &'a str {
        key.strip_prefix(&self.prefix).unwrap_or(key)
    }

    /// A request about an object, by the engine's raw verb.
    pub(crate) fn raw(&self, method: Method, name: &str) -> Raw {
        self.client.raw(method, &self.bucket, self.key(name))
    }

    /// A request about the bucket.
    pub(crate) fn raw_bucket(&self, method: Method) -> Raw {
        self.client.raw(method, &self.bucket, "")
    }

    pub(crate) async fn put(&self, name: &str, body: impl Into<Bytes>) -> Result<wirespeed::PutOutcome> {
        self.client.put(&self.bucket, self.key(name)).bytes(body).await
    }

    pub(crate) async fn get(&self, name: &str) -> Result<wirespeed::Object> {
        self.client.get(&self.bucket, self.key(name)).buffer().await
    }

    pub(crate) async fn head(&self, name: &str) -> Result<wirespeed::ObjectInfo> {
        self.client.head(&self.bucket, self.key(name)).await
    }

    pub(crate) async fn delete(&self, name: &str) -> Result<()> {
        self.client.delete(&self.bucket, self.key(name)).await.map(drop)
    }

    /// A listing of what is under `prefix` within the case's own.
    pub(crate) fn list(&self, prefix: &str) -> wirespeed::List {
        self.client.list(&self.bucket).prefix(self.key(prefix))
    }

    /// The names of all objects under the prefix, in the order that they came in.
    pub(crate) async fn names(&self) -> Result<Vec<String>> {
        Ok(self.listed(self.list("")).await?.0)
    }

    /// Names, common prefixes, and how many objects each page had.
    pub(crate) async fn listed(&self, list: wirespeed::List) -> Result<(Vec<String>, Vec<String>, Vec<usize>)> {
        let mut pages = list.pages();
        let (mut names, mut prefixes, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(page) = pages.next().await {
            let page = page?;
            sizes.push(page.objects.len() + page.prefixes.len());
            names.extend(page.objects.iter().map(|object| self.name(&object.key).to_owned()));
            prefixes.extend(page.prefixes.iter().map(|prefix| self.name(prefix).to_owned()));
        }
        Ok((names, prefixes, sizes))
    }
}

/// Bytes in which no two places look alike.
pub(crate) fn content(length: usize, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bytes = vec![0; length];
    random.fill(&mut bytes);
    bytes
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// The text of every element `name`, its entities replaced. The documents of S3 have no attributes
/// but on their root, and no element in one of its own name.
pub(crate) fn texts(document: &[u8], name: &str) -> std::result::Result<Vec<String>, Finding> {
    let document = String::from_utf8_lossy(document);
    let (start, end) = (format!("<{name}>"), format!("</{name}>"));
    let mut found = Vec::new();
    let mut rest = &*document;
    while let Some((_, after)) = rest.split_once(&start) {
        let Some((text, after)) = after.split_once(&end) else {
            return Err(Finding::Differs(format!("<{name}> has no end in {document}")));
        };
        let text = quick_xml::escape::unescape(text)
            .map_err(|error| Finding::Differs(format!("<{name}> cannot be read: {error}")))?;
        found.push(text.into_owned());
        rest = after;
    }
    Ok(found)
}

/// The text of the first element `name`.
pub(crate) fn text(document: &[u8], name: &str) -> std::result::Result<String, Finding> {
    let first = texts(document, name)?.into_iter().next();
    first.ok_or_else(|| Finding::Differs(format!("no <{name}> in {}", String::from_utf8_lossy(document))))
}

//! The client: the public verbs, each the beginning of a builder.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::buffer;
use crate::config::{Config, LEAST_BANDWIDTH, MOST_CONCURRENCY};
use crate::credentials::{ChainSettings, Credentials, CredentialsSource, Variable};
use crate::error::Result;
use crate::metrics::{Metrics, Observer};
use crate::net::{ConnectionPool, Endpoint};
use crate::transfer::bucket::{self, ListBuckets};
use crate::transfer::cleanup::UnfinishedUpload;
use crate::transfer::copy::Copy;
use crate::transfer::copy_many::CopyMany;
use crate::transfer::delete::{Delete, DeleteMany};
use crate::transfer::get::Get;
use crate::transfer::get_many::GetMany;
use crate::transfer::get_ranges::GetRanges;
use crate::transfer::head::Head;
use crate::transfer::head_many::HeadMany;
use crate::transfer::list::List;
use crate::transfer::list_parts::ListParts;
use crate::transfer::presign::Presign;
use crate::transfer::put::Put;
use crate::transfer::put_many::PutMany;
use crate::transfer::raw::{Method, Raw};
use crate::transfer::uploads::{AbortUpload, ListUploads};
use crate::transfer::{Engine, Places};

/// How long pooled memory may lie idle before the system gets it back.
const MEMORY_IDLE: Duration = Duration::from_secs(10);

/// A client of one endpoint: its connections, its memory and its budget. Cheap to clone; the clones
/// are one client.
///
/// All verbs run inside a tokio runtime with its IO and time drivers on.
///
/// ```no_run
/// # async fn example() -> wirespeed::Result<()> {
/// let client = wirespeed::Client::builder().endpoint_url("http://127.0.0.1:9000").build()?;
/// client.put("bucket", "key").bytes("content").await?;
/// let object = client.get("bucket", "key").buffer().await?;
/// assert_eq!(&*object.body, b"content");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client(Arc<Engine>);

impl Client {
    /// A client to be configured.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A client configured by the environment alone.
    ///
    /// # Errors
    /// Those of [`ClientBuilder::build`].
    pub fn from_environment() -> Result<Client> {
        ClientBuilder::default().build()
    }

    /// What is in effect.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// What has been done so far.
    pub fn metrics(&self) -> Metrics {
        self.0.metrics()
    }

    /// Reads an object, or a range of it, or one of its versions.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client) -> wirespeed::Result<()> {
    /// let old = client.get("bucket", "key").version("3HL4kqtJlcpXroDTDmJ").buffer().await?;
    /// let end = client.get("bucket", "log").suffix(64 << 10).buffer().await?;
    /// let head = client.get("bucket", "large").range(..1024).buffer().await?;
    /// let (mine, length, _) = client.get("bucket", "key").into_owned(vec![0; 4096]).await?;
    /// let info = client.get("bucket", "large").file("large.bin").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn get(&self, bucket: impl Into<String>, key: impl Into<String>) -> Get {
        Get::new(Arc::clone(&self.0), bucket.into(), key.into())
    }

    /// Reads many objects in one call.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client, keys: Vec<String>) -> wirespeed::Result<()> {
    /// let mut objects = client.get_many("bucket").buffers(keys)?;
    /// while let Some((index, object)) = objects.next().await {
    ///     println!("{index}: {} bytes", object?.body.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_many(&self, bucket: impl Into<String>) -> GetMany {
        GetMany::new(Arc::clone(&self.0), bucket.into())
    }

    /// Reads many ranges of one object or of many, and fetches together what lies near.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client) -> wirespeed::Result<()> {
    /// let columns = [("a.parquet".to_owned(), 4..8192), ("a.parquet".to_owned(), 9000..20_000)];
    /// let mut ranges = client.get_ranges("bucket").max_gap(64 << 10).buffers(columns.into())?;
    /// while let Some((index, range)) = ranges.next().await {
    ///     println!("{index}: {} bytes", range?.body.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_ranges(&self, bucket: impl Into<String>) -> GetRanges {
        GetRanges::new(Arc::clone(&self.0), bucket.into())
    }

    /// Writes an object: one request, or a multipart upload, by its size.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client) -> wirespeed::Result<()> {
    /// let outcome = client.put("bucket", "report.csv").file("report.csv").await?;
    /// println!("{} in {} parts", outcome.etag.unwrap_or_default(), outcome.parts);
    /// # Ok(())
    /// # }
    /// ```
    pub fn put(&self, bucket: impl Into<String>, key: impl Into<String>) -> Put {
        Put::new(Arc::clone(&self.0), bucket.into(), key.into())
    }

    /// Writes many objects in one call.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client) -> wirespeed::Result<()> {
    /// let files = ["a.bin", "b.bin"].map(|name| (name.into(), format!("data/{name}")));
    /// let mut uploads = client.put_many("bucket").files(files)?;
    /// while let Some((index, outcome)) = uploads.next().await {
    ///     println!("{index}: {:?}", outcome?.etag);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn put_many(&self, bucket: impl Into<String>) -> PutMany {
        PutMany::new(Arc::clone(&self.0), bucket.into())
    }

    /// What the server says of an object, without its bytes.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client) -> wirespeed::Result<()> {
    /// let info = client.head("bucket", "key").await?;
    /// println!("{} bytes, {:?}", info.size, info.last_modified);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) where there is none.
    pub fn head(&self, bucket: impl Into<String>, key: impl Into<String>) -> Head {
        Head::new(Arc::clone(&self.0), bucket.into(), key.into())
    }

    /// What the server says of many objects, without their bytes, in one call.
    ///
    /// ```no_run
    /// # async fn example(
    /// #     client: wirespeed::Client,
    /// #     keys: impl futures_core::Stream<Item = String> + Send + 'static,
    /// # ) -> wirespeed::Result<()> {
    /// let mut told = client.head_many("bucket").checksum().keys_from(keys)?;
    /// while let Some((index, info)) = told.next().await {
    ///     println!("{index}: {:?}", info?.checksum);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn head_many(&self, bucket: impl Into<String>) -> HeadMany {
        HeadMany::new(Arc::clone(&self.0), bucket.into())
    }

    /// Copies an object within the server: one request up to 5 GB, by parts above.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client) -> wirespeed::Result<()> {
    /// let outcome = client.copy("bucket", "a", "other", "b").storage_class("STANDARD_IA").await?;
    /// println!("{} in {} parts", outcome.etag.unwrap_or_default(), outcome.parts);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) where there is no source,
    /// [`ErrorKind::Precondition`](crate::ErrorKind::Precondition) where it changed meanwhile,
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) where source and target are one object and
    /// nothing is to change. A copy by parts that fails is aborted.
    pub fn copy(
        &self,
        source_bucket: impl Into<String>,
        source_key: impl Into<String>,
        bucket: impl Into<String>,
        key: impl Into<String>,
    ) -> Copy {
        let source = (source_bucket.into(), source_key.into());
        Copy::new(Arc::clone(&self.0), source, (bucket.into(), key.into()))
    }

    /// Copies many objects within the server in one call, to keys of one bucket.
    ///
    /// ```no_run
    /// # async fn example(
    /// #     client: wirespeed::Client,
    /// #     found: impl futures_core::Stream<Item = wirespeed::CopyItem> + Send + 'static,
    /// # ) -> wirespeed::Result<()> {
    /// let mut copies = client.copy_many("bucket").storage_class("STANDARD_IA").items_from(found)?;
    /// while let Some((index, copy)) = copies.next().await {
    ///     println!("{index}: {:?}", copy?.etag);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_many(&self, bucket: impl Into<String>) -> CopyMany {
        CopyMany::new(Arc::clone(&self.0), bucket.into())
    }

    /// Signs a URL that lets whoever has it send one request. Nothing is sent here.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client) -> wirespeed::Result<()> {
    /// use std::time::Duration;
    ///
    /// let download = client.presign("bucket", "a.csv").expires_in(Duration::from_secs(600)).get().await?;
    /// let upload = client.presign("bucket", "b.csv").content_type("text/csv").put().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn presign(&self, bucket: impl Into<String>, key: impl Into<String>) -> Presign {
        Presign::new(Arc::clone(&self.0), bucket.into(), key.into())
    }

    /// Lists the keys of a bucket.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client) -> wirespeed::Result<()> {
    /// let mut pages = client.list("bucket").prefix("logs/").delimiter("/").pages();
    /// while let Some(page) = pages.next().await {
    ///     for object in page?.objects {
    ///         println!("{} {}", object.size, object.key);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(&self, bucket: impl Into<String>) -> List {
        List::new(Arc::clone(&self.0), bucket.into())
    }

    /// Deletes an object, or one version of it. Deleting what does not exist succeeds, as in S3.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client) -> wirespeed::Result<()> {
    /// let outcome = client.delete("bucket", "key").await?;
    /// if outcome.delete_marker {
    ///     println!("its versions are still there, behind {}", outcome.version_id.unwrap_or_default());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As their kinds say.
    pub fn delete(&self, bucket: impl Into<String>, key: impl Into<String>) -> Delete {
        Delete::new(Arc::clone(&self.0), bucket.into(), key.into())
    }

    /// Deletes many objects, 1,000 a request, and returns those that the server would not delete.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client, keys: Vec<String>) -> wirespeed::Result<()> {
    /// for failure in client.delete_many("bucket", keys).await? {
    ///     eprintln!("{}: {} {}", failure.key, failure.code, failure.message);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Where a whole request fails; some objects may be gone then.
    pub fn delete_many(&self, bucket: impl Into<String>, keys: Vec<String>) -> DeleteMany {
        DeleteMany::new(Arc::clone(&self.0), bucket.into(), keys)
    }

    /// Lists multipart uploads that were begun and neither completed nor aborted. Their parts are
    /// stored, and paid for.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client) -> wirespeed::Result<()> {
    /// let mut pages = client.list_uploads("bucket").prefix("logs/").pages();
    /// while let Some(page) = pages.next().await {
    ///     for upload in page?.uploads {
    ///         client.abort_upload("bucket", &upload.key, &upload.upload_id).await?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list_uploads(&self, bucket: impl Into<String>) -> ListUploads {
        ListUploads::new(Arc::clone(&self.0), bucket.into())
    }

    /// Lists the parts that a multipart upload has so far, which need not be sent again.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client, upload_id: &str) -> wirespeed::Result<()> {
    /// let mut pages = client.list_parts("bucket", "large.bin", upload_id).pages();
    /// while let Some(page) = pages.next().await {
    ///     for part in page?.parts {
    ///         println!("part {}: {} bytes", part.number, part.size);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list_parts(
        &self,
        bucket: impl Into<String>,
        key: impl Into<String>,
        upload_id: impl Into<String>,
    ) -> ListParts {
        ListParts::new(Arc::clone(&self.0), bucket.into(), key.into(), upload_id.into())
    }

    /// Aborts a multipart upload, as [`Client::list_uploads`] finds them.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) where there is no such upload, or no more.
    pub fn abort_upload(
        &self,
        bucket: impl Into<String>,
        key: impl Into<String>,
        upload_id: impl Into<String>,
    ) -> AbortUpload {
        AbortUpload::new(Arc::clone(&self.0), bucket.into(), key.into(), upload_id.into())
    }

    /// Makes a bucket in the client's region.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client) -> wirespeed::Result<()> {
    /// client.create_bucket("bucket").await?;
    /// client.put("bucket", "key").bytes("content").await?;
    /// client.delete("bucket", "key").await?;
    /// client.delete_bucket("bucket").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where it exists.
    pub async fn create_bucket(&self, bucket: impl AsRef<str>) -> Result<()> {
        bucket::create(&self.0, bucket.as_ref()).await
    }

    /// Removes an empty bucket.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where it is not empty.
    pub async fn delete_bucket(&self, bucket: impl AsRef<str>) -> Result<()> {
        bucket::delete(&self.0, bucket.as_ref()).await
    }

    /// The buckets that the credentials can see.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client) -> wirespeed::Result<()> {
    /// for bucket in client.list_buckets().prefix("logs-").await? {
    ///     println!("{}", bucket.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As their kinds say.
    pub fn list_buckets(&self) -> ListBuckets {
        ListBuckets::new(Arc::clone(&self.0))
    }

    /// Multipart uploads that this client began and that are neither complete nor known to be aborted: those under way,
    /// and those that were dropped and could not be aborted. After [`Client::settle`], what is left behind.
    pub fn unfinished_uploads(&self) -> Vec<UnfinishedUpload> {
        self.0.cleanups.unfinished()
    }

    /// A request as the caller writes it, for the operations that have no verb here. Without a key it
    /// is about the bucket, without a bucket about the service.
    ///
    /// ```no_run
    /// # async fn example(client: wirespeed::Client) -> wirespeed::Result<()> {
    /// use wirespeed::Method;
    /// let tags = client.raw(Method::Get, "bucket", "key").query("tagging", "").send().await?;
    /// println!("{}", String::from_utf8_lossy(&tags.body));
    /// # Ok(())
    /// # }
    /// ```
    pub fn raw(&self, method: Method, bucket: impl Into<String>, key: impl Into<String>) -> Raw {
        Raw::new(Arc::clone(&self.0), method, bucket.into(), key.into())
    }

    /// Waits, for at most `patience`, until what dropped operations left behind is cleaned up:
    /// multipart uploads to be aborted.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) where that takes longer.
    pub async fn settle(&self, patience: Duration) -> Result<()> {
        self.0.settle(patience).await
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("config", &self.0.config).finish_non_exhaustive()
    }
}

/// A client that is being configured. What is set here wins over the environment.
#[derive(Default)]
pub struct ClientBuilder {
    config: Config,
    named: HashSet<String>,
    credentials: Option<CredentialsSource>,
    observer: Option<Arc<dyn Observer>>,
}

impl ClientBuilder {
    /// Sets one of [`CONFIG_KEYS`](crate::CONFIG_KEYS) from text.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) where there is no such setting, or it cannot
    /// have that value.
    pub fn set(mut self, name: &str, value: &str) -> Result<ClientBuilder> {
        self.config.set(name, value)?;
        self.named.insert(name.to_owned());
        Ok(self)
    }

    /// The URL of the endpoint, such as `http://127.0.0.1:9000`.
    pub fn endpoint_url(mut self, url: impl Into<String>) -> ClientBuilder {
        self.config.endpoint_url = Some(url.into());
        self.name("endpoint_url")
    }

    /// The region that requests are signed for.
    pub fn region(mut self, region: impl Into<String>) -> ClientBuilder {
        self.config.region = region.into();
        self.name("region")
    }

    /// Requests in flight at once, 1 to 10,000.
    pub fn concurrency(mut self, requests: usize) -> ClientBuilder {
        self.config.concurrency = requests.clamp(1, MOST_CONCURRENCY);
        self.name("concurrency")
    }

    /// The length of one range of a download and of one part of an upload, in bytes; at least 64 KiB.
    pub fn part_size(mut self, bytes: u64) -> ClientBuilder {
        self.config.part_size = bytes.max(64 << 10);
        self.name("part_size")
    }

    /// Bytes in flight and undelivered at once; at least 4 MiB.
    pub fn memory(mut self, bytes: u64) -> ClientBuilder {
        self.config.memory = bytes.max(4 << 20);
        self.name("memory")
    }

    /// Bytes of bodies a second, up and down together, at least 1 KiB; `None` for no limit. A low limit lowers the
    /// requests in flight as well: to one for each 64 KiB a second.
    pub fn bandwidth_limit(mut self, bytes_a_second: impl Into<Option<u64>>) -> ClientBuilder {
        self.config.bandwidth_limit = bytes_a_second.into().map(|rate| rate.max(LEAST_BANDWIDTH));
        self.name("bandwidth_limit")
    }

    /// Trusts the certificate authorities in this PEM file, instead of the system's.
    pub fn ca_bundle(mut self, path: impl Into<std::path::PathBuf>) -> ClientBuilder {
        self.config.ca_bundle = Some(path.into());
        self.name("ca_bundle")
    }

    /// Takes any certificate for any name where `verify` is false: anybody on the way can then read
    /// and change everything.
    pub fn verify_tls(mut self, verify: bool) -> ClientBuilder {
        self.config.verify_tls = verify;
        self.name("verify_tls")
    }

    /// The profile of the AWS configuration files that settings and credentials come from; the keys of
    /// the environment then do not count.
    pub fn profile(mut self, name: impl Into<String>) -> ClientBuilder {
        self.config.profile = Some(name.into());
        self.name("profile")
    }

    /// Signs with these credentials, instead of those that would be found.
    pub fn credentials(mut self, credentials: Credentials) -> ClientBuilder {
        self.credentials = Some(CredentialsSource::Static(credentials));
        self
    }

    /// Signs nothing.
    pub fn anonymous(mut self) -> ClientBuilder {
        self.credentials = Some(CredentialsSource::Anonymous);
        self
    }

    /// Is told of every request.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> ClientBuilder {
        self.observer = Some(observer);
        self
    }

    /// Makes the client. Nothing is sent and no file is read yet: a profile, and credentials that
    /// neither the caller nor the environment gives, are looked for with the first request.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) where a setting is unusable,
    /// [`ErrorKind::Denied`](crate::ErrorKind::Denied) where the environment has half an access key.
    pub fn build(self) -> Result<Client> {
        let ClientBuilder { mut config, named, credentials, observer } = self;
        let variable: Variable = Arc::new(|name| std::env::var(name).ok());
        let mut decided: Vec<String> = config
            .fill_from_environment(|name| named.contains(name), &*variable)?
            .into_iter()
            .map(str::to_owned)
            .collect();
        let profile_is_explicit = named.contains("profile") && config.profile.is_some();
        decided.extend(named);
        config.keep_parts_within_memory();
        let is_decided = |name: &str| decided.iter().any(|decided| decided == name);
        let endpoint = Endpoint::new(&config)?;
        let settings = ChainSettings {
            profile: config.profile.clone(),
            profile_is_explicit,
            region: is_decided("region").then(|| config.region.clone()),
            use_fips: config.use_fips_endpoint,
            use_dual_stack: config.use_dualstack_endpoint,
            https_proxy: config.https_proxy.clone(),
            no_proxy: config.no_proxy.clone(),
            ca_bundle: config.ca_bundle.clone(),
        };
        let source = credentials.unwrap_or(CredentialsSource::Default);
        let identity = source.identity(settings, Arc::clone(&variable))?;
        // What is said here leaves a profile nothing to decide, unless somebody named one.
        let is_settled = config.profile.is_none() && is_decided("endpoint_url") && is_decided("region");
        let places = Places::new(is_settled.then_some(endpoint), decided, variable);
        let connections = ConnectionPool::new(&config);
        let memory = buffer::Pool::new(buffer::PoolConfig {
            retain_bytes: usize::try_from(config.memory).unwrap_or(usize::MAX),
            idle: MEMORY_IDLE,
            huge_pages: config.huge_pages,
        });
        let engine = Engine::new(config, places, identity, connections, memory, observer);
        Ok(Client(Arc::new(engine)))
    }

    fn name(mut self, setting: &str) -> ClientBuilder {
        self.named.insert(setting.to_owned());
        self
    }
}

//! What a server is to be like, and starting it.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use s3s::config::{S3Config, StaticConfigProvider};
use s3s::service::S3ServiceBuilder;
use s3s::validation::{AwsNameValidation, NameValidation};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;

use crate::access::{Access, Keys};
use crate::document::{self, Documents};
use crate::host::Domain;
use crate::model::claims::Model;
use crate::model::fault::{Fault, Faults, Schedule};
use crate::model::latency::Latency;
use crate::model::rate::Rates;
use crate::model::throttle::Throttle;
use crate::protocol::Protocol;
use crate::running::{Accepting, Running};
use crate::service::Shared;
use crate::stats::Counters;
use crate::store::directory::Directory;
use crate::store::intake::EtagKind;
use crate::store::synthetic::{Series, Synthetic};
use crate::store::{BucketRefusal, Store};
use crate::tls::Tls;

/// The least part of a multipart upload, but for the last: 5 MiB, as in S3.
const LEAST_PART: u64 = 5 << 20;

/// Connections that may wait to be accepted: of a crowd beyond it each has to try again a second later.
const BACKLOG: u32 = 4096;

/// An embedded S3 server.
#[derive(Debug)]
pub struct Origin;

impl Origin {
    /// A server on a free port of loopback, in memory, without buckets, for requests signed with
    /// `wirespeed` / `wirespeed-secret`.
    pub fn builder() -> Builder {
        Builder {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            keys: vec![("wirespeed".to_owned(), "wirespeed-secret".to_owned(), None)],
            account: "123456789012".to_owned(),
            default_checksum: false,
            checksum_on_covering_range: false,
            anonymous: false,
            region: "us-east-1".to_owned(),
            domain: None,
            etag: EtagKind::default(),
            least_part: LEAST_PART,
            directory: None,
            buckets: Vec::new(),
            discarding: Vec::new(),
            synthetic: BTreeMap::new(),
            faults: Schedule::default(),
            clock_skew: 0,
            model: Model::default(),
            tls: None,
            control_from_anywhere: false,
        }
    }
}

/// What a server is to be like.
#[must_use]
pub struct Builder {
    listen: SocketAddr,
    keys: Vec<(String, String, Option<String>)>,
    account: String,
    default_checksum: bool,
    checksum_on_covering_range: bool,
    anonymous: bool,
    region: String,
    domain: Option<String>,
    etag: EtagKind,
    least_part: u64,
    directory: Option<PathBuf>,
    buckets: Vec<String>,
    discarding: Vec<String>,
    synthetic: BTreeMap<String, Vec<Series>>,
    faults: Schedule,
    clock_skew: i64,
    model: Model,
    tls: Option<Tls>,
    control_from_anywhere: bool,
}

impl Builder {
    /// Listens on this address; port 0 takes a free one.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = address;
        self
    }

    /// The keys that requests are signed with, in place of all others.
    pub fn keys(mut self, access_key: impl Into<String>, secret_key: impl Into<String>) -> Self {
        self.keys = vec![(access_key.into(), secret_key.into(), None)];
        self
    }

    /// More keys that requests may be signed with, and the session token that must come with them.
    pub fn temporary_keys(
        mut self,
        access_key: impl Into<String>,
        secret_key: impl Into<String>,
        token: impl Into<String>,
    ) -> Self {
        self.keys.push((access_key.into(), secret_key.into(), Some(token.into())));
        self
    }

    /// The account that owns every bucket, as `x-amz-expected-bucket-owner` has it; `123456789012` unless told.
    pub fn account(mut self, id: impl Into<String>) -> Self {
        self.account = id.into();
        self
    }

    /// Computes the CRC-64/NVME of every upload that brings no checksum, as S3 does: at a cost of 0.02 to 0.04
    /// core-seconds a GiB.
    pub fn default_checksum(mut self, computed: bool) -> Self {
        self.default_checksum = computed;
        self
    }

    /// Shows an object's checksum with a range that covers the whole of it. S3 does not.
    pub fn checksum_on_covering_range(mut self, shown: bool) -> Self {
        self.checksum_on_covering_range = shown;
        self
    }

    /// Lets unsigned requests in. Signatures that are given are still checked.
    pub fn anonymous(mut self, anonymous: bool) -> Self {
        self.anonymous = anonymous;
        self
    }

    /// The region that the server says it is in. Signatures for any region are taken.
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.region = region.into();
        self
    }

    /// Takes `bucket.NAME` in the Host header for a bucket, besides path style.
    pub fn domain(mut self, name: impl Into<String>) -> Self {
        self.domain = Some(name.into());
        self
    }

    /// What ETags are made of.
    pub fn etag(mut self, etag: EtagKind) -> Self {
        self.etag = etag;
        self
    }

    /// The least size, in bytes, of any part of a multipart upload but the last.
    pub fn least_part(mut self, bytes: u64) -> Self {
        self.least_part = bytes;
        self
    }

    /// Keeps objects in files under this directory, and serves those already there.
    pub fn directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.directory = Some(path.into());
        self
    }

    /// Makes a bucket, if it is not there yet.
    pub fn bucket(mut self, name: impl Into<String>) -> Self {
        self.buckets.push(name.into());
        self
    }

    /// Makes a bucket that hashes and counts what is put into it and drops the bytes: its objects are listed and
    /// have a size and an ETag, and can't be read.
    pub fn discarding_bucket(mut self, name: impl Into<String>) -> Self {
        self.discarding.push(name.into());
        self
    }

    /// Makes a bucket whose objects are computed, or adds to one.
    pub fn synthetic(mut self, name: impl Into<String>, series: Series) -> Self {
        self.synthetic.entry(name.into()).or_default().push(series);
        self
    }

    /// Misbehaves so, besides what it was already told.
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults = self.faults.fault(fault);
        self
    }

    /// Misbehaves so, and in no other way.
    pub fn faults(mut self, schedule: Schedule) -> Self {
        self.faults = schedule;
        self
    }

    /// Has a clock that is wrong by so many seconds: requests from more than 15 minutes before or after its time are
    /// refused, and Date tells its time.
    pub fn clock_skew(mut self, seconds: i64) -> Self {
        self.clock_skew = seconds;
        self
    }

    /// Behaves like this: so soon, so fast, and so patient.
    pub fn model(mut self, model: Model) -> Self {
        self.model = model;
        self
    }

    /// Serves HTTPS, and no plain HTTP.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Lets clients beyond loopback read and reset the statistics.
    pub fn control_from_anywhere(mut self, allowed: bool) -> Self {
        self.control_from_anywhere = allowed;
        self
    }

    /// Starts serving, as tasks of the runtime that this is called in.
    ///
    /// # Errors
    /// An address that can't be listened on, a directory that can't be used, a name that no bucket can have, two
    /// buckets of one name, a given certificate that is none, or no thread for the model's clock.
    pub async fn start(self) -> io::Result<Running> {
        let store = Arc::new(self.store()?);
        let keys = Keys::default();
        self.keys.into_iter().for_each(|(access, secret, token)| keys.add(access, secret, token));
        let protocol = Protocol {
            store: store.clone(),
            etag: self.etag,
            least_part: self.least_part,
            region: self.region.into(),
            keys: keys.clone(),
            default_checksum: self.default_checksum,
            checksum_on_covering_range: self.checksum_on_covering_range,
        };
        let domain = self.domain.as_deref().map(Domain::new);
        // The service checks the clock, which may be wrong on purpose.
        let mut config = S3Config::default();
        config.presigned_url_max_skew_time_secs = u32::MAX;
        config.xml_max_body_size = document::LARGEST;
        let config = Arc::new(StaticConfigProvider::new(Arc::new(config)));
        let access = Access { anonymous: self.anonymous, keys: keys.clone(), account: self.account };
        let service = || {
            let mut s3 = S3ServiceBuilder::new(protocol.clone());
            s3.set_config(config.clone());
            s3.set_auth(keys.clone());
            s3.set_access(access.clone());
            if let Some(domain) = &domain {
                s3.set_host(domain.clone());
            }
            s3
        };
        let mut s3 = service();
        s3.set_route(Documents { operations: service().build() });
        let tls = self.tls.as_ref().map(|tls| tls.config(self.domain.as_deref())).transpose()?;
        let (tls, ca_pem) = tls.unzip();
        let counters = Arc::new(Counters::default());
        let faults = Arc::new(Faults::default());
        faults.set(self.faults);
        let shared = Shared {
            s3: s3.build(),
            protocol: protocol.clone(),
            domain,
            faults: faults.clone(),
            counters: counters.clone(),
            request_ids: AtomicU64::new(1),
            rates: Rates::new(&self.model),
            latency: self.model.first_byte.map(|time| Latency::new(time, self.model.seed)).transpose()?,
            throttle: self.model.prefix.map(Throttle::new),
            clock_skew: self.clock_skew,
        };
        let listener = listen(self.listen)
            .map_err(|error| io::Error::new(error.kind(), format!("can't listen on {}: {error}", self.listen)))?;
        let address = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let accepting =
            Accepting { listener, tls, shared: Arc::new(shared), control: self.control_from_anywhere, stopped };
        Ok(Running {
            address,
            ca_pem,
            protocol,
            store,
            counters,
            faults,
            stop,
            accepting: Some(tokio::spawn(accepting.run())),
        })
    }

    fn store(&self) -> io::Result<Store> {
        let store = match &self.directory {
            None => Store::in_memory(),
            Some(path) => {
                let explain = |error: io::Error| {
                    io::Error::new(error.kind(), format!("can't keep objects in {}: {error}", path.display()))
                };
                Directory::open(path).and_then(Store::in_directory).map_err(explain)?
            }
        };
        for (name, series) in &self.synthetic {
            made(name, store.create_synthetic(valid(name)?, Synthetic::new(series.clone())))?;
        }
        for name in &self.discarding {
            made(name, store.create_discarding(valid(name)?))?;
        }
        for name in &self.buckets {
            match store.create(valid(name)?) {
                // Left there by an earlier run.
                Err(BucketRefusal::Exists) if self.directory.is_some() => {}
                result => made(name, result)?,
            }
        }
        Ok(store)
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // The port of a server that has just ended is free again.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn valid(name: &str) -> io::Result<&str> {
    if AwsNameValidation::new().validate_bucket_name(name) {
        return Ok(name);
    }
    let why = format!(
        "no bucket can be called {name:?}: 3 to 63 of a-z, 0-9, '-' and '.', beginning and ending in a letter or digit"
    );
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

fn made(name: &str, result: Result<(), BucketRefusal>) -> io::Result<()> {
    result.map_err(|refusal| match refusal {
        BucketRefusal::Io(error) => error,
        _ => io::Error::new(io::ErrorKind::AlreadyExists, format!("two buckets are called {name}")),
    })
}

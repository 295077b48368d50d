//! Where things are: a folder of this machine, a prefix of a bucket, or nowhere.

use std::fmt;
use std::path::PathBuf;

use wirespeed::{Client, List, SseCustomerKey};

/// One end of a job.
#[derive(Clone)]
pub enum Place {
    /// A folder of this machine.
    Folder(PathBuf),
    /// Keys of a bucket that begin alike.
    Bucket(Bucket),
    /// A sink: bytes are received and dropped.
    Nowhere,
}

/// Keys of a bucket that begin alike, and how it is spoken to.
#[derive(Clone)]
pub struct Bucket {
    pub(crate) client: Client,
    pub(crate) name: String,
    pub(crate) prefix: String,
    pub(crate) request_payer: bool,
    pub(crate) expected_owner: Option<String>,
    pub(crate) customer_key: Option<SseCustomerKey>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Folder(folder) => write!(f, "Folder({folder:?})"),
            Place::Bucket(bucket) => write!(f, "Bucket(s3://{}/{})", bucket.name, bucket.prefix),
            Place::Nowhere => f.write_str("Nowhere"),
        }
    }
}

impl Place {
    /// A folder; it is made where it is written to and does not exist.
    pub fn folder(path: impl Into<PathBuf>) -> Place {
        Place::Folder(path.into())
    }

    /// The keys of a bucket that begin with `prefix`, byte for byte: `a` means `ab` too, `a/` does not.
    pub fn bucket(client: &Client, name: impl Into<String>, prefix: impl Into<String>) -> Place {
        Place::Bucket(Bucket::new(client, name, prefix))
    }

    /// Where the thing of this name is in the place; `None` for the sink.
    pub fn locate(&self, key: &str) -> Option<Location> {
        match self {
            Place::Folder(folder) => Some(Location::File(folder.join(key))),
            Place::Bucket(bucket) => Some(Location::Object { bucket: bucket.name.clone(), key: bucket.key_of(key) }),
            Place::Nowhere => None,
        }
    }
}

impl From<Bucket> for Place {
    fn from(bucket: Bucket) -> Place {
        Place::Bucket(bucket)
    }
}

impl Bucket {
    /// The keys of a bucket that begin with `prefix`.
    pub fn new(client: &Client, name: impl Into<String>, prefix: impl Into<String>) -> Bucket {
        Bucket {
            client: client.clone(),
            name: name.into(),
            prefix: prefix.into(),
            request_payer: false,
            expected_owner: None,
            customer_key: None,
        }
    }

    /// Agrees to pay for the requests, as buckets whose requesters pay demand.
    pub fn request_payer(mut self) -> Bucket {
        self.request_payer = true;
        self
    }

    /// Refuses the bucket if it does not belong to this account, an id of 12 digits.
    pub fn expected_owner(mut self, account: impl Into<String>) -> Bucket {
        self.expected_owner = Some(account.into());
        self
    }

    /// The customer's own key (SSE-C) that objects which are read were encrypted with.
    pub fn sse_customer_key(mut self, key: SseCustomerKey) -> Bucket {
        self.customer_key = Some(key);
        self
    }

    /// The bucket's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the keys begin with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The client that speaks to it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn key_of(&self, relative: &str) -> String {
        let mut key = String::with_capacity(self.prefix.len() + relative.len());
        key.push_str(&self.prefix);
        key.push_str(relative);
        key
    }

    /// The listing of the keys that go on with `narrowed` behind the prefix.
    pub(crate) fn list(&self, narrowed: &str) -> List {
        self.asked(self.client.list(&self.name)).prefix(self.key_of(narrowed))
    }

    /// The builder with what every request to this bucket carries.
    pub(crate) fn asked<B: Asking>(&self, mut builder: B) -> B {
        if self.request_payer {
            builder = builder.payer();
        }
        if let Some(account) = &self.expected_owner {
            builder = builder.owner(account);
        }
        builder
    }

    /// Whether it is a directory bucket, of S3 Express.
    pub(crate) fn lists_in_no_order(&self) -> bool {
        self.name.ends_with("--x-s3")
    }

    /// Whether the two may be one bucket: they have one name, and are at one endpoint.
    pub(crate) fn may_be(&self, other: &Bucket) -> bool {
        let endpoint = |bucket: &Bucket| bucket.client.config().endpoint_url.clone();
        self.name == other.name && (self.shares_client_with(other) || endpoint(self) == endpoint(other))
    }

    /// Whether this is spoken to by the client of the other one: then the server can copy from one to the other.
    pub(crate) fn shares_client_with(&self, other: &Bucket) -> bool {
        // A client's settings live as long as the client, and are shared by its clones alone.
        std::ptr::eq(self.client.config(), other.client.config())
    }
}

/// A builder of the engine whose requests can say who pays and who must own the bucket.
pub(crate) trait Asking: Sized {
    fn payer(self) -> Self;
    fn owner(self, account: &str) -> Self;
}

macro_rules! asking {
    ($($builder:ident),+) => {$(
        impl Asking for wirespeed::$builder {
            fn payer(self) -> Self {
                self.request_payer()
            }

            fn owner(self, account: &str) -> Self {
                self.expected_owner(account)
            }
        }
    )+};
}

asking!(AbortUpload, DeleteMany, Get, GetMany, Head, List, PutOptions);

/// Where one thing is, as it is shown: `s3://bucket/key`, or a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// An object.
    Object {
        /// Its bucket.
        bucket: String,
        /// Its whole key.
        key: String,
    },
    /// A file.
    File(PathBuf),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Object { bucket, key } => write!(f, "s3://{bucket}/{key}"),
            Location::File(path) => path.display().fmt(f),
        }
    }
}

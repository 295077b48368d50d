//! A case: what is checked, what it needs, what it costs, and what may come of it.

use std::fmt;
use std::future::Future;
use std::ops::Add;
use std::pin::Pin;

use wirespeed::ErrorKind;

use crate::store::Store;

/// What a case needs beyond a bucket to write to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing.
    Prefix,
    /// A bucket of its own, made and removed by the suite.
    Bucket,
}

/// What a case costs at most: requests by the classes that stores charge for, and bytes of bodies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// PUT, COPY, POST and LIST requests.
    pub(crate) writes: u64,
    /// GET and HEAD requests.
    pub(crate) reads: u64,
    /// DELETE requests, which stores mostly don't charge for.
    pub(crate) deletes: u64,
    /// Bytes sent.
    pub(crate) up: u64,
    /// Bytes received.
    pub(crate) down: u64,
}

impl Cost {
    /// So many requests of each class, and bodies too small to count: at most 64 KiB each way. Each
    /// read may take a HEAD beside it, where the store tells no checksum with the bytes.
    pub(crate) const fn new(writes: u64, reads: u64, deletes: u64) -> Cost {
        Cost { writes, reads: 2 * reads, deletes, up: 64 << 10, down: 64 << 10 }
    }

    /// With so many bytes more each way.
    pub(crate) const fn and_bytes(self, up: u64, down: u64) -> Cost {
        Cost { up: self.up + up, down: self.down + down, ..self }
    }

    /// All requests.
    pub(crate) fn requests(&self) -> u64 {
        self.writes + self.reads + self.deletes
    }
}

impl Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost {
            writes: self.writes + other.writes,
            reads: self.reads + other.reads,
            deletes: self.deletes + other.deletes,
            up: self.up + other.up,
            down: self.down + other.down,
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        write!(
            f,
            "at most {} PUT, COPY, POST and LIST requests, {} GET and HEAD, {} DELETE; {} MiB up, {} MiB down",
            self.writes,
            self.reads,
            self.deletes,
            mib(self.up),
            mib(self.down)
        )
    }
}

/// Why a case did not pass.
#[derive(Debug)]
pub(crate) enum Finding {
    /// The store did something else than S3 does.
    Differs(String),
    /// The store says that it does not offer this.
    Lacks(String),
    /// No answer came: the connection failed, or a timeout passed.
    Unanswered(String),
}

/// Codes by which stores say that they don't offer something.
const LACKING: [&str; 5] =
    ["NotImplemented", "XNotImplemented", "MethodNotAllowed", "UnsupportedOperation", "FeatureNotSupported"];

impl From<wirespeed::Error> for Finding {
    fn from(error: wirespeed::Error) -> Finding {
        if error.status().is_none() && matches!(error.kind(), ErrorKind::Connection | ErrorKind::Timeout) {
            return Finding::Unanswered(error.to_string());
        }
        let lacks = error.status() == Some(501) || error.code().is_some_and(|code| LACKING.contains(&code));
        if lacks { Finding::Lacks(error.to_string()) } else { Finding::Differs(error.to_string()) }
    }
}

/// What a case comes to.
pub(crate) type Checked = Result<(), Finding>;
/// A case at work.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Checked> + Send + 'a>>;
/// How a case is started.
pub(crate) type Run = Box<dyn for<'a> Fn(&'a Store) -> Running<'a> + Send + Sync>;

/// One thing that is checked.
pub(crate) struct Case {
    /// `group/what-is-checked`.
    pub(crate) name: String,
    pub(crate) need: Need,
    pub(crate) cost: Cost,
    pub(crate) run: Run,
}

/// A case in a prefix of its own.
pub(crate) fn case(
    name: impl Into<String>,
    cost: Cost,
    run: impl for<'a> Fn(&'a Store) -> Running<'a> + Send + Sync + 'static,
) -> Case {
    Case { name: name.into(), need: Need::Prefix, cost, run: Box::new(run) }
}

impl Case {
    /// The same in a bucket of its own.
    pub(crate) fn in_own_bucket(self) -> Case {
        // Made and removed, the removal after a look at what is left.
        let cost = self.cost + Cost { writes: 5, deletes: 2, ..Cost::default() };
        Case { need: Need::Bucket, cost, ..self }
    }
}

/// Fails the case unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::case::Finding::Differs(format!($($message)+)));
        }
    };
}
pub(crate) use ensure;

/// Fails unless the two are the same.
pub(crate) fn same<T: PartialEq<U> + fmt::Debug, U: fmt::Debug>(what: &str, found: T, expected: U) -> Checked {
    if found == expected {
        return Ok(());
    }
    let short = |text: String| match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    };
    let (found, expected) = (short(format!("{found:?}")), short(format!("{expected:?}")));
    Err(Finding::Differs(format!("{what} is {found}, expected {expected}")))
}

/// Fails unless the store refused with one of these statuses; gives the code that it gave.
pub(crate) fn refused<T>(
    what: &str,
    result: wirespeed::Result<T>,
    statuses: &[u16],
) -> Result<Option<String>, Finding> {
    match result {
        Ok(_) => Err(Finding::Differs(format!("{what} was accepted, expected HTTP {statuses:?}"))),
        Err(error) if error.status().is_some_and(|status| statuses.contains(&status)) => {
            Ok(error.code().map(str::to_owned))
        }
        Err(error) => match Finding::from(error) {
            Finding::Differs(said) => Err(Finding::Differs(format!("{what}: expected HTTP {statuses:?}: {said}"))),
            other => Err(other),
        },
    }
}

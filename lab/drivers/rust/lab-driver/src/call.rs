//! One item in hand: what a client is told of it, and what it tells.

use std::hint::black_box;
use std::path::PathBuf;

use crc32fast::Hasher;

use crate::found::Found;
use crate::plan::{Item, Plan};
use crate::round::now;

/// One item in hand. A client says what it received through one of the methods; none of them allocates.
pub struct Call<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The item.
    pub item: &'a Item,
    /// Whether this round's bytes are digested; its time counts for nothing.
    pub verify: bool,
    pub(crate) n: usize,
    pub(crate) first_ns: u64,
    pub(crate) bytes: u64,
    pub(crate) keys: u64,
    pub(crate) digest: Option<Hasher>,
    /// Where the keys are items to be got.
    pub(crate) found: Option<&'a Found>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(plan: &'a Plan, n: usize, item: &'a Item, verify: bool) -> Call<'a> {
        let digest = verify.then(Hasher::new);
        Call { plan, item, verify, n, first_ns: 0, bytes: 0, keys: 0, digest, found: None }
    }

    /// The next bytes of the object, in order.
    pub fn chunk(&mut self, bytes: &[u8]) {
        self.begun();
        self.whole(bytes);
    }

    /// The first byte is there, where the client shows that.
    pub fn begun(&mut self) {
        if self.first_ns == 0 {
            self.first_ns = now();
        }
    }

    /// All bytes of the object at once.
    pub fn whole(&mut self, bytes: &[u8]) {
        self.bytes += black_box(bytes).len() as u64;
        if let Some(digest) = &mut self.digest {
            digest.update(bytes);
        }
    }

    /// So many bytes that the client does not show.
    pub fn moved(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// The digest of bytes that were seen in pieces.
    pub(crate) fn digested(&mut self, digest: Hasher) {
        self.digest = Some(digest);
    }

    /// The next key of a listing.
    pub fn key(&mut self, key: &str) {
        if let Some(digest) = &mut self.digest {
            if self.keys > 0 {
                digest.update(b"\n");
            }
            digest.update(key.as_bytes());
        }
        if let Some(found) = self.found
            && self.plan.work.get(found.count()).is_some_and(|item| item.key == key)
        {
            found.another();
        }
        self.keys += 1;
    }

    /// The item's file, for a sink or a source that is one.
    pub fn path(&self) -> PathBuf {
        let number = self.n.to_string();
        self.plan.folder.as_ref().map_or_else(|| number.clone().into(), |folder| folder.join(&number))
    }
}

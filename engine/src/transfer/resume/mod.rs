//! Transfers that go on after their process has ended.
//!
//! Owns: what is told while a large object is on its way ([`DownloadLog`], [`UploadLog`]), what is taken back from
//! an earlier run ([`PartialDownload`], [`PartialUpload`]), and the check that it still holds. Whoever calls keeps what
//! is told somewhere that outlives the process; what it looks like there is the caller's business.
//!
//! ```text
//! down: temporary made -> began -> range written -> wrote -> … -> whole, verified, renamed
//! up:   upload started -> began -> part accepted -> sent -> … -> completed
//! ```
//!
//! Nothing is believed that can be asked: a temporary is looked at, its object is pinned to the version that the ranges
//! came from, its bytes are read back for the checksum of the whole; an upload's parts are those that the server
//! lists. Where anything is another than it was, the transfer starts anew and says so to the log. With a log what is
//! half done survives a stop and a failure; it goes when nobody could use it any more. Objects of one request have
//! nothing to go on with, and are not told.
//!
//! What was written is with the kernel, not with the disk: it outlives the process, and not a loss of power.

mod download;
mod source;
mod upload;

pub use download::{DownloadLog, DownloadResume, PartialDownload};
pub use source::FileIdentity;
pub use upload::{PartialUpload, UploadLog, UploadResume, UploadedPart};

pub(crate) use download::{FileTarget, Opener, begin, to_file};
pub(crate) use upload::{TakenUp, is_void};

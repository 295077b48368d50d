//! The way that a job's transfers go: which of the engine's calls does them, with what options, and how an entry becomes
//! one of its items.

use std::path::PathBuf;
use std::sync::Arc;

use wirespeed::{CopyItem, FileItem, GetItem, ObjectInfo, PutOptions, UploadItem};

use super::Settings;
use super::call::{Call, Fed, Handed};
use crate::compare::Compare;
use crate::entry::Entry;
use crate::failure::Failure;
use crate::place::{Bucket, Place};
use crate::preserve;
use crate::report::Action;
use crate::state::State;

/// Parts are no smaller than this, in bytes, except in tests; what is as small is written again rather than resumed.
const ONE_REQUEST: u64 = 1 << 20;

/// Checks that what was read of an object, before it is removed, is the object that was listed. S3 names the entity tag of
/// every object that is read: an answer without one is not its.
pub(super) fn check_read(from: &Bucket, entry: &Entry, size: Option<u64>, etag: Option<&str>) -> Result<(), Failure> {
    let differs = |listed: &str, found: &str| listed.trim_matches('"') != found.trim_matches('"');
    let what = match (entry.etag.as_deref(), etag) {
        (_, None) => "the server named no ETag with its bytes, as S3 always does",
        (Some(listed), Some(found)) if differs(listed, found) => "its ETag is not the one that was listed",
        _ if entry.size.is_some() && size != entry.size => "its size is not the one that was listed",
        _ => return Ok(()),
    };
    let (bucket, key) = (&from.name, from.key_of(&entry.key));
    let why =
        format!("s3://{bucket}/{} stays where it is: {what}; compare the two and move it again", key.escape_debug());
    Err(Failure::Refused(why))
}

/// Between which places, and how.
#[derive(Clone)]
pub(super) struct Way {
    ends: Ends,
    settings: Settings,
    /// Whether what was listed must be what is transferred: it is removed afterwards.
    exactly: bool,
    /// Whether what is there stays.
    no_clobber: bool,
    /// With what every object is written.
    options: PutOptions,
}

#[derive(Clone)]
enum Ends {
    Down { from: Bucket },
    Discard { from: Bucket },
    Up { from: PathBuf, to: Bucket },
    Across { from: Bucket, source: Arc<str>, to: Bucket },
}

impl Way {
    /// From the one place to the other.
    ///
    /// # Errors
    /// Where no transfer goes that way.
    pub(super) fn new(from: &Place, to: &Place, settings: &Settings, exactly: bool) -> Result<Way, Failure> {
        let ends = match (from.clone(), to.clone()) {
            (Place::Bucket(from), Place::Folder(_)) => Ends::Down { from },
            (Place::Bucket(from), Place::Nowhere) => Ends::Discard { from },
            (Place::Folder(from), Place::Bucket(to)) => Ends::Up { from, to },
            (Place::Bucket(from), Place::Bucket(to)) => {
                let source = from.name.as_str().into();
                Ends::Across { from, source, to }
            }
            (Place::Folder(_), _) | (Place::Nowhere, _) => {
                let why = "neither end is on S3; write that end as s3://bucket/key";
                return Err(Failure::Refused(why.to_owned()));
            }
        };
        let no_clobber = settings.compare == Some(Compare::Absent);
        let options = match &ends {
            Ends::Up { to, .. } | Ends::Across { to, .. } => to.asked(settings.options.clone()),
            Ends::Down { .. } | Ends::Discard { .. } => PutOptions::default(),
        };
        let options = if no_clobber { options.if_none_match_any() } else { options };
        let options = if exactly { options.confirmed() } else { options };
        Ok(Way { ends, settings: settings.clone(), exactly, no_clobber, options })
    }

    pub(super) fn action(&self) -> Action {
        match &self.ends {
            Ends::Down { .. } => Action::Download,
            Ends::Discard { .. } => Action::Discard,
            Ends::Up { .. } => Action::Upload,
            Ends::Across { .. } => Action::Copy,
        }
    }

    /// How many requests the client on the way has in flight at most.
    pub(super) fn concurrency(&self) -> usize {
        match &self.ends {
            Ends::Down { from } | Ends::Discard { from } | Ends::Across { from, .. } => {
                from.client.config().concurrency
            }
            Ends::Up { to, .. } => to.client.config().concurrency,
        }
    }

    /// The two ends of a copy whose bytes pass through this machine, or would if the server did not copy.
    pub(super) fn relayed(&self) -> Option<(&Bucket, &Bucket)> {
        match &self.ends {
            Ends::Across { from, to, .. } => Some((from, to)),
            _ => None,
        }
    }

    /// Whether all copies pass through this machine.
    pub(super) fn passes_here(&self) -> bool {
        let apart = self.relayed().is_some_and(|(from, to)| !from.shares_client_with(to));
        apart || (self.settings.through_here && self.relayed().is_some())
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns whether the source is removed after its transfer.
    pub(super) fn removes_source(&self) -> bool {
        self.exactly
    }

    /// The entity tag that a source must have, where what was listed must be what is transferred.
    pub(super) fn listed_etag<'a>(&self, entry: &'a Entry) -> Option<&'a str> {
        entry.etag.as_deref().filter(|_| self.exactly)
    }

    /// With what every object is written.
    pub(super) fn options(&self) -> &PutOptions {
        &self.options
    }

    /// Starts a call of the engine that goes this way.
    pub(super) fn call(&self) -> Result<Call, Failure> {
        let settings = &self.settings;
        let progress = settings.progress.clone();
        let call = match &self.ends {
            Ends::Down { from } | Ends::Discard { from } => {
                let mut get = from.asked(from.client.get_many(&from.name)).progress(progress);
                if let Some(key) = &from.customer_key {
                    get = get.sse_customer_key(key.clone());
                }
                if let Some(verify) = settings.verify {
                    get = get.verify(verify);
                }
                if settings.preserve {
                    get = get.attributes(|info: &ObjectInfo| preserve::attributes(&info.metadata));
                }
                match &self.ends {
                    Ends::Discard { .. } => Call::Discard(Fed::start(|items| get.discard_from(items))?),
                    _ => Call::Down(Fed::start(|items| get.into_files(items))?),
                }
            }
            Ends::Up { to, .. } => {
                let mut put = to.client.put_many(&to.name).options(self.options.clone()).progress(progress);
                if let Some(checksum) = settings.checksum {
                    put = put.checksum(checksum);
                }
                if let Some(media_types) = settings.media_types.clone() {
                    put = put.content_type_by_key(move |key| media_types(key));
                }
                Call::Up(Fed::start(|items| put.from_files(items))?)
            }
            Ends::Across { from, to, .. } => {
                let mut copy = to.client.copy_many(&to.name).options(self.options.clone()).progress(progress);
                copy = copy.metadata_directive(settings.metadata).tagging_directive(settings.tagging);
                if let Some(key) = &from.customer_key {
                    copy = copy.source_sse_customer_key(key.clone());
                }
                if let Some(account) = &from.expected_owner {
                    copy = copy.source_expected_owner(account);
                }
                Call::Across(Fed::start(|items| copy.items_from(items))?)
            }
        };
        Ok(call)
    }

    /// The engine's item for an entry of the source; `path` is the file that a download becomes.
    pub(super) fn item(&self, entry: &Entry, path: Option<PathBuf>) -> Handed {
        match &self.ends {
            Ends::Down { from } => Handed::Down(self.file_item(from, entry, path.unwrap_or_default())),
            Ends::Discard { from } => {
                let mut item = GetItem::new(from.key_of(&entry.key));
                if let Some(size) = entry.size {
                    item = item.size(size);
                }
                if let Some(version) = &entry.version {
                    item = item.version(version);
                }
                Handed::Discard(item)
            }
            Ends::Up { from, to } => Handed::Up(self.upload_item(from, to, entry)),
            Ends::Across { from, source, to } => {
                let target = to.key_of(entry.target());
                let mut item = CopyItem::new(Arc::clone(source), from.key_of(&entry.key), target);
                if let Some(size) = entry.size {
                    item = item.size(size);
                }
                if let Some(version) = &entry.version {
                    item = item.version(version);
                }
                if let Some(etag) = self.listed_etag(entry) {
                    item = item.if_match(etag);
                }
                Handed::Across(item)
            }
        }
    }

    fn file_item(&self, from: &Bucket, entry: &Entry, path: PathBuf) -> FileItem {
        let mut item = FileItem::new(from.key_of(&entry.key), path);
        if let Some(size) = entry.size {
            item = item.size(size);
        }
        if let Some(version) = &entry.version {
            item = item.version(version);
        }
        if let Some(etag) = self.listed_etag(entry) {
            item = item.if_match(etag);
        }
        // As `aws s3` does: what a later sync compares by.
        if let Some(modified) = entry.modified {
            item = item.modified(modified);
        }
        if let Some(state) = &self.settings.state {
            item = item.job(state.number());
        }
        if let Some(state) = self.state_of(entry) {
            item = item.resume(state.download(entry));
        }
        if self.no_clobber { item.no_clobber() } else { item }
    }

    /// The resume file, where the item may be of several requests.
    fn state_of(&self, entry: &Entry) -> Option<&State> {
        self.settings.state.as_ref().filter(|_| entry.size.is_none_or(|size| size > ONE_REQUEST))
    }

    fn upload_item(&self, from: &std::path::Path, to: &Bucket, entry: &Entry) -> UploadItem {
        let mut item = UploadItem::new(from.join(&entry.key), to.key_of(entry.target()));
        if let Some(size) = entry.size {
            item = item.size(size);
        }
        if self.settings.preserve {
            let options = preserve::metadata(entry)
                .fold(self.options.clone(), |options, (name, value)| options.metadata(name, value));
            item = item.options(options);
        }
        if let Some(state) = self.state_of(entry) {
            item = item.resume(state.upload(entry, &to.name, &to.key_of(entry.target())));
        }
        item
    }
}

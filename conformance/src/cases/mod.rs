//! All cases, one file a subject. Each states what it costs; what it did is compared with that.

mod checksums;
mod conditions;
mod copies;
mod deletes;
mod keys;
mod listing;
mod metadata;
mod multipart;
mod objects;
mod ranges;
mod verbs;
mod versions;

use crate::case::Case;

/// Every case, in the order that they run in.
pub(crate) fn all() -> Vec<Case> {
    let groups = [
        objects::cases,
        keys::cases,
        ranges::cases,
        conditions::cases,
        multipart::cases,
        checksums::cases,
        listing::cases,
        versions::cases,
        copies::cases,
        metadata::cases,
        deletes::cases,
        verbs::cases,
    ];
    groups.into_iter().flat_map(|cases| cases()).collect()
}

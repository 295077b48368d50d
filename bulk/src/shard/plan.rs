//! From a job to its shards: by a look through the source, or by a list.

use wirespeed::Client;

use super::census::{Census, Load};
use super::spec::{BulkSpec, NamedItem, ShardSpec, Slice, VERSION, unusable};
use crate::failure::Failure;
use crate::source::{Looking, Source};

/// Cuts a job into at most so many shards, by ranges of keys of about the same objects and bytes.
///
/// The source is listed or walked once; the filter counts, and the other side is not looked at. Memory stays within a
/// few megabytes, however much is found. Whatever is written to either side meanwhile, each key belongs to one shard.
/// An unreadable folder is left to the shards to report.
///
/// # Errors
/// [`Failure::Refused`] where the job makes no sense, else what kept the source from being looked through.
pub async fn plan(job: BulkSpec, client: &Client, shards: usize) -> Result<Vec<ShardSpec>, Failure> {
    // What would make every shard fail is said here, once.
    drop(job.job(client)?);
    let filter = job.filter()?;
    let looking = Looking { follow_links: !job.options.no_follow_symlinks, ..Looking::default() };
    let mut source = Source::of(&job.source(client)?, looking);
    let mut census = Census::new();
    while let Some(batch) = source.next().await {
        let entries = batch?.entries;
        let wanted = entries.iter().filter(|entry| filter.wants_entry(entry));
        census.count(wanted.map(|entry| (entry.key.as_str(), entry.size.unwrap_or(0))));
    }
    let mut after = None;
    let slices = census.cut(shards).into_iter().map(|cut| {
        let slice = Slice::Range { after: after.take(), until: cut.until.clone() };
        after = cut.until;
        (slice, cut.load)
    });
    Ok(numbered(&job, slices.collect()))
}

/// Cuts a list of names into at most so many shards of about the same objects and bytes; what is listed twice is
/// done once. The list is held in memory, and each shard's part of it stands in its spec.
///
/// # Errors
/// [`Failure::Refused`] where the job makes no sense: by a list nothing can be deleted.
pub fn plan_names(
    job: BulkSpec,
    client: &Client,
    names: impl IntoIterator<Item = NamedItem>,
    shards: usize,
) -> Result<Vec<ShardSpec>, Failure> {
    drop(job.job(client)?);
    if job.options.delete {
        return Err(unusable("a list says nothing of what is to be deleted; plan without the list".to_owned()));
    }
    let mut names: Vec<NamedItem> = names.into_iter().collect();
    names.sort();
    names.dedup();
    let load = |item: &NamedItem| Load::of(item.size.unwrap_or(0));
    let total: u128 = names.iter().map(|item| u128::from(load(item).weight())).sum();
    let shards = shards.max(1) as u128;
    let mut slices = Vec::new();
    let (mut slice, mut sum, mut done) = (Vec::new(), Load::default(), 0);
    for item in names {
        sum.add(load(&item));
        done += u128::from(load(&item).weight());
        slice.push(item);
        if done * shards >= total * (slices.len() as u128 + 1) {
            slices.push((Slice::Names(std::mem::take(&mut slice)), std::mem::take(&mut sum)));
        }
    }
    Ok(numbered(&job, slices))
}

fn numbered(job: &BulkSpec, slices: Vec<(Slice, Load)>) -> Vec<ShardSpec> {
    let shards = u32::try_from(slices.len()).unwrap_or(u32::MAX);
    let numbered = (0..shards).zip(slices);
    numbered
        .map(|(shard, (slice, Load { items, bytes }))| ShardSpec {
            version: VERSION,
            shard,
            shards,
            job: job.clone(),
            slice,
            items,
            bytes,
        })
        .collect()
}

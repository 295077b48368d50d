//! One look at one name of a place, where no listing tells.

use std::io;

use wirespeed::ErrorKind;

use crate::entry::Entry;
use crate::failure::Failure;
use crate::place::Place;
use crate::source::file_entry;

/// What the place has under the entry's name, of its version; `None` where it has nothing.
pub(super) async fn at(place: &Place, entry: &Entry) -> Result<Option<Entry>, Failure> {
    let key = entry.key.as_str();
    match place {
        Place::Nowhere => Ok(None),
        Place::Folder(folder) => {
            let path = folder.join(key);
            let looked = path.clone();
            match tokio::task::spawn_blocking(move || std::fs::metadata(looked)).await {
                Ok(Ok(found)) => Ok(Some(file_entry(key.to_owned(), &found))),
                Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Ok(Err(source)) => Err(Failure::Local { doing: "read", path, source }),
                Err(_) => Err(Failure::lost()),
            }
        }
        Place::Bucket(bucket) => {
            let mut head = bucket.asked(bucket.client.head(&bucket.name, bucket.key_of(key)));
            if let Some(customer_key) = &bucket.customer_key {
                head = head.sse_customer_key(customer_key.clone());
            }
            if let Some(version) = &entry.version {
                head = head.version(version);
            }
            match head.await {
                Ok(info) => Ok(Some(Entry {
                    size: Some(info.size),
                    modified: info.last_modified,
                    etag: info.etag,
                    version: entry.version.clone(),
                    ..Entry::named(key)
                })),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error.into()),
            }
        }
    }
}

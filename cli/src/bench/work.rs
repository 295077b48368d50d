//! What a round does: the keys, the body of an upload, the folder of files, and the call to the engine.
//!
//! Everything that is not the transfer is prepared once by [`Work::prepare`], outside the clock.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tempfile::TempDir;
use wirespeed::{Client, Object};

use super::{Arguments, Operation, Sink};
use crate::context::Context;
use crate::failure::Failure;
use crate::uri::S3Uri;

/// What every round of a run does.
pub(super) struct Work {
    operation: Operation,
    sink: Sink,
    bucket: String,
    keys: Vec<String>,
    /// One object by the verb for one, whatever the number of keys by the verb for many.
    many: bool,
    /// All objects of a round in memory until it ends, not each only until the next.
    keep: bool,
    /// Bytes of each object that is uploaded, from `body` or from the folder's first file.
    size: u64,
    body: Bytes,
    folder: Option<Folder>,
}

/// What a round moved.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moved {
    pub(super) objects: u64,
    pub(super) bytes: u64,
}

/// An upload's size when nothing is said of sizes or numbers.
const DEFAULT_SIZE: u64 = 1 << 30;

impl Work {
    /// Finds the keys and makes what the rounds need.
    pub(super) async fn prepare(context: &Context<'_>, arguments: &Arguments) -> Result<Work, Failure> {
        check(arguments)?;
        let (operation, sink) = (arguments.operation, arguments.sink);
        let bucket = arguments.targets.first().map(|target| target.bucket.clone()).unwrap_or_default();
        let mut keys = Vec::new();
        for target in &arguments.targets {
            target_keys(context, arguments, target, &mut keys).await?;
        }
        if keys.is_empty() {
            return Err(Failure::Usage(
                "there are no keys under the targets, so there is nothing to measure".to_owned(),
            ));
        }
        let size = arguments.size.unwrap_or(DEFAULT_SIZE);
        let (mut body, mut folder) = (Bytes::new(), None);
        if sink == Sink::File {
            folder = Some(Folder::make(arguments.path.as_deref())?);
        }
        match (operation, &folder) {
            (Operation::Put, Some(folder)) => folder.fill(size)?,
            (Operation::Put, None) => body = self::body(size)?,
            (Operation::Get, _) => {}
        }
        let single =
            keys.len() == 1 && !(operation == Operation::Get && arguments.targets.iter().any(S3Uri::is_prefix));
        let keep = arguments.keep;
        Ok(Work { operation, sink, bucket, keys, many: !single, keep, size, body, folder })
    }

    /// The keys of a round, which takes them for its own: copied outside the clock.
    pub(super) fn keys(&self) -> Vec<String> {
        self.keys.clone()
    }

    /// Moves everything once. The first failure ends the run: a round that is not whole measures nothing.
    pub(super) async fn round(&self, client: &Client, mut keys: Vec<String>) -> Result<Moved, Failure> {
        if self.many {
            return match self.operation {
                Operation::Get => self.get_many(client, keys).await,
                Operation::Put => self.put_many(client, keys).await,
            };
        }
        let Some(key) = keys.pop() else {
            return Ok(Moved::default());
        };
        let bytes = match self.operation {
            Operation::Get => {
                let get = client.get(&self.bucket, &key);
                match (self.sink, &self.folder) {
                    (Sink::File, Some(folder)) => get.file(folder.file(0)).await?.size,
                    (Sink::Discard, _) => get.discard().await?.size,
                    _ => get.buffer().await?.body.len() as u64,
                }
            }
            Operation::Put => {
                let put = client.put(&self.bucket, &key);
                match &self.folder {
                    Some(folder) => put.file(folder.file(0)).await?,
                    None => put.bytes(self.body.clone()).await?,
                };
                self.size
            }
        };
        Ok(Moved { objects: 1, bytes })
    }

    async fn get_many(&self, client: &Client, keys: Vec<String>) -> Result<Moved, Failure> {
        let get = client.get_many(&self.bucket);
        let count = keys.len() as u64;
        match (self.sink, &self.folder) {
            (Sink::File, Some(folder)) => {
                let files = keys.into_iter().enumerate().map(|(index, key)| (key, folder.file(index)));
                drain(get.files(files.collect::<Vec<_>>())?, count, |info| info.size).await
            }
            (Sink::Discard, _) => drain(get.discard(keys)?, count, |info| info.size).await,
            _ => {
                let mut kept = Vec::with_capacity(if self.keep { keys.len() } else { 0 });
                let take = |object: Object| {
                    let bytes = object.body.len() as u64;
                    if self.keep {
                        kept.push(object);
                    }
                    bytes
                };
                drain(get.buffers(keys)?, count, take).await
            }
        }
    }

    async fn put_many(&self, client: &Client, keys: Vec<String>) -> Result<Moved, Failure> {
        let put = client.put_many(&self.bucket);
        let (size, count) = (self.size, keys.len() as u64);
        match &self.folder {
            Some(folder) => {
                let files: Vec<_> = keys.into_iter().map(|key| (folder.file(0), key)).collect();
                drain(put.files(files)?, count, |_| size).await
            }
            None => {
                let bodies: Vec<_> = keys.into_iter().map(|key| (key, self.body.clone())).collect();
                drain(put.bytes(bodies)?, count, |_| size).await
            }
        }
    }

    /// Removes what a round wrote, so that every round starts alike.
    pub(super) fn clear(&self) -> Result<(), Failure> {
        match (&self.folder, self.operation) {
            (Some(folder), Operation::Get) => folder.clear(self.keys.len()),
            _ => Ok(()),
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            // Best effort on the way out; a round that ended well has cleared already and told if it could not.
            let _ = folder.clear(self.keys.len());
        }
    }
}

async fn drain<T>(
    mut results: impl Stream<Item = (usize, wirespeed::Result<T>)> + Unpin,
    count: u64,
    mut bytes: impl FnMut(T) -> u64,
) -> Result<Moved, Failure> {
    let mut moved = Moved::default();
    while let Some((_, result)) = results.next().await {
        moved.bytes += bytes(result?);
        moved.objects += 1;
    }
    if moved.objects != count {
        return Err(Failure::Lost(format!(
            "only {} of {count} objects were moved: a task ended in a panic, a fault of wirespeed; run it again, and \
             report the fault",
            moved.objects
        )));
    }
    Ok(moved)
}

fn check(arguments: &Arguments) -> Result<(), Failure> {
    let usage = |message: &str| Err(Failure::Usage(message.to_owned()));
    let numbered = arguments.count.is_some() || arguments.keys_format.is_some();
    let put = arguments.operation == Operation::Put;
    if arguments.targets.windows(2).any(|pair| pair[0].bucket != pair[1].bucket) {
        return usage("the targets of one run are in one bucket");
    }
    if numbered && arguments.targets.iter().any(|target| !target.is_prefix()) {
        return usage("--count and --keys-format are for a bucket or a prefix that ends in /; the target is one key");
    }
    if put && arguments.targets.len() > 1 {
        return usage("put takes one target; --count uploads many objects under a prefix");
    }
    if put && arguments.sink == Sink::Discard {
        return usage("put reads from memory or a file; --sink discard is for get");
    }
    if put && arguments.count.is_some() && arguments.size.is_none() {
        return usage("how large are the objects? add --size, as in --size 64KiB");
    }
    if !put && arguments.size.is_some() {
        return usage("--size is for put");
    }
    if arguments.keep && (put || arguments.sink != Sink::Memory) {
        return usage("--keep is for get with --sink memory");
    }
    if arguments.path.is_some() && arguments.sink != Sink::File {
        return usage("--path is for --sink file");
    }
    Ok(())
}

async fn target_keys(
    context: &Context<'_>,
    arguments: &Arguments,
    target: &S3Uri,
    keys: &mut Vec<String>,
) -> Result<(), Failure> {
    let format = arguments.keys_format.clone().unwrap_or_default();
    let numbered = |count: u64| (0..count).map(|number| format!("{}{}", target.key, format.key(number)));
    if !target.is_prefix() {
        keys.push(target.key.clone());
    } else if arguments.operation == Operation::Put {
        keys.extend(numbered(arguments.count.unwrap_or(1)));
    } else if let (Some(_), Some(count)) = (&arguments.keys_format, arguments.count) {
        keys.extend(numbered(count));
    } else {
        let most = arguments.count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
        let mut pages = context.client.list(&target.bucket).prefix(&target.key).pages();
        while keys.len() < most
            && let Some(page) = pages.next().await
        {
            keys.extend(page?.objects.into_iter().map(|object| object.key));
        }
        keys.truncate(most);
    }
    Ok(())
}

/// The body of an upload in memory.
fn body(size: u64) -> Result<Bytes, Failure> {
    let refuse = || Failure::Usage(format!("{size} bytes do not fit in memory; choose a smaller --size"));
    let length = usize::try_from(size).map_err(|_| refuse())?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).map_err(|_| refuse())?;
    Noise::default().take(size).read_to_end(&mut bytes).map_err(|_| refuse())?;
    Ok(Bytes::from(bytes))
}

/// Bytes that neither compress nor repeat within what a server might deduplicate: xorshift64* (Vigna, 2016).
struct Noise(u64);

impl Default for Noise {
    fn default() -> Noise {
        Noise(0x9e37_79b9_7f4a_7c15)
    }
}

impl Read for Noise {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        for chunk in buffer.chunks_mut(8) {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            let word = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(buffer.len())
    }
}

/// The folder of `--sink file`.
struct Folder {
    path: PathBuf,
    _temporary: Option<TempDir>,
}

impl Folder {
    fn make(path: Option<&Path>) -> Result<Folder, Failure> {
        let Some(path) = path else {
            let temporary = tempfile::Builder::new()
                .prefix("wirespeed-bench-")
                .tempdir()
                .map_err(|source| Failure::local("make a folder in", &std::env::temp_dir(), source))?;
            return Ok(Folder { path: temporary.path().to_owned(), _temporary: Some(temporary) });
        };
        fs::create_dir_all(path).map_err(|source| Failure::local("make the folder", path, source))?;
        Ok(Folder { path: path.to_owned(), _temporary: None })
    }

    fn file(&self, index: usize) -> PathBuf {
        self.path.join(format!("wirespeed-bench-{index:08}"))
    }

    /// Writes what is uploaded, without ever holding it in memory.
    fn fill(&self, size: u64) -> Result<(), Failure> {
        let path = self.file(0);
        fs::File::create(&path)
            .and_then(|mut file| io::copy(&mut Noise::default().take(size), &mut file))
            .map_err(|source| Failure::local("write", &path, source))?;
        Ok(())
    }

    fn clear(&self, files: usize) -> Result<(), Failure> {
        for index in 0..files {
            let file = self.file(index);
            match fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Failure::local("remove", &file, error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Keys by number: text with one `{}` or, for leading zeros, `{:08}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeysFormat {
    before: String,
    width: usize,
    after: String,
}

impl Default for KeysFormat {
    fn default() -> KeysFormat {
        KeysFormat { before: String::new(), width: 8, after: String::new() }
    }
}

impl KeysFormat {
    /// Reads a format; refuses one without exactly one place for the number.
    pub(super) fn parse(text: &str) -> Result<KeysFormat, String> {
        let refuse = || format!("`{text}` needs one place for the number, as in 'data/{{:08}}' or 'data/{{}}.bin'");
        let (before, rest) = text.split_once('{').ok_or_else(refuse)?;
        let (place, after) = rest.split_once('}').ok_or_else(refuse)?;
        let width = match place.strip_prefix(":0") {
            Some(width) => width.parse().ok().filter(|width| (1..=20).contains(width)).ok_or_else(refuse)?,
            None if place.is_empty() => 0,
            None => return Err(refuse()),
        };
        if after.contains(['{', '}']) || before.contains('}') {
            return Err(refuse());
        }
        Ok(KeysFormat { before: before.to_owned(), width, after: after.to_owned() })
    }

    fn key(&self, number: u64) -> String {
        format!("{}{number:0width$}{}", self.before, self.after, width = self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_by_number() {
        let key = |format, number| KeysFormat::parse(format).map(|format| format.key(number));
        assert_eq!(key("data/{:08}", 42), Ok("data/00000042".to_owned()));
        assert_eq!(key("{}.bin", 42), Ok("42.bin".to_owned()));
        assert_eq!(KeysFormat::default().key(7), "00000007");
        for format in ["", "data", "{", "}{", "{}{}", "{:8}", "{:0}", "{:099}", "{x}", "a}{}"] {
            assert!(KeysFormat::parse(format).is_err(), "{format}");
        }
    }

    #[tokio::test]
    async fn a_round_is_whole_or_fails() {
        let outcomes = || futures_util::stream::iter((0..3).map(|index| (index, Ok(2_u64))));
        let moved = drain(outcomes(), 3, |bytes| bytes).await.unwrap();
        assert_eq!((moved.objects, moved.bytes), (3, 6));
        let lost = drain(outcomes(), 4, |bytes| bytes).await.unwrap_err();
        assert!(lost.to_string().starts_with("only 3 of 4 objects"), "{lost}");
    }

    #[test]
    fn bodies_have_their_size_and_do_not_repeat() {
        for size in [0, 1, 7, 8, 1000] {
            assert_eq!(body(size).unwrap().len() as u64, size);
        }
        let body = body(8 << 10).unwrap();
        let words: std::collections::HashSet<&[u8]> = body.chunks(8).collect();
        assert_eq!(words.len(), 1 << 10);
        assert!(super::body(u64::MAX).is_err());
    }
}

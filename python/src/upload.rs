//! Files into objects: one, all below a folder, or a list.
//!
//! Owns: which file becomes which object. A folder is walked on a thread of its own while what it has
//! brought is on its way; the engine reads the files, a part at a time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tokio::sync::mpsc;
use wirespeed::{Client, Error, Progress, PutMany};
use wirespeed_local::{Found, Unreadable, entries, media_type};

use crate::by_bucket::{Coming, group};
use crate::call::Call;
use crate::client::Verbs;
use crate::info::Transferred;
use crate::location::Location;
use crate::options::WriteOptions;
use crate::progress::Watch;
use crate::put_many;
use crate::tree::{self, Trouble};

/// What is to be uploaded.
enum Wish {
    /// A file or a folder, whichever it turns out to be.
    Path(PathBuf, Location),
    Pairs(Vec<(String, (PathBuf, String))>),
}

impl Wish {
    fn parse(source: &Bound<'_, PyAny>, target: Option<&Bound<'_, PyAny>>, bucket: Option<&str>) -> PyResult<Wish> {
        if source.is_instance_of::<PyString>() || source.hasattr("__fspath__")? {
            let target = match (target, bucket) {
                (Some(target), _) => Location::prefix(target, bucket)?,
                (None, Some(bucket)) => Location::parse("", Some(bucket))?,
                (None, None) => {
                    return Err(PyTypeError::new_err("say where it goes: s3://bucket/key, as the second argument"));
                }
            };
            return Ok(Wish::Path(source.extract()?, target));
        }
        if target.is_some() {
            return Err(PyTypeError::new_err("a list of pairs says where each file goes: leave out the target"));
        }
        let pair = |(path, location): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let Location { bucket, key } = Location::object(&location, bucket)?;
            Ok((bucket, (path.extract()?, key)))
        };
        let pairs = tree::pairs(source, "(path, location)")?.into_iter().map(pair);
        Ok(Wish::Pairs(pairs.collect::<PyResult<_>>()?))
    }
}

/// The call for the files of one bucket; the media type is what the name says, where no option says it.
fn request(client: &Client, bucket: String, options: &WriteOptions, progress: &Progress) -> PutMany {
    put_many::request(client, bucket, options.clone(), progress.clone())
        .content_type_by_key(|key| media_type::guess(key).map(str::to_owned))
}

async fn run(client: Client, wish: Wish, options: WriteOptions, progress: Progress) -> Result<Transferred, Trouble> {
    match wish {
        Wish::Path(path, target) => {
            let looked = path.clone();
            let found = tree::on_disk(move || fs::metadata(looked)).await?;
            let found = found.map_err(|source| Trouble::local("read", &path, source))?;
            if found.is_dir() {
                folder(&client, path, target, &options, &progress).await?;
            } else {
                let name = own_name(&path);
                let key = match target.key.is_empty() || target.key.ends_with('/') {
                    true => format!("{}{}", target.key, name.ok_or_else(|| not_utf8(&path))?),
                    false => target.key,
                };
                let named = name.and_then(media_type::guess).map(str::to_owned);
                let put = request(&client, target.bucket, &options, &progress);
                let mut outcomes = put.content_type_by_key(move |_| named.clone()).files([(path, key)])?;
                while let Some((_, outcome)) = outcomes.next().await {
                    outcome?;
                }
            }
        }
        Wish::Pairs(pairs) => {
            let mut coming = Coming::begin(group(pairs), |bucket, files| {
                request(&client, bucket, &options, &progress).files(files)
            })?;
            while let Some((_, outcome)) = coming.next().await {
                outcome?;
            }
        }
    }
    Ok(Transferred { objects: progress.objects(), bytes: progress.bytes() })
}

async fn folder(
    client: &Client,
    folder: PathBuf,
    target: Location,
    options: &WriteOptions,
    progress: &Progress,
) -> Result<(), Trouble> {
    let Location { bucket, key: mut prefix } = target;
    if !prefix.is_empty() && !prefix.ends_with('/') {
        prefix.push('/');
    }
    let (found, files) = tree::found();
    let mut outcomes = request(client, bucket, options, progress).files_from(files)?;
    let walking = async {
        let walk = tokio::task::spawn_blocking(move || walk(&folder, &prefix, &found));
        // A walk that was stopped with the runtime has nobody who waits for it.
        walk.await.unwrap_or(Ok(()))
    };
    let storing = async {
        while let Some((_, outcome)) = outcomes.next().await {
            outcome.map_err(|error: Error| Trouble::from(error))?;
        }
        Ok(())
    };
    tokio::try_join!(walking, storing)?;
    Ok(())
}

fn walk(folder: &Path, prefix: &str, found: &mpsc::Sender<(PathBuf, String)>) -> Result<(), Trouble> {
    for entry in entries(folder) {
        match entry {
            Found::File { path, relative, .. } => {
                if found.blocking_send((path, format!("{prefix}{relative}"))).is_err() {
                    // The transfers have ended: they say why.
                    return Ok(());
                }
            }
            // A device, a pipe or a socket.
            Found::Skipped { .. } => {}
            Found::Failed { path, why: Unreadable::Io(source) } => return Err(Trouble::local("read", &path, source)),
            Found::Failed { path, why: Unreadable::NotUtf8 } => return Err(not_utf8(&path)),
        }
    }
    Ok(())
}

fn own_name(path: &Path) -> Option<&str> {
    path.file_name().and_then(|name| name.to_str())
}

fn not_utf8(path: &Path) -> Trouble {
    let message = format!("{} has no name that a key could keep: name the whole key, or rename it", path.display());
    match path.file_name() {
        Some(_) => Trouble::Refused(message),
        None => Trouble::local("upload", path, io::ErrorKind::InvalidInput.into()),
    }
}

#[pymethods]
impl Verbs {
    /// Uploads one file to an object, all files below a folder under a prefix, or a list of files.
    ///
    /// Of a folder each file becomes `target`, a slash and the path below the folder; symbolic links are
    /// followed, devices, pipes and sockets left out. Of a file a `target` that ends in ``/``, or names
    /// only a bucket, gets an object of the file's own name. A list of pairs ``(path, location)`` needs
    /// no `target`. The media type is guessed from the name's ending, unless ``content_type`` is given.
    ///
    /// It is one pipeline: uploads begin while the folder is still being walked; files are read a part at
    /// a time, within the memory budget. The first failure stops the rest and is raised; objects that
    /// were complete stay.
    ///
    /// Returns a `Transferred`. Raises as `put`; `LocalIOError` where a file cannot be read,
    /// `IntegrityError` where one changed meanwhile, `ConfigError` where a name cannot be a key.
    #[pyo3(signature = (source, target=None, *, bucket=None, progress=None, **options))]
    fn upload(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        target: Option<&Bound<'_, PyAny>>,
        bucket: Option<&str>,
        progress: Option<Py<PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let wish = Wish::parse(source, target, bucket)?;
        let options = WriteOptions::parse(options)?;
        let live = self.live(py)?;
        let (counts, watch) = Watch::new(progress);
        let engine = live.engine.clone();
        let future = async move { Ok(run(engine, wish, options, counts).await) };
        Call { future, finish: tree::finish, watch }.run(py, &live, self.awaitable)
    }
}

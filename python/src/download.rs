//! Objects into files: one, all under a prefix, or a list.
//!
//! Owns: which object goes to which file. A key is whatever its writer chose: those that would leave the
//! target folder are refused. A listing and the transfers of what it brings are one pipeline; the bytes
//! go straight into temporaries beside the files, which appear under their names when they are whole.

use std::io;
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tokio::sync::mpsc;
use wirespeed::{Client, GetMany, ListedObject, ObjectInfo, Outcomes, Progress};
use wirespeed_local::{Target, file_name};

use crate::by_bucket::{Coming, group};
use crate::call::Call;
use crate::client::Verbs;
use crate::info::Transferred;
use crate::location::{Location, Wanted};
use crate::options::{ReadOptions, apply_read};
use crate::progress::Watch;
use crate::tree::{self, Trouble};
use crate::{errors, get, head};

/// What is to be downloaded.
enum Wish {
    Object(Location, PathBuf),
    Tree { bucket: String, prefix: String, root: PathBuf },
    Pairs(Vec<(String, (String, PathBuf))>),
}

impl Wish {
    fn parse(source: &Bound<'_, PyAny>, target: Option<PathBuf>, bucket: Option<&str>) -> PyResult<Wish> {
        if source.is_instance_of::<PyString>() {
            let location = Location::prefix(source, bucket)?;
            let target = tree::target_of(target)?;
            if location.key.is_empty() || location.key.ends_with('/') {
                return Ok(Wish::Tree { bucket: location.bucket, prefix: location.key, root: target });
            }
            let path = file_of(&location, target)?;
            return Ok(Wish::Object(location, path));
        }
        if target.is_some() {
            return Err(PyTypeError::new_err("a list of pairs says where each object goes: leave out the target"));
        }
        let pair = |(location, path): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let Location { bucket, key } = Location::object(&location, bucket)?;
            Ok((bucket, (key, path.extract()?)))
        };
        let pairs = tree::pairs(source, "(location, path)")?.into_iter().map(pair);
        Ok(Wish::Pairs(pairs.collect::<PyResult<_>>()?))
    }
}

/// The file that one object goes to; into a folder under its own name.
fn file_of(location: &Location, target: PathBuf) -> PyResult<PathBuf> {
    if !tree::names_folder(&target) {
        return Ok(target);
    }
    let name = file_name(tree::last_component(&location.key)).map_err(|why| {
        errors::config(format!(
            "s3://{}/{} cannot keep its name in a folder: {why}; name the file to write",
            location.bucket, location.key
        ))
    })?;
    Ok(target.join(name))
}

fn get_many(client: &Client, bucket: String, options: &ReadOptions, progress: &Progress) -> GetMany {
    apply_read!(client.get_many(bucket), options.clone()).progress(progress.clone())
}

async fn run(client: Client, wish: Wish, options: ReadOptions, progress: Progress) -> Result<Transferred, Trouble> {
    match wish {
        Wish::Object(location, path) => object(&client, location, path, options, progress).await,
        Wish::Tree { bucket, prefix, root } => {
            let (found, files) = tree::found();
            let outcomes = get_many(&client, bucket.clone(), &options, &progress).files_from(files)?;
            let listing = find(&client, &bucket, &prefix, root, &options, found);
            let ((), transferred) = tokio::try_join!(listing, all(outcomes))?;
            Ok(transferred)
        }
        Wish::Pairs(pairs) => {
            let mut coming = Coming::begin(group(pairs), |bucket, files| {
                get_many(&client, bucket, &options, &progress).files(files)
            })?;
            let mut transferred = Transferred::default();
            while let Some((_, outcome)) = coming.next().await {
                transferred.add(outcome?.size);
            }
            Ok(transferred)
        }
    }
}

async fn object(
    client: &Client,
    location: Location,
    path: PathBuf,
    options: ReadOptions,
    progress: Progress,
) -> Result<Transferred, Trouble> {
    if options.version_id.is_none() {
        // The call for many makes missing folders, and only once there is something to put into them.
        let get = get_many(client, location.bucket, &options, &progress);
        return all(get.files([(location.key, path)])?).await;
    }
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).map(Path::to_owned);
    let missing = tree::on_disk(move || folder.filter(|folder| !folder.exists())).await?;
    if let Some(folder) = missing {
        let Location { bucket, key } = &location;
        let asked = Location { bucket: bucket.clone(), key: key.clone() };
        head::request(client, asked, options.clone()).await?;
        tree::on_disk(move || make(&folder)).await??;
    }
    let info = get::request(client, location, Wanted::All, options).progress(progress).file(path).await?;
    let mut transferred = Transferred::default();
    transferred.add(info.size);
    Ok(transferred)
}

async fn all(mut outcomes: Outcomes<ObjectInfo>) -> Result<Transferred, Trouble> {
    let mut transferred = Transferred::default();
    while let Some((_, outcome)) = outcomes.next().await {
        transferred.add(outcome?.size);
    }
    Ok(transferred)
}

/// Lists what is under the prefix, and says which file each object goes to.
async fn find(
    client: &Client,
    bucket: &str,
    prefix: &str,
    root: PathBuf,
    options: &ReadOptions,
    found: mpsc::Sender<(String, PathBuf)>,
) -> Result<(), Trouble> {
    let mut list = client.list(bucket).prefix(prefix);
    if options.request_payer {
        list = list.request_payer();
    }
    if let Some(account) = &options.expected_bucket_owner {
        list = list.expected_owner(account);
    }
    let mut pages = list.pages();
    let mut places = Places { bucket: bucket.to_owned(), prefix: prefix.to_owned(), root, target: None };
    while let Some(page) = pages.next().await {
        let objects = page?.objects;
        let (mapped, back) = tree::on_disk(move || (places.of(objects), places)).await?;
        places = back;
        let (files, refused) = mapped;
        for file in files {
            if found.send(file).await.is_err() {
                // The transfers have ended: they say why.
                return Ok(());
            }
        }
        refused?;
    }
    Ok(())
}

/// Which files the objects under a prefix go to.
struct Places {
    bucket: String,
    prefix: String,
    root: PathBuf,
    /// Made for the first of them.
    target: Option<Target>,
}

impl Places {
    /// Those of a page, up to the first that cannot be.
    fn of(&mut self, objects: Vec<ListedObject>) -> (Vec<(String, PathBuf)>, Result<(), Trouble>) {
        let mut files = Vec::with_capacity(objects.len());
        for object in objects {
            match self.place(&object) {
                Ok(None) => {}
                Ok(Some(path)) => files.push((object.key, path)),
                Err(refused) => return (files, Err(refused)),
            }
        }
        (files, Ok(()))
    }

    fn place(&mut self, object: &ListedObject) -> Result<Option<PathBuf>, Trouble> {
        let relative = object.key.strip_prefix(&self.prefix).unwrap_or(&object.key);
        if object.size == 0 && (relative.is_empty() || relative.ends_with('/')) {
            // An empty object that stands for a folder.
            return Ok(None);
        }
        let target = match &mut self.target {
            Some(target) => target,
            None => {
                make(&self.root)?;
                self.target.insert(Target::new(&self.root))
            }
        };
        target.map(relative).map(Some).map_err(|why| {
            Trouble::Refused(format!(
                "s3://{}/{} is refused: {why}; download it by itself, to a path of your choice",
                self.bucket, object.key
            ))
        })
    }
}

fn make(folder: &Path) -> Result<(), Trouble> {
    if folder.exists() && !folder.is_dir() {
        return Err(Trouble::local("download into", folder, io::ErrorKind::NotADirectory.into()));
    }
    std::fs::create_dir_all(folder).map_err(|source| Trouble::local("make the folder", folder, source))
}

#[pymethods]
impl Verbs {
    /// Downloads one object to a file, all under a prefix into a folder, or a list of objects.
    ///
    /// A `source` that ends in ``/``, or names only a bucket, is a prefix: `target` is the folder that it
    /// is put into, keys becoming paths below it. Otherwise it is one object; a `target` that is a folder
    /// or ends in ``/`` gets a file of the object's own name. A list of pairs ``(location, path)`` needs
    /// no `target`. Missing folders are made, files that exist are replaced.
    ///
    /// It is one pipeline: downloads begin while the prefix is still being listed. A file appears under
    /// its name when it is whole. Empty objects that stand for folders (``photos/``) are left out. The
    /// first failure stops the rest and is raised; files that were complete stay.
    ///
    /// Returns a `Transferred`. Raises as `get`; `ConfigError` where a key would leave the folder
    /// (``../x``, ``/x``, through a symbolic link); `LocalIOError` where a file cannot be written.
    #[pyo3(signature = (source, target=None, *, bucket=None, progress=None, **options))]
    fn download(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        target: Option<PathBuf>,
        bucket: Option<&str>,
        progress: Option<Py<PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let wish = Wish::parse(source, target, bucket)?;
        let options = ReadOptions::parse(options)?;
        let of_one = options.version_id.is_some() || options.if_match.is_some();
        if of_one && !matches!(wish, Wish::Object(..)) {
            return Err(errors::config("version_id and if_match are of one object: download it by itself"));
        }
        let live = self.live(py)?;
        let (counts, watch) = Watch::new(progress);
        let engine = live.engine.clone();
        let future = async move { Ok(run(engine, wish, options, counts).await) };
        Call { future, finish: tree::finish, watch }.run(py, &live, self.awaitable)
    }
}

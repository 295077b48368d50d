//! What must hold after every schedule, whatever went wrong in it; and what must have come of a single fault.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use wirespeed::{Client, Error, ErrorKind, Unverified, Verified};
use wirespeed_origin::{Action, Running, Verb};

use crate::operations::{BUCKET, Outcome, POOL, Scene};
use crate::schedule::{Operation as Op, Schedule};
use crate::site::SECRETS;

/// How long a machine that does other things as well may take for what should be there at once. Less than the five
/// seconds after which a client's housekeeping would notice by itself that the client is gone.
const SOON: Duration = Duration::from_secs(3);

/// Every error says what was done to what, and no secret.
pub fn errors(schedule: &Schedule, errors: &[Error], wrong: &mut Vec<String>) {
    for error in errors {
        let shown = format!("{error} {error:?} {}", sources(error));
        if let Some(secret) = SECRETS.iter().find(|secret| shown.contains(**secret)) {
            wrong.push(format!("an error shows the secret {secret}: {shown}"));
        }
        if error.operation() != Some(schedule.operation.name()) {
            wrong.push(format!("an error of another operation, {:?}: {shown}", error.operation()));
        }
        if error.bucket() != Some(BUCKET) {
            wrong.push(format!("an error without its bucket: {shown}"));
        }
        let has_key = !matches!(schedule.operation, Op::List | Op::DeleteMany);
        if error.key().is_some() != has_key {
            wrong.push(format!("an error with the key {:?}: {shown}", error.key()));
        }
        if error.message().trim().is_empty() {
            wrong.push(format!("an error that says nothing: {shown}"));
        }
        if error.kind() == ErrorKind::Cancelled {
            wrong.push(format!("cancelled by nobody: {shown}"));
        }
    }
}

fn sources(error: &dyn std::error::Error) -> String {
    let mut text = String::new();
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(" {cause} {cause:?}");
        source = cause.source();
    }
    text
}

/// The server holds the old or the new, whole; and the new where that was said to have succeeded.
pub async fn server(schedule: &Schedule, scene: &Scene, origin: &Running, outcome: &Outcome, wrong: &mut Vec<String>) {
    let done = outcome.succeeded > 0;
    match schedule.operation {
        operation if operation.is_put() || operation.is_copy() => {
            let there = origin.object(BUCKET, "key").await;
            let is_new = |bytes: &Vec<u8>| match operation.is_copy() {
                true => scene.is_version(bytes, scene.content),
                false => bytes == scene.content,
            };
            match (&there, done) {
                (Some(bytes), _) if is_new(bytes) => {}
                (Some(bytes), false) if schedule.exists && bytes == scene.old => {}
                (None, false) if !schedule.exists => {}
                (there, _) => wrong.push(format!(
                    "success {done}, and the server has {:?} bytes that are neither the old nor the new",
                    there.as_ref().map(Vec::len)
                )),
            }
        }
        Op::DeleteMany => {
            for index in 0..schedule.count {
                let key = format!("key-{index}");
                let is_there = origin.object(BUCKET, &key).await.is_some();
                if done && is_there != outcome.kept.contains(&key) {
                    wrong.push(format!("deleting {key} was told wrong: it is there: {is_there}"));
                }
            }
        }
        _ => {}
    }
}

/// No half file, nothing temporary, and what was there is there until there is something better.
pub async fn folder(schedule: &Schedule, scene: &Scene, outcome: &Outcome, wrong: &mut Vec<String>) {
    let allowed: &[&str] = match schedule.operation {
        Op::GetFile => &["target"],
        operation if operation.writes_many() => &["many"],
        Op::PutFile | Op::PutFound | Op::MultipartFile => &["source"],
        _ => &[],
    };
    let left = || {
        let names = |path: &std::path::Path| -> Vec<String> {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        };
        let mut left = names(scene.folder.path());
        left.retain(|name| !allowed.contains(&&**name));
        let many = names(&scene.folder.path().join("many"));
        left.extend(many.into_iter().filter(|name| name.parse::<u64>().is_err()));
        left
    };
    // What a cancelled download has begun to open is closed and removed on another thread.
    if !soon(|| left().is_empty()).await {
        wrong.push(format!("left in the folder: {:?}", left()));
    }
    if schedule.operation == Op::GetFile {
        let there = std::fs::read(scene.target()).ok();
        let is_old = |bytes: &Option<Vec<u8>>| match (bytes, schedule.exists) {
            (Some(bytes), true) => bytes == scene.old,
            (None, false) => true,
            _ => false,
        };
        let is_new = there.as_ref().is_some_and(|bytes| scene.is_version(bytes, scene.content));
        if !is_new && outcome.unverified == 0 && (outcome.succeeded > 0 || !is_old(&there)) && !schedule.tampers() {
            wrong.push(format!("the file has {:?} bytes, neither old nor new", there.map(|bytes| bytes.len())));
        }
    }
    if schedule.operation.writes_many() && !schedule.tampers() {
        for index in 0..schedule.count {
            if let Ok(bytes) = std::fs::read(scene.many(index))
                && !scene.is_version(&bytes, scene.nth(index))
            {
                wrong.push(format!("file {index} has {} bytes that are not its object's", bytes.len()));
            }
        }
    }
}

/// No upload is left on the server but those that are told of; and those of which no answer ever said how they are
/// called.
pub fn uploads(schedule: &Schedule, origin: &Running, client: &Client, outcome: &Outcome, wrong: &mut Vec<String>) {
    let open = origin.open_uploads(BUCKET);
    let unfinished = client.unfinished_uploads();
    let told: HashSet<&str> = unfinished
        .iter()
        .filter_map(|upload| upload.upload_id.as_deref())
        .chain(outcome.errors.iter().filter_map(Error::upload_id))
        .collect();
    let silent: Vec<_> = open.iter().filter(|(_, id)| !told.contains(&**id)).collect();
    // Every request that starts an upload and has no answer that can be read may have left one.
    let asked = origin.stats().count(Verb::CreateMultipart);
    let lost = if schedule.meets(Verb::CreateMultipart) { asked } else { asked.saturating_sub(1) };
    if silent.len() as u64 > lost {
        wrong.push(format!("ORPHANED UPLOADS {silent:?}; told of: {told:?}; {asked} were asked for"));
    }
    let can_fail = schedule.meets(Verb::AbortMultipart) || origin.stats().count(Verb::AbortMultipart) > 1;
    if !told.is_empty() && !can_fail {
        wrong.push(format!("uploads {told:?} could not be aborted, though nothing was in the way"));
    }
}

/// No memory, connection or task is held for what has ended.
pub async fn held(origin: &Running, client: &Client, wrong: &mut Vec<String>) {
    if !soon(|| client.metrics().memory_in_use == 0).await {
        wrong.push(format!("LEAKED MEMORY: {} bytes of pooled memory are in use", client.metrics().memory_in_use));
    }
    let balanced = || origin.stats().connections_open == client.metrics().connections_idle;
    // A connection that the server has closed is found closed when it is used.
    if !soon(|| origin.stats().connections_open <= client.metrics().connections_idle).await && !balanced() {
        let (open, idle) = (origin.stats().connections_open, client.metrics().connections_idle);
        wrong.push(format!("LEAKED CONNECTION: the server has {open} open, the client {idle} idle"));
    }
}

/// Nothing is left of a client that is gone.
pub async fn gone(origin: &Running, wrong: &mut Vec<String>) {
    if !soon(|| origin.stats().connections_open == 0).await {
        wrong.push(format!("LEAKED CONNECTION: {} are open without a client", origin.stats().connections_open));
    }
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    if !soon(|| tasks() == 0).await {
        wrong.push(format!("LEAKED TASK: {} are alive without a client", tasks()));
    }
}

/// More than a share of the smallest memory budget, a quarter of 4 MiB.
const LARGE: usize = 1_200_000;

/// The same client does its work when nothing is wrong any more: no place and no room in the budget is lost.
pub async fn probe(client: &Client, origin: &Running, schedule: &Schedule, wrong: &mut Vec<String>) {
    let many = matches!(schedule.operation, Op::GetManyBuffers | Op::GetStream | Op::GetParts);
    let expected = if many { &POOL[..LARGE] } else { b"probe" };
    let probing = async {
        // From a reader: what it gathers first takes all of the budget's passing share, where that is small.
        client.put(BUCKET, "probe").reader(b"probe".as_slice()).await.map_err(|error| error.to_string())?;
        if many {
            // Beyond its first part, an object that is kept takes all of another share.
            origin.put_object(BUCKET, "probe", expected).await.map_err(|error| error.to_string())?;
            let mut objects =
                client.get_many(BUCKET).buffers(["probe".to_owned()]).map_err(|error| error.to_string())?;
            return match objects.next().await {
                Some((_, Ok(object))) => Ok(object.body.to_vec()),
                Some((_, Err(error))) => Err(error.to_string()),
                None => Err("nothing".to_owned()),
            };
        }
        let object = client.get(BUCKET, "probe").buffer().await.map_err(|error| error.to_string())?;
        Ok::<_, String>(object.body.to_vec())
    };
    match tokio::time::timeout(6 * SOON, probing).await {
        Ok(Ok(bytes)) if bytes == expected => {}
        Ok(Ok(bytes)) => wrong.push(format!("the probe read {} other bytes", bytes.len())),
        Ok(Err(error)) => wrong.push(format!("the probe failed: {error}")),
        Err(_) => wrong.push("LEAKED PERMIT, most likely: the probe came to no end".to_owned()),
    }
}

/// How many files and sockets this process has open, where the system tells.
pub fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// No socket and no file is left of anything that ran: the server sees no connection that it has closed itself.
pub fn closed(before: usize) -> Result<(), String> {
    let end = Instant::now() + SOON;
    while open_files() > before {
        if Instant::now() > end {
            return Err(format!("LEAKED FILES: {} open, {before} before", open_files()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Whether something becomes true within [`SOON`].
async fn soon(is_so: impl Fn() -> bool) -> bool {
    let end = Instant::now() + SOON;
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// What must come of a single fault that happens once.
enum Must {
    Succeed,
    Fail(&'static [ErrorKind]),
    /// One or the other; the invariants say the rest.
    End,
}

fn demand(schedule: &Schedule) -> Must {
    use ErrorKind as K;
    let [fault] = &schedule.faults[..] else {
        // Nothing goes wrong; or it goes wrong on purpose, so that there is something to abort.
        return if schedule.faults.is_empty() { Must::Succeed } else { Must::Fail(&[K::Denied]) };
    };
    let operation = schedule.operation;
    let verb = fault.verb;
    // Beside a download, the HEAD may fail as it likes.
    if operation.is_get() && verb == Some(Verb::Head) && !matches!(fault.action, Action::Replace(_)) {
        return Must::Succeed;
    }
    match &fault.action {
        Action::Reset | Action::Close | Action::Stall | Action::SlowHead(_) | Action::Delay(_) => Must::Succeed,
        // Where no range was asked for it is nonsense; and any of those that are listed may meet it.
        Action::BareStatus(416) if whole_in_one(operation) => Must::Fail(&[K::Config]),
        Action::BareStatus(416) if operation == Op::GetManyListed => Must::End,
        Action::Status(_) | Action::BareStatus(_) | Action::ResetUpload(_) | Action::Longer(_) | Action::ResetEnd => {
            Must::Succeed
        }
        Action::ResetAnswer | Action::CloseAnswer | Action::ResetAfter(_) | Action::CloseAfter(_) => Must::Succeed,
        Action::StallAfter(_) | Action::IgnoreRange | Action::Clock(_) => Must::Succeed,
        Action::RefuseTrailers | Action::RefuseChecksums | Action::Redirect(_) | Action::WrongRegion(_) => {
            Must::Succeed
        }
        Action::WeakEtag => Must::Succeed,
        Action::NoEtag if matches!(verb, Some(Verb::Put | Verb::UploadPart)) => Must::Fail(&[K::Protocol]),
        Action::NoEtag => Must::Succeed,
        Action::ErrorInBody(code) if code == "InternalError" && operation != Op::DeleteMany => Must::Succeed,
        Action::ErrorInBody(_) if operation == Op::DeleteMany => Must::Succeed,
        Action::ErrorInBody(_) => Must::Fail(&[K::Denied]),
        // The answer to a HEAD cannot say what was expired.
        Action::ExpiredToken if verb == Some(Verb::Head) => Must::Fail(&[K::Config]),
        Action::Error(..) | Action::ExpiredToken => Must::Fail(&[K::Denied]),
        // The small ones of them are asked for whole and the large ones by ranges, and any may meet it.
        Action::Corrupt(_) | Action::ShiftRange(_) | Action::ContentRange(_) if operation == Op::GetManyListed => {
            Must::End
        }
        // Of a large object only the beginning is taken of the answer that brings it whole.
        Action::Corrupt(_) if whole_in_one(operation) => Must::End,
        Action::Corrupt(_) => Must::Fail(&[K::Integrity]),
        // A whole object's Content-Range says nothing, unless it cannot be read.
        Action::ShiftRange(_) if whole_in_one(operation) => Must::Succeed,
        Action::ContentRange(_) if whole_in_one(operation) => Must::End,
        Action::ContentRange(_) | Action::ShiftRange(_) | Action::Padded(_) | Action::Short(_) => {
            Must::Fail(&[K::Integrity, K::Protocol, K::Precondition])
        }
        // A head that is cut off, or comes on a connection that was used before, is asked for again; so are some kinds
        // of malformed documents.
        _ => Must::End,
    }
}

/// Objects that are asked for whole, since they will be small: where nobody knows better.
fn whole_in_one(operation: Op) -> bool {
    matches!(operation, Op::GetManyBuffers | Op::GetManyFiles)
}

/// What a case of the matrix must come to, and that its fault was met at all.
pub fn matrix(schedule: &Schedule, origin_faults: u64, outcome: &Outcome, wrong: &mut Vec<String>) {
    if (origin_faults == 0) != schedule.faults.is_empty() {
        wrong.push("the fault met no request: this case tests nothing".to_owned());
    }
    let kinds: Vec<ErrorKind> = outcome.errors.iter().map(Error::kind).collect();
    match demand(schedule) {
        Must::Succeed if !kinds.is_empty() => wrong.push(format!("it must succeed: {:?}", outcome.errors)),
        Must::Fail(meant) if kinds.is_empty() || !kinds.iter().all(|kind| meant.contains(kind)) => {
            wrong.push(format!("it must fail as one of {meant:?}: {:?}", outcome.errors));
        }
        _ => {}
    }
    if schedule.faults.is_empty()
        && schedule.operation.is_get()
        && !matches!(outcome.verified, Some(Verified::FullObject(_)))
    {
        wrong.push(format!("the server told a checksum, and it was not compared: {:?}", outcome.verified));
    }
}

/// Without a checksum nothing is said to be verified.
pub fn verification(schedule: &Schedule, outcome: &Outcome, wrong: &mut Vec<String>) {
    match outcome.verified {
        Some(Verified::FullObject(_)) if !schedule.checksums || !schedule.verify => {
            wrong.push("compared with a checksum that nobody has, or wants".to_owned());
        }
        Some(Verified::Not(Unverified::NoChecksum)) if schedule.checksums && !schedule.replaces() => {
            wrong.push("the server has a checksum, and it was not seen".to_owned());
        }
        _ => {}
    }
}

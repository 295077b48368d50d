use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;

use proptest::prelude::*;
use tempfile::TempDir;

use super::history::AcceptedPart;
use super::*;

fn job() -> JobName {
    let landing = Some(std::env::temp_dir());
    JobName {
        verb: "cp".to_owned(),
        source: "s3://b/a/".to_owned(),
        destination: "/x".to_owned(),
        options: "--recursive".to_owned(),
        landing,
    }
}

fn item(name: u8) -> Entry {
    Entry { key: format!("k{name}"), size: Some(u64::from(name)), ..Entry::default() }
}

fn download(id: u64, key: &str) -> Record {
    Record::Download {
        id,
        key: key.to_owned(),
        temporary: PathBuf::from(format!("/x/.{key}.{id}")),
        size: 1 << 20,
        etag: Some("\"e\"".to_owned()),
        version_id: None,
        last_modified: None,
    }
}

fn upload(id: u64, key: &str) -> Record {
    Record::Upload {
        id,
        key: key.to_owned(),
        upload_id: format!("upload-{id}"),
        bucket: "b".to_owned(),
        target: format!("a/{key}"),
        part_size: 5 << 20,
        checksum: Some("crc64nvme".to_owned()),
        size: 100 << 20,
        modified: Some(5),
        inode: Some(7),
    }
}

/// What a job may tell.
#[derive(Debug, Clone)]
enum Step {
    Finish(u8),
    Download(u8),
    Upload(u8),
    Landed(u8, u16, u16),
    Part(u8, u32),
    Failed(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..6_u8).prop_map(Step::Finish),
        (0..6_u8).prop_map(Step::Download),
        (0..6_u8).prop_map(Step::Upload),
        (0..6_u8, any::<u16>(), 1..999_u16).prop_map(|(item, from, length)| Step::Landed(item, from, length)),
        (0..6_u8, 1..5_u32).prop_map(|(item, number)| Step::Part(item, number)),
        (0..6_u8).prop_map(Step::Failed),
    ]
}

fn take(state: &State, step: &Step) {
    match *step {
        Step::Finish(name) => state.finished(&item(name)),
        Step::Download(name) => state.tell_with(|history| download(history.next_id(), &item(name).key)),
        Step::Upload(name) => state.tell_with(|history| upload(history.next_id(), &item(name).key)),
        Step::Landed(name, from, length) => state.tell_with(|history| Record::Landed {
            id: history.id(&item(name).key).unwrap_or(u64::MAX),
            from: from.into(),
            until: u64::from(from) + u64::from(length),
        }),
        Step::Part(name, number) => state.tell_with(|history| Record::Part {
            id: history.id(&item(name).key).unwrap_or(u64::MAX),
            number,
            size: 5 << 20,
            etag: format!("\"{number}\""),
            checksum: None,
        }),
        Step::Failed(name) => state.failed(&item(name).key, "it broke"),
    }
}

/// The same, told without a file: the finished items, and of each half-done one the bytes or parts that are there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Model {
    finished: BTreeSet<u8>,
    halves: BTreeMap<String, ModelHalf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ModelHalf {
    Download(BTreeSet<u64>),
    Upload(BTreeSet<u32>),
}

impl Model {
    fn take(&mut self, step: &Step) {
        match *step {
            Step::Finish(name) => {
                self.finished.insert(name);
                self.halves.remove(&item(name).key);
            }
            Step::Download(name) => {
                self.halves.insert(item(name).key, ModelHalf::Download(BTreeSet::new()));
            }
            Step::Upload(name) => {
                self.halves.insert(item(name).key, ModelHalf::Upload(BTreeSet::new()));
            }
            Step::Landed(name, from, length) => {
                if let Some(ModelHalf::Download(bytes)) = self.halves.get_mut(&item(name).key) {
                    bytes.extend(u64::from(from)..u64::from(from) + u64::from(length));
                }
            }
            Step::Part(name, number) => {
                if let Some(ModelHalf::Upload(parts)) = self.halves.get_mut(&item(name).key) {
                    parts.insert(number);
                }
            }
            Step::Failed(_) => {}
        }
    }

    /// What a state that was just opened knows.
    fn of(state: &State) -> Model {
        let finished = (0..6).filter(|name| state.is_finished(&item(*name))).collect();
        let told = state.shared.told();
        let halves = told.history.halves().into_iter().map(|(key, half)| {
            let half = match half {
                Half::Download(half) => ModelHalf::Download(half.landed.iter().cloned().flatten().collect()),
                Half::Upload(half) => ModelHalf::Upload(half.parts.iter().map(|part| part.number).collect()),
            };
            (key.to_owned(), half)
        });
        Model { finished, halves: halves.collect() }
    }
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    (folder, path)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// A file that is cut anywhere is what it was after some step, and the steps before the cut are all in it.
    #[test]
    fn every_beginning_of_a_file_is_a_beginning_of_its_history(
        steps in prop::collection::vec(step(), 0..20),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 8),
    ) {
        let (_folder, path) = folder();
        let state = State::open(&path, &job()).unwrap();
        let begin = fs::read(&path).unwrap().len();
        let mut model = Model::default();
        let mut history = vec![(begin, model.clone())];
        for step in &steps {
            take(&state, step);
            model.take(step);
            history.push((fs::read(&path).unwrap().len(), model.clone()));
        }
        drop(state);
        let whole = fs::read(&path).unwrap();
        for cut in cuts {
            let cut = begin + cut.index(whole.len() - begin + 1);
            fs::write(&path, &whole[..cut]).unwrap();
            let (_, expected) = history.iter().rfind(|(length, _)| *length <= cut).unwrap();
            prop_assert_eq!(&Model::of(&State::open(&path, &job()).unwrap()), expected, "cut at {}", cut);
        }
    }

    /// However often a job is killed and goes on, what it told is known, but for a last line that was torn.
    #[test]
    fn a_job_that_is_killed_again_and_again(
        runs in prop::collection::vec((prop::collection::vec(step(), 0..12), any::<prop::sample::Index>(), any::<bool>()), 1..6),
    ) {
        let (_folder, path) = folder();
        let mut model = Model::default();
        for (steps, cut, torn) in &runs {
            let state = State::open(&path, &job()).unwrap();
            prop_assert_eq!(&Model::of(&state), &model);
            let mut before = model.clone();
            for step in steps {
                before = model.clone();
                take(&state, step);
                model.take(step);
            }
            drop(state);
            if *torn && !steps.is_empty() {
                let whole = fs::read(&path).unwrap();
                let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
                fs::write(&path, &whole[..last + cut.index(whole.len() - last)]).unwrap();
                model = before;
            }
        }
        prop_assert_eq!(&Model::of(&State::open(&path, &job()).unwrap()), &model);
    }

    /// A disk that changed a byte costs what stood behind it, and no more than that.
    #[test]
    fn damage_costs_what_stands_behind_it(
        steps in prop::collection::vec(step(), 1..12),
        place in any::<prop::sample::Index>(),
    ) {
        let (_folder, path) = folder();
        let state = State::open(&path, &job()).unwrap();
        let begin = fs::read(&path).unwrap().len();
        let mut model = Model::default();
        let mut history = vec![(begin, model.clone())];
        for step in &steps {
            take(&state, step);
            model.take(step);
            history.push((fs::read(&path).unwrap().len(), model.clone()));
        }
        drop(state);
        let mut bytes = fs::read(&path).unwrap();
        let place = begin + place.index(bytes.len() - begin);
        bytes[place] ^= 0x10;
        fs::write(&path, bytes).unwrap();
        let (_, expected) = history.iter().rfind(|(length, _)| *length <= place).unwrap();
        prop_assert_eq!(&Model::of(&State::open(&path, &job()).unwrap()), expected);
    }
}

#[test]
fn another_job_is_refused_with_what_is_different() {
    let (_folder, path) = folder();
    drop(State::open(&path, &job()).unwrap());
    let kept = fs::read(&path).unwrap();
    for (other, word) in [
        (JobName { verb: "sync".to_owned(), ..job() }, "verb"),
        (JobName { source: "s3://b/c/".to_owned(), ..job() }, "source is `s3://b/a/`, not `s3://b/c/`"),
        (JobName { destination: "/y".to_owned(), ..job() }, "destination"),
        (JobName { options: "--recursive --exclude *".to_owned(), ..job() }, "options"),
    ] {
        let error = State::open(&path, &other).err().unwrap();
        assert!(matches!(error, StateError::OtherJob { .. }), "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
    assert_eq!(fs::read(&path).unwrap(), kept);
}

#[test]
fn a_second_process_is_refused_and_told_which_is_the_first() {
    let (_folder, path) = folder();
    let first = State::open(&path, &job()).unwrap();
    let refused = State::open(&path, &job()).err().unwrap();
    assert!(matches!(refused, StateError::Locked { pid: Some(pid), .. } if pid == std::process::id()), "{refused}");
    drop(first);
    assert!(State::open(&path, &job()).is_ok());
}

#[test]
fn what_is_no_resume_file_is_left_alone() {
    let (_folder, path) = folder();
    for content in ["my thesis", "1", "00000000 {}\n", "\n"] {
        fs::write(&path, content).unwrap();
        let error = State::open(&path, &job()).err().unwrap();
        assert!(matches!(error, StateError::Foreign { version: None, .. }), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    let mut line = Vec::new();
    let of_later = Job { wirespeed_state: 2, ..job_line(&path) };
    write_line(&mut line, &Record::Job(of_later));
    fs::write(&path, &line).unwrap();
    assert!(matches!(State::open(&path, &job()), Err(StateError::Foreign { version: Some(2), .. })));
    assert_eq!(fs::read(&path).unwrap(), line);
}

/// The first line of a new file.
fn job_line(path: &Path) -> Job {
    fs::remove_file(path).unwrap();
    drop(State::open(path, &job()).unwrap());
    let bytes = fs::read(path).unwrap();
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    match record::read_line(&bytes[..end]) {
        Some(Record::Job(job)) => job,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_item_that_changed_is_not_the_one_that_was_finished() {
    let (_folder, path) = folder();
    let state = State::open(&path, &job()).unwrap();
    state.finished(&item(1));
    drop(state);
    let state = State::open(&path, &job()).unwrap();
    assert!(state.is_finished(&item(1)));
    assert!(!state.is_finished(&Entry { size: Some(9), ..item(1) }));
    assert!(!state.is_finished(&Entry { etag: Some("\"new\"".to_owned()), ..item(1) }));
    assert_eq!(state.resumed(), Resumed { finished: 1, half_done: 0 });
}

#[test]
fn leftovers_are_named_until_their_item_is_finished() {
    let (_folder, path) = folder();
    let state = State::open(&path, &job()).unwrap();
    take(&state, &Step::Download(1));
    take(&state, &Step::Upload(2));
    drop(state);
    let state = State::open(&path, &job()).unwrap();
    let upload = Leftover::Upload {
        key: "k2".to_owned(),
        bucket: "b".to_owned(),
        target: "a/k2".to_owned(),
        upload_id: "upload-2".to_owned(),
    };
    let temporary = Leftover::Temporary { key: "k1".to_owned(), path: PathBuf::from("/x/.k1.1") };
    assert_eq!(state.leftovers(), [temporary, upload.clone()]);
    state.finished(&item(1));
    assert_eq!(state.leftovers(), [upload]);
    state.finished(&item(2));
    assert_eq!(state.leftovers(), []);
    state.complete().unwrap();
    assert!(!path.exists());
}

#[test]
fn an_old_file_is_written_anew_and_says_the_same() {
    let (_folder, path) = folder();
    let state = State::open(&path, &job()).unwrap();
    for name in 0..6 {
        take(&state, &Step::Upload(name));
        (1..=4).for_each(|number| take(&state, &Step::Part(name, number)));
    }
    take(&state, &Step::Finish(2));
    take(&state, &Step::Download(3));
    for _ in 0..30_000 {
        take(&state, &Step::Landed(3, 7, 900));
    }
    drop(state);
    let long = fs::metadata(&path).unwrap().len();
    assert!(long > 1 << 20, "{long}");
    let state = State::open(&path, &job()).unwrap();
    let model = Model::of(&state);
    assert_eq!(model.finished, BTreeSet::from([2]));
    assert_eq!(model.halves["k3"], ModelHalf::Download((7..907).collect()));
    assert_eq!(model.halves["k4"], ModelHalf::Upload((1..=4).collect()));
    assert!(fs::metadata(&path).unwrap().len() < 10_000);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing else is left beside it");
    // It is locked and written to under its name.
    assert!(matches!(State::open(&path, &job()), Err(StateError::Locked { .. })));
    take(&state, &Step::Finish(4));
    drop(state);
    assert_eq!(Model::of(&State::open(&path, &job()).unwrap()).finished, BTreeSet::from([2, 4]));
}

/// What was told before the last sync is believed after the machine went down, what came later is not.
#[test]
#[allow(clippy::single_range_in_vec_init)] // One range is what is meant.
fn after_a_restart_of_the_machine_only_what_was_synced_counts() {
    let (_folder, path) = folder();
    let state = State::open(&path, &job()).unwrap();
    take(&state, &Step::Finish(1));
    take(&state, &Step::Download(3));
    take(&state, &Step::Landed(3, 0, 100));
    let until = fs::metadata(&path).unwrap().len();
    take(&state, &Step::Finish(2));
    state.tell(Record::Synced { until });
    take(&state, &Step::Landed(3, 100, 100));
    take(&state, &Step::Finish(4));
    drop(state);
    let bytes = fs::read(&path).unwrap();

    let opened = |boot: Option<String>, landing: Option<&Path>| {
        fs::write(&path, &bytes).unwrap();
        let job = job_of(&job());
        let opened = Opener { path: &path, job, landing, boot }.open().unwrap();
        let landed = match opened.history.half("k3") {
            Some(Half::Download(half)) => half.landed.clone(),
            _ => Vec::new(),
        };
        (opened.finished.len(), landed)
    };
    let folder = Some(Path::new("/"));
    assert_eq!(opened(boot(), folder), (3, vec![0..200]));
    assert_eq!(opened(Some("another".to_owned()), folder), (1, vec![0..100]));
    assert_eq!(opened(None, folder), (1, vec![0..100]), "who knows");
    assert_eq!(opened(Some("another".to_owned()), None), (3, vec![0..200]), "what is with the server stays there");
}

fn job_of(name: &JobName) -> Job {
    Job {
        wirespeed_state: VERSION,
        verb: name.verb.clone(),
        source: name.source.clone(),
        destination: name.destination.clone(),
        options: name.options.clone(),
        seed: String::new(),
    }
}

#[test]
fn a_part_that_is_sent_again_is_the_one_that_counts() {
    let (_folder, path) = folder();
    let state = State::open(&path, &job()).unwrap();
    take(&state, &Step::Upload(1));
    for (number, etag) in [(2, "a"), (1, "b"), (2, "c")] {
        state.tell(Record::Part { id: 1, number, size: 5, etag: etag.to_owned(), checksum: None });
    }
    drop(state);
    let state = State::open(&path, &job()).unwrap();
    let told = state.shared.told();
    let Some(Half::Upload(half)) = told.history.half("k1") else { panic!("{:?}", told.history) };
    let part = |number, etag: &str| AcceptedPart { number, size: 5, etag: etag.to_owned(), checksum: None };
    assert_eq!(half.parts, [part(1, "b"), part(2, "c")]);
}

#[test]
fn many_threads_may_tell_at_once() {
    let (_folder, path) = folder();
    let state = State::open(&path, &job()).unwrap();
    let named = |number: u32| Entry::named(format!("{number}"));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let state = &state;
            scope.spawn(move || (0..500).for_each(|number| state.finished(&named(thread * 500 + number))));
        }
    });
    drop(state);
    let state = State::open(&path, &job()).unwrap();
    assert!((0..4_000).all(|number| state.is_finished(&named(number))));
    assert_eq!(state.resumed().finished, 4_000);
}

/// A process that ends without a word has lost nothing that it told.
#[test]
fn what_was_told_is_in_the_file_when_the_call_returns() {
    let (_folder, path) = folder();
    let state = State::open(&path, &job()).unwrap();
    state.finished(&item(3));
    let bytes = fs::read(&path).unwrap();
    let copy = path.with_file_name("copy");
    fs::File::create(&copy).unwrap().write_all(&bytes).unwrap();
    assert!(State::open(&copy, &job()).unwrap().is_finished(&item(3)));
}

/// What stands in ADR 17; `cargo test --release --lib ten_million -- --ignored --nocapture` prints it.
#[test]
#[ignore = "ten million items take a minute"]
fn ten_million_finished_items_take_eight_bytes_each() {
    const ITEMS: u64 = 10_000_000;
    let (_folder, path) = folder();
    let item = |number: u64| Entry {
        key: format!("prefix/of/some/length/{number:010}"),
        size: Some(number),
        etag: Some("\"0123456789abcdef0123456789abcdef\"".to_owned()),
        ..Entry::default()
    };
    let state = State::open(&path, &job()).unwrap();
    let before = resident_bytes();
    let began = Instant::now();
    (0..ITEMS).for_each(|number| state.finished(&item(number)));
    let (told, grown) = (began.elapsed(), resident_bytes().saturating_sub(before));
    assert!(grown < 16 << 20, "{grown} bytes for what this run finished");
    drop(state);
    let long = fs::metadata(&path).unwrap().len();
    for _ in 0..2 {
        let (before, began) = (resident_bytes(), Instant::now());
        let state = State::open(&path, &job()).unwrap();
        let (opened, grown) = (began.elapsed(), resident_bytes().saturating_sub(before));
        let began = Instant::now();
        assert!((0..ITEMS).step_by(10).all(|number| state.is_finished(&item(number))));
        assert!(!(ITEMS..ITEMS + 1000).any(|number| state.is_finished(&item(number))));
        let asked = began.elapsed() * 10;
        let short = fs::metadata(&path).unwrap().len();
        println!(
            "told in {told:?}, {long} bytes; opened in {opened:?}, {grown} bytes more; asked in {asked:?}; {short} bytes"
        );
        assert!(grown < 100 << 20, "{grown} bytes");
    }
}

/// Resident memory of this process (statm's second number is in pages of 4 KiB).
fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

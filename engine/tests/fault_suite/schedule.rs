//! From a seed to a schedule: what is done, over what, and what goes wrong meanwhile. Pure: the same seed is the same
//! schedule on every machine, and nothing here does anything.
//!
//! A schedule draws one operation, the shape of its client and server, and up to three faults that mix; and now and
//! then a caller that gives up or is slow. [`matrix`] has no chance in it: each fault once, for each request of each
//! operation, plain and over TLS.

use std::fmt;
use std::time::Duration;

use wirespeed_origin::{ANYWHERE, Action, BadHead, Fault, Verb};

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;

/// Numbers from a seed (SplitMix64).
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Draw {
        Draw(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    GetBuffer,
    GetOwned,
    GetFile,
    GetWriter,
    GetStream,
    GetParts,
    GetManyBuffers,
    GetManyFiles,
    GetManyListed,
    PutBytes,
    PutFile,
    PutFound,
    PutReader,
    MultipartBytes,
    MultipartFile,
    MultipartReader,
    List,
    Copy,
    CopyByParts,
    DeleteMany,
    Head,
}

use Operation as Op;

impl Operation {
    pub const ALL: [Operation; 21] = [
        Op::GetBuffer,
        Op::GetOwned,
        Op::GetFile,
        Op::GetWriter,
        Op::GetStream,
        Op::GetParts,
        Op::GetManyBuffers,
        Op::GetManyFiles,
        Op::GetManyListed,
        Op::PutBytes,
        Op::PutFile,
        Op::PutFound,
        Op::PutReader,
        Op::MultipartBytes,
        Op::MultipartFile,
        Op::MultipartReader,
        Op::List,
        Op::Copy,
        Op::CopyByParts,
        Op::DeleteMany,
        Op::Head,
    ];

    pub fn is_get(self) -> bool {
        self <= Op::GetManyListed
    }

    /// Whether it reads many objects in one call.
    pub fn is_get_many(self) -> bool {
        (Op::GetManyBuffers..=Op::GetManyListed).contains(&self)
    }

    /// Whether it writes a file for each of them.
    pub fn writes_many(self) -> bool {
        matches!(self, Op::GetManyFiles | Op::GetManyListed)
    }

    pub fn is_put(self) -> bool {
        (Op::PutBytes..=Op::MultipartReader).contains(&self)
    }

    pub fn is_copy(self) -> bool {
        matches!(self, Op::Copy | Op::CopyByParts)
    }

    /// Whether it makes a multipart upload.
    pub fn is_multipart(self) -> bool {
        (Op::MultipartBytes..=Op::MultipartReader).contains(&self) || self == Op::CopyByParts
    }

    /// What its errors call it.
    pub fn name(self) -> &'static str {
        match self {
            Op::List => "list",
            Op::DeleteMany => "delete",
            Op::Head => "head",
            _ if self.is_get() => "get",
            _ if self.is_copy() => "copy",
            _ => "put",
        }
    }

    /// The requests that it makes when nothing goes wrong, and the one that cleans up after it.
    pub fn verbs(self) -> &'static [Verb] {
        match self {
            Op::GetManyBuffers | Op::GetManyFiles => &[Verb::Get],
            _ if self.is_get() => &[Verb::Get, Verb::Head],
            Op::PutBytes | Op::PutFile | Op::PutFound | Op::PutReader => &[Verb::Put],
            Op::List => &[Verb::List],
            Op::Copy => &[Verb::Head, Verb::Copy],
            Op::CopyByParts => &[
                Verb::Head,
                Verb::CreateMultipart,
                Verb::UploadPartCopy,
                Verb::CompleteMultipart,
                Verb::AbortMultipart,
            ],
            Op::DeleteMany => &[Verb::DeleteMany],
            Op::Head => &[Verb::Head],
            _ => &[Verb::CreateMultipart, Verb::UploadPart, Verb::CompleteMultipart, Verb::AbortMultipart],
        }
    }
}

/// Which requests a fault meets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum When {
    /// So many, from the n-th on.
    Nth(u64, u64),
    /// Every one with a probability, and each of them at most so often.
    Chance(f64, u64),
    Always,
}

/// One thing that goes wrong.
#[derive(Clone)]
pub struct Planned {
    pub action: Action,
    pub verb: Option<Verb>,
    pub key: Option<&'static str>,
    pub when: When,
}

impl Planned {
    /// As the server is told it. `other` is what an object is replaced by.
    pub fn fault(&self, other: &[u8]) -> Fault {
        let action = match &self.action {
            Action::Replace(_) => Action::Replace(other.to_vec()),
            action => action.clone(),
        };
        let mut fault = Fault::new(action);
        fault = self.verb.into_iter().fold(fault, Fault::verb);
        fault = self.key.into_iter().fold(fault, Fault::key);
        match self.when {
            When::Nth(nth, times) => fault.nth(nth).times(times),
            When::Chance(probability, times) => fault.probability(probability).times(times),
            When::Always => fault,
        }
    }

    pub fn meets(&self, verb: Verb) -> bool {
        self.verb.is_none_or(|meant| meant == verb) && suits(&self.action, verb)
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.action)?;
        match self.verb {
            Some(verb) => write!(f, " on {verb}")?,
            None => write!(f, " on any request")?,
        }
        match self.when {
            When::Nth(nth, times) => write!(f, " {nth} (x{times})"),
            When::Chance(probability, times) => write!(f, " with p={probability} (x{times})"),
            When::Always => write!(f, " always"),
        }
    }
}

/// Everything that one run does. Sizes are bytes.
#[derive(Clone)]
pub struct Schedule {
    pub seed: u64,
    pub operation: Operation,
    pub tls: bool,
    /// The server computes checksums of what comes without, as S3 does.
    pub checksums: bool,
    /// Downloads are compared with them.
    pub verify: bool,
    /// One thread for everything, or several.
    pub threads: bool,
    pub concurrency: usize,
    pub memory: u64,
    /// Of the object read, written or copied.
    pub size: u64,
    /// What replaces it, where a fault does.
    pub other_size: u64,
    /// Keys, of operations on several.
    pub count: u64,
    /// Something of that name is there already: an object, or a file.
    pub exists: bool,
    /// Writes only where nothing is.
    pub conditional: bool,
    pub faults: Vec<Planned>,
    /// The caller drops the future after this time.
    pub cancel: Option<Duration>,
    /// The caller, or its source, waits so long between pieces.
    pub pause: Option<Duration>,
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.operation, if self.tls { "over TLS" } else { "plain" })?;
        write!(f, ", {} bytes (other {}), {} keys", self.size, self.other_size, self.count)?;
        write!(f, ", checksums {}, verify {}", self.checksums, self.verify)?;
        write!(f, ", exists {}, conditional {}", self.exists, self.conditional)?;
        let threads = if self.threads { "several threads" } else { "one thread" };
        write!(f, ", concurrency {}, memory {} MiB, {threads}", self.concurrency, self.memory / MIB)?;
        if let Some(cancel) = self.cancel {
            write!(f, ", dropped after {cancel:?}")?;
        }
        if let Some(pause) = self.pause {
            write!(f, ", pauses of {pause:?}")?;
        }
        self.faults.iter().try_for_each(|fault| write!(f, "; {fault}"))
    }
}

impl Schedule {
    /// The control: nothing goes wrong.
    pub fn plain(seed: u64, operation: Operation) -> Schedule {
        let mut draw = Draw::new(seed);
        let size = match operation {
            _ if operation.is_multipart() => 5 * MIB + 1 + draw.below(200 * KIB),
            _ if operation.is_get() || operation == Op::MultipartReader => 3 * 64 * KIB + 1 + draw.below(64 * KIB),
            _ => 1 + draw.below(64 * KIB),
        };
        Schedule {
            seed,
            operation,
            tls: false,
            checksums: true,
            verify: true,
            threads: true,
            concurrency: 4,
            memory: 64 * MIB,
            size,
            other_size: size,
            count: if operation == Op::List { 23 } else { 5 },
            exists: true,
            conditional: false,
            faults: Vec::new(),
            cancel: None,
            pause: None,
        }
    }

    /// The schedule of a seed.
    pub fn random(seed: u64) -> Schedule {
        let mut draw = Draw::new(seed ^ 0x005e_ed0f_fa17);
        // Uploads in parts move megabytes, so they come less often than their share.
        let mut operation = draw.pick(&Operation::ALL);
        if operation.is_multipart() && draw.one_in(2) {
            operation = draw.pick(&Operation::ALL);
        }
        let mut schedule = Schedule::plain(seed, operation);
        schedule.tls = draw.one_in(2);
        schedule.checksums = !draw.one_in(3);
        schedule.verify = !draw.one_in(5);
        schedule.threads = draw.one_in(2);
        schedule.concurrency = draw.pick(&[1, 2, 3, 4, 8]);
        schedule.memory = draw.pick(&[4 * MIB, 4 * MIB, 64 * MIB]);
        schedule.size = match operation {
            _ if operation.is_multipart() => 5 * MIB + 1 + draw.below(draw_ceiling(seed)),
            _ => match draw.below(8) {
                0 => draw.pick(&[0, 1, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1]),
                1..=3 => draw.below(64 * KIB),
                _ => draw.below(640 * KIB),
            },
        };
        schedule.count = match operation {
            Op::List => draw.below(120),
            _ => 1 + draw.below(12),
        };
        schedule.exists = draw.one_in(2);
        schedule.conditional = operation.is_put() && !schedule.exists && draw.one_in(2);
        schedule.pause = draw.one_in(6).then(|| Duration::from_millis(1 + draw.below(12)));
        let latest = draw.pick(&[40_000, 40_000, 400_000]);
        schedule.cancel = draw.one_in(5).then(|| Duration::from_micros(draw.below(latest)));
        schedule.other_size = if draw.one_in(2) { schedule.size } else { draw.below(schedule.size + 64 * KIB) };
        let count = draw.pick(&[0, 1, 1, 1, 2, 2, 3]);
        for _ in 0..count {
            let verb = draw.pick(operation.verbs());
            let all: Vec<_> = actions(&mut draw).into_iter().filter(|action| suits(action, verb)).collect();
            let action = draw.pick(&all);
            let when = match draw.below(6) {
                0 => When::Always,
                1 | 2 => When::Nth(1 + draw.below(4), 1 + draw.below(2)),
                _ => When::Chance(draw.pick(&[0.05, 0.2, 0.5, 1.0]), draw.pick(&[1, 1, 2, 100])),
            };
            schedule.faults.push(replacing(Planned { action, verb: Some(verb), key: None, when }, operation));
        }
        schedule.keep_versions_apart();
        schedule
    }

    /// Of a server that tells neither a strong ETag nor a checksum, nobody can say that an object was replaced by one
    /// of its size within the second.
    fn keep_versions_apart(&mut self) {
        let mut actions = self.faults.iter().map(|fault| &fault.action);
        if actions.any(|action| matches!(action, Action::WeakEtag | Action::NoEtag)) && self.other_size == self.size {
            self.other_size = self.size + 1;
        }
    }

    /// Whether bytes may change on their way in a manner that only a checksum can show.
    pub fn tampers(&self) -> bool {
        self.faults.iter().any(|fault| match fault.action {
            Action::Corrupt(_) => true,
            // A whole object that is shorter or longer than it was, and says so in its length alone.
            Action::Short(_) | Action::Padded(_) => !self.checksums || !self.verify,
            _ => false,
        })
    }

    pub fn replaces(&self) -> bool {
        self.faults.iter().any(|fault| matches!(fault.action, Action::Replace(_)))
    }

    pub fn meets(&self, verb: Verb) -> bool {
        self.faults.iter().any(|fault| fault.meets(verb))
    }
}

/// How far an upload may go beyond its first part: seldom into a third one.
fn draw_ceiling(seed: u64) -> u64 {
    if seed.is_multiple_of(7) { 6 * MIB } else { 300 * KIB }
}

/// A replaced object is the one that is read; and it is replaced when its first bytes are known, or before.
fn replacing(mut planned: Planned, operation: Operation) -> Planned {
    if matches!(planned.action, Action::Replace(_)) {
        planned.key = Some(match operation {
            operation if operation.is_get_many() => "key-0",
            Op::Copy | Op::CopyByParts => "source",
            _ => "key",
        });
    }
    planned
}

/// Which operations an action means something to, by the server's own account.
pub fn suits(action: &Action, verb: Verb) -> bool {
    match action {
        Action::ErrorInBody(_) => {
            matches!(verb, Verb::CompleteMultipart | Verb::Copy | Verb::UploadPartCopy | Verb::DeleteMany)
        }
        Action::MalformedXml => matches!(
            verb,
            Verb::List
                | Verb::CompleteMultipart
                | Verb::Copy
                | Verb::UploadPartCopy
                | Verb::DeleteMany
                | Verb::CreateMultipart
        ),
        Action::Short(_)
        | Action::Padded(_)
        | Action::ContentRange(_)
        | Action::ShiftRange(_)
        | Action::IgnoreRange
        | Action::BareStatus(416)
        | Action::Corrupt(_) => verb == Verb::Get,
        Action::Replace(_) => matches!(verb, Verb::Get | Verb::Head),
        // An object may be a page.
        Action::BareStatus(200) => !matches!(verb, Verb::Get | Verb::Head),
        Action::ResetUpload(_) => matches!(verb, Verb::Put | Verb::UploadPart),
        Action::RefuseTrailers => matches!(verb, Verb::Put | Verb::UploadPart),
        Action::RefuseChecksums => matches!(verb, Verb::Put | Verb::UploadPart | Verb::CreateMultipart),
        Action::WeakEtag | Action::NoEtag => {
            matches!(verb, Verb::Get | Verb::Head | Verb::Put | Verb::UploadPart)
        }
        // There is no body to break, or no answer that is longer than its head.
        Action::StallAfter(_) | Action::CloseAfter(_) | Action::ResetAfter(_) | Action::Longer(_) => {
            !matches!(verb, Verb::Head | Verb::Put | Verb::UploadPart | Verb::AbortMultipart)
        }
        _ => true,
    }
}

/// Every fault that the issue names, with what it leaves open drawn.
pub fn actions(draw: &mut Draw) -> Vec<Action> {
    let wait = Duration::from_millis(20 + draw.below(200));
    vec![
        Action::Reset,
        Action::Close,
        Action::ResetAnswer,
        Action::CloseAnswer,
        Action::ResetAfter(ANYWHERE),
        Action::CloseAfter(ANYWHERE),
        Action::ResetEnd,
        Action::ResetUpload(ANYWHERE),
        Action::Stall,
        Action::StallAfter(ANYWHERE),
        Action::Short(ANYWHERE),
        Action::Longer(1 + draw.below(5000)),
        Action::Padded(1 + draw.below(5000)),
        Action::ContentRange(draw.pick(&["bytes 0-0/1", "bytes 5-4/10", "lots", "bytes */7"]).to_owned()),
        Action::ShiftRange(1 + draw.below(100)),
        Action::IgnoreRange,
        Action::Corrupt(1 + draw.below(3)),
        Action::Replace(Vec::new()),
        Action::Status(500),
        Action::Status(503),
        Action::BareStatus(500),
        Action::BareStatus(503),
        Action::BareStatus(502),
        // A page in the place of an answer, and nothing done.
        Action::BareStatus(200),
        Action::Error(403, "AccessDenied".to_owned()),
        Action::ErrorInBody("InternalError".to_owned()),
        Action::ErrorInBody("AccessDenied".to_owned()),
        Action::MalformedXml,
        Action::MalformedHead(BadHead::Any),
        Action::SlowHead(wait),
        Action::Delay(wait),
        Action::ExpiredToken,
        Action::Clock(draw.pick(&[-7200, 3600])),
        Action::RefuseTrailers,
        Action::RefuseChecksums,
        Action::WeakEtag,
        Action::NoEtag,
        Action::Redirect("eu-west-3".to_owned()),
        Action::WrongRegion("eu-west-3".to_owned()),
        // Of a range, without a word about the object.
        Action::BareStatus(416),
    ]
}

/// Each fault on each request of each operation, plain and over TLS, and each operation without any.
pub fn matrix() -> Vec<Schedule> {
    let mut schedules = Vec::new();
    let mut seed = 0;
    let mut add = |schedule: &dyn Fn(u64) -> Schedule| {
        for tls in [false, true] {
            seed += 1;
            schedules.push(Schedule { tls, ..schedule(seed) });
        }
    };
    for operation in Operation::ALL {
        add(&|seed| Schedule::plain(seed, operation));
        for &verb in operation.verbs() {
            for index in 0..actions(&mut Draw::new(0)).len() {
                let case = |seed: u64| {
                    let mut schedule = Schedule::plain(seed, operation);
                    let action = actions(&mut Draw::new(seed)).swap_remove(index);
                    schedule.faults = faults_of(action, verb, operation);
                    schedule.keep_versions_apart();
                    schedule
                };
                let action = &actions(&mut Draw::new(0))[index];
                if suits(action, verb) && is_met(action, verb, operation) {
                    add(&case);
                }
            }
        }
    }
    schedules
}

/// A HEAD beside a download is asked by several; what follows it is no concern of the matrix.
fn is_met(action: &Action, verb: Verb, operation: Operation) -> bool {
    match action {
        // The HEAD of a download comes when the object is known already.
        Action::Replace(_) => !(verb == Verb::Head && operation == Op::Head),
        _ => true,
    }
}

fn faults_of(action: Action, verb: Verb, operation: Operation) -> Vec<Planned> {
    let when = match action {
        // What a server is, it is always.
        Action::WeakEtag
        | Action::NoEtag
        | Action::RefuseTrailers
        | Action::RefuseChecksums
        | Action::Redirect(_)
        | Action::WrongRegion(_)
        | Action::Clock(_) => When::Always,
        // Between two ranges.
        Action::Replace(_) if verb == Verb::Get && !operation.is_get_many() => When::Nth(2, 1),
        _ => When::Nth(1, 1),
    };
    let verb = match when {
        When::Always if !matches!(action, Action::WeakEtag | Action::NoEtag) => None,
        _ => Some(verb),
    };
    let mut faults = vec![replacing(Planned { action, verb, key: None, when }, operation)];
    if verb == Some(Verb::AbortMultipart) {
        // There is something to abort.
        let part = if operation == Op::CopyByParts { Verb::UploadPartCopy } else { Verb::UploadPart };
        let action = Action::Error(403, "AccessDenied".to_owned());
        faults.push(Planned { action, verb: Some(part), key: None, when: When::Always });
    }
    faults
}

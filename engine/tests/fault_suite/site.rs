//! Where schedules run: servers that are kept, a client of its own for each, and the order of what is done.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use wirespeed::{Client, Credentials};
use wirespeed_origin::{Origin, Running, Schedule as Faults, Tls, Verb};

use crate::invariants;
use crate::operations::{BUCKET, Outcome, PAGE, Scene, keys, perform};
use crate::schedule::{KIB, Operation as Op, Schedule};

const KEY_ID: &str = "AKIAFAULTSUITE";
const SECRET: &str = "sEcReT/9f8e7d6c5b4a+fault/suite";
const TOKEN: &str = "tOkEn//a1b2c3d4e5f6=fault=suite";

/// What must be shown nowhere.
pub const SECRETS: [&str; 2] = [SECRET, TOKEN];

/// Of each timeout of a client. Long enough that a busy machine seldom reaches them by itself.
const PATIENCE: Duration = Duration::from_millis(300);
const ATTEMPTS: u32 = 3;

/// A server, and what its clients trust.
struct Server {
    origin: Running,
    ca: Option<PathBuf>,
}

/// One worker's servers and runtimes: one schedule runs here at a time.
pub struct Site {
    servers: BTreeMap<(bool, bool), Server>,
    folder: tempfile::TempDir,
    serving: tokio::runtime::Handle,
    single: Runtime,
    several: Runtime,
}

/// What came of a schedule.
pub struct Report {
    /// `ok`, `cancelled`, or the kind of the first error.
    pub ending: &'static str,
    pub retries: u64,
    pub faults: u64,
    pub unverified: usize,
    pub elapsed: Duration,
    /// Every error, as a person would read it.
    pub errors: Vec<String>,
    /// What was broken: nothing, if all is well.
    pub wrong: Vec<String>,
}

impl Site {
    /// Servers run on `serving`; clients have runtimes to themselves, whose tasks can be counted.
    pub fn new(serving: tokio::runtime::Handle) -> io::Result<Site> {
        Ok(Site {
            servers: BTreeMap::new(),
            folder: tempfile::tempdir()?,
            serving,
            single: Builder::new_current_thread().enable_all().build()?,
            several: Builder::new_multi_thread().worker_threads(2).enable_all().build()?,
        })
    }

    /// Runs a schedule; `case` is one of the matrix.
    pub fn run(&mut self, schedule: &Schedule, case: bool) -> io::Result<Report> {
        self.start(schedule.tls, schedule.checksums)?;
        let server = &self.servers[&(schedule.tls, schedule.checksums)];
        let runtime = if schedule.threads { &self.several } else { &self.single };
        runtime.block_on(server.run(schedule, case))
    }

    fn start(&mut self, tls: bool, checksums: bool) -> io::Result<()> {
        if self.servers.contains_key(&(tls, checksums)) {
            return Ok(());
        }
        let mut builder = Origin::builder()
            .keys("unused", "unused")
            .temporary_keys(KEY_ID, SECRET, TOKEN)
            .bucket(BUCKET)
            .default_checksum(checksums);
        if tls {
            builder = builder.tls(Tls::generated());
        }
        let origin = self.serving.block_on(builder.start())?;
        let ca = origin.ca_pem().map(|pem| {
            let path = self.folder.path().join(format!("ca-{checksums}.pem"));
            std::fs::write(&path, pem).map(|()| path)
        });
        self.servers.insert((tls, checksums), Server { origin, ca: ca.transpose()? });
        Ok(())
    }
}

impl Server {
    async fn run(&self, schedule: &Schedule, case: bool) -> io::Result<Report> {
        let Server { origin, .. } = self;
        let started = Instant::now();
        let scene = Scene::new(schedule)?;
        self.set_up(schedule, &scene).await?;
        let client = self.client(schedule);
        origin.reset_stats();
        let faults = schedule.faults.iter().map(|planned| planned.fault(scene.other));
        origin.set_faults(faults.fold(Faults::new(schedule.seed), Faults::fault));

        let mut wrong = Vec::new();
        let shown = format!("{client:?}");
        if SECRETS.iter().any(|secret| shown.contains(secret)) {
            wrong.push(format!("the client shows a secret: {shown}"));
        }
        let mut ending = "ok";
        // The sum of all timeouts and waits that the operation can meet, and some for the machine.
        let limit = limit(schedule);
        let performed = match schedule.cancel {
            Some(after) => timeout(after, perform(&client, schedule, &scene)).await.ok(),
            None => {
                let performed = timeout(limit, perform(&client, schedule, &scene)).await;
                if performed.is_err() {
                    wrong.push(format!("HANG: not done after {limit:?}"));
                }
                performed.ok()
            }
        };
        let mut outcome = performed.unwrap_or_else(|| {
            ending = "cancelled";
            Outcome::default()
        });
        if let Some(first) = outcome.errors.first() {
            ending = first.kind().as_str();
        }
        // What was dropped is cleaned up within a second, unless that is made to fail too.
        let undisturbed = !schedule.meets(Verb::CreateMultipart) && !schedule.meets(Verb::AbortMultipart);
        let patience = if undisturbed { Duration::from_secs(1) } else { limit };
        if let Err(error) = client.settle(patience).await {
            wrong.push(format!("cleaning up did not end: {error}"));
        }
        let met: u64 = origin.stats().faults.values().sum();
        // The server may still be at a request that nobody waits for any more.
        let retries = client.metrics().retries;
        origin.clear_faults();

        wrong.append(&mut outcome.wrong);
        invariants::errors(schedule, &outcome.errors, &mut wrong);
        invariants::verification(schedule, &outcome, &mut wrong);
        invariants::held(origin, &client, &mut wrong).await;
        invariants::server(schedule, &scene, origin, &outcome, &mut wrong).await;
        invariants::folder(schedule, &scene, &outcome, &mut wrong).await;
        invariants::uploads(schedule, origin, &client, &outcome, &mut wrong);
        if case {
            invariants::matrix(schedule, met, &outcome, &mut wrong);
        }
        invariants::probe(&client, origin, schedule, &mut wrong).await;
        invariants::held(origin, &client, &mut wrong).await;
        let unverified = outcome.unverified;
        let errors = outcome.errors.iter().map(ToString::to_string).collect();
        drop((outcome, client));
        invariants::gone(origin, &mut wrong).await;
        Ok(Report { ending, retries, faults: met, unverified, elapsed: started.elapsed(), errors, wrong })
    }

    fn client(&self, schedule: &Schedule) -> Client {
        let patience = format!("{}ms", PATIENCE.as_millis());
        let mut builder = Client::builder()
            .endpoint_url(self.origin.endpoint())
            .region("us-east-1")
            .credentials(Credentials::new(KEY_ID, SECRET).with_session_token(TOKEN))
            .part_size(64 * KIB)
            .memory(schedule.memory)
            .concurrency(schedule.concurrency);
        if let Some(ca) = &self.ca {
            builder = builder.ca_bundle(ca);
        }
        let settings = [
            // No fault is about making connections, and a handshake takes a busy machine some time.
            ("connect_timeout", "5s"),
            ("first_byte_timeout", &patience),
            ("stall_timeout", &patience),
            ("max_attempts", &ATTEMPTS.to_string()),
            ("multipart_threshold", "5MiB"),
            ("verify_checksums", &schedule.verify.to_string()),
            ("no_proxy", "*"),
        ];
        let set = settings.iter().try_fold(builder, |builder, (name, value)| builder.set(name, value));
        set.and_then(wirespeed::ClientBuilder::build).unwrap()
    }

    async fn set_up(&self, schedule: &Schedule, scene: &Scene) -> io::Result<()> {
        let origin = &self.origin;
        origin.clear_faults();
        origin.empty_bucket(BUCKET);
        let put = |key: &str, content: &'static [u8]| {
            let key = key.to_owned();
            async move { origin.put_object(BUCKET, &key, content).await }
        };
        match schedule.operation {
            operation if operation.is_get_many() || operation == Op::DeleteMany => {
                for index in 0..schedule.count {
                    put(&format!("key-{index}"), scene.nth(index)).await?;
                }
            }
            Op::List => {
                for key in keys(schedule.count) {
                    put(&key, b"").await?;
                }
            }
            operation if operation.is_get() || operation == Op::Head => put("key", scene.content).await?,
            operation => {
                if operation.is_copy() {
                    put("source", scene.content).await?;
                }
                if schedule.exists {
                    put("key", scene.old).await?;
                }
            }
        }
        match schedule.operation {
            Op::GetFile if schedule.exists => std::fs::write(scene.target(), scene.old),
            Op::PutFile | Op::PutFound | Op::MultipartFile => std::fs::write(scene.source(), scene.content),
            _ => Ok(()),
        }
    }
}

/// How long a schedule may take: every request that must follow another, as often as it may be tried, each time with
/// every timeout used up and the longest wait after it; what the caller wastes itself; and what a busy machine adds.
fn limit(schedule: &Schedule) -> Duration {
    let parts = schedule.size.div_ceil(64 * KIB);
    let rounds = match schedule.operation {
        Op::List => schedule.count / PAGE + 2,
        operation if operation.is_get_many() => 3 * schedule.count,
        operation if operation.is_get() => 3 + parts.div_ceil(schedule.concurrency as u64),
        operation if operation.is_multipart() => 7,
        _ => 3,
    };
    // A wait after 503 is at most half a second, doubled each time.
    let round = ATTEMPTS * (2 * PATIENCE) + Duration::from_millis(500 + 1000);
    let pauses = schedule.pause.unwrap_or_default() * (2 * parts + schedule.count + 10) as u32;
    round * rounds as u32 + pauses + Duration::from_secs(15)
}

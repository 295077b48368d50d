//! The credentials in use: handed out without a lock, replaced before they expire.
//!
//! A request takes the current credentials from one atomic pointer. When three quarters to nine tenths of
//! their life have passed (drawn by lot, so that a fleet does not ask at once), the request that notices
//! starts a refresh behind its back and goes on with what there is: there is no timer, and an idle client
//! asks nobody. A request waits only when there is nothing valid; then one of those that wait asks, and
//! all of them get its answer. A failed refresh keeps the old credentials until they expire, and is tried
//! again after a pause that doubles.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwapOption;

use super::Credentials;
use crate::error::{Error, ErrorKind, Result};
use crate::wire::sign::Signer;

/// The share of their life after which credentials are replaced: AWS's own clients begin 5 to 15 minutes
/// before the end of an hour.
const REFRESH_AFTER: std::ops::Range<f64> = 0.75..0.90;

/// The pause after a failed refresh, doubled up to [`LONGEST_PAUSE`] by each that follows.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Who asks for credentials within this time of a failure gets that failure: a crowd of requests must
/// not wait for the same silent service one after the other.
const FAILURE_STANDS: Duration = Duration::from_secs(1);

/// Where credentials are fetched.
pub(crate) trait Load: Send + Sync {
    /// Fetches them, within a bounded time.
    fn load(&self) -> Loading<'_>;
}

/// Credentials on their way.
pub(crate) type Loading<'a> = Pin<Box<dyn Future<Output = Result<Loaded, LoadFailure>> + Send + 'a>>;

/// What a [`Load`] brought.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    pub(crate) credentials: Credentials,
    /// `None` for keys that do not expire.
    pub(crate) expires_at: Option<SystemTime>,
    /// The server's time when they came, where fetching them has taught it.
    pub(crate) fetched_at: Option<SystemTime>,
    /// Signers sign for a session (CreateSession).
    pub(crate) in_session: bool,
    /// Where they came from, for logs and errors.
    pub(crate) source: String,
}

/// Why a [`Load`] brought nothing: an error that several requests may be given.
#[derive(Debug, Clone)]
pub(crate) struct LoadFailure {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
    pub(crate) hint: Option<&'static str>,
    /// What S3 itself said, where it was asked.
    pub(crate) refusal: Option<Refused>,
}

/// An answer of S3's by which credentials were refused.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    pub(crate) status: u16,
    pub(crate) code: Option<String>,
    pub(crate) request_id: Option<String>,
}

impl LoadFailure {
    pub(crate) fn error(&self) -> Error {
        let mut error = Error::new(self.kind, self.message.clone());
        if let Some(Refused { status, code, request_id }) = self.refusal.clone() {
            error = error.with_response(status, code, request_id);
        }
        match self.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

/// One generation of credentials, and the signers made from it.
pub(crate) struct Current {
    generation: u64,
    credentials: Credentials,
    in_session: bool,
    refresh_at: Option<SystemTime>,
    expires_at: Option<SystemTime>,
    /// One for each region and service; looked at when a bucket is first used, never for a request.
    signers: Mutex<Vec<(String, String, Arc<Signer>)>>,
}

impl Current {
    /// Tells generations of one [`Identity`] apart.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// When a request should look whether there are newer ones.
    pub(crate) fn refresh_at(&self) -> Option<SystemTime> {
        self.refresh_at
    }

    /// The signer for a region and service.
    pub(crate) fn signer(&self, region: &str, service: &str) -> Arc<Signer> {
        let mut signers = self.signers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, _, signer)) = signers.iter().find(|known| known.0 == region && known.1 == service) {
            return Arc::clone(signer);
        }
        let Credentials { access_key_id, secret_access_key, session_token } = &self.credentials;
        let signer = Signer::new(access_key_id, secret_access_key, session_token.as_deref(), region, service);
        let signer = Arc::new(if self.in_session { signer.in_session() } else { signer });
        signers.push((region.to_owned(), service.to_owned(), Arc::clone(&signer)));
        signer
    }

    fn is_valid(&self, now: SystemTime) -> bool {
        self.expires_at.is_none_or(|at| now < at)
    }

    fn is_due(&self, now: SystemTime) -> bool {
        self.refresh_at.is_some_and(|at| now >= at)
    }
}

/// Who the client is to the server.
pub(crate) struct Identity {
    current: ArcSwapOption<Current>,
    /// That of `current`, to be compared without loading it.
    generation: AtomicU64,
    loader: Option<Box<dyn Load>>,
    /// Held by whoever fetches; what the last fetch failed with.
    fetching: tokio::sync::Mutex<Option<(Instant, LoadFailure)>>,
    refreshing: AtomicBool,
    /// No refresh before this, in milliseconds since `started`.
    pause_until: AtomicU64,
    started: Instant,
}

impl Identity {
    /// Requests go unsigned.
    pub(crate) fn anonymous() -> Identity {
        Identity::new(None)
    }

    /// These credentials, for good.
    pub(crate) fn fixed(credentials: Credentials) -> Identity {
        let identity = Identity::new(None);
        let source = "the caller or the environment".to_owned();
        let loaded = Loaded { credentials, expires_at: None, fetched_at: None, in_session: false, source };
        identity.install(loaded, SystemTime::now());
        identity
    }

    /// Credentials to be fetched when they are first needed.
    pub(crate) fn loading(loader: Box<dyn Load>) -> Identity {
        Identity::new(Some(loader))
    }

    fn new(loader: Option<Box<dyn Load>>) -> Identity {
        Identity {
            current: ArcSwapOption::empty(),
            generation: AtomicU64::new(0),
            loader,
            fetching: tokio::sync::Mutex::new(None),
            refreshing: AtomicBool::new(false),
            pause_until: AtomicU64::new(0),
            started: Instant::now(),
        }
    }

    /// Whether requests go unsigned.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.loader.is_none() && self.generation() == 0
    }

    /// The generation in use; 0 where there is none yet.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// What to sign with at `now`, the server's time; `None` for an anonymous client. Waits only when
    /// there is nothing valid.
    ///
    /// # Errors
    /// Why there are no credentials.
    pub(crate) async fn current(self: &Arc<Self>, now: SystemTime) -> Result<Option<Arc<Current>>> {
        if let Some(current) = self.current.load_full().filter(|current| current.is_valid(now)) {
            if current.is_due(now) {
                self.refresh_behind(current.generation, now);
            }
            return Ok(Some(current));
        }
        if self.loader.is_none() {
            return Ok(None);
        }
        let stale = self.generation();
        self.fetch(stale, now).await.map(Some).map_err(|failure| failure.error())
    }

    /// The server would not have `generation` any more: whether there are newer credentials now. Asks at
    /// once, however long they were said to last.
    pub(crate) async fn replace(self: &Arc<Self>, generation: u64, now: SystemTime) -> bool {
        if self.generation() != generation {
            return true;
        }
        if self.loader.is_none() {
            return false;
        }
        let Some(before) = self.current.load_full() else { return false };
        match self.fetch(generation, now).await {
            Ok(current) => current.credentials != before.credentials,
            Err(failure) => {
                tracing::warn!(
                    "the credentials were refused as expired, and there are no newer ones: {}",
                    failure.message
                );
                false
            }
        }
    }

    /// Starts a refresh unless one is under way or has just failed.
    fn refresh_behind(self: &Arc<Self>, generation: u64, now: SystemTime) {
        if self.loader.is_none() || self.since_start() < self.pause_until.load(Ordering::Relaxed) {
            return;
        }
        if self.refreshing.swap(true, Ordering::AcqRel) {
            return;
        }
        let refreshing = Refreshing(Arc::clone(self));
        tokio::spawn(async move {
            let identity = &refreshing.0;
            if let Err(failure) = identity.fetch(generation, now).await {
                tracing::warn!("the credentials could not be refreshed, the old ones stay in use: {}", failure.message);
            }
        });
    }

    /// Fetches what takes the place of generation `stale`, unless another has done so meanwhile.
    async fn fetch(&self, stale: u64, now: SystemTime) -> Result<Arc<Current>, LoadFailure> {
        let asked = Instant::now();
        let mut last_failure = self.fetching.lock().await;
        if let Some(current) = self.current.load_full()
            && current.generation != stale
        {
            return Ok(current);
        }
        let mut pause = FIRST_PAUSE;
        if let Some((at, failure)) = &*last_failure {
            if *at + FAILURE_STANDS > asked {
                return Err(failure.clone());
            }
            pause = (at.elapsed() * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        }
        let Some(loader) = &self.loader else { return Err(nothing_to_load()) };
        let loaded = loader.load().await;
        let fetched_at = loaded.as_ref().ok().and_then(|loaded| loaded.fetched_at);
        let now = fetched_at.unwrap_or_else(|| now + asked.elapsed());
        let loaded = match loaded {
            Ok(loaded) if loaded.expires_at.is_some_and(|at| at <= now) => Err(expired_already(&loaded)),
            other => other,
        };
        match loaded {
            Ok(loaded) => {
                *last_failure = None;
                tracing::debug!(source = loaded.source, "credentials fetched");
                Ok(self.install(loaded, now))
            }
            Err(failure) => {
                let jittered = pause.mul_f64(0.5 + fastrand::f64() / 2.0);
                let until = self.since_start() + u64::try_from(jittered.as_millis()).unwrap_or(u64::MAX);
                self.pause_until.store(until, Ordering::Relaxed);
                *last_failure = Some((Instant::now(), failure.clone()));
                Err(failure)
            }
        }
    }

    fn install(&self, loaded: Loaded, now: SystemTime) -> Arc<Current> {
        let Loaded { credentials, expires_at, in_session, .. } = loaded;
        let share = REFRESH_AFTER.start + (REFRESH_AFTER.end - REFRESH_AFTER.start) * fastrand::f64();
        let life = expires_at.and_then(|at| at.duration_since(now).ok());
        let current = Arc::new(Current {
            generation: self.generation() + 1,
            credentials,
            in_session,
            refresh_at: life.map(|life| now + life.mul_f64(share)),
            expires_at,
            signers: Mutex::default(),
        });
        self.current.store(Some(Arc::clone(&current)));
        self.generation.store(current.generation, Ordering::Release);
        current
    }

    fn since_start(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("generation", &self.generation()).finish_non_exhaustive()
    }
}

/// Lets another refresh start when this one ends, also when its runtime ends first.
struct Refreshing(Arc<Identity>);

impl Drop for Refreshing {
    fn drop(&mut self) {
        self.0.refreshing.store(false, Ordering::Release);
    }
}

fn nothing_to_load() -> LoadFailure {
    LoadFailure {
        kind: ErrorKind::Denied,
        message: "these credentials cannot be replaced: they were given as they are".to_owned(),
        hint: Some("get new credentials, and give those"),
        refusal: None,
    }
}

fn expired_already(loaded: &Loaded) -> LoadFailure {
    LoadFailure {
        kind: ErrorKind::Denied,
        message: format!("the credentials from {} have expired already", loaded.source),
        hint: Some("get new ones (for SSO: aws sso login), and check this machine's clock"),
        refusal: None,
    }
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
